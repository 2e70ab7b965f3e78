// The link from a plugin to the resident server of agent_hooks, which judges each event.
//
// This text is a part of a generated file (see plugin_file.py), between the facts of the installation, KNOWN, and the part
// of one agent.  The link finds the server by the name of its socket.  If no server is there, the installed Python client
// starts one, as it does for agents that run a command.  A gate without an answer is refused, with the reason.
import { spawn } from "node:child_process";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { lstatSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";

// The operations that an answer can hold; an answer with any other key is of another version.
const OPERATIONS = new Set(["throw", "return", "assign", "ask", "prompt", "later", "stop", "notes"]);
// The place of the reason in a refusal.
const REASON = "@reason@";

// An event was not judged. `sent`: the server may have begun to judge it, so that a gate must not be asked again.
class Unjudged extends Error {
  constructor(reason, sent = false) {
    super(reason);
    this.sent = sent;
  }
}

// ---- the place of the server

const digest = (...texts) => createHash("sha256").update(texts.join("\0")).digest("hex");

// Returns the directory of this user's servers.
const directory = () => `/tmp/agent-hooks-${process.getuid()}`;

// Returns the path of a project's server, without a suffix; client.py computes the same.
const place = (project) => {
  if (!places.has(project)) {
    const name = `${digest(KNOWN.home, KNOWN.user).slice(0, 16)}-${digest(project, KNOWN.hello).slice(0, 32)}`;
    places.set(project, `${directory()}/${name}`);
  }
  return places.get(project);
};
const places = new Map();

// Another user could listen in a directory that is not private.
const isPrivate = (path) => {
  try {
    const state = lstatSync(path);
    return state.isDirectory() && (state.mode & 0o77) === 0 && state.uid === process.getuid();
  } catch {
    return false;
  }
};

// Returns the key by which the server signs its answers; client.py checks the same.
const key = () => {
  const path = `${KNOWN.home}/server.key`;
  const state = lstatSync(path);
  const found = state.isFile() && (state.mode & 0o77) === 0 && state.uid === process.getuid() ? readFileSync(path) : "";
  if (found.length !== 32) throw new Unjudged(`${path} is not a private file with a key: remove it`);
  return found;
};

// Returns the signature of an answer, a line with its end, to a request without the end of its line.
const signature = (secret, request, answer) =>
  createHmac("sha256", secret).update(createHash("sha256").update(request).digest()).update(answer).digest("hex");

// ---- one event

const starting = new Map();

// Starts the server of a project, once for all events that wait for it, and returns the path of its socket.
const started = (project, variables) => {
  if (!starting.has(project)) {
    const start = startedNow(project, variables).finally(() => starting.delete(project));
    starting.set(project, start);
  }
  return starting.get(project);
};

const startedNow = (project, variables) =>
  new Promise((resolve, reject) => {
    const [program, ...args] = KNOWN.client;
    const environment = { ...process.env, ...variables };
    const options = { cwd: project, env: environment, stdio: ["ignore", "pipe", "ignore"] };
    const child = spawn(program, [...args, "--place"], options);
    // The option `timeout` of spawn would keep Node alive for that long after a program that cannot be started.
    const clock = setTimeout(() => child.kill(), 2000 * KNOWN.start);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (data) => (text += data));
    child.on("error", (error) => {
      clearTimeout(clock);
      reject(new Unjudged(`${program} cannot be started: ${error.message}`));
    });
    child.on("close", (code) => {
      clearTimeout(clock);
      if (code === 0 && text.trim()) return resolve(text.trim());
      const reason = code === 0 ? "see agent-hooks serve --log" : `${args.at(-1)} ended with exit code ${code}`;
      reject(new Unjudged(`no server could be started: ${reason}`));
    });
  });

// Sends one line to the server and returns its answer.
const answered = (path, line, seconds, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect(path);
    let pieces = [];
    let greeted = false;
    const end = (error, value) => {
      clearTimeout(clock);
      signal?.removeEventListener?.("abort", abort);
      socket.destroy();
      if (error) reject(new Unjudged(error, greeted));
      else resolve(value);
    };
    const abort = () => end("the agent has cancelled it");
    let clock = setTimeout(() => end("the server does not answer: agent-hooks serve --log"), 1000 * KNOWN.patience);
    signal?.addEventListener?.("abort", abort);
    if (signal?.aborted) return abort();
    socket.on("error", (error) => end(error.message));
    socket.on("close", () => end("the server ended while it judged this: agent-hooks serve --log"));
    socket.on("connect", () => socket.write(line));
    socket.on("data", (data) => {
      pieces.push(data);
      // The server's first line is its version, and comes at once.
      if (!greeted && data.includes(10)) {
        const all = Buffer.concat(pieces);
        const hello = all.subarray(0, all.indexOf(10) + 1).toString();
        if (hello !== KNOWN.hello) return end(`another version serves here (${hello.trim()}); to mend it: ${KNOWN.install}`);
        greeted = true;
        pieces = [all.subarray(hello.length)];
        clearTimeout(clock);
        clock = setTimeout(() => end("the server did not answer in time: agent-hooks serve --log"), 1000 * seconds);
      }
      if (greeted && pieces.at(-1).at(-1) === 10) end(null, Buffer.concat(pieces).toString());
    });
  });

