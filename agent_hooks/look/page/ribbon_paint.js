/** Paint the summed cells: colour is the verdict, height the time in hooks, and hatching the wait for a person. */

import { day, minute, second } from "./format.js";
import { LEFT_OUT, SLOTS } from "./ribbon_cells.js";
import { VERDICTS } from "./verdicts.js";

/** @typedef {import("./ribbon_layout.js").Layout} Layout */
/** @typedef {import("./ribbon_cells.js").Cells} Cells */
/** @typedef {{inks: {slots: number[], track: number}, line: string, text: string, hatch: CanvasPattern | null, accent: string}} Colours */

// From the bottom of a column to its top, so that the rare verdicts lie above the usual one.
const STACK = [LEFT_OUT, 0, 5, 1, 4, 2, 3, 6];
// The time in hooks that fills a track; the scale is logarithmic from 0.03 ms on.
const [LEAST_MS, MOST_MS] = [0.03, 3000];
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
  const slots = Array.from({ length: SLOTS }, (_, slot) => inkOf(colour(slot === LEFT_OUT ? "left-out" : (VERDICTS[slot]?.name ?? "pass"))));
  return { inks: { slots, track: inkOf(colour("track")) }, line: colour("line"), text: colour("quiet"), accent: colour("ink"), hatch: hatched(context, colour("ask")) };
}

/** Return a colour `#rrggbb` as a pixel, whose bytes are red, green, blue and opacity. @param {string} text */
function inkOf(text) {
  const bytes = new Uint8Array([1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)).concat(255));
  return new Uint32Array(bytes.buffer)[0];
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
 * Paint the tracks with their columns as pixels, which costs a fraction of as many rectangles.
 * @param {CanvasRenderingContext2D} context
 * @param {Cells} cells
 * @param {Layout} layout
 * @param {Colours} colours
 * @param {number} ratio the pixels of the screen for one of the page
 */
export function paintTracks(context, cells, layout, colours, ratio) {
  const image = context.createImageData(Math.max(1, Math.floor(cells.width * ratio)), Math.max(1, Math.ceil(layout.height * ratio)));
  const pixels = new Uint32Array(image.data.buffer);
  const inks = colours.inks;
  layout.tracks.forEach((track, at) => {
    const [top, bottom] = [Math.round(track.top * ratio), Math.round((track.top + track.height) * ratio)];
    pixels.fill(inks.track, top * image.width, bottom * image.width);
    for (let x = 0; x < image.width; x++) column(pixels, image.width, x, cells, at * cells.width + Math.floor(x / ratio), top, bottom, inks.slots);
  });
  context.putImageData(image, 0, 0);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.text;
  layout.tracks.forEach((track, at) => {
    if (at === 0 || layout.tracks[at - 1].client !== track.client) context.fillText(track.client.slice(0, 40), 0, track.top - 4);
  });
  if (colours.hatch) {
    context.fillStyle = colours.hatch;
    eachRun(layout, cells.width, (cell) => cells.waits[cell] === 1, (track, x, length) => context.fillRect(x, track.top, length, track.height));
  }
}

/**
 * Paint one column: each verdict has its share of the height, and a rare one at least two pixels.
 * @param {Uint32Array} pixels
 * @param {number} width
 * @param {number} x
 * @param {Cells} cells
 * @param {number} cell
 * @param {number} top
 * @param {number} bottom
 * @param {readonly number[]} inks
 */
function column(pixels, width, x, cells, cell, top, bottom, inks) {
  const { counts, longest } = cells;
  let sum = 0;
  for (let slot = 0; slot < SLOTS; slot++) sum += counts[cell * SLOTS + slot];
  if (!sum) return;
  const share = Math.log10(Math.max(LEAST_MS, longest[cell]) / LEAST_MS) / DECADES;
  const height = Math.min(bottom - top, Math.max(3, Math.round(share * (bottom - top))));
  let y = bottom;
  for (let at = STACK.length - 1; at >= 0; at--) {
    // From the top: the rare ones get their pixels first, and the usual one the rest down to the bottom.
    const slot = STACK[at];
    const number = counts[cell * SLOTS + slot];
    if (!number) continue;
    const end = at === 0 ? 0 : Math.max(2, Math.round((height * number) / sum));
    if (y === bottom) y = bottom - height;
    for (let left = end || bottom - y; left > 0 && y < bottom; left--, y++) pixels[y * width + x] = inks[slot];
    if (y >= bottom) return;
  }
  const usual = STACK.find((slot) => counts[cell * SLOTS + slot]) ?? 0;
  for (; y < bottom; y++) pixels[y * width + x] = inks[usual];
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
