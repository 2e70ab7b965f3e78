"""Hooks of mkdocs: README, CONTRIBUTING and CHANGELOG become pages of the site, and so does each example.

The files stay as GitHub shows them.  A link from a page to a file that the site has not is an error of `mkdocs build
--strict`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files  # type: ignore[import-not-found]  # only the site needs mkdocs

ROOT = Path(__file__).parent.parent
# File of the repository → page of the site.
_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
_DATA = ("settings.example.json", "benchmarks/results.json", "tests/chaos/results.json")
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
_FENCE = re.compile(r"^```(\w+) file=(\S+)$", re.MULTILINE)
_KINDS = {".py": "python", ".json": "json"}


def on_config(config: Any) -> Any:
    """Add the pages that no section names, so that a new page is found, and is no error."""
    named = set(_named(config.nav))
    pages = {path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")}
    if more := sorted(pages - named):
        config.nav.append({"More": more})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of files outside of docs/."""
    for source, page in _PAGES.items():
        files.append(File.generated(config, page, content=_with_moved_links((ROOT / source).read_text(), "", page)))
    for example in sorted({*ROOT.glob("examples/**/*.py"), *(ROOT / name for name in _DATA)}):
        name = example.relative_to(ROOT).as_posix()
        fence = f"```{_KINDS[example.suffix]}\n{example.read_text()}```\n"
        files.append(File.generated(config, f"{name}.md", content=f"# {name}\n\n{fence}"))
    index = "".join(f"- [{each.name}]({each.name}.md)\n" for each in sorted(ROOT.glob("examples/hooks/*.py")))
    files.append(File.generated(config, "examples/hooks/index.md", content=f"# Examples of hooks\n\n{index}"))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files of the repository to their pages, and show the name of a block's file."""
    source = page.file.src_uri
    if page.file.generated_by is None:
        markdown = _with_moved_links(markdown, "docs", source)
    return _FENCE.sub(r'```\1 title="\2"', markdown)


def _with_moved_links(text: str, directory: str, page: str) -> str:
    return _LINK.sub(lambda match: f"{match[1]}{_moved(match[2], directory, page)}", text)


def _moved(target: str, directory: str, page: str) -> str:
    """Return the link to a file, as it stands on a page of the site; `directory`: the one that it is relative to."""
    path = posixpath.normpath(posixpath.join(directory, target))
    if path.startswith("docs/"):
        path = path.removeprefix("docs/")
    elif path in _PAGES:
        path = _PAGES[path]
    elif (ROOT / path).is_dir():
        path = f"{path}/index.md"
    elif (ROOT / path).suffix in _KINDS:
        path = f"{path}.md"
    return posixpath.relpath(path, posixpath.dirname(page) or ".")


def _named(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    return [name for each in inner for name in _named(each)]
