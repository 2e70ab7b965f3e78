/** The page: it puts the parts together, and carries a choice in one of them to the others. */

import { address, addressed } from "./address.js";
import { Calls } from "./calls.js";
import { LookCard } from "./card.js";
import { element, fill, foreign } from "./dom.js";
import { count, moment, number } from "./format.js";
import { LookHooks } from "./hooks_table.js";
import { LookKeys } from "./keys.js";
import { LookList } from "./list.js";
import { LookProjects } from "./projects.js";
import { LookRibbon } from "./ribbon.js";
import { Selection } from "./selection.js";
import { LookSentence, spanOf } from "./sentence.js";

/** @typedef {import("./shapes").DataSource} DataSource */
/** @typedef {import("./shapes").Summary} Summary */

// Milliseconds of rest after which a search begins, and after which a new span of time counts.
const [TYPING, MOVING] = [120, 90];
const ONE_DAY = 86_400_000;

export class LookApp extends HTMLElement {
  /** @type {DataSource | null} */
  source = null;
  /** @type {Summary | null} */
  #facts = null;
  #calls = new Calls();
  #selection = new Selection(this.#calls);
  #row = -1;
  #asked = 0;
  #timer = 0;
  /** Where the last days begin, with which the page begins. */
  #recent = 0;
  #sentence = new LookSentence();
  #ribbon = new LookRibbon();
  #list = new LookList();
  #card = new LookCard();
  #hooks = new LookHooks();
  #keys = new LookKeys();
  #projects = new LookProjects();
  #search = element("input", { type: "search", placeholder: "search all commands   /", "aria-label": "Search all commands", autocomplete: "off", spellcheck: "false" });
  #state = element("p", { class: "state", role: "status" });
  #found = element("p", { class: "found", role: "status" });
  #leftOut = element("details", { class: "left-out" });

