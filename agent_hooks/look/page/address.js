/** The address of a call: the part behind `#`, so that a link leads to it, and no server sees it. */

/** The id that the address names, or `""`. */
export function addressed() {
  const match = /^#call=(.+)$/.exec(location.hash);
  try {
    return match ? decodeURIComponent(match[1]) : "";
  } catch {
    return "";
  }
}

/**
 * Put a call into the address, without a step in the history for each.
 * @param {string} id
 */
export function address(id) {
  const hash = id ? `#call=${encoded(id)}` : " ";
  if (location.hash !== hash) history.replaceState(null, "", id ? hash : location.pathname);
}

/**
 * Return a text as a part of an address; half of a character has no place there.
 * @param {string} text
 */
export function encoded(text) {
  return encodeURIComponent(text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd"));
}
