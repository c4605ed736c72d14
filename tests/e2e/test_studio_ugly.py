"""The studio in a real browser on a graph that is ugly: names that show nothing, do not end, are
full of quotes, or turn the writing round; values of every kind in one column; times that are open.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from tests.e2e.test_studio import COMPLETING, axe, go, run, studio, tab
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.pages import answered, picture, until

LONG = "L" * 20_000
NAMES = (
    *("O'Neil", 'say "hi"', "both 'a' \"b\"", "back\\slash", "c:\\x\\", "line one\nline two", "Titanic (1997 film)", "a, b"),
    *("<img src=x onerror=window.hacked=1>", "$x", "a/b%20c#d?e=f&g", "abc\u202edef", "zoo", "\u200b", "", LONG),
)
#: A language, a text with `|` for the caret, the name that is offered, the table clause of the program.
TYPED = (
    ("kopl", "Find(O'N|) QueryAttr(text of)", "O'Neil"),
    ("kopl", 'Find(say "h|) QueryAttr(text of)', 'say "hi"'),
    ("kopl", 'Find("say \\"h|") QueryAttr(text of)', 'say "hi"'),
    ("kopl", 'Find("both|', "both 'a' \"b\""),
    ("kopl", "Find(Titanic (19|) QueryAttr(text of)", "Titanic (1997 film)"),
    ("kopl", "Find(a, |) QueryAttr(text of)", "a, b"),
    ("kopl", "Find(line o|) QueryAttr(text of)", "line one\nline two"),
    ("kopl", "Find(c:\\x|) QueryAttr(text of)", "c:\\x\\"),
    ("kopl", "Find($|) QueryAttr(text of)", "$x"),
    ("llm_query", "Query1: \"get_information(relation='text of', head_entity='O\\'N|')\"", "O'Neil"),
    ("llm_query", "Query1: \"get_information(relation='text of', head_entity='O|", "O'Neil"),
    ("llm_query", "Query1: \"get_information(relation='text of', head_entity='say|')\"", 'say "hi"'),
    ("llm_query", "Query1: \"get_information(relation='text of', head_entity='c:|')\"", "c:\\x\\"),
    ("llm_query", "Query1: \"get_information(relation='text of', head_entity='<img|')\"", "<img src=x onerror=window.hacked=1>"),
    ("llm_query", "Query1: \"get_information(relation='text of', head_entity='Titanic (|')\"", "Titanic (1997 film)"),
    ("pattern", "(Titanic (19|) -[text of]-> (UNKNOWN thing 1)", "Titanic (1997 film)"),
    ("pattern", '("line|") -[text of]-> (UNKNOWN thing 1)', "line one\nline two"),
    ("pattern", '("say \\"h|") -[text of]-> (UNKNOWN thing 1)', 'say "hi"'),
    ("logic", '?x : "it\'s near"("say \\"h|", ?x)', 'say "hi"'),
    ("logic", '?x : "it\'s near"("<img|", ?x)', "<img src=x onerror=window.hacked=1>"),
    ("logic", '?x : "it\'s near"("$|", ?x)', "$x"),
    ("sparql", 'SELECT ?e { ?e <pred:name> "O\'N|" }', "O'Neil"),
    ("sparql", "SELECT ?e { ?e <pred:name> 'line|' }", "line one\nline two"),
    ("sparql", "SELECT ?e { ?e <pred:name> 'a/b%20c#|' }", "a/b%20c#d?e=f&g"),
    ("table", "where name = 'O''N|' show count()", "O'Neil"),
)  # fmt: skip


@pytest.fixture(scope="module")
def ugly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("ugly") / "store"
    with condgraph.open(folder) as graph:
        items: list[Any] = [Entity("kind", "kind", EntityKind.CONCEPT)]
        for number, name in enumerate(NAMES):
            items += [Entity(f"e{number}", name), Member(f"e{number}", "kind")]
            items.append(Statement(f"e{number}", "text of", name or "nothing"))
            items.append(Statement(f"e{number}", "it's near", Ref(f"e{(number + 1) % len(NAMES)}")))
        amounts = (Quantity(1, "kg"), Quantity(2, "kg"), Quantity(10**400, "kg"), Quantity(7, "m"))
        items += [Statement(f"e{number}", "amount", value) for number, value in enumerate(amounts)]
        for number in range(6):
            when = [("start time", Time.year(1950 + number))] + [("end time", Time.year(1990))] * (number > 2)
            items.append(Statement(f"s{number}", "allied with", Ref("s0"), tuple(when)))
        items += [Entity(f"h{number}", "John Smith") for number in range(60)]
        graph.add(items, source="ugly")
    with command("-d", str(folder), "--rate", "0") as (url, _):
        yield url


def test_what_is_completed_runs(browser: Any, ugly: str) -> None:
    """What is accepted is a whole name of the language, whatever signs are in it."""
    client = Client(ugly)
    with studio(browser, ugly) as page:
        for language, text, name in TYPED:
            whole = page.evaluate(COMPLETING, [language, text, name, False])
            assert isinstance(whole, str), (text, whole)
            if text.endswith("|"):
                whole += ") QueryAttr(text of)" if language == "kopl" else ')"'
            if language == "table":
                found = client.post("query", program="FindAll()", language="kopl", table=whole)
                assert found["rows"][0][0]["number"] == 1, (text, whole, found)
                continue
            found = client.post("query", program=whole, language=language)
            assert "error" not in found, (text, whole, found["error"]["message"])
            assert found["total"], (text, whole)
            if language in ("kopl", "llm_query"):
                assert found["rows"][0][0]["text"].split() == name.split(), (text, whole)
        # Only what may stand there: no attribute in Relate, no relation in QueryAttr.
        for text, wanted in (("Find(zoo) Relate(te|", "text of"), ("Find(zoo) QueryAttr(it|", "it's near")):
            offered = page.evaluate(COMPLETING, ["kopl", text, "no such name", True])
            assert wanted not in (offered or []), (text, offered)
        for text, whole in (
            ("MATCH (n {name: 'O|'}) RETURN n", "MATCH (n {name: 'O\\'Neil'}) RETURN n"),
            ("MATCH (n)-[:it|]->(m) RETURN m", "MATCH (n)-[:`it's near`]->(m) RETURN m"),
            ("MATCH (n)-[:`it|", "MATCH (n)-[:`it's near`"),
        ):
            wanted = "O'Neil" if "name" in text else "it's near"
            assert page.evaluate(COMPLETING, ["cypher", text, wanted, False]) == whole


def test_names_that_show_nothing_or_do_not_end(browser: Any, ugly: str) -> None:
    with studio(browser, ugly) as page:
        run(page, "FindAll() FilterConcept(kind) QueryName()")
        assert f"(blank name: e{NAMES.index(chr(0x200B))})" in tab(page, "table")
        assert f"(no name: e{NAMES.index('')})" in page.inner_text("[role=tabpanel]")
        assert "(no name)" in tab(page, "steps")
        for name in ("table", "evidence", "steps", "tree"):
            tab(page, name)
            until(page, "document.querySelector('[role=tabpanel]').children.length > 0")
            axe(page, name)
            page.set_viewport_size({"width": 360, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            picture(page, f"ugly-{name}")
            page.set_viewport_size({"width": 1280, "height": 900})
        # A name that turns the writing round turns nothing but itself.
        tab(page, "evidence")
        assert page.evaluate(
            "[...document.querySelectorAll('.entity')].every((one) => getComputedStyle(one).unicodeBidi === 'isolate')"
        )
        go(page, "entity", id=f"e{NAMES.index(LONG)}")
        page.wait_for_selector("h1:has-text('LLL')")
        axe(page, "a long name")
        assert len(page.inner_text("h1")) < 1_000
        page.click("h1 button:has-text('all 20,000 characters')")
        until(page, "name => document.querySelector('h1').innerText === name", LONG)
        picture(page, "ugly-long")
        go(page, "entity", id="h3")
        page.wait_for_selector(".warning:has-text('Others of this name')")
        assert "and 9 more" in page.inner_text(".warning")
        assert page.evaluate("window.hacked") is None


def test_charts_leave_out_nothing_in_silence(browser: Any, ugly: str) -> None:
    with studio(browser, ugly) as page:
        run(page, "FindAll() QueryAttr(amount)")
        tab(page, "chart")
        # One bar says nothing: the one amount in metres is no choice.
        assert page.locator("#chart-of option").all_inner_texts() == ["answer, kg (2)", "evidence: amount, kg (2)"]
        assert "1 value cannot be drawn" in page.inner_text(".panel .warning")
        run(page, "FindAll() Relate(allied with, forward) QueryName()")
        tab(page, "chart")
        assert "3 bars go on to the edge" in page.inner_text(".panel .warning")
        drawn = page.evaluate("document.querySelector('.chart').chart.data.datasets[0].data")
        assert [to > 1991 for _, to in drawn] == [True, True, True, False, False, False]
        picture(page, "ugly-chart")
        run(page, "FindAll() Count()")
        assert page.locator("[data-tab=chart]").count() == 0


@pytest.mark.slow
def test_what_is_drawn_has_the_colours_of_the_page(browser: Any, ugly: str) -> None:
    """A chart or a picture that stands when the colours change is drawn again, of the same choice."""
    with studio(browser, ugly, color_scheme="light") as page:
        run(page, "FindAll() QueryAttr(amount)")
        for part, colour in (
            ("chart", "document.querySelector('.chart').chart.data.datasets[0].backgroundColor"),
            ("evidence", "document.querySelector('.picture .node text').getAttribute('fill')"),
        ):
            page.emulate_media(color_scheme="light")
            tab(page, part)
            if part == "chart":
                page.select_option("#chart-of", "1")
            told = page.locator(".panel canvas, .panel .picture svg").get_attribute("aria-label")
            light = page.evaluate(colour)
            page.select_option("#theme", "dark")
            dark = page.evaluate(colour)
            assert dark != light
            page.select_option("#theme", "auto")
            assert page.evaluate(colour) == light
            page.emulate_media(color_scheme="dark")
            until(page, f"{colour} === '{dark}'")
            assert page.locator(".panel canvas, .panel .picture svg").get_attribute("aria-label") == told


def test_a_link_to_a_graph_that_is_gone_is_not_asked_of_another(browser: Any, ugly: str) -> None:
    with studio(browser, ugly) as page:
        run(page, "FindAll() Count()")
        page.wait_for_selector(".summary")
        go(page, "ask", q="FindAll() FilterConcept(kind) Count()", g="0" * 32)
        page.wait_for_selector(".messages .error:has-text('no such scratch graph')")
        until(page, "document.querySelector('.cm-content').innerText.includes('FilterConcept')")
        page.wait_for_timeout(500)
        assert page.locator(".summary").count() == 0
        assert "no such scratch graph" in page.inner_text(".messages")


@pytest.mark.slow
def test_names_that_an_address_has_no_room_for(browser: Any, tmp_path: Any) -> None:
    name = "\U0001f642" * 10_000
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity(name, name), Statement(name, "says", "hello")])
    with command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _), studio(browser, url) as page:
        run(page, "FindAll() QueryName()")
        tab(page, "table")
        page.click("td a.entity")
        page.wait_for_selector("h2:has-text('What is known of it: 1')")
        assert "all 10,000 characters" in page.inner_text("h1")
        found = page.evaluate(COMPLETING, ["kopl", f"Find({name[:6000]}|) QueryName()", name, False])
        assert found == f"Find({name}) QueryName()"


def test_a_step_keeps_the_line_ends_that_nobody_changed(browser: Any, ugly: str) -> None:
    with studio(browser, ugly) as page:
        run(page, 'Find("line one\\nline two") QueryAttr(text of)')
        tab(page, "tree")
        step = page.locator(".step", has_text="Find").last
        step.locator("summary").click()
        assert step.locator("textarea").input_value() == "line one\nline two"
        step.get_by_text("Change and run").click()
        answered(page)
        assert page.locator(".messages .error").count() == 0
        assert page.inner_text(".summary").startswith("1 answer")
        assert "line one\\nline two" in page.inner_text(".cm-content")


def test_columns_that_are_entities_may_have_commas(browser: Any, ugly: str, tmp_path: Any) -> None:
    (tmp_path / "rows.csv").write_text('name,"born, in",job\nAnn,Oslo,baker\nBob,Rome,smith\n')
    with studio(browser, ugly) as page:
        page.set_input_files("input[type=file]", [tmp_path / "rows.csv"])
        page.click("dialog summary:has-text('Tables')")
        page.fill("#key", "name")
        page.fill("#refs", '"born, in", job')
        page.click("dialog button:has-text('Load')")
        page.wait_for_selector("dialog .loaded")
        page.click("dialog button:has-text('Close')")
        page.wait_for_selector("#graph option:checked:has-text('scratch')", state="attached")
        run(page, 'Find(Ann) Relate("born, in", forward) QueryName()')
        assert "Oslo" in tab(page, "table")
        page.click("header button:has-text('Remove')")


def test_names_in_a_row_do_not_turn_each_other(browser: Any, tmp_path: Any) -> None:
    """A name with a mark that turns the writing round stands in an element of its own."""
    turned = "abc\u202edef"
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Statement(turned, "knows", turned, ((turned, turned), ("since", "1990")))], source=turned)
    with command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _), studio(browser, url) as page:
        run(page, "FindAll() QueryAttr(knows)")
        for name in ("table", "evidence", "steps"):
            tab(page, name)
            assert mixed(page) == [], name
        go(page, "schema")
        page.wait_for_selector("#filter")
        assert mixed(page) == []


def mixed(page: Any) -> list[str]:
    """Texts of elements that have the mark and are not isolated, or have more than the name."""
    found: list[str] = page.evaluate(
        """() => { const found = [], walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) { const text = walk.currentNode.data, own = walk.currentNode.parentElement;
          if (text.includes("\\u202e") && !own.closest(".cm-editor, title") && (text !== "abc\\u202edef"
            || getComputedStyle(own).unicodeBidi !== "isolate")) found.push(text); } return found; }"""
    )
    return found
