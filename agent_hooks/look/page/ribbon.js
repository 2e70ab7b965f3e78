/** The ribbon: all calls over time. Drag zooms, click jumps, and the keys of the page and its buttons do the same. */

import { element, fill } from "./dom.js";
import { day, second } from "./format.js";
import { Cells, LEFT_OUT, SLOTS } from "./ribbon_cells.js";
import { layOut } from "./ribbon_layout.js";
import { SCALE, coloursOf, paintScale, paintTracks } from "./ribbon_paint.js";
import { VERDICTS } from "./verdicts.js";

/** @typedef {import("./shapes").Lane} Lane */
/** @typedef {import("./selection.js").Selection} Selection */

// The shortest span of time, in milliseconds, and the pixels from which on a press is a drag.
const [SHORTEST, DRAG] = [2000, 4];
const [ROOM, ROOM_OF_A_PHONE, PHONE] = [210, 150, 640];

export class LookRibbon extends HTMLElement {
  /** @type {Selection | null} */
  selection = null;
  /** @type {readonly Lane[]} */
  lanes = [];
  from = 0;
  to = 1;
  /** The position of the chosen call, or -1. */
  chosen = -1;
  #cells = new Cells();
  #layout = layOut([], 0);
  #width = 0;
  #frame = 0;
  /** @type {{x: number, now: number} | null} */
  #drag = null;
  #canvas = element("canvas", { "aria-hidden": "true" });
  #hint = element("p", { class: "hint" });
  #spoken = element("p", { class: "unseen", role: "status" });
  /** @type {import("./ribbon_paint.js").Colours | null} */
  #colours = null;

