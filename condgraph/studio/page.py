"""The page of the studio: HTML with a policy under which it runs nothing and asks nobody but what
this server gives.
"""

from __future__ import annotations

import secrets
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from condgraph.studio.api import ApiExchange

#: The page's own code and styles, and the libraries that `tools/studio` builds (`vendor.js`).
STATIC: Final = Path(__file__).with_name("static")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
#: The editor makes its styles when it starts; the nonce lets them in.
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>condgraph studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}studio/static/studio.css">
<script type="module" src="{root}studio/static/main.js"></script>
</head>
<body data-root="{root}" data-nonce="{nonce}" data-sparql="{sparql}">
<noscript>The studio needs JavaScript; the API at {root}api/v1/ does not.</noscript>
</body>
</html>
"""


def render(root: str, *, sparql: bool) -> tuple[bytes, dict[str, str]]:
    """The page and its headers; `root` is the path that the application is at, `sparql` says
    whether there is a SPARQL endpoint beside it.
    """
    nonce = secrets.token_urlsafe(16)
    text = _PAGE.format(root=escape(root), nonce=nonce, sparql="yes" if sparql else "")
    return text.encode(), {
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-store",
        "Content-Security-Policy": _POLICY.format(nonce=nonce),
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }


async def give(exchange: ApiExchange, *, sparql: bool) -> None:
    """Answer with the page."""
    body, headers = render(exchange.root, sparql=sparql)
    await exchange.reply(200, body, headers)
