"""What can be told of a query's text without parsing it: its form, whether it names a data set, whether it calls other services.

Words are told from strings, IRIs, names and comments as SPARQL's grammar does (section 19.8), which is enough: keywords are never
anything else. Whether the text is well formed is the store's to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

Form = Literal["select", "ask", "construct", "describe", "update", "unknown"]

_TOKEN: Final = re.compile(
    r"""
      \#[^\n\r]*+                                                   # a comment
    | <[^<>"{}|^`\\\x00-\x20]*+>                                    # an IRI
    | \"{3}(?:\"{0,2}+(?:[^"\\]|\\.))*+\"{3} | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+'{3}
    | "(?:[^"\\\n\r]|\\.)*+" | '(?:[^'\\\n\r]|\\.)*+'
    | [?$]\w++ | @[A-Za-z][A-Za-z0-9-]*+                            # a variable, a language
    | (?:\w[\w.\-]*)?:(?:[\w:.\-]|%[0-9A-Fa-f]{2}|\\.)*+            # a prefixed name, a blank node
    | (?P<word>[A-Za-z]\w*+)
    """,
    re.X | re.S,
)
_FORMS: Final[dict[str, Form]] = {"select": "select", "ask": "ask", "construct": "construct", "describe": "describe"}
_UPDATES: Final = frozenset(["insert", "delete", "load", "clear", "drop", "create", "add", "move", "copy", "with"])


@dataclass(frozen=True, slots=True)
class Survey:
    """The form of a query, whether it has FROM or FROM NAMED, and whether SERVICE occurs."""

    form: Form
    dataset: bool
    service: bool


@lru_cache(maxsize=512)
def survey(text: str) -> Survey:
    """Look through a query.

    >>> survey("PREFIX ask: <http://x/#> # SELECT\\nCONSTRUCT WHERE { ?from ask:service 'SERVICE' }")
    Survey(form='construct', dataset=False, service=False)
    >>> survey("select * from <http://x/> { service ?s {} }")
    Survey(form='select', dataset=True, service=True)
    """
    form: Form = "unknown"
    dataset = service = False
    for found in _TOKEN.finditer(text):
        word = found["word"]
        if word is None:
            continue
        word = word.lower()
        if form == "unknown":
            form = "update" if word in _UPDATES else _FORMS.get(word, "unknown")
        elif word == "from":
            dataset = True
        elif word == "service":
            service = True
    return Survey(form, dataset, service)


def makes_triples(text: str) -> bool:
    """Whether a query gives triples, and no solutions.

    >>> makes_triples("DESCRIBE <x>"), makes_triples("ASK {}")
    (True, False)
    """
    return survey(text).form in ("construct", "describe")
