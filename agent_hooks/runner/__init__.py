"""The runner: it plans the handlers of an event, makes events wait for one another, and reports failures."""
