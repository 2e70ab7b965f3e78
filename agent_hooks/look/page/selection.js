/** The calls that the page shows at present: a kind, the words of a search, one project, and a span of time. */

import { ASKED, KINDS, isNotable, isOf } from "./verdicts.js";

/** @typedef {import("./calls.js").Calls} Calls */
/** @typedef {import("./shapes").Lane} Lane */

export class Selection {
  /** @param {Calls} calls */
  constructor(calls) {
    this.calls = calls;
    /** `""` for all calls, `sessions` for the first call of each, or the name of a kind. */
    this.kind = "";
    this.words = "";
    /** The path of the project whose calls are shown, `""` for all. */
    this.project = "";
    /** The rows that a search has found; `null` without a search. @type {Set<number> | null} */
    this.found = null;
    this.from = -Infinity;
    this.to = Infinity;
    /** The positions by time of the calls that are shown. */
    this.positions = new Uint32Array(0);
    /** 1 for each position that is shown, without the span of time. */
    this.mask = new Uint8Array(0);
    /** Whether anything but the span of time limits the calls. */
    this.isLimited = false;
  }

  /**
   * Find the calls anew.
   * @param {readonly Lane[]} lanes
   */
  update(lanes) {
    const { calls, found } = this;
    const { verdict, flags, lane } = calls.timed;
    const kind = KINDS.find((each) => each.name === this.kind);
    const seen = this.kind === "sessions" ? new Set() : null;
    const isHere = this.#isHere(lanes);
    this.isLimited = Boolean(kind || seen || found || this.project);
    const begin = calls.at(this.from);
    const end = this.to === Infinity ? calls.length : calls.at(this.to);
    if (!this.isLimited) {
      this.mask = new Uint8Array(0);
      this.positions = Uint32Array.from({ length: 0 });
      const all = new Uint32Array(Math.max(0, end - begin));
      for (let at = begin; at < end; at++) all[at - begin] = at;
      this.positions = all;
      return;
    }
    const mask = new Uint8Array(calls.length);
    const shown = new Uint32Array(Math.max(0, end - begin));
    let length = 0;
    for (let at = 0; at < calls.length; at++) {
      if (kind && !isOf(kind, verdict[at], flags[at])) continue;
      if (found && !found.has(calls.order[at])) continue;
      if (!isHere[lane[at]]) continue;
      if (seen) {
        if (at < begin || at >= end) continue;
        const session = sessionOf(lanes[lane[at]]);
        if (seen.has(session)) continue;
        seen.add(session);
      }
      mask[at] = 1;
      if (at >= begin && at < end) shown[length++] = at;
    }
    this.mask = mask;
    this.positions = shown.slice(0, length);
  }

  /**
   * Count the calls in the span of time, by kind.
   * @param {readonly Lane[]} lanes
   * @returns {Record<string, number>}
   */
  counts(lanes) {
    const { calls } = this;
    const { verdict, flags, lane } = calls.timed;
    const begin = calls.at(this.from);
    const end = this.to === Infinity ? calls.length : calls.at(this.to);
    const byFact = new Uint32Array(8 * 128);
    const seen = new Uint8Array(lanes.length);
    const isHere = this.#isHere(lanes);
    let all = 0;
    for (let at = begin; at < end; at++) {
      if (!isHere[lane[at]]) continue;
      byFact[(verdict[at] << 7) | (flags[at] & 127)]++;
      seen[lane[at]] = 1;
      all++;
    }
    /** @type {Record<string, number>} */
    const counts = { calls: all, sessions: 0 };
    counts.sessions = new Set(lanes.filter((_, at) => seen[at]).map(sessionOf)).size;
    for (const kind of KINDS) {
      counts[kind.name] = 0;
      for (let fact = 0; fact < byFact.length; fact++) {
        if (byFact[fact] && isOf(kind, fact >> 7, fact & 127)) counts[kind.name] += byFact[fact];
      }
    }
    return counts;
  }

  /**
   * Return 1 for each lane whose calls are shown.
   * @param {readonly Lane[]} lanes
   */
  #isHere(lanes) {
    return Uint8Array.from(lanes, (lane) => Number(!this.project || lane.project === this.project));
  }

  /**
   * Return the next position, in a direction, of a shown call that deserves a look, or -1.
   * @param {number} index in `positions`
   * @param {1 | -1} step
   */
  notable(index, step) {
    const { verdict, flags } = this.calls.timed;
    for (let at = index + step; at >= 0 && at < this.positions.length; at += step) {
      const position = this.positions[at];
      if (isNotable(verdict[position], flags[position] | (flags[position] & ASKED))) return at;
    }
    return -1;
  }
}

/** @param {Lane | undefined} lane */
const sessionOf = (lane) => (lane ? `${lane.client}\0${lane.session}` : "");
