"""A graph in KQA Pro's format, written like a Wikidata dump: statement nodes with qualifiers and ranks, nodes of values
with units and precisions, unknown values and statements of no value, labels in several languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

from condgraph.sparql.layout import string

WD: Final = "http://www.wikidata.org/entity/"
PROP: Final = "http://www.wikidata.org/prop/"
ONTOLOGY: Final = "http://wikiba.se/ontology#"
#: Prefixes of Wikidata's endpoint.
PREFIXES: Final = {
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "xsd": "http://www.w3.org/2001/XMLSchema#", "wikibase": ONTOLOGY,
    "wdt": f"{PROP}direct/", "p": PROP, "ps": f"{PROP}statement/", "psv": f"{PROP}statement/value/", "pq": f"{PROP}qualifier/",
}  # fmt: skip
_LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
#: Replaces characters of a number in the name of its node, so that -3.5 and +3.5 have different nodes.
_NODE: Final = str.maketrans({"+": "p", "-": "m", ".": "_"})
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"


class Dump:
    """Writes one graph; `lines` yields N-Triples."""

    def __init__(self, kb: dict[str, Any]) -> None:
        self._kb = kb
        self._numbers: dict[str, str] = {"instance of": "P31", "subclass of": "P279"}
        self._units: dict[str, str] = {}
        self._statements = 0

    def number(self, name: str) -> str:
        """Return the number of a property with this name."""
        return self._numbers.setdefault(name, f"P{10_000 + len(self._numbers)}")

    def _unit(self, name: str) -> str:
        return WD + ("Q199" if name == "1" else self._units.setdefault(name, f"Q{90_000_000 + len(self._units)}"))

    def lines(self) -> Iterator[str]:
        """Yield the triples, one a line."""
        for kind in ("concepts", "entities"):
            for item_id, record in self._kb[kind].items():
                yield from self._item(item_id, record["name"])
                for parent in record.get("subclassOf", ()):
                    yield from self._statement(item_id, "P279", f"<{WD}{parent}>", (), {})
                for concept in record.get("instanceOf", ()):
                    yield from self._statement(item_id, "P31", f"<{WD}{concept}>", (), {})
                for fact in record.get("attributes", ()):
                    term, node = self._value(fact["value"])
                    yield from self._statement(item_id, self.number(fact["key"]), term, node, fact.get("qualifiers", {}))
                for fact in record.get("relations", ()):
                    if fact["direction"] == "forward":
                        number = self.number(fact.get("relation") or fact["predicate"])
                        yield from self._statement(item_id, number, f"<{WD}{fact['object']}>", (), fact.get("qualifiers", {}))
        for name, number in self._numbers.items():
            yield f"<{WD}{number}> <{ONTOLOGY}claim> <{PROP}{number}> ."
            yield f"<{WD}{number}> <{ONTOLOGY}directClaim> <{PROP}direct/{number}> ."
            yield from self._labels(number, name)
        for name, item_id in self._units.items():
            yield from self._item(item_id, name)

    def _item(self, ident: str, name: str) -> Iterator[str]:
        yield from self._labels(ident, name)

    def _labels(self, ident: str, name: str) -> Iterator[str]:
        yield f"<{WD}{ident}> {_LABEL} {string(name)}@en ."
        for language in ("de", "fr", "ja"):
            yield f"<{WD}{ident}> {_LABEL} {string(f'{name} ({language})')}@{language} ."

    def _statement(self, ident: str, number: str, term: str, node: tuple[str, ...], qualifiers: dict[str, Any]) -> Iterator[str]:
        self._statements += 1
        rank = "PreferredRank" if self._statements % 7 == 0 else "NormalRank"
        yield from self._written(f"<{WD}statement/s{self._statements}>", ident, number, term, node, qualifiers, rank)
        if self._statements % 11 == 0 and number not in ("P31", "P279"):
            # A deprecated statement, which must be in no answer.
            deprecated = f"<{WD}statement/d{self._statements}>"
            yield from self._written(deprecated, ident, number, '"deprecated"', (), {}, "DeprecatedRank")
        if self._statements % 13 == 0 and number not in ("P31", "P279"):
            # An unknown value is a blank node in the dumps, and an IRI at the endpoint.
            unknown = f"<{WD[:-7]}.well-known/genid/{self._statements}>" if self._statements % 2 else f"_:u{self._statements}"
            yield from self._written(f"<{WD}statement/u{self._statements}>", ident, number, unknown, (), qualifiers, rank)
        if self._statements % 17 == 0 and number not in ("P31", "P279"):
            yield from self._written(f"<{WD}statement/n{self._statements}>", ident, number, "", (), qualifiers, rank)

    def _written(
        self, s: str, ident: str, number: str, term: str, node: tuple[str, ...], qualifiers: dict[str, Any], rank: str
    ) -> Iterator[str]:
        yield f"<{WD}{ident}> <{PROP}{number}> {s} ."
        none = f"<{PROP}novalue/%s>"
        if not term:
            yield f"<{WD}{ident}> {_TYPE} {none % number} ."
            yield f"{s} {_TYPE} {none % number} ."
        elif rank != "DeprecatedRank":
            # A blank node is a different one in each line.
            yield f"<{WD}{ident}> <{PROP}direct/{number}> {term}{'d' * term.startswith('_:')} ."
        yield f"{s} {_TYPE} <{ONTOLOGY}Statement> ."
        yield f"{s} <{ONTOLOGY}rank> <{ONTOLOGY}{rank}> ."
        if term:
            yield f"{s} <{PROP}statement/{number}> {term} ."
        if node:
            yield f"{s} <{PROP}statement/value/{number}> {node[0]} ."
            yield from node[1:]
        for key, values in qualifiers.items():
            for value in values:
                short, full = self._value(value)
                yield f"{s} <{PROP}qualifier/{self.number(key)}> {short} ."
                if full:
                    yield f"{s} <{PROP}qualifier/value/{self.number(key)}> {full[0]} ."
                    yield from full[1:]
            if self._statements % 5 == 0:
                # A second qualifier of this key: an unknown value, or no value.
                predicate, mark = f"<{PROP}qualifier/{self.number(key)}>", blake2b(f"{s}{key}".encode(), digest_size=6).hexdigest()
                yield f"{s} {predicate} _:q{mark} ." if self._statements % 2 else f"{s} {_TYPE} {none % self.number(key)} ."
        yield f"{s} <http://www.w3.org/ns/prov#wasDerivedFrom> <http://www.wikidata.org/reference/r{self._statements % 5}> ."

    def _value(self, value: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Return the term of a value, and its node followed by the node's triples."""
        if value["type"] == "string":
            return string(value["value"]), ()
        if value["type"] == "quantity":
            text = f"{value['value']:+}" if isinstance(value["value"], int) else f"{value['value']:+.15g}"
            if "e" in text:
                text = f"{float(text):+.30f}".rstrip("0").rstrip(".")
            amount, unit = f'"{text}"^^<{_XSD}decimal>', self._unit(value["unit"])
            node = f"<http://www.wikidata.org/value/q{text.translate(_NODE)}{unit.rpartition('/')[2]}>"
            return amount, (
                node,
                f"{node} <{ONTOLOGY}quantityAmount> {amount} .",
                f"{node} <{ONTOLOGY}quantityUnit> <{unit}> .",
            )
        if value["type"] == "year":
            year, precision = int(value["value"]), 9
            date = f"{'-' if year < 0 else ''}{abs(year):04d}-01-01"
        else:
            date, precision = value["value"], 11
        moment = f'"{date}T00:00:00Z"^^<{_XSD}dateTime>'
        node = f"<http://www.wikidata.org/value/t{date}p{precision}>"
        return moment, (
            node,
            f"{node} <{ONTOLOGY}timeValue> {moment} .",
            f'{node} <{ONTOLOGY}timePrecision> "{precision}"^^<{_XSD}integer> .',
        )
