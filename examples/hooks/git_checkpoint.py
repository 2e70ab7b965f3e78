"""Branching back asks whether to restore the files as they were at that prompt.  Needs a git working tree.

Try it:  agent-hooks run --hook examples/hooks/git_checkpoint.py '@bash git init -q' && agent-hooks checkpoints list

At a terminal, `/branch` asks after a few prompts.  The checkpoints are there without this hook: one is made before each
turn that changes files.  A restore first saves the present files: `agent-hooks checkpoints undo` brings them back.
"""

from agent_hooks import Cancel, HookAPI, HookContext, SessionEvent, SkipConversationRestore, checkpoints

BOTH, FILES, CONVERSATION, NOTHING = (
    "Restore files and conversation",
    "Restore files only",
    "Restore the conversation only",
    "Cancel",
)


def register(api: HookAPI) -> None:
    # The session that is being branched from.
    left_session: list[str] = []

    # The last of all handlers: when another hook cancels the branch, no file has changed.
    @api.on("session", priority=-1000)
    async def ask(event: SessionEvent, ctx: HookContext) -> Cancel | SkipConversationRestore | None:
        if event.reason != "before_branch" or event.target_turn_index is None:
            return None
        left_session[:] = [ctx.session_id]
        try:
            found = await checkpoints.list(ctx.cwd, ctx.session_id)
        # No repository or no git.
        except checkpoints.CheckpointError:
            return None
        target = checkpoints.find_for_branch(found, event.target_turn_index)
        # No files to restore, or no person to ask.
        if target is None or not ctx.has_ui:
            return None
        choice = await ctx.ui.select("Branch back: what shall be restored?", [BOTH, FILES, CONVERSATION, NOTHING])
        if choice == CONVERSATION:
            return None
        if choice not in (BOTH, FILES):
            return Cancel("the user said no")
        leave = [ctx.session_file] if ctx.session_file else []
        try:
            done = await checkpoints.restore(ctx.cwd, target, leave=leave)
        except checkpoints.CheckpointError as exc:
            return Cancel(f"the files cannot be restored: {exc}")
        ctx.ui.notify(
            f"restored the files: {len(done.written)} written, {len(done.deleted)} deleted; "
            "`agent-hooks checkpoints undo` takes it back"
        )
        for kept in done.kept:
            ctx.ui.notify(f"kept: {kept}", "warning")
        for left in (*done.left, *done.failed):
            ctx.ui.notify(f"not restored: {left}", "warning")
        return SkipConversationRestore() if choice == FILES else None

    @api.on("session")
    async def branched(event: SessionEvent, ctx: HookContext) -> None:
        # With these checkpoints, the person can branch back further from the new session.
        if event.reason == "branch" and left_session:
            try:
                await checkpoints.inherit(ctx.cwd, left_session.pop(), ctx.session_id, up_to=len(event.entries))
            except checkpoints.CheckpointError as exc:
                ctx.ui.notify(f"no checkpoints of the session before: {exc}", "warning")
