"""The tokens of a SPARQL query, and the terms that they make: names, variables and literals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from condgraph.engine.errors import ParseError
from condgraph.engine.iris import XSD
from condgraph.languages.sparql.syntax import Iri, Lit, Term, Var, beyond

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|\#[^\n\r]*)
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    | (?P<variable>[?$]\w+)
    | (?P<text>\"{3}(?:\"{0,2}(?:[^"\\]|\\.))*\"{3} | '{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3}
        | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*')
    | (?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d*\.\d+|\d+)
    | (?P<blank>_:[\w][\w.-]*)
    | (?P<name>(?:[^\W\d_][\w.-]*)?:(?:[\w:](?:[\w.:-]*[\w:-])?)?)
    | (?P<word>[A-Za-z]\w*)
    | (?P<sign>\^\^|&&|\|\||!=|<=|>=|[{}()\[\].;,/^|!+*?=<>-])
    """,
    re.X | re.S,
)
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match
_RELATIVE: Final = re.compile(r"(?![/#?])(?!\.{0,2}(?:/|$))(?!.*/\.{0,2}(?:/|$))").match
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class Terms:
    """Reads one text, token by token."""

    def __init__(self, text: str, base: str, prefixes: Mapping[str, str]) -> None:
        self._base, self._prefixes = base, dict(prefixes)
        self._tokens: list[tuple[str, str]] = []
        self._at = self._fresh = 0
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise beyond(f"{text[at : at + 20]!r}")
            if found.lastgroup != "space":
                self._tokens.append((str(found.lastgroup), found[0]))
            at = found.end()
        self._tokens.append(("end", ""))

    # -- tokens ------------------------------------------------------------------------------------

    def _is(self, *signs: str) -> bool:
        kind, text = self._tokens[self._at]
        return kind in ("sign", "word") and (text if kind == "sign" else text.upper()) in signs

    def _take(self, *signs: str) -> bool:
        found = self._is(*signs)
        self._at += found
        return found

    def _next(self) -> tuple[str, str]:
        found = self._tokens[self._at]
        self._at += 1
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._refuse()

    def _refuse(self) -> NoReturn:
        kind, text = self._tokens[self._at]
        raise beyond("a query that ends here" if kind == "end" else text.upper() if kind == "word" else repr(text))

    def _hidden(self) -> Var:
        self._fresh += 1
        return Var(f".{self._fresh}")

    # -- terms -------------------------------------------------------------------------------------

    def _iri(self, kind: str, text: str) -> Iri:
        if kind == "iri":
            return Iri(self._resolved(text[1:-1]))
        if kind == "name":
            prefix, _, local = text.partition(":")
            if prefix not in self._prefixes:
                raise ParseError(f"the prefix {prefix!r} is not declared")
            return Iri(self._prefixes[prefix] + local)
        self._at -= 1
        return self._refuse()

    def _based(self, iri: str) -> None:
        """Take an IRI as the base of relative ones, which are put behind its last slash."""
        whole = iri if _ABSOLUTE(iri) else self._resolved(iri)
        scheme, mark, rest = whole.partition("://")
        if not mark:
            raise beyond(f"BASE <{iri}>", "an IRI with :// and a path")
        self._base = f"{scheme}{mark}{rest[: rest.rindex('/') + 1] if '/' in rest else rest + '/'}"

    def _resolved(self, iri: str) -> str:
        if _ABSOLUTE(iri):
            return iri
        if not _RELATIVE(iri):
            raise beyond(f"the relative IRI <{iri}>", "write the whole IRI")
        return self._base + iri

    def _term(self) -> Term:
        kind, text = self._next()
        if kind == "variable":
            return Var(text[1:])
        if kind == "blank":
            return Var(f".{text}")
        if (kind, text) == ("sign", "["):
            if not self._take("]"):
                raise beyond("a blank node with properties in brackets", "give it a variable")
            return self._hidden()
        if kind == "text":
            return self._literal(text)
        if kind == "number":
            return _number(text)
        if kind == "sign" and text in "+-" and self._tokens[self._at][0] == "number":
            found = _number(self._next()[1])
            return Lit(text + found.text, found.datatype)
        if kind == "word" and text.lower() in ("true", "false"):
            return Lit(text.lower(), f"{XSD}boolean")
        return self._iri(kind, text)

    def _literal(self, text: str) -> Lit:
        body = text[3:-3] if len(text) >= 6 and text[:3] == text[0] * 3 else text[1:-1]
        plain = re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", _unescaped, body, flags=re.S)
        if self._tokens[self._at][0] == "tag":
            return Lit(plain, "", self._next()[1][1:])
        if self._take("^^"):
            return Lit(plain, self._iri(*self._next()).iri)
        return Lit(plain, f"{XSD}string")


def _number(text: str) -> Lit:
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return Lit(text, XSD + kind)


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "uU" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)
