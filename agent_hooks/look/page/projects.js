/** The choice of a project: its calls alone are shown. At first it is the project in which the page was started. */

import { element, fill } from "./dom.js";

/** @typedef {import("./shapes").Lane} Lane */

export class LookProjects extends HTMLElement {
  #select = element("select", { "aria-label": "Project", on: { change: () => this.dispatchEvent(new CustomEvent("choose")) } });
  #shown = "";
  #isNew = true;

  /** The path of the chosen project, `""` for all. */
  get chosen() {
    return this.hidden ? "" : this.#select.value;
  }

  /**
   * Show the projects of the lanes, if there are several.
   * @param {readonly Lane[]} lanes
   * @param {string} here the project in which the page was started
   */
  show(lanes, here) {
    const projects = [...new Set(lanes.map((lane) => lane.project).filter(Boolean))];
    projects.sort((one, other) => Number(other === here) - Number(one === here) || last(one).localeCompare(last(other)) || one.localeCompare(other));
    this.hidden = projects.length < 2;
    if (this.#shown === projects.join("\0")) return;
    this.#shown = projects.join("\0");
    const chosen = this.#isNew ? here : this.#select.value;
    this.#isNew = false;
    const names = projects.map(last);
    fill(
      this.#select,
      element("option", { value: "" }, "all projects"),
      // Two projects of one name are told apart by their paths.
      ...projects.map((path) => element("option", { value: path, title: path }, (names.filter((name) => name === last(path)).length > 1 ? path : last(path)).slice(0, 80) + (path === here ? " (here)" : ""))),
    );
    this.#select.value = projects.includes(chosen) ? chosen : "";
    if (!this.contains(this.#select)) fill(this, this.#select);
  }
}

/** @param {string} path */
const last = (path) => path.replace(/\/+$/, "").split("/").pop() || path;
