/** The tokens: the start token of the address is exchanged once for a bearer token, which stays in this tab. */

const KEY = "agent-hooks-look";

/** The token is missing or refused; the text has the remedy. */
export class NoAccess extends Error {}

/**
 * Return the bearer token of this tab.
 * @returns {Promise<string>}
 */
export async function bearer() {
  const start = /^#start=([\w-]+)$/.exec(location.hash);
  if (start) {
    // The address that a person sees, copies and keeps has no token in it.
    history.replaceState(null, "", location.pathname);
    const response = await fetch("/start", { method: "POST", body: start[1] });
    if (response.ok) sessionStorage.setItem(KEY, (await response.json()).bearer);
    else if (sessionStorage.getItem(KEY) === null) throw new NoAccess((await response.text()).trim());
  }
  const kept = sessionStorage.getItem(KEY);
  if (kept === null) throw new NoAccess("this tab has no token; run agent-hooks look again, or reload the tab that it opened");
  return kept;
}
