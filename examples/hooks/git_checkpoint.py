"""Save the files before every turn; branching back asks whether to restore them.  Needs a git working tree.

Try it:  agent-hooks run --hook examples/hooks/git_checkpoint.py '@bash git init -q' && agent-hooks checkpoints list

Untracked files are saved too, ignored ones are not; index, stash, HEAD and branches are never touched.  A restore first
saves the present files: `agent-hooks checkpoints undo` brings them back.
"""

from agent_hooks import Cancel, HookAPI, HookContext, SessionEvent, SkipConversationRestore, TurnStart, checkpoints

BOTH, FILES, CONVERSATION, NOTHING = (
    "Restore files and conversation",
    "Restore files only",
    "Restore the conversation only",
    "Cancel",
)


def register(api: HookAPI) -> None:
    # The warnings that were shown: each is shown once.
    shown: set[str] = set()
    # The session that is being branched from.
    left_session: list[str] = []

    def warn(ctx: HookContext, text: str) -> None:
        if text not in shown:
            shown.add(text)
            ctx.ui.notify(text, "warning")

    @api.on("turn_start")
    async def save(event: TurnStart, ctx: HookContext) -> None:
        try:
            saved = await checkpoints.create(ctx.cwd, ctx.session_id, event.entry_index, leave=session_file(ctx))
        # The agent goes on without a checkpoint.
        except checkpoints.CheckpointError as exc:
            warn(ctx, f"no checkpoint: {exc}")
            return
        for skipped in saved.skipped:
            warn(ctx, f"not in the checkpoints: {skipped}")

    # The last of all handlers: when another hook cancels the branch, no file has changed.
    @api.on("session", priority=-1000)
    async def ask(event: SessionEvent, ctx: HookContext) -> Cancel | SkipConversationRestore | None:
        if event.reason != "before_branch" or event.target_turn_index is None:
            return None
        left_session[:] = [ctx.session_id]
        try:
            found = await checkpoints.list(ctx.cwd, ctx.session_id)
        # No repository or no git; the warning came at the turn's start.
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
        try:
            done = await checkpoints.restore(ctx.cwd, target, leave=session_file(ctx))
        except checkpoints.CheckpointError as exc:
            return Cancel(f"the files cannot be restored: {exc}")
        ctx.ui.notify(
            f"restored the files: {len(done.written)} written, {len(done.deleted)} deleted; "
            "`agent-hooks checkpoints undo` takes it back"
        )
        for left in done.left:
            ctx.ui.notify(f"not restored: {left}", "warning")
        return SkipConversationRestore() if choice == FILES else None

    @api.on("session")
    async def branched(event: SessionEvent, ctx: HookContext) -> None:
        # With these checkpoints, the person can branch back further from the new session.
        if event.reason == "branch" and left_session:
            try:
                await checkpoints.inherit(ctx.cwd, left_session.pop(), ctx.session_id, up_to=len(event.entries))
            except checkpoints.CheckpointError as exc:
                warn(ctx, f"no checkpoints of the session before: {exc}")


def session_file(ctx: HookContext) -> list[str]:
    return [ctx.session_file] if ctx.session_file else []
