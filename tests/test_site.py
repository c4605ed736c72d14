"""The documentation as a site (`make site`): links of the repository become links of the site."""

from __future__ import annotations

import pytest

import condgraph

pytest.importorskip("mkdocs")

from tools.site_pages import api_page, rewritten

CODE = "https://example.org/code"


@pytest.mark.parametrize(
    ("place", "link", "on_the_site"),
    [
        ("docs/index.md", "how-to/load-rdf.md", "how-to/load-rdf.md"),
        ("docs/how-to/load-rdf.md", "../reference/rdf.md#names", "../reference/rdf.md#names"),
        ("docs/index.md", "../README.md#install", "about.md#install"),
        ("README.md", "docs/assets/evidence.svg", "assets/evidence.svg"),
        ("README.md", "CONTRIBUTING.md", "contributing.md"),
        ("docs/explanation/architecture.md", "../../condgraph/engine", f"{CODE}/tree/main/condgraph/engine"),
        ("docs/explanation/architecture.md", "../../condgraph/graph.py", f"{CODE}/blob/main/condgraph/graph.py"),
        ("docs/index.md", "notebooks/a-csv-pair.ipynb", f"{CODE}/blob/main/docs/notebooks/a-csv-pair.ipynb"),
        ("docs/index.md", "https://example.org/a.md", "https://example.org/a.md"),
    ],
)
def test_links(place: str, link: str, on_the_site: str) -> None:
    assert rewritten(f"A [page]({link}), `[x]({link})`", place, CODE) == f"A [page]({on_the_site}), `[x]({link})`"


def test_a_link_to_nothing_is_a_warning_which_strict_builds_refuse(caplog: pytest.LogCaptureFixture) -> None:
    assert rewritten("[page](nowhere.md)", "docs/index.md", CODE) == "[page](nowhere.md)"
    assert caplog.messages == ["docs/index.md links to nowhere.md, which is not there"]


def test_the_reference_has_all_that_is_public() -> None:
    text = api_page()
    for name in condgraph.__all__:
        assert f"## `{name}`" in text
    for call in ("Graph.query", "Graph.ask", "Answer.evidence", "Answer.to_pandas", "GraphSchema.draw"):
        assert f"### `{call}`" in text
    assert "<condgraph" not in text
    assert " object at 0x" not in text
