"""Tools that do their work elsewhere: sub-agents, and those of an MCP server."""

from __future__ import annotations

from clients.cases.table import case, offers_none, told
from clients.script import Calls, Helper, Mcp, Shell, Step, Text
from clients.seat import Seat


@case("judges the calls of a sub-agent", "subagents", models=True)
def subagent(seat: Seat) -> bool:
    seat.ready()
    work: list[Step] = [Calls(Shell("echo deploy; touch denied")), Calls(Shell("touch fine")), Text("I helped")]
    # Some clients let their sub-agents work beside them, and end them at their own end.
    wait = Calls(Shell("for each in $(seq 150); do [ -e fine ] && break; sleep 0.1; done"))
    start = Calls(Helper("HELPER-WORK: look around"))
    with seat.client.with_helpers():
        run = seat.run(start, wait, Text("done"), Text("done"), helpers={"HELPER-WORK": work})
    if run.script.missing:
        return offers_none(seat, "subagents", "no tool that starts a sub-agent")
    assert not seat.has("denied")
    assert seat.has("fine"), run.output[-2000:]
    return True


@case("judges the calls of an MCP tool", "mcp", models=True)
def mcp(seat: Seat) -> bool:
    seat.ready()
    seat.offer_mcp()
    run = seat.run(
        Calls(Mcp("echo", {"text": "this is confidential"})), Calls(Mcp("echo", {"text": "louder"})), Text("done")
    )
    if run.script.missing:
        return offers_none(seat, "mcp", "no tool of an MCP server")
    told(run, "confidential texts stay here", "louder")
    return True
