"""The reports that commands print: the score of a corpus, and the answers of a replay."""
