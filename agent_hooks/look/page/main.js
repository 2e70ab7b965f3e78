/** The beginning: define the elements, get the data, and show the page, or the reason why there is none. */

import { LookApp } from "./app.js";
import { LookCard } from "./card.js";
import { element, fill, foreign } from "./dom.js";
import { LookHooks } from "./hooks_table.js";
import { LookKeys } from "./keys.js";
import { LookList } from "./list.js";
import { LookProjects } from "./projects.js";
import { LookRibbon } from "./ribbon.js";
import { LookSentence } from "./sentence.js";
import { bearer } from "./session.js";
import { LiveSource } from "./source_live.js";
import { SavedSource, savedData } from "./source_saved.js";

customElements.define("look-sentence", LookSentence);
customElements.define("look-ribbon", LookRibbon);
customElements.define("look-list", LookList);
customElements.define("look-card", LookCard);
customElements.define("look-hooks", LookHooks);
customElements.define("look-keys", LookKeys);
customElements.define("look-projects", LookProjects);
customElements.define("look-app", LookApp);

const app = new LookApp();
// Read before the page takes the place of the document's contents.
const data = savedData();
fill(document.body, app);
try {
  await app.begin(data ? new SavedSource(data) : new LiveSource(await bearer()));
} catch (error) {
  fill(app, element("main", { class: "refused" }, element("h1", {}, "Look"), element("p", { role: "alert" }, foreign(error instanceof Error ? error.message : String(error), { most: 500 }))));
}
