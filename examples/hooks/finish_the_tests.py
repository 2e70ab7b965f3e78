r"""Send the agent back to work while the tests fail.

Try it:  agent-hooks run --hook examples/hooks/finish_the_tests.py '@bash printf "test:\n\tfalse\n" > Makefile'
"""

import shlex

from agent_hooks import AgentEnd, Continue, HookAPI, HookContext

TESTS = ["make", "test"]
# How often in a row the agent is sent back for one prompt.
TIMES = 3
# The characters from the end of the tests' output that the agent is sent.
SHOWN = 2000


def register(api: HookAPI) -> None:
    @api.on("agent_end")
    async def finish(event: AgentEnd, ctx: HookContext) -> Continue | None:
        # Tests that take more than 30 s need a longer `hookTimeout` in the settings.
        done = await ctx.exec(TESTS[0], TESTS[1:])
        if done.code == 0:
            return None
        if event.continued >= TIMES:
            ctx.ui.notify(f"{shlex.join(TESTS)} still fails", "warning")
            return None
        output = f"{done.stdout}\n{done.stderr}".strip()[-SHOWN:]
        return Continue(f"The tests fail: {shlex.join(TESTS)} says\n{output}\nFind out why, and mend it.")
