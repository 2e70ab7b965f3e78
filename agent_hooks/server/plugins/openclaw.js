// The part for OpenClaw: each typed hook goes to the server with its event, without the conversation.
import { createRequire } from "node:module";

const LARGE = new Set(["messages", "systemPrompt", "historyMessages", "abortSignal", "config"]);
// The hooks that ask about a prompt: the first takes a text for the model, and the second can stop the run.
const PROMPTS = ["before_prompt_build", "before_agent_run"];
// OpenClaw's own hook runner, which a gateway and `openclaw agent --local` start with the plugins.
const RUNNER = Symbol.for("openclaw.plugins.hook-runner-global-state");
// This handler is the last one, because OpenClaw runs a call with the last rewrite.
const LAST = -1_000_000;

// Starts OpenClaw's hook runner where OpenClaw loads plugins and calls no hook of theirs: `openclaw chat` is such a place.
// The runner finds the hooks by the plugins of each run.  Each run comes later than this call, which waits for nothing.
const startRunner = (api) => {
  if (api.registrationMode !== "discovery" || globalThis[RUNNER]?.hookRunner) return;
  try {
    const require = createRequire(realpathSync(process.argv[1]));
    require("openclaw/plugin-sdk/hook-runtime").initializeGlobalHookRunner({ hooks: [], typedHooks: [], plugins: [], trustedToolPolicies: [] });
  } catch (error) {
    throw new Error(`this version of OpenClaw calls no hooks in \`openclaw chat\`; work with \`openclaw agent\` instead: ${error.message}`);
  }
};

const connectOpenClaw = (api) => {
  startRunner(api);
  // `openclaw agent` has no surface on which a person could answer.
  const isAttended = process.argv[2] !== "agent";
  // The session that started a sub-agent's session, by the key of each.
  const parents = new Map();
  const sessions = new Map();
  // The answers to the prompts of the runs that go on.
  const prompts = new Map();
  const turns = new Map();
  // The calls that may run, and have no result yet.
  const calls = new Set();
  // The calls of the runs that go on whose end was reported: OpenClaw reports that of `sessions_spawn` twice.
  const ended = new Set();
  // Observers do not wait for an answer.  Each event waits for those before it, so that the server gets them in order.
  let before = Promise.resolve();

  const rootOf = (key) => {
    let root = parents.get(key) ?? null;
    for (let above = root; above; above = parents.get(above)) root = above;
    return root;
  };

  const judge = async (hook, event, ctx) => {
    const key = ctx.sessionKey ?? event.sessionKey ?? null;
    const session = ctx.sessionId ?? event.sessionId ?? sessions.get(key) ?? key;
    if (key && session) sessions.set(key, session);
    const root = rootOf(key);
    const directory = ctx.workspaceDir ?? api.config?.agents?.defaults?.workspace ?? process.cwd();
    const facts = Object.fromEntries(Object.entries(event).filter(([name]) => !LARGE.has(name)));
    const parent = root && (sessions.get(root) ?? root);
    const payload = { hook, event: facts, session, parent, directory };
    const answer = await ask(hook, directory, payload, { attended: isAttended, signal: ctx.abortSignal });
    for (const text of Object.values(answer.notes ?? {})) api.logger.warn(`agent_hooks: ${text}`);
    if (answer.throw !== undefined) throw new Error(answer.throw);
    return answer.return;
  };

  // Returns the answer to an event after those before it.
  const inOrder = (hook, event, ctx) => {
    const answer = before.then(() => judge(hook, event, ctx));
    before = answer.catch(() => {});
    return answer;
  };

  // Returns the answer to the prompt of a run, which is judged once.
  const judgePrompt = async (hook, event, ctx) => {
    // The prompt of a sub-agent is an argument of the call that started it.
    if (rootOf(ctx.sessionKey)) return undefined;
    const run = ctx.runId ?? event.runId;
    if (!run) return inOrder(hook, event, ctx);
    if (!prompts.has(run)) prompts.set(run, inOrder(hook, event, ctx));
    const answer = await prompts.get(run);
    const isBlock = answer?.outcome === "block";
    if (isBlock !== (hook === "before_agent_run")) return undefined;
    // With any other key beside these, OpenClaw takes the block for a broken one, and leaves the reason out.
    return isBlock ? { outcome: answer.outcome, reason: answer.reason, message: answer.message } : answer;
  };

  const endRun = (run) => {
    prompts.delete(run);
    turns.delete(run);
    ended.clear();
  };

  const handlers = {
    before_tool_call: async (event, ctx) => {
      await before;
      const answer = await judge("before_tool_call", event, ctx);
      if (answer?.block) return answer;
      calls.add(event.toolCallId);
      ended.delete(event.toolCallId);
      return answer;
    },
    after_tool_call: async (event, ctx) => {
      // OpenClaw also reports the end of a call that never began: a hook has blocked it, or its tool or input is wrong.
      const began = calls.delete(event.toolCallId);
      if (ended.has(event.toolCallId) || (!began && event.error)) return;
      ended.add(event.toolCallId);
      await inOrder("after_tool_call", event, ctx);
    },
    session_end: async (event, ctx) => {
      // A session without events has no hooks.
      if ([...sessions.values()].includes(event.sessionId)) await inOrder("session_end", event, ctx);
    },
    model_call_started: async (event, ctx) => {
      const turn = turns.get(event.runId) ?? 0;
      turns.set(event.runId, turn + 1);
      if (turn) await inOrder("model_call_started", { turn, sessionKey: event.sessionKey }, { ...ctx, sessionId: event.sessionId });
    },
    agent_end: async (event) => endRun(event.runId),
    subagent_spawned: async (event, ctx) => {
      const parent = ctx.requesterSessionKey ?? ctx.sessionKey;
      if (event.childSessionKey && parent) parents.set(event.childSessionKey, parent);
    },
    ...Object.fromEntries(PROMPTS.map((hook) => [hook, (event, ctx) => judgePrompt(hook, event, ctx)])),
  };

  for (const name of new Set([...Object.keys(KNOWN.events).filter(Boolean), ...Object.keys(handlers)])) {
    const handler = handlers[name] ?? ((event, ctx) => inOrder(name, event, ctx));
    const [seconds] = KNOWN.events[name] ?? KNOWN.events[""];
    // OpenClaw gives up some seconds after the link does, so that a refusal has its reason.
    api.on(name, (event, ctx) => handler(event ?? {}, ctx ?? {}), { priority: LAST, timeoutMs: Math.min(1000 * seconds + 5000, 600_000) });
  }
};

export default {
  id: "agent-hooks-openclaw",
  name: "agent_hooks",
  description: "Runs your hook files.",
  register: (api) => loaded(() => connectOpenClaw(api)),
};
