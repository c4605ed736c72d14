"""Several graphs that one server has beside each other, and maps with the tiles of another server, in a real browser; what a
screen reader says for one answer, from the browser's own tree.
"""

from __future__ import annotations

import math
import re
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.cli.serve import _named
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Statement
from condgraph.engine.values import Point
from condgraph.studio.api import Tiles
from tests.e2e.test_studio import axe, run, studio, tab
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.pages import answered, picture, until
from tests.support.samples import load_samples

#: The address of the tile in which each place of the map lies.
TILE_OF_EACH = """() => { const number = (one, name) => Number(one.getAttribute(name));
    return [...document.querySelectorAll('.map circle')].map((spot) => [...document.querySelectorAll('.map image')].find((tile) =>
        ['x', 'y'].every((name) => number(tile, name) <= number(spot, 'c' + name)
            && number(spot, 'c' + name) < number(tile, name) + number(tile, 'width') - 0.5)).getAttribute('href')); }"""


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = b"".join(b"\0" + b"\xdd\xee\xdd" * 8 for _ in range(8))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(pixels))
        + chunk(b"IEND", b"")
    )


@contextmanager
def tiles() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server of tiles: its address, and the paths with the pages that asked, as they come."""
    asked: list[tuple[str, str | None]] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Referer")))
            body = _png()
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def store(folder: Path, *items: Statement) -> Path:
    with condgraph.open(folder) as graph:
        graph.add(items, source=folder.name)
    return folder


def test_a_map_with_tiles(browser: Any, tmp_path: Path) -> None:
    cities = {"Oslo": (10.75, 59.91), "Rome": (12.5, 41.9), "Pole": (0, 89)}
    store(tmp_path / "a", *(Statement(name, "place", Point.of(*at)) for name, at in cities.items()))
    with tiles() as (address, asked):
        options = ("--tiles", f"{address}/{{z}}/{{x}}/{{y}}.png", "--tiles-credit", "Maps by <b>Ann</b>")
        with command("-d", str(tmp_path / "a"), "--rate", "0", "--workers", "1", *options) as (url, _):
            with studio(browser, url, also=(address,)) as page:
                run(page, "FindAll() QueryAttr(place)")
                assert asked == []
                tab(page, "map")
                until(page, "document.querySelectorAll('.map image').length > 3")
                assert page.locator(".map circle").count() == 2
                assert "1 place beyond 85.05° north or south" in page.inner_text(".panel")
                assert "Maps by <b>Ann</b>" in page.inner_text(".panel")
                page.click(".panel summary:has-text('as a list')")
                assert "89°N" in page.inner_text(".panel .values")
                # Each tile is where it belongs: Oslo and Rome are within those that Mercator gives them.
                inside = page.evaluate(TILE_OF_EACH)
                for (longitude, latitude), href in zip(((10.75, 59.91), (12.5, 41.9)), inside, strict=True):
                    z, x, y = map(int, href.removesuffix(".png").split("/")[-3:])
                    assert (x, y) == _tile(longitude, latitude, z)
                many = page.evaluate("document.querySelector('.map image').getAttribute('href').split('/').at(-3)")
                page.focus(".map")
                for _ in range(3):
                    page.keyboard.press("+")
                page.keyboard.press("ArrowLeft")
                assert page.evaluate("document.querySelector('.map image').getAttribute('href').split('/').at(-3)") > many
                page.click(".panel button:has-text('Fit')")
                assert page.evaluate("document.querySelector('.map image').getAttribute('href').split('/').at(-3)") == many
                axe(page, "a map with tiles")
                picture(page, "map-tiles")
            # Of the page they hear its server alone, and not what is looked at.
            assert {page for _, page in asked} == {f"{url}/"}
    with pytest.raises(OptionError, match="not an address of tiles"):
        Tiles("https://tiles.example; script-src *//{z}/{x}/{y}", "Ann")
    with pytest.raises(OptionError, match="names their source"):
        Tiles("https://tiles.example/{z}/{x}/{y}.png", " ")


def _tile(longitude: float, latitude: float, z: int) -> tuple[int, int]:
    """The numbers of the tile of a place, as OpenStreetMap's documentation has them."""
    up = math.asinh(math.tan(math.radians(latitude)))
    return int((longitude + 180) / 360 * 2**z), int((1 - up / math.pi) / 2 * 2**z)


