// Runs the rules of autoconsent in one document, from a world of its own. `library` is what the module of
// autoconsent exports. The caller drives a run step by step, because the world can neither enter that
// of the page nor report anything by itself: `begin` starts a run, and it and `next` evaluate to a step:
// { asks }: expressions to evaluate in the world of the page, whose results are the argument of `next`;
// { opens }: the name of the rule that clicks after the `next` that follows;
// { done }: the end of the run, { name, isRejected, isGone, isCosmetic, frames }: the name of the rule that was
// carried out, empty if no popup is open; whether the rule succeeded; whether its popup is gone; whether the
// rule only hides; the rules for the frames of the page, if one of them may contain a popup.
// Nothing calls optIn() or guesses buttons, and a document without an open popup is not changed. Elements are
// hidden by their own styles: the policy of a page can refuse a style sheet.
((library) => {
  // Times in milliseconds of the page's clock.
  const POPUP_MAX_MS = 2500;
  const OPT_OUT_MAX_MS = 5000;
  const VANISH_MAX_MS = 1000;
  const INTERVAL_MS = 50;
  // Rules whose opt-out clicks what accepts.
  const ACCEPTS = ["nhs.uk"];
  // Snippets that lead away from the page.
  const LEADS_AWAY = ["EVAL_POVR_GOBACK"];

  const { default: AutoConsent, evalSnippets, filterCompactRules } = library;
  const isTop = window.top === window;
  const nothing = { name: "", isRejected: false, isGone: false, isCosmetic: false, frames: null };
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const within = (ms, task, otherwise) =>
    Promise.race([task.catch(() => otherwise), pause(ms).then(() => otherwise)]);

  const tried = new Set();
  let ruleset = null;
  // A rule may still wait for something after the end of its run, and does nothing then.
  let run = { isOver: true };
  let asks = [];
  let asked = [];
  let opens = "";
  let wake = () => {};
  let proceed = () => {};
  let progress = null;

  const ask = (own, id) => {
    if (own.isOver || !Object.hasOwn(evalSnippets, id) || LEADS_AWAY.includes(id)) return Promise.resolve(false);
    return new Promise((answer) => {
      asks.push({ expression: `(${evalSnippets[id]})()`, answer });
      wake();
    });
  };

  const limit = (actions, own) => {
    const { clickElement, elementSelector } = actions;
    actions.elementSelector = (selector) => (own.isOver ? [] : elementSelector.call(actions, selector));
    actions.clickElement = async (element) => !own.isOver && clickElement.call(actions, element);
    actions.hide = (selector, method) => {
      const style = { "z-index": "-1", "pointer-events": "none" };
      style[method === "opacity" ? "opacity" : "display"] = method === "opacity" ? "0" : "none";
      for (const element of actions.elementSelector(selector))
        for (const [property, value] of Object.entries(style)) element.style.setProperty(property, value, "important");
      return selector.length > 0;
    };
  };

  const rulesOf = (own) => {
    const instance = new AutoConsent(() => {});
    instance.initialize({ enabled: false, logs: {} }, null);
    const context = { url: location.href, mainFrame: isTop };
    instance.parseDeclarativeRules({ compact: "index" in ruleset ? filterCompactRules(ruleset, context) : ruleset });
    limit(instance.domActions, own);
    for (const rule of instance.rules) rule.mainWorldEval = (id) => ask(own, id);
    return instance.rules.filter(
      (rule) => rule.checkFrameContext(isTop) && !tried.has(rule.name) && !ACCEPTS.includes(rule.name),
    );
  };

  // The rule whose popup is open: those of this site first, then those that reject, then those that hide.
  const openOf = async (rules) => {
    const ofSite = rules.filter((rule) => rule.hasMatchingUrlPattern());
    const others = rules.filter((rule) => !rule.runContext.urlPattern);
    for (const group of [ofSite, others]) {
      const present = await Promise.all(group.map((rule) => within(POPUP_MAX_MS, rule.detectCmp(), false)));
      const found = group.filter((_, at) => present[at]);
      for (const isCosmetic of [false, true]) {
        const popups = found.filter((rule) => rule.isCosmetic === isCosmetic);
        const isOpen = async (rule) => ((await rule.detectPopup()) ? rule : Promise.reject(rule));
        const open = await within(POPUP_MAX_MS, Promise.any(popups.map(isOpen)), null);
        if (open) return open;
      }
    }
    return null;
  };

  const vanishes = async (rule) => {
    while (await rule.detectPopup()) await pause(INTERVAL_MS);
    return true;
  };

  const frameRules = () => {
    if (!isTop || !("index" in ruleset)) return null;
    const isOverlay = (element) => {
      for (let outer = element; outer; outer = outer.parentElement) {
        const { position, zIndex } = getComputedStyle(outer);
        if (position === "fixed" || position === "sticky" || (position === "absolute" && Number(zIndex) > 0)) return true;
      }
      return false;
    };
    const mayAsk = (frame) => frame.offsetWidth > 100 && frame.offsetHeight > 30 && isOverlay(frame);
    if (![...document.querySelectorAll("iframe")].some(mayAsk)) return null;
    const [begin, end] = ruleset.index.frameRuleRange;
    return { v: ruleset.v, s: ruleset.s.slice(0, ruleset.index.frameStringEnd), r: ruleset.r.slice(begin, end) };
  };

  const carryOut = async (own) => {
    const rule = await openOf(rulesOf(own));
    if (!rule) {
      own.isOver = true;
      return { ...nothing, frames: frameRules() };
    }
    tried.add(rule.name);
    await new Promise((resolve) => {
      proceed = resolve;
      opens = rule.name;
      wake();
    });
    const isRejected = await within(OPT_OUT_MAX_MS, rule.optOut(), false);
    const isGone = await within(VANISH_MAX_MS, vanishes(rule), false);
    own.isOver = true;
    return { name: rule.name, isRejected, isGone, isCosmetic: rule.isCosmetic, frames: null };
  };

  const step = async () => {
    const woken = new Promise((resolve) => (wake = resolve));
    if (asks.length > 0 || opens) wake();
    const done = await Promise.race([progress, woken]);
    if (done) return done;
    if (opens) {
      const name = opens;
      opens = "";
      return { opens: name };
    }
    // Other rules ask in the same turn.
    await pause(0);
    asked = asks;
    asks = [];
    return { asks: asked.map(({ expression }) => expression) };
  };

  return {
    begin: (rules) => {
      ruleset = rules;
      run.isOver = true;
      run = { isOver: false };
      asks = [];
      asked = [];
      opens = "";
      progress = carryOut(run).catch(() => nothing).then((done) => ({ done }));
      return step();
    },
    next: (results) => {
      const answered = asked;
      asked = [];
      answered.forEach(({ answer }, at) => answer(results[at] === true));
      proceed();
      return step();
    },
  };
})
