"""The wire of RPC mode."""
