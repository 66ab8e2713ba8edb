// Runs before the scripts of each page, frame and worker of a browser whose Math.random begins with the
// same number in all of them (--random-seed of V8): each skips numbers of its own, because frames that
// draw the same would give the same name to different things. The function itself stays that of the
// browser, so that nothing tells a page from one without a seed.
((page, worker) => {
  const own = [page];
  if (worker) {
    // It has no location yet: Chromium ends the process that asks for it.
    own.push(worker);
  } else if (window === parent) {
    // The query may contain the time.
    own.push(location.origin + location.pathname);
  } else {
    // Frames differ in their place, not in their address: Chromium may run this script in the empty document
    // of a frame, and keep the window for the document of its address.
    for (let frame = window; frame !== frame.parent; frame = frame.parent) {
      let place = 0;
      while (place < frame.parent.length && frame.parent[place] !== frame) place++;
      own.push(place);
    }
  }
  const text = own.join(" ");
  // FNV-1a, folded to 16 bits.
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  for (let left = (hash ^ (hash >>> 16)) & 0xffff; left > 0; left--) Math.random();
})
