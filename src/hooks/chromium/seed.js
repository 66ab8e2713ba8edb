// Runs before the scripts of each page and frame: Math.random repeats its numbers if the page is loaded
// with the same seed again. crypto.getRandomValues, which keys are made of, stays as it is.
((seed) => {
  // Frames of a page differ, also those of one address: their place in the page is part of their seed.
  const places = [];
  for (let frame = globalThis; frame !== frame.parent; frame = frame.parent) {
    let place = 0;
    while (place < frame.parent.length && frame.parent[place] !== frame) place++;
    places.push(place);
  }
  // The first call of Math.random initialises the state: Chromium may run this script in the empty
  // document of a frame, and keep the window, with this function, for the document of its address.
  // The query is no part of the seed, because it may contain the time.
  let state;
  const start = () => {
    const own = places.join() + location.origin + location.pathname;
    // FNV-1a.
    let hash = (0x811c9dc5 ^ seed) >>> 0;
    for (let at = 0; at < own.length; at++) hash = Math.imul(hash ^ own.charCodeAt(at), 0x01000193) >>> 0;

    // xorshift128 of Marsaglia, started with the numbers of a Weyl sequence.
    state = [];
    for (let at = 0; at < 4; at++) {
      hash = (hash + 0x9e3779b9) >>> 0;
      const mixed = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad);
      state.push(Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97) | 1);
    }
    for (let at = 0; at < 16; at++) next();
  };
  const next = () => {
    if (!state) start();
    const old = state[3] ^ (state[3] << 11);
    state[3] = state[2];
    state[2] = state[1];
    state[1] = state[0];
    state[0] ^= (state[0] >>> 19) ^ old ^ (old >>> 8);
    return state[0] >>> 0;
  };
  // 53 bits, as the browser's own.
  const random = new Proxy(Math.random, { apply: () => ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000 });
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true, enumerable: false });
})
