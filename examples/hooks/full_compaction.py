"""Summarise the whole conversation and keep nothing of it, by a cheaper model of the same provider.

Try it:  agent-hooks emit session:before_compact --hook examples/hooks/full_compaction.py

In the interactive mode: /compact.  Without a key (the puppet has none) the summary is the list of the person's messages.
A failure of the model is a failure of this hook: it is reported, and the conversation is compacted without the hook.
"""

from collections.abc import Sequence
from typing import Any

from agent_hooks import (
    AssistantMessage,
    Compaction,
    HookAPI,
    HookContext,
    ImageContent,
    SessionEvent,
    TextContent,
    ToolResultMessage,
    UserMessage,
)

CHEAP = {
    "anthropic": "anthropic:claude-haiku-4-5",
    "openai": "openai-chat:gpt-5-mini",
    "openai-responses": "openai-responses:gpt-5-mini",
    "google": "google:gemini-2.5-flash",
}
# Characters of each block.
LENGTH = 2000
TASK = "Summarise this conversation between a person and a coding agent, so that the agent can go on with it:"


def register(api: HookAPI) -> None:
    @api.on("session")
    async def summarise(event: SessionEvent, ctx: HookContext) -> Compaction | None:
        if event.reason != "before_compact" or event.model is None or event.tokens_before is None:
            return None
        messages = [*(event.messages_to_summarize or ()), *(event.messages_to_keep or ())]
        key = await event.resolve_api_key(event.model)
        cheap = CHEAP.get(event.model.provider)
        if key and cheap:
            wishes = [event.custom_instructions] if event.custom_instructions else []
            before = (
                [f"Summary of the conversation before it:\n{event.previous_summary}"] if event.previous_summary else []
            )
            summary = await ask(cheap, key, "\n\n".join([TASK, *wishes, *before, *map(line, messages)]))
        else:
            person = [line(message) for message in messages if isinstance(message, UserMessage)]
            summary = "\n".join([event.previous_summary or "The person said:", *person])
        return Compaction(summary, len(event.entries), event.tokens_before)


def line(message: UserMessage | AssistantMessage | ToolResultMessage) -> str:
    speaker = {"user": "Person", "assistant": "Agent", "toolResult": "Tool"}[message.role]
    content: Sequence[object] = message.content
    return f"{speaker}: " + " ".join(shown(block)[:LENGTH] for block in content)


def shown(block: object) -> str:
    if isinstance(block, TextContent):
        return block.text
    # The text of a call has its tool and its arguments.
    return "[image]" if isinstance(block, ImageContent) else str(block)


async def ask(name: str, key: str, text: str) -> str:
    # These packages come with agent-hooks-runtime[models], and take a second to import.
    import httpx2
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    async with httpx2.AsyncClient(timeout=300) as client:

        def provider(kind: str) -> Any:
            kinds: Any = infer_provider_class(kind)
            return kinds(api_key=key, http_client=client)

        model = infer_model(name, provider_factory=provider)
        async with model_request_stream(model, [ModelRequest.user_text_prompt(text)], instrument=False) as response:
            async for _ in response:
                pass
            return response.get().text or ""
