"""The one loop: one event on its way through its handlers, and the tables that say how events differ."""
