"""The studio in a real browser, against a real server: everything that the page can do, on the
samples; names that are scripts; what axe finds.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import Quantity
from condgraph.studio.api import STATIC
from tests.endpoint.test_serve import command
from tests.support.chat_server import Say, serving
from tests.support.pages import answered, picture, until, visited
from tests.support.samples import load_samples

TERMS = (
    "FindAll() FilterNum(height, 4000 m, >) Relate(country, forward) Relate(head of government, forward)"
    " QFilterYear(start time, 1984, <=) QFilterYear(end time, 1984, >=) QueryName()"
)
LLM = "Query1: \"get_information(relation='height', tail_entity>'7000')\"\nQuery2: \"count(set='output_of_query1')\""
#: What would run, were it read as HTML, a style, or an address.
SCRIPTS = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "javascript:window.hacked=1",
    "</textarea><svg onload=window.hacked=1>",
    "{{constructor.constructor('window.hacked=1')()}}",
    "';window.hacked=1;//",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    "\u202egnp.exe <b onmouseover=window.hacked=1>",
    "<style>*{background:url(http://evil.example/)}</style>",
    "&lt;img src=x onerror=window.hacked=1&gt;",
)


@pytest.fixture(scope="module")
def served(samples_world: Path) -> Iterator[str]:
    with serving(Say(["Query1: \"get_information(relation='capital', head_entity='Nepal')\""])) as model:
        os.environ.setdefault("OPENAI_API_KEY", "sk-a-secret-of-the-tests-0123456789")
        with command("-d", str(samples_world), "--rate", "0", "--llm", f"openai:small@{model.url}") as (url, _):
            yield url


@contextmanager
def studio(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """The studio, which may read and write the clipboard. Styles that a browser carries along where
    one types are no errors of the page.
    """
    options = {"viewport": {"width": 1280, "height": 900}, "accept_downloads": True} | options
    with visited(browser, url, "/studio/", "body[data-ready]", known=("inline style",), **options) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield page


def go(page: Any, place: str, **fields: str) -> None:
    page.evaluate("address => { location.hash = address }", f"#/{place}?{urlencode(fields)}")


def run(page: Any, text: str, language: str = "auto") -> None:
    page.click("nav a[data-page=ask]")
    page.wait_for_selector(".cm-content")
    page.select_option("#language", language)
    page.click(".cm-content")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.keyboard.press("Control+Enter")
    answered(page)


def tab(page: Any, name: str) -> str:
    page.click(f"[data-tab={name}]")
    return str(page.inner_text("[role=tabpanel]"))


def axe(page: Any, where: str, *, minor: bool = False) -> None:
    """Nothing serious is found by axe, of the rules of WCAG A and AA and of its good practice; with `minor` nothing at all."""
    package = pytest.importorskip("axe_playwright_python")
    if not page.evaluate("'axe' in window"):
        page.evaluate((Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    options = {"runOnly": {"type": "tag", "values": tags}, "resultTypes": ["violations"]}
    # What has passed is most of the result, and would be sent as text.
    violations = page.evaluate("options => axe.run(document, options).then((result) => result.violations)", options)
    bad = [
        (one["id"], one["impact"], [node["html"][:120] for node in one["nodes"]][:3])
        for one in violations
        if minor or one["impact"] in ("serious", "critical")
    ]
    assert not bad, (where, bad)


def test_an_answer_and_its_parts(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, TERMS)
        assert "John Turner" in tab(page, "table")
        picture(page, "table")
        page.click("[data-tab=chart]")
        until(page, "document.querySelector('.chart')?.chart?.data.datasets[0].data.length === 6")
        assert page.evaluate("document.querySelector('.chart').chart.data.datasets[0].data.every(([a, b]) => a < 1985 && b > 1984)")
        choices = page.locator("#chart-of option").all_inner_texts()
        assert any(one.startswith("evidence: height, m") for one in choices)
        picture(page, "chart")
        assert "mountains, row" in tab(page, "evidence")
        assert page.locator(".picture .edges path").count() == 18
        page.click(".picture .node[aria-label='Mount Logan, row']")
        assert "Mount Logan country Canada" in page.inner_text(".chosen")
        assert "mountains, row" in page.inner_text(".chosen")
        picture(page, "evidence")
        steps = tab(page, "steps")
        assert "QFilterYear" in steps
        assert "156" in steps
        queries = tab(page, "queries")
        assert "MATCH" in queries
        assert "SELECT" in queries
        page.click("[data-copy=Cypher]")
        page.wait_for_selector("text=Copied.")
        assert "MATCH" in page.evaluate("navigator.clipboard.readText()")
        # The arrows go from tab to tab.
        page.focus("[data-tab=queries]")
        page.keyboard.press("Home")
        assert page.evaluate("document.activeElement.dataset.tab") == "table"
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"


def test_an_empty_answer_says_why(browser: Any, served: str) -> None:
    with studio(browser, served, viewport={"width": 1100, "height": 520}) as page:
        run(page, "FindAll() FilterNum(height, 9000 m, >) QueryName()")
        shown = page.inner_text("main")
        assert "the answer is empty: FilterNum returned nothing" in shown
        assert "with 'height' >= 8167 m: 1 result (Dhaulagiri I)" in shown
        picture(page, "empty-answer")


def test_a_program_as_a_tree(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, TERMS)
        page.click("[data-tab=tree]")
        page.wait_for_selector(".tree .step")
        until(page, "document.querySelectorAll('.tree .step').length === 7")
        step = page.locator(".step", has_text="FilterNum").first
        step.locator("summary").click()
        picture(page, "tree")
        step.get_by_text("Show the result of this step").click()
        step.locator(".values li").first.wait_for()
        step.locator(":text('20 results')").first.wait_for()
        step.locator("input").nth(1).fill("7000 m")
        step.get_by_text("Change and run").click()
        until(page, "document.querySelector('.cm-content').innerText.includes('7000 m')")
        until(page, "document.querySelector('.summary')?.innerText.startsWith('2 answers')")
        run(page, LLM)
        tab(page, "tree")
        step = page.locator(".step", has_text="Query1").last
        step.locator("summary").click()
        step.locator("input").last.fill("8000")
        step.get_by_text("Change and run").click()
        until(page, "document.querySelector('.cm-content').innerText.includes(\"tail_entity>'8000'\")")
        answered(page)
        assert tab(page, "table").startswith("answer\n3\n")


def test_every_language(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        for text, language, shown in (
            (LLM, "llm_query", "5"),
            ("(UNKNOWN mountain 1) -[country]-> (Nepal)", "pattern", "Annapurna I"),
            ('?x : capital("Nepal", ?x)', "logic", "Kathmandu"),
            ("SELECT ?n { ?m <country>/<pred:name> 'Nepal' ; <pred:name> ?n }", "auto", "Manaslu"),
            ("Find(Nepal) QueryAttr(population)", "kopl", ""),
        ):
            run(page, text, language)
            if shown:
                assert shown in tab(page, "table")


def test_messages_stand_where_they_belong(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, "FindAll() FilterNum(hight, 7000 m, >) QueryName()")
        page.wait_for_selector(".cm-lintRange-error")
        assert page.inner_text(".cm-lintRange-error") == "hight"
        picture(page, "error")
        axe(page, "an error")
        page.click("button.near:has-text('height')")
        until(page, "document.querySelector('.cm-content').innerText.includes('FilterNum(height,')")
        until(page, "document.querySelector('.summary')?.innerText.startsWith('5 answers')")
        assert page.locator(".cm-lintRange-error").count() == 0
        # Places are those of characters, whatever stands before.
        run(page, "Find(😀é) QueryAttr(hight)")
        page.wait_for_selector(".messages .error")
        run(page, "Find(Nepal) Relate(capital, backward) QueryName()")
        page.wait_for_selector(".messages .warning")
        assert "the answer is empty" in page.inner_text(".messages")


def test_completion(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        page.click(".cm-content")
        page.keyboard.type("Fin", delay=30)
        page.wait_for_selector(".cm-tooltip-autocomplete li:has-text('FindAll')")
        page.keyboard.type("d(Annap", delay=30)
        page.wait_for_selector(".cm-tooltip-autocomplete li:has-text('Annapurna I')")
        picture(page, "completion")
        page.wait_for_timeout(150)  # what is chosen too soon was not meant
        page.keyboard.press("Enter")
        until(page, "document.querySelector('.cm-content').innerText.startsWith('Find(Annapurna I)')")
        page.keyboard.press("End")
        page.keyboard.type(" Relate(cou", delay=30)
        page.wait_for_selector(".cm-tooltip-autocomplete li:has-text('country')")
        # Tab leaves the editor, and then the clause below it, so that nobody is caught there.
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.cm-editor').parentElement.classList.contains('small')")
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('.cm-editor')")


#: What is asked of the page's own module: a text with `|` for the caret, and the option that is taken.
COMPLETING = """async ([language, text, wanted, explicit]) => {
    const { complete } = await import(document.body.dataset.root + "studio/static/completion.js");
    const pos = text.indexOf("|"), doc = text.replace("|", "");
    const found = await complete({ state: { doc }, pos, explicit, addEventListener() {} }, language);
    const option = found?.options.find((one) => one.label === wanted);
    if (!option) return found?.options.map((one) => one.label) ?? null;
    return doc.slice(0, found.from) + (option.apply ?? option.label) + doc.slice(pos);
}"""
#: In which language what stands there, which name or word is offered, and what stands there then.
COMPLETED = (
    ("pattern", "(UNK|)", "UNKNOWN", "(UNKNOWN )"),
    ("pattern", "(UNKNOWN cou|)", "country", "(UNKNOWN country)"),
    ("pattern", "(UNKNOWN mountain 1) -[coun|]", "country", "(UNKNOWN mountain 1) -[country]"),
    ("pattern", "(UNKNOWN mountain 1) -[country]-> (Nep|)", "Nepal", "(UNKNOWN mountain 1) -[country]-> (Nepal)"),
    ("pattern", "(Nepal) <|", "<-[", "(Nepal) <-["),
    ("pattern", "(Nepal) <-[country]-|", "-(", "(Nepal) <-[country]-("),
    ("pattern", '("UNKNOWN film 1", "head o|")', "head of government", '("UNKNOWN film 1", "head of government")'),
    ("pattern", '[["Nep', "Nepal", '[["Nepal"'),
    ("logic", "?x : not exi|", "exists", "?x : not exists"),
    ("logic", "?x : cap|", "capital", "?x : capital("),
    ("logic", "?x : capital(?x, ?v) and hea|", "head of government", '?x : capital(?x, ?v) and "head of government"('),
    ("logic", '?x : (not "head o|"(?x, ?v))', "head of government", '?x : (not "head of government"(?x, ?v))'),
    ("logic", '?x : capital("Nep|", ?x)', "Nepal", '?x : capital("Nepal", ?x)'),
    ("logic", "?x : capital(Nep|)", "Nepal", '?x : capital("Nepal")'),
    ("logic", "?x : country(<Annap|", "Annapurna I", "?x : country(<mountains/Annapurna I>"),
    ("logic", "?place : capital(?x, ?pl|)", "?place", "?place : capital(?x, ?place)"),
    ("sparql", "SELECT * wh|", "WHERE", "SELECT * WHERE"),
    ("sparql", "SELECT * { ?s <head_o| }", "head of government", "SELECT * { ?s <head_of_government> }"),
    ("sparql", "SELECT * { ?s <Annap|>", "Annapurna I", "SELECT * { ?s <mountains/Annapurna_I>"),
    ("sparql", "SELECT * { ?s capi| }", "capital", "SELECT * { ?s <capital> }"),
    ("sparql", "SELECT * { ?s pred:na| }", "pred:name", "SELECT * { ?s pred:name }"),
    ("sparql", "SELECT * { ?s <pred:instance| }", "pred:instance_of", "SELECT * { ?s <pred:instance_of> }"),
    (
        "sparql",
        "SELECT * { # don't <\n ?s pred:name 'Annap|' }",
        "Annapurna I",
        "SELECT * { # don't <\n ?s pred:name 'Annapurna I' }",
    ),
    ("sparql", "SELECT ?mountain { ?mou|", "?mountain", "SELECT ?mountain { ?mountain"),
    # Recognised by how it begins.
    ("auto", "SELECT * { ?s <first_a|", "first ascent", "SELECT * { ?s <first_ascent>"),
    ("auto", "(UNKNOWN mountain 1) -[coun|", "country", "(UNKNOWN mountain 1) -[country"),
    ("auto", "?x : capi|", "capital", "?x : capital("),
    ("auto", "Find(Nep|", "Nepal", "Find(Nepal"),
    ("auto", 'Query1: "get_inf|', "get_information", 'Query1: "get_information('),
    ("table", "gro|", "group by", "group by "),
    ("table", "group by coun|", "country", "group by country"),
    ("table", "group by head of gov|", "head of government", "group by head of government"),
    ("table", 'group by "head of| show', "head of government", 'group by "head of government" show'),
    ("table", "group by country sho|", "show", "group by country show "),
    ("table", "group by country show me|", "mean(", "group by country show mean("),
    ("table", "group by head of government@sta|", "start time", "group by head of government@start time"),
    ("table", "show count() limit 10 wi|", "with ties", "show count() limit 10 with ties "),
    ("table", "where name = 'Nep|", "Nepal", "where name = 'Nepal'"),
)
#: Where nothing is offered by itself.
SILENT = (
    ("pattern", "(UNKNOWN mountain 1|"),
    ("pattern", "(?film|"),
    ("logic", "?x : capital(|"),
    ("sparql", "SELECT * { FILTER(?x <|"),
    ("sparql", "SELECT * # sel|"),
    ("table", "limit 1|"),
    ("words", "Nep|"),
)


def test_completion_of_every_language(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        for language, text, wanted, whole in COMPLETED:
            text = text if "|" in text else f"{text}|"
            assert page.evaluate(COMPLETING, [language, text, wanted, False]) == whole, text
        for language, text in SILENT:
            assert page.evaluate(COMPLETING, [language, text, "", False]) is None, text
        # What is asked for: predicates, before anything was written.
        assert page.evaluate(COMPLETING, ["sparql", "SELECT * { ?s <|", "height", True]) == "SELECT * { ?s <height>"
        # And as it is typed.
        page.select_option("#language", "sparql")
        page.click(".cm-content")
        page.keyboard.insert_text("SELECT ?peak { ?peak <country> ")
        page.keyboard.type("<Nep", delay=30)
        page.wait_for_selector(".cm-tooltip-autocomplete li:has-text('Nepal')")
        picture(page, "completion-sparql")
        page.wait_for_timeout(150)  # what is chosen too soon was not meant
        page.keyboard.press("Enter")
        page.keyboard.insert_text(" }")
        page.keyboard.press("Control+Enter")
        until(page, "document.querySelector('.summary')?.innerText.startsWith('3 answers')")
        page.select_option("#language", "kopl")
        page.click(".editor.small .cm-content")
        page.keyboard.type("group by coun", delay=30)
        page.wait_for_selector(".editor.small li:has-text('country')")
        picture(page, "completion-clause")


def test_a_clause_makes_a_table(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, "FindAll() FilterNum(height, 5000 m, >)")
        page.click(".editor.small .cm-content")
        page.keyboard.insert_text("group by contry show count(), max(height) as top having count() > 1 order by top desc")
        page.keyboard.press("Control+Enter")
        # What is wrong with the clause is told there.
        page.wait_for_selector(".editor.small .cm-lintRange-error")
        assert page.inner_text(".editor.small .cm-lintRange-error") == "contry"
        picture(page, "clause-error")
        axe(page, "a clause")
        page.click("button.near:has-text('country')")
        until(page, "document.querySelector('.summary')?.innerText.startsWith('2 answers')")
        assert tab(page, "table").split("\n")[:2] == ["country\tcount()\ttop", "Nepal\t3\t8167 m"]
        picture(page, "clause")
        with page.expect_download() as waited:
            page.click("[data-export=csv]")
        assert "Nepal" in Path(waited.value.path()).read_text()
        # A link and the history have the clause; a question without one has none.
        page.click("text=Copy a link")
        until(page, "document.querySelector('.messages').innerText.includes('copied')")
        address = page.evaluate("navigator.clipboard.readText()")
        page.goto("about:blank")
        page.goto(address)
        until(page, "document.querySelector('.summary')?.innerText.startsWith('2 answers')")
        page.click("nav a:has-text('History')")
        page.click(".history a")
        until(page, "document.querySelector('.editor.small .cm-content')?.innerText.startsWith('group by country')")
        until(page, "document.querySelector('.summary')?.innerText.startsWith('2 answers')")
        go(page, "ask", q="FindAll() Count()")
        until(page, "document.querySelector('.summary')?.innerText.startsWith('1 answer')")
        # Languages without tables have no place for a clause.
        for language in ("pattern", "sparql", "words"):
            page.select_option("#language", language)
            assert not page.is_visible(".clause")
        page.set_viewport_size({"width": 360, "height": 740})
        page.select_option("#language", "logic")
        assert page.is_visible(".clause")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_looking_history_and_links(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, "Find(Nepal) Relate(country, backward) QueryName()")
        tab(page, "table")
        page.click(".answers a:has-text('Manaslu')")
        page.wait_for_selector("h1:has-text('Manaslu')")
        page.wait_for_selector("main:has-text('mountains, row')")
        picture(page, "entity")
        axe(page, "an entity")
        go(page, "entity", name="Nepall")
        page.wait_for_selector("h1:has-text('Not found')")
        page.click("main a:has-text('Nepal')")
        page.wait_for_selector("h2:has-text('What points here: 3')")
        page.click("nav a:has-text('Schema')")
        page.wait_for_selector("#filter")
        axe(page, "the schema")
        page.fill("#filter", "height")
        page.wait_for_selector("h2:has-text('Predicates (1)')")
        picture(page, "schema")
        page.click("nav a:has-text('History')")
        page.wait_for_selector(".history a")
        axe(page, "the history")
        page.click(".history a")
        # The answer before stands until this one comes.
        page.wait_for_selector(".summary")
        answered(page)
        page.click("text=Copy a link")
        until(page, "document.querySelector('.messages').innerText.includes('copied')")
        address = page.evaluate("navigator.clipboard.readText()")
        page.goto("about:blank")
        page.goto(address)
        until(page, "document.querySelector('.summary')?.innerText.startsWith('3 answers')")
        page.click("nav a:has-text('History')")
        page.click("text=Forget all")
        page.wait_for_selector("main:has-text('Nothing was asked yet')")


def test_the_page_of_the_api(browser: Any, served: str) -> None:
    """Every operation stands there, and the command of one answers when it is run."""
    with studio(browser, served) as page:
        page.click("nav a:has-text('API')")
        page.wait_for_selector(".operation")
        stand = page.locator(".operation h2").all_inner_texts()
        with urllib.request.urlopen(f"{served}/api/v1/openapi.json") as reply:
            paths = json.load(reply)["paths"]
        assert stand == [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
        commands = page.locator(".operation pre").all_inner_texts()
        about = commands[stand.index("GET /api/v1/about")]
        assert json.loads(subprocess.run(shlex.split(about), check=True, capture_output=True).stdout)["graph"] == "default"
        query = commands[stand.index("POST /api/v1/query")].replace("…", "Find(Nepal) QueryName()")
        said = json.loads(subprocess.run(shlex.split(query), check=True, capture_output=True).stdout)
        assert said["rows"][0][0]["text"] == "Nepal", said
        picture(page, "api")
        page.click(".operation a:has-text('Answer') >> nth=0")
        page.wait_for_selector("#schema-Answer[open] td code:text-is('evidence')")
        axe(page, "the API, a schema")
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_exports(browser: Any, served: str, tmp_path: Path) -> None:
    import pyarrow as pa

    with studio(browser, served) as page:
        run(page, "Find(Nepal) Relate(country, backward) QueryName()")
        tab(page, "table")
        for form in ("csv", "json", "arrow"):
            with page.expect_download() as waited:
                page.click(f"[data-export={form}]")
            waited.value.save_as(tmp_path / f"answer.{form}")
        names = {"Annapurna I", "Dhaulagiri I", "Manaslu"}
        with (tmp_path / "answer.csv").open(encoding="utf-8", newline="") as file:
            assert {row["answer"] for row in csv.DictReader(file)} == names
        assert {row[0]["text"] for row in json.loads((tmp_path / "answer.json").read_text())["rows"]} == names
        with pa.ipc.open_stream((tmp_path / "answer.arrow").read_bytes()) as stream:
            assert set(stream.read_all()["text"].to_pylist()) == names


def test_files_that_are_dropped(browser: Any, served: str, tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("city,people\nOslo,700000\nBergen,290000\n")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 20)
    with studio(browser, served) as page:
        page.set_input_files("input[type=file]", [tmp_path / "cities.csv", tmp_path / "noise.bin"])
        page.click("dialog summary:has-text('Tables')")
        page.fill("#key", "city")
        page.click("dialog button:has-text('Load')")
        page.wait_for_selector("dialog .error")
        assert "cities.csv: csv, " in page.inner_text("dialog")
        assert "noise.bin" in page.inner_text("dialog .error")
        picture(page, "files")
        axe(page, "files")
        page.click("dialog button:has-text('Close')")
        page.wait_for_selector("#graph option:checked:has-text('scratch')", state="attached")
        run(page, "FindAll() FilterNum(people, 500000, >) QueryName()")
        assert "Oslo" in tab(page, "table")
        assert "cities.csv, row 1" in tab(page, "evidence")
        # Dropped on the window.
        page.evaluate(
            """() => { const data = new DataTransfer(); data.items.add(new File(['a,b\\n1,2\\n'], 'more.csv'));
            dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})) }"""
        )
        page.wait_for_selector("dialog:has-text('more.csv')")
        page.click("dialog button:has-text('Close')")
        page.click("header button:has-text('Remove')")
        until(page, "document.querySelector('#graph').value === ''")
        run(page, "FindAll() Count()")
        assert "156" in tab(page, "table")


def test_in_words(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, "What is the capital of Nepal?", "words")
        page.wait_for_selector("h2:has-text('Answer')")
        assert "Kathmandu" in page.inner_text(".answer")
        page.click("summary:has-text('How it came about')")
        assert "write" in page.inner_text(".steps")
        picture(page, "words")
        # The next question may refer to it.
        run(page, "And its continent?", "words")
        page.wait_for_selector("p.reference")
        assert page.inner_text("p.reference") == "“its” is Nepal, of the question 'What is the capital of Nepal?'"
        axe(page, "a conversation")
        page.click("summary:has-text('After 1 question')")
        page.click("text=Begin anew")
        assert page.locator(".turns").count() == 0
        page.click("summary:has-text('How it came about')")
        page.click("text=Open in the editor")
        until(page, "document.querySelector('.summary')?.innerText.includes('LLM query')")


@pytest.mark.slow
def test_small_screens_dark_mode_and_axe(browser: Any, served: str) -> None:
    for scheme in ("light", "dark"):
        with studio(browser, served, color_scheme=scheme) as page:
            run(page, TERMS)
            names = ("table", "chart", "evidence", "tree", "steps", "queries")
            for name in names:
                tab(page, name)
                page.wait_for_timeout(150)
                axe(page, f"{scheme}: {name}")
            picture(page, scheme)
            page.set_viewport_size({"width": 360, "height": 740})
            for name in ("table", "evidence", "tree"):
                tab(page, name)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            picture(page, f"small-{scheme}")


def test_names_that_are_scripts(browser: Any, tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity(f"e{i}", text) for i, text in enumerate(SCRIPTS)], source=SCRIPTS[0])
        graph.add([Statement(f"e{i}", text, Quantity(i, text)) for i, text in enumerate(SCRIPTS)], source=SCRIPTS[1])
        graph.add([Statement(f"e{i}", "says", text, ((text, text),)) for i, text in enumerate(SCRIPTS)], source=SCRIPTS[3])
    with command("-d", str(tmp_path / "store"), "--rate", "0") as (url, _), studio(browser, url) as page:
        for program in ("FindAll() QueryName()", "FindAll() QueryAttr(says)", "FindAll() FilterStr(says, x)"):
            run(page, program)
            for one in page.locator("[role=tab]").all():
                one.click()
                page.wait_for_timeout(100)
        run(page, "SELECT * { ?s ?p ?o }")
        tab(page, "table")
        run(page, f"Find({SCRIPTS[0]}) QueryAttr({SCRIPTS[1]})")
        for text in SCRIPTS:
            go(page, "entity", name=text)
            until(page, "name => document.querySelector('h1')?.innerText.trim() === name.trim()", arg=text)
        go(page, "schema")
        page.wait_for_selector("#filter")
        go(page, "ask", q=SCRIPTS[1], l="<img src=x onerror=window.hacked=1>", g=SCRIPTS[1])
        page.wait_for_selector(".messages .error")
        page.set_input_files(
            "input[type=file]", [{"name": SCRIPTS[1].replace("/", ""), "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"}]
        )
        page.click("dialog button:has-text('Load')")
        page.wait_for_selector("dialog .loaded, dialog .error")
        assert page.evaluate("window.hacked") is None
        page.wait_for_selector("h1:has-text('What can be asked about')")
        # The first page's picture of the schema may come late. It is an image of a text, in which no script runs.
        own = "[src^='data:image/svg+xml;']"
        hostile = f"main img:not({own}), main iframe, main script, main [onload], main [onerror], main [onmouseover]"
        assert page.locator(hostile).count() == 0


@pytest.mark.slow
def test_on_neo4j(browser: Any, neo4j_uri: str) -> None:
    name = f"studio{os.getpid()}"
    with condgraph.open(neo4j_uri, graph=name) as graph:
        load_samples(graph)
        try:
            with command("-d", neo4j_uri, "--graph", name, "--workers", "2") as (url, _), studio(browser, url) as page:
                assert "on Neo4j" in page.inner_text("#graph")
                run(page, TERMS)
                assert "John Turner" in tab(page, "table")
                assert "mountains, row" in tab(page, "evidence")
                page.click("[data-tab=tree]")
                page.wait_for_selector(".tree .size")
                assert "MATCH" in tab(page, "queries")
                picture(page, "neo4j")
                run(page, "MATCH (e:CondgraphEntity {name: 'Nepal'}) RETURN e.name AS name")
                assert "Nepal" in tab(page, "table")
                go(page, "entity", id="Nepal")
                page.wait_for_selector("h2:has-text('What points here: 3')")
        finally:
            graph.delete()


def test_a_token_is_asked_for(browser: Any, served: str, tmp_path: Path) -> None:
    token = "a-token-of-the-tests-0123456789"
    (tmp_path / "tokens").write_text(f"ann:{token}\n")
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Statement("Oslo", "capital of", "Norway")])
    with command("-d", str(tmp_path / "store"), "--token-file", str(tmp_path / "tokens")) as (url, _):
        context = browser.new_context()
        page = context.new_page()
        page.goto(url + "/studio/")
        page.wait_for_selector("dialog.token")
        picture(page, "token")
        axe(page, "the token")
        page.fill("#token", token)
        page.keyboard.press("Enter")
        page.wait_for_selector("body[data-ready]")
        page.wait_for_selector("#language option[value=kopl]", state="attached")
        assert token not in page.url
        context.close()


def test_the_policy_and_the_licences() -> None:
    own = [path for path in STATIC.iterdir() if path.suffix in (".js", ".css") and not path.name.startswith("vendor")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in own) < 3000
    for path in own:
        # A name of SVG, which is no address.
        text = path.read_text(encoding="utf-8").replace('createElementNS("http://www.w3.org/2000/svg"', "")
        for wrong in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "http://",
            "https://",
        ):
            assert wrong not in text, (path.name, wrong)
    licences = (STATIC / "vendor.LICENSES.txt").read_text(encoding="utf-8")
    for package in ("@codemirror/view", "chart.js", "d3-force", "@lezer/highlight", "style-mod"):
        assert f"\n{package} " in licences
    assert "no text of its licence" not in licences
    vendor = (STATIC / "vendor.js").read_text(encoding="utf-8")
    assert "sourceMappingURL" not in vendor
    assert len(vendor) < 2 << 20
