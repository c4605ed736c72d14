"""The page of an endpoint for people: YASGUI, served from the package, and what programs need to
know.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from condgraph.endpoint.service import Backend, Limits

#: Scripts and styles; `tools/yasgui.py` brings them.
STATIC: Final = Path(__file__).with_name("static")
#: Charts and graphs are drawn by the libraries that the studio has.
VENDOR: Final = Path(__file__).parents[1] / "studio" / "static"
#: The page asks nobody but its own server: names and literals of the data cannot bring scripts or
#: images of others. YASGUI parses HTML that has data in it, all of which `trusted.js` cleans.
HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Vary": "Accept",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "object-src 'none'; frame-src 'none'; form-action 'none'; base-uri 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types default dompurify",
}

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>condgraph: SPARQL</title>
<base href="{root}">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/yasgui.min.css">
<link rel="stylesheet" href="static/page.css">
</head>
<body>
<header>
<h1>condgraph</h1>
<p>SPARQL 1.1 endpoint at <code>/sparql</code>, graphs at <code>/data</code>. Queries end after {timeout:g} s; {rows}.
<a href="description">Description of the service</a>{studio}</p>
<label id="examples" hidden>Examples: <select><option value="">choose a query</option></select></label>
</header>
<main id="yasgui"></main>
<noscript>The query editor needs JavaScript; the endpoint does not.</noscript>
<script type="application/json" id="settings">{settings}</script>
<script src="static/trusted.js"></script>
<script src="static/yasgui.min.js"></script>
<script src="static/pictures.js"></script>
<script src="static/page.js"></script>
</body>
</html>
"""


def render(backend: Backend, limits: Limits, root: str, *, studio: bool = False) -> bytes:
    """The page as HTML; `root` is the path that the application is at, `studio` says whether there
    is a studio beside it.
    """
    first = "".join(f"PREFIX {prefix}: <{iri}>\n" for prefix, iri in backend.prefixes.items())
    first += "\nSELECT ?subject ?predicate ?object WHERE {\n  ?subject ?predicate ?object\n} LIMIT 10\n"
    # Within a script element nothing is unescaped, and `<` alone could end it.
    examples = [{"about": about, "query": query} for about, query in backend.examples]
    said = {
        "query": first.lstrip(),
        "prefixes": {**backend.predeclared, **backend.prefixes},
        "examples": examples,
        "base": backend.base,
        "about": backend.about,
        "most": limits.rows,
        "studio": studio,
    }
    settings = json.dumps(said).replace("<", "\\u003c")
    rows = "as many results as there are" if limits.rows is None else f"at most {limits.rows:,} results are given"
    link = ' <a href="studio/">Studio</a>' if studio else ""
    return _PAGE.format(timeout=limits.timeout, rows=escape(rows), settings=settings, root=escape(root), studio=link).encode()


def health(backend: Backend | None) -> bytes:
    """That the server runs, as JSON, and what it runs."""
    return json.dumps({"status": "ok", **({} if backend is None else backend.status())}, ensure_ascii=False).encode()
