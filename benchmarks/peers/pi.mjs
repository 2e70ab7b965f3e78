// pi 0.27.9: its hook runner and its wrapped tool, with its timers of 30 s.  Arguments: the directory of node_modules,
// and --quick.  Prints the medians in seconds of processor time as one JSON object.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = join(resolve(process.argv[2]), "node_modules/@mariozechner/pi-coding-agent");
const load = (path) => import(pathToFileURL(join(root, "dist/core/hooks", path)).href);
const { HookRunner } = await load("runner.js");
const { wrapToolWithHooks } = await load("tool-wrapper.js");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const quick = process.argv.includes("--quick");
const [rounds, seconds] = quick ? [7, 0.003] : [41, 0.02];

const nothing = async () => undefined;
const result = { content: [{ type: "text", text: "done" }], details: undefined };
const tool = { name: "bash", execute: async () => result };
const event = { type: "turn_end", turnIndex: 0, message: {}, toolResults: [] };

function runnerWith(count, ...events) {
  const hook = { path: "bench.ts", handlers: new Map(events.map((name) => [name, Array(count).fill(nothing)])) };
  return new HookRunner([hook], ".");
}

const sides = { floor: nothing };
for (const count of [1, 10]) {
  const runner = runnerWith(count, "turn_end");
  sides[`dispatch ${count}`] = () => runner.emit(event);
  const wrapped = wrapToolWithHooks(tool, runnerWith(count, "tool_call", "tool_result"));
  sides[`tool ${count}`] = () => wrapped.execute("1", { command: "ls" });
}

async function time(call, loops) {
  const begin = process.cpuUsage();
  for (let i = 0; i < loops; i++) await call();
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1e6;
}

const loops = {};
const times = {};
for (const [name, call] of Object.entries(sides)) {
  await time(call, 2000); // the compiler's warm-up
  loops[name] = Math.max(1, Math.round((seconds * 1000) / (await time(call, 1000))));
  times[name] = [];
}
for (let round = 0; round < rounds; round++)
  for (const [name, call] of Object.entries(sides)) times[name].push((await time(call, loops[name])) / loops[name]);

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const kinds = {};
for (const [name, values] of Object.entries(times)) {
  const [kind, count] = name.split(" ");
  if (count) (kinds[kind] ??= {})[count] = median(values);
}
console.log(JSON.stringify({ version: `pi ${version}`, floor: median(times.floor), ...kinds }));
process.exit(0);
