/** The keys of the page, as one table, and the dialog that shows them. */

import { element, fill } from "./dom.js";

/** @typedef {{keys: string[], words: string, act: () => void}} Key */

export class LookKeys extends HTMLElement {
  /** @type {readonly Key[]} */
  #table = [];
  #dialog = element("dialog", { "aria-label": "Keys" });

  connectedCallback() {
    fill(this, this.#dialog);
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** @param {readonly Key[]} table */
  take(table) {
    this.#table = table;
  }

  /** Show the table. */
  help() {
    fill(
      this.#dialog,
      element("h2", {}, "Keys"),
      element("dl", {}, ...this.#table.flatMap((row) => [element("dt", {}, ...row.keys.map((key) => element("kbd", {}, key))), element("dd", {}, row.words)])),
      element("p", { class: "quiet" }, "In the ribbon: drag to zoom, click to jump, Ctrl and wheel to zoom, wheel sideways to move."),
      element("form", { method: "dialog" }, element("button", {}, "close")),
    );
    this.#dialog.showModal();
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || this.#dialog.open) return;
    const target = event.target instanceof Element ? event.target : null;
    const types = target?.closest("input, textarea, select");
    if (types && event.key !== "Escape" && event.key !== "Enter") return;
    if (event.key === "Enter" && target?.closest("button, a, summary")) return;
    const row = this.#table.find((each) => each.keys.includes(event.key));
    if (!row) return;
    event.preventDefault();
    row.act();
  }
}
