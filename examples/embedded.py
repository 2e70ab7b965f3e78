"""An agent of your own in 40 lines: it obeys the hooks that the person has approved, and writes every decision down.

Try it:  python examples/embedded.py 'rm -rf build' 'echo hello'

Hooks that wait for approval are named and left out; `agent-hooks trust` approves them.  Afterwards, `agent-hooks why` and
`agent-hooks records` show which hook stopped which call.
"""

import asyncio
import subprocess
import sys

from agent_hooks import AgentHooksError, HookRunner, Trust, discover_and_load_hooks, load_settings, wrap_tools
from agent_hooks.records import Records


def bash(command: str) -> str:
    """Run a shell command."""
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False).stdout


async def main(commands: list[str]) -> int:
    """Run the commands as an agent's model would ask for them, each as a call of the tool `bash`."""
    trust = Trust()
    for message in trust.sources(".").messages:
        print(message, file=sys.stderr)
    # Where the approved files of a changed project are gone, no call may run, so loading raises.
    try:
        settings = load_settings(cwd=".", trust=trust)
        hooks = await discover_and_load_hooks(settings.hooks, cwd=".", trust=trust)
    except AgentHooksError as exc:
        print(exc, file=sys.stderr)
        return 1
    async with HookRunner(hooks, cwd=".", records=Records(client="embedded-example")) as runner:
        (tool,) = wrap_tools([bash], runner)
        for number, command in enumerate(commands):
            output = await tool.execute(str(number), {"command": command})
            print(f"{command} → {output.text.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:] or ["rm -rf build", "echo hello"])))
