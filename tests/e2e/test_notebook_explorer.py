"""The explorer of notebooks in a real browser: its page is what a kernel sends, its calls go to the kernel and back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import until

pytestmark = pytest.mark.service

CELL = """
import condgraph
from condgraph.notebook import explore
from condgraph.samples import FOLDER

graph = condgraph.open("memory:")
graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
graph.load(FOLDER / "countries.json")
"""
#: What a notebook's front end is to a widget: its state, messages there and back.
HOST = """async ([script, style, begin]) => {
  const sheet = new CSSStyleSheet(), heard = [];
  sheet.replaceSync(style);
  document.adoptedStyleSheets = [sheet];
  window.said = (message) => heard.forEach((one) => one(message, []));
  const model = { get: () => begin, send: (message) => window.ask(message),
    on: (name, f) => heard.push(f), off: () => heard.pop() };
  const { default: widget } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  window.leave = await widget.render({ model, el: document.body });
  window.heard = heard;
}"""


class Kernel:
    """A kernel with the messages of its widgets."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, code: str) -> list[dict[str, Any]]:
        """Execute a cell; returns the messages it causes."""
        return self._until_idle(self.client.execute(code))

    def send(self, comm: str, content: Any) -> Any:
        """What a widget replies to a message of its page."""
        data = {"method": "custom", "content": content}
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)
        messages = self._until_idle(message["header"]["msg_id"])
        (reply,) = [one["content"]["data"]["content"] for one in messages if one["msg_type"] == "comm_msg"]
        return reply

    def _until_idle(self, ident: str) -> list[dict[str, Any]]:
        found = []
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != ident:
                continue
            assert message["msg_type"] != "error", message["content"]
            if message["content"].get("execution_state") == "idle":
                return found
            found.append(message)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    for package in ("anywidget", "ipykernel"):
        pytest.importorskip(package)
    from jupyter_client.manager import KernelManager

    folder = tmp_path_factory.mktemp("kernel")
    # Sockets of the file system: no port that another process could take first.
    manager = KernelManager(transport="ipc", ip=str(folder / "kernel"), connection_file=str(folder / "kernel.json"))
    manager.start_kernel(cwd=str(Path(__file__).parents[2]))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        kernel = Kernel(client)
        kernel.run(CELL)
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def shown(kernel: Kernel, code: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A widget that a cell returns: its address, its state, and what a notebook may show."""
    messages = kernel.run(code)
    (result,) = [one["content"]["data"] for one in messages if one["msg_type"] == "execute_result"]
    ident = result["application/vnd.jupyter.widget-view+json"]["model_id"]
    (state,) = [
        one["content"]["data"]["state"] for one in messages if one["msg_type"] == "comm_open" and one["content"]["comm_id"] == ident
    ]
    return ident, state, result


def hosted(browser: Any, kernel: Kernel, code: str) -> Any:
    ident, state, _ = shown(kernel, code)
    page = browser.new_context(viewport={"width": 1100, "height": 700}).new_page()
    errors: list[Any] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: errors.append(error))
    page.on("request", lambda request: requests.append(request.url))
    page.problems = lambda: (errors, [one for one in requests if not one.startswith(("blob:", "about:"))])
    asked: list[Any] = []
    page.expose_function("ask", lambda message: asked.append(message))
    page.evaluate(HOST, [state["_esm"], state["_css"], state["begin"]])

    def answer() -> None:
        """Pass on what the page asks."""
        end = time.monotonic() + 120
        while not asked:
            page.wait_for_timeout(20)
            assert time.monotonic() < end
        while asked:
            page.evaluate("(message) => said(message)", kernel.send(ident, asked.pop(0)))

    page.answer = answer
    until(page, "document.querySelector('.picture')?.picture?.seen?.length > 0")
    return page


def boxes(page: Any) -> list[str]:
    return sorted(page.evaluate("document.querySelector('.picture').picture.seen.map((one) => one.label)"))


def test_an_entity_is_explored_by_calls_to_the_kernel(browser: Any, kernel: Kernel) -> None:
    page = hosted(browser, kernel, "explore(graph, 'University of Oxford')")
    before = boxes(page)
    assert {"University of Oxford", "11"} <= set(before)
    page.answer()  # the predicates of the chosen node
    until(page, "document.querySelectorAll('.chosen .ways li').length > 1")
    page.get_by_role("button", name="Show educated at to it").click()
    page.answer()
    until(page, "!document.querySelector('.picture').picture.busy")
    after = boxes(page)
    assert "Indira Gandhi" in after
    assert len(after) == len(before) - 1 + 11
    page.get_by_role("button", name="Hide", exact=True).click()
    assert "University of Oxford" not in boxes(page)
    page.get_by_role("button", name="Undo").click()
    assert boxes(page) == after
    page.get_by_role("button", name="Undo").click()
    assert boxes(page) == before
    # It is light in a dark notebook, too, and has asked nobody.
    assert page.evaluate("getComputedStyle(document.querySelector('.condgraph-explorer')).backgroundColor") == "rgb(255, 255, 255)"
    assert page.problems() == ([], [])
    page.evaluate("void leave()")
    assert page.evaluate("heard.length") == 0
    page.context.close()


@pytest.mark.slow
def test_an_answer_is_drawn_with_its_statements_and_without_widgets_as_a_picture(browser: Any, kernel: Kernel) -> None:
    code = 'explore(graph, graph.kopl("FindAll() FilterNum(height, 8000 m, >) Relate(country, forward) QueryName()"), limit=2)'
    page = hosted(browser, kernel, code)
    assert "Nepal" in boxes(page)
    assert page.locator("caption").inner_text().endswith("statements that the answer rests on")
    assert "more statements are not shown" in page.locator(".warning").inner_text()
    # Names lead nowhere: a notebook has no pages of entities.
    assert page.locator("a[href]").count() == 0
    assert page.problems() == ([], [])
    page.context.close()
    _, state, result = shown(kernel, code)
    assert result["image/svg+xml"].startswith("<svg")
    assert "Nepal" in result["image/svg+xml"]
    assert len(json.dumps(state)) < 400_000


@pytest.mark.slow
def test_a_solution_is_explored_and_an_error_is_told(browser: Any, kernel: Kernel) -> None:
    page = hosted(browser, kernel, "explore(graph, graph.match([('UNKNOWN mountain', 'country', 'Nepal')]).solutions[0])")
    page.evaluate("void document.querySelector('.picture').picture.expand('e:nobody', 'country', true, 3)")
    page.answer()
    until(page, "document.querySelector('[role=status]').textContent.includes('nobody')")
    page.context.close()
