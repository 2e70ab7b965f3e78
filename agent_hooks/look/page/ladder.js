/** The ladder of one call: each step in order, with its hook, its answer and its time. */

import { element, foreign } from "./dom.js";
import { duration, hidden, size } from "./format.js";

/** @typedef {import("./shapes").Card} Card */
/** @typedef {import("./shapes").Rung} Rung */
/** @typedef {import("./shapes").Asked} Asked */
/** @typedef {import("./shapes").DiffLine} DiffLine */

/** The words for the kinds of rungs. @type {Record<string, string>} */
const RUNG_KINDS = {
  transformer: "transformer", rewriter: "rewriter", guard: "guard", gate: "gate", person: "person", tool: "tool", result: "result", observer: "observer",
};
/** @type {Record<string, string>} */
const ANSWERS = {
  silent: "no objection", block: "stopped it", ask: "asked", rewrite: "changed the input", replace: "changed the result", allow: "said yes",
  deny: "said no", failed: "failed", timeout: "took too long", stopped: "was ended", changed: "changed it", context: "added context", continue: "goes on",
  stop: "ended the run", ok: "ok", error: "error", blocked: "did not run", aborted: "aborted", cancel: "cancelled it", yes: "said yes", no: "said no",
  text: "answered", cancelled: "closed the question", expired: "gave no answer in time", nobody: "no person was there", unknown: "the answer is not known", open: "no answer was recorded",
};
/** The words for a silent rung, which depend on its kind. @type {Record<string, string>} */
const SILENT = { transformer: "left it", rewriter: "left it", result: "left it", observer: "saw it" };
const MOST_LINES = 400;

/**
 * Return the rungs of a call as a list.
 * @param {Card} card
 */
export function ladder(card) {
  if (!card.rungs.length) return element("p", { class: "quiet" }, "No step of this call was recorded; it is known from a transcript only.");
  let asked = 0;
  return element("ol", { class: "ladder" }, ...card.rungs.map((rung) => rungOf(rung, card, rung.kind === "person" ? card.questions[asked++] : undefined)));
}

/**
 * @param {Rung} rung
 * @param {Card} card
 * @param {Asked | undefined} question the question to the person that this rung is
 */
function rungOf(rung, card, question) {
  const tone = toneOf(rung);
  const head = element(
    "div", { class: "head" },
    element("span", { class: "kind" }, RUNG_KINDS[rung.kind] ?? rung.kind),
    element("span", { class: "by" }, rung.by ? foreign(rung.by, { most: 200 }) : null, rung.handler ? element("span", { class: "handler" }, " ", foreign(rung.handler, { most: 100 })) : null),
    element("span", { class: "answer" }, answerOf(rung)),
    element("span", { class: "ms" }, duration(rung.ms)),
  );
  return element("li", { class: `rung ${rung.kind} ${tone}` }, head, ...details(rung, card, question));
}

/** @param {Rung} rung */
function toneOf(rung) {
  if (["block", "deny", "no", "nobody", "expired", "cancelled"].includes(rung.answer) || rung.outcome === "blocked") return "block";
  if (["failed", "timeout", "stopped", "error"].includes(rung.answer)) return "failing";
  if (rung.answer === "ask") return "ask";
  if (rung.answer === "allow" || rung.answer === "yes") return "allow";
  if (rung.diff || ["rewrite", "replace", "changed", "context"].includes(rung.answer) || Object.keys(rung.redacted ?? {}).length) return "changed";
  return rung.answer === "silent" ? "silent" : "";
}

/** @param {Rung} rung */
function answerOf(rung) {
  const words = (rung.answer === "silent" ? SILENT[rung.kind] : undefined) ?? ANSWERS[rung.answer] ?? rung.answer;
  if (rung.outcome === "blocked" && ["failed", "timeout", "stopped"].includes(rung.answer)) return `${words}, so the call was stopped`;
  if (rung.outcome === "settled") return `${words}, which settled the question`;
  return words;
}

/**
 * @param {Rung} rung
 * @param {Card} card
 * @param {Asked | undefined} question
 */