def test_several_graphs_beside_each_other(browser: Any, tmp_path: Path) -> None:
    one, two = store(tmp_path / "one", Statement("a", "p", "x")), store(tmp_path / "two", Statement("b", "q", "y"))
    with command("-d", str(one), str(two), f"old={one}", "--rate", "0", "--workers", "1") as (url, _):
        client = Client(url)
        assert client.get("about")["graphs"] == ["one", "two", "old"]
        ask = {"program": "FindAll() QueryName()", "language": "kopl"}
        for graph, names in (({}, ["a"]), ({"graph": "one"}, ["a"]), ({"graph": "two"}, ["b"]), ({"graph": "old"}, ["a"])):
            assert [row[0]["text"] for row in client.post("query", **ask, **graph)["rows"]] == names
        assert "served are two" in client.get("about", graph="tow")["error"]["message"]
        # One that is loaded again is served again.
        with condgraph.open(two) as graph:
            graph.add([Statement("c", "q", "z")])
        end = time.monotonic() + 120
        while client.post("query", **ask, graph="two")["total"] != 2:
            assert time.monotonic() < end
            time.sleep(0.2)
        with studio(browser, url) as page:
            assert page.locator("#graph option").all_inner_texts() == ["one (in a folder)", "two", "old"]
            page.select_option("#graph", "two")
            # Links lead to the graph once it is the one that is shown.
            until(page, "document.querySelector('nav a[data-page=ask]').href.includes('g=two')")
            run(page, "FindAll() QueryName()")
            assert tab(page, "table").split()[:3] == ["answer", "b", "c"]
            assert page.is_hidden("header button:has-text('Remove')")
            page.goto("about:blank")
            page.goto(f"{url}/#/entity?g=two&id=b")
            page.wait_for_selector("h1:has-text('b')")
            assert page.input_value("#graph") == "two"
            axe(page, "one of several graphs")
    assert _named("x/"), _named("neo4j://host:7687") == (("x", "x/"), ("host", "neo4j://host:7687"))


#: Keys, and what a reader does with them: one answer from the program to a statement of its evidence, without a mouse.
KEYS = (
    ("Control+Enter", "runs the program"),
    ("Escape Tab Tab", "leaves the editor and the clause"),
    ("ArrowRight", "goes to the evidence"),
    ("Tab", "goes into its panel"),
    ("Tab Tab Tab Tab Tab Tab", "goes past the buttons, to the first box"),
    ("Enter", "goes to what is known of it"),
    ("Escape", "comes back"),
    ("Delete", "hides it"),
    ("u", "undoes that"),
    ("ArrowLeft", "goes to the box at its left"),
    ("Tab Tab", "goes past what is known of the box"),
    ("Tab", "goes on"),
    ("Tab", "goes on"),
    ("Tab", "goes on"),
    ("Tab", "goes on"),
    ("Tab", "goes on"),
)
#: Keeps what is said without being focused.
LISTENING = """() => { const live = '[role=status], [aria-live]'; window.heard = [];
    const hear = ({ target }) => {
        const text = (target.closest?.(live) ?? target.parentElement?.closest(live))?.textContent.trim();
        if (text && window.heard.at(-1) !== text) window.heard.push(text);
    };
    const what = {subtree: true, childList: true, characterData: true};
    new MutationObserver((all) => all.forEach(hear)).observe(document.body, what); }"""


def focused(page: Any) -> str:
    """The focused element as the browser tells it to screen readers: its role, name and states."""
    session = page.context.new_cdp_session(page)
    held = session.send("Runtime.evaluate", {"expression": "document.activeElement"})["result"]["objectId"]
    node = session.send("Accessibility.getPartialAXTree", {"objectId": held, "fetchRelatives": False})["nodes"][0]
    session.detach()
    states = {one["name"]: one["value"].get("value") for one in node.get("properties", ())}
    told = [f"{name} {str(states[name]).lower()}" for name in ("selected", "pressed", "expanded") if name in states]
    return ", ".join([node["role"]["value"], f"“{node['name']['value']}”", *told])


def spoken(page: Any) -> list[str]:
    """A line for each step of `KEYS`."""
    page.evaluate(LISTENING)
    lines = []
    for keys, why in KEYS:
        page.evaluate("() => { window.heard.length = 0; }")
        for key in keys.split():
            page.keyboard.press(key)
        answered(page)
        page.wait_for_timeout(300)
        said = "".join(f" · {one}" for one in page.evaluate("window.heard"))
        lines.append(f"{keys} ({why}): {focused(page)}{said}")
    return lines


def test_what_a_screen_reader_says(browser: Any, tmp_path: Path) -> None:
    """The page on the studio has all of it; which box is at the left of which depends on fonts."""
    with condgraph.open(tmp_path / "store") as graph:
        load_samples(graph)
    page_of_it = (Path(__file__).parents[2] / "docs" / "how-to" / "use-the-studio.md").read_text(encoding="utf-8")
    program, *wanted = page_of_it.partition("```text\n")[2].partition("\n```")[0].splitlines()
    with command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _), studio(browser, url) as page:
        page.click(".cm-content")
        page.keyboard.insert_text(program)
        assert list(map(anywhere, spoken(page))) == list(map(anywhere, wanted))


def anywhere(line: str) -> str:
    """A line without the names of boxes, and of what is known of them."""
    return re.sub(r"(link, )“.*?”|“.*?, (?:row|entity)”", r"\1", line)
