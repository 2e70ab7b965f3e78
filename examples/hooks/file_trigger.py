"""Send the agent each text that a person, a script or another program writes to .agent/trigger.txt.

Try it:  agent-hooks run --hook examples/hooks/file_trigger.py

Then, from another terminal, at any time:  echo "run the tests" > .agent/trigger.txt
"""

from pathlib import Path

from watchfiles import awatch

from agent_hooks import HookAPI, HookContext, SendError, SessionEvent

# Milliseconds after which the file is read without a notice: some file systems give no notice of changes.
INTERVAL = 500


def register(api: HookAPI) -> None:
    @api.on("session")
    async def start(event: SessionEvent, ctx: HookContext) -> None:
        # Print mode takes no messages.
        if event.reason != "start" or ctx.mode == "print":
            return
        path = Path(ctx.cwd, ".agent", "trigger.txt")
        # This text is left over or came with a checkout, so it is not for this agent.
        before = text_in(path)
        path.parent.mkdir(exist_ok=True)

        async def watch() -> None:
            seen, failed = before, False
            # The directory is watched, because an editor replaces the file by a new one.
            async for _ in awatch(path.parent, recursive=False, rust_timeout=INTERVAL, yield_on_timeout=True):
                try:
                    text = text_in(path)
                    if text.strip() and text != seen:
                        # Sent before the file is emptied: a text that is refused stays in the file.
                        api.send(f"Message from {path}:\n{text.strip()}")
                        # A file that cannot be emptied is not sent twice.
                        seen = text
                        # A text that came meanwhile stays in the file.
                        path.write_text(text_in(path).removeprefix(text))
                        text = ""
                    seen, failed = text, False
                except (OSError, SendError) as exc:
                    if not failed:
                        ctx.ui.notify(f"{path}: {exc}", "warning")
                    failed = True

        api.start_task(watch)
        ctx.ui.notify(f"watching {path}" + ("; its present text is not sent" if before.strip() else ""))


def text_in(path: Path) -> str:
    # A checkout may bring links to other files.
    if path.parent.is_symlink() or path.is_symlink():
        raise OSError(f"{path} is a link, or its directory is: remove the link")
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
