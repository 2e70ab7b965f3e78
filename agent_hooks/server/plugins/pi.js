// The part for pi: each extension event goes to the server as it is, without the conversation.
const LARGE = new Set(["signal", "messages", "context", "entries", "preparation", "branchEntries", "message", "compactionEntry"]);

const textOf = (content) =>
  typeof content === "string"
    ? content
    : (content ?? []).filter((block) => block?.type === "text").map((block) => block.text).join("\n");

// Returns the words and the calls of the model's last message.
const lastOf = (message) => ({
  said: textOf(message?.content),
  calls: (message?.content ?? []).filter((block) => block?.type === "toolCall"),
});

// Returns an event without the objects that are large or no data, and with the facts of them that hooks get.
const factsOf = (event, ctx, continued) => {
  const facts = { sessionFile: ctx.sessionManager?.getSessionFile?.() ?? null };
  for (const [name, value] of Object.entries(event)) if (!LARGE.has(name)) facts[name] = value;
  if (event.type === "turn_end") Object.assign(facts, lastOf(event.message));
  if (event.type === "session_compact") facts.summary = event.compactionEntry?.summary ?? "";
  if (event.type === "agent_before_settle") {
    const messages = event.context?.contextMessages ?? [];
    const last = messages.findLast((message) => message?.role === "assistant");
    const final = event.outcome === "aborted" ? "the person has stopped it" : null;
    Object.assign(facts, { said: lastOf(last).said, continued, final });
  }
  return facts;
};

const connectPi = (pi) => {
  let continued = false;

  // Returns whether the person said yes; a dialog that fails or is cancelled is no yes.
  const allows = async (question, ctx) => {
    try {
      return ctx.hasUI && (await ctx.ui.confirm(question.title, question.message, { signal: ctx.signal })) === true;
    } catch {
      return false;
    }
  };

  const act = async (answer, event, ctx) => {
    for (const note of Object.values(answer.notes ?? {})) {
      if (ctx.hasUI) ctx.ui.notify(note, "warning");
      else console.error(note);
    }
    if (answer.stop !== undefined) ctx.abort();
    if (answer.throw !== undefined) throw new Error(answer.throw);
    if (answer.ask && !(await allows(answer.ask, ctx))) return act(answer.ask.no, event, ctx);
    // pi ignores a new object.
    for (const [name, value] of Object.entries(answer.assign ?? {})) replaceAll(event[name], value);
    return answer.return;
  };

  const judge = async (name, event, ctx) => {
    const session = ctx.sessionManager?.getSessionId?.() ?? null;
    const payload = { hook: name, event: factsOf(event, ctx, continued), session, parent: null, directory: ctx.cwd };
    // The result of a call that the person has stopped goes into the session, so hooks see it.
    const signal = name === "tool_call" ? ctx.signal : undefined;
    const answer = await ask(name, ctx.cwd, payload, { attended: ctx.hasUI, signal });
    const value = await act(answer, event, ctx);
    if (name === "agent_before_settle") continued = value?.continue === true;
    return value;
  };

  for (const name of Object.keys(KNOWN.events).filter(Boolean)) {
    pi.on(name, async (event, ctx) => {
      // An error in the handler of a prompt would let the prompt pass.
      if (name !== "input") return judge(name, event, ctx);
      try {
        return await judge(name, event, ctx);
      } catch (error) {
        console.error(`agent_hooks: ${error.message}`);
        return { action: "handled" };
      }
    });
  }
};

export default (pi) => loaded(() => connectPi(pi));
