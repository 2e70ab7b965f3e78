"""Globs of effects: as in `.gitignore`, and against paths of which a part may be unknown."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from agent_hooks.values.effects import Access, Effects, PathEffect, Place
from agent_hooks.values.globs import glob_of, meet, path_steps

PLACE = Place("/p", "/p", "/home/dev")


def wrote(path: str, *, access: Access = "write", certain: bool = True, tree: bool = False) -> Effects:
    """Return the effects of a call that reaches one path."""
    return Effects(paths=(PathEffect(path, path, access, certain=certain, tree=tree),), place=PLACE)


PARTS = st.text("ab.", min_size=1, max_size=3).filter(lambda part: part.strip("."))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]"])
NAMES = st.lists(PIECES, min_size=1, max_size=3).map("".join).filter(lambda name: name.strip("."))
GLOBS = st.builds(
    lambda start, parts, end: start + "/".join(parts) + end,
    st.sampled_from(["", "", "**/"]),
    st.lists(st.one_of(NAMES, NAMES, st.just("**")), min_size=1, max_size=3).filter(lambda parts: set(parts) != {"**"}),
    st.sampled_from(["", "", "/**"]),
)


@given(GLOBS, PATHS)
def test_a_glob_matches_a_known_path_as_git_ignores_it(glob: str, path: str) -> None:
    """Another implementation of git's rules gives the same answer."""
    # Old versions of pathspec return `None` for a path that no line matches.
    expected = bool(GitIgnoreSpec.from_lines([glob]).match_file(path))
    assert wrote(f"/p/{path}").writes(glob) == expected, (glob, path)


UNKNOWN_PIECES = st.sampled_from(["a", "b", ".", "/", "*", "?", "**"])
UNKNOWN = st.lists(UNKNOWN_PIECES, min_size=1, max_size=5).map("".join)
STANDS_FOR = {"**": ["", "a", "b/a", "/", "ab"], "*": ["", "a", "ab", "b"], "?": ["a", "b", "."]}


def becomes(path: str) -> set[str]:
    """Return some paths that a path with wildcards may become: no wildcard of a shell begins a name with a dot."""
    pieces = re.split(r"(\*\*+|\*|\?)", path)
    texts = ("".join(each) for each in product(*(STANDS_FOR.get(piece[:2], [piece]) for piece in pieces if piece)))
    if re.search(r"[^/*]\*\*+[^/*]", path):
        # An unknown text within a name holds no slash.
        texts = (text for text in texts if text.count("/") == path.count("/"))
    return {text for text in texts if not re.search(r"(?:^|/)\.", text) or "?" not in path}


@given(GLOBS, UNKNOWN)
def test_a_path_with_wildcards_may_be_each_path_that_it_may_become(glob: str, path: str) -> None:
    """Nothing that a glob matches is lost because a part of the path is unknown."""
    whole = glob_of(glob, "/p", "/home/dev")
    steps = path_steps(f"/p/{path}")
    for text in becomes(path):
        if whole.pattern.fullmatch(f"/p/{text}"):
            assert meet(steps, whole.whole), (glob, path, text)


@given(st.lists(PIECES, min_size=1, max_size=3).map("".join), st.lists(PIECES, min_size=1, max_size=3).map("".join))
def test_two_patterns_meet_only_where_a_text_fits_both(one: str, other: str) -> None:
    """Every short text is tried."""
    left, right = glob_of(f"/{one}", "", ""), glob_of(f"/{other}", "", "")
    texts = ("".join(each) for size in range(7) for each in product("ab.c", repeat=min(size, 5)))
    expected = any(_fits(left, text) and _fits(right, text) for text in set(texts))
    assert meet(left.steps, right.steps) == expected, (one, other)


def _fits(glob: object, text: str) -> bool:
    return meet(glob.steps, path_steps(f"/{text}", literal=True))  # type: ignore[attr-defined]  # a Glob


@pytest.mark.parametrize(
    ("path", "glob", "may"),
    [
        ("**", "uv.lock", True),
        ("/p/out-**.log", "uv.lock", False),
        ("/p/out-**.log", "out-*", True),
        ("/p/out-**.log", ".env.*", False),
        ("/p/out**/uv.lock", "src/uv.lock", False),
        ("/p**/uv.lock", "src/uv.lock", True),
        ("**/x", "src/x", True),
        ("**/x", "src/y.py", False),
        ("/p/*.lock", "uv.lock", True),
        ("/p/*.lock", "src/uv.lock", False),
        ("/p/*", ".env", False),
        ("/p/**", ".env", True),
        ("/p/app/[id]/page.tsx", r"app/\[id\]/page.tsx", True),
        ("**.log", "node_modules", True),
        ("/p/[!a].py", "a.py", False),
    ],
)
def test_an_unknown_part_may_be_any_text(path: str, glob: str, *, may: bool) -> None:
    """`**` may hold slashes, and the wildcards of a shell match neither a slash nor a dot at the beginning."""
    assert wrote(path, certain=False).writes(glob) == may


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        ("src/a.py", True),
        ("src", True),
        ("src/", True),
        ("a.py", True),
        ("test/a.py", False),
        ("/p/src/a.py", True),
        ("~/src/a.py", False),
        ("./src/b", True),
        ("../p/src", True),
    ],
)
def test_a_tree_that_is_deleted_takes_everything_inside(glob: str, *, matches: bool) -> None:
    """Also a file that the glob names and the command does not."""
    effects = wrote("/p/src", access="delete", tree=True)
    assert effects.deletes(glob) == matches
    assert effects.writes(glob) == matches


def test_a_glob_without_a_slash_is_not_searched_in_build_output() -> None:
    """`rm -r node_modules` deletes no `uv.lock`, and it deletes `node_modules/x`."""
    path = PathEffect("/p/dist", "/p/dist", "delete", tree=True, generated=True)
    effects = Effects(paths=(path,), place=PLACE)
    assert not effects.deletes("uv.lock")
    assert effects.deletes("dist")
    assert effects.deletes("dist/a.js")


def test_a_real_path_counts_like_the_spelled_one() -> None:
    """A link to a protected file hides nothing, and neither does a link to the project."""
    effects = Effects(
        paths=(PathEffect("/p/link", "/data/p/uv.lock", "write"),), place=Place("/p", "/data/p", "/home/dev")
    )
    assert effects.writes("uv.lock")
    assert effects.writes("/data/p/uv.lock")
    assert effects.writes("./uv.lock")
    assert effects.writes("link")


@pytest.mark.parametrize("folds", [True, False])
def test_case_counts_where_the_file_system_has_it(*, folds: bool) -> None:
    """Elsewhere `UV.LOCK` is the same file."""
    place = Place("/P", "/P", "/home/dev", folds)
    effects = Effects(paths=(PathEffect("/P/UV.Lock", "/P/UV.Lock", "write"),), place=place)
    assert effects.writes("uv.lock") == folds
    assert effects.writes("UV.Lock")
