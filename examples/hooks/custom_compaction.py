"""Compact without a model: a line for each older message of the person; recent messages stay word for word.

Try it:  agent-hooks emit session:before_compact --hook examples/hooks/custom_compaction.py

In the interactive mode: /compact
"""

from agent_hooks import Compaction, HookAPI, HookContext, SessionEvent, TextContent, UserMessage

# Characters of each message.
LENGTH = 100


def register(api: HookAPI) -> None:
    @api.on("session")
    async def summarise(event: SessionEvent, ctx: HookContext) -> Compaction | None:
        if event.reason != "before_compact" or event.cut_point is None or event.tokens_before is None:
            return None
        person = [line(message) for message in event.messages_to_summarize or () if isinstance(message, UserMessage)]
        # The last summary stays part of the new one.
        lines = [event.previous_summary or "The person said:", *person]
        return Compaction("\n".join(lines), event.cut_point.first_kept_entry_index, event.tokens_before)


def line(message: UserMessage) -> str:
    words = " ".join(block.text for block in message.content if isinstance(block, TextContent)).split()
    text = " ".join(words)
    other = [f"[{block.type}]" for block in message.content if not isinstance(block, TextContent)]
    files = [f"[{attachment.file_name}]" for attachment in message.attachments]
    return " ".join(["-", text[:LENGTH] + "…" * (len(text) > LENGTH), *other, *files])
