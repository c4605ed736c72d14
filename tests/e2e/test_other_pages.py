"""A web page of another server, in a real browser, and one whose name leads to the server itself (DNS
rebinding): neither reads, embeds or shows anything of a graph that is served on the machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.endpoint.test_serve import command
from tests.support.pages import CHROMIUM

#: What a page may try: the outcome of each, "" where nothing was got.
TRIES = """async (url) => {
  const ask = (path, options) => fetch(url + path, options).then((reply) => reply.text(), () => "");
  const form = new URLSearchParams({ query: "SELECT * { ?s ?p ?o }" });
  const embed = (name, path) => new Promise((done) => {
    const one = document.createElement(name);
    one.onload = () => done(name === "iframe" && one.contentDocument ? "" : name);
    one.onerror = () => done("");
    one.src = url + path;
    document.body.append(one);
    setTimeout(() => done(""), 3000);
  });
  return [
    await ask("/sparql?query=SELECT%20*%7B%3Fs%20%3Fp%20%3Fo%7D"), await ask("/sparql", { method: "POST", body: form }),
    await ask("/data?default"), await ask("/default/Nepal"), await ask("/api/v1/about"), await ask("/"), await ask("/studio/"),
    await embed("script", "/static/page.js"), await embed("img", "/sparql?query=ASK%7B%7D"),
  ];
}"""


class Page(BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>another page</title><body>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def other_page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_other_pages_get_nothing_unless_they_are_allowed(browser: Any, samples_world: Path, other_page: str) -> None:
    for options, reads in (((), 0), (("--cors", other_page), 7)):
        with command("-d", str(samples_world), "--workers", "1", *options) as (url, _):
            page = browser.new_page()
            page.goto(other_page)
            got = page.evaluate(TRIES, url)
            assert sum(map(bool, got)) == reads, got
            page.goto(f"{url}/health")
            assert "ok" in page.inner_text("body")
            page.close()


def test_a_name_that_leads_here_shows_nothing(browser: Any, samples_world: Path) -> None:
    assert CHROMIUM is not None
    with command("-d", str(samples_world), "--workers", "1") as (url, _):
        port = urlsplit(url).port
        # Without the guard of this browser, which others do not have: it asks before a page may reach the machine.
        flags = ["--host-resolver-rules=MAP evil.example 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"]
        rebound = browser.browser_type.launch(executable_path=CHROMIUM, args=["--no-sandbox", *flags])
        try:
            page = rebound.new_page()
            # The name led to the server of the page, and leads here now: the browser lets the page read whatever it gets.
            page.route("**/page", lambda route: route.fulfill(content_type="text/html", body="<!DOCTYPE html><title>page</title>"))
            page.goto(f"http://evil.example:{port}/page")
            got = page.evaluate(TRIES, f"http://evil.example:{port}")
            assert all("names of its own machine only" in one for one in got[:7]), got
            assert got[7:] == ["", ""]
        finally:
            rebound.close()
