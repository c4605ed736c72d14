"""The page of `condgraph serve` in a real browser: YASGUI comes from the server, asks it, and shows
what it answers.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from tests.endpoint.test_serve import command
from tests.support.pages import picture, until, visited

QUERY = """PREFIX pred: <pred:>
# Relative IRIs are names of the graph.
SELECT ?mountain ?metres ?country WHERE {
  ?m pred:name ?mountain ; <height>/pred:value ?metres ; <country>/pred:name ?country
  FILTER(?metres > 8000)
} ORDER BY DESC(?metres)"""


@pytest.fixture(scope="module")
def served(samples_world: Path) -> Iterator[str]:
    with command("-d", str(samples_world), "--timeout", "5", "--limit", "40") as (url, _):
        yield url


def yasgui(browser: Any, url: str, *silent: str) -> AbstractContextManager[Any]:
    """The page, whose console has no errors, and nothing of the kinds `silent`."""
    return visited(browser, url, "/sparql", ".CodeMirror", silent=("error", *silent))


def test_a_query_is_asked_and_answered(browser: Any, served: str) -> None:
    with yasgui(browser, served) as page:
        # The first query is there to be run.
        page.click(".yasqe_queryButton")
        page.wait_for_selector(".yasr table.dataTable tbody tr")
        page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", QUERY)
        with page.expect_response(
            lambda response: response.url.endswith("/sparql") and response.request.method == "POST"
        ) as answered:
            page.click(".yasqe_queryButton")
        assert answered.value.status == 200
        until(page, "document.querySelector('.yasr table.dataTable')?.innerText.includes('Annapurna I')")
        shown = page.inner_text(".yasr table.dataTable")
        assert "Nepal" in shown
        picture(page, "yasgui")
        # A query that is wrong shows what the server says of it.
        page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", "SELECT * { ?s ?p ?o } LIMIT many")
        page.evaluate("yasgui.getTab().query().catch(() => null)")
        page.wait_for_selector(".yasr .errorResult, .yasr .error_result, .yasr [class*=error]")
        until(page, "document.querySelector('.yasr').innerText.includes('line 1')")


def test_a_cut_result_says_so(browser: Any, served: str) -> None:
    with yasgui(browser, served) as page:

        def run(query: str) -> None:
            page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", query)
            with page.expect_response(lambda response: response.url.endswith("/sparql") and response.request.method == "POST"):
                page.click(".yasqe_queryButton")

        everything = "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }"
        run(everything)
        page.wait_for_selector(".yasr .cut", state="visible")
        assert page.inner_text(".yasr .cut").startswith("Cut at 40 rows")
        page.wait_for_selector(".yasr table.dataTable tbody tr")
        picture(page, "yasgui-cut")
        # The page keeps results, and what they are.
        page.reload()
        page.wait_for_selector(".yasr .cut", state="visible")
        # What is whole says nothing, and neither does an error; another tab has its own results.
        run(everything + " LIMIT 40")
        page.wait_for_selector(".yasr table.dataTable tbody tr")
        page.wait_for_selector(".yasr .cut", state="detached")
        run("CONSTRUCT WHERE { ?subject ?predicate ?object }")
        page.wait_for_selector(".yasr .cut", state="visible")
        run("SELECT * { ?s ?p ?o } LIMIT many")
        page.wait_for_selector(".yasr .cut", state="detached")
        run(everything)
        page.wait_for_selector(".yasr .cut", state="visible")
        page.click(".addTab")
        until(page, "document.querySelectorAll('.tabsList [role=tab]').length >= 2 || Boolean(yasgui.getTab().getYasr())")
        until(page, "!document.querySelector('.tabPanel.active .cut')")


def test_names_stand_beside_iris_and_examples_run(browser: Any, served: str) -> None:
    with yasgui(browser, served, "warning") as page:
        until(page, "document.querySelectorAll('#examples option').length >= 5")
        options = page.locator("#examples option").all_inner_texts()
        assert options[0] == "choose a query"
        assert len(options) >= 5
        # An example stands in a tab of its own, with results.
        about = next(one for one in options if one.startswith("Who has"))
        page.select_option("#examples select", label=about)
        page.wait_for_selector(".yasr table.dataTable tbody tr .called")
        names = page.locator(".yasr .called").all_inner_texts()
        row = page.inner_text(".yasr table.dataTable tbody tr")
        assert names[0] in row
        # A link leads to what the graph says of it: predicates by their names, values as values.
        page.locator(".yasr a.iri").first.click()
        page.wait_for_selector(f".tabsList .active:has-text({names[0]!r})")
        page.wait_for_selector(f".called:text-is({about.split(chr(39))[1]!r}) >> visible=true")
        page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", "SELECT ?value { ?m <height> ?value } LIMIT 3")
        page.evaluate("yasgui.getTab().query()")
        until(page, "[...document.querySelectorAll('.tabPanel.active .called')].some(one => /^[0-9.]+ m/.test(one.innerText))")
        picture(page, "yasgui-names")


def test_names_are_completed(browser: Any, served: str) -> None:
    with yasgui(browser, served, "warning") as page:

        def taken(query: str, typed: str, shown: str) -> str:
            """The query once a text was typed at its end and a suggestion was taken."""
            page.evaluate(
                "text => { const e = yasgui.getTab().getYasqe(); e.setValue(text); e.focus(); e.execCommand('goDocEnd') }", query
            )
            page.keyboard.type(typed, delay=40)
            page.locator(".CodeMirror-hints li", has_text=shown).first.wait_for()
            if typed == "<Annap":
                picture(page, "yasgui-completion")
            page.locator(".CodeMirror-hints li", has_text=shown).first.click()
            return str(page.evaluate("yasgui.getTab().getYasqe().getValue()"))

        assert taken("SELECT * { ?m ", "<head", "head of government") == "SELECT * { ?m <head_of_government>"
        assert taken("SELECT * { ?m ", "cou", "country   <country>") == "SELECT * { ?m <country>"
        assert taken("SELECT * { ?m ", "pred:na", "pred:name") == "SELECT * { ?m pred:name"
        assert taken("SELECT * { ?m pred:name ", "'Annap", "Annapurna I").startswith("SELECT * { ?m pred:name 'Annapurna I'")
        # Entities by what they are called; the id of a row begins with its table.
        query = taken("SELECT ?country { ", "<Annap", "Annapurna I   <mountains/Annapurna_I>")
        assert query == "SELECT ?country { <mountains/Annapurna_I>"
        page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", query + " <country> ?country }")
        page.click(".yasqe_queryButton")
        until(page, "document.querySelector('.yasr .called')?.innerText === 'Nepal'")


def test_the_licences_are_there() -> None:
    from condgraph.endpoint.app import STATIC

    text = (STATIC / "yasgui.LICENSES.txt").read_text(encoding="utf-8")
    for package in ("@zazuko/yasgui ", "codemirror ", "datatables.net", "jquery "):
        assert f"\n{package}" in text
    script = (STATIC / "yasgui.min.js").read_text(encoding="utf-8")
    assert "sourceMappingURL" not in script
    assert sum(Path(path).stat().st_size for path in STATIC.iterdir()) < 3 << 20


def asked(page: Any, query: str) -> None:
    """Ask a query in the tab that is open."""
    page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", query)
    with page.expect_response(lambda response: response.url.endswith("/sparql") and response.request.method == "POST"):
        page.click(".tabPanel.active .yasqe_queryButton")


_CHART = "document.querySelector('.tabPanel.active .picture.chart')?.picture"
_GRAPH = "document.querySelector('.tabPanel.active .picture.graph')?.picture"


def drawn_edges(page: Any) -> list[list[str]]:
    """The edges of the graph view: what each leads from, is called and leads to."""
    until(page, f"{_GRAPH}?.edges.length > 0")
    name = "id => shown.nodes.find((one) => one.id === id).label"
    ends = (
        f"{{ const shown = {_GRAPH}, name = {name}; return shown.edges.map((one) => [name(one.from), one.label, name(one.to)]) }}"
    )
    found: list[list[str]] = page.evaluate(f"() => {ends}")
    return found


def test_numbers_are_drawn_as_a_chart(browser: Any, served: str) -> None:
    with yasgui(browser, served, "warning") as page:
        asked(page, QUERY)
        page.click(".select_chart")
        until(page, f"{_CHART}?.data.labels.length > 0")
        assert page.evaluate(f"{_CHART}.data.labels") == ["Dhaulagiri I", "Manaslu", "Annapurna I"]
        assert page.evaluate(f"{_CHART}.data.datasets.map(one => [one.label, one.data])") == [["metres", [8167, 8163, 8091]]]
        picture(page, "yasgui-chart")
        # A chart stays the choice where the next result has numbers, and is none where it has not.
        named = "?m <height> ?h ; <pred:name> ?mountain"
        asked(page, f"SELECT ?mountain (STRLEN(?mountain) AS ?letters) (2 * STRLEN(?mountain) AS ?twice) {{ {named} }} LIMIT 3")
        until(page, f"{_CHART}?.data.datasets.map(one => one.label).join() === 'letters,twice'")
        # Nodes of values are the numbers that their IRIs say.
        asked(page, "SELECT ?mountain ?height { ?mountain <height> ?height } LIMIT 3")
        until(page, f"{_CHART}?.data.datasets[0].label === 'height, m'")
        assert all(number > 100 for number in page.evaluate(f"{_CHART}.data.datasets[0].data"))
        asked(page, f"SELECT ?mountain {{ {named} }} LIMIT 3")
        page.wait_for_selector(".tabPanel.active .yasr table.dataTable tbody tr")
        until(page, "!document.querySelector('.tabPanel.active .picture')")


def test_things_are_drawn_as_a_graph(browser: Any, served: str) -> None:
    with yasgui(browser, served, "warning") as page:
        asked(page, "SELECT ?mountain ?country { ?mountain <height> ?h ; <country> ?country }")
        page.click(".select_graph")
        # Names come after what is drawn.
        until(page, f"{_GRAPH}?.edges.some((one) => one.label === 'country')")
        assert ["Annapurna I", "country", "Nepal"] in drawn_edges(page)
        picture(page, "yasgui-graph")
        # Triples, by the names of their predicates.
        asked(page, "CONSTRUCT { ?m <country> ?c } WHERE { ?m <country> ?c ; <height> ?h } LIMIT 5")
        until(page, f"{_GRAPH}?.edges.length === 5")
        edges = drawn_edges(page)
        assert {name for _, name, _ in edges} == {"country"}
        # A node leads to what the graph says of it.
        page.dblclick(f".tabPanel.active .picture.graph .node:has-text({edges[0][2]!r})")
        page.wait_for_selector(f".tabsList .active:has-text({edges[0][2]!r})")


def test_the_address_of_an_iri_leads_to_what_the_graph_says(browser: Any, served: str) -> None:
    with yasgui(browser, served) as page:
        before = page.evaluate("Object.keys(yasgui._tabs).length")
        page.goto(f"{served}/default/country")
        until(page, "document.querySelector('.yasr table.dataTable')?.innerText.includes('instance_of')")
        assert page.url == f"{served}/sparql"
        assert "<http://condgraph.example/default/country>" in page.evaluate("yasgui.getTab().getYasqe().getValue()")
        # It is asked once: the tab is there when the page is loaded again, and no other.
        page.reload()
        page.wait_for_selector(".CodeMirror")
        assert page.evaluate("Object.keys(yasgui._tabs).length") == before + 1


def test_a_token_opens_the_page_and_what_it_asks(browser: Any, samples_world: Path, tmp_path: Path) -> None:
    token = "a-token-of-the-page-0123456789"
    (tmp_path / "tokens").write_text(f"ann:{token}\n")
    with command("-d", str(samples_world), "--host", "0.0.0.0", "--token-file", str(tmp_path / "tokens")) as (url, _):
        where = url.replace("0.0.0.0", "127.0.0.1")
        login = {"username": "ann", "password": token}
        with visited(browser, where, "/sparql", ".CodeMirror", silent=("error",), http_credentials=login) as page:
            page.click(".yasqe_queryButton")
            page.wait_for_selector(".yasr table.dataTable tbody tr")
            assert page.evaluate("fromApi('about').then((found) => found.graph)") == "default"


#: What somebody may have called something.
EVIL = (
    '<img class=evil src=x onerror="window.ran=1"><form class=evil action="/"><input class=evil></form>'
    "<style class=evil>*{display:none}</style>"
    '<meta class=evil http-equiv=refresh content="0;url=/"><svg class=evil onload="window.ran=1"></svg>'
    '<iframe class=evil srcdoc="<script>parent.ran=1</script>"></iframe>'
)


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("evil") / "store"
    with condgraph.open(place) as graph:
        graph.add([Entity("evil", EVIL), Statement("evil", EVIL.replace(" ", "_")[:60], EVIL), Statement("evil", "fine", "fine")])
    with command("-d", str(place), "--workers", "1") as (url, _):
        yield url


@pytest.mark.parametrize(
    ("policy", "cleaned"),
    [
        (True, False),
        (False, True),
        pytest.param(True, True, marks=pytest.mark.slow),
        pytest.param(False, False, marks=pytest.mark.slow),
    ],
)
def test_data_is_no_part_of_the_page(browser: Any, evil: str, policy: bool, cleaned: bool) -> None:
    """YASGUI cleans what it takes for HTML. Whatever it forgets, or its next version does, meets two walls:
    the content policy, and HTML that is cleaned before the browser reads it. Each of them holds alone.
    """
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    def answer(route: Any) -> None:
        reply = route.fetch()
        kept = [part for part in reply.headers["content-security-policy"].split("; ") if cleaned if "trusted" in part]
        kept += [part for part in reply.headers["content-security-policy"].split("; ") if policy if "trusted" not in part]
        assert len(kept) == 2 * cleaned + 9 * policy
        route.fulfill(response=reply, headers=reply.headers | {"content-security-policy": "; ".join(kept)})

    page.route(f"{evil}/sparql/", answer)
    if not cleaned:
        page.route("**/trusted.js", lambda route: route.abort())
    page.goto(f"{evil}/sparql/")
    page.wait_for_selector(".CodeMirror")
    html = "STRDT(?name, <http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML>)"
    for query in (
        "SELECT * { ?s ?p ?o }",
        f"SELECT ?name ({html} AS ?html) (STRLANG(?name, 'en') AS ?en) {{ ?s <pred:name> ?name }}",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        f"SELECT nonsense {EVIL}",
    ):
        page.evaluate("text => yasgui.getTab().getYasqe().setValue(text)", query)
        with page.expect_response(lambda response: response.url.endswith("/sparql")):
            page.evaluate("yasgui.getTab().query().catch(() => null)")
        page.wait_for_selector(".yasr table.dataTable tbody tr, .yasr [class*=rror], .yasr .CodeMirror")
        for _ in range(2):  # what is found for a filter is parsed once more
            page.evaluate("new Promise((done) => setTimeout(done, 150))")
            if policy or cleaned:
                assert page.evaluate("[...document.querySelectorAll('.evil')].map((one) => one.outerHTML)") == []
            if (box := page.query_selector(".yasr .tableFilter")) is not None:
                box.fill("fine")
    assert page.evaluate("window.ran") is None
    left = page.evaluate("html => { const one = document.createElement('p'); one.innerHTML = html; return one.innerHTML }", EVIL)
    assert ("onerror" in left) is not cleaned
    page.evaluate("new Promise((done) => setTimeout(done, 150))")
    assert page.evaluate("window.ran") == (None if policy or cleaned else 1)
    assert not [url for url in asked if not url.startswith((evil, "data:", "blob:"))]
    page.close()
