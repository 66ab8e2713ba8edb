// Opens the sections of the page that the reader opens, and starts the audio and video that load
// nothing until they are started: muted, for a moment, and back to where they were. Those that the
// browser does not let start are loaded. Evaluates to the numbers of both. Media that do not begin are
// waited for until endWaiting is called.
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
  const ends = new Set();
  globalThis.endWaiting = () => ends.forEach((end) => end());
  const start = (medium) => new Promise((resolve) => {
    const { muted } = medium;
    const preload = medium.getAttribute("preload");
    const fail = (event) => {
      // A source that fails is followed by the next one, if there is one.
      if (event.target === medium) end();
      else setTimeout(() => medium.networkState === HTMLMediaElement.NETWORK_NO_SOURCE && end());
    };
    const end = () => {
      ends.delete(end);
      medium.removeEventListener("loadeddata", end);
      medium.removeEventListener("error", fail, true);
      if (preload === null) medium.removeAttribute("preload");
      else medium.setAttribute("preload", preload);
      medium.pause();
      // Shows the poster again. For it, Chromium requests the medium again, whatever its preload says.
      if (medium.poster) medium.load();
      else if (medium.currentTime > 0) medium.currentTime = 0;
      medium.muted = muted;
      resolve();
    };
    ends.add(end);
    medium.addEventListener("loadeddata", end);
    medium.addEventListener("error", fail, true);
    medium.muted = true;
    medium.play().catch((error) => {
      // Chromium starts no audio before the reader has clicked, not even if it is muted.
      if (error.name !== "NotAllowedError") return;
      medium.preload = "auto";
      if (medium.networkState === HTMLMediaElement.NETWORK_EMPTY) medium.load();
    });
  });
  const media = all("audio, video").filter((medium) => isIdle(medium) && hasSource(medium));
  await Promise.all(media.map(start));
  opened.media = media.length;
  return opened;
})
