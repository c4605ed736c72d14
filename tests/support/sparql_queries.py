"""Random SPARQL over the RDF view of a graph, mostly with a plan and sometimes without, and comparison of the answers
with those of Oxigraph over the same graph as RDF.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from condgraph.cypher.native.mapping import Mapping
from condgraph.endpoint.live import Solutions
from condgraph.engine.iris import PREFIXES
from condgraph.sparql.text.scan import underscored


def expected(rdf: Any, text: str) -> Any:
    """Return Oxigraph's answer; `rdf` is the embedded store of the graph."""
    return rdf.store.query(underscored(text, rdf.is_name), base_iri=rdf.base, prefixes=PREFIXES)


def compare(ask: Callable[[str], Solutions | bool], rdf: Any, text: str) -> int:
    """Compare the answers to a query; return the number of rows."""
    answer, expected_answer = ask(text), expected(rdf, text)
    if isinstance(answer, bool):
        assert answer is bool(expected_answer), text
        return int(answer)
    expected_rows = [tuple(cell(row[name]) for name in answer.names) for row in expected_answer]
    rows = [tuple(map(cell, row)) for row in answer.rows]
    limit = re.search(r"LIMIT \d+", text)
    if limit and "ORDER BY" not in text:
        all_rows = expected(rdf, text.replace(limit[0], ""))
        assert len(rows) == len(expected_rows), text
        assert not Counter(rows) - Counter(tuple(cell(row[name]) for name in answer.names) for row in all_rows), text
    elif "ORDER BY" in text:
        assert rows == expected_rows, text
    elif not (re.match(r"SELECT \((MIN|MAX)\(", text) and _of_two_types(rows, expected_rows)):
        assert Counter(rows) == Counter(expected_rows), text
    return len(rows)