  connectedCallback() {
    const stage = element("div", { class: "stage" }, this.#canvas);
    /** @param {string} label @param {string} sign @param {() => void} act */
    const button = (label, sign, act) => element("button", { type: "button", "aria-label": label, title: label, on: { click: act } }, sign);
    const tools = element(
      "div", { class: "tools", role: "group", "aria-label": "Time" },
      button("Earlier", "←", () => this.pan(-0.5)), button("Later", "→", () => this.pan(0.5)),
      button("Zoom in", "+", () => this.zoom(0.5)), button("Zoom out", "−", () => this.zoom(2)),
      button("All time", "all", () => this.showAll()),
    );
    const legend = element(
      "p", { class: "legend" },
      ...VERDICTS.map((verdict) => element("span", {}, element("i", { class: `swatch ${verdict.name}` }), verdict.word)),
      element("span", {}, element("i", { class: "swatch waiting" }), "waiting for a person"),
      element("span", {}, "height: time in hooks"),
    );
    fill(this, stage, element("div", { class: "below" }, this.#hint, legend, tools), this.#spoken);
    const canvas = this.#canvas;
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#release(event));
    canvas.addEventListener("pointercancel", () => this.#endDrag());
    canvas.addEventListener("pointerleave", () => fill(this.#hint));
    canvas.addEventListener("dblclick", () => this.showAll());
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    new ResizeObserver(() => this.#resize()).observe(stage);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", () => {
      this.#colours = null;
      this.draw();
    });
  }

  /**
   * Take new data; `from` and `to` stay when they show a part.
   * @param {Selection} selection
   * @param {readonly Lane[]} lanes
   */
  take(selection, lanes) {
    const whole = this.isWhole;
    this.selection = selection;
    this.lanes = lanes;
    if (whole) [this.from, this.to] = this.#all();
    this.#lay();
  }

  get isWhole() {
    const [from, to] = this.#all();
    return this.selection === null || this.#untouched || (this.from <= from && this.to >= to);
  }

  #untouched = true;

  /** @returns {[number, number]} */
  #all() {
    const calls = this.selection?.calls;
    if (!calls?.length) return [Date.now() - 86_400_000, Date.now()];
    const edge = Math.max(1000, (calls.last - calls.first) * 0.004);
    return [calls.first - edge, calls.last + edge];
  }

  #resize() {
    this.#width = Math.floor(this.#canvas.parentElement?.clientWidth ?? 0);
    this.#lay();
  }

  #lay() {
    this.#layout = layOut(this.lanes, this.#width < PHONE ? ROOM_OF_A_PHONE : ROOM);
    this.draw();
  }

  #moves = false;

  /** Paint at the next frame; several changes before it cost one painting. @param {boolean} [moves] only the span has moved */
  draw(moves = false) {
    this.#moves = moves && (this.#moves || !this.#frame);
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    this.#frame = 0;
    const context = this.#canvas.getContext("2d");
    const { selection } = this;
    if (!context || !selection || this.#width <= 0) return;
    const ratio = Math.min(3, devicePixelRatio || 1);
    const [width, height] = [this.#width, this.#layout.height + SCALE];
    if (this.#canvas.width !== width * ratio || this.#canvas.height !== height * ratio) {
      this.#canvas.width = width * ratio;
      this.#canvas.height = height * ratio;
      this.#canvas.style.height = `${height}px`;
    }
    this.#colours ??= coloursOf(this, context);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.#cells.sum(selection.calls, this.#layout.trackOf, this.#layout.tracks.length, this.from, this.to, width, selection.mask, this.#moves);
    this.#moves = false;
    paintTracks(context, this.#cells, this.#layout, this.#colours, ratio);
    paintScale(context, this.from, this.to, 0, width, this.#layout.height, this.#colours);
    this.#paintMarks(context, height);
    this.dispatchEvent(new CustomEvent("painted"));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} height
   */
  #paintMarks(context, height) {
    if (!this.#colours || !this.selection) return;
    context.fillStyle = this.#colours.accent;
    if (this.chosen >= 0) {
      const x = this.#xOf(this.selection.calls.timed.time[this.chosen]);
      context.fillRect(Math.round(x), 0, 1.5, height - SCALE + 4);
      context.beginPath();
      context.moveTo(x - 4, 0);
      context.lineTo(x + 5, 0);
      context.lineTo(x + 0.5, 6);
      context.fill();
    }
    if (this.#drag) {
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(this.#drag.x, this.#drag.now), 0, Math.abs(this.#drag.now - this.#drag.x), height - SCALE);
      context.globalAlpha = 1;
    }
  }

  /** @param {number} time */
  #xOf(time) {
    return ((time - this.from) / (this.to - this.from)) * this.#width;
  }

  /** @param {number} x */
  #timeAt(x) {
    return this.from + (x / Math.max(1, this.#width)) * (this.to - this.from);
  }

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.button !== 0) return;
    this.#drag = { x: event.offsetX, now: event.offsetX };
    this.#canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (this.#drag) {
      this.#drag.now = event.offsetX;
      this.draw();
    } else {
      this.#tell(event.offsetX, event.offsetY);
    }
  }

  /** @param {PointerEvent} event */
  #release(event) {
    const drag = this.#drag;
    this.#endDrag();
    if (!drag) return;
    if (Math.abs(drag.now - drag.x) >= DRAG) {
      this.showSpan(this.#timeAt(Math.min(drag.x, drag.now)), this.#timeAt(Math.max(drag.x, drag.now)));
    } else {
      this.#jump(event.offsetX, event.offsetY);
    }
  }

  #endDrag() {
    this.#drag = null;
    this.draw();
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.#timeAt(event.offsetX));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.pan(sideways / Math.max(1, this.#width));
    }
  }

  /**
   * Return the track at a height, or -1.
   * @param {number} y
   */
  #trackAt(y) {
    return this.#layout.tracks.findIndex((track) => y >= track.top - 1 && y <= track.top + track.height + 1);
  }

  /**
   * Say in words which calls lie below the pointer.
   * @param {number} x
   * @param {number} y
   */
  #tell(x, y) {
    const track = this.#trackAt(y);
    const time = this.#timeAt(x);
    const cell = track * this.#cells.width + Math.floor(x);
    const words = [`${day(time)}, ${second(time)}`];
    if (track >= 0 && this.#cells.width) {
      const sums = VERDICTS.map((verdict, slot) => ({ verdict, calls: this.#cells.counts[cell * SLOTS + slot] ?? 0 }));
      words.push(...sums.filter((sum) => sum.calls).map((sum) => `${sum.calls.toLocaleString("en")} ${sum.verdict.word}`));
      const others = this.#cells.counts[cell * SLOTS + LEFT_OUT] ?? 0;
      if (others) words.push(`${others.toLocaleString("en")} others`);
      words.splice(1, 0, this.#laneAt(track, time));
    }
    fill(this.#hint, words.filter(Boolean).join(" · "));
  }

  /**
   * @param {number} track
   * @param {number} time
   */
  #laneAt(track, time) {
    const at = this.lanes.findIndex((lane, index) => this.#layout.trackOf[index] === track && lane.first <= time && lane.last >= time);
    return at < 0 ? "" : this.lanes[at].label.slice(0, 80);
  }

  /**
   * Choose the shown call that is nearest to a place.
   * @param {number} x
   * @param {number} y
   */
  #jump(x, y) {
    const { selection } = this;
    if (!selection) return;
    const wanted = this.#timeAt(x);
    const { time, lane } = selection.calls.timed;
    /** @param {(lane: number) => boolean} lies */
    const nearest = (lies) => {
      let [best, distance] = [-1, Infinity];
      selection.positions.forEach((position, index) => {
        const far = Math.abs(time[position] - wanted);
        if (far < distance && lies(lane[position])) [best, distance] = [index, far];
      });
      return best;
    };
    const track = this.#trackAt(y);
    const inTrack = track < 0 ? -1 : nearest((each) => this.#layout.trackOf[each] === track);
    const best = inTrack >= 0 ? inTrack : nearest(() => true);
    if (best >= 0) this.dispatchEvent(new CustomEvent("jump", { detail: best }));
  }

  /**
   * Show a span of time.
   * @param {number} from
   * @param {number} to
   */
  showSpan(from, to) {
    const [first, last] = this.#all();
    const length = Math.min(last - first, Math.max(SHORTEST, to - from));
    const begin = Math.min(last - length, Math.max(first, (from + to) / 2 - length / 2));
    this.#untouched = begin <= first && begin + length >= last;
    const moves = Math.abs(length - (this.to - this.from)) < 1;
    // A movement is one of whole pixels, so that the cells can move with it.
    const pixel = length / Math.max(1, this.#width);
    const end = Math.min(last - length, Math.max(first, moves ? this.from + Math.round((begin - this.from) / pixel) * pixel : begin));
    [this.from, this.to] = [end, end + length];
    this.draw(moves);
    this.dispatchEvent(new CustomEvent("span"));
    fill(this.#spoken, `${day(this.from)}, ${second(this.from)} to ${day(this.to)}, ${second(this.to)}`);
  }

  showAll() {
    const [from, to] = this.#all();
    this.showSpan(from, to);
  }

  /** @param {number} share of the shown span */
  pan(share) {
    const length = this.to - this.from;
    this.showSpan(this.from + share * length, this.to + share * length);
  }

  /**
   * @param {number} factor
   * @param {number} [around] a time that keeps its place
   */
  zoom(factor, around = (this.from + this.to) / 2) {
    this.showSpan(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  /** Bring a chosen call into the shown span. @param {number} position */
  choose(position) {
    this.chosen = position;
    const time = position >= 0 ? (this.selection?.calls.timed.time[position] ?? this.from) : this.from;
    if (time < this.from || time > this.to) {
      const half = (this.to - this.from) / 2;
      this.showSpan(time - half, time + half);
    } else {
      this.draw();
    }
  }
}
