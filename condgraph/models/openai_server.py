"""Where a server is that speaks OpenAI's API, and what lets one in: for chat completions and for
embeddings alike.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from condgraph.engine.addresses import parse
from condgraph.engine.errors import MissingExtraError, OptionError


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """A server, by the library that asks it. Neither key nor password is in its `repr`."""

    #: The `openai` module.
    library: Any = field(repr=False)
    #: The address with its login, as the library takes it; None for OpenAI's own.
    address: str | None = field(repr=False)
    #: The address without a login.
    place: str
    key: str = field(repr=False)

    def client(self, **options: Any) -> Any:
        """A client of the library; `options` are its own. Nothing is sent yet."""
        return self.library.OpenAI(api_key=self.key, base_url=self.address, **options)


def openai_server(base_url: str | None, api_key: str | None) -> OpenAIServer:
    """The server of an address and a key; else of `OPENAI_BASE_URL` and `OPENAI_API_KEY`; else
    OpenAI's own, which asks for a key. Raises `OptionError`, which never shows a key or a password,
    and `MissingExtraError` without the library.
    """
    try:
        import openai
    except ImportError:
        raise MissingExtraError("the openai library", "openai") from None
    base_url, place = base_url or os.environ.get("OPENAI_BASE_URL") or None, ""
    if base_url is not None:
        address = parse(base_url, ("http", "https"), example="http://localhost:11434/v1", paths=True)
        base_url, place = address.whole, address.plain
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if not key:
        if base_url is None:
            raise OptionError("there is no key for OpenAI's API", hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for another server")
        # Servers of one's own often ask for none, and the library insists on one.
        key = "none"
    return OpenAIServer(openai, base_url, place, key)
