"""Random Cypher over a small property graph, and the rows of several engines in one form, for comparison.

A `PropertyGraph` is the same data for every engine: built in Python (`ugly`), or read from a Neo4j database. `Maker`
writes queries over it whose rows are determined, except for the order that a query leaves open.
"""
# ruff: noqa: E501 - a piece of a query is on one line

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import condgraph
from condgraph import Entity, EntityKind, Member, Quantity, Ref, Statement
from condgraph.engine import temporal
from condgraph.engine.facts import Item
from condgraph.engine.records import Evidence, PathTerm
from condgraph.engine.values import Time
from condgraph.graph import Graph

Value = Any


@dataclass
class PropertyGraph:
    """Nodes by key, with labels and properties, and relationships: start, type, end, properties."""

    nodes: dict[str, tuple[tuple[str, ...], dict[str, Value]]] = field(default_factory=dict)
    relationships: list[tuple[str, str, str, dict[str, Value]]] = field(default_factory=list)

    def items(self) -> Iterator[Item]:
        """Yield the graph as items."""
        for label in sorted({label for labels, _ in self.nodes.values() for label in labels}):
            yield Entity(f"label/{label}", label, EntityKind.CONCEPT)
        for key, (labels, properties) in self.nodes.items():
            yield Entity(key, key)
            yield from (Member(key, f"label/{label}") for label in labels)
            for name, value in properties.items():
                yield from (Statement(key, name, _stored(item)) for item in (value if isinstance(value, list) else [value]))
        for start, type_, end, properties in self.relationships:
            qualifiers = [
                (name, _stored(item))
                for name, value in properties.items()
                for item in (value if isinstance(value, list) else [value])
            ]
            yield Statement(start, type_, Ref(end), tuple(qualifiers))

    def in_memory(self) -> Graph:
        """Return the graph in process."""
        graph = condgraph.open()
        graph.add(list(self.items()))
        return graph

    def write(self, session: Any) -> None:
        """Write the graph into an empty Neo4j database; nodes get their key as the property `key`."""
        for key, (labels, properties) in self.nodes.items():
            text = "".join(f":{quoted(label)}" for label in labels)
            session.run(f"CREATE (n{text}) SET n = $p", p=properties | {KEY: key}).consume()
        session.run("CREATE INDEX IF NOT EXISTS FOR (n:_) ON (n._)").consume()
        for start, type_, end, properties in self.relationships:
            session.run(
                f"MATCH (a {{{KEY}: $a}}), (b {{{KEY}: $b}}) CREATE (a)-[r:{quoted(type_)}]->(b) SET r = $p",
                a=start,
                b=end,
                p=properties,
            ).consume()


#: The property that identifies a node in every engine; in a graph it is an attribute.
KEY: Final = "key"


def quoted(name: str) -> str:
    """Return a name as Cypher writes it."""
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"


def _stored(value: Value) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return Quantity(value)
    if isinstance(value, datetime.date):
        return Time.day(value.year, value.month, value.day)
    return value


def read(session: Any) -> PropertyGraph:
    """Return the content of a Neo4j database in the form in which a graph stores it, and normalise the database alike:
    sorted lists without repeats, single blanks between words. Nodes get keys.
    """
    graph = PropertyGraph()
    keys: dict[str, str] = {}
    session.run(f"MATCH (n) WITH n, elementId(n) AS e SET n.{KEY} = 'n' + toString(id(n))").consume()
    for pattern in ("(n)", "()-[n]->()"):
        for n, properties in session.run(f"MATCH {pattern} RETURN elementId(n), properties(n)").values():
            for name, value in properties.items():
                stored = (
                    sorted(set(value)) if isinstance(value, list) else " ".join(value.split()) if isinstance(value, str) else value
                )
                if stored != value:
                    session.run(f"MATCH {pattern} WHERE elementId(n) = $e SET n.{quoted(name)} = $v", e=n, v=stored).consume()
    for element, labels, properties in session.run("MATCH (n) RETURN elementId(n), labels(n), properties(n)").values():
        keys[element] = properties[KEY]
        graph.nodes[properties[KEY]] = tuple(sorted(labels)), {k: _plain(v) for k, v in properties.items()}
    text = "MATCH (a)-[r]->(b) RETURN elementId(a), type(r), elementId(b), properties(r)"
    for start, type_, end, properties in session.run(text).values():
        graph.relationships.append((keys[start], type_, keys[end], {k: _plain(v) for k, v in properties.items()}))
    return graph


def _plain(value: Any) -> Value:
    return value.to_native() if hasattr(value, "to_native") else value


UGLY_TEXTS: Final = (
    "",
    "null",
    "NULL",
    "None",
    "nan",
    "true",
    "0",
    "007",
    "1e3",
    "-5",
    "2020-02-29",
    "O'Brien",
    'say "hi"',
    "`tick`",
    "a\\b",
    "Zoë",
    "Zoe\u0301",
    "東京",
    "Ωmega",
    "straße",
    "STRASSE",
    "İstanbul",
    "a // b",
    "/* c */",
    "$x",
    "{a: 1}",
    "x;y",
    "MATCH",
    "a.b",
    "😀 smile",
    "%s",
    "[1, 2]",
)


