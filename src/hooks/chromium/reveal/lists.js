
// Lists that hold only the rows in view. Their rows are collected while the page is scrolled, and while the box of
// a list is, and are kept in a template at the end of the document until it is saved.
class Lists {
  static MAX = 10;
  static ROWS_MAX = 5000;
  static STEPS_MAX = 200;
  // Pixels that are missing in a list of this kind, at least.
  static BLANK_MIN = 500;
  static INDEXES = ["aria-rowindex", "aria-posinset", "data-index", "data-item-index", "data-row-index", "row-index"];

  constructor(page) {
    this.page = page;
    this.inert = document.implementation.createHTMLDocument("");
    this.all = [];
    for (const parent of document.querySelectorAll("body *")) {
      if (this.all.length < Lists.MAX) this.#add(parent);
    }
  }

  // Takes the rows that a list shows now, of lists that are scrolled with the page.
  look() {
    for (const list of this.all) if (list.box === this.page) this.#take(list);
  }

  // Scrolls through the boxes of the other lists and back, while there is time.
  async collect(settled, hasTime) {
    for (const list of this.all) {
      const { box } = list;
      if (box === this.page) continue;
      const end = () => box.scrollHeight - box.clientHeight;
      let [y, steps] = [0, 0];
      this.#take(list);
      while (y + 1 < end() && steps++ < Lists.STEPS_MAX && list.rows.size < Lists.ROWS_MAX && hasTime()) {
        y = Math.min(y + box.clientHeight * 0.9, end());
        box.scrollTo({ top: y, behavior: "instant" });
        await settled();
        this.#take(list);
        // A list that keeps rows that are far from view has no others.
        if (y > list.first.span && !list.isChanging) break;
      }
      box.scrollTo({ top: 0, behavior: "instant" });
      await settled();
    }
  }

  // Adds the rows to the document. How many rows each list shows, how many were collected, and how many there are,
  // which is a guess if not all were.
  keep() {
    const counts = [];
    for (const [at, list] of this.all.entries()) {
      const { parent, rows, first, height } = list;
      const shown = Lists.#rows(parent).length;
      if (!this.#hasChanged(list) || rows.size <= shown) continue;
      const sorted = [...rows.values()].sort((a, b) => a.index - b.index || a.top - b.top || a.left - b.left);
      const template = document.createElementNS("http://www.w3.org/1999/xhtml", "template");
      for (const element of [parent, template]) element.setAttribute("data-archivist-list", at);
      template.content.append(...sorted.map(({ copy }) => copy));
      document.documentElement.append(template);
      const named = Number(parent.closest("[aria-rowcount]")?.getAttribute("aria-rowcount"));
      const guessed = Math.round(height / (first.span / first.count));
      const total = named >= rows.size ? named : guessed > rows.size * 1.02 ? guessed : rows.size;
      counts.push({ shown, seen: rows.size, total });
    }
    return counts;
  }

  static #rows(parent) {
    return [...parent.children].filter((row) => row.offsetHeight > 0 && row.textContent.trim() !== "");
  }

  // A list is much higher than its rows, and all text in it is theirs.
  #add(parent) {
    if (parent.childElementCount < 3) return;
    const high = Math.max(parent.scrollHeight, parent.parentElement.scrollHeight);
    if (high < Lists.BLANK_MIN) return;
    const rows = Lists.#rows(parent);
    if (rows.length < 3) return;
    const places = rows.map((row) => row.getBoundingClientRect());
    const span = Math.max(...places.map(({ bottom }) => bottom)) - Math.min(...places.map(({ top }) => top));
    if (high < span * 2 || high - span < Lists.BLANK_MIN) return;
    const most = parent.textContent.length * 1.05;
    let [box, height] = [parent, 0];
    for (; box && box !== document.body && box.textContent.length <= most; box = box.parentElement) {
      height = Math.max(height, box.scrollHeight);
      if (/auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight + 1) break;
    }
    if (height < span * 2 || height - span < Lists.BLANK_MIN) return;
    const scrolls = box && box !== document.body && box.textContent.length <= most;
    const first = { span, count: new Set(places.map(({ top }) => Math.round(top))).size, texts: rows.map((row) => [row, row.textContent]) };
    this.all.push({ parent, box: scrolls ? box : this.page, height, first, rows: new Map() });
  }

  #hasChanged({ parent, first, isChanging }) {
    return isChanging || first.texts.some(([row, text]) => row.parentElement !== parent || row.textContent !== text);
  }

  #take(list) {
    const { parent, box, rows } = list;
    list.isChanging = this.#hasChanged(list);
    const origin = (box === document.scrollingElement ? 0 : box.getBoundingClientRect().top) - box.scrollTop;
    for (const row of Lists.#rows(parent)) {
      const place = row.getBoundingClientRect();
      const [top, left] = [Math.round(place.top - origin), Math.round(place.left)];
      const name = Lists.INDEXES.find((name) => row.hasAttribute(name));
      const index = name ? Number(row.getAttribute(name)) || 0 : 0;
      const key = name ? row.getAttribute(name) : `${Math.round(top / 4)} ${left}`;
      if (rows.has(key) || rows.size >= Lists.ROWS_MAX) continue;
      rows.set(key, { index, top, left, copy: this.inert.importNode(row, true) });
    }
  }
}
