"""The fixtures for the tests of real models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from model_server import KINDS, ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Give a model server."""
    with ModelServer() as running:
        yield running


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Give each kind of real model."""
    return str(request.param)
