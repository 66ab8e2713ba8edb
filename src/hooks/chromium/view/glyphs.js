(nodesMost) => {
  // Scripts by the Debian package with their fonts. Only letters are drawn, because marks and spaces may
  // be invisible.
  const scripts = {
    "fonts-noto-cjk": ["Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"],
    "fonts-noto-core": ["Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek",
      "Gujarati", "Gurmukhi", "Hebrew", "Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya", "Sinhala",
      "Tamil", "Telugu", "Thaana", "Thai", "Tibetan"],
    "fonts-noto-color-emoji": ["Emoji"],
  };
  const kinds = Object.entries(scripts).flatMap(([fonts, names]) => names.map((name) => ({
    name, fonts, pattern: name === "Emoji" ? /\p{Emoji_Presentation}/u : new RegExp(`(?=\\p{L})\\p{Script=${name}}`, "u"),
  })));
  const of = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const root = of("documentElement");
  if (!root) return [];
  // Most pages have none of them.
  const others = /[^\u0000-\u024f\u2000-\u22ff]/;
  const sides = 40;
  const canvas = new OffscreenCanvas(sides, sides).getContext("2d", { willReadFrequently: true });
  // The pixels of a character in the fonts of an element.
  const drawn = (element, character) => {
    const style = getComputedStyle(element);
    canvas.clearRect(0, 0, sides, sides);
    canvas.font = `${style.fontStyle} ${style.fontWeight} 24px ${style.fontFamily}`;
    canvas.fillText(character, 4, 30);
    return canvas.getImageData(0, 0, sides, sides).data;
  };
  const isBox = (element, character) => {
    // U+0378 is not assigned, so no font has it.
    const [box, own] = [drawn(element, "\u0378"), drawn(element, character)];
    return box.some((part) => part > 0) && box.every((part, at) => part === own[at]);
  };
  const seen = new Set();
  const missing = [];
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let count = 0; count < nodesMost && nodes.nextNode(); count++) {
    const { data, parentElement } = nodes.currentNode;
    if (!others.test(data) || !parentElement || /^(script|style|template|noscript)$/i.test(parentElement.tagName)) continue;
    for (const kind of kinds) {
      const [character] = seen.has(kind.name) ? [] : kind.pattern.exec(data) || [];
      if (!character || !parentElement.checkVisibility()) continue;
      seen.add(kind.name);
      if (isBox(parentElement, character)) missing.push([kind.name, kind.fonts]);
    }
  }
  return missing;
}
