/** Paint the summed cells: colour is the verdict, height the time in hooks, and hatching the wait for a person. */

import { day, minute, second } from "./format.js";
import { LEFT_OUT, SLOTS } from "./ribbon_cells.js";
import { VERDICTS } from "./verdicts.js";

/** @typedef {import("./ribbon_layout.js").Layout} Layout */
/** @typedef {import("./ribbon_cells.js").Cells} Cells */
/** @typedef {{verdicts: string[], leftOut: string, track: string, line: string, text: string, hatch: CanvasPattern | null, accent: string}} Colours */

// From the bottom of a column to its top, so that the rare verdicts lie above the usual one.
const STACK = [LEFT_OUT, 0, 5, 1, 4, 2, 3];
// The time in hooks that fills a track; the scale is logarithmic from 0.1 ms on.
const [LEAST_MS, MOST_MS] = [0.1, 10_000];
const DECADES = Math.log10(MOST_MS / LEAST_MS);
const [HOUR, DAY] = [3_600_000, 86_400_000];
const STEPS = [1000, 5000, 15_000, 60_000, 300_000, 900_000, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];

/** The height of the scale of time below the tracks. */
export const SCALE = 20;

/**
 * Read the colours of the style sheet, which follow the theme.
 * @param {HTMLElement} host
 * @param {CanvasRenderingContext2D} context
 * @returns {Colours}
 */
export function coloursOf(host, context) {
  const style = getComputedStyle(host);
  /** @param {string} name */
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    verdicts: VERDICTS.map((verdict) => colour(verdict.name)),
    leftOut: colour("left-out"), track: colour("track"), line: colour("line"), text: colour("quiet"), accent: colour("ink"),
    hatch: hatched(context, colour("ask")),
  };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 */
function hatched(context, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 5;
  const pen = tile.getContext("2d");
  if (!pen) return null;
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.75;
  pen.beginPath();
  for (const shift of [-5, 0, 5]) {
    pen.moveTo(shift, 5);
    pen.lineTo(shift + 5, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Cells} cells
 * @param {Layout} layout
 * @param {Colours} colours
 * @param {number} left the width of the names
 */
export function paintTracks(context, cells, layout, colours, left) {
  const { width, counts, longest, waits } = cells;
  context.font = "11px system-ui, sans-serif";
  layout.tracks.forEach((track, at) => {
    context.fillStyle = colours.track;
    context.fillRect(left, track.top, width, track.height);
    if (at === 0 || layout.tracks[at - 1].client !== track.client) {
      context.fillStyle = colours.text;
      context.fillText(track.client.slice(0, 40), left, track.top - 4);
    }
  });
  if (colours.hatch) {
    context.fillStyle = colours.hatch;
    eachRun(layout, width, (cell) => waits[cell] === 1, (track, x, length) => context.fillRect(left + x, track.top, length, track.height));
  }
  /** @type {number[][]} */
  const rectangles = Array.from({ length: SLOTS }, () => []);
  layout.tracks.forEach((track, at) => {
    for (let x = 0; x < width; x++) stack(counts, longest, at * width + x, track, left + x, rectangles);
  });
  for (const slot of STACK) {
    context.fillStyle = slot === LEFT_OUT ? colours.leftOut : colours.verdicts[slot];
    const own = rectangles[slot];
    for (let at = 0; at < own.length; at += 3) context.fillRect(own[at], own[at + 1], 1, own[at + 2]);
  }
}

/**
 * Add the pieces of one column: each verdict has its share, and a rare one at least two pixels.
 * @param {Uint32Array} counts
 * @param {Float32Array} longest
 * @param {number} cell
 * @param {{top: number, height: number}} track
 * @param {number} x
 * @param {number[][]} rectangles
 */
function stack(counts, longest, cell, track, x, rectangles) {
  let sum = 0;
  for (const slot of STACK) sum += counts[cell * SLOTS + slot];
  if (!sum) return;
  const share = Math.log10(Math.max(LEAST_MS, longest[cell]) / LEAST_MS) / DECADES;
  const height = Math.min(track.height, Math.max(3, Math.round(share * track.height)));
  let bottom = track.top + track.height;
  let left = height;
  for (const slot of STACK) {
    const number = counts[cell * SLOTS + slot];
    if (!number) continue;
    const own = Math.max(Math.min(2, height), Math.round((height * number) / sum));
    const drawn = Math.min(own, Math.max(left, 2));
    rectangles[slot].push(x, Math.max(track.top, bottom - drawn), drawn);
    bottom = Math.max(track.top + 2, bottom - drawn);
    left -= drawn;
  }
}

/**
 * @param {Layout} layout
 * @param {number} width
 * @param {(cell: number) => boolean} holds
 * @param {(track: {top: number, height: number}, x: number, length: number) => void} give
 */
function eachRun(layout, width, holds, give) {
  layout.tracks.forEach((track, at) => {
    let begin = -1;
    for (let x = 0; x <= width; x++) {
      const is = x < width && holds(at * width + x);
      if (is && begin < 0) begin = x;
      if (!is && begin >= 0) {
        give(track, begin, x - begin);
        begin = -1;
      }
    }
  });
}

/**
 * Paint the scale of time: lines at round times of the person's clock.
 * @param {CanvasRenderingContext2D} context
 * @param {number} from
 * @param {number} to
 * @param {number} left
 * @param {number} width
 * @param {number} bottom
 * @param {Colours} colours
 */
export function paintScale(context, from, to, left, width, bottom, colours) {
  const step = STEPS.find((each) => ((to - from) / each) * 92 <= width) ?? STEPS[STEPS.length - 1];
  const zone = new Date(from).getTimezoneOffset() * 60_000 || 0;
  context.font = "11px system-ui, sans-serif";
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) {
    const x = Math.round(left + ((time - from) / (to - from)) * width);
    context.fillStyle = colours.line;
    context.fillRect(x, 0, 1, bottom + 4);
    context.fillStyle = colours.text;
    const words = step >= DAY ? day(time) : step < 60_000 ? second(time) : minute(time) === "00:00" ? day(time) : minute(time);
    if (x + 4 < left + width - 30) context.fillText(words, x + 4, bottom + 14);
  }
}
