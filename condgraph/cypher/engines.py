"""What servers that speak Cypher can do: one table, from which texts are chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from condgraph.engine.errors import OptionError, UnsupportedError

# -- The table ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Engine:
    """A server by what it can do. Whatever is False is written in another form, or refused by name.

    `page` of the documentation says where each of these is from.
    """

    name: str
    #: `-[f:$(type)]->` where a relationship is made, and where it is matched.
    computed_types: bool = True
    #: `(e:$(labels))` where a node is made.
    computed_labels: bool = True
    #: `\\uXXXX` within backticks is read as a character.
    escapes: bool = True
    #: A session opened for reading refuses to write, and `EXPLAIN` says whether a text writes.
    guards_reading: bool = True
    #: Characters that no relationship type may have; and the longest type, in bytes.
    odd_characters: str = ""
    longest_type: int | None = None
    #: The most relationship types of a database.
    most_types: int | None = 65_535
    #: Whether a relationship type may be called as a label of the database is.
    types_like_labels: bool = True
    #: The map of a node pattern may name what an earlier clause matched, `(s {sid: f.sid})`.
    maps_of_others: bool = True
    #: What a subquery imports is there until its end, whatever its `WITH` names.
    keeps_imports: bool = True
    #: A map may hold a projection of a node, `{s: e {.id}}`.
    projections_in_maps: bool = True
    #: Transactions that write at the same time wait for each other; else the later one is refused.
    locks: bool = True
    #: Patterns and scored logic, whose texts are for Neo4j alone.
    scored: bool = True

    def quote(self, name: str) -> str:
        """A relationship type, label or property as a quoted identifier.

        Doubling backticks is not enough where escapes are read before quotes are looked for: a
        backslash could write a backtick. It is written as its own escape then.

        >>> NEO4J.quote("zz\\\\u0060) RETURN 42 //"), ARCADEDB.quote("a\\\\b`c")
        ('`zz\\\\u005Cu0060) RETURN 42 //`', '`a\\\\b``c`')
        """
        if not name:
            raise OptionError("an empty name is no identifier in Cypher")
        plain = name.replace("\\", "\\u005C") if self.escapes else name
        return "`" + plain.replace("`", "``") + "`"

    def projected(self, variable: str, *fields: str) -> str:
        """Some properties of a node as a map: names of them, and `name: expression`; null of null.

        >>> NEO4J.projected("e", "id", "kind: 1"), ARCADEDB.projected("e", "id")
        ('e {.id, kind: 1}', 'CASE WHEN e IS NOT NULL THEN {id: e.id} END')
        """
        if self.projections_in_maps:
            return f"{variable} {{{', '.join(field if ':' in field else f'.{field}' for field in fields)}}}"
        listed = ", ".join(field if ":" in field else f"{field}: {variable}.{field}" for field in fields)
        return f"CASE WHEN {variable} IS NOT NULL THEN {{{listed}}} END"

    def stored_type(self, name: str) -> str:
        """A relationship type as the engine stores it: characters that it does not take are written as
        in addresses.

        >>> ARCADEDB.stored_type("spoken, or 5% signed"), ARCADEDB.read_type("spoken%2C or 5%25 signed")
        ('spoken%2C or 5%25 signed', 'spoken, or 5% signed')
        """
        for character in self._escaped:
            name = name.replace(character, f"%{ord(character):02X}")
        return name

    def read_type(self, stored: str) -> str:
        """The type that `stored_type` stored."""
        for character in reversed(self._escaped):
            stored = stored.replace(f"%{ord(character):02X}", character)
        return stored

    def read_type_text(self, expression: str) -> str:
        """The same as an expression of Cypher."""
        for character in reversed(self._escaped):
            expression = f"replace({expression}, '%{ord(character):02X}', '{character}')"
        return expression

    @property
    def _escaped(self) -> str:
        return f"%{self.odd_characters}" if self.odd_characters else ""

    def odd_type(self, name: str) -> str | None:
        """Why the engine takes no relationship type of this name; None where it takes it."""
        if "\0" in name:
            return "holds the character NUL"
        size = len(self.stored_type(name).encode())
        return f"has {size:,} bytes where {self.longest_type:,} are the most" if size > (self.longest_type or size) else None


NEO4J: Final = Engine("Neo4j")
#: ArcadeDB 26.10.2 stores each type and label in files of its name.
ARCADEDB: Final = Engine(
    "ArcadeDB",
    computed_types=False,
    computed_labels=False,
    escapes=False,
    guards_reading=False,
    odd_characters="*,~",
    longest_type=180,
    most_types=None,
    types_like_labels=False,
    maps_of_others=False,
    projections_in_maps=False,
    keeps_imports=False,
    locks=False,
    scored=False,
)


def engine_of(agent: str) -> Engine:
    """The engine that a server says it is.

    >>> engine_of("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)").name, engine_of("Neo4j/5.26.14").name
    ('ArcadeDB', 'Neo4j')
    """
    return next((engine for engine in _OTHERS if engine.name.lower() in agent.lower()), NEO4J)


_OTHERS: Final = (ARCADEDB,)


# -- What subqueries import --------------------------------------------------------------------------
# Texts that the compiler wrote, for engines in which a `WITH` of a subquery drops what it imports.


_NAME: Final = re.compile(r"`(?:[^`]|``)*+`")
_STORED: Final = re.compile(r"`(\d+)`")
_VARIABLE: Final = re.compile(r"(?<![\w.$])[a-z]+\d+\b")
_CALL: Final = re.compile(r"\bCALL \(([^()]*)\) \{")
_UNION: Final = re.compile(r"\nUNION(?: ALL)?\n")
_WITH: Final = re.compile(r"(?<!STARTS )(?<!ENDS )\bWITH (?:DISTINCT )?(?!\*)")
_PROJECTION: Final = re.compile(r".*?(?= WHERE | ORDER BY | LIMIT | MATCH | UNWIND | CALL |\n|$)", re.DOTALL)
_AGGREGATE: Final = re.compile(r"\b(?:count|collect|sum|min|max|avg)\(")


def keep_imports(text: str, engine: Engine) -> str:
    """The text with what its subqueries import named in each `WITH` after which it is used; raises
    `UnsupportedError` where that would change what the clause groups by.

    >>> print(keep_imports("CALL (s1) {\\nMATCH (e2)\\nWITH DISTINCT e2\\nWITH e2 WHERE e2 IN s1\\nRETURN e2\\n}", ARCADEDB))
    CALL (s1) {
    MATCH (e2)
    WITH DISTINCT s1, e2
    WITH s1, e2 WHERE e2 IN s1
    RETURN e2
    }
    """
    if engine.keeps_imports or "CALL (" not in text:
        return text
    # Names in backticks may look like anything.
    names: list[str] = []

    def stored(match: re.Match[str]) -> str:
        names.append(match[0])
        return f"`{len(names) - 1}`"

    return _STORED.sub(lambda match: names[int(match[1])], _branches(_NAME.sub(stored, text), (), engine))


def _branches(body: str, imported: Sequence[str], engine: Engine) -> str:
    """The branches of a subquery's body, each on its own."""
    ends = [match for match in _UNION.finditer(body) if not _inside(body, match.start())]
    cuts = [0, *(place for match in ends for place in match.span()), len(body)]
    pieces = [body[low:high] for low, high in pairwise(cuts)]
    return "".join(piece if number % 2 else _branch(piece, imported, engine) for number, piece in enumerate(pieces))


