"""Summarise the whole conversation and keep nothing of it, by a cheaper model of the same provider.

Try it:  agent-hooks emit session:before_compact --hook examples/hooks/full_compaction.py

In the interactive mode: /compact.  Without a key (the puppet has none) the summary is what the person said.  A model that
fails is a failure of this hook: it is reported, and the conversation is compacted as if there were no hook.
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
LENGTH = 2000  # characters of each block
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
            before = [f"Summary of what came before:\n{event.previous_summary}"] if event.previous_summary else []
            summary = await ask(cheap, key, "\n\n".join([TASK, *wishes, *before, *map(told, messages)]))
        else:
            said = [told(message) for message in messages if isinstance(message, UserMessage)]
            summary = "\n".join([event.previous_summary or "What the person said:", *said])
        return Compaction(summary, len(event.entries), event.tokens_before)


def told(message: UserMessage | AssistantMessage | ToolResultMessage) -> str:
    who = {"user": "Person", "assistant": "Agent", "toolResult": "Tool"}[message.role]
    content: Sequence[object] = message.content
    return f"{who}: " + " ".join(shown(block)[:LENGTH] for block in content)


def shown(block: object) -> str:
    if isinstance(block, TextContent):
        return block.text
    return "[image]" if isinstance(block, ImageContent) else str(block)  # a call: its tool and its arguments


async def ask(name: str, key: str, text: str) -> str:
    import httpx2  # these come with agent-hooks-runtime[models], and take a second to import
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