def ugly() -> PropertyGraph:
    """Return a graph of awkward names (keywords, blanks, quotes, other scripts), with properties of every type of
    value.
    """
    draw = random.Random(11)
    graph = PropertyGraph()
    labels = ["MATCH", "the `label`", "人", "It's"]
    for number in range(36):
        properties: dict[str, Value] = {KEY: f"k{number}"}
        if number % 9:
            properties["name"] = UGLY_TEXTS[number % len(UGLY_TEXTS)]
        if number % 3:
            properties["order by"] = draw.choice([-7, -1, 0, 1, 2, 3, 10, 100])
        if number % 4:
            properties["größe"] = draw.choice([-2.5, 0.25, 0.1, 1.5, 3.75, 12.125])
        if number % 5:
            properties["it's"] = draw.choice([1, "1", "one", 20, "20", -3, ""])
        if number % 4 < 3:
            # No numbers among them, since a number would be compared with a time as a year.
            properties["when"] = draw.choice(["1999", datetime.date(2001, 1, 31), datetime.date(1999, 12, 31), "date"])
        if number % 2:
            properties["day"] = datetime.date(1990 + number, 1 + number % 12, 1 + number % 28)
        if number % 6 in (1, 2, 4):
            properties["is"] = number % 4 == 1
        if number % 7 < 4:
            properties["tags"] = sorted(draw.sample(["a", "b`", "ç", "d d", "null"], draw.randint(1, 4)))
        graph.nodes[f"k{number}"] = tuple(sorted(draw.sample(labels, draw.choice([0, 1, 1, 1, 2])))), properties
    used: set[tuple[Any, ...]] = set()
    for _ in range(90):
        start, end = draw.choice(list(graph.nodes)), draw.choice(list(graph.nodes))
        type_ = draw.choice(["RETURN", "liegt in", "`a`", "→"])
        since = {"since": draw.randrange(1990, 1996)} if draw.random() < 0.7 else {}
        note = {"the note": draw.choice(UGLY_TEXTS[:16])} if draw.random() < 0.4 else {}
        if (key := (start, type_, end, str(since), str(note))) not in used:
            used.add(key)
            graph.relationships.append((start, type_, end, since | note))
    return graph


# -- Queries -----------------------------------------------------------------------------------------


@dataclass
class Query:
    """A query with its parameters; whether its rows are ordered, and the constructs it uses."""

    text: str
    parameters: dict[str, Any]
    ordered: bool
    forms: tuple[str, ...]
    #: The columns that determine the order of the rows.
    keys: tuple[int, ...] = ()


