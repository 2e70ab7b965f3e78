/** The verdicts of calls and the facts about them, with their words and signs. One row is one kind. */

/** @typedef {{name: string, word: string, sign: string}} Verdict */

/** The position in this table is the number in the columns. @type {readonly Verdict[]} */
export const VERDICTS = [
  { name: "pass", word: "passed", sign: "·" },
  { name: "allow", word: "allowed", sign: "✓" },
  { name: "ask", word: "asked", sign: "?" },
  { name: "block", word: "stopped", sign: "✕" },
  { name: "aborted", word: "aborted", sign: "–" },
  { name: "unjudged", word: "not judged", sign: "○" },
  { name: "overruled", word: "ran although stopped", sign: "‼" },
];

const BLOCK = 3;
const OVERRULED = 6;
/** The verdict of a row whose record was removed. */
export const GONE = 255;
export const REWRITTEN = 1;
export const REDACTED = 2;
export const FAILED = 4;
export const BY_ORDER = 8;
export const FILES = 16;
export const TRANSCRIPT = 32;
export const ASKED = 64;

/** @typedef {{name: string, one: string, many: string, verdict?: number, flag?: number, rest?: boolean}} Kind */

/**
 * The kinds of calls that the first sentence counts, in its order; `rest` stands in the second half.
 * @type {readonly Kind[]}
 */
export const KINDS = [
  { name: "stopped", one: "stopped", many: "stopped", verdict: BLOCK },
  { name: "asked", one: "question", many: "questions", flag: ASKED },
  { name: "overruled", one: "that ran although it was stopped", many: "that ran although they were stopped", verdict: OVERRULED, rest: true },
  { name: "rewritten", one: "rewritten", many: "rewritten", flag: REWRITTEN, rest: true },
  { name: "redacted", one: "with a hidden secret", many: "with hidden secrets", flag: REDACTED, rest: true },
  { name: "failed", one: "with a failed hook", many: "with failed hooks", flag: FAILED, rest: true },
  { name: "files", one: "that may have changed files", many: "that may have changed files", flag: FILES, rest: true },
];

/**
 * Tell whether a call is of a kind.
 * @param {Kind} kind
 * @param {number} verdict
 * @param {number} flags
 */
export const isOf = (kind, verdict, flags) =>
  kind.verdict !== undefined ? verdict === kind.verdict : (flags & (kind.flag ?? 0)) !== 0;

/**
 * Tell whether a call deserves a look: stopped, overruled, asked about, aborted, changed, or a hook failed.
 * @param {number} verdict
 * @param {number} flags
 */
export const isNotable = (verdict, flags) =>
  (verdict >= 2 && verdict <= 4) || verdict === OVERRULED || (flags & (REWRITTEN | REDACTED | FAILED | ASKED)) !== 0;

/** @param {string} name */
export const verdictOf = (name) => VERDICTS.find((each) => each.name === name) ?? { name, word: name, sign: "·" };
