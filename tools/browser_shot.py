"""Take the picture of Neo4j Browser for the documentation, from a real Browser on a real server.

    python tools/browser_shot.py [--out docs/assets/neo4j-browser.png]

Starts Neo4j with Browser (`neo4j_server.py`), loads the sample data, drops the files of `condgraph browser` onto
Browser, runs the first query of `docs/how-to/neo4j-browser.md` in Debian's Chromium, driven by playwright (`pip install
playwright`; it downloads no browser), and saves the picture.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

PAGE = ROOT / "docs" / "how-to" / "neo4j-browser.md"


def queries() -> list[str]:
    """Return the queries of the page."""
    return [text.strip() for text in re.findall(r"```cypher\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)]


def load_samples(uri: str) -> None:
    """Load the data that the page shows."""
    import condgraph
    from condgraph.samples import FOLDER

    with condgraph.open(uri) as graph:
        for name in ("countries.json", "governments.tsv"):
            graph.load(FOLDER / name)


def write_files(uri: str, folder: Path, graph: str = "default") -> None:
    """Write the files of `condgraph browser` for a graph."""
    from typer.testing import CliRunner

    from condgraph.cli.app import app

    result = CliRunner().invoke(app, ["browser", "-d", uri, "--graph", graph, "-o", str(folder)])
    if result.exit_code:
        raise RuntimeError(result.output)


def chromium() -> str | None:
    """Return the path of Chromium; the headless shell first, which takes a quarter less CPU."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CONDGRAPH_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def browser_files() -> Iterator[str]:
    """Serve the files of Neo4j Browser without a database; yield the address."""
    import neo4j_server

    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(neo4j_server.browser_jar()) as jar:
            jar.extractall(folder)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@contextmanager
def browser_page(http: str, uri: str, database: str = "neo4j") -> Iterator[Any]:
    """Yield a page with Neo4j Browser, connected to a database."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--force-prefers-reduced-motion"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{http}/browser/?dbms={uri}&preselectAuthMethod=NO_AUTH")
        page.wait_for_selector(".monaco-editor textarea", state="attached")
        # The prompt names the database once there is a connection.
        for _ in range(240):
            if f"{database}$" in page.content():
                break
            page.wait_for_timeout(500)
        yield page
        browser.close()


def run_query(page: Any, text: str) -> None:
    """Type a query into the editor and run it."""
    page.locator(".monaco-editor").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    # Typed text would be completed by the editor; inserted text is not.
    page.keyboard.insert_text(" ".join(text.split()))
    page.keyboard.press("Control+Enter")


#: Simulates dragging a file onto the page: `[name, content in base64]`.
_DROP = """([name, content]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
    const at = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    for (const type of ["dragenter", "dragover", "drop"])
        at.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
}"""


def drop_file(page: Any, path: Path) -> None:
    """Drop a file onto Browser."""
    page.evaluate(_DROP, [path.name, base64.b64encode(path.read_bytes()).decode()])


def drop_style(page: Any, path: Path) -> None:
    """Drop a style onto Browser, and wait until Browser shows it."""
    drop_file(page, path)
    page.locator("article pre", has_text="node.CondgraphEntity").first.wait_for()


def graph_frame(page: Any) -> Any:
    """Return the frame with a graph, once it is shown."""
    frame = page.locator("article", has_text="Relationship types").first
    frame.wait_for()
    return frame


def main() -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "assets" / "neo4j-browser.png")
    options = parser.parse_args()
    import neo4j_server

    with neo4j_server.Neo4jServer(short=True, browser=True) as server:
        load_samples(server.uri)
        with browser_page(server.http, server.uri) as page:
            with tempfile.TemporaryDirectory() as folder:
                write_files(server.uri, Path(folder))
                drop_style(page, Path(folder) / "condgraph.grass")
            run_query(page, queries()[0])
            graph_frame(page).get_by_title("Fullscreen", exact=True).click()
            # The nodes move until the layout has settled.
            page.wait_for_timeout(8_000)
            page.screenshot(path=str(options.out))


if __name__ == "__main__":
    main()