class Maker:
    """Random queries over a graph. A scope maps each variable to its kind: "node", "rel", "path", or that of a value."""

    def __init__(self, graph: PropertyGraph, seed: int) -> None:
        self.draw = random.Random(seed)
        self.graph = graph
        self.labels = sorted({label for labels, _ in graph.nodes.values() for label in labels})
        self.types = sorted({type_ for _, type_, _, _ in graph.relationships})
        self.of_nodes = self._kinds([properties for _, properties in graph.nodes.values()])
        self.of_relationships = self._kinds([properties for *_, properties in graph.relationships])
        self.parameters: dict[str, Any] = {}
        self.forms: set[str] = set()
        self.names = 0
        #: The relationship types that begin and end at nodes of each label.
        self.ends = {"out": Counter[tuple[str, str]](), "in": Counter[tuple[str, str]]()}
        for start, type_, end, _ in graph.relationships:
            self.ends["out"].update((label, type_) for label in graph.nodes[start][0])
            self.ends["in"].update((label, type_) for label in graph.nodes[end][0])

    @staticmethod
    def _kinds(all_properties: list[dict[str, Value]]) -> dict[str, dict[str, list[Value]]]:
        """Return the properties by the kind of their values, each with its values."""
        values: dict[str, list[Value]] = {}
        for properties in all_properties:
            for name, value in properties.items():
                values.setdefault(name, []).append(value)
        names = {bool: "bool", int: "int", float: "float", str: "text", datetime.date: "date", list: "list"}
        kinds: dict[str, dict[str, list[Value]]] = {}
        for name, stored in sorted(values.items()):
            types = {names[type(value)] for value in stored}
            if types <= {"int", "float"} and len(types) == 2:
                types = {"float"}
            kind = types.pop() if len(types) == 1 else "mixed"
            kinds.setdefault(kind, {})[name] = [
                item for value in stored for item in (value if isinstance(value, list) else [value])
            ]
        return kinds

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def fresh(self, letter: str = "v") -> str:
        self.names += 1
        return f"{letter}{self.names}"

    # -- literals

    def literal(self, value: Value) -> str:
        """Return a value as text in the query, or as a parameter."""
        if self.chance(0.15):
            self.forms.add("parameter")
            name = self.fresh("p")
            self.parameters[name] = value
            return f"${name}"
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        if isinstance(value, datetime.date):
            return f"date('{value.isoformat()}')"
        if isinstance(value, str):
            quote = self.draw.choice("'\"")
            return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
        return repr(value)

    def known(self, kind: str) -> Value:
        """Return a value of a kind, usually one in the graph."""
        draw = self.draw
        existing = [
            v for kinds in (self.of_nodes, self.of_relationships) for values in kinds.get(kind, {}).values() for v in values
        ]
        if kind == "text":
            existing = [text for text in existing if len(text) < 40]
        if existing and self.chance(0.75):
            return draw.choice(existing)
        invented = {
            "int": draw.choice([-3, 0, 1, 2, 3, 7, 10]),
            "float": draw.choice([-1.5, 0.0, 0.5, 2.25, 10.0]),
            "text": draw.choice(UGLY_TEXTS),
            "date": datetime.date(draw.randrange(1990, 2024), draw.randint(1, 12), draw.randint(1, 28)),
            "bool": self.chance(0.5),
        }
        return invented[kind]

    # -- expressions

    def property(self, scope: dict[str, str], kind: str) -> str | None:
        """Return a property or a variable of a kind."""
        options = [name for name, scope_kind in scope.items() if scope_kind == kind]
        for name, scope_kind in scope.items():
            kinds = self.of_nodes if scope_kind == "node" else self.of_relationships if scope_kind == "rel" else {}
            options += [f"{name}.{quoted(key)}" for key in kinds.get(kind, {}) if key != KEY or self.chance(0.1)]
        return self.draw.choice(options) if options else None

    def value(self, kind: str, scope: dict[str, str], depth: int = 2) -> str:
        """Return an expression of a kind: int, float, text, date, bool."""
        draw = self.draw
        if depth <= 0 or self.chance(0.45):
            return (self.property(scope, kind) if self.chance(0.8) else None) or self.leaf(kind)

        def v(of: str) -> str:
            return self.value(of, scope, depth - 1)

        if self.chance(0.08):
            self.forms.add("CASE")
            if self.chance(0.5):
                return f"CASE WHEN {self.test(scope, depth - 1)} THEN {v(kind)} ELSE {v(kind)} END"
            of = draw.choice(["int", "text"])
            return f"CASE {v(of)} WHEN {self.leaf(of)} THEN {v(kind)} {draw.choice(['', f'ELSE {self.leaf(kind)} '])}END"
        if self.chance(0.08):
            return draw.choice(
                [f"coalesce({v(kind)}, {v(kind)})", f"nullIf({v(kind)}, {self.leaf(kind)})", f"head([{v(kind)}, {v(kind)}])"]
            )
        if kind == "int":
            self.forms.add("numbers")
            options = [
                lambda: f"({v('int')} {draw.choice('+-*')} {v('int')})",
                lambda: f"size({v('text')})",
                lambda: f"abs({v('int')})",
                lambda: f"({v('int')} {draw.choice('/%')} {draw.choice([2, 3, 7, -4])})",
                lambda: f"toInteger({v('float')})",
                lambda: f"sign({v('int')})",
                lambda: f"-({v('int')})",
                lambda: f"toInteger({v('text')})",
                lambda: f"size({self.listed(scope, depth - 1)})",
                lambda: (
                    f"({v('date')}).{draw.choice(['year', 'month', 'day', 'week', 'weekYear', 'quarter', 'dayOfWeek', 'ordinalDay'])}"
                ),
                lambda: f"duration.inDays({v('date')}, {v('date')}).days",
                lambda: (
                    f"duration.between({v('date')}, {v('date')}).{draw.choice(['months', 'days', 'years', 'monthsOfYear', 'hours'])}"
                ),
                lambda: f"reduce(acc = {draw.choice([0, 1])}, x IN {self.ints(scope, depth - 1)} | acc {draw.choice('+-')} x)",
                lambda: f"{self.ints(scope, depth - 1)}[{draw.choice([0, 1, -1, 5])}]",
                lambda: self.counted(scope, depth),
            ]
        elif kind == "float":
            self.forms.add("numbers")
            options = [
                lambda: f"({v('float')} {draw.choice('+-*')} {v(draw.choice(['int', 'float']))})",
                lambda: f"toFloat({v(draw.choice(['int', 'text']))})",
                lambda: f"{draw.choice(['floor', 'ceil', 'round', 'abs'])}({v('float')})",
                lambda: f"round({v('float')}, {draw.choice([0, 1, 2])})",
                lambda: f"sqrt(abs({v('float')}))",
                lambda: f"({v('float')} / {draw.choice(['2', '0.3', '-4.0'])})",
                lambda: f"{draw.choice(['sin', 'cos', 'atan', 'degrees', 'radians'])}({v('float')})",
                lambda: (
                    f"({draw.choice(['2', '1.5'])} ^ {self.leaf('int')})"
                    if self.chance(0.2)
                    else f"exp({draw.choice(['0', '1.5', '-2'])})"
                ),
            ]
        elif kind == "text":
            self.forms.add("texts")
            options = [
                lambda: f"({v('text')} + {v('text')})",
                lambda: f"{draw.choice(['toUpper', 'toLower', 'trim', 'lTrim', 'rTrim', 'reverse', 'btrim'])}({v('text')})",
                lambda: f"substring({v('text')}, {draw.choice([0, 1, 3])}{draw.choice(['', ', 1', ', 4'])})",
                lambda: f"{draw.choice(['left', 'right'])}({v('text')}, {draw.choice([0, 1, 3])})",
                lambda: (
                    f"replace({v('text')}, {self.leaf('text')}, {self.leaf('text')})"
                    if self.chance(0.4)
                    else f"replace({v('text')}, 'e', 'EE')"
                ),
                lambda: f"toString({v(draw.choice(['int', 'float', 'date', 'bool', 'text']))})",
                lambda: f"split({v('text')}, {draw.choice(['e', ' ', '-', 'an'])!r})[{draw.choice([0, 1, -1])}]",
                lambda: f"head({self.listed(scope, depth - 1)})",
                lambda: f"last({self.listed(scope, depth - 1)})",
                lambda: f"({v('text')} + {v('int')})",
            ]
        elif kind == "date":
            self.forms.add("dates")
            options = [
                lambda: (
                    f"({v('date')} + duration({{{draw.choice(['days', 'months', 'years', 'weeks'])}: {draw.choice([1, -1, 13, 40])}}}))"
                ),
                lambda: (
                    f"date.truncate('{draw.choice(['year', 'month', 'week', 'quarter', 'decade'])}', coalesce({v('date')}, date('2000-05-17')))"
                ),
                lambda: (
                    f"date({{year: {draw.choice([1999, 2020])}, month: {draw.choice([1, 2, 12])}, day: {draw.choice([1, 28])}}})"
                ),
                lambda: f"({v('date')} - duration('{draw.choice(['P1M', 'P1Y2D', 'P3W', 'PT36H'])}'))",
                lambda: f"date({v('date')})",
            ]
        elif kind == "bool":
            return f"({self.test(scope, depth - 1)})"
        else:
            raise AssertionError(kind)
        return draw.choice(options)()

    def leaf(self, kind: str) -> str:
        if self.chance(0.06):
            return "null"
        return self.literal(self.known(kind))

    def listed(self, scope: dict[str, str], depth: int) -> str:
        """Return a list of texts."""
        draw = self.draw
        self.forms.add("lists")
        prop = self.property(scope, "list")
        options = [
            lambda: f"[{', '.join(self.value('text', scope, depth - 1) for _ in range(draw.randrange(4)))}]",
            lambda: f"split({self.value('text', scope, depth - 1)}, {draw.choice(['e', ' ', ',', 'a'])!r})",
            lambda: (
                f"[x IN {self.listed(scope, depth - 1)} WHERE {self.test({**scope, 'x': 'text'}, 1, local=True)} | {draw.choice(['x', 'toUpper(x)', 'x + 1'])}]"
            ),
            lambda: f"{draw.choice(['tail', 'reverse'])}({self.listed(scope, depth - 1)})",
            lambda: f"({self.listed(scope, depth - 1)} + {self.leaf('text')})",
            lambda: f"{self.listed(scope, depth - 1)}[{draw.choice(['0..1', '1..', '..2', '-2..', '0..-1'])}]",
        ]
        if depth <= 0:
            options = options[:1]
        if prop is not None:
            options += [lambda: f"[x IN {prop} | x]"] * 2
        return draw.choice(options)()

    def ints(self, scope: dict[str, str], depth: int) -> str:
        draw = self.draw
        self.forms.add("lists")
        options = [
            lambda: f"[{', '.join(self.value('int', scope, depth - 1) for _ in range(draw.randrange(4)))}]",
            lambda: f"range({draw.choice(['0, 3', '5, 0', '1, 6, 2', '0, 6, 3', '5, 1, -1', '0, 0', '3, 3, -2'])})",
            lambda: (
                f"[x IN range(1, 4) WHERE {draw.choice(['x % 2 = 0', 'x > 1', 'true'])} | x * {self.value('int', scope, depth - 1)}]"
            ),
        ]
        return draw.choice(options)()

    def test(self, scope: dict[str, str], depth: int = 2, *, local: bool = False) -> str:
        """Return a condition; a `local` one is within a list expression, where patterns cannot use its variable."""
        draw = self.draw
        kinds = [kind for kind in ("int", "float", "text", "date", "bool", "mixed") if self.property(scope, kind)] or [
            "int",
            "text",
        ]
        kind = draw.choice(kinds)
        nodes = [name for name, of in scope.items() if of == "node"]

        def v(of: str) -> str:
            return self.value(of, scope, depth - 1)

        prop = self.property(scope, kind) or self.leaf(kind if kind != "mixed" else "int")
        of = kind if kind != "mixed" else draw.choice(["date" if prop.endswith(".when") else "int", "text"])
        options = [
            lambda: f"{prop} {draw.choice(['=', '<>', '<', '<=', '>', '>='])} {v(of)}",
            lambda: f"{prop} {draw.choice(['=', '<', '>='])} {v(of)}",
            lambda: f"{prop} IS {draw.choice(['', 'NOT '])}NULL",
            lambda: f"{prop} IN [{', '.join(self.leaf(of) for _ in range(draw.randrange(4))) or 'null'}]",
        ]
        if kind in ("text", "mixed"):
            options += [
                lambda: f"{prop} {draw.choice(['STARTS WITH', 'ENDS WITH', 'CONTAINS'])} {draw.choice(['a', 'e', 'S', '1', ''])!r}"
            ] * 2
            options.append(lambda: f"{prop} =~ '{draw.choice(['.*a.*', '[A-M].*', '(?i).*E.*', '.{3,6}', '[0-9]+', ''])}'")
        if kind in ("int", "float"):
            options.append(lambda: f"{self.leaf(kind)} <= {prop} < {self.leaf(kind)}")
        if kind == "bool":
            options.append(lambda: prop)
        if depth > 0:
            options += [
                lambda: (
                    f"({self.test(scope, depth - 1, local=local)} {draw.choice(['AND', 'OR', 'XOR'])} {self.test(scope, depth - 1, local=local)})"
                ),
                lambda: f"NOT ({self.test(scope, depth - 1, local=local)})",
                lambda: f"({self.test(scope, depth - 1, local=True)}) IS NULL" if self.chance(0.3) else "1 < 2",
            ]
            if not local:
                options.append(
                    lambda: (
                        f"{draw.choice(['any', 'all', 'none', 'single'])}(x IN {self.listed(scope, 1)} WHERE {self.test({'x': 'text'}, 0, local=True)})"
                    )
                )
                options.append(lambda: f"{v('text')} IN {self.listed(scope, 1)}")
        if nodes and not local and depth > 0:
            node = draw.choice(nodes)
            options += [
                lambda: f"{node}:{quoted(draw.choice(self.labels))}",
                lambda: self.pattern_test(node, scope),
                lambda: self.exists(node, scope),
            ]
        return draw.choice(options)()

    def hop(self, node: str, other: str = "()", *, name: str = "") -> str:
        """Return a pattern of one relationship from a node."""
        text = f"[{name}{self.typed()}]"
        return f"({node})" + self.draw.choice([f"-{text}->", f"-{text}->", f"<-{text}-", f"-{text}-"]) + other

    def typed(self) -> str:
        draw = self.draw
        types = draw.sample(self.types, min(len(self.types), draw.choice([0, 1, 1, 1, 2])))
        return ":" + "|".join(map(quoted, types)) if types else ""

    def labelled(self) -> str:
        draw = self.draw
        if self.chance(0.5):
            return ""
        first, second = quoted(draw.choice(self.labels)), quoted(draw.choice(self.labels))
        return draw.choice([f":{first}"] * 5 + [f":{first}|{second}", f":{first}&{second}", f":!{first}"])

    def pattern_test(self, node: str, scope: dict[str, str]) -> str:
        self.forms.add("pattern as condition")
        return self.draw.choice(["", "NOT "]) + self.hop(node, f"({self.labelled()})")

    def exists(self, node: str, scope: dict[str, str]) -> str:
        self.forms.add("EXISTS { }")
        z = self.fresh("z")
        return f"EXISTS {{ {self.draw.choice(['MATCH ', ''])}{self.hop(node, f'({z}{self.labelled()})')}{self.where({**scope, z: 'node'}, 0.6, 1)} }}"

    def counted(self, scope: dict[str, str], depth: int) -> str:
        nodes = [name for name, of in scope.items() if of == "node"]
        if not nodes or "x" in scope:
            return "1"
        z, node = self.fresh("z"), self.draw.choice(nodes)
        self.forms.add("COUNT { }")
        return f"COUNT {{ {self.hop(node, f'({z}{self.labelled()})')}{self.where({**scope, z: 'node'}, 0.4, 0)} }}"

    def where(self, scope: dict[str, str], share: float, depth: int = 2) -> str:
        return f" WHERE {self.test(scope, depth)}" if self.chance(share) else ""

    # -- clauses

    def inline(self) -> str:
        """Return properties within a node pattern."""
        if self.chance(0.8):
            return ""
        kind = self.draw.choice([kind_name for kind_name in ("int", "text") if kind_name in self.of_nodes])
        key = self.draw.choice(list(self.of_nodes[kind]))
        return f" {{{quoted(key)}: {self.literal(self.draw.choice(self.of_nodes[kind][key]))}}}"

    def match(self, scope: dict[str, str]) -> str:
        """Return MATCH or OPTIONAL MATCH; its variables are added to the scope."""
        draw = self.draw
        known = [name for name, of in scope.items() if of == "node"]
        optional = bool(scope) and self.chance(0.4)
        new: dict[str, str] = {}

        def node() -> str:
            nodes = known + [name for name, of in new.items() if of == "node"]
            if nodes and self.chance(0.1):
                return f"({draw.choice(nodes)})"
            name = self.fresh("n")
            new[name] = "node"
            return f"({name}{self.labelled()}{self.inline()})"

        # Begin at a known node, so that there are few rows.
        text = f"({draw.choice(known)})" if known and self.chance(0.9) else node()
        prefix = ""
        k = draw.random()
        if k < 0.68:
            for _ in range(draw.choice([0, 1, 1, 1, 2]) if not known else draw.choice([1, 1, 2])):
                name = ""
                if self.chance(0.4):
                    name = self.fresh("r")
                    new[name] = "rel"
                edge = f"[{name}{self.typed()}]"
                text += draw.choice([f"-{edge}->", f"<-{edge}-", f"-{edge}->", f"<-{edge}-", f"-{edge}-"]) + node()
            if self.chance(0.15):
                self.forms.add("path")
                name = self.fresh("p")
                new[name] = "path"
                prefix = f"{name} = "
        elif k < 0.9:
            self.forms.add("variable length")
            edge = f"[{self.typed()}*{draw.choice(['1..2', '2', '0..1', '1..3', '..2'])}]"
            if not known:
                new.clear()
                text = f"({self.anchor(new)})"
            if self.chance(0.3):
                self.forms.add("quantified path")
                quantifier = draw.choice(["{1,2}", "{2}", "{0,1}", "{1,3}"])
                step = f"[{self.typed()}]"
                text += draw.choice([f"-{step}->{quantifier}", f"<-{step}-{quantifier}", f"-{step}-{quantifier}"]) + node()
            else:
                text += draw.choice([f"-{edge}->", f"<-{edge}-", f"-{edge}-"]) + node()
            if self.chance(0.3):
                self.forms.add("path")
                name = self.fresh("p")
                new[name] = "path"
                prefix = f"{name} = "
        else:
            return self.shortest(scope)
        scope.update(new)
        return f"{'OPTIONAL ' * optional}MATCH {prefix}{text}{self.where(scope, 0.55)}"

    def anchor(self, new: dict[str, str]) -> str:
        name = self.fresh("n")
        new[name] = "node"
        kind = self.draw.choice([kind_name for kind_name in ("text", "int") if kind_name in self.of_nodes])
        key = self.draw.choice(list(self.of_nodes[kind]))
        return f"{name} {{{quoted(key)}: {self.literal(self.draw.choice(self.of_nodes[kind][key]))}}}"

    def shortest(self, scope: dict[str, str]) -> str:
        self.forms.add("shortest path")
        new: dict[str, str] = {}
        first, second = self.anchor(new), self.anchor(new)
        a, b = new
        path = self.fresh("p")
        arrow = self.draw.choice(["-[{}*..{}]-", "-[{}*1..{}]->", "<-[{}*..{}]-"]).format(self.typed(), self.draw.choice([2, 4]))
        text = f"MATCH ({first}), ({second}) WHERE {a} <> {b} MATCH {path} = "
        scope |= new
        if self.chance(0.5):
            # The query leaves open which of the shortest paths is returned.
            length = self.fresh("i")
            scope[length] = "int"
            others = ", ".join(name for name in scope if name != length)
            return f"{text}shortestPath(({a}){arrow}({b})) WITH {others}, length({path}) AS {length}"
        scope[path] = "path"
        return f"{text}allShortestPaths(({a}){arrow}({b}))"

    def unwind(self, scope: dict[str, str]) -> str:
        self.forms.add("UNWIND")
        name = self.fresh("u")
        if self.chance(0.5):
            text = f"UNWIND {self.ints(scope, 1)} AS {name}"
            scope[name] = "int"
        else:
            text = f"UNWIND {self.listed(scope, 1)} AS {name}"
            scope[name] = "text"
        return text

    def call(self, scope: dict[str, str]) -> str:
        self.forms.add("CALL { }")
        nodes = [name for name, of in scope.items() if of == "node"]
        if not nodes:
            return self.unwind(scope)
        node, z, name = self.draw.choice(nodes), self.fresh("z"), self.fresh("c")
        inner = {node: "node", z: "node"}
        kind = self.draw.choice(["int", "text"])
        match = f"{self.draw.choice(['MATCH', 'OPTIONAL MATCH'])} {self.hop(node, f'({z}{self.labelled()})')}{self.where(inner, 0.5, 1)}"
        returned = self.draw.choice(
            [f"RETURN {self.aggregate(inner, kind)[0]} AS {name}", f"RETURN {self.value(kind, inner)} AS {name}"]
        )
        if returned.startswith("RETURN count") or "count(" in returned[:16]:
            kind = "int"
        scope[name] = "any"
        body = f"{match} {returned}"
        if self.chance(0.2):
            self.forms.add("UNION")
            body += f" UNION {self.draw.choice(['', 'ALL '])}" + (
                f"MATCH {self.hop(node, f'({z})')} RETURN {self.value(kind, inner)} AS {name}"
            )
        return f"CALL ({node}) {{ {body} }}"

    def aggregate(self, scope: dict[str, str], kind: str | None = None) -> tuple[str, str]:
        """Return an aggregate and the kind of its values."""
        draw = self.draw
        kind = kind or draw.choice(["int", "float", "text", "date"])
        value = self.property(scope, kind) if self.chance(0.8) else None
        value = value or self.value(kind, scope, 1)
        distinct = draw.choice(["", "", "DISTINCT "])
        options = [("count(*)", "int"), (f"count({distinct}{value})", "int"), (f"{draw.choice(['min', 'max'])}({value})", kind)]
        options.append((f"collect({distinct}{value})", "bag"))
        if kind in ("int", "float"):
            options += [
                (f"sum({distinct}{value})", kind),
                (f"avg({distinct}{value})", "float"),
                (f"{draw.choice(['stDev', 'stDevP'])}({value})", "float"),
                (f"percentileCont(1.0 * {value}, {draw.choice(['0.5', '0.25', '0', '1', '0.9'])})", "float"),
                (f"percentileDisc({value}, {draw.choice(['0.5', '0.3', '1.0'])})", kind),
            ]
        if mixed := self.property(scope, "mixed"):
            options.append((f"{draw.choice(['min', 'max'])}({mixed})", "any"))
        nodes = [name for name, of in scope.items() if of in ("node", "rel")]
        if nodes:
            options.append((f"count({distinct}{draw.choice(nodes)})", "int"))
        text, of = draw.choice(options)
        self.forms.add("aggregate " + text.split("(")[0])
        if of == "int" and self.chance(0.15):
            text = f"{text} + 1"
        return text, of

    def items(self, scope: dict[str, str], number: int, *, aggregated: bool) -> list[tuple[str, str]]:
        """Return columns and their kinds."""
        draw = self.draw
        columns: list[tuple[str, str]] = []
        for _ in range(number):
            k = draw.random()
            variables = list(scope.items())
            if k < 0.3 and variables:
                columns.append(draw.choice(variables))
            elif k < 0.9 or aggregated:
                kind = draw.choice(["int", "float", "text", "date", "bool"])
                columns.append((self.value(kind, scope), kind))
            else:
                columns.append(self.odd(scope))
        return columns

    def odd(self, scope: dict[str, str]) -> tuple[str, str]:
        """Return a map, list, comprehension or subquery, and its kind."""
        draw = self.draw
        nodes = [name for name, of in scope.items() if of == "node"]
        relationships = [name for name, of in scope.items() if of == "rel"]
        paths = [name for name, of in scope.items() if of == "path"]
        options = [
            lambda: (f"{{a: {self.value('int', scope, 1)}, b: {self.value('text', scope, 1)}}}", "map"),
            lambda: (self.ints(scope, 1), "ints"),
        ]
        if nodes:
            node, z = draw.choice(nodes), self.fresh("z")
            keys = [quoted(key) for kind in ("int", "text", "float", "date") for key in self.of_nodes.get(kind, {})]
            inner = {**scope, z: "node"}
            options += [
                lambda: (
                    f"{node} {{{', '.join('.' + key for key in draw.sample(keys, min(2, len(keys))))}, x: {self.value('int', scope, 1)}}}",
                    "map",
                ),
                lambda: (
                    f"[{self.hop(node, f'({z}{self.labelled()})')}{self.where(inner, 0.4, 0)} | {self.value('text', inner, 1)}]",
                    "bag",
                ),
                lambda: (
                    f"COLLECT {{ MATCH {self.hop(node, f'({z}{self.labelled()})')}{self.where(inner, 0.4, 0)} RETURN {draw.choice(['', 'DISTINCT '])}{self.value('text', inner, 1)} }}",
                    "bag",
                ),
                lambda: (f"labels({node})", "bag"),
                lambda: (f"size(keys({node}))", "int"),
            ]
        if relationships:
            variable = draw.choice(relationships)
            options += [
                lambda: (f"type({variable})", "text"),
                lambda: (f"{draw.choice(['startNode', 'endNode'])}({variable})", "node"),
            ]
        if paths:
            variable = draw.choice(paths)
            options += [
                lambda: (f"length({variable})", "int"),
                lambda: (f"size(nodes({variable}))", "int"),
                lambda: (f"[x IN nodes({variable}) | x.{KEY}]", "list"),
                lambda: (f"[x IN relationships({variable}) | type(x)]", "list"),
            ]
        text, kind = draw.choice(options)()
        self.forms.add({"[": "comprehension", "C": "COLLECT { }", "{": "map"}.get(text[0], "functions of nodes and paths"))
        return text, kind

    #: The kinds of values with the same order in every engine.
    ORDERED: Final = ("int", "float", "text", "date", "bool")

    def ordering(self, columns: list[tuple[str, str, str]]) -> tuple[str, tuple[int, ...], bool]:
        """Return ORDER BY with SKIP and LIMIT, the columns that determine the order, and whether these are all columns."""
        draw = self.draw
        sortable = [column for column, (_, _, kind) in enumerate(columns) if kind in self.ORDERED]
        if not sortable or self.chance(0.55):
            return "", (), False
        all_sortable = len(sortable) == len(columns)
        chosen = draw.sample(sortable, len(sortable) if all_sortable and self.chance(0.6) else draw.randint(1, len(sortable)))
        text = " ORDER BY " + ", ".join(columns[column][0] + draw.choice(["", " DESC", " ASC"]) for column in chosen)
        self.forms.add("ORDER BY")
        if len(chosen) == len(columns):
            if self.chance(0.3):
                text += f" SKIP {draw.choice([0, 1, 3])}"
            if self.chance(0.5):
                self.forms.add("LIMIT")
                text += f" LIMIT {draw.choice([0, 1, 3, 10])}"
        return text, tuple(chosen), len(chosen) == len(columns)

    def projection(self, scope: dict[str, str], word: str) -> tuple[str, list[tuple[str, str, str]], tuple[int, ...], bool]:
        """Return a WITH or RETURN clause, its columns, and the order."""
        draw = self.draw
        aggregated = self.chance(0.4)
        items = self.items(scope, draw.choice([0, 1, 1, 2]) if aggregated else draw.choice([1, 2, 2, 3]), aggregated=aggregated)
        if aggregated:
            items += [self.aggregate(scope) for _ in range(draw.choice([1, 1, 2]))]
        if word == "WITH":
            # A node from which the query can go on.
            items += [(name, of) for name, of in scope.items() if of == "node" and (name, of) not in items][
                : 0 if aggregated and self.chance(0.5) else 1
            ]
        columns, used = [], set()
        for text, kind in items:
            name = text if text in scope else self.fresh("c")
            if name not in used:
                used.add(name)
                columns.append((name, text, kind))
        distinct = draw.choice(["", "", "", "DISTINCT "])
        order, keys, is_total = self.ordering(columns)
        projected = ", ".join(text if name == text else f"{text} AS {name}" for name, text, _ in columns)
        return f"{word} {distinct}{projected}{order}", columns, keys, is_total

    def single(self) -> tuple[str, list[tuple[str, str, str]], tuple[int, ...], bool]:
        """Return the clauses up to the last RETURN."""
        draw = self.draw
        scope: dict[str, str] = {}
        clauses = [self.match(scope)] if self.chance(0.95) else [self.unwind(scope)]
        for _ in range(draw.choice([0, 0, 0, 1, 1, 2])):
            clause = draw.choice(["match", "match", "unwind", "call", "with", "with"])
            if clause == "match":
                clauses.append(self.match(scope))
                self.forms.add("OPTIONAL MATCH" if clauses[-1].startswith("OPT") else "MATCH")
            elif clause == "unwind":
                clauses.append(self.unwind(scope))
            elif clause == "call":
                clauses.append(self.call(scope))
            else:
                self.forms.add("WITH")
                text, columns, _, _ = self.projection(scope, "WITH")
                scope = {name: kind for name, _, kind in columns}
                clauses.append(text + self.where(scope, 0.4, 1))
        text, columns, keys, is_total = self.projection(scope, "RETURN")
        return " ".join([*clauses, text]), columns, keys, is_total

    def query(self) -> Query:
        """Return the next query."""
        self.parameters, self.forms, self.names = {}, set(), 0
        text, columns, keys, is_total = self.single()
        if self.chance(0.06):
            self.forms.add("UNION")
            names = [name for name, _, _ in columns]
            other, other_columns, _, _ = self.single()
            if len(other_columns) == len(columns) and "ORDER BY" not in text + other:
                for column, (name, expression, _) in enumerate(other_columns):
                    projected = f"{expression} AS {name}" if name != expression else name
                    head, _, tail = other.rpartition("RETURN ")
                    tail = tail.replace(projected, f"{expression} AS {names[column]}", 1)
                    other = f"{head}RETURN {tail}"
                text, keys, is_total = f"{text} UNION {self.draw.choice(['', 'ALL '])}{other}", (), False
        return Query(text, dict(self.parameters), is_total, tuple(sorted(self.forms)), keys)


