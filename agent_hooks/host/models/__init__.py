"""The models the host can speak to; one module per kind."""