def _of_two_types(rows: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether the only cells are a text and a number: SPARQL does not tell which of them is more."""
    return {type(row[0]) for row in (*rows, *others)} == {float, str}


def cell(term: Any) -> Any:
    """Return a term in a comparable form: sums of doubles depend on their order, and a "u" may be escaped."""
    if term is None:
        return None
    text = str(term).replace("\\U00000075", "u")
    return float(f"{float(text.split(chr(34))[1]):.12g}") if text.endswith("#double>") else text


class Maker:
    """Generates queries from the names and values of a graph, whose embedded store is `rdf`.

    `relations` are pairs of a name and pairs of the concepts of its ends; `attributes` are pairs of a name and the
    concept of its subjects; `labels` are the names of the concepts.
    """

    def __init__(
        self,
        relations: Sequence[tuple[str, Sequence[Sequence[str]]]],
        attributes: Sequence[tuple[str, str]],
        labels: Sequence[str],
        rdf: Any,
        dice: random.Random,
    ) -> None:
        self._dice, self._names = dice, rdf.target.names
        self._relations, self._attributes, self._labels = relations, attributes, labels
        snapshot = rdf.snapshot
        self._called = sorted({snapshot.name(number) for number in range(snapshot.entities)})
        self._texts: dict[str, list[Any]] = {}
        for row in rdf.store.query("SELECT DISTINCT ?p ?x ?k { ?s ?p ?v . ?v <pred:value> ?x ; a ?k }"):
            self._texts.setdefault(row["p"].value, []).append(row["x"])

    @classmethod
    def of_mapping(cls, mapping: Mapping, rdf: Any, dice: random.Random) -> Maker:
        """Return a maker for an existing database."""
        attributes = sorted({(item.predicate, node.label) for node in mapping.nodes for item in node.properties if node.label})
        labels = [node.concept for node in mapping.nodes if node.label]
        return cls([(item.predicate, item.ends) for item in mapping.relationships], attributes, labels, rdf, dice)

    @classmethod
    def of_rdf(cls, rdf: Any, dice: random.Random) -> Maker:
        """Return a maker for any graph, from its RDF."""

        def rows(text: str) -> list[list[str]]:
            return [[str(cell)[1:-1] for cell in row] for row in rdf.store.query(text)]

        concept = "<pred:instance_of>/<pred:name>"
        statement = "?s <pred:fact_h> ?x ; <pred:fact_r> ?p ; <pred:fact_t> ?y"
        relations: dict[str, list[tuple[str, str]]] = {}
        for name, start, end in rows(
            f"SELECT DISTINCT ?p ?c ?d {{ {statement} . ?x {concept} ?c . ?y {concept} ?d }} ORDER BY ?p ?c ?d"
        ):
            relations.setdefault(rdf.target.names.name_of(name), []).append((start, end))
        classes = "<pred:Entity>, <pred:Concept>, <pred:Row>"
        valued = f"?y a ?k FILTER(STRSTARTS(STR(?k), 'pred:') && ?k NOT IN ({classes}))"
        pairs = rows(f"SELECT DISTINCT ?p ?c {{ {statement} . ?x {concept} ?c . {valued} }} ORDER BY ?p ?c")
        attributes = [(rdf.target.names.name_of(name), label) for name, label in pairs]
        labels = [label for (label,) in rows(f"SELECT DISTINCT ?c {{ ?x {concept} ?c }} ORDER BY ?c")]
        return cls(list(relations.items()), attributes, labels, rdf, dice)

    def _iri(self, predicate: str) -> str:
        return str(self._names.predicate(predicate))

    def _value(self, predicate: str) -> Any:
        literals = self._texts.get(self._iri(predicate)[1:-1])
        return self._dice.choice(sorted(literals, key=str)) if literals else None

    def _said(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"

    def query(self) -> str:
        """Return one query."""
        dice = self._dice
        self._fresh = 0
        nodes: dict[str, str | None] = {"a": None}
        triples, filters, shown = list[str](), list[str](), ["?a"]
        numbers, texts = list[str](), list[str]()
        variable = "a"
        for _ in range(dice.choice((0, 1, 1, 2))):
            variable = self._step(variable, nodes, triples)
        for name in list(nodes):
            if dice.random() < 0.5:
                triples.append(f"?{name} <pred:name> ?n{name}")
                shown.append(f"?n{name}")
                texts.append(f"?n{name}")
        for name, label in list(nodes.items()):
            if dice.random() < 0.6:
                self._attribute(name, label, triples, filters, shown, numbers, texts)
        if not any("<pred:name>" not in item for item in triples):
            triples.append("?a a <pred:Entity>")
        if dice.random() < 0.25:
            triples.append(f"?a <pred:instance_of>/<pred:name> {self._said(dice.choice(self._labels))}")
        elif dice.random() < 0.1:
            triples.append("?a <pred:instance_of>/<pred:name> ?c")
            shown.append("?c")
        if dice.random() < 0.15:
            triples.append(f"?{dice.choice(list(nodes))} <pred:name> {self._said(dice.choice(self._called))}")
        if texts and dice.random() < 0.3:
            filters.append(self._text_filter(dice.choice(texts)))
        if len(nodes) > 1 and dice.random() < 0.2:
            filters.append(f"?{next(iter(nodes))} {dice.choice(('!=', '='))} ?{list(nodes)[-1]}")
        dice.shuffle(triples)
        body = " . ".join(triples)
        extra = self._extra(nodes, shown)
        if dice.random() < 0.08 and len(triples) > 1:
            body = f"{{ {triples[0]} }} UNION {{ {triples[-1]} }} {' . '.join(triples)}"
        where = f"{{ {body} {extra} {' '.join(f'FILTER({item})' for item in filters)} }}"
        return self._whole(where, shown, numbers)

    def _step(self, here: str, nodes: dict[str, str | None], triples: list[str]) -> str:
        dice = self._dice
        predicate, ends = dice.choice(self._relations)
        target = "a" if dice.random() < 0.05 else f"b{len(nodes)}"
        start, end = (ends[0][0], ends[0][1]) if ends else (None, None)
        forward = dice.random() < 0.5
        if dice.random() < 0.15:
            triples.append(f"?{here} {self._iri(predicate)}/^{self._iri(predicate)} ?{target}")
            nodes.setdefault(target, start)
        elif forward:
            triples.append(f"?{here} {self._iri(predicate)} ?{target}")
            nodes[here] = nodes.get(here) or start
            nodes.setdefault(target, end)
        else:
            triples.append(f"?{target} {self._iri(predicate)} ?{here}")
            nodes[here] = nodes.get(here) or end
            nodes.setdefault(target, start)
        return target

    def _attribute(
        self,
        name: str,
        label: str | None,
        triples: list[str],
        filters: list[str],
        shown: list[str],
        numbers: list[str],
        texts: list[str],
    ) -> None:
        dice = self._dice
        fitting = [predicate for predicate, concept in self._attributes if label is None or concept == label]
        if not fitting:
            return
        predicate = dice.choice(fitting)
        self._fresh += 1
        value, literal = f"?v{self._fresh}", self._value(predicate)
        x = f"?x{self._fresh}"
        if literal is None:
            triples.append(f"?{name} {self._iri(predicate)} {value}")
            if dice.random() < 0.6:
                triples.append(f"{value} <pred:{dice.choice(('year', 'date', 'start', 'end'))}> {x}")
                shown.append(x)
            else:
                shown.append(value)
            return
        if dice.random() < 0.7:
            triples.append(f"?{name} {self._iri(predicate)}/<pred:value> {x}")
        else:
            triples.append(f"?{name} {self._iri(predicate)} {value} . {value} <pred:value> {x}")
            shown.append(value)
        shown.append(x)
        if literal.datatype.value.endswith("double"):
            numbers.append(x)
            if dice.random() < 0.5:
                filters.append(f"{x} {dice.choice(('=', '!=', '<', '>', '<=', '>='))} {self._number(literal)}")
        else:
            texts.append(x)
            if dice.random() < 0.3:
                filters.append(f"{x} {dice.choice(('=', '!='))} {self._said(literal.value)}")

    def _number(self, literal: Any) -> str:
        number = float(literal.value)
        return (
            str(int(number))
            if number.is_integer() and abs(number) < 2**53
            else f"{number!r}e0"
            if "e" not in repr(number)
            else repr(number)
        )

    def _text_filter(self, variable: str) -> str:
        dice = self._dice
        word = dice.choice(self._called)
        at = dice.randrange(max(1, len(word)))
        part = self._said(word[at : at + dice.randrange(1, 4)])
        function = dice.choice(("CONTAINS", "STRSTARTS", "STRENDS"))
        test = f"{function}({dice.choice((variable, f'LCASE({variable})'))}, {part})"
        equality = f"{variable} = {self._said(word)}"
        return dice.choice((test, f"!{test}", f"{test} || {equality}", f"{variable} IN ({self._said(word)}, {part})"))

    def _extra(self, nodes: dict[str, str | None], shown: list[str]) -> str:
        dice = self._dice
        if dice.random() > 0.4:
            return ""
        name = dice.choice(list(nodes))
        predicate, _ = dice.choice(self._relations)
        attribute = dice.choice(self._attributes)[0]
        inner = dice.choice(
            (f"?{name} {self._iri(predicate)} ?o", f"?o {self._iri(predicate)} ?{name}", f"?{name} {self._iri(attribute)} ?o")
        )
        kind = dice.choice(("OPTIONAL", "OPTIONAL", "MINUS", "FILTER NOT EXISTS", "FILTER EXISTS"))
        if kind == "OPTIONAL":
            shown.append("?o")
        return f"{kind} {{ {inner} }}"

    def _whole(self, where: str, shown: list[str], numbers: list[str]) -> str:
        dice = self._dice
        form = dice.random()
        shown = list(dict.fromkeys(shown))
        if form < 0.08:
            return f"ASK {where}"
        if form < 0.2:
            return f"SELECT (COUNT({dice.choice(('*', 'DISTINCT ' + dice.choice(shown), dice.choice(shown)))}) AS ?z) {where}"
        if form < 0.3 and numbers:
            function = dice.choice(("SUM", "AVG", "MIN", "MAX"))
            return f"SELECT ({function}({dice.choice(numbers)}) AS ?z) {where}"
        if form < 0.45:
            key = dice.choice(shown)
            having = " HAVING(COUNT(*) > 1)" if dice.random() < 0.3 else ""
            return f"SELECT {key} (COUNT(*) AS ?z) {where} GROUP BY {key}{having}"
        columns = dice.sample(shown, dice.randrange(1, len(shown) + 1))
        distinct = "DISTINCT " if dice.random() < 0.4 else ""
        tail = ""
        if dice.random() < 0.5:
            keys = [f"{dice.choice(('DESC', 'ASC'))}({column})" for column in dice.sample(columns, len(columns))]
            tail = f" ORDER BY {' '.join(keys)}"
            if dice.random() < 0.5:
                tail += f" LIMIT {dice.randrange(1, 12)}" + (f" OFFSET {dice.randrange(5)}" if dice.random() < 0.5 else "")
        elif dice.random() < 0.2:
            tail = f" LIMIT {dice.randrange(1, 8)}"
        return f"SELECT {distinct}{' '.join(columns)} {where}{tail}"