# -- Rows of engines ---------------------------------------------------------------------------------


def common(value: Any, keys: dict[str, str] | None = None) -> Any:
    """Return a value of any engine as comparable tuples; `keys` maps element ids of Neo4j to node keys."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, Quantity):
        value = value.number
    if isinstance(value, float):
        return ("float", "nan" if value != value else float(f"{value:.9g}") + 0.0)
    if isinstance(value, int):
        return ("int", value)
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, Entity):
        return ("node", value.id)
    if isinstance(value, Evidence):
        properties: dict[str, set[str]] = {}
        for key, item in value.qualifiers:
            properties.setdefault(key, set()).add(repr(common(item)))
        return (
            "rel",
            value.subject.id,
            value.predicate,
            value.object.id,
            tuple(sorted((k, tuple(sorted(v))) for k, v in properties.items())),
        )
    if isinstance(value, PathTerm):
        return ("path", *map(common, value.entities), *map(common, value.statements))
    if isinstance(value, dict):
        return ("map", *sorted((key, common(item, keys)) for key, item in value.items()))
    if hasattr(value, "start_node"):
        if hasattr(value, "nodes") and type(value).__name__ == "Path":
            return ("path", *(common(item, keys) for item in (*value.nodes, *value.relationships)))
        texts = {k: {repr(common(item)) for item in (v if isinstance(v, list) else [v])} for k, v in value.items()}
        start, end = ((keys or {}).get(item.element_id) for item in value.nodes)
        return ("rel", start, value.type, end, tuple(sorted((k, tuple(sorted(v))) for k, v in texts.items())))
    if hasattr(value, "labels"):
        return ("node", value[KEY])
    if isinstance(value, list | tuple) and not isinstance(value, temporal.Duration) and not hasattr(value, "months"):
        return ("list", *(common(item, keys) for item in value))
    if hasattr(value, "iso_format"):
        return ("time", value.iso_format())
    return ("time", str(value))


def loosened(value: Any) -> Any:
    """Return a value with the order of its lists removed."""
    if isinstance(value, tuple) and value and value[0] in ("list", "map"):
        inner = [loosened(item) if value[0] == "list" else (item[0], loosened(item[1])) for item in value[1:]]
        return (value[0], *sorted(inner, key=repr)) if value[0] == "list" else (value[0], *inner)
    return value


def agree(query: Query, left: list[list[Any]], right: list[list[Any]]) -> bool:
    """Return whether rows are the same, as far as the query determines them."""
    if (
        "collect(" in query.text
        or "COLLECT" in query.text
        or "| " in query.text
        or "labels(" in query.text
        or "keys(" in query.text
    ):
        left, right = ([[loosened(value) for value in row] for row in rows] for rows in (left, right))
    if query.ordered:
        return left == right
    keyed = [[tuple(row[at] for at in query.keys) for row in rows] for rows in (left, right)]
    return Counter(map(repr, left)) == Counter(map(repr, right)) and keyed[0] == keyed[1]
