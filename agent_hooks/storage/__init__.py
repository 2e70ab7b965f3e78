"""Files, locks and git calls, as tools, checkpoints, settings and the server share them."""
