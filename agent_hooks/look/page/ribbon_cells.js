/**
 * The calls of a span of time, summed up for each pixel of each track.
 *
 * A cell has the number of calls of each verdict, the longest time in hooks, and whether a person was waited for. One pass
 * over typed arrays fills the cells. While a person moves in time, the cells that stay on screen are moved, and only the
 * calls of the new edge are summed up; when the movement rests, all are summed up again, with the waits that reach in.
 */

import { VERDICTS } from "./verdicts.js";

/** @typedef {import("./calls.js").Calls} Calls */

/** The slots of a cell: one for each verdict, and one for the calls that the selection leaves out. */
export const LEFT_OUT = VERDICTS.length;
export const SLOTS = LEFT_OUT + 1;

export class Cells {
  constructor() {
    this.width = 0;
    this.tracks = 0;
    this.counts = new Uint32Array(0);
    this.longest = new Float32Array(0);
    this.waits = new Uint8Array(0);
  }

  /**
   * @param {number} width
   * @param {number} tracks
   */
  #clear(width, tracks) {
    if (width !== this.width || tracks !== this.tracks) {
      this.width = width;
      this.tracks = tracks;
      this.counts = new Uint32Array(width * tracks * SLOTS);
      this.longest = new Float32Array(width * tracks);
      this.waits = new Uint8Array(width * tracks);
    } else {
      this.counts.fill(0);
      this.longest.fill(0);
      this.waits.fill(0);
    }
  }

  /** The beginning of the summed span, and everything else that the sums depend on. */
  #from = NaN;
  /** @type {readonly unknown[]} */
  #basis = [];

  /**
   * Sum up the calls between two times.
   * @param {Calls} calls
   * @param {Uint16Array} trackOf
   * @param {number} tracks
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {Uint8Array} mask the calls of the selection; empty for all
   * @param {boolean} [moves] whether the cells of the time before may be used again
   */
  sum(calls, trackOf, tracks, from, to, width, mask, moves = false) {
    const scale = width / Math.max(1e-9, to - from);
    const basis = [calls.timed.time, trackOf, tracks, width, mask, Math.round(to - from)];
    const shift = (from - this.#from) * scale;
    const by = Math.round(shift);
    const isMoved = moves && Math.abs(shift - by) < 0.05 && Math.abs(by) < width && basis.every((each, at) => each === this.#basis[at]);
    if (isMoved) this.#move(by);
    else this.#clear(width, tracks);
    this.#from = from;
    this.#basis = basis;
    const [first, last] = !isMoved ? [0, width] : by >= 0 ? [width - by, width] : [0, -by];
    this.#add(calls, trackOf, from, scale, first, last, mask);
  }

  /** Move all cells to the left. @param {number} by pixels, below zero to the right */
  #move(by) {
    const { width, tracks } = this;
    const [begin, end, edge] = by >= 0 ? [by, width, width - by] : [0, width + by, 0];
    for (let track = 0; track < tracks; track++) {
      const row = track * width;
      for (const [cells, slots] of /** @type {[Uint32Array | Float32Array | Uint8Array, number][]} */ ([[this.counts, SLOTS], [this.longest, 1], [this.waits, 1]])) {
        cells.copyWithin((row + begin - by) * slots, (row + begin) * slots, (row + end) * slots);
        cells.fill(0, (row + edge) * slots, (row + edge + Math.abs(by)) * slots);
      }
    }
  }

  /**
   * Add the calls of some pixels.
   * @param {Calls} calls
   * @param {Uint16Array} trackOf
   * @param {number} from
   * @param {number} scale
   * @param {number} first
   * @param {number} last
   * @param {Uint8Array} mask
   */
  #add(calls, trackOf, from, scale, first, last, mask) {
    const { counts, longest, waits, width } = this;
    const { time, lane, verdict, hookMs, waitMs } = calls.timed;
    const limited = mask.length > 0;
    const end = calls.at(from + last / scale);
    for (let at = calls.at(from + first / scale); at < end; at++) {
      let x = ((time[at] - from) * scale) | 0;
      if (x >= last) x = last - 1;
      const cell = trackOf[lane[at]] * width + x;
      const isLeftOut = limited && mask[at] === 0;
      counts[cell * SLOTS + (isLeftOut ? LEFT_OUT : verdict[at])]++;
      if (hookMs[at] > longest[cell]) longest[cell] = hookMs[at];
      if (waitMs[at] > 0 && !isLeftOut) {
        const reach = Math.min(width - 1 - x, (waitMs[at] * scale) | 0);
        for (let more = 0; more <= reach; more++) waits[cell + more] = 1;
      }
    }
  }
}
