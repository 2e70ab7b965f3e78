// The part for OpenCode: each hook goes to the server with both of its objects as one event; the bus tells the rest.
const COMPACTING = "experimental.session.compacting";

const connectOpenCode = ({ client, directory }) => {
  // The session that started a session as a sub-agent; null for the others.
  const parents = new Map();
  const words = new Map();
  const continued = new Set();
  // The sessions whose agent the person has stopped.
  const stopped = new Set();
  // The calls that may run, and have no result yet.
  const calls = new Set();
  const isHeadless = process.argv.includes("run");
  // The bus does not wait for an answer.  Each event waits for those before it, so that the server gets them in order.
  let before = Promise.resolve();

  const parentOf = async (session) => {
    if (!parents.has(session)) {
      // The session is older than this process.
      const found = await client.session.get({ path: { id: session } }).catch(() => null);
      parents.set(session, found?.data?.parentID ?? null);
    }
    return parents.get(session);
  };

  // Returns the session of the person, for a session of a sub-agent at any depth.
  const rootOf = async (session) => {
    let root = await parentOf(session);
    for (let above = root; above; above = await parentOf(above)) root = above;
    return root;
  };

  const note = (text) => {
    if (isHeadless) console.error(text);
    else client.tui?.showToast?.({ body: { message: text, variant: "warning" } })?.catch?.(() => {});
  };

  // Ends the run of the person's session; a run that OpenCode does not end goes on with denied calls.
  const end = async (session) => {
    await client.session.abort({ path: { id: session } }).catch((error) => note(`agent_hooks: ${error.message}`));
  };

  const judge = async (hook, event, session) => {
    const parent = session ? await rootOf(session) : null;
    const answer = await ask(hook, directory, { hook, event, session: session ?? null, parent, directory });
    for (const text of Object.values(answer.notes ?? {})) note(text);
    if (answer.stop !== undefined) await end(parent ?? session);
    return answer;
  };

  // Returns the answer to an event after those before it.
  const inOrder = (hook, event, session) => {
    const answer = before.then(() => judge(hook, event, session));
    before = answer.catch(() => {});
    return answer;
  };

  const act = (answer, output) => {
    if (answer.throw !== undefined) throw new Error(answer.throw);
    for (const [name, value] of Object.entries(answer.assign ?? {})) {
      const there = output[name];
      // OpenCode ignores a new object in the place of the arguments or the parts.
      if (Array.isArray(there) && Array.isArray(value)) there.splice(0, there.length, ...value);
      else if (name === "args") replaceAll(there, value);
      else output[name] = value;
    }
  };

  const judgeCall = async (input, output) => {
    await before;
    act(await judge("tool.execute.before", { ...input, ...output }, input.sessionID), output);
    calls.add(input.callID);
  };

  const passResult = async (input, output) => {
    calls.delete(input.callID);
    await before;
    act(await judge("tool.execute.after", { ...input, ...output }, input.sessionID), output);
  };

  const goOn = async (session, text) => {
    continued.add(session);
    await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text }] } });
  };

  // Returns why a session cannot go on, or null.
  const finalReason = (session) => {
    if (stopped.delete(session)) return "the person has stopped it";
    return isHeadless ? "`opencode run` ends when its model stops" : null;
  };

  const busEvents = {
    "session.created": async ({ info }) => {
      parents.set(info.id, info.parentID ?? null);
      if (!info.parentID) await inOrder("session.created", { source: "startup" }, info.id);
    },
    "session.deleted": async ({ info }) => {
      if (parents.has(info.id) && !info.parentID) await inOrder("session.deleted", {}, info.id);
      parents.delete(info.id);
    },
    "session.idle": async ({ sessionID }) => {
      const event = { said: words.get(sessionID) ?? "", continued: continued.delete(sessionID), final: finalReason(sessionID) };
      const answer = await inOrder("session.idle", event, sessionID);
      if (answer.prompt !== undefined) await goOn(sessionID, answer.prompt);
    },
    "session.error": async ({ sessionID, error }) => {
      if (sessionID && error?.name === "MessageAbortedError") stopped.add(sessionID);
    },
    "session.compacted": async ({ sessionID }) => inOrder("session.compacted", {}, sessionID),
    "message.part.updated": async ({ part }) => {
      const { sessionID, state } = part;
      if (part.type === "step-finish") await inOrder("step-finish", { reason: part.reason }, sessionID);
      // A tool that throws has no hook of its own.
      if (part.type === "tool" && state.status === "error" && calls.delete(part.callID)) {
        const event = { tool: part.tool, callID: part.callID, args: state.input ?? {}, error: String(state.error) };
        await inOrder("tool.failed", event, sessionID);
      }
    },
  };

  return {
    "tool.execute.before": judgeCall,
    "tool.execute.after": passResult,
    "chat.message": async (input, output) => {
      const session = input.sessionID;
      // The prompt of a sub-agent is an argument of the call that started it.
      if (await parentOf(session)) return;
      act(await inOrder("chat.message", { ...input, ...output }, session), output);
    },
    [COMPACTING]: async (input, output) => act(await inOrder(COMPACTING, { ...input, ...output }, input.sessionID), output),
    "experimental.text.complete": async (input, output) => {
      words.set(input.sessionID, output.text);
    },
    event: async ({ event }) => {
      try {
        if (Object.hasOwn(busEvents, event.type)) await busEvents[event.type](event.properties);
      } catch (error) {
        note(`agent_hooks: ${event.type}: ${error.message}`);
      }
    },
    dispose: async () => {
      await before;
      for (const [session, parent] of parents) if (!parent) await judge("dispose", {}, session);
    },
  };
};

export const AgentHooks = async (input) => loaded(() => connectOpenCode(input));
