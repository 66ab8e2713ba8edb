// Loads the lazy images and frames of the page, and scrolls through it and back, so that what
// appears when it comes into view appears. What the page hides again when it is out of view is kept as
// it was. Evaluates to the number of steps that were scrolled, and of elements that were kept.
//
// Each step waits for events, not for a number of frames: a busy machine draws late. Times are
// those of the page's clock, as its own timers are.
(async (heightMax, stepsMax, timeMax) => {
  const began = performance.now();
  const left = () => timeMax - (performance.now() - began);
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const page = document.scrollingElement || document.documentElement;
  // Resolves when the next frame is laid out: the first callback of an observer comes in the same
  // task as those of the page's observers for that frame. False if no frame comes in time.
  const laidOut = () => new Promise((resolve) => {
    const end = (isLaidOut) => {
      clearTimeout(timer);
      observer.disconnect();
      resolve(isLaidOut);
    };
    const observer = new IntersectionObserver(() => end(true));
    const timer = setTimeout(() => end(false), Math.max(0, left()));
    observer.observe(page);
  });
  // After the first frame, the page's observers are called; in the second, what they did is laid
  // out, so that an observer of the end sees the end leave before it comes into view again.
  const settled = async () => await laidOut() && await laidOut();
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
  if (!page) return { steps: 0, kept: 0 };
  // A page may scroll in a box of its own.
  const scroller = scrollBox() || page;
  const home = scroller.scrollTop;
  const screen = Math.max(200, scroller.clientHeight || innerHeight);
  const end = () => scroller.scrollHeight - scroller.clientHeight;
  // Whether the end moves when it is in view, also after a short delay that the page makes.
  const grows = async () => {
    const before = end();
    const until = performance.now() + 250;
    while (await settled()) {
      if (end() > before) return true;
      if (performance.now() >= until) return false;
      await pause(50);
    }
    return false;
  };
  const fading = new Fading();
  let y = 0;
  let steps = 0;
  let kept = 0;
  while (left() > 0 && steps < stepsMax && y < heightMax) {
    if (y + 1 >= end()) {
      if (steps === 0 || !await grows()) break;
    }
    y = Math.min(y + screen, end());
    scroller.scrollTo({ top: y, behavior: "instant" });
    steps++;
    await settled();
    fading.look();
  }
  if (steps > 0) {
    // Parts near the end had time to appear while it was asked whether the page grows.
    fading.look();
    scroller.scrollTo({ top: home, behavior: "instant" });
    await settled();
    if (fading.hasSeen()) {
      // Pages look at the position a few times a second.
      await pause(250);
      await settled();
      kept = fading.keep();
    }
  }
  fading.end();
  for (const element of lazy) {
    if (!element.complete && element.decode && left() > 0) {
      await Promise.race([element.decode().catch(() => {}), pause(Math.min(1000, left()))]);
    }
  }
  // The saved document has what its author wrote.
  for (const element of lazy) element.loading = "lazy";
  return { steps, kept };
})
