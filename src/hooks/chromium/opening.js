// Opens the sections of the page that the reader opens, and starts the audio and video that load
// nothing until they are started: muted, for a moment, and back to where they were. Evaluates to the
// numbers of both. Media that do not begin are waited for until endWaiting is called.
(async (wantsDetails, wantsMedia) => {
  const all = (selector) => {
    const found = [];
    const collect = (root) => {
      found.push(...root.querySelectorAll(selector));
      for (const element of root.querySelectorAll("*")) {
        if (element.shadowRoot) collect(element.shadowRoot);
      }
    };
    collect(document);
    return found;
  };
  const opened = { details: 0, media: 0 };
  if (wantsDetails) {
    for (const section of all("details:not([open])")) {
      // Of sections of one name, one at a time is open: all of them stay open without it.
      section.removeAttribute("name");
      section.open = true;
      opened.details++;
    }
  }
  if (!wantsMedia) return opened;
  const isIdle = (medium) => medium.paused && medium.readyState === 0 && medium.networkState !== 2 && !medium.error;
  const hasSource = (medium) => medium.hasAttribute("src") || medium.querySelector("source[src]");
  const ends = [];
  globalThis.endWaiting = () => ends.forEach((end) => end());
  const start = (medium) => new Promise((resolve) => {
    const { muted } = medium;
    const events = ["loadeddata", "error"];
    const end = () => {
      for (const name of events) medium.removeEventListener(name, end);
      medium.pause();
      // Shows the poster again, and what the author chose to load before the start.
      medium.load();
      medium.muted = muted;
      resolve();
    };
    ends.push(end);
    for (const name of events) medium.addEventListener(name, end);
    medium.muted = true;
    medium.play().catch(() => {});
  });
  const media = all("audio, video").filter((medium) => isIdle(medium) && hasSource(medium));
  await Promise.all(media.map(start));
  opened.media = media.length;
  return opened;
})
