// Loads the lazy images and frames of the page, and scrolls through it and back, so that what
// appears when it comes into view appears. Evaluates to the number of screens that were scrolled.
(async (heightMax, timeMax) => {
  const began = performance.now();
  const left = () => timeMax - (performance.now() - began);
  const frame = () => new Promise((resolve) => {
    const timer = setTimeout(resolve, 500);
    requestAnimationFrame(() => requestAnimationFrame(() => { clearTimeout(timer); resolve(); }));
  });
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const lazy = [];
  const collect = (root) => {
    for (const element of root.querySelectorAll("img[loading=lazy], iframe[loading=lazy]")) {
      lazy.push(element);
      element.loading = "eager";
    }
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) collect(element.shadowRoot);
    }
  };
  collect(document);
  const page = document.scrollingElement || document.documentElement;
  if (!page) return 0;
  // A page may scroll in a box of its own.
  const box = () => {
    if (page.scrollHeight > page.clientHeight + 1) return page;
    let best = page;
    for (const element of document.querySelectorAll("body, body *")) {
      const over = element.scrollHeight - element.clientHeight;
      if (over < 100 || element.clientHeight < innerHeight / 2) continue;
      if (!/auto|scroll/.test(getComputedStyle(element).overflowY)) continue;
      if (element.scrollHeight > best.scrollHeight) best = element;
    }
    return best;
  };
  const scroller = box();
  const home = scroller.scrollTop;
  const step = Math.max(200, scroller.clientHeight || innerHeight);
  let screens = 0;
  for (let y = step; left() > 0 && y < heightMax; y += step) {
    if (y > scroller.scrollHeight - 1) {
      if (screens === 0) break;
      // The end may move when it comes into view.
      const before = scroller.scrollHeight;
      for (let n = 0; n < 5 && scroller.scrollHeight === before && left() > 0; n++) {
        await frame();
        await pause(20);
      }
      if (scroller.scrollHeight === before) break;
    }
    const height = scroller.scrollHeight;
    scroller.scrollTo({ top: y, behavior: "instant" });
    screens++;
    await frame();
    // An observer of the end must see the end leave before it comes into view again.
    if (scroller.scrollHeight !== height) await frame();
  }
  if (screens > 0) {
    scroller.scrollTo({ top: home, behavior: "instant" });
    await frame();
  }
  for (const element of lazy) {
    if (!element.complete && element.decode && left() > 0) {
      await Promise.race([element.decode().catch(() => {}), pause(Math.min(1000, left()))]);
    }
  }
  // The saved document has what its author wrote.
  for (const element of lazy) element.loading = "lazy";
  return screens;
})