  /** Load everything and show it. @param {DataSource} source */
  async begin(source) {
    this.source = source;
    this.#build();
    const [facts, columns] = await Promise.all([source.summary(), source.columns(0)]);
    this.#facts = facts;
    this.#calls.take(columns.header, columns.arrays);
    this.#list.facts = facts;
    this.#list.selection = this.#selection;
    this.#list.ask = (rows) => source.commands(rows);
    this.#ribbon.take(this.#selection, facts.lanes);
    const recent = Date.now() - facts.days * ONE_DAY;
    if (this.#calls.length && this.#calls.first < recent && this.#calls.last > recent) this.#ribbon.showSpan(recent, this.#calls.last);
    this.#recent = this.#ribbon.from;
    this.#select();
    this.#showLeftOut();
    await this.#openAddress();
    await this.#showHooks();
    source.listen((change) => void this.#changed(change), (words) => fill(this.#state, words));
  }

  #build() {
    const help = element("button", { type: "button", class: "help", "aria-label": "Keys", title: "Keys", on: { click: () => this.#keys.help() } }, "?");
    fill(
      this,
      element("header", { class: "top" }, element("h1", { class: "unseen" }, "Look: the work of your hooks"), this.#sentence, element("div", { class: "find" }, this.#projects, this.#search, help)),
      this.#state,
      element("main", {},
        element("section", { "aria-label": "All calls over time" }, this.#ribbon),
        element("div", { class: "found-line" }, this.#found, this.#leftOut),
        element("div", { class: "pair" }, element("section", { class: "many", "aria-label": "Calls" }, this.#list), element("section", { class: "one", "aria-label": "One call", tabindex: "0" }, this.#card)),
        element("section", { class: "hooks", "aria-label": "Hooks" }, this.#hooks),
      ),
      this.#keys,
    );
    this.#sentence.addEventListener("choose", (event) => this.#choose(detail(event)));
    this.#projects.addEventListener("choose", () => this.#select());
    this.#ribbon.addEventListener("span", () => this.#later(MOVING, () => this.#select()));
    this.#ribbon.addEventListener("jump", (event) => void this.#open(this.#list.length - 1 - detail(event), true));
    this.#list.addEventListener("open", (event) => void this.#open(detail(event)));
    this.#card.addEventListener("step", (event) => void this.#openRow(detail(event)));
    this.#card.addEventListener("back", () => this.#closeCard());
    this.#search.addEventListener("input", () => this.#later(TYPING, () => void this.#find()));
    addEventListener("hashchange", () => void this.#openAddress());
    this.#keys.take([
      { keys: ["j", "ArrowDown"], words: "the next call of the list", act: () => this.#step(1) },
      { keys: ["k", "ArrowUp"], words: "the call before", act: () => this.#step(-1) },
      { keys: ["f"], words: "forward to the next call that was stopped, asked about or changed", act: () => this.#notable(1) },
      { keys: ["b"], words: "back to the one before", act: () => this.#notable(-1) },
      { keys: ["Enter"], words: "read the card", act: () => this.#card.focusHead() },
      { keys: ["/"], words: "search all commands", act: () => this.#search.select() },
      { keys: ["ArrowLeft", "h"], words: "earlier", act: () => this.#ribbon.pan(-0.25) },
      { keys: ["ArrowRight", "l"], words: "later", act: () => this.#ribbon.pan(0.25) },
      { keys: ["+", "="], words: "zoom in", act: () => this.#ribbon.zoom(0.5) },
      { keys: ["-"], words: "zoom out", act: () => this.#ribbon.zoom(2) },
      { keys: ["0"], words: "all time", act: () => this.#ribbon.showAll() },
      { keys: ["Escape"], words: "all calls again; on a phone, the list", act: () => this.#escape() },
      { keys: ["?"], words: "these keys", act: () => this.#keys.help() },
    ]);
  }

  /** Do something after a rest; a new wish takes the place of the one before. @param {number} rest @param {() => void} act */
  #later(rest, act) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(act, rest);
  }

  /** Find the selected calls anew, and show them everywhere. */
  #select() {
    const facts = this.#facts;
    if (!facts) return;
    const ribbon = this.#ribbon;
    const isWhole = ribbon.isWhole;
    this.#selection.from = isWhole ? -Infinity : ribbon.from;
    this.#selection.to = isWhole ? Infinity : ribbon.to;
    this.#projects.show(facts.lanes, facts.here);
    this.#selection.project = this.#projects.chosen;
    this.#selection.update(facts.lanes);
    const isRecent = ribbon.from === this.#recent && ribbon.to >= this.#calls.last;
    const span = spanOf(ribbon.from, ribbon.to, isRecent || !this.#calls.length ? facts.days : 0, isWhole);
    this.#sentence.show({ span, counts: this.#selection.counts(facts.lanes), kind: this.#selection.kind });
    this.#list.show(this.#row);
    const limited = this.#selection.isLimited || !isWhole;
    fill(this.#found, limited ? `${count(this.#list.length, "call")} shown` : "");
    ribbon.draw();
  }

  /** @param {string} kind */
  #choose(kind) {
    this.#selection.kind = kind;
    if (!kind) {
      this.#search.value = "";
      this.#selection.found = null;
    }
    this.#select();
  }

  async #find() {
    const words = this.#search.value.trim();
    const asked = ++this.#asked;
    try {
      const found = words && this.source ? await this.source.search(words) : null;
      if (asked !== this.#asked) return;
      this.#selection.found = found && new Set(found);
      this.#select();
    } catch (error) {
      fill(this.#state, error instanceof Error ? error.message : "");
    }
  }

  /** Open a call of the list. @param {number} index @param {boolean} [centre] */
  async #open(index, centre = false) {
    const row = this.#list.rowAt(index);
    if (row < 0) return;
    if (centre) this.#list.centre(index);
    else this.#list.choose(index);
    this.#ribbon.choose(this.#list.positionAt(index));
    await this.#showCard(row);
  }

  /** Open a call by its row, also one that the selection leaves out. @param {number} row */
  async #openRow(row) {
    const index = this.#list.indexOf(row);
    if (index >= 0) await this.#open(index, true);
    else await this.#showCard(row);
  }

  /** @param {number} row */
  async #showCard(row) {
    this.#row = row;
    this.classList.add("reading");
    try {
      const card = await this.source?.card(row);
      // A person may have gone on before the answer came.
      if (!card || this.#row !== row) return;
      this.#card.show(card);
      this.#card.parentElement?.scrollTo(0, 0);
      address(card.id);
      document.title = `${card.command.slice(0, 60) || card.tool} · look`;
    } catch (error) {
      if (this.#row === row) this.#card.fail(error instanceof Error ? error.message : "the call cannot be shown");
    }
  }

  #closeCard() {
    this.classList.remove("reading");
    this.#list.focusList();
  }

  async #openAddress() {
    const id = addressed();
    if (!id || id === this.#card.card?.id) return;
    const row = await this.source?.row(id);
    if (row === null || row === undefined) this.#card.fail(`There is no call ${id.slice(0, 80)} here.`);
    else await this.#openRow(row);
  }

  /** @param {1 | -1} by */
  #step(by) {
    const index = this.#list.chosen < 0 ? 0 : this.#list.chosen + by;
    void this.#open(Math.max(0, Math.min(this.#list.length - 1, index)));
  }

  /** The list has the newest first, so that forward in time is up. @param {1 | -1} by */
  #notable(by) {
    const { length, chosen } = this.#list;
    const from = chosen < 0 ? (by > 0 ? -1 : length) : length - 1 - chosen;
    const found = this.#selection.notable(from, by);
    if (found >= 0) void this.#open(length - 1 - found, true);
  }

  #escape() {
    if (document.activeElement === this.#search) this.#search.blur();
    if (this.classList.contains("reading") && matchMedia("(max-width: 720px)").matches) this.#closeCard();
    else this.#choose("");
  }

  /** @param {import("./shapes").Change} change */
  async #changed(change) {
    const { source } = this;
    if (!source || !this.#facts || (change.version === this.#facts.version && change.total === this.#calls.rows)) return;
    const isNext = change.version === this.#facts.version + 1;
    const after = isNext ? Math.min(change.from, this.#calls.rows) : 0;
    const [facts, columns] = await Promise.all([source.summary(), source.columns(after)]);
    this.#facts = facts;
    this.#list.facts = facts;
    this.#calls.take(columns.header, columns.arrays);
    this.#list.forget(after);
    this.#ribbon.take(this.#selection, facts.lanes);
    this.#select();
    this.#showLeftOut();
    if (this.#row >= after) await this.#showCard(this.#row);
    await this.#showHooks();
  }

  async #showHooks() {
    if (this.source) this.#hooks.show(await this.source.hooks());
  }

  /** Say what is missing, and why. */
  #showLeftOut() {
    const left = this.#facts?.left_out ?? [];
    const saved = this.source?.saved;
    if (saved) fill(this.#state, `Saved ${moment(saved.at)}. ${saved.note}`);
    this.#leftOut.hidden = !left.length;
    fill(
      this.#leftOut,
      element("summary", {}, `${number(left.length)} left out`),
      element("ul", { tabindex: "0" }, ...left.slice(0, 200).map((each) => element("li", {}, foreign(each.what, { most: 300 }), ": ", foreign(each.why, { most: 300 }), each.place ? " (" : "", each.place ? foreign(each.place, { most: 300 }) : null, each.place ? ")" : ""))),
    );
  }
}

/** @param {Event} event @returns {any} */
const detail = (event) => (event instanceof CustomEvent ? event.detail : undefined);
