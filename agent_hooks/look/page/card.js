/** The card: all about one call, from its verdict down to the command that brings its files back. */

import { copyable } from "./copying.js";
import { element, fill, foreign } from "./dom.js";
import { count, moment } from "./format.js";
import { ladder } from "./ladder.js";
import { verdictOf } from "./verdicts.js";

/** @typedef {import("./shapes").Card} Card */

/** The words for a stopped call, by the cause. @type {Record<string, string>} */
const STOPPED = {
  nobody: "Stopped, because no person could be asked; the question came ", user: "Stopped by a no of the person; the question came ",
  failed: "Stopped, because a hook failed: ", timed_out: "Stopped, because a hook took too long: ",
};
const [MOST_FILES, LONG_INPUT] = [200, 6000];

export class LookCard extends HTMLElement {
  /** @type {Card | null} */
  card = null;

  connectedCallback() {
    if (!this.card) this.clear();
  }

  clear() {
    this.card = null;
    fill(this, element("p", { class: "empty" }, "Choose a call: click in the ribbon or the list, or press j."));
  }

  /** @param {string} reason */
  fail(reason) {
    this.card = null;
    fill(this, element("p", { class: "empty" }, foreign(reason, { most: 500 })));
  }

  /** @param {Card} card */
  show(card) {
    this.card = card;
    const verdict = verdictOf(card.verdict);
    fill(
      this,
      element(
        "header", { class: verdict.name },
        element("div", { class: "bar" }, element("button", { type: "button", class: "back", on: { click: () => this.dispatchEvent(new CustomEvent("back")) } }, "← list"), ...this.#steps(card)),
        element("h2", { tabindex: "-1" }, element("span", { class: `chip ${verdict.name}` }, `${verdict.sign} ${verdict.word}`), element("span", { class: "tool" }, foreign(card.tool, { most: 60 }))),
        foreign(withoutTool(card), { tag: "pre", class: "command", most: LONG_INPUT }),
        element("p", { class: "verdict" }, ...cause(card)),
        card.turn?.bringBack ? this.#wayBack(card.turn) : null,
        card.remedy ? element("p", { class: "fact" }, "To allow such a call: ", foreign(card.remedy, { most: 500 })) : null,
        card.newer ? element("p", { class: "warning" }, foreign(card.newer, { most: 300 })) : null,
        card.lost ? element("p", { class: "warning" }, foreign(card.lost, { most: 300 })) : null,
        facts(card),
      ),
      element("section", { "aria-label": "The ladder" }, element("h3", {}, "The ladder"), ladder(card)),
      ...input(card), ...saw(card), ...turn(card), sources(card),
    );
    this.scrollTop = 0;
  }

  focusHead() {
    const head = this.querySelector("h2");
    if (head instanceof HTMLElement) head.focus();
  }

  /** @param {NonNullable<Card["turn"]>} turn */
  #wayBack(turn) {
    const jump = () => this.querySelector(".turn")?.scrollIntoView();
    const by = turn.mayBeIts ? "Its turn" : "Other calls of its turn";
    return element("p", { class: "fact" }, `${by} changed ${count(turn.files.length + turn.more, "file")}. `, element("button", { type: "button", on: { click: jump } }, "the way back ↓"));
  }

  /** @param {Card} card */
  #steps(card) {
    /** @param {number | null} row @param {string} words */
    const step = (row, words) =>
      element("button", { type: "button", disabled: row === null, on: { click: () => this.dispatchEvent(new CustomEvent("step", { detail: row })) } }, words);
    return [element("span", { class: "grow" }), step(card.previous, "← earlier in the session"), step(card.next, "later →")];
  }
}

/** The line of a call begins with its tool, which the heading has. @param {Card} card */
const withoutTool = (card) => (card.command.startsWith(`${card.tool} `) ? card.command.slice(card.tool.length + 1) : card.command || card.tool);

/**
 * Say why the call ran or did not run.
 * @param {Card} card
 * @returns {import("./dom.js").Child[]}
 */
