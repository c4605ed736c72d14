"""The first page of `condgraph serve` in a real browser: what is in the graph, questions that it answers, its rows with
facets; with names that are scripts, narrow and dark.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Statement
from tests.e2e.test_studio import SCRIPTS, axe, go, run
from tests.endpoint.test_serve import command
from tests.support.pages import picture, until, visited


@pytest.fixture(scope="module")
def served(samples_world: Path) -> Iterator[str]:
    with command("-d", str(samples_world), "--rate", "0") as (url, _):
        yield url


@contextmanager
def first_page(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """The page at the address that the server prints, once the contents of the graph are there."""
    with visited(browser, url, "/", "body[data-ready]", known=("inline style",), **options) as page:
        until(page, "document.querySelector('.contents')?.dataset.ready === 'yes'")
        yield page


def entries(page: Any, kind: str) -> list[str]:
    """The entries of a list of names, each on one line."""
    return [" ".join(text.split()) for text in page.locator(f"[data-list={kind}] li > span").all_inner_texts()]


def test_it_shows_what_is_in_the_graph(browser: Any, served: str, samples_world: Path) -> None:
    with condgraph.open(samples_world, read_only=True) as graph:
        schema = graph.schema()
    with first_page(browser, served, viewport={"width": 1280, "height": 900}) as page:
        assert entries(page, "concepts") == [f"{one.name} {one.members}" for one in schema.concepts]
        assert entries(page, "tables") == ["mountains"]
        assert "capital 24 country → capital city" in entries(page, "predicates")
        assert "height 31 mountains → quantity in m" in entries(page, "predicates")
        assert page.inner_text("[data-list=times] p") == f"{schema.first} to {schema.last}"
        assert entries(page, "units") == ["m 31"]
        assert page.evaluate("document.querySelector('.schema img').decode().then(() => 1)") == 1
        assert page.evaluate("document.querySelector('.schema img').naturalWidth") > 200
        axe(page, "the start page")
        picture(page, "start-samples")
        page.fill("#contents-filter", "CAPI")
        assert entries(page, "concepts") == ["capital city 24"]
        assert [one.split()[0] for one in entries(page, "predicates")] == ["capital"]
        # In an empty editor a name becomes a program, beside others it is a name.
        page.click("[data-list=predicates] button")
        assert page.inner_text(".cm-content") == 'FindAll() Relate("capital", forward) QueryName()'
        page.keyboard.press("Control+End")
        page.click("[data-list=concepts] button")
        assert page.inner_text(".cm-content").count("capital") == 2


def test_its_questions_have_answers(browser: Any, served: str) -> None:
    with first_page(browser, served) as page:
        links = page.locator(".questions a")
        abouts = links.all_inner_texts()
        assert len(abouts) == 3
        for number, about in enumerate(abouts):
            sample = page.locator(".questions li small").nth(number).inner_text().split("; ")[0]
            links.nth(number).click()
            until(page, "Boolean(document.querySelector('.answer .summary')) && !document.querySelector('.answer[aria-busy]')")
            cells = page.locator(".answers tbody tr").first.inner_text()
            assert sample.split(" | ")[0] in cells, about
            assert not page.locator(".questions").is_visible()
            page.click(".brand")
            page.wait_for_selector(".questions a", state="visible")


def test_rows_are_browsed_with_facets(browser: Any, served: str, samples_world: Path) -> None:
    with condgraph.open(samples_world, read_only=True) as graph:
        heights = graph.query("FindAll()", table="where height is known show self, height order by height desc").cells
        rows = graph.query("FindAll()", table="where height is known show self, country").cells
    countries = Counter(country for _, country in rows)
    with first_page(browser, served) as page:
        page.click("[data-list=tables] a")
        page.wait_for_selector("table.rows")
        assert page.locator("table.rows tbody tr").count() == 31
        page.click("table.rows th a:has-text('height')")
        page.wait_for_selector("th[aria-sort=ascending]")
        page.click("table.rows th a:has-text('height')")
        page.wait_for_selector("th[aria-sort=descending]")
        assert page.locator("table.rows tbody tr td:first-child").all_inner_texts() == [name for name, _ in heights]
        facet = [" ".join(text.split()) for text in page.locator("[data-column=country] li").all_inner_texts()]
        assert facet[0] == f"Nepal {countries['Nepal']}"
        axe(page, "rows of a table")
        picture(page, "browse-mountains")
        page.click("[data-column=country] a:has-text('Nepal')")
        page.wait_for_selector(".filters")
        assert page.locator("table.rows tbody tr").count() == countries["Nepal"]
        # The address has all of it.
        page.reload()
        page.wait_for_selector(".filters")
        assert page.locator("table.rows tbody tr").count() == countries["Nepal"]
        page.click("a:has-text('Open as a query')")
        page.wait_for_selector("table.answers")
        assert page.locator("table.answers tbody tr").count() == countries["Nepal"]
        # A concept with more rows than a page has.
        go(page, "browse", c="place")
        page.wait_for_selector(".pages:has-text('1 to 50 of 54')")
        page.click(".pages a[rel=next]")
        page.wait_for_selector(".pages:has-text('51 to 54 of 54')")
        assert page.locator("table.rows tbody tr").count() == 4
        page.click("table.rows tbody tr:first-child td:first-child a")
        page.wait_for_selector("h2:has-text('What is known of it')")
        go(page, "browse", c="plaec")
        page.wait_for_selector("text=unknown concept 'plaec'")


def test_names_that_are_scripts_are_text(browser: Any, tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        concepts = [Entity(f"c{number}", text, EntityKind.CONCEPT) for number, text in enumerate(SCRIPTS)]
        people = [Entity(f"e{number}", text) for number, text in enumerate(SCRIPTS)]
        links = [Member(f"e{number}", f"c{number % 3}") for number in range(len(SCRIPTS))]
        facts = [Statement(f"e{number}", text, f"e{(number + 1) % 3}") for number, text in enumerate(SCRIPTS)]
        graph.add([*concepts, *people, *links, *facts], source=SCRIPTS[1])
    with (
        command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _),
        first_page(browser, url) as page,
    ):
        assert len(entries(page, "concepts")) == len(SCRIPTS)
        assert page.locator(".questions a").count() == 3
        page.click("[data-list=concepts] a >> nth=0")
        page.wait_for_selector("table.rows")
        for facet in page.locator(".facet a").all()[:1]:
            facet.click()
            page.wait_for_selector(".filters")
        picture(page, "browse-scripts")
        assert page.evaluate("window.hacked") is None
        go(page, "browse", c=SCRIPTS[0], w=json.dumps({SCRIPTS[1]: SCRIPTS[2]}))
        until(page, "!document.body.innerText.includes('Reading…')")
        assert page.evaluate("window.hacked") is None


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1920])
def test_it_fits_and_is_readable_in_the_dark(browser: Any, served: str, width: int) -> None:
    with first_page(browser, served, viewport={"width": width, "height": 844}, color_scheme="dark") as page:
        assert page.locator(".contents").get_attribute("open") == ("" if width > 900 else None)
        if width < 900:
            page.click(".contents summary")
        page.wait_for_selector("[data-list=concepts] a", state="visible")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        axe(page, f"the start page, {width} pixels wide")
        picture(page, f"start-{width}")
        go(page, "browse", t="mountains")
        page.wait_for_selector("table.rows")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        axe(page, f"rows, {width} pixels wide")
        picture(page, f"browse-{width}")


def test_sparql_is_a_part_of_the_page(browser: Any, served: str) -> None:
    with first_page(browser, served) as page:
        page.click("nav a[data-page=sparql]")
        until(page, "document.querySelector('#language').value === 'sparql'")
        page.click(".cm-content")
        page.keyboard.insert_text("SELECT ?name { ?c ")
        page.fill("#contents-filter", "capital")
        page.click("[data-list=predicates] button")
        until(page, "document.querySelector('.cm-content').innerText.includes('<capital>')")
        page.keyboard.insert_text("/<pred:name> ?name } ORDER BY ?name LIMIT 1")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("table.answers")
        assert page.inner_text("table.answers tbody").strip() == "Berlin"
        page.click("a:has-text('The same in YASGUI')")
        page.wait_for_selector(".CodeMirror")
        page.click("a:has-text('Studio')")
        page.wait_for_selector(".contents[data-ready=yes] li")
        # A graph that is loaded while the page is open has contents of its own.
        run(page, "FindAll() Count()")
        file = {"name": "towns.csv", "mimeType": "text/csv", "buffer": b"town,people\nBern,134591\nChur,36336\n"}
        page.set_input_files("input[type=file]", [file])
        page.click("dialog button[type=submit]")
        page.wait_for_selector("h1:has-text('What can be asked about')")
        page.keyboard.press("Escape")
        page.click(".brand")
        until(page, "document.querySelector('[data-list=tables]')?.innerText.includes('towns')")
        assert entries(page, "concepts") == []
