"""Send the agent what is written to .agent/trigger.txt: by a person, a script, another program.

Try it:  agent-hooks run --hook examples/hooks/file_trigger.py

Then, from another terminal, at any time:  echo "run the tests" > .agent/trigger.txt
"""

from pathlib import Path

from watchfiles import awatch

from agent_hooks import HookAPI, HookContext, SendError, SessionEvent

LOOK = 500  # milliseconds after which the file is looked at anyway: some file systems tell of no changes


def register(api: HookAPI) -> None:
    @api.on("session")
    async def start(event: SessionEvent, ctx: HookContext) -> None:
        if event.reason != "start" or ctx.mode == "print":  # print mode takes no messages
            return
        path = Path(ctx.cwd, ".agent", "trigger.txt")
        path.parent.mkdir(exist_ok=True)
        before = text_in(path)  # left over, or it came with a checkout: nobody has written it to this agent

        async def watch() -> None:
            seen, failed = before, False
            # the directory, for an editor puts a new file in the place of the old one
            async for _ in awatch(path.parent, recursive=False, rust_timeout=LOOK, yield_on_timeout=True):
                try:
                    text = text_in(path)
                    if text.strip() and text != seen:
                        api.send(f"Message from {path}:\n{text.strip()}")  # first: what is refused stays in the file
                        seen = text  # sent once, also when the file cannot be emptied
                        path.write_text(text_in(path).removeprefix(text))  # what came meanwhile stays too
                        text = ""
                    seen, failed = text, False
                except (OSError, SendError) as exc:
                    if not failed:
                        ctx.ui.notify(f"{path}: {exc}", "warning")
                    failed = True

        api.start_task(watch)
        ctx.ui.notify(f"watching {path}" + ("; what is in it now is not sent" if before.strip() else ""))


def text_in(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