function cause(card) {
  const by = card.by.length ? element("span", {}, "by ", ...card.by.map((each) => foreign(each, { most: 200 }))) : null;
  if (card.verdict === "pass") return [letThrough(card)];
  if (card.verdict === "unjudged") return ["No hook judged it: the call is known from a transcript only."];
  if (card.verdict === "allow") return ["Let through by a yes", ...(by ? [", asked ", by] : []), card.reason ? ": " : ".", card.reason ? foreign(card.reason, { most: 1000 }) : null];
  const words = (card.verdict === "block" ? STOPPED[card.cause] : undefined) ?? { block: "Stopped ", overruled: "Ran although it was stopped ", ask: "Asked about ", aborted: "Left before a verdict " }[card.verdict] ?? "";
  return [words, by, card.reason ? ": " : "", card.reason ? foreign(card.reason, { most: 1000 }) : null];
}

/** @param {Card} card */
function letThrough(card) {
  const judges = card.rungs.filter((rung) => rung.kind === "guard" || rung.kind === "gate");
  const silent = judges.filter((rung) => rung.answer === "silent");
  if (!judges.length) return "Let through: no guard and no gate judged it.";
  /** @param {string} kind */
  const of = (kind) => silent.filter((rung) => rung.kind === kind).length;
  const parts = [of("guard") ? count(of("guard"), "guard") : "", of("gate") ? count(of("gate"), "gate") : ""].filter(Boolean);
  return silent.length === judges.length ? `Let through: ${parts.join(" and ")} had no objection.` : "Let through.";
}

/** @param {Card} card */
function facts(card) {
  /** @type {[string, import("./dom.js").Child][]} */
  const table = [
    ["time", moment(card.time)],
    ["agent", foreign([card.client, card.clientVersion].filter(Boolean).join(" ") + (card.agent === "main" ? "" : `, sub-agent ${card.agent}`), { most: 200 })],
    ["origin", card.origin ? foreign(card.origin, { most: 200 }) : null],
    ["session", foreign(card.session, { most: 100 })],
    ["in", foreign(card.cwd || card.project, { most: 300 })],
    ["trust", card.trust ? foreign(card.trust, { most: 60 }) : null],
    ["call", foreign(card.id, { most: 100 })],
  ];
  return element("dl", {}, ...table.filter(([, value]) => value).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

/** @param {Card} card */
function input(card) {
  if (card.input === null || card.input === undefined) return [];
  const text = typeof card.input === "string" ? card.input : JSON.stringify(card.input, null, 2);
  return [element("details", {}, element("summary", {}, "The input, as the model asked"), foreign(text, { tag: "pre", class: "text" }))];
}

/** @param {Card} card */
function saw(card) {
  if (!card.saw) return [];
  return [
    element(
      "section", { "aria-label": "The model saw" },
      element("h3", {}, "The model saw"),
      foreign(card.saw.text, { tag: "pre", class: "text" }),
      card.saw.cut ? element("p", { class: "quiet" }, "The rest was not kept.") : null,
    ),
  ];
}

/** @param {Card} card */
function turn(card) {
  const { turn } = card;
  if (!turn) return [];
  const shown = turn.files.slice(0, MOST_FILES);
  const all = turn.files.length + turn.more;
  const more = all - shown.length;
  const changed = all ? `${count(all, "file")} changed` : turn.ended || !turn.checkpoint ? "No file changed" : "Its end, at which its files are compared, is not recorded";
  return [
    element(
      "section", { class: "turn", "aria-label": "The turn" },
      element("h3", {}, turn.index === null ? "The turn" : `Turn ${turn.index}`),
      element("p", {}, changed, turn.checkpoint ? element("span", {}, "; before it, checkpoint ", foreign(turn.checkpoint, { tag: "code", most: 60 })) : "; no checkpoint was made."),
      shown.length ? element("ul", { class: "files" }, ...shown.map((file) => element("li", {}, foreign(file, { most: 300 })))) : null,
      more > 0 ? element("p", { class: "quiet" }, `and ${more} more`) : null,
      turn.bringBack ? element("p", {}, "This brings them back. It asks first; in a script it takes --yes:") : null,
      turn.bringBack ? copyable(turn.bringBack, "the command that brings the files back") : null,
    ),
  ];
}

/** @param {Card} card */
function sources(card) {
  /** @type {Record<string, string>} */
  const joins = { id: "", order: "Record and transcript were joined by session, tool, input and order, not by an id.", none: "" };
  return element(
    "footer", {},
    joins[card.joined] ? element("p", {}, joins[card.joined]) : null,
    ...card.sources.map((source) => element("p", {}, `${source.kind} `, foreign(source.line === null ? source.file : `${source.file}:${source.line}`, { most: 400 }))),
  );
}
