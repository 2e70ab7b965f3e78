"""How code is run and ended: deadlines, lanes, threads, processes, and coroutines without an event loop."""
