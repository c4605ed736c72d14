"""What the tests with a browser share: the browser, and a store with the samples to serve."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from tests.support.pages import CHROMIUM
from tests.support.samples import load_samples


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    services = os.environ.get("CONDGRAPH_SERVICES")
    if CHROMIUM is None:
        if services:
            pytest.fail("no Chromium is installed")
        pytest.skip("no Chromium is installed")
    if not services:
        pytest.importorskip("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        found = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def samples_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the samples."""
    folder = tmp_path_factory.mktemp("page") / "world"
    with condgraph.open(folder) as graph:
        load_samples(graph)
    return folder
