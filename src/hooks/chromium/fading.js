// Elements that a page shows in view and hides out of view by their class or style, such as parts that fade
// in at each visit of a reader. Remembers how they were when they were seen best.
class Fading {
  static ELEMENTS_MAX = 2000;
  // How often an element is shown again. Pages look at all elements when the size of the window changes, as it
  // does for a moment when a picture is taken.
  static TIMES_MAX = 20;

  constructor() {
    this.touched = new Set();
    this.seen = new Map();
    this.observer = new MutationObserver((changes) => this.#add(changes));
    this.observer.observe(document, { subtree: true, attributes: true, attributeFilter: ["class", "style"] });
  }

  end() {
    this.observer.disconnect();
  }

  hasSeen() {
    return this.seen.size > 0;
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

  // Shows what is hidden now and was seen, from now on. Returns the number of elements.
  keep() {
    const kept = new Map();
    this.#withoutTransitions(() => {
      for (const [element, { attributes }] of this.seen) {
        if (!Fading.#isHidden(Fading.#opacity(element)) || !this.#isPart(element)) continue;
        const now = Fading.#attributes(element);
        Fading.#set(element, attributes);
        if (Fading.#isHidden(Fading.#opacity(element))) Fading.#set(element, now);
        else kept.set(element, { attributes, times: 0 });
      }
    });
    const guard = new MutationObserver((changes) => this.#withoutTransitions(() => {
      for (const element of new Set(changes.map(({ target }) => target))) {
        const state = kept.get(element);
        if (state.times++ < Fading.TIMES_MAX && Fading.#isHidden(Fading.#opacity(element))) {
          Fading.#set(element, state.attributes);
        }
      }
      // Does not answer to the changes that were made here.
      guard.takeRecords();
    }));
    for (const element of kept.keys()) guard.observe(element, { attributeFilter: ["class", "style"] });
    return kept.size;
  }

  #add(changes) {
    for (const { target } of changes) {
      if (this.touched.size < Fading.ELEMENTS_MAX) this.touched.add(target);
    }
  }

  // Whether an element is a part of the page and not in view: not a button that floats above the page, and not
  // one of several pictures that take turns in one place. Pages begin to show a part when it is well within the
  // window, so that only the upper half of the window counts as view.
  #isPart(element) {
    const place = element.getBoundingClientRect();
    if (place.width === 0 || place.height === 0) return false;
    if (place.top < innerHeight / 2 && place.bottom > 0) return false;
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
