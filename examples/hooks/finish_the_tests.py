r"""Send the agent back to work while the tests fail.

Try it:  agent-hooks run --hook examples/hooks/finish_the_tests.py '@bash printf "test:\n\tfalse\n" > Makefile'
"""

import shlex

from agent_hooks import AgentEnd, Continue, HookAPI, HookContext

TESTS = ["make", "test"]
TIMES = 3  # in a row that the agent is sent back for one prompt
SHOWN = 2000  # characters of what the tests said last


def register(api: HookAPI) -> None:
    @api.on("agent_end")
    async def finish(event: AgentEnd, ctx: HookContext) -> Continue | None:
        # tests that take more than 30 s need a longer `hookTimeout` in the settings
        done = await ctx.exec(TESTS[0], TESTS[1:])
        if done.code == 0:
            return None
        if event.continued >= TIMES:
            ctx.ui.notify(f"{shlex.join(TESTS)} still fails", "warning")
            return None
        said = f"{done.stdout}\n{done.stderr}".strip()[-SHOWN:]
        return Continue(f"The tests fail: {shlex.join(TESTS)} says\n{said}\nFind out why, and mend it.")
