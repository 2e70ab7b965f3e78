/** The first sentence: the numbers of the shown span of time. Each number is a button that shows its calls only. */

import { element, fill } from "./dom.js";
import { day, minute, number } from "./format.js";
import { KINDS } from "./verdicts.js";

/** @typedef {{span: string, counts: Record<string, number>, kind: string}} Facts */

export class LookSentence extends HTMLElement {
  /** @param {Facts} facts */
  show(facts) {
    const { counts } = facts;
    const focused = document.activeElement instanceof HTMLElement && this.contains(document.activeElement)
      ? document.activeElement.dataset.kind : undefined;
    /** @param {string} kind @param {number} value @param {string} words */
    const figure = (kind, value, words) =>
      element(
        "button",
        {
          class: `figure of-${kind || "calls"}`, type: "button", "data-kind": kind, "aria-pressed": String(facts.kind === kind),
          on: { click: () => this.dispatchEvent(new CustomEvent("choose", { detail: facts.kind === kind ? "" : kind })) },
        },
        element("b", {}, number(value)), ` ${words}`,
      );
    const main = [
      figure("sessions", counts.sessions, counts.sessions === 1 ? "session" : "sessions"),
      figure("", counts.calls, counts.calls === 1 ? "call" : "calls"),
      ...KINDS.filter((kind) => !kind.rest).map((kind) => this.#figureOf(kind, counts, figure)),
    ];
    const rest = KINDS.filter((kind) => kind.rest && (counts[kind.name] || facts.kind === kind.name))
      .map((kind) => this.#figureOf(kind, counts, figure));
    fill(this, element("span", { class: "span" }, `${facts.span}: `), ...listed(main, rest.length ? ";" : "."), ...listed(rest, "."));
    if (focused !== undefined) {
      for (const each of this.querySelectorAll("button")) if (each.dataset.kind === focused) each.focus();
    }
  }

  /**
   * @param {import("./verdicts.js").Kind} kind
   * @param {Record<string, number>} counts
   * @param {(kind: string, value: number, words: string) => HTMLElement} figure
   */
  #figureOf(kind, counts, figure) {
    const value = counts[kind.name];
    return figure(kind.name, value, value === 1 ? kind.one : kind.many);
  }
}

/**
 * Return the figures with a comma behind each, and an end behind the last. No line begins with a comma.
 * @param {Node[]} nodes
 * @param {string} end
 */
function listed(nodes, end) {
  return nodes.flatMap((node, at) => [element("span", { class: "item" }, node, at < nodes.length - 1 ? "," : end), " "]);
}

/**
 * Name a span of time: `Last 30 days`, `Since Tue 3 Mar` for all, or else its two ends.
 * @param {number} from
 * @param {number} to
 * @param {number} days the number of the last days, if the span is these, or 0
 * @param {boolean} isWhole
 */
export function spanOf(from, to, days, isWhole) {
  if (days) return days === 1 ? "Last day" : `Last ${number(days)} days`;
  if (isWhole) return `Since ${day(from)}`;
  const [first, last] = [day(from), day(to)];
  return first === last ? `${first}, ${minute(from)} to ${minute(to)}` : `${first}, ${minute(from)} to ${last}, ${minute(to)}`;
}
