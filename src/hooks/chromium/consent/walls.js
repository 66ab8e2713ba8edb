// Finds what covers the page or locks its scrolling, and removes it. `step` is
// "act": finds walls and clicks what rejects them; evaluates to { walls, open, frames, isSettled, notes }:
// the number of walls, and of those without a button, unless consent was rejected; whether one is a
// frame; whether consent was rejected; the notes for the case that a click leads to another document;
// "wait": waits until the clicked walls are gone, hides the others, unlocks scrolling; { notes };
// "frame": in the frame of a wall: clicks what rejects it; { isConsent, label }.
// A wall is consent for cookies, a newsletter, or any other overlay that covers the text of a page
// whose scrolling is locked or whose text is blurred. Walls that are the content itself (a page
// without text behind them, videos, forms with a password) stay.
((mode, step, data, framed) => {
  const VANISH_MAX_MS = 1000;
  const LABEL_MAX = 60;
  const pattern = (list, isWhole) => new RegExp(isWhole ? `^(?:${list.join("|")})$` : list.join("|"), "iu");
  const cached = {};
  const matches = (kind, text) => {
    const isWhole = kind === "reject" || kind === "close";
    return (cached[kind] ??= pattern(data[kind], isWhole)).test(text);
  };
  const rejects = (text) =>
    text.length < 50 && (matches("reject", text) || matches("rejectPart", text)) && !matches("rejectNever", text);
  const state = (globalThis.archivistWalls ??= { open: [], met: 0, isSettled: false, clicked: new WeakSet(), left: new WeakSet() });

  // The composed tree.
  const up = (element) => element.assignedSlot || element.parentElement || element.getRootNode().host || null;
  const holds = (outer, element) => {
    for (let inner = element; inner; inner = up(inner)) if (inner === outer) return true;
    return false;
  };
  const inside = (frame) => {
    try {
      return frame.contentDocument && frame.contentDocument.body;
    } catch {
      return null;
    }
  };
  const rootsOf = (element) => {
    const roots = [element];
    for (const root of roots) {
      if (root.shadowRoot) roots.push(root.shadowRoot);
      for (const part of root.querySelectorAll("*")) {
        if (part.shadowRoot) roots.push(part.shadowRoot);
        else if (part.localName === "iframe" && inside(part)) roots.push(inside(part));
      }
      if (root.localName === "iframe" && inside(root)) roots.push(inside(root));
    }
    return roots;
  };
  const all = (element, selector) => {
    const found = rootsOf(element).flatMap((root) => [...root.querySelectorAll(selector)]);
    return element.matches(selector) ? [element, ...found] : found;
  };
  const words = (element) => {
    const texts = rootsOf(element).map((root) =>
      root instanceof ShadowRoot ? [...root.children].map((part) => part.innerText || "").join(" ") : root.innerText || "");
    return texts.join(" ").replace(/\s+/g, " ").trim();
  };
  const isVisible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const isShown = (element) => isVisible(element) && element.getClientRects().length > 0;

  // Elements of the top layer.
  const isTop = (element) => element.matches(":modal, :popover-open");
  const areaIn = (element) => {
    const box = element.getBoundingClientRect();
    const width = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
    const height = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
    return width > 0 && height > 0 ? (width * height) / (innerWidth * innerHeight) : 0;
  };
  // The overlay that holds an element, or null for the content of the page.
  const known = new Map();
  const overlayOf = (element) => {
    if (!element || element === document.body || element === document.documentElement) return null;
    if (known.has(element)) return known.get(element);
    const style = getComputedStyle(element);
    let overlay;
    if (style.position === "fixed" || isTop(element)) overlay = element;
    else {
      overlay = overlayOf(up(element));
      const isAbove = style.position === "absolute" && Number(style.zIndex) > 0 && areaIn(element) > 0.6;
      if (!overlay && (isAbove || style.position === "sticky")) overlay = element;
    }
    known.set(element, overlay);
    return overlay;
  };
  const elementAt = (x, y) => {
    let element = null;
    for (let root = document; root; root = element.shadowRoot) {
      const next = root.elementFromPoint(x, y);
      if (!next || next === element) break;
      element = next;
    }
    return element;
  };
  // A closed shadow root keeps its overlay to itself: its host is hit where it has no box.
  const overlayAt = ([x, y]) => {
    const element = elementAt(x, y);
    if (!element) return null;
    const overlay = overlayOf(element);
    if (overlay || !element.localName.includes("-") || element.shadowRoot) return overlay;
    const box = element.getBoundingClientRect();
    return x < box.left || x > box.right || y < box.top || y > box.bottom ? element : null;
  };
  // Points of the viewport, the telling ones first. A hit test takes longer the more elements a page has.
  const points = () => {
    const low = innerHeight - 25;
    const list = [[0.5, 0.5], [0.5, low], [0.1, low], [0.9, low], [0.5, 0.25], [0.5, 0.75], [0.5, 0.01], [0.2, 0.5], [0.8, 0.5]];
    for (const y of [0.01, 0.12, 0.24, 0.36, 0.48, 0.62, 0.74, 0.86, innerHeight - 70, low]) {
      for (const x of [0.03, 0.2, 0.35, 0.53, 0.65, 0.8, 0.97]) list.push([x, y]);
    }
    const count = Math.max(9, Math.min(list.length, 350_000 / document.getElementsByTagName("*").length));
    return list.slice(0, count).map(([x, y]) => [x * innerWidth, y < 1 ? y * innerHeight : y]);
  };
  // The first element that is hit is the overlay, so the others are below it. Inert content is not hit.
  const hasContentBelow = ([x, y], overlay) =>
    document.elementsFromPoint(x, y).some((element) =>
      element !== document.body && element !== document.documentElement && !overlayOf(element) && !holds(overlay, element));

  const label = (control) => {
    const text = (control.innerText || control.value || "").trim() || control.getAttribute("aria-label") || control.title || "";
    return text.replace(/\s+/g, " ").replace(/^[^\p{L}×✕✖✗]+|[^\p{L}×✕✖✗]+$/gu, "").slice(0, LABEL_MAX);
  };
  // A link leads away from the page.
  const staysHere = (control) => {
    const link = control.closest("a[href]");
    return !link || /^\s*(#|javascript:|$)/i.test(link.getAttribute("href"));
  };
  const CONTROLS = "button, [role=button], input[type=button], input[type=submit], a, [onclick]";
  const controls = (element) => all(element, CONTROLS).filter((control) => staysHere(control) && isShown(control));
  const leaves = (element) => all(element, "div, span, p").filter((leaf) =>
    leaf.childElementCount === 0 && leaf.textContent.length < LABEL_MAX && staysHere(leaf) && isShown(leaf));
  const rejecting = (element, manager) => {
    const named = manager ? all(element, manager.reject).find(isShown) : null;
    const isRejecting = (control) => rejects(label(control));
    return named || controls(element).find(isRejecting) ||
      leaves(element).find((leaf) => matches("reject", label(leaf))) || null;
  };
  const closing = (element) => controls(element).find((control) =>
    matches("close", label(control)) || matches("close", (control.getAttribute("aria-label") || "").trim())) || null;

  const managerOf = (element) => {
    for (let outer = element; outer; outer = up(outer)) {
      const manager = data.managers.find((one) => outer.matches(one.wall));
      if (manager) return manager;
    }
    return null;
  };
  const isLocked = () => {
    const page = document.scrollingElement || document.documentElement;
    const styles = [document.documentElement, document.body].map((element) => getComputedStyle(element));
    const hides = styles.some((style) => /hidden|clip/.test(style.overflowY));
    const isFixed = styles[1].position === "fixed";
    const height = Math.max(page.scrollHeight, document.body.scrollHeight);
    return isFixed || (hides && height > innerHeight + 50);
  };
  const large = () => [...document.querySelectorAll("body > *, body > * > *, body > * > * > *")].filter((element) =>
    !overlayOf(element) && element.offsetWidth > innerWidth / 2 && element.offsetHeight > 100);
  const isBlurred = (element) => getComputedStyle(element).filter.includes("blur(");

  const PARTS = "main, article, nav, [role=main], [role=navigation], [role=feed]";
  const MEDIA = "video, audio, canvas, object, embed, iframe";
  const hasLargePicture = (element) => all(element, "img, svg, picture").some((picture) => areaIn(picture) > areaIn(element) / 3);
  const wallFrame = (element) => all(element, "iframe").find((frame) =>
    !inside(frame) && isShown(frame) && areaIn(frame) > areaIn(element) / 3 || (element === frame && !inside(frame))) || null;
  const FRAME_NAMES = /consent|cookie|gdpr|privacy|sp_message|\bcmp\b|trustarc/i;
  const frameNames = (frame) => [(frame.src || "").split(/[?#]/)[0], frame.id, frame.name, frame.title, frame.className].join(" ");

  // Whether an overlay asks for consent, with a button to decide.
  const asks = (overlay, text) => {
    if (!matches("about", text)) return false;
    const decides = (control) => rejects(label(control)) || (label(control).length < 45 && matches("accept", label(control)));
    return controls(overlay).some(decides);
  };

  // Says what an overlay is: { kind, manager, frame }, or null for a part of the page.
  const judge = (overlay, hits, total, content) => {
    const manager = managerOf(overlay);
    const text = words(overlay);
    const frame = wallFrame(overlay);
    const isLarge = hits.length > total / 2;
    // The root of an app is no wall: it has nothing below it.
    const isInert = isTop(overlay) || document.querySelector("[inert]");
    const below = !isLarge ? 0 : !isInert ? hits.filter((point) => hasContentBelow(point, overlay)).length : content() > 100 ? total : 0;
    if (isLarge && !manager && below <= total / 12) return null;
    if (frame && text.length < 300) {
      return manager || isLarge || FRAME_NAMES.test(frameNames(frame)) ? { kind: "consent", manager, frame } : null;
    }
    if (manager) return { kind: "consent", manager };
    if (all(overlay, "input[type=password]").length > 0 || text.length > 6000) return null;
    if (all(overlay, PARTS).length > 0 || overlay.matches("header")) return null;
    const isSticky = getComputedStyle(overlay).position === "sticky";
    if (isSticky && isLarge) return null;
    if (asks(overlay, text)) return { kind: "consent" };
    if (isSticky) return null;
    const isBehind = () => content() >= Math.max(300, text.length);
    const takesMail = all(overlay, "input[type=email], input[name*=mail i]").length > 0;
    if (takesMail && matches("newsletter", text) && closing(overlay) && isBehind()) return { kind: "newsletter" };
    if (!isLarge || all(overlay, MEDIA).length > 0 || hasLargePicture(overlay) || !isBehind()) return null;
    if (below <= total / 4) return null;
    if (text.length < 20) return state.met > 0 ? { kind: "backdrop" } : isLocked() ? { kind: "overlay" } : null;
    return isLocked() || large().some(isBlurred) ? { kind: "overlay" } : null;
  };

  const survey = () => {
    const list = points();
    const hits = new Map();
    for (const point of list) {
      const overlay = overlayAt(point);
      if (overlay) hits.set(overlay, [...(hits.get(overlay) || []), point]);
    }
    // Characters of the page that are in no overlay: large pages take a while, so only if needed.
    let outside = null;
    const content = () => {
      const overlays = [...hits.keys()].filter((one) => holds(document.body, one));
      const outer = overlays.filter((one) => !overlays.some((other) => other !== one && holds(other, one)));
      outside ??= words(document.body).length - outer.reduce((sum, one) => sum + words(one).length, 0);
      return outside;
    };
    const walls = [];
    for (const [element, at] of hits) {
      const kind = judge(element, at, list.length, content);
      if (kind) walls.push({ element, points: at, share: at.length / list.length, ...kind });
    }
    return walls;
  };

  const name = (wall) => {
    const what = { consent: "a consent wall", newsletter: "a newsletter wall", overlay: "an overlay", backdrop: "" }[wall.kind];
    return wall.manager ? `${what} (${wall.manager.name})` : what;
  };
  const closed = (wall) => `closed ${name(wall)} with '${wall.label}'`;
  const act = () => {
    const walls = survey().filter((wall) => !state.left.has(wall.element));
    const notes = [];
    for (const wall of mode === "reject" ? walls : []) {
      if (wall.frame || wall.kind === "backdrop") continue;
      const control = wall.kind === "consent" ? rejecting(wall.element, wall.manager) : closing(wall.element);
      if (!control || state.clicked.has(control)) continue;
      state.clicked.add(control);
      wall.label = label(control);
      if (wall.kind === "consent") state.isSettled = true;
      control.click();
      notes.push(closed(wall));
    }
    state.open = walls;
    state.met += walls.length;
    const isOpen = (wall) => !wall.frame && !wall.label && wall.kind !== "backdrop";
    const open = state.isSettled ? 0 : walls.filter(isOpen).length;
    const frames = walls.some((wall) => wall.frame);
    return { walls: walls.length, open, frames, isSettled: state.isSettled, notes };
  };

  const isGone = (wall) => {
    known.clear();
    return !wall.element.isConnected || !isVisible(wall.element) ||
      wall.points.every((point) => overlayAt(point) !== wall.element);
  };
  // Whether the page has something to show without its walls.
  const remains = () => {
    const hidden = state.open.reduce((sum, wall) => sum + (holds(document.body, wall.element) ? words(wall.element).length : 0), 0);
    if (words(document.body).length - hidden >= 100) return true;
    return all(document.body, "img, video, canvas").some((media) =>
      isShown(media) && !state.open.some((wall) => holds(wall.element, media)));
  };
  // Says in the markup that a wall is gone, which may be known from style sheets alone, so that who reads the
  // saved document can tell its words from those of the page. Both attributes: pages hide slides, too.
  const retire = (element) => {
    if (isVisible(element)) return;
    element.hidden = true;
    element.inert = true;
  };
  const hide = (element) => {
    if (element.matches("dialog:modal")) HTMLDialogElement.prototype.close.call(element);
    if (element.matches(":popover-open")) element.hidePopover();
    element.style.setProperty("display", "none", "important");
    retire(element);
  };
  const unlock = () => {
    const notes = new Set();
    const set = (element, style, note) => {
      for (const [property, value] of Object.entries(style)) element.style.setProperty(property, value, "important");
      notes.add(note);
    };
    const UNCUT = { "overflow-y": "visible", height: "auto", "max-height": "none" };
    if (isLocked()) {
      for (const element of [document.documentElement, document.body]) {
        const style = getComputedStyle(element);
        if (/hidden|clip/.test(style.overflowY)) set(element, UNCUT, "unlocked scrolling");
        if (style.position === "fixed") set(element, { position: "static", width: "auto", height: "auto" }, "unlocked scrolling");
      }
    }
    for (const element of large()) {
      const style = getComputedStyle(element);
      if (isBlurred(element)) set(element, { filter: "none" }, "removed a blur");
      // A box as high as the viewport that cuts off the content.
      const isCut = /hidden|clip/.test(style.overflowY) && Math.abs(element.clientHeight - innerHeight) < 50;
      if (isCut && element.scrollHeight > element.clientHeight + 100 && element.parentElement === document.body) {
        set(element, UNCUT, "unlocked scrolling");
      }
    }
    return notes;
  };
  const wait = async () => {
    const end = performance.now() + VANISH_MAX_MS;
    // A frame without words about consent is a part of the page.
    state.open = state.open.filter((wall) => !wall.frame || wall.manager || framed.isConsent);
    for (const wall of state.open) if (wall.frame) wall.label = framed.label;
    const clicked = state.open.filter((wall) => wall.label);
    const vanishing = framed.isRuled ? state.open : clicked;
    if (framed.label || framed.isRuled) state.isSettled = true;
    while (performance.now() < end && !vanishing.every(isGone)) await new Promise((resolve) => setTimeout(resolve, 25));
    const notes = new Set();
    const isSafe = remains();
    const left = state.open.filter((wall) => !isGone(wall));
    for (const wall of state.open) if (!left.includes(wall)) retire(wall.element);
    for (const wall of clicked) if (!left.includes(wall)) notes.add(closed(wall));
    let isChanged = notes.size > 0 || framed.isRuled;
    for (const wall of left) {
      if (isSafe || wall.share < 0.5) {
        hide(wall.element);
        isChanged = true;
        if (wall.kind !== "backdrop") notes.add(`hid ${name(wall)}`);
      } else {
        state.left.add(wall.element);
      }
    }
    known.clear();
    if (isChanged) unlock().forEach((note) => notes.add(note));
    return { notes: [...notes] };
  };
  const inFrame = () => {
    const text = words(document.body);
    const isConsent = text.length < 6000 && asks(document.body, text);
    const manager = data.managers.find((one) => document.querySelector(one.reject));
    // The page may have led the frame to another site since its host was judged.
    const isJudged = framed.host === location.hostname;
    const control = isConsent && isJudged && mode === "reject" ? rejecting(document.body, manager) : null;
    const found = { isConsent, label: control ? label(control) : "" };
    // The frame may be gone after the click, so the answer comes first.
    if (control) setTimeout(() => control.click(), 0);
    return found;
  };
  if (!document.body || document.body.localName !== "body") return {};
  return { act, wait, frame: inFrame }[step]();
})