function details(rung, card, question) {
  const parts = [];
  if (rung.file) {
    parts.push(element("div", { class: "place" }, foreign(rung.line === null ? rung.file : `${rung.file}:${rung.line}`, { most: 400 }), rung.gone ? element("span", { class: "gone" }, "this file is gone") : null));
  } else if (rung.gone) {
    parts.push(element("div", { class: "place" }, element("span", { class: "gone" }, "this hook is gone")));
  }
  if (rung.reason && !question) parts.push(element("p", { class: "reason" }, foreign(rung.reason, { most: 2000 })));
  if (rung.rule) parts.push(element("p", { class: "fact" }, "rule ", foreign(rung.rule, { tag: "code", most: 200 })));
  if (rung.remedy && rung.remedy !== card.remedy) parts.push(element("p", { class: "fact" }, "to allow it: ", foreign(rung.remedy, { most: 500 })));
  if (rung.programs?.length) parts.push(named("programs", rung.programs));
  if (rung.effects) parts.push(...effects(rung.effects));
  if (rung.diff) parts.push(diff(rung.diff));
  if (Object.keys(rung.redacted ?? {}).length) parts.push(element("p", { class: "fact" }, `hidden: ${hidden(rung.redacted)}`));
  if (question) parts.push(asking(question, card.client));
  if (rung.kind === "tool" && card.result) parts.push(...resultOf(card.result));
  return parts;
}

/**
 * @param {string} name
 * @param {readonly string[]} values
 */
function named(name, values) {
  const shown = values.slice(0, 20);
  const more = values.length - shown.length;
  return element("p", { class: "fact" }, `${name} `, ...shown.map((value) => foreign(value, { tag: "code", most: 200 })), more > 0 ? ` and ${more} more` : null);
}

/** @param {import("./shapes").Effects} found */
function effects(found) {
  /** @type {[string, string[] | undefined][]} */
  const table = [["reads", found.reads], ["writes", found.writes], ["deletes", found.deletes], ["runs", found.programs], ["sends to", found.sends]];
  const parts = table.flatMap(([name, values]) => (values?.length ? [named(name, values)] : []));
  if (found.opaque) parts.push(element("p", { class: "fact" }, "may do more: a part of it cannot be judged"));
  return parts;
}

/**
 * Return a change as lines.
 * @param {readonly DiffLine[]} lines
 */
export function diff(lines) {
  /** @type {Record<string, string>} */
  const names = { "+": "added", "-": "removed", " ": "same" };
  const shown = lines.slice(0, MOST_LINES).map((line) =>
    element(
      "div", { class: `line ${names[line.op] ?? "same"}` },
      element("span", { class: "op" }, element("span", { "aria-hidden": "true" }, line.op === "-" ? "−" : line.op), line.op === " " ? null : element("span", { class: "unseen" }, `${names[line.op]}: `)),
      foreign(line.text, { most: 2000 }),
    ),
  );
  const more = lines.length - shown.length;
  return element("div", { class: "diff" }, ...shown, more > 0 ? element("div", { class: "line" }, `… ${more} more lines`) : null);
}

/**
 * @param {Asked} question
 * @param {string} client
 */
function asking(question, client) {
  const asked = question.to === "client" ? `asked by ${client}` : "asked";
  const waited = question.waitedMs === null ? "" : `; the answer came after ${duration(question.waitedMs)}`;
  return element(
    "div", { class: "question" },
    element("p", {}, "“", foreign(question.title || question.message, { most: 1000 }), "”"),
    element("p", { class: "fact" }, `${asked}${waited}`, question.who ? ", from " : "", question.who ? foreign(question.who, { most: 100 }) : null, question.text ? ": " : "", question.text ? foreign(question.text, { most: 500 }) : null),
  );
}

/** @param {import("./shapes").Result} result */
function resultOf(result) {
  const facts = [size(result.size), hidden(result.redacted ?? {}) ? `hidden: ${hidden(result.redacted)}` : ""].filter(Boolean);
  return [
    facts.length ? element("p", { class: "fact" }, facts.join(", ")) : null,
    result.error ? element("p", { class: "reason" }, foreign(result.error, { most: 2000 })) : null,
  ].filter((each) => each !== null);
}
