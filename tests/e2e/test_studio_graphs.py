"""The studio in a real browser on graphs that nobody prepared for it: the oracle's, and a Neo4j
database that condgraph did not write, which is as it was afterwards.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from tests.e2e.test_start import entries
from tests.e2e.test_studio import axe, go, run, studio, tab
from tests.endpoint.test_serve import command
from tests.support.native_databases import content, database
from tests.support.pages import picture, until


@pytest.mark.data
def test_the_oracles_graph(browser: Any, oracle: Path, tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        graph.load(oracle / "kb_small.json")
        humans = graph.kopl("FindAll() FilterConcept(human) QueryName()").texts
        dated = graph.kopl("FindAll() FilterConcept(human) QueryAttr(date of birth)")
    with command("-d", str(tmp_path / "store"), "--rate", "0") as (url, _), studio(browser, url) as page:
        run(page, "FindAll() FilterConcept(human) QueryName()")
        assert page.inner_text(".summary").startswith(f"{len(humans):,} answers")
        assert humans[0] in tab(page, "table")
        picture(page, "oracle-answers")
        tab(page, "evidence")
        picture(page, "oracle-evidence")
        axe(page, "many statements")
        run(page, "FindAll() FilterConcept(human) QueryAttr(date of birth)")
        # The next answer begins with the part that was open, whose picture needs the size of its place.
        assert page.inner_text(".messages") == ""
        assert page.locator("[data-tab=evidence][aria-selected=true]").count() == 1
        assert dated.texts[0] in tab(page, "table")
        tab(page, "chart")
        picture(page, "oracle-chart")
        go(page, "entity", name=humans[0])
        page.wait_for_selector("h2:has-text('What is known of it')")
        assert "date of birth" in page.inner_text("main")
        page.click("nav a:has-text('Schema')")
        page.wait_for_selector("h2:has-text('Concepts')")
        picture(page, "oracle-schema")
        axe(page, "a large schema")


@pytest.mark.slow
def test_a_database_of_others(browser: Any, emptied_neo4j_uri: str, data: Path) -> None:
    """Answers, evidence, tree, entity and schema; nothing is written."""
    with database(emptied_neo4j_uri, "movies") as driver:
        before = content(driver)
        with (
            command("-d", emptied_neo4j_uri, "--rate", "0", "--workers", "2", "--timeout", "100") as (url, _),
            studio(browser, url) as page,
        ):
            assert "on Neo4j" in page.inner_text("#graph")
            until(page, "document.querySelector('.contents')?.dataset.ready === 'yes'")
            assert entries(page, "concepts") == ["Person 133", "Movie 38"]
            # As many as it finds in some seconds; the lists do not wait for them.
            until(page, "document.querySelector('.questions')")
            assert 1 <= page.locator(".questions a").count() <= 3
            axe(page, "the first page of a database")
            picture(page, "studio-start-neo4j")
            run(page, "Find(Tom Hanks) Relate(acted in, forward) FilterNum(released, 2005, >) QueryName()")
            assert "Cloud Atlas" in tab(page, "table")
            assert "released" in tab(page, "evidence")
            picture(page, "native-evidence")
            page.click("[data-tab=tree]")
            page.wait_for_selector(".tree .size")
            assert "MATCH" in tab(page, "queries")
            run(page, "Find(Tom Hank) QueryAttr(born)")
            page.click(".messages button:has-text('Tom Hanks')")
            page.wait_for_selector(".summary")
            assert "1956" in tab(page, "table")
            go(page, "entity", name="Cloud Atlas")
            page.wait_for_selector("h2:has-text('What points here')")
            assert "Tom Hanks" in page.inner_text("main")
            picture(page, "native-entity")
            axe(page, "an entity of a database")
            page.click("nav a:has-text('Schema')")
            page.wait_for_selector("h2:has-text('Concepts (2)')")
            picture(page, "native-schema")
        assert content(driver) == before
