// Runs the rules of autoconsent in one document, from a world of its own. The caller drives it step
// by step, because the world can neither enter that of the page nor report anything by itself:
// `begin` starts a run, and it and `next` evaluate to a step:
// { asks }: expressions to evaluate in the world of the page, whose results are the argument of `next`;
// { opens }: the name of the rule that clicks after the `next` that follows;
// { done }: the end of the run, { name, isRejected, isGone, isCosmetic, frames }.
// Nothing calls optIn(). A document without an open popup is not
// changed.
import { dynamicCMPs } from './lib/cmps/all';
import AutoConsentCMPBase, { AutoConsentCMP } from './lib/cmps/base';
import { DomActions } from './lib/dom-actions';
import { decodeRules, filterCompactRules, type CompactCMPRuleset, type IndexedCMPRuleset } from './lib/encoding';
import { getFunctionBody, snippets } from './lib/eval-snippets';
import type { ElementSelector, HideMethod } from './lib/rules';
import type { AutoCMP } from './lib/types';
import { getHidingStyle, isElementVisible, isTopFrame, normalizeConfig } from './lib/utils';
import type AutoConsent from './lib/web';

// Times in milliseconds of the page's clock.
const POPUP_MAX_MS = 2500;
const OPT_OUT_MAX_MS = 5000;
const VANISH_MAX_MS = 1000;
const INTERVAL_MS = 50;

// Rules whose opt-out clicks what accepts.
const ACCEPTS = ['nhs.uk'];
// Snippets that lead away from the page.
const LEADS_AWAY = ['EVAL_POVR_GOBACK'];

type Done = {
    // Name of the rule that was carried out; empty if no popup is open.
    name: string;
    // Whether the rule succeeded.
    isRejected: boolean;
    // Whether its popup is gone.
    isGone: boolean;
    // Whether the rule only hides.
    isCosmetic: boolean;
    // Rules for the frames of the page, if one of them may contain a popup.
    frames: CompactCMPRuleset | null;
};
type Step = { asks: string[] } | { opens: string } | { done: Done };

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const within = <T>(ms: number, task: Promise<T>, otherwise: T) =>
    Promise.race([task.catch(() => otherwise), pause(ms).then(() => otherwise)]);

// Actions that do nothing after the end of a run, whose rule may still be waiting for something.
class Actions extends DomActions {
    isOver = false;

    elementSelector(selector: ElementSelector): HTMLElement[] {
        return this.isOver ? [] : super.elementSelector(selector);
    }

    async clickElement(element: HTMLElement) {
        return !this.isOver && super.clickElement(element);
    }

    // A style sheet would be subject to the policy of the page.
    hide(selector: string, method?: HideMethod) {
        for (const element of this.elementSelector(selector)) {
            for (const declaration of getHidingStyle(method ?? 'display').split(';')) {
                const [property, value] = declaration.replace('!important', '').split(':');
                if (value) element.style.setProperty(property.trim(), value.trim(), 'important');
            }
        }
        return selector.length > 0;
    }
}

class Runner {
    private ruleset: IndexedCMPRuleset | CompactCMPRuleset | null = null;
    private tried = new Set<string>();
    private actions: Actions | null = null;
    private asks: { expression: string; answer: (result: boolean) => void }[] = [];
    private asked: typeof this.asks = [];
    private wake = () => {};
    private progress: Promise<Step> = Promise.resolve({ done: this.nothing() });
    private proceed = () => {};
    private opens = '';

    // Starts a run with these rules, by default those of the run before. Evaluates to null without any.
    begin(ruleset?: IndexedCMPRuleset | CompactCMPRuleset): Promise<Step> | null {
        this.ruleset = ruleset ?? this.ruleset;
        if (!this.ruleset) return null;
        if (this.actions) this.actions.isOver = true;
        this.asks = this.asked = [];
        this.opens = '';
        this.progress = this.run(this.ruleset)
            .catch(() => this.nothing())
            .then((done) => ({ done }));
        return this.step();
    }

    next(results: boolean[]): Promise<Step> {
        const asked = this.asked;
        this.asked = [];
        asked.forEach(({ answer }, at) => answer(results[at] === true));
        this.proceed();
        return this.step();
    }

    private async step(): Promise<Step> {
        const woken = new Promise<void>((resolve) => (this.wake = resolve));
        if (this.asks.length > 0 || this.opens) this.wake();
        const done = await Promise.race([this.progress, woken]);
        if (done) return done;
        if (this.opens) {
            const opens = this.opens;
            this.opens = '';
            return { opens };
        }
        // Other rules ask in the same turn.
        await pause(0);
        this.asked = this.asks;
        this.asks = [];
        return { asks: this.asked.map(({ expression }) => expression) };
    }

