/**
 * The list of calls, the newest first. Only the rows on screen are elements, so that its length costs nothing.
 *
 * A browser limits the height of an element, so that a very long list is scrolled in proportion: `top`, the first shown
 * index with its fraction, is the truth; the bar follows it, and leads it only while a person drags the bar.
 */

import { element, fill, foreign } from "./dom.js";
import { day, duration, second } from "./format.js";
import { FAILED, FILES, REDACTED, REWRITTEN, VERDICTS } from "./verdicts.js";

/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {import("./shapes").Summary} Summary */

// The greatest height that every browser gives an element, with room to spare.
const HIGHEST = 6_000_000;
const [ROW, ROW_OF_A_PHONE, NARROW] = [27, 52, 640];
const [MOST_ASKED, MOST_KEPT, LONGEST_COMMAND] = [200, 50_000, 200];

export class LookList extends HTMLElement {
  /** @type {Selection | null} */
  selection = null;
  /** @type {Summary | null} */
  facts = null;
  /** @type {(rows: number[]) => Promise<string[]>} */
  ask = () => Promise.resolve([]);
  /** The index of the chosen call in the list, or -1. */
  chosen = -1;
  /** @type {Map<number, string>} */
  #commands = new Map();
  #top = 0;
  #height = ROW;
  #frame = 0;
  #isAsking = false;
  #bar = 0;
  /** @type {HTMLElement[]} */
  #rows = [];
  #space = element("div", { class: "space", role: "presentation" });
  #window = element("div", { class: "window", role: "presentation" });
  #box = element("div", { class: "box", role: "listbox", tabindex: "0", "aria-label": "Calls, the newest first" }, this.#space, this.#window);
  #empty = element("p", { class: "empty" });

