/** Numbers, times and durations as a person reads them. */

const NUMBER = new Intl.NumberFormat("en");
const DAY_FORM = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const YEAR_FORM = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
// The times that `Date` has.
const FARTHEST = 8.64e15;

/** @param {number} value */
export const number = (value) => NUMBER.format(value);

/**
 * Return a number with its noun: `1 call`, `2 calls`.
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** @param {number} time */
const isTime = (time) => Number.isFinite(time) && Math.abs(time) <= FARTHEST;

/** @param {number} time */
export const day = (time) => (isTime(time) ? DAY_FORM.format(time) : "no time");
/** @param {number} time */
export const minute = (time) => (isTime(time) ? MINUTE.format(time) : "no time");
/** @param {number} time */
export const second = (time) => (isTime(time) ? SECOND.format(time) : "no time");
/** @param {number} time */
export const moment = (time) => (isTime(time) ? `${YEAR_FORM.format(time)}, ${SECOND.format(time)}` : "no time");

/**
 * Return a duration: `0.4 ms`, `12 ms`, `3.1 s`, `2 min 5 s`.
 * @param {number | null} ms
 */
export function duration(ms) {
  if (ms === null || !Number.isFinite(ms)) return "";
  if (ms < 0.05) return "0 ms";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/**
 * Return a size: `812 bytes`, `3.4 kB`.
 * @param {number | null} bytes
 */
export function size(bytes) {
  if (bytes === null) return "";
  if (bytes < 1000) return count(bytes, "byte");
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/**
 * Return the kinds of hidden secrets with their numbers: `2 × token`.
 * @param {Record<string, number>} kinds
 */
export const hidden = (kinds) => Object.entries(kinds).map(([kind, times]) => `${number(times)} × ${kind}`).join(", ");
