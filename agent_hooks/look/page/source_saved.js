/**
 * The data of a saved file: one JSON text in the document, with its larger parts as compressed bytes in base 64.
 *
 * `columns` holds all calls, `commands` blocks of lines, and `cards` blocks of the newest cards. A block is unpacked when a
 * person looks at it.
 */

/** @typedef {import("./shapes").DataSource} DataSource */
/** @typedef {import("./shapes").Card} Card */
/** @typedef {import("./shapes").Summary} Summary */
/** @typedef {import("./shapes").Hook} Hook */
/** @typedef {import("./shapes").Header} Header */
/**
 * @typedef {{
 *   saved: import("./shapes").SavedFacts, summary: Summary, hooks: Hook[], header: Header, columns: string,
 *   block: number, commands: string[], cardBlock: number, cardRows: number[], cards: string[], ids: Record<string, number>
 * }} Data
 */

const MOST_FOUND = 10_000;

/**
 * Return the data of this document, if it is a saved file.
 * @returns {Data | null}
 */
export function savedData() {
  const found = document.getElementById("data");
  return found?.textContent ? JSON.parse(found.textContent) : null;
}

/** @implements {DataSource} */
export class SavedSource {
  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    this.saved = data.saved;
    /** @type {Map<string, Promise<any>>} */
    this.open = new Map();
    this.at = new Map(data.cardRows.map((row, at) => [row, at]));
  }

  async summary() {
    return this.data.summary;
  }

  async columns() {
    return { header: this.data.header, arrays: await bytesOf(this.data.columns) };
  }

  /**
   * @param {string} name
   * @param {string} packed
   */
  #unpacked(name, packed) {
    const known = this.open.get(name);
    if (known) return known;
    const made = bytesOf(packed).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
    this.open.set(name, made);
    return made;
  }

  /**
   * @param {number} block
   * @returns {Promise<string[]>}
   */
  #lines(block) {
    return this.#unpacked(`lines ${block}`, this.data.commands[block]);
  }

  /** @param {number[]} rows */
  async commands(rows) {
    const { block } = this.data;
    return Promise.all(rows.map(async (row) => (await this.#lines(Math.floor(row / block)))[row % block] ?? ""));
  }

  /** @param {string} text */
  async search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (let block = this.data.commands.length - 1; block >= 0; block--) {
      const lines = await this.#lines(block);
      for (let at = lines.length - 1; at >= 0; at--) {
        const line = lines[at].toLowerCase();
        if (words.every((word) => line.includes(word)) && found.push(block * this.data.block + at) >= MOST_FOUND) return found;
      }
    }
    return found;
  }

  /**
   * @param {number} row
   * @returns {Promise<Card>}
   */
  async card(row) {
    const at = this.at.get(row);
    if (at === undefined) throw new Error(`The file holds the cards of the newest ${this.saved.cards} calls; this one is older. Run agent-hooks look to see it.`);
    const cards = await this.#unpacked(`cards ${Math.floor(at / this.data.cardBlock)}`, this.data.cards[Math.floor(at / this.data.cardBlock)]);
    return cards[at % this.data.cardBlock];
  }

  /** @param {string} id */
  async row(id) {
    return Object.hasOwn(this.data.ids, id) ? this.data.ids[id] : null;
  }

  async hooks() {
    return this.data.hooks;
  }

  /** A file has no news. */
  listen() {}
}

/**
 * Unpack bytes.
 * @param {string} packed gzip in base 64
 * @returns {Promise<ArrayBuffer>}
 */
async function bytesOf(packed) {
  const bytes = Uint8Array.from(atob(packed), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
