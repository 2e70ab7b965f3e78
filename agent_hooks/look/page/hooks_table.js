/** The hooks: how often each judged, stopped, asked and failed, and its time. */

import { element, fill, foreign } from "./dom.js";
import { day, duration, number } from "./format.js";

/** @typedef {import("./shapes").Hook} Hook */

export class LookHooks extends HTMLElement {
  /** @param {readonly Hook[]} hooks */
  show(hooks) {
    const heads = ["hook", "judged", "stopped", "asked", "changed", "failed", "too slow", "p50", "p99", "last"];
    /** @param {number} value @param {string} [tone] */
    const cell = (value, tone) => element("td", { class: value ? tone : "zero" }, number(value));
    // Two projects may have a hook of one name, and an approved copy judges where its file was changed.
    const isTwice = (/** @type {Hook} */ hook) => hooks.some((other) => other !== hook && other.hook === hook.hook);
    const rows = hooks.map((hook) =>
      element(
        "tr", { class: hook.neverRan ? "never" : null },
        element("th", { scope: "row" }, foreign(hook.hook, { most: 200 }), hook.gone ? element("span", { class: "gone" }, "gone") : null, hook.neverRan ? element("span", { class: "gone" }, "never ran") : null, hook.file && isTwice(hook) ? element("div", { class: "place" }, foreign(hook.file, { most: 300 })) : null),
        cell(hook.judged), cell(hook.stopped, "block"), cell(hook.asked, "ask"), cell(hook.rewrote), cell(hook.failed, "failing"), cell(hook.timedOut, "failing"),
        element("td", {}, duration(hook.p50)), element("td", {}, duration(hook.p99)), element("td", {}, hook.last === null ? "" : day(hook.last - 1)),
      ),
    );
    fill(
      this,
      element("h2", {}, "Hooks"),
      hooks.length
        ? element(
            "div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Numbers of the hooks" },
            element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, ...rows)),
          )
        : element("p", { class: "quiet" }, "No hook has judged a call yet."),
    );
  }
}
