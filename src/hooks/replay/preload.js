// Runs before the scripts of each page, frame and worker. `offset` is the time in milliseconds from the
// recorded visit to this one.
((offset) => {
  // The network namespace of the browser has no network.
  const online = { get: () => true, enumerable: true, configurable: true };
  Object.defineProperty(Object.getPrototypeOf(navigator), "onLine", online);

  // Begins at the time of the recorded visit, and runs. A document can keep the global object of the
  // empty one before it.
  const Real = Date;
  const mark = Symbol.for("archivist.replay");
  if (Real[mark]) return;
  const hidden = (object, name, value) =>
    Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
  const realNow = Real.now;
  const { now } = { now: () => realNow() - offset };
  const shifted = new Proxy(Real, {
    construct: (target, args, made) => Reflect.construct(target, args.length > 0 ? args : [now()], made),
    apply: () => new Real(now()).toString(),
  });
  hidden(Real, mark, true);
  hidden(Real, "now", now);
  hidden(Real.prototype, "constructor", shifted);
  hidden(globalThis, "Date", shifted);

  // The browser would regard a cookie as expired whose end is reckoned from that time.
  if (!globalThis.Document) return;
  const cookie = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
  const withoutEnd = (all, end) => (Real.parse(end) > now() ? "" : all);
  const set = function (text) {
    cookie.set.call(this, String(text).replace(/;\s*expires=([^;]*)/i, withoutEnd));
  };
  Object.defineProperty(Document.prototype, "cookie", { ...cookie, set });
})