// Returns the operations in an answer of the server: [exit code, operations], or {"error": reason}.
const operations = (answer) => {
  let value;
  try {
    value = JSON.parse(answer);
  } catch {
    throw new Unjudged("the server's answer is no JSON", true);
  }
  const found = Array.isArray(value) ? value[1] : null;
  if (!found || typeof found !== "object" || Array.isArray(found)) {
    throw new Unjudged(typeof value?.error === "string" ? value.error : "the server's answer has another form", true);
  }
  const other = Object.keys(found).find((name) => !OPERATIONS.has(name));
  if (other !== undefined) throw new Unjudged(`the server's answer has a ${other}; to mend it: ${KNOWN.install}`, true);
  return found;
};

const judged = async (hook, project, payload, { attended, signal }) => {
  const [seconds] = known(hook);
  const text = plain(payload);
  const size = Buffer.byteLength(text);
  if (size > KNOWN.limit) throw new Unjudged(`the payload is larger than ${KNOWN.limit >> 20} MiB`);
  const variables = {
    AGENT_HOOKS_PROJECT: project,
    AGENT_HOOKS_PID: String(process.pid),
    AGENT_HOOKS_ATTENDED: attended ? "1" : "0",
  };
  const nonce = randomBytes(16).toString("hex");
  const head = `[{"nonce": "${nonce}", ${KNOWN.request.slice(2)}${JSON.stringify(hook)}`;
  const request = `${head}, "environment": ${JSON.stringify(variables)}}, ${text}]`;
  const isGate = KNOWN.gates.includes(hook);
  let path = isPrivate(directory()) ? `${place(project)}.socket` : await started(project, variables);
  for (let tries = 0; ; tries++) {
    try {
      const secret = key();
      const line = await answered(path, `${request}\n`, seconds, signal);
      const answer = line.slice(line.indexOf(" ") + 1);
      if (line !== `${signature(secret, request, answer)} ${answer}`) {
        throw new Unjudged(`another program answers in the server's place: find it, and remove ${path}`, true);
      }
      return operations(answer);
    } catch (error) {
      // Hooks that ran once must not run again for a gate.  A result is judged again, because it may hold a secret.
      if (tries > 0 || signal?.aborted || (error.sent && isGate)) throw error;
      path = await started(project, variables);
    }
  }
};

// Returns the time for an event in seconds, and its refusal.
const known = (hook) => KNOWN.events[hook] ?? KNOWN.events[""];

// The texts for the model that wait for the next result or prompt of their session.
const kept = new Map();

// Returns the operations for one event.  `payload`: {hook, event, session, parent, directory}.
//
// A failure is a refusal in the form of its event, which the installation has written down.
const ask = async (hook, project, payload, options = {}) => {
  const session = payload.parent ?? payload.session;
  const later = KNOWN.later.includes(hook) ? kept.get(session) : undefined;
  if (later !== undefined) kept.delete(session);
  try {
    const answer = await judged(hook, project, later === undefined ? payload : { ...payload, later }, options);
    if (answer.later !== undefined) kept.set(session, [kept.get(session), answer.later].filter(Boolean).join("\n\n"));
    return answer;
  } catch (error) {
    if (later !== undefined) kept.set(session, later);
    const reason = JSON.stringify(`${error.message}; ${KNOWN.remedy}`).slice(1, -1);
    return JSON.parse(known(hook)[1].replaceAll(REASON, () => reason));
  }
};

// ---- values

// Returns a value as JSON, without functions and without objects inside of themselves, as plain data.
const plain = (value) => {
  const outer = [];
  return JSON.stringify(value, function (key, found) {
    // JSON.stringify calls this with the object that holds the value; the objects above it are those that lead here.
    while (outer.length && outer.at(-1) !== this) outer.pop();
    if (typeof found === "bigint") return String(found);
    if (!found || typeof found !== "object") return found;
    if (outer.includes(found)) return undefined;
    outer.push(found);
    return found;
  });
};

// Puts the values of `source` into `target`, which stays the same object, and removes all others.
const replaceAll = (target, source) => {
  for (const name of Object.keys(target)) if (!Object.hasOwn(source, name)) delete target[name];
  for (const [name, value] of Object.entries(source)) {
    // An assignment to __proto__ would change the kind of the object.
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
  }
};

// ---- the sign of life

// Writes down that this plugin was loaded, or the error with which it failed to load; agent-hooks doctor reads it.
const beat = (error) => {
  try {
    const life = { version: KNOWN.version, time: Date.now() / 1000, pid: process.pid, file: KNOWN.file, error: error ?? null };
    writeFileSync(`${KNOWN.heartbeat}.${process.pid}`, JSON.stringify(life), { mode: 0o600 });
    renameSync(`${KNOWN.heartbeat}.${process.pid}`, KNOWN.heartbeat);
  } catch {
    // A missing sign of life is a finding of doctor.
  }
};

// Runs the part of a plugin that connects it with its agent.
const loaded = (connected) => {
  try {
    const value = connected();
    beat();
    return value;
  } catch (error) {
    beat(String(error?.stack ?? error));
    throw error;
  }
};

// ---- by hand

// `node FILE EVENT < PAYLOAD` prints the answer, by the same way as in the agent.
const byHand = () => {
  let here;
  try {
    here = process.argv[1] !== undefined && realpathSync(process.argv[1]) === realpathSync(fileURLToPath(import.meta.url));
  } catch {
    here = false;
  }
  if (here) {
    const payload = JSON.parse(readFileSync(0, "utf8"));
    ask(process.argv[2], process.cwd(), payload).then((answer) => console.log(JSON.stringify(answer)));
  }
};
byHand();
