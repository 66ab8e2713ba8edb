
// Loads the lazy images and frames of the page, and scrolls through it and back, so that what
// appears when it comes into view appears. What the page hides again when it is out of view is kept as
// it was.
//
// Each step waits for events, not for a number of frames: a busy machine draws late. Times are
// those of the page's clock, as its own timers are.
class Scrolling {
  // Frames, two at a time, for which a page that moves by itself is put to its top.
  static HOME_MAX = 30;
  // Elements whose place is compared.
  static PARTS_MAX = 2000;

  constructor(heightMax, stepsMax, timeMax) {
    Object.assign(this, { heightMax, stepsMax, timeMax });
    this.lazy = [];
    this.#collect(document);
    this.page = document.scrollingElement || document.documentElement;
    // A page may scroll in a box of its own.
    this.scroller = scrollBox() || this.page;
    const box = this.scroller === this.page ? document.documentElement : this.scroller;
    this.isSideways = Boolean(box) && growsSideways(box);
    if (this.isSideways) {
      const { writingMode, direction } = getComputedStyle(this.scroller === this.page && document.body || box);
      const isHorizontal = writingMode === "horizontal-tb";
      this.isLeftwards = isHorizontal ? direction === "rtl" : writingMode.endsWith("rl");
    }
    // The distance from the top, or from the side at which the page begins.
    this.y = 0;
    this.steps = 0;
    this.hasMoved = false;
  }

  // Scrolls to the present end. Whether there was a part that had not been in view.
  async down() {
    this.#begin();
    // What the page did in the frame before is laid out, so that an observer of the end sees the end leave
    // before it comes into view again.
    if (this.hasMoved) await this.#settled();
    // Compares with the page at its top.
    this.fading ??= new Fading();
    this.#findLists();
    const from = this.steps;
    while (this.#left() > 0 && this.steps < this.stepsMax && this.y < this.heightMax && this.y + 1 < this.#end()) {
      const screen = Math.max(200, this.isSideways
        ? this.scroller.clientWidth || innerWidth
        : this.scroller.clientHeight || innerHeight);
      this.y = Math.min(this.y + screen, this.#end());
      this.#scroll(this.y);
      this.steps++;
      await this.#settled();
      this.fading.look();
      this.lists.look();
    }
    return this.steps > from;
  }

  // Scrolls to the top. Whether the page was anywhere else.
  async home() {
    if (this.#isAtTop() && !this.hasMoved) return false;
    this.#begin();
    // Parts near the end had time to appear meanwhile.
    this.fading?.look();
    // A page that is on its way, smoothly, goes on from where it is put.
    for (let times = 0; times === 0 || !this.#isAtTop() && times < Scrolling.HOME_MAX; times++) {
      this.#scroll(0);
      await this.#settled();
    }
    return true;
  }

  // Where the parts of a page are, in the next frames, whose content does not fit in the window and cannot be
  // scrolled. Null for another page.
  async place() {
    if (this.stepsMax === 0 || clippedHeight() === 0) return null;
    this.#begin();
    await this.#settled();
    const parts = [...document.querySelectorAll("body *")].slice(0, Scrolling.PARTS_MAX);
    return parts.map((part) => Math.round(part.getBoundingClientRect().top)).join();
  }

  // Keeps what the page hides out of view, and undoes what was done to its elements. The number of elements
  // that are kept, and the numbers of rows of lists.
  async end() {
    this.#begin();
    let [kept, lists] = [0, []];
    if (this.stepsMax > 0) {
      this.#findLists();
      await this.lists.collect(() => this.#settled(), () => this.#left() > 0);
      lists = this.lists.keep();
    }
    if (this.hasMoved) {
      await this.#settled();
      // The page may have moved by itself.
      if (!this.#isAtTop()) await this.home();
      kept = this.fading.keep();
    }
    for (const element of this.lazy) {
      if (!element.complete && element.decode && this.#left() > 0) {
        await Promise.race([element.decode().catch(() => {}), Scrolling.#pause(Math.min(1000, this.#left()))]);
      }
    }
    this.stop();
    return { kept, lists };
  }

  // Ends any wait, and leaves the page at its top, with what its author wrote.
  stop() {
    if (this.isStopped) return;
    this.isStopped = true;
    this.timeMax = this.until = 0;
    this.endWait?.();
    this.fading?.end();
    for (const element of this.lazy) element.loading = "lazy";
    if (!this.#isAtTop()) this.#scroll(0);
  }

  #findLists() {
    if (this.lists) return;
    this.lists = new Lists(this.scroller);
    this.lists.look();
  }

  #isAtTop() {
    return !this.scroller || (this.isSideways ? this.scroller.scrollLeft : this.scroller.scrollTop) === 0;
  }

  #collect(root) {
    for (const element of root.querySelectorAll("img[loading=lazy], iframe[loading=lazy]")) {
      this.lazy.push(element);
      element.loading = "eager";
    }
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) this.#collect(element.shadowRoot);
    }
  }

  #begin() {
    this.until = performance.now() + this.timeMax;
  }

  #left() {
    return this.until - performance.now();
  }

  #end() {
    if (!this.scroller) return 0;
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = this.scroller;
    return this.isSideways ? scrollWidth - clientWidth : scrollHeight - clientHeight;
  }

  #scroll(y) {
    this.hasMoved = true;
    const to = this.isSideways ? { left: this.isLeftwards ? -y : y } : { top: y };
    this.scroller.scrollTo({ ...to, behavior: "instant" });
  }

  static #pause(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  // Resolves when the next frame is laid out: the first callback of an observer comes in the same
  // task as those of the page's observers for that frame. False if no frame comes in time.
  #laidOut() {
    return new Promise((resolve) => {
      const end = (isLaidOut) => {
        clearTimeout(timer);
        observer.disconnect();
        resolve(isLaidOut);
      };
      const observer = new IntersectionObserver(() => end(true));
      const timer = setTimeout(() => end(false), Math.max(0, this.#left()));
      this.endWait = () => end(false);
      observer.observe(this.page);
    });
  }

  // After the first frame, the page's observers are called; in the second, what they did is laid out.
  async #settled() {
    return await this.#laidOut() && await this.#laidOut();
  }
}
