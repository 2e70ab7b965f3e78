/** The data of the server, asked for with the bearer token; news come as server-sent events, read by `fetch`. */

import { encoded } from "./address.js";
import { NoAccess } from "./session.js";

/** @typedef {import("./shapes").DataSource} DataSource */
/** @typedef {import("./shapes").Change} Change */

// Milliseconds between two attempts to listen.
const AGAIN = 2000;

/** @implements {DataSource} */
export class LiveSource {
  /** @param {string} token */
  constructor(token) {
    this.headers = { Authorization: `Bearer ${token}` };
    /** @type {import("./shapes").SavedFacts | null} */
    this.saved = null;
  }

  /** @param {string} path */
  async #ask(path) {
    const response = await fetch(`/api/${path}`, { headers: this.headers });
    if (response.status === 401) throw new NoAccess((await response.text()).trim());
    if (!response.ok) throw new Error((await response.text()).trim());
    return response;
  }

  /** @param {string} path */
  async #json(path) {
    return (await this.#ask(path)).json();
  }

  summary() {
    return this.#json("summary");
  }

  /** @param {number} after */
  async columns(after) {
    const buffer = await (await this.#ask(`columns?after=${after}`)).arrayBuffer();
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    // The offsets count from the end of the header, which is at a multiple of eight.
    return { header: { ...header, begin: 4 + length }, arrays: buffer };
  }

  /** @param {number[]} rows */
  commands(rows) {
    return this.#json(`commands?rows=${rows.join(",")}`);
  }

  /** @param {string} text */
  search(text) {
    return this.#json(`search?q=${encoded(text)}`);
  }

  /** @param {number} row */
  card(row) {
    return this.#json(`card/${row}`);
  }

  /** @param {string} id */
  row(id) {
    return this.#json(`row/${encoded(id)}`);
  }

  hooks() {
    return this.#json("hooks");
  }

  /**
   * Listen for changes for as long as the page is open; the state is empty while the connection stands.
   * @param {(change: Change) => void} onChange
   * @param {(state: string) => void} onState
   */
  async listen(onChange, onState) {
    for (;;) {
      try {
        const response = await this.#ask("live");
        onState("");
        if (response.body) await readEvents(response.body, onChange);
      } catch (error) {
        if (error instanceof NoAccess) {
          onState(error.message);
          return;
        }
      }
      onState("the server has ended; the page shows its last state. Run agent-hooks look again");
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {(change: Change) => void} onChange
 */
async function readEvents(body, onChange) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event);
      if (data) onChange(JSON.parse(data[1]));
    }
  }
}
