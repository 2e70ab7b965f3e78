"""The tables of tools and arguments: the use of a tool, and the role of an argument, by their names.

Tools come from many programs, which name them and their arguments as they like:

1. `USES`: the name of a tool, without its server and in small letters, tells its use.  The first row that fits counts.
2. `ARGUMENTS`: the name of an argument tells its role.  A role counts for the uses that `commands` and `path_arguments`
   read it for.

`objects` finds the objects with arguments in an input.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Use = Literal["nothing", "names", "kill", "code", "shell", "file", "other"]

USES: tuple[tuple[Use, str], ...] = (
    # Tools whose `command` or `path` means something else.
    ("nothing", r"slash_command|todo_\w+|memory|computer|ask_\w+|\w*thinking|(?:web_)?(?:fetch|search)"),
    ("nothing", r"browser_\w+|\w+_(?:sql|query|workflow|tests?)|(?:sql|query)(?:_\w+)?"),
    # Tools that only show names, or the output of a program that runs already.
    ("names", r"(?:ls|glob|find|tree|stat)|(?:list|find|glob|stat|watch)_\w+|search_files?|file_search|directory_tree"),
    ("names", r"\w+_(?:info|exists|tree)|kill_(?:bash|shell)"),
    ("names", r"\w*(?:bash|shell|terminal|process|command)_(?:output|status|list)"),
    ("names", r"(?:get|list|read)_\w*(?:output|terminals?|process(?:es)?|sessions?|commands?|shells?|status)"),
    ("kill", r"kill|(?:kill|signal|stop|terminate|force_terminate)(?:_process(?:es)?|_pid)?"),
    ("code", r"(?:i?python\d?|jupyter|javascript|node|ruby|perl|php|repl)(?:_\w+)?|code_interpreter"),
    ("code", r"(?:run|exec|execute)_(?:i?python|code|cell|notebook)(?:_\w+)?"),
    ("code", r"(?:run|exec|execute)_(?:javascript|js|node|typescript|ts|ruby|perl|php)(?:_\w+)?"),
    # Among its words is one of a shell, or it runs something.
    ("shell", r"(?:\w+_)?(?:bash|sh|zsh|shell|terminal|powershell|pwsh)(?:_\w+)?"),
    ("shell", r"(?:\w+_)?(?:cmd|commands?|exec|stdin|process|spawn|ssh)(?:_\w+)?"),
    ("shell", r"(?:run|execute|launch)(?:_(?:program|script|cli|binary|executable|input)\w*)?|send_(?:keys|input|text)"),
    # Tools of files, by their verb or because `file` is among their words.
    ("file", r"read|write|edit|multi_edit|view|cat|replace|create|insert|delete|grep|patch|apply_patch|str_replace\w*"),
    ("file", r"(?:\w+_)?(?:files?|notebook|image|directory|folder|patch)(?:_\w+)?|grep_\w+|edit_block|fs_\w+"),
    ("other", r"\w*"),
)  # fmt: skip

Role = Literal["command", "commands", "program", "words", "directory", "variables", "code", "language", "pid", "path",
               "source", "remote", "text"]  # fmt: skip
_ROLES: dict[Role, str] = {
    # A command line, or a program with its words.
    "command": "command cmd command_line cmdline shell_command bash_command argv shell bash",
    # Command lines, each a text or a list.
    "commands": "commands cmds command_lines scripts steps action",
    "program": "program executable binary",
    "words": "args arguments argument params",
    "directory": "cwd workdir work_dir working_directory working_dir dir_path directory dir",
    "variables": "env environment env_vars",
    "code": "code script source_code cell snippet",
    "language": "language lang runtime",
    "pid": "pid process_id process",
    "path": "path paths file files file_path file_paths filepath filename filenames file_name absolute_path "
    "relative_path abs_path full_path target_file target_path notebook_path dir_path directory uri file_uri include "
    "destination dst dest destination_path new_path to_path output_path attachment attachments image image_path "
    "local_path",
    # The file that is copied or moved away.
    "source": "source src source_path old_path from_path",
    # The path lies on another machine.
    "remote": "owner repo repository bucket project_id workspace_id page_id database",
    # Texts that run nothing and name no file, also when they look like it.
    "text": "content contents text file_text query pattern body message prompt description explanation reason "
    "justification summary title comment old_string new_string old_text new_text old_str new_str thought question "
    "options language data purpose note notes name label value url href route endpoint regex expression todos edits "
    "exclude exclude_patterns",
}  # fmt: skip
ARGUMENTS: dict[str, frozenset[Role]] = {}
for _role, _names in _ROLES.items():
    for _name in _names.split():
        ARGUMENTS[_name] = ARGUMENTS.get(_name, frozenset()) | {_role}
_NO_ROLE: frozenset[Role] = frozenset()


@lru_cache(1024)
def plain_tool(name: str) -> str:
    """Return the name of a tool without its server, in small letters with `_` between the words."""
    own = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition("__")[2])
    return re.sub(r"\W+", "_", own).strip("_").lower()


@lru_cache(1024)
def use_of(tool: str) -> Use:
    """Return the use of a tool."""
    plain = plain_tool(tool)
    return next(use for use, names in USES if re.fullmatch(names, plain))


@lru_cache(4096)
def roles_of(argument: str) -> frozenset[Role]:
    """Return the roles of an argument, none for a name that is not in the table."""
    return ARGUMENTS.get(plain_tool(argument), _NO_ROLE)