def _inside(text: str, at: int) -> bool:
    """Whether a place is within braces."""
    return text.count("{", 0, at) > text.count("}", 0, at)


def _branch(text: str, imported: Sequence[str], engine: Engine) -> str:
    result, at = [], 0
    for begin, end, listed in _calls(text):
        known = [name for name in dict.fromkeys(_VARIABLE.findall(text[:begin])) if name not in imported]
        names = [*imported, *known] if listed == "*" else [name.strip() for name in listed.split(",") if name.strip()]
        result += [text[at:begin], _branches(text[begin:end], names, engine)]
        at = end
    text = "".join([*result, text[at:]])
    if not imported:
        return text
    result, at = [], 0
    for match in _WITH.finditer(text):
        if _inside(text, match.start()):
            continue
        projection = _PROJECTION.match(text, match.end())
        assert projection is not None
        after = set(_VARIABLE.findall(text[projection.end() :]))
        given = set(_VARIABLE.findall(re.sub(r"[^,]* AS ", "", projection[0])))
        carried = [name for name in imported if name in after and name not in given]
        if carried and _AGGREGATE.search(projection[0]):
            raise UnsupportedError(
                engine.name, ["a list that a grouped part of a query looks up"], hint="graph.snapshot() answers it in process"
            )
        result += [text[at : match.end()], *(f"{name}, " for name in carried)]
        at = match.end()
    return "".join([*result, text[at:]])


def _calls(text: str) -> Iterator[tuple[int, int, str]]:
    """The bodies of the subqueries of a branch, from brace to brace, and what each imports."""
    at = 0
    while (match := _CALL.search(text, at)) is not None:
        at = match.end()
        if _inside(text, match.start()):
            continue
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield match.end(), at - 1, match[1].strip()
