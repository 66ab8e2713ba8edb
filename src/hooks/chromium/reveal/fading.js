// Elements that a page changes by their class or style when it is scrolled. Those that are hidden out of view,
// such as parts that fade in at each visit of a reader, are kept as they were when they were seen best. Those
// that stay in view are kept as they were before: pages that count on the pace of a reader leave a header that
// shrinks when the page is scrolled as it is, also after a moment in which the window has another size.
class Fading {
  static ELEMENTS_MAX = 2000;
  // How often an element is shown again. Pages look at all elements when the size of the window changes, as it
  // does for a moment when a picture is taken.
  static TIMES_MAX = 20;

  constructor() {
    this.touched = new Set();
    this.seen = new Map();
    // The attributes before the first change.
    this.before = new Map();
    this.observer = new MutationObserver((changes) => this.#add(changes));
    this.observer.observe(document, {
      subtree: true, attributes: true, attributeFilter: ["class", "style"], attributeOldValue: true,
    });
  }

  end() {
    this.observer.disconnect();
  }

  // Remembers what can be seen better than before.
  look() {
    this.#add(this.observer.takeRecords());
    if (this.touched.size === 0) return;
    this.#withoutTransitions(() => {
      for (const element of this.touched) {
        const opacity = Fading.#opacity(element);
        const before = this.seen.get(element);
        if (!Fading.#isHidden(opacity) && opacity >= (before?.opacity ?? 0)) {
          this.seen.set(element, { opacity, attributes: Fading.#attributes(element) });
        }
      }
    });
  }

  // Shows what is hidden now and was seen, and what stays in view as it was before, from now on. Returns the
  // number of elements that were hidden.
  keep() {
    // A picture may have taken the place of another one since the last look.
    this.look();
    const kept = new Map();
    let hidden = 0;
    this.#withoutTransitions(() => {
      for (const [element, { attributes }] of this.seen) {
        if (!Fading.#isHidden(Fading.#opacity(element)) || !this.#isPart(element)) continue;
        const now = Fading.#attributes(element);
        Fading.#set(element, attributes);
        if (Fading.#isHidden(Fading.#opacity(element))) {
          Fading.#set(element, now);
        } else {
          kept.set(element, { attributes, times: 0, isLost: () => Fading.#isHidden(Fading.#opacity(element)) });
          hidden++;
        }
      }
      for (const [element, before] of this.before) {
        // A wall that was removed meanwhile is not shown.
        if (kept.has(element) || element.getClientRects().length === 0) continue;
        if (!/sticky|fixed/.test(getComputedStyle(element).position)) continue;
        const attributes = [...before];
        Fading.#set(element, attributes);
        const isLost = () => attributes.some(([name, value]) => element.getAttribute(name) !== value);
        kept.set(element, { attributes, times: 0, isLost });
      }
    });
    const guard = new MutationObserver((changes) => this.#withoutTransitions(() => {
      for (const element of new Set(changes.map(({ target }) => target))) {
        const state = kept.get(element);
        if (state.times++ < Fading.TIMES_MAX && state.isLost()) {
          Fading.#set(element, state.attributes);
          // Computed now, so that no transition leads from what it was.
          Fading.#opacity(element);
        }
      }
      // Does not answer to the changes that were made here.
      guard.takeRecords();
    }));
    for (const element of kept.keys()) guard.observe(element, { attributeFilter: ["class", "style"] });
    return hidden;
  }

  #add(changes) {
    for (const { target, attributeName, oldValue } of changes) {
      if (this.touched.size >= Fading.ELEMENTS_MAX && !this.touched.has(target)) continue;
      this.touched.add(target);
      if (!this.before.has(target)) this.before.set(target, new Map());
      const before = this.before.get(target);
      if (!before.has(attributeName)) before.set(attributeName, oldValue);
    }
  }

  // Whether an element is a part of the page and not in view: not a button that floats above the page, and not
  // one of several pictures that take turns in one place. Pages begin to show a part when it is well within the
  // window, so that only the upper half of the window counts as view.
  #isPart(element) {
    const place = element.getBoundingClientRect();
    if (place.width === 0 || place.height === 0) return false;
    const isInView = growsSideways(document.documentElement)
      ? place.left < innerWidth && place.right > 0
      : place.top < innerHeight / 2 && place.bottom > 0;
    if (isInView) return false;
    for (let at = element; at; at = at.parentElement) {
      if (getComputedStyle(at).position === "fixed") return false;
    }
    return ![...element.parentElement?.children ?? []].some((other) => {
      if (other === element || !this.seen.has(other)) return false;
      const its = other.getBoundingClientRect();
      const width = Math.min(place.right, its.right) - Math.max(place.left, its.left);
      const height = Math.min(place.bottom, its.bottom) - Math.max(place.top, its.top);
      return width > 0 && height > 0 && width * height > place.width * place.height / 2;
    });
  }

  // What is shown in the end is compared, not what is on its way there.
  #withoutTransitions(look) {
    // An element can have the name of a property of the document.
    if (!Array.isArray(document.adoptedStyleSheets)) return look();
    const still = new CSSStyleSheet();
    still.replaceSync("*, ::before, ::after { transition: none !important }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];
    look();
    document.adoptedStyleSheets = [...document.adoptedStyleSheets].filter((sheet) => sheet !== still);
  }

  static #opacity(element) {
    const style = getComputedStyle(element);
    return style.visibility === "visible" ? Number(style.opacity) : 0;
  }

  static #isHidden(opacity) {
    return opacity < 0.05;
  }

  static #attributes(element) {
    return ["class", "style"].map((name) => [name, element.getAttribute(name)]);
  }

  static #set(element, attributes) {
    for (const [name, value] of attributes) {
      if (value === null) element.removeAttribute(name);
      else element.setAttribute(name, value);
    }
  }
}
