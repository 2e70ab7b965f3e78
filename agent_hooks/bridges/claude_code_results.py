"""The shapes that Claude Code's tools return, as text and back.  Above: claude_code.  Below: content.

A changed result must have the tool's own shape, or Claude Code drops it without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_hooks.content import ContentBlock, ImageContent, TextContent, ToolOutput
from agent_hooks.frozen import thaw


def our_result(response: Any) -> ToolOutput:
    """Return a tool's response as we show it to hooks: its text where we know the shape, else its JSON."""
    if isinstance(response, str):
        return ToolOutput(response)
    if isinstance(response, list):
        return ToolOutput([_block(each) for each in response])
    if not isinstance(response, Mapping):
        return ToolOutput(_as_json(response))
    if _is_shell(response):
        return ToolOutput("\n".join(text for text in (response["stdout"], response["stderr"]) if text))
    if _is_text_file(response):
        return ToolOutput(response["file"]["content"])
    if _is_listing(response):
        return ToolOutput("\n".join(response["filenames"]))
    if isinstance(response.get("content"), str) and "mode" in response:  # Grep, lines
        return ToolOutput(response["content"])
    return ToolOutput(_as_json(response))


def native_result(response: Any, before: ToolOutput, after: ToolOutput) -> tuple[Any, list[str]]:
    """Return a changed result in the shape of `response`, or `None`, and the texts that this shape has no place for."""
    response = thaw(response)
    body = [block for block in after.content if block in before.content] or list(after.content[:1])
    if isinstance(response, list):
        return [_native_block(block) for block in after.content], []
    text = after.text
    if isinstance(response, str):
        return text, []
    if isinstance(response, Mapping):
        if _is_shell(response):
            return {**response, "stdout": text, "stderr": "", "isImage": False}, []
        if _is_text_file(response):
            file = {**response["file"], "content": text, "numLines": text.count("\n") + 1}
            return {**response, "file": file}, []
        rest = [block.text for block in after.content if block not in body and isinstance(block, TextContent)]
        first = "\n".join(block.text for block in body if isinstance(block, TextContent))
        if _is_listing(response):
            names = first.splitlines()
            return {**response, "filenames": names, "numFiles": len(names)}, rest
        if isinstance(response.get("content"), str) and "mode" in response:
            return {**response, "content": first, "numLines": len(first.splitlines())}, rest
        try:
            parsed = json.loads(first)
        except ValueError:
            return None, [text]
        return (parsed, rest) if isinstance(parsed, dict) and parsed.keys() == response.keys() else (None, [text])
    return None, [text]


def _is_shell(response: Mapping[str, Any]) -> bool:
    return isinstance(response.get("stdout"), str) and isinstance(response.get("stderr"), str)


def _is_text_file(response: Mapping[str, Any]) -> bool:
    file = response.get("file")
    return response.get("type") == "text" and isinstance(file, Mapping) and isinstance(file.get("content"), str)


def _is_listing(response: Mapping[str, Any]) -> bool:
    names = response.get("filenames")
    listing = response.get("mode", "files_with_matches") == "files_with_matches"
    return listing and isinstance(names, list) and all(isinstance(name, str) for name in names)


def _block(block: Any) -> ContentBlock:
    if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return TextContent(block["text"])
    match block:
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return ImageContent(data, kind)
    return TextContent(_as_json(block))


def _native_block(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    return {"type": "image", "data": block.data, "mimeType": block.mime_type}


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
