"""Which handlers an event goes to, when it waits for others, and who hears of failures."""
