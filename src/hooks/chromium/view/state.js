// Writes what the page shows and its markup does not say into the markup: rules that scripts added to
// style sheets, pixels of canvases, what is in the fields of forms, and collected rows of lists. `false` undoes that.
// Returns the number of changes.
(on, mostChars) => {
  const undo = (globalThis.archivistUndo ||= []);
  if (!on) {
    const count = undo.length;
    while (undo.length > 0) undo.pop()();
    return count;
  }
  let left = mostChars;
  const fits = (text) => (left -= text.length) >= 0;
  const set = (element, name, value) => {
    const old = element.getAttribute(name);
    if (old === value) return;
    if (value !== null && !fits(value)) return;
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
    undo.push(() => {
      if (old === null) element.removeAttribute(name);
      else element.setAttribute(name, old);
    });
  };
  const text = (sheet) => {
    try {
      return Array.from(sheet.cssRules, (rule) => rule.cssText).join("\n");
    } catch {
      return "";
    }
  };
  // The rules go to an element of their own: the sheet of an element is new when its text changes.
  const add = (parent, before, sheet) => {
    const rules = text(sheet);
    if (!parent || rules === "" || sheet.disabled || !fits(rules)) return;
    const style = document.createElementNS("http://www.w3.org/1999/xhtml", "style");
    style.setAttribute("data-archivist-rules", "");
    if (sheet.media.mediaText) style.media = sheet.media.mediaText;
    style.textContent = rules;
    parent.insertBefore(style, before);
    undo.push(() => style.remove());
  };
  const isChanged = (element) => {
    const own = element.textContent;
    if (!element.sheet || /@import/i.test(own)) return false;
    try {
      const parsed = new CSSStyleSheet();
      parsed.replaceSync(own);
      return parsed.cssRules.length !== element.sheet.cssRules.length;
    } catch {
      return false;
    }
  };
  const draw = (canvas) => {
    if (canvas.width * canvas.height === 0) return;
    try {
      const empty = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas");
      [empty.width, empty.height] = [canvas.width, canvas.height];
      const picture = canvas.toDataURL();
      if (picture === empty.toDataURL()) return;
      const style = canvas.getAttribute("style");
      const drawn = `background: url("${picture}") 0 0 / 100% 100% no-repeat`;
      set(canvas, "style", style ? `${style}; ${drawn}` : drawn);
    } catch {
      // A canvas with pictures of other sites may not be read.
    }
  };
  const fill = (field) => {
    if (field.localName === "option") {
      set(field, "selected", field.selected ? field.getAttribute("selected") ?? "" : null);
    } else if (field.localName === "textarea") {
      const old = field.defaultValue;
      if (field.value === old || !fits(field.value)) return;
      field.defaultValue = field.value;
      undo.push(() => (field.defaultValue = old));
    } else if (/^(checkbox|radio)$/.test(field.type)) {
      set(field, "checked", field.checked ? field.getAttribute("checked") ?? "" : null);
    } else if (!/^(password|file|hidden|image)$/.test(field.type) && field.value !== field.defaultValue) {
      set(field, "value", field.value);
    }
  };
  const keep = (root) => {
    for (const element of Array.from(root.querySelectorAll("*"))) {
      if (element.shadowRoot) keep(element.shadowRoot);
      if (left < 0) return;
      switch (element.localName) {
        case "style":
          if (isChanged(element)) add(element.parentNode, element.nextSibling, element.sheet);
          break;
        case "canvas":
          draw(element);
          break;
        case "input":
        case "option":
        case "textarea":
          fill(element);
      }
    }
    const parent = root === document ? document.head || document.documentElement : root;
    for (const sheet of root.adoptedStyleSheets || []) add(parent, null, sheet);
  };
  keep(document);
  for (const template of document.querySelectorAll("template[data-archivist-list]")) {
    const mark = "data-archivist-list", name = template.getAttribute(mark);
    template.remove();
    undo.push(() => document.documentElement.append(template));
    const list = document.querySelector(`[${mark}="${name}"]`);
    if (!list) continue;
    list.removeAttribute(mark);
    undo.push(() => list.setAttribute(mark, name));
    if (!fits(template.innerHTML)) continue;
    const shown = [...list.childNodes];
    list.replaceChildren(template.content.cloneNode(true));
    undo.push(() => list.replaceChildren(...shown));
  }
  return undo.length;
}
