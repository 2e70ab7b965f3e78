"""The wire of RPC mode, and the queue of a client's requests."""
