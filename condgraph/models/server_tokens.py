"""The tokenizer of a model behind a server: the server's own `/tokenize` (llama.cpp, vLLM), or
`tiktoken` for OpenAI's models.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import Lock
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from condgraph.engine.errors import ModelError
from condgraph.models.waiting import Wait

#: Seconds that a server may take for a count, and `tiktoken` for its tables, which it may fetch.
_SECONDS: Final = 10.0
_OPENAI: Final = "api.openai.com"
#: Counts that are kept, and characters of texts that are.
_KEPT: Final = 4096
_KEPT_LENGTH: Final = 4000
#: Bytes of a server's answer.
_MOST: Final = 32 << 20


class Tokenizer:
    """Counts tokens for one model. What cannot be had is not asked for again."""

    def __init__(self, model: str, base_url: str, key: str) -> None:
        address = urlsplit(base_url)
        self._model, self._key = model, key
        self._openai = address.hostname == _OPENAI
        path = address.path.rstrip("/")
        self._root = address._replace(path=path.removesuffix("/v1"), query="", fragment="").geturl().rstrip("/")
        self._lock = Lock()
        #: The name of the field that the server reads the text from; "" where it has no tokenizer.
        self._field: str | None = None
        self._encoding: Any = None
        self._is_llama: bool | None = None
        self._counts: OrderedDict[str, int] = OrderedDict()

    def llama(self) -> bool:
        """Whether the server is one of llama.cpp, which takes grammars."""
        if self._is_llama is None:
            found = None if self._openai else self._asked("/props", None)
            self._is_llama = isinstance(found, dict) and "default_generation_settings" in found
        return self._is_llama

    def count(self, text: str) -> int | None:
        """The tokens of a text; None where there is no tokenizer."""
        with self._lock:
            if (kept := self._counts.get(text)) is not None:
                self._counts.move_to_end(text)
                return kept
        found = self._by_tiktoken(text) if self._openai else self._by_server(text)
        if found is not None and len(text) <= _KEPT_LENGTH:
            with self._lock:
                self._counts[text] = found
                if len(self._counts) > _KEPT:
                    self._counts.popitem(last=False)
        return found

    def _by_server(self, text: str) -> int | None:
        if self._field == "":
            return None
        for field in ("content", "prompt") if self._field is None else (self._field,):
            found = self._asked("/tokenize", {"model": self._model, field: text})
            tokens = found.get("tokens") if isinstance(found, dict) else None
            # A server that reads another field gives none at all.
            if isinstance(tokens, list) and (tokens or not text):
                self._field = field if text else self._field
                return len(tokens)
        if text and self._field is None:
            self._field = ""
        return None

    def _asked(self, path: str, body: Any) -> Any:
        """What the server answers as JSON; None where it does not."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._root + path, data, {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"})

        def fetch() -> Any:
            with urlopen(request, timeout=_SECONDS) as response:
                return json.loads(response.read(_MOST))

        try:
            return Wait(_SECONDS).until_done(fetch, self._root)
        except (HTTPError, URLError, OSError, ValueError, RecursionError, ModelError):
            return None

    def _by_tiktoken(self, text: str) -> int | None:
        if self._encoding is None:
            self._encoding = _tiktoken(self._model)
        return None if self._encoding is False else len(self._encoding.encode(text, disallowed_special=()))


def _tiktoken(model: str) -> Any:
    """The encoding of a model; False where it cannot be had."""
    try:
        import tiktoken
    except ImportError:
        return False
    try:
        return Wait(_SECONDS).until_done(lambda: tiktoken.encoding_for_model(model), "tiktoken")
    except (ModelError, KeyError, OSError, ValueError):
        # An unknown model, or its tables cannot be fetched.
        return False
