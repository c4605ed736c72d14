"""The studio in a real browser on a Neo4j database of others whose labels, types, properties and
names nobody expects: every link leads to its page, what is completed runs, nothing is written.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest

from tests.e2e.test_studio import COMPLETING, axe, go, run, studio, tab
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.lanes import sample
from tests.support.native_databases import content, database
from tests.support.pages import picture, until

# Its database is one of a server whose databases others of this group ask.
pytestmark = pytest.mark.xdist_group("neo4j native")
LABELS = (
    "it's", "a, b", "c:\\users", "back\\u0060tick", "l\nbreak", "<b>x</b>", "\u202eflip", "2019", "L" * 10_000,
)  # fmt: skip
TYPES = ("it's", "c:\\users", "l\nbreak", "<i>t</i>", "\u202eflip", "2019", "🙂")
NAMES = (
    'say "hi"', "c:\\users\\x", "line one\nline two", "<img src=x onerror=window.hacked=1>", "\u202eabc", "=1+1", "dup", "dup",
    "it's",
)  # fmt: skip


def ugly(driver: neo4j.Driver) -> None:
    """A node for each name and label, each pointing at the next."""
    with driver.session() as session:
        for number, (name, label) in enumerate(zip(NAMES, LABELS, strict=True)):
            session.run(
                "CREATE (n:$($label) {name: $name, `c:\\u005Cno`: $number})", label=label, name=name, number=number
            ).consume()
        for number in range(len(NAMES)):
            session.run(
                "MATCH (a {`c:\\u005Cno`: $a}), (b {`c:\\u005Cno`: $b}) CREATE (a)-[:$($type) {`w,\nx`: $a}]->(b)",
                a=number, b=(number + 1) % len(NAMES), type=TYPES[number % len(TYPES)],
            ).consume()  # fmt: skip


@pytest.fixture(scope="module")
def served(emptied_neo4j_uri: str) -> Iterator[str]:
    with database(emptied_neo4j_uri) as driver:
        ugly(driver)
        before = content(driver)
        with command("-d", emptied_neo4j_uri, "--rate", "0", "--workers", "2", "--timeout", "100") as (url, _):
            yield url
        assert content(driver) == before


def shown(page: Any) -> str:
    """The heading of a page once it has been read; no error stands there."""
    until(page, "document.querySelector('main h1') && !document.querySelector('main')?.innerText.startsWith('Reading')")
    assert page.locator("main .error").count() == 0, page.inner_text("main")[:500]
    return str(page.inner_text("h1"))


@pytest.mark.slow
def test_links_lead_to_pages(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        go(page, "schema")
        page.wait_for_selector("#filter")
        axe(page, "the schema")
        picture(page, "native-ugly-schema")
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        addresses = page.evaluate("[...document.querySelectorAll('main a')].map((one) => one.getAttribute('href'))")
        for address in addresses:
            # The page before has the same headings.
            page.evaluate("address => { document.querySelector('main').replaceChildren(); location.hash = address }", address)
            page.wait_for_selector("h2:has-text('What points here')")
            shown(page)
            page.wait_for_selector("h2:has-text('Members: 1')")
        # From an entity to its label, and back by a member.
        go(page, "entity", name="c:\\users\\x")
        page.wait_for_selector("h1:has-text('c:')")
        page.click("main p a.entity >> nth=0")
        page.wait_for_selector("h2:has-text('Members: 1')")
        page.click(".values a")
        page.wait_for_selector("h2:has-text('What is known of it')")
        picture(page, "native-ugly-entity")
        assert page.evaluate("window.hacked") is None


def test_answers_evidence_links_and_exports(browser: Any, served: str, tmp_path: Path) -> None:
    with studio(browser, served) as page:
        run(page, 'FindAll() Relate("it\'s", forward) QueryName()')
        assert "summary" in page.inner_html(".answer")
        for one in page.locator("[role=tab]").all():
            one.click()
            assert page.locator("[role=tabpanel] .error").count() == 0, one.inner_text()
        run(page, "FindAll() QueryName()")
        with page.expect_download() as waited:
            tab(page, "table")
            page.click("[data-export=csv]")
        waited.value.save_as(tmp_path / "answer.csv")
        with (tmp_path / "answer.csv").open(encoding="utf-8", newline="") as file:
            assert sorted(row["answer"].removeprefix("'") for row in csv.DictReader(file)) == sorted(NAMES)
        page.click("text=Copy a link")
        until(page, "document.querySelector('.messages').innerText.includes('copied')")
        address = page.evaluate("navigator.clipboard.readText()")
        page.goto("about:blank")
        page.goto(address)
        until(page, f"document.querySelector('.summary')?.innerText.startsWith('{len(NAMES)} answers')")


@pytest.mark.slow
def test_what_is_completed_runs(browser: Any, served: str) -> None:
    client = Client(served)
    with studio(browser, served) as page:
        completed = (
            ("MATCH (n:`c:|", "c:\\users"),
            ("MATCH (n:`c:\\u005Cus|", "c:\\users"),
            ("MATCH (n:`back|", "back\\u0060tick"),
            ("MATCH (n:back|", "back\\u0060tick"),
            ("MATCH (n:`l|", "l\nbreak"),
            ("MATCH (n:it|", "it's"),
            ("MATCH ()-[n:`c:|", "c:\\users"),
            ("MATCH (n {name: 'c:|", "c:\\users\\x"),
        )
        for text, name in sample(completed, 4):
            whole = page.evaluate(COMPLETING, ["cypher", text, name, False])
            assert isinstance(whole, str), (text, whole)
            end = "]-()" if "[" in text else "})" if "{" in text else ")"
            found = client.post("query", program=f"{whole}{end} RETURN count(n) AS n", language="cypher")
            assert "error" not in found, (whole, found["error"]["message"])
            assert found["rows"][0][0]["number"], whole
        # A label has an id, and is no entity: it cannot be a term.
        assert page.evaluate(COMPLETING, ["logic", "?x : knows(<a, |", "", True]) is None


@pytest.mark.slow
def test_labels_are_concepts_of_the_api(served: str) -> None:
    client = Client(served)
    for name in sample(("back\\u0060tick", "a, b", "L" * 10_000), 2):
        found = client.post("entity", id=f":{name}")
        assert (found["entity"]["name"], found["entity"]["kind"], found["total_members"]) == (name, "concept", 1)
        listed = client.get("names", text=name[:100], kinds=["concept"], ids="true")["names"]
        assert f":{name}" in {one["id"] for one in listed}
    # A node of that name goes before.
    assert client.post("entity", name="it's")["entity"]["kind"] == "entity"
    assert client.post("entity", name="a, b")["entity"]["id"] == ":a, b"
    # What is copied for Neo4j Browser says so here.
    copied = client.post("query", program="FindAll() QueryName()")["compiled"]["cypher"]
    said = client.post("query", program=":param p => {};\n" + copied, language="cypher")["error"]
    assert "':param' is a command of Neo4j Browser" in said["message"]
    assert client.post("entity", id=":nothing")["error"]["code"] == "unknown-name"