  connectedCallback() {
    fill(this, this.#box, this.#empty);
    this.#box.addEventListener("scroll", () => this.#scrolled());
    this.#box.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.#box.addEventListener("click", (event) => this.#clicked(event));
    new ResizeObserver(() => this.#resize()).observe(this);
  }

  get length() {
    return this.selection?.positions.length ?? 0;
  }

  get #visible() {
    return Math.max(1, this.#box.clientHeight / this.#height);
  }

  get #most() {
    return Math.max(0, this.length - this.#visible);
  }

  get #isScaled() {
    return this.length * this.#height > HIGHEST;
  }

  /** The position by time of the call at an index of the list. @param {number} index */
  positionAt(index) {
    const positions = this.selection?.positions;
    return positions && index >= 0 && index < positions.length ? positions[positions.length - 1 - index] : -1;
  }

  /** The row of the call at an index. @param {number} index */
  rowAt(index) {
    const position = this.positionAt(index);
    return position < 0 ? -1 : (this.selection?.calls.order[position] ?? -1);
  }

  /** Show the calls of a selection; the chosen row stays chosen if it is among them. @param {number} row */
  show(row) {
    this.chosen = this.indexOf(row);
    this.#space.style.height = `${Math.min(HIGHEST, this.length * this.#height)}px`;
    this.#top = Math.min(this.#top, this.#most);
    fill(this.#empty, this.length ? "" : "No call here. A number of the sentence above, or Esc, shows others.");
    this.#lead();
    this.draw();
  }

  /** @param {number} row */
  indexOf(row) {
    const { selection } = this;
    if (!selection || row < 0) return -1;
    const { positions, calls } = selection;
    const time = calls.time[row];
    let [low, high] = [0, positions.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (calls.timed.time[positions[middle]] < time) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < positions.length && calls.timed.time[positions[at]] === time; at++) {
      if (calls.order[positions[at]] === row) return positions.length - 1 - at;
    }
    return -1;
  }

  /** Forget the texts of rows that have changed. @param {number} from */
  forget(from) {
    for (const row of this.#commands.keys()) if (row >= from) this.#commands.delete(row);
  }

  /** Choose a call and bring it on screen. @param {number} index */
  choose(index) {
    this.chosen = index;
    if (index >= 0) {
      if (index < this.#top) this.#top = index;
      else if (index + 1 > this.#top + this.#visible) this.#top = index + 1 - this.#visible;
      this.#top = Math.max(0, Math.min(this.#most, this.#top));
      this.#lead();
    }
    this.draw();
  }

  /** Bring a call into the middle of the list. @param {number} index */
  centre(index) {
    this.#top = Math.max(0, Math.min(this.#most, index - this.#visible / 2));
    this.choose(index);
  }

  focusList() {
    this.#box.focus({ preventScroll: true });
  }

  #resize() {
    this.#height = this.clientWidth < NARROW ? ROW_OF_A_PHONE : ROW;
    this.classList.toggle("narrow", this.clientWidth < NARROW);
    this.#space.style.height = `${Math.min(HIGHEST, this.length * this.#height)}px`;
    this.#lead();
    this.draw();
  }

  /** Set the bar to `top`. */
  #lead() {
    const room = this.#box.scrollHeight - this.#box.clientHeight;
    this.#bar = this.#isScaled ? Math.round((this.#top / Math.max(1, this.#most)) * room) : Math.round(this.#top * this.#height);
    this.#box.scrollTop = this.#bar;
  }

  #scrolled() {
    if (Math.abs(this.#box.scrollTop - this.#bar) < 1) return;
    this.#bar = this.#box.scrollTop;
    const room = Math.max(1, this.#box.scrollHeight - this.#box.clientHeight);
    this.#top = this.#isScaled ? (this.#bar / room) * this.#most : this.#bar / this.#height;
    this.draw();
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (!this.#isScaled || event.ctrlKey || !event.deltaY) return;
    const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    const top = Math.max(0, Math.min(this.#most, this.#top + pixels / this.#height));
    if (top === this.#top) return;
    event.preventDefault();
    this.#top = top;
    this.#lead();
    this.draw();
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const row = event.target instanceof Element ? event.target.closest("[data-index]") : null;
    if (row instanceof HTMLElement) this.dispatchEvent(new CustomEvent("open", { detail: Number(row.dataset.index) }));
  }

  draw() {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    this.#frame = 0;
    const shown = Math.min(this.length, Math.ceil(this.#visible) + 2);
    while (this.#rows.length < shown) this.#rows.push(this.#window.appendChild(element("div", { class: "row", role: "option" })));
    while (this.#rows.length > shown) this.#rows.pop()?.remove();
    const first = Math.floor(this.#top);
    const shift = this.#box.scrollTop - (this.#top - first) * this.#height;
    this.#window.style.transform = `translateY(${shift}px)`;
    /** @type {number[]} */
    const missing = [];
    // An element keeps its call while it is on screen, so that scrolling fills only the new rows.
    for (let at = 0; at < shown; at++) {
      const row = this.#rows[(first + at) % shown];
      row.style.top = `${at * this.#height}px`;
      this.#fillRow(row, first + at, missing);
    }
    const active = this.#rows.find((row) => Number(row.dataset.index) === this.chosen);
    if (active) this.#box.setAttribute("aria-activedescendant", active.id);
    else this.#box.removeAttribute("aria-activedescendant");
    if (missing.length) void this.#load(missing);
  }

  /**
   * @param {HTMLElement} element_
   * @param {number} index
   * @param {number[]} missing
   */
  #fillRow(element_, index, missing) {
    const position = this.positionAt(index);
    const { selection, facts } = this;
    element_.hidden = position < 0;
    if (!selection || !facts || position < 0) return;
    const { calls } = selection;
    const row = calls.order[position];
    const command = this.#commands.get(row);
    if (command === undefined) missing.push(row);
    const isChosen = index === this.chosen;
    const key = `${row}/${index}/${isChosen}/${command !== undefined}/${calls.verdict[row]}/${calls.flags[row]}/${this.length}`;
    if (element_.dataset.key === key) return;
    const verdict = VERDICTS[calls.verdict[row]] ?? VERDICTS[5];
    element_.dataset.key = key;
    element_.dataset.index = String(index);
    element_.id = `call-${index}`;
    element_.className = `row ${verdict.name}${isChosen ? " chosen" : ""}`;
    element_.setAttribute("aria-selected", String(isChosen));
    element_.setAttribute("aria-setsize", String(this.length));
    element_.setAttribute("aria-posinset", String(index + 1));
    const older = this.positionAt(index - 1);
    const date = day(calls.time[row]);
    const isNewDay = older < 0 || day(calls.timed.time[older]) !== date;
    const lane = facts.lanes[calls.lane[row]];
    fill(
      element_,
      element("time", { class: isNewDay ? "new" : null }, element("span", { class: "day" }, `${date} `), second(calls.time[row])),
      element("span", { class: "sign", title: verdict.word }, element("span", { "aria-hidden": "true" }, verdict.sign), element("span", { class: "unseen" }, verdict.word)),
      foreign(command ?? "…", { class: "command", most: LONGEST_COMMAND }),
      marks(calls.flags[row]),
      element("span", { class: "lane", title: lane?.label.slice(0, 200) }, foreign(lane?.label ?? "", { most: 60 })),
      element("span", { class: "took" }, duration(calls.hookMs[row])),
    );
  }

  /** @param {number[]} rows */
  async #load(rows) {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      const wanted = rows.slice(0, MOST_ASKED);
      const texts = await this.ask(wanted);
      if (this.#commands.size > MOST_KEPT) this.#commands.clear();
      wanted.forEach((row, at) => this.#commands.set(row, texts[at] ?? ""));
      this.draw();
    } catch {
      // The state of the connection is shown at the top; the next scrolling asks again.
    } finally {
      this.#isAsking = false;
    }
  }
}

/** @param {number} flags */
function marks(flags) {
  const words = [
    flags & REWRITTEN ? "rewritten" : "", flags & REDACTED ? "redacted" : "", flags & FAILED ? "hook failed" : "", flags & FILES ? "files" : "",
  ].filter(Boolean);
  return element("span", { class: "marks" }, ...words.map((word) => element("i", {}, word)));
}
