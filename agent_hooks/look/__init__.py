"""The look at recorded calls: the page that shows the acts of hooks, and the data behind it.

`index` makes an sqlite file of record files and transcripts, `view` answers all questions of the page, and `cards` tells
all about one call.
"""
