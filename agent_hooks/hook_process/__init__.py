"""The inside of a hook's own process: it loads the hook and calls its handlers when the agent asks for it."""
