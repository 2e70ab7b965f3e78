/**
 * All calls as typed arrays, and their order by time.
 *
 * The arrays are by row, the number of a call in the index. `order[i]` is the row of the i-th call by time; the arrays of
 * `timed` are in that order, so that one pass over a span of time reads memory from front to back. A call whose record was
 * removed keeps its row, and has no place in the order.
 */

import { GONE } from "./verdicts.js";

/** @typedef {import("./shapes").Header} Header */
/** @typedef {{time: Float64Array, lane: Uint32Array, verdict: Uint8Array, hookMs: Float32Array, waitMs: Float32Array, flags: Uint8Array}} Timed */

export class Calls {
  constructor() {
    /** The number of rows, and of the calls among them that are there. */
    this.rows = 0;
    this.length = 0;
    this.time = new Float64Array(0);
    this.lane = new Uint32Array(0);
    this.tool = new Uint16Array(0);
    this.verdict = new Uint8Array(0);
    this.hookMs = new Float32Array(0);
    this.waitMs = new Float32Array(0);
    this.flags = new Uint8Array(0);
    /** @type {Uint32Array} */
    this.order = new Uint32Array(0);
    /** @type {Timed} */
    this.timed = this;
  }

  /**
   * Take the rows of an answer; they replace those from `after` on.
   * @param {Header} header
   * @param {ArrayBuffer} buffer
   */
  take(header, buffer) {
    const { count, first: after } = header;
    const offsets = Object.fromEntries(header.columns.map((each) => [each.name, each.offset + (header.begin ?? 0)]));
    const kept = Math.min(after, this.rows);
    const isMore = kept === after && this.rows === after && this.order.length === after;
    this.time = joined(this.time, kept, new Float64Array(buffer, offsets.time, count));
    this.lane = joined(this.lane, kept, new Uint32Array(buffer, offsets.lane, count));
    this.tool = joined(this.tool, kept, new Uint16Array(buffer, offsets.tool, count));
    this.verdict = joined(this.verdict, kept, new Uint8Array(buffer, offsets.verdict, count));
    this.hookMs = joined(this.hookMs, kept, new Float32Array(buffer, offsets.hookMs, count));
    this.waitMs = joined(this.waitMs, kept, new Float32Array(buffer, offsets.waitMs, count));
    this.flags = joined(this.flags, kept, new Uint8Array(buffer, offsets.flags, count));
    this.rows = after + count;
    const newest = kept > 0 && isMore ? this.timed.time[kept - 1] : -Infinity;
    const areNewest = isMore && isRising(this.time, kept, newest);
    this.order = present(areNewest ? extended(this.order, this.rows) : byTime(this.time), this.verdict);
    this.length = this.order.length;
    this.timed = this.length === this.rows && isIdentity(this.order) ? this : this.#inOrder();
  }

  /** @returns {Timed} */
  #inOrder() {
    const { order } = this;
    return {
      time: picked(this.time, order), lane: picked(this.lane, order), verdict: picked(this.verdict, order),
      hookMs: picked(this.hookMs, order), waitMs: picked(this.waitMs, order), flags: picked(this.flags, order),
    };
  }

  /**
   * Return the position of the first call at or after a time.
   * @param {number} time
   */
  at(time) {
    const times = this.timed.time;
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get first() {
    return this.length ? this.timed.time[0] : 0;
  }

  get last() {
    return this.length ? this.timed.time[this.length - 1] : 0;
  }
}

/**
 * Return the first `kept` entries of an array, followed by those of another one.
 * @template {Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array} Numbers
 * @param {Numbers} old
 * @param {number} kept
 * @param {Numbers} more
 * @returns {Numbers}
 */
function joined(old, kept, more) {
  if (!kept) return more;
  const Kind = /** @type {new (length: number) => Numbers} */ (old.constructor);
  const all = new Kind(kept + more.length);
  all.set(old.subarray(0, kept));
  all.set(more, kept);
  return all;
}

/**
 * @template {Float64Array | Float32Array | Uint32Array | Uint8Array} Numbers
 * @param {Numbers} numbers
 * @param {Uint32Array} order
 * @returns {Numbers}
 */
function picked(numbers, order) {
  const Kind = /** @type {new (length: number) => Numbers} */ (numbers.constructor);
  const all = new Kind(order.length);
  for (let at = 0; at < order.length; at++) all[at] = numbers[order[at]];
  return all;
}

/**
 * @param {Float64Array} times
 * @param {number} from
 * @param {number} newest
 */
function isRising(times, from, newest) {
  let before = newest;
  for (let row = from; row < times.length; row++) {
    if (!(times[row] >= before)) return false;
    before = times[row];
  }
  return true;
}

/**
 * Return the rows of an order whose calls are still there.
 * @param {Uint32Array} order
 * @param {Uint8Array} verdicts
 */
function present(order, verdicts) {
  return verdicts.includes(GONE) ? Uint32Array.from(order.filter((row) => verdicts[row] !== GONE)) : order;
}

/** @param {Uint32Array} order */
function isIdentity(order) {
  for (let at = 0; at < order.length; at++) if (order[at] !== at) return false;
  return true;
}

/**
 * @param {Uint32Array} order
 * @param {number} length
 */
function extended(order, length) {
  const all = new Uint32Array(length);
  all.set(order);
  for (let at = order.length; at < length; at++) all[at] = at;
  return all;
}

/**
 * Return the rows by time. Numbers are sorted far faster than objects, so that each key holds a time and a row: the time
 * takes the upper bits, as far as a number has some.
 * @param {Float64Array} times
 */
function byTime(times) {
  const { length } = times;
  let [low, high] = [Infinity, -Infinity];
  for (let row = 0; row < length; row++) {
    if (times[row] < low) low = times[row];
    if (times[row] > high) high = times[row];
  }
  const rows = 2 ** Math.ceil(Math.log2(length + 1));
  const steps = Math.floor(2 ** 53 / rows) - 1;
  const scale = Math.min(1, steps / Math.max(1, high - low));
  const keys = new Float64Array(length);
  for (let row = 0; row < length; row++) keys[row] = Math.floor((times[row] - low) * scale) * rows + row;
  keys.sort();
  const order = new Uint32Array(length);
  for (let at = 0; at < length; at++) order[at] = keys[at] % rows;
  return order;
}
