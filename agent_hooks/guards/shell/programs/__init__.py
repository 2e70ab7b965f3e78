"""The table of programs: one row for each program or verb, with the role of its options and operands.

A row is one line of text in `files`, `git`, `packages`, `code`, `network` or `systems`: the names, ` : `, and the words
of the row in any order.  A line that begins with a blank continues the row above it.

    cp : -t,--target-directory=t:r*  -S,--suffix=_  --parents  r* t
    sed : -e,--expression=_:r*  -f,--file=q:r*  -i,--in-place?=_:~re  _ r*
    git mv : -n,--dry-run:!  m* t

`-o,--output=ROLE`     an option with a value; `?=`: the value is in the same word, or there is none
`-r,--recursive:THEN`  the changes that an option makes, with or without a value; several changes are joined by `&`
`if==ROLE`             an operand `if=value`
`ROLE` `ROLE?` `ROLE*`     operands in their order: one, at most one, any number; `ROLE*=.`: without one, `.` counts
`@NAME` `@NAME=VALUE`      facts of the program itself; the list is below

Roles of words:

    _ nothing       r file that is read         R tree that is read           l listed, not read
    w file written  e file read and written     W tree that is written in     E tree that is read and written
    d file deleted  D tree that is deleted      m moved away                  t target of the operands before it
    x file that is run                          a archive: read, or written   q another file that is read
    u U file or tree that is used, not shown    A file that is added to       n file that gets another name
    M directory that is made
    h URL or host that content comes from       H URL or host it goes to      @ text to send; `@file` is read
    y like r, or `host:path`                    Y like t, or `host:path`      z Z the same for a container
    i package to install, or its directory      k process that is ended       b device that is written
    c code in the program's own language        / directory that the program changes to
    C the same, for operands and fixed paths    s carried command             > a function reads it

Changes (`THEN`): operand roles, as `_+r*`; `~rw`: each role `r` becomes `w`; `!`: nothing is changed (a dry run);
`^`: the `@` paths do not hold; `-1`: the first operand is like the others; `.`: without an operand, `.` counts;
any `@` fact.

Facts:

    @verbs          a verb comes first; its row is `program verb`, with `*` as a wildcard, and this row counts otherwise
    @global         the options of this row count behind the verb too
    @dash           long options begin with one dash
    @early          the first operand ends the options
    @old            the first word may be letters of options without a dash
    @opaque         the program runs code that is not known
    @in=HOST @out=HOST    content comes from, or goes to, a host; without a name it is not known
    @r=PATH @w=PATH @e=PATH @d=PATH    a fixed path; with a slash at its end, a tree
    @install @kill @root @lose=WORK    packages that the project names; any process; rights of root; work that is lost
    @rights         only the rights or times of the written files change
    @do=NAME        a function of `special` reads the words
"""

from agent_hooks.guards.shell.programs.deeds import Deed, deeds_of, is_harmless, names_files

__all__ = ["Deed", "deeds_of", "is_harmless", "names_files"]
