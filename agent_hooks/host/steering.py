"""The points of the host that concern the model: a message, a run's parameters, a request, a summary.

Each method builds the input of a point, passes the output through the interceptors of the runner, and returns the changed
output.  Without an interceptor the output comes back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.dispatch.points import (
    CommandInput,
    CommandOutput,
    CompactingInput,
    CompactingOutput,
    ConfigInput,
    HeadersOutput,
    MessageBeforeInput,
    MessageBeforeOutput,
    MessagesOutput,
    NoOutput,
    ParamsBeforeInput,
    ParamsBeforeOutput,
    RequestInput,
    SystemOutput,
)
from agent_hooks.errors import MessageBlockedError
from agent_hooks.host.model import Model, ModelRequest, Sampling, ThinkingLevel, now_ms
from agent_hooks.host.models import open_model
from agent_hooks.runner.runner import HookRunner
from agent_hooks.values.answers import Block
from agent_hooks.values.content import Attachment, TextContent, UserMessage
from agent_hooks.values.frozen import freeze

O = TypeVar("O", bound=Struct)  # noqa: E741  # an output


class PassedMessage(NamedTuple):
    """A message after its interceptors; `metadata` is for the later points of the same run."""

    message: UserMessage
    text: str
    metadata: Mapping[str, Any]


class Params(NamedTuple):
    """The parameters of the requests in one run."""

    model: Model
    thinking_level: ThinkingLevel
    sampling: Sampling = Sampling()


class Steering:
    """Passes everything that goes to the model through the interceptors; one for an agent."""

    def __init__(self, runner: HookRunner) -> None:
        self._engine = runner.engine

    async def message(
        self, model: Model, text: str, attachments: Sequence[Attachment] = (), source: str | None = None
    ) -> PassedMessage:
        """Pass a message through `message.before`; raises `MessageBlockedError`."""
        output = await self._engine.pass_message(
            MessageBeforeInput(**self._agent(), provider=model.provider, model=model.id),
            MessageBeforeOutput(text),
        )
        if isinstance(output, Block):
            raise MessageBlockedError(f"the message was blocked: {output}")
        blocks = [TextContent(each) for each in (output.message, *output.context)]
        message = UserMessage(
            content=blocks,
            timestamp=now_ms(),
            attachments=tuple(attachments),
            source=source,
            typed=None if (output.message, *output.context) == (text,) else text,
        )
        return PassedMessage(message, output.message, freeze(output.metadata))

    async def params(self, passed: PassedMessage, params: Params) -> Params:
        """Pass the parameters of a run through `params.before`; raises `ModelError` when its model cannot be opened."""
        model = params.model
        before = ParamsBeforeOutput(model.provider, model.id, params.thinking_level)
        output = _output(
            await self._engine.reach(
                "params.before",
                ParamsBeforeInput(**self._agent(), message=passed.text, metadata=passed.metadata),
                before,
            ),
            before,
        )
        level = output.think_level
        if output.reasoning_level is not None:
            level = "off" if output.reasoning_level == "off" else "low" if level == "off" else level
        if (output.provider, output.model) != (model.provider, model.id):
            model = open_model(f"{output.provider}:{output.model}")
        return Params(model, level, Sampling(output.temperature, output.top_p, output.top_k))

    async def request(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Pass a request through `chat.system.transform`, `chat.messages.transform` and `chat.headers`."""
        reach = self._engine.reach
        fields = RequestInput(**self._agent(), provider=model.provider, model=model.id)
        if self._engine.intercepts("chat.system.transform"):
            system = SystemOutput(list(request.system))
            system = _output(await reach("chat.system.transform", fields, system), system)
            request = replace(request, system=tuple(system.system))
        if self._engine.intercepts("chat.messages.transform"):
            messages = MessagesOutput(list(request.messages))
            messages = _output(await reach("chat.messages.transform", fields, messages), messages)
            request = replace(request, messages=tuple(messages.messages))
        if self._engine.intercepts("chat.headers"):
            headers = HeadersOutput(dict(request.headers))
            headers = _output(await reach("chat.headers", fields, headers), headers)
            request = replace(request, headers=headers.headers)
        return request

    async def compacting(self) -> CompactingOutput:
        """Return the output of `session.compacting`: more context and a prompt for a default summary."""
        output = CompactingOutput()
        return _output(await self._engine.reach("session.compacting", CompactingInput(**self._agent()), output), output)

    async def command(self, command: str, arguments: str) -> str | Block:
        """Pass a slash command through `command.execute.before`; return its arguments, or the block."""
        fields = CommandInput(command=command, session_key=self._engine.surroundings.session_id)
        output = await self._engine.reach("command.execute.before", fields, CommandOutput(arguments))
        return output if isinstance(output, Block) else output.arguments

    async def config(self, settings: Struct) -> None:
        """Pass the settings in force to the interceptors of `config`."""
        if self._engine.intercepts("config"):
            await self._engine.reach("config", ConfigInput(settings=freeze(msgspec.to_builtins(settings))), NoOutput())

    def _agent(self) -> dict[str, str]:
        place = self._engine.surroundings
        return {"agent_id": place.agent_id, "session_key": place.session_id}


def _output(answer: O | Block, given: O) -> O:
    """Return the output of a point that cannot block."""
    return given if isinstance(answer, Block) else answer
