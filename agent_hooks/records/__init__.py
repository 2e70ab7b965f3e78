"""Records: every decision is written down, one line of JSON each, in files below the agent home.

`lines` has the kinds of lines, `reading` reads them, and `writer` and `recorder` write them.
"""
