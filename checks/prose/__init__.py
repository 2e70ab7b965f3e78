"""The check of plain English: `python -m checks.prose`, which `make check` runs.

It reads docstrings, comments, printed texts (string constants outside tests), pages and commit messages. It looks for
constructions that native writers of this field hardly ever use: `patterns` has the table. Without options, only new
text is judged: the lines and commits after the commit that added `checks/prose/patterns.py`.
"""
