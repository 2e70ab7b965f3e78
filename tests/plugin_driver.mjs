// Stands for an agent that has loaded a plugin: `node plugin_driver.mjs PLUGIN AGENT`.
//
// Each line of stdin is a call of a hook: {"hook", "event", "output", "says", "stopped", "odd"}. Each line of stdout is its
// outcome: {"value", "error", "event", "output", "notes", "asked", "prompts"}. `says`: the person's answer to a question;
// `stopped`: the person has stopped the agent, or stops it when a file of that name is there; `odd`: the values to put into the event that JSON cannot hold.
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const [plugin, agent] = process.argv.slice(2);
const module = await import(plugin);
const handlers = {};
const directory = process.cwd();
let notes = [];
let asked = [];
let prompts = [];
let says = null;
let signal;

const ui = {
  notify: (text) => notes.push(text),
  confirm: async (title, message) => {
    asked.push([title, message]);
    if (says === "throw") throw new Error("the screen is gone");
    return says;
  },
};
const client = {
  tui: { showToast: async ({ body }) => notes.push(body.message) },
  session: {
    get: async ({ path }) => ({ data: { id: path.id, parentID: path.id.startsWith("sub") ? "main" : undefined } }),
    promptAsync: async ({ body }) => prompts.push(body.parts[0].text),
  },
};
console.error = (text) => notes.push(text);

// Puts values into an event that JSON cannot hold.
const odd = (event, kinds) => {
  const held = event.input ?? event.args ?? event.params ?? event;
  if (kinds.includes("cycle")) held.self = held;
  if (kinds.includes("function")) held.run = () => 1;
  if (kinds.includes("bigint")) held.big = 2n ** 70n;
  if (kinds.includes("shared")) held.one = held.other = { shared: true };
  if (kinds.includes("large")) held.large = "x".repeat(50 * 1024 * 1024);
};

const connect = async () => {
  if (agent === "pi") {
    const session = { getSessionId: () => "main", getSessionFile: () => null };
    const context = () => ({ cwd: directory, hasUI: says !== null, ui, sessionManager: session, signal });
    module.default({ on: (name, handler) => (handlers[name] = (event) => handler({ type: name, ...event }, context())) });
  } else if (agent === "opencode") {
    Object.assign(handlers, await module.AgentHooks({ client, directory, worktree: directory }));
  } else {
    const context = { sessionKey: "main", sessionId: "main", workspaceDir: directory, runId: "run" };
    const on = (name, handler) => (handlers[name] = (event, output) => handler(event, { ...context, ...output }));
    module.default.register({ on, logger: { warn: (text) => notes.push(text) } });
  }
};

await connect();
for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  notes = [];
  asked = [];
  prompts = [];
  says = call.says ?? null;
  const person = new AbortController();
  signal = call.stopped ? person.signal : undefined;
  if (call.stopped === true) person.abort();
  const watch = setInterval(() => typeof call.stopped === "string" && existsSync(call.stopped) && person.abort(), 10);
  odd(call.event, call.odd ?? []);
  const outcome = {};
  try {
    outcome.value = await handlers[call.hook](call.event, call.output);
  } catch (error) {
    outcome.error = error.message;
  }
  clearInterval(watch);
  const seen = (call.odd ?? []).length ? null : call.event;
  console.log(JSON.stringify({ ...outcome, event: seen, output: call.output, notes, asked, prompts }));
}
process.exit(0);
