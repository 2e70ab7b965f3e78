/** Make elements out of names and texts. Texts of others become text nodes only, never markup. */

// Characters that are invisible, control a terminal, or turn the direction of writing.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const ODD_RUN = new RegExp(`${ODD.source}+`, "g");

/** The most characters of one text in the page; a browser needs seconds to lay out more. */
export const LONGEST = 20_000;
// The most marks in one text; further odd characters are counted.
const MOST_MARKS = 400;

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {{class?: string | null, on?: Record<string, (event: any) => void>, [name: string]: any}} Properties
 */

/**
 * Make an element. A property is an attribute, except `on` for listeners; `false` and `null` leave it out.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(key, value === true ? "" : String(value));
    }
  }
  add(made, ...children);
  return made;
}

/**
 * Append nodes and texts to an element.
 * @param {Node} parent
 * @param {...Child} children
 */
export function add(parent, ...children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replace the contents of an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, ...children);
}

/**
 * Show a text of others: isolated from the direction of its surroundings, its odd characters as visible marks, and cut.
 * @param {string} text
 * @param {{class?: string, most?: number, tag?: "bdi" | "code" | "pre" | "span"}} [options]
 */
export function foreign(text, options = {}) {
  const most = options.most ?? LONGEST;
  const shown = element(options.tag ?? "bdi", { class: `foreign ${options.class ?? ""}`.trim() });
  add(shown, marked(whole(text, most)));
  if (text.length > most) {
    add(shown, element("span", { class: "cut" }, ` … ${(text.length - most).toLocaleString("en")} more characters`));
  }
  return shown;
}

/**
 * Cut a text without halving a character.
 * @param {string} text
 * @param {number} most
 */
function whole(text, most) {
  const cut = text.slice(0, most);
  return /[\ud800-\udbff]$/.test(cut) && text.length > most ? cut.slice(0, -1) : cut;
}

/**
 * Return the text as nodes, with a mark for each run of odd characters.
 * @param {string} text
 */
function marked(text) {
  const nodes = document.createDocumentFragment();
  if (!ODD.test(text)) {
    add(nodes, text);
    return nodes;
  }
  let end = 0;
  let marks = 0;
  for (const match of text.matchAll(ODD_RUN)) {
    if (++marks > MOST_MARKS) break;
    add(nodes, text.slice(end, match.index), mark(match[0]));
    end = match.index + match[0].length;
  }
  add(nodes, text.slice(end).replace(ODD_RUN, "\ufffd"));
  return nodes;
}

/** @param {string} characters */
function mark(characters) {
  const names = Array.from(characters.slice(0, 8), (each) => (each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, "0"));
  const more = characters.length > 8 ? `+${characters.length - 8}` : "";
  return element("span", { class: "odd", title: "invisible or control characters, shown by number" }, names.join(" ") + more);
}

/**
 * Return an element of the page that must be there.
 * @template {Element} Kind
 * @param {ParentNode} parent
 * @param {string} selector
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function find(parent, selector, kind) {
  const found = parent.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`the page has no ${selector}`);
  return found;
}
