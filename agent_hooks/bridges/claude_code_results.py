"""The part of the bridge to Claude Code that converts the results of its tools to text and back.

A changed result must have the shape of its tool's results, because Claude Code drops any other result silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.shapes import as_json
from agent_hooks.values.content import ContentBlock, ImageContent, TextContent, ToolOutput
from agent_hooks.values.frozen import thaw

_CUT = "[Only the beginning of this result is shown, because a hook changed it; the rest is not kept.]"
# The keys of a shell's result that lead to its whole output.
_PERSISTED = ("persistedOutputPath", "persistedOutputSize", "rawOutputPath", "structuredContent")


def our_result(response: Any) -> ToolOutput:
    """Return a tool's response as hooks get it: its text if the shape is known, else its JSON."""
    match response:
        case str():
            return ToolOutput(response)
        # An MCP server and a sub-agent return blocks.
        case list() | {"content": list()}:
            blocks = response if isinstance(response, list) else response["content"]
            return ToolOutput([_block(each) for each in blocks])
        case {"stdout": str(stdout), "stderr": str(stderr)}:
            return ToolOutput("\n".join(text for text in (stdout, stderr) if text))
        case {"type": "text", "file": {"content": str(text)}}:
            return ToolOutput(text)
        case {"type": "image", "file": {"base64": str(data), "type": str(kind)}}:
            return ToolOutput([ImageContent(data, kind)])
        # Grep and WebFetch.
        case {"mode": "content" | "count", "content": str(text)} | {"url": str(), "result": str(text)}:
            return ToolOutput(text)
        # Glob and Grep.
        case {"filenames": list(names)} if all(isinstance(name, str) for name in names):
            return ToolOutput("\n".join(names))
    return ToolOutput(as_json(response))


def native_result(response: Any, before: ToolOutput, after: ToolOutput) -> tuple[Any, list[str]]:
    """Return a changed result in the shape of `response`, or `None`, and the texts that have no place in this shape."""
    response = thaw(response)
    body = [block for block in after.content if block in before.content] or list(after.content[:1])
    rest = [block.text for block in after.content if block not in body and isinstance(block, TextContent)]
    first = "\n".join(block.text for block in body if isinstance(block, TextContent))
    match response:
        case str():
            return after.text, []
        case list():
            return _native_blocks(response, before, after), []
        case {"content": list(blocks)}:
            return {**response, "content": _native_blocks(blocks, before, after)}, []
        case {"stdout": str(), "stderr": str()}:
            kept = {key: value for key, value in response.items() if key not in _PERSISTED}
            # The file at that path still has the text that hooks removed, so the model is not sent to it.
            texts = [_CUT] if "persistedOutputPath" in response else []
            return {**kept, "stdout": after.text, "stderr": "", "isImage": False}, texts
        case {"mode": "content" | "count", "content": str()}:
            return _lines(response, first.splitlines()), rest
        case {"url": str(), "result": str()}:
            return {**response, "result": after.text}, []
        case {"filenames": list(names)}:
            return _listing(response, names, first.splitlines()), rest
    if before.text == as_json(response) and (parsed := _same_shape(first, response)) is not None:
        return parsed, rest
    # Read accepts each of its shapes for any file.
    if isinstance(response, dict) and isinstance(file := response.get("file"), dict):
        return _file(response.get("type"), file, after, rest)
    return None, [after.text]


def _file(kind: Any, file: dict[str, Any], after: ToolOutput, rest: list[str]) -> tuple[Any, list[str]]:
    image = after.content[0] if after.content else None
    if isinstance(image, ImageContent):
        if kind == "image" and image.data == file.get("base64"):
            return None, rest
        size = len(image.data) * 3 // 4
        return {"type": "image", "file": {"base64": image.data, "type": image.mime_type, "originalSize": size}}, rest
    text = after.text
    lines = text.count("\n") + 1
    if kind != "text":
        file = {"filePath": file.get("filePath", ""), "startLine": 1, "totalLines": lines}
    return {"type": "text", "file": {**file, "content": text, "numLines": lines}}, []


def _listing(response: dict[str, Any], before: list[str], names: list[str]) -> dict[str, Any]:
    fewer = len(before) - len(names)
    totals = {
        key: response[key] - fewer for key in ("totalFiles", "totalMatches") if isinstance(response.get(key), int)
    }
    return {**response, "filenames": names, "numFiles": len(names), **totals}


def _lines(response: dict[str, Any], lines: list[str]) -> dict[str, Any]:
    changed = {**response, "content": "\n".join(lines)}
    if response["mode"] == "count":
        # The lines have the form `path:number`.
        numbers = [int(found[1]) for line in lines if (found := re.search(r"(?:^|:)([0-9]{1,18})$", line))]
        return {**changed, "numFiles": len(numbers), "numMatches": sum(numbers)}
    fewer = len(response["content"].splitlines()) - len(lines)
    totals = {"totalLines": response["totalLines"] - fewer} if isinstance(response.get("totalLines"), int) else {}
    return {**changed, "numLines": len(lines), **totals}


def _same_shape(text: str, response: Any) -> Any:
    """Return the text as a JSON object, if it is one with the keys of the response, else `None`."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    same = isinstance(parsed, dict) and isinstance(response, Mapping) and parsed.keys() == response.keys()
    return parsed if same else None


def _block(block: Any) -> ContentBlock:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextContent(text)
        case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(kind)}}:
            return ImageContent(data, kind)
    return TextContent(as_json(block))


def _native_blocks(blocks: list[Any], before: ToolOutput, after: ToolOutput) -> list[Any]:
    """Return the blocks of a result.  An unchanged block is the original, which may have fields that ours lack."""
    return [
        blocks[before.content.index(block)] if block in before.content else _native_block(block)
        for block in after.content
    ]


def _native_block(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    return {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}}
