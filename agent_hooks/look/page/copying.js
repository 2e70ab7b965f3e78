/** A command for copying. The page runs nothing. */

import { element, foreign } from "./dom.js";

// Milliseconds for which the button says that it has copied.
const SAID = 1600;

/**
 * Return a command with its button.
 * @param {string} command
 * @param {string} label what the command does, for screen readers
 */
export function copyable(command, label) {
  const code = foreign(command, { tag: "code", class: "copied" });
  const button = element("button", { type: "button", class: "copy", "aria-label": `Copy: ${label}` }, "copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copy(command, code)) ? "copied" : "select it and press Ctrl-C";
    setTimeout(() => (button.textContent = "copy"), SAID);
  });
  return element("div", { class: "copyable" }, code, button);
}

/**
 * @param {string} text
 * @param {Element} shown
 */
async function copy(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A browser may forbid the clipboard; then the text is selected, for the person's own key.
    getSelection()?.selectAllChildren(shown);
    return false;
  }
}
