"""The shapes of the results of other agents' tools: read as content of ours.

An agent of the family has one of a few shapes: a text, content blocks, the output and the errors of a shell, a text for
the model beside other fields.  A result of any other shape is its JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agent_hooks.values.content import ContentBlock, ImageContent, TextContent, ToolOutput

NO_WRAP = re.compile(r"\A(.*)\Z", re.DOTALL)
"""The pattern for an agent that puts nothing around a result's text."""


def our_result(response: Any, wrap: re.Pattern[str] = NO_WRAP) -> ToolOutput:
    """Return a tool's response as hooks get it.

    `wrap`: the pattern of a text with all that the agent puts around it; its first group is the text itself.
    """
    parts, is_error = _parts_of(response)
    return ToolOutput([_block(part, wrap) for part in parts], is_error=is_error)


def _parts_of(response: Any) -> tuple[list[Any], bool]:
    """Return the parts of a response, and whether the tool failed."""
    match response:
        case None:
            return [""], False
        case list():
            return response, False
        case {"content": list(blocks)}:
            return blocks, response.get("isError") is True
        case {"llmContent": content}:
            return content if isinstance(content, list) else [content], response.get("error") is not None
        case {"textResultForLlm": str(text)}:
            return [text], response.get("resultType") not in ("success", None)
        case {"text_result_for_llm": str(text)}:
            return [text], response.get("result_type") not in ("success", None)
        case {"stdout": str(stdout), "stderr": str(stderr)}:
            return ["\n".join(text for text in (stdout, stderr) if text)], False
    return [response], False


def _block(part: Any, wrap: re.Pattern[str]) -> ContentBlock:
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            found = wrap.match(text)
            return TextContent(found[1] if found else text)
        case (
            {"type": "image", "data": str(data), "mimeType": str(kind)}
            | {"inlineData": {"data": str(data), "mimeType": str(kind)}}
            | {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(kind)}}
        ):
            return ImageContent(data, kind)
        case {"text": str(text)} if len(part) == 1:
            return _block(text, wrap)
    return TextContent(as_json(part))


def as_json(value: Any) -> str:
    """Return the JSON of a value that has no text, and nothing for no value."""
    return "" if value is None else json.dumps(value, ensure_ascii=False)
