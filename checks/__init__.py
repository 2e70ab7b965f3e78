"""The checks of the project itself that are no tests; `make` and `.ci/run` run them."""