    ask(id: string): Promise<boolean> {
        const snippet = snippets[id as keyof typeof snippets];
        if (!snippet || LEADS_AWAY.includes(id) || this.actions?.isOver) return Promise.resolve(false);
        return new Promise((answer) => {
            this.asks.push({ expression: getFunctionBody(snippet), answer });
            this.wake();
        });
    }

    private nothing(): Done {
        return { name: '', isRejected: false, isGone: false, isCosmetic: false, frames: null };
    }

    private rules(ruleset: IndexedCMPRuleset | CompactCMPRuleset): AutoCMP[] {
        const config = normalizeConfig({ logs: {}, enablePrehide: false });
        const instance = {
            config,
            state: { clicks: 0 },
            updateState: () => {},
            sendContentMessage: () => {},
        } as unknown as AutoConsent;
        this.actions = new Actions(instance);
        instance.domActions = this.actions;
        const isTop = isTopFrame();
        const own = 'index' in ruleset ? filterCompactRules(ruleset, { url: location.href, mainFrame: isTop }) : ruleset;
        const rules: AutoCMP[] = dynamicCMPs.map((Rule) => new Rule(instance));
        rules.push(...decodeRules(own).map((rule) => new AutoConsentCMP(rule, instance)));
        return rules.filter((rule) => rule.checkFrameContext(isTop) && !this.tried.has(rule.name) && !ACCEPTS.includes(rule.name));
    }

    private async run(ruleset: IndexedCMPRuleset | CompactCMPRuleset): Promise<Done> {
        const rules = this.rules(ruleset);
        const actions = this.actions!;
        const rule = await this.open(rules);
        if (!rule) {
            actions.isOver = true;
            return { ...this.nothing(), frames: this.frameRules(ruleset) };
        }
        this.tried.add(rule.name);
        await new Promise<void>((resolve) => {
            this.proceed = resolve;
            this.opens = rule.name;
            this.wake();
        });
        const isRejected = await within(OPT_OUT_MAX_MS, rule.optOut(), false);
        const isGone = await within(VANISH_MAX_MS, this.vanishes(rule), false);
        actions.isOver = true;
        return { name: rule.name, isRejected, isGone, isCosmetic: rule.isCosmetic, frames: null };
    }

    // The rule whose popup is open: those of this site first, then those that reject, then those that hide.
    private async open(rules: AutoCMP[]): Promise<AutoCMP | null> {
        const ofSite = rules.filter((rule) => rule.hasMatchingUrlPattern());
        const others = rules.filter((rule) => !rule.runContext.urlPattern);
        for (const group of [ofSite, others]) {
            const present = await Promise.all(group.map((rule) => within(POPUP_MAX_MS, rule.detectCmp(), false)));
            const found = group.filter((_, at) => present[at]);
            for (const isCosmetic of [false, true]) {
                const popups = found.filter((rule) => rule.isCosmetic === isCosmetic);
                const isOpen = async (rule: AutoCMP) => ((await rule.detectPopup()) ? rule : Promise.reject(rule));
                const open = await within(POPUP_MAX_MS, Promise.any(popups.map(isOpen)), null);
                if (open) return open;
            }
        }
        return null;
    }

    private async vanishes(rule: AutoCMP): Promise<boolean> {
        while (await rule.detectPopup()) await pause(INTERVAL_MS);
        return true;
    }

    private frameRules(ruleset: IndexedCMPRuleset | CompactCMPRuleset): CompactCMPRuleset | null {
        if (!isTopFrame() || !('index' in ruleset)) return null;
        const isOverlay = (element: HTMLElement) => {
            for (let outer: HTMLElement | null = element; outer; outer = outer.parentElement) {
                const { position, zIndex } = getComputedStyle(outer);
                if (position === 'fixed' || position === 'sticky' || (position === 'absolute' && Number(zIndex) > 0)) return true;
            }
            return false;
        };
        const mayAsk = (frame: HTMLElement) =>
            frame.offsetWidth > 100 && frame.offsetHeight > 30 && isElementVisible(frame) && isOverlay(frame);
        if (![...document.querySelectorAll('iframe')].some(mayAsk)) return null;
        const [begin, end] = ruleset.index.frameRuleRange;
        return { v: ruleset.v, s: ruleset.s.slice(0, ruleset.index.frameStringEnd), r: ruleset.r.slice(begin, end) };
    }
}

declare global {
    var archivistRules: Runner | undefined;
}
const runner = (globalThis.archivistRules ??= new Runner());
AutoConsentCMPBase.prototype.mainWorldEval = (id) => runner.ask(id);
