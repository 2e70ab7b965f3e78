"""A client in 60 lines: it starts the agent, sends a prompt, shows the agent's work, and lets the person answer dialogs.

Try it:  python examples/rpc_client.py '@bash sudo true' --hook examples/hooks/permission_gate.py
"""

import json
import subprocess
import sys
from typing import Any


def main() -> int:
    """Run one prompt; the arguments after it are options of `agent-hooks run`."""
    prompt, *options = sys.argv[1:] or ["@bash ls"]
    command = [sys.executable, "-m", "agent_hooks", "run", "--mode", "rpc", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        to_agent, from_agent = agent.stdin, agent.stdout
        assert to_agent is not None
        assert from_agent is not None

        def send(record: dict[str, Any]) -> None:
            to_agent.write(json.dumps(record).encode() + b"\n")
            to_agent.flush()

        send({"type": "prompt", "id": 1, "message": prompt})
        # Lines of bytes, because only "\n" ends a line of the protocol.
        for record in map(json.loads, from_agent):
            match record["type"]:
                case "message_update":
                    print(record["delta"], end="", flush=True)
                case "after_tool_call":
                    print(f"• {record['toolName']} {record['params']} → {record.get('error', 'ok')}")
                case "hook_ui_request":
                    if (answer := ask(record)) is not None:
                        send({"type": "hook_ui_response", "id": record["id"], **answer})
                case "hook_error":
                    print(f"hook error: {record['hookPath']}: {record['error']} ({record['outcome']})")
                case "response" if not record["success"]:
                    print(f"{record['command']}: {record['error']}")
                case "run_end":
                    print(record.get("error", ""))
            if record["type"] == "run_end" or (record.get("id") == 1 and not record["success"]):
                send({"type": "shutdown"})
    return agent.returncode


def ask(dialog: dict[str, Any]) -> dict[str, Any] | None:
    """Show a hook's dialog to the person; return the fields of the response, `None` for a notification."""
    if dialog["method"] == "notify":
        return print(f"{dialog['notifyType']}: {dialog['message']}")
    hint = {"select": f" {dialog.get('options')}", "confirm": " [y/N]", "input": f" ({dialog.get('placeholder', '')})"}
    print("\n".join(filter(None, [dialog["title"], dialog.get("message")])), hint[dialog["method"]])
    text = sys.stdin.readline().strip()
    if dialog["method"] == "confirm":
        return {"confirmed": text.lower() in ("y", "yes")}
    return {"value": text} if text else {"cancelled": True}


if __name__ == "__main__":
    sys.exit(main())
