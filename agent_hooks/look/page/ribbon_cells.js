/**
 * The calls of a span of time, summed up for each pixel of each track.
 *
 * A cell has the number of calls of each verdict, the longest time in hooks, and whether a person was waited for. One pass
 * over typed arrays fills the cells, so that a million calls cost some milliseconds.
 */

/** @typedef {import("./calls.js").Calls} Calls */

/** The slots of a cell: one for each verdict, and one for the calls that the selection leaves out. */
export const SLOTS = 8;
export const LEFT_OUT = 6;

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

  /**
   * Sum up the calls between two times.
   * @param {Calls} calls
   * @param {Uint16Array} trackOf
   * @param {number} tracks
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {Uint8Array} mask the calls of the selection; empty for all
   */
  sum(calls, trackOf, tracks, from, to, width, mask) {
    this.#clear(width, tracks);
    const { counts, longest, waits } = this;
    const { time, lane, verdict, hookMs, waitMs } = calls.timed;
    const scale = width / Math.max(1e-9, to - from);
    const limited = mask.length > 0;
    const end = calls.at(to + 1 / scale);
    for (let at = calls.at(from); at < end; at++) {
      let x = ((time[at] - from) * scale) | 0;
      if (x >= width) x = width - 1;
      const cell = trackOf[lane[at]] * width + x;
      const isLeftOut = limited && mask[at] === 0;
      counts[cell * SLOTS + (isLeftOut ? LEFT_OUT : verdict[at])]++;
      if (hookMs[at] > longest[cell]) longest[cell] = hookMs[at];
      if (waitMs[at] > 0 && !isLeftOut) {
        const last = Math.min(width - 1 - x, (waitMs[at] * scale) | 0);
        for (let more = 0; more <= last; more++) waits[cell + more] = 1;
      }
    }
  }
}
