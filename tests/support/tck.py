"""The openCypher TCK: its scenarios, the graphs that they set up, and the comparison of results.

A small interpreter of `CREATE` over Python objects runs the setups. A scenario with something that a graph does not
keep unchanged (lists as properties, whole floats, times of day, durations) is refused with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import condgraph
from condgraph.engine import temporal
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import CondgraphError
from condgraph.engine.execute.expressions import Compiler
from condgraph.engine.execute.functions import text_of_value
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.records import Evidence, PathTerm
from condgraph.engine.values import Precision, Quantity, Time
from condgraph.languages.cypher import tree
from condgraph.languages.cypher.parse import _Parser

#: The qualifier that distinguishes equal relationships; no answer shows it.
EDGE = "edge of the test"
WRITES = re.compile(r"\b(CREATE|MERGE|SET|DELETE|REMOVE|FOREACH|LOAD)\b")


class NotKept(Exception):
    """A graph cannot keep a setup unchanged."""


@dataclass
class Scenario:
    """One scenario, with the examples of an outline filled in."""

    name: str
    setups: list[str] = field(default_factory=list)
    given: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    query: str = ""
    controls: int = 0
    kind: str = ""
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    procedure: bool = False


def scenarios(folder: Path) -> Iterator[Scenario]:
    """Yield all scenarios in a folder of feature files."""
    for path in sorted(folder.rglob("*.feature")):
        text = path.read_text(encoding="utf-8")
        head, *parts = re.split(r"\n[ \t]*(?=Scenario)", text)
        background = _scenario("", head.partition("Background:")[2])
        for part in parts:
            part = "\n".join(line for line in part.splitlines() if not line.strip().startswith(("#", "@")))
            for scenario in _filled(path.stem, part):
                scenario.setups = background.setups + scenario.setups
                yield scenario


def _filled(feature: str, part: str) -> Iterator[Scenario]:
    title = part.splitlines()[0].partition(":")[2].strip()
    body, *examples = re.split(r"\n[ \t]*Examples:", part)
    if not part.startswith("Scenario Outline"):
        yield _scenario(f"{feature} {title}", body)
        return
    for number, table in enumerate(examples):
        header, *rows = _table(table.splitlines())
        for at, row in enumerate(rows):
            filled = body
            for name, value in zip(header, row, strict=True):
                filled = filled.replace(f"<{name}>", value)
            yield _scenario(f"{feature} {title} #{number}.{at}", filled)


def _table(lines: list[str]) -> list[list[str]]:
    rows = []
    for line in lines:
        line = line.strip()
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            rows.append([cell.strip().replace("\\|", "|").replace("\\\\", "\\") for cell in cells])
    return rows


def _scenario(name: str, body: str) -> Scenario:
    scenario = Scenario(name)
    lines = body.splitlines()[1:]
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        block: list[str] = []
        if at < len(lines) and lines[at].strip() == '"""':
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == '"""')
            block, at = lines[at + 1 : end], end + 1
        text = "\n".join(block)
        table: list[list[str]] = []
        while at < len(lines) and lines[at].strip().startswith("|"):
            table += _table([lines[at]])
            at += 1
        step = re.sub(r"^(Given|And|When|Then) ", "", line)
        if step.startswith("having executed"):
            scenario.setups.append(text)
        elif step.startswith("executing query"):
            scenario.query = text
        elif step.startswith("executing control query"):
            scenario.controls += 1
        elif step.startswith("parameters are"):
            scenario.parameters = {row[0]: row[1] for row in table}
        elif step.startswith("there exists a procedure"):
            scenario.procedure = True
        elif step.endswith("graph"):
            scenario.given = step
        elif step.startswith(("the result", "a ")) and not scenario.kind:
            scenario.kind = step
            scenario.header, scenario.rows = (table[0], table[1:]) if table else ([], [])
    return scenario


# -- setups ------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Node:
    number: int
    labels: list[str]
    properties: dict[str, Any]


@dataclass(eq=False)
class _Edge:
    number: int
    type: str
    start: _Node
    end: _Node
    properties: dict[str, Any]


class _Values:
    """Evaluates expressions of a setup over the properties of its nodes."""

    clock = 0

    def value(self, term: Any, key: str) -> Any:
        return term.properties.get(key) if isinstance(term, _Node | _Edge) else term[key]

    def at(self, period: Any) -> _Values:
        """Return this object: a setup has no times."""
        return self


class _Created(_Parser):
    """Runs a setup, clause by clause."""

    def __init__(self, text: str, nodes: list[_Node], edges: list[_Edge]) -> None:
        super().__init__(text)
        self.made_nodes, self.made_edges = nodes, edges

    def play(self) -> None:
        rows: list[dict[str, Any]] = [{}]
        while self.kinds[self.at] != "end":
            if self.mark(";"):
                continue
            if self.word("create"):
                patterns = [self.path_pattern()]
                while self.mark(","):
                    patterns.append(self.path_pattern())
                for row in rows:
                    for pattern in patterns:
                        self._create(pattern, row)
            elif self.word("unwind"):
                items = self.expression()
                self.word("as")
                name = self.variable()
                rows = [{**row, name: item} for row in rows for item in self._value(items, row)]
            elif self.words[self.at] == "with":
                self.at += 1
                rows = self._with(self.projection(0, final=False), rows)
            elif self.words[self.at] == "match":
                clause = self.match(0)
                rows = [row for before in rows for row in self._matched(clause, before)]
            else:
                raise NotKept(f"a setup with {self.values[self.at]}")

    def _value(self, e: ex.Expression, row: dict[str, Any]) -> Any:
        return Compiler({name: at for at, name in enumerate(row)}, _Values())(e)(list(row.values()))  # type: ignore[arg-type]

    def _with(self, clause: tree.Projection, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not any(isinstance(part, tree.Aggregate) for item in clause.items for part in ex.walk(item.value)):
            return [
                {**(row if clause.star else {}), **{item.name: self._value(item.value, row) for item in clause.items}}
                for row in rows
            ]
        result: dict[str, Any] = {}
        for item in clause.items:
            collected = {
                part: [self._value(part.of, row) for row in rows]
                for part in ex.walk(item.value)
                if isinstance(part, tree.Aggregate) and part.of is not None
            }
            row = {**rows[0], **{f" {at}": values for at, values in enumerate(collected.values())}}
            value = item.value
            for at, part in enumerate(collected):
                value = ex.rebuilt(
                    value, lambda expression, part=part, at=at: ex.Variable(f" {at}") if expression == part else None
                )
            result[item.name] = self._value(value, row)
        return [result]

    def _matched(self, clause: tree.Match, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if clause.where is not None or any(pattern.relationships for pattern in clause.patterns):
            raise NotKept("a setup that matches relationships")
        (pattern,) = clause.patterns
        (node,) = pattern.nodes
        names = {name for part in node.conditions if isinstance(part, ex.HasConcept) for name in part.names}
        for candidate in list(self.made_nodes):
            if names <= set(candidate.labels):
                yield {**row, node.variable: candidate}

    def _create(self, pattern: tree.PathPattern, row: dict[str, Any]) -> None:
        ends = []
        for node in pattern.nodes:
            if node.variable not in row:
                labels, properties = self._about(node.conditions, row)
                row[node.variable] = _Node(len(self.made_nodes), labels, properties)
                self.made_nodes.append(row[node.variable])
            ends.append(row[node.variable])
        for step, left, right in zip(pattern.relationships, ends, ends[1:], strict=False):
            _, properties = self._about(step.conditions, row)
            start, end = (right, left) if step.direction == "backward" else (left, right)
            edge = _Edge(len(self.made_edges), step.types[0], start, end, properties)
            row[step.variable] = edge
            self.made_edges.append(edge)
        for node in pattern.nodes:
            if node.variable[0] == " ":
                row.pop(node.variable, None)

    def _about(self, conditions: tuple[ex.Expression, ...], row: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        labels: list[str] = []
        properties: dict[str, Any] = {}
        for part in conditions:
            parts = part.operands if isinstance(part, ex.And) else (part,)
            for condition in parts:
                if isinstance(condition, ex.HasConcept):
                    labels.extend(condition.names)
                elif isinstance(condition, ex.Comparison) and isinstance(condition.left, ex.Property):
                    value = self._value(condition.right, row)
                    if value is not None:
                        properties[condition.left.key] = value
        return labels, properties


def graph_of(setups: list[str]) -> condgraph.Graph:
    """Return the graph that some setups create, one after the other; raise `NotKept` if it cannot keep them."""
    nodes: list[_Node] = []
    edges: list[_Edge] = []
    for text in setups:
        _Created(text, nodes, edges).play()
    _check_types([node.properties for node in nodes])
    _check_types([edge.properties for edge in edges])
    items: list[Item] = []
    # An empty graph cannot be queried; a concept is not a node, so it does not change answers.
    labels = {label for node in nodes for label in node.labels} | {"no node has this label"}
    for label in sorted(labels):
        items.append(Entity(f"label/{label}", label, EntityKind.CONCEPT))
    # In the TCK, `name` and `id` are ordinary properties.
    items.extend(Statement("label/no node has this label", key, "") for key in ("name", "id"))
    for node in nodes:
        items.append(Entity(f"n{node.number}", f"n{node.number}"))
        items.extend(Member(f"n{node.number}", f"label/{label}") for label in dict.fromkeys(node.labels))
        items.extend(Statement(f"n{node.number}", key, _stored(value)) for key, value in node.properties.items())
    counts: Counter[Any] = Counter()
    for edge in edges:
        qualifiers = [(key, _stored(value)) for key, value in edge.properties.items()]
        key = (edge.start.number, edge.type, edge.end.number, tuple(map(str, qualifiers)))
        counts[key] += 1
        if counts[key] > 1:
            qualifiers.append((EDGE, Quantity(edge.number)))
        items.append(Statement(f"n{edge.start.number}", edge.type, Ref(f"n{edge.end.number}"), tuple(qualifiers)))
    graph = condgraph.Graph("memory:")
    graph.add(items)
    return graph


def _check_types(maps: list[dict[str, Any]]) -> None:
    for key in {key for properties in maps for key in properties}:
        values = [properties[key] for properties in maps if key in properties]
        numbers = [value for value in values if type(value) in (int, float)]
        if any(isinstance(value, list) for value in values):
            raise NotKept("a list as a property")
        if any(type(value) is float for value in numbers):
            if any(value != value or value in (float("inf"), float("-inf")) for value in numbers):
                raise NotKept("a float that is no number as a property")
            if all(value == int(value) for value in numbers) or any(type(value) is int for value in numbers):
                raise NotKept("floats that are whole as a property")
        truths, texts = (
            [value for value in values if isinstance(value, bool)],
            [value for value in values if isinstance(value, str)],
        )
        if truths and texts:
            raise NotKept("truth values and texts as one property")
        if any(text in ("true", "false") for text in texts) or any(text != " ".join(text.split()) for text in texts):
            raise NotKept("texts with white space at their ends as a property")


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return Quantity(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Time) and value.precision is Precision.DAY:
        return value
    raise NotKept(f"a {type(value).__name__} as a property")


# -- comparison --------------------------------------------------------------------------------------


def rendered(value: Any, graph: condgraph.Graph | None = None) -> str:
    """Return a term of an answer in the TCK's notation, with properties and labels sorted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Quantity):
        value = value.number
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, Entity):
        assert graph is not None
        snapshot = graph._storage.whole()
        from condgraph.engine.execute.terms import EntityAt, GraphTerms

        terms, at = GraphTerms(snapshot), EntityAt(snapshot.identified(value.id))
        return f"({''.join(':' + label for label in terms.labels(at))}{_map(terms.properties(at), graph)})"
    if isinstance(value, Evidence):
        properties: dict[str, Any] = {}
        for key, stored in value.qualifiers:
            if key != EDGE:
                properties[key] = {"true": True, "false": False}.get(stored, stored) if isinstance(stored, str) else stored
        return f"[:{value.predicate}{_map(properties, graph)}]"
    if isinstance(value, PathTerm):
        text = rendered(value.entities[0], graph)
        for before, step, after in zip(value.entities, value.statements, value.entities[1:], strict=False):
            forward = step.subject.id == before.id and getattr(step.object, "id", None) == after.id
            text += f"-{rendered(step, graph)}->" if forward else f"<-{rendered(step, graph)}-"
            text += rendered(after, graph)
        return f"<{text}>"
    if isinstance(value, list | tuple):
        return f"[{', '.join(rendered(item, graph) for item in value)}]"
    if isinstance(value, dict):
        return _map(value, graph) or "{}"
    if isinstance(value, float):
        return "NaN" if value != value else repr(value)
    if isinstance(value, Time | temporal.Duration) or type(value) in temporal.ORDERED:
        return f"'{value}'"
    return str(text_of_value(value) or value)


def _map(properties: dict[str, Any], graph: condgraph.Graph | None) -> str:
    if not properties:
        return ""
    return "{" + ", ".join(f"{key}: {rendered(properties[key], graph)}" for key in sorted(properties)) + "}"


class _Expected:
    """Parses a cell of a TCK table and writes it in normal form."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> str:
        result = self.value()
        if self.at != len(self.text):
            raise ValueError(f"{self.text!r} at {self.at}")
        return result

    def take(self, pattern: str) -> str | None:
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def value(self) -> str:
        self.take(r"\s*")
        if (text := self.take(r"'(?:[^'\\]|\\.)*'")) is not None:
            return rendered(re.sub(r"\\(.)", r"\1", text[1:-1]))
        if self.take(r"<"):
            result = "<" + self.node()
            while not self.take(r">"):
                left = self.take(r"<-") or self.take(r"-") or ""
                result += left + self.relationship() + (self.take(r"->") or self.take(r"-") or "") + self.node()
            return result + ">"
        if self.text[self.at] == "(":
            return self.node()
        if self.text[self.at] == "[" and re.match(r"\[:", self.text[self.at :]):
            return self.relationship()
        if self.take(r"\["):
            items: list[str] = []
            while not self.take(r"\s*\]"):
                items.append(self.value())
                self.take(r"\s*,")
            return f"[{', '.join(items)}]"
        if self.text[self.at] == "{":
            return self.map() or "{}"
        word = self.take(r"[-+\w.]+") or ""
        if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?", word) and not re.fullmatch(r"[-+]?\d+", word):
            return repr(float(word))
        return word

    def map(self) -> str:
        if not self.take(r"\s*\{"):
            return ""
        items: dict[str, str] = {}
        while not self.take(r"\s*\}"):
            key = (self.take(r"\s*`?\w+`?") or "").strip().strip("`")
            self.take(r"\s*:")
            items[key] = self.value()
            self.take(r"\s*,")
        return "{" + ", ".join(f"{key}: {items[key]}" for key in sorted(items)) + "}" if items else ""

    def node(self) -> str:
        self.take(r"\s*\(\s*")
        labels = sorted(re.findall(r"\w+", self.take(r"(?:\s*:\s*\w+)*") or ""))
        properties = self.map()
        self.take(r"\s*\)")
        return f"({''.join(':' + label for label in labels)}{properties})"

    def relationship(self) -> str:
        self.take(r"\[")
        name = self.take(r":\w+") or ""
        properties = self.map()
        self.take(r"\s*\]")
        return f"[{name}{properties}]"


def _unordered(text: str) -> str:
    """Sort the items of a list."""
    expected = _Expected(text)
    if not text.startswith("[") or text.startswith("[:"):
        return text
    expected.at = 1
    items = []
    while not expected.take(r"\s*\]"):
        items.append(expected.value())
        expected.take(r"\s*,")
    return f"[{', '.join(sorted(items))}]"


@dataclass
class Outcome:
    """The outcome of a scenario: "pass", "refused" (with the reason) or "differs" (with the actual result)."""

    kind: str
    why: str = ""


def skipped(scenario: Scenario) -> str:
    """Return why a scenario is skipped: it writes, or its graph is not in the data; "" for other scenarios."""
    if WRITES.search(scenario.query) or scenario.controls:
        return "writes"
    if scenario.procedure or re.search(r"\bCALL\s+[\w.]+", scenario.query):
        return "procedures"
    return "the graph is not among the data" if scenario.given.startswith("the ") else ""


#: Runs a query with parameters on a graph; returns columns and rows.
Asking = Callable[[condgraph.Graph, str, dict[str, Any]], tuple[list[str], list[Any]]]


def in_process(graph: condgraph.Graph, text: str, parameters: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """Run a query on a graph in process."""
    answer = graph.query(text, language="cypher", parameters=parameters, on_unknown="empty", timeout=20)
    return list(answer.columns), [row if isinstance(row, tuple) else (row,) for row in answer.values]


def played(scenario: Scenario, graphs: dict[tuple[str, ...], Any], ask: Asking = in_process) -> Outcome:
    """Run a scenario; graphs are cached by their setups."""
    key = tuple(scenario.setups)
    if key not in graphs:
        try:
            graphs[key] = graph_of(scenario.setups)
        except NotKept as error:
            graphs[key] = error
    graph = graphs[key]
    if isinstance(graph, NotKept):
        return Outcome("refused", f"setup: {graph}")
    parameters = {name: Compiler({}, _Values())(_Parser(text).expression())([]) for name, text in scenario.parameters.items()}  # type: ignore[arg-type]
    expects_error = scenario.kind.startswith("a ")
    try:
        columns, rows = ask(graph, scenario.query, parameters)
    except CondgraphError as error:
        if expects_error:
            return Outcome("pass")
        return Outcome("refused", f"{type(error).__name__}: {error}")
    if expects_error:
        return Outcome("differs", f"{scenario.kind}, and {len(rows)} rows came")
    if scenario.kind == "the result should be empty":
        return Outcome("pass") if not rows else Outcome("differs", f"{len(rows)} rows instead of none")
    if sorted(columns) != sorted(scenario.header):
        return Outcome("differs", f"columns {columns} instead of {scenario.header}")
    order = [columns.index(name) for name in scenario.header]
    actual = [[rendered(row[column], graph) for column in order] for row in rows]
    expected = [[_Expected(cell).whole() for cell in row] for row in scenario.rows]
    if "ignoring element order" in scenario.kind:
        actual, expected = ([[_unordered(cell) for cell in row] for row in rows_of] for rows_of in (actual, expected))
    if "in order" not in scenario.kind:
        actual, expected = sorted(actual), sorted(expected)
    return Outcome("pass") if actual == expected else Outcome("differs", f"{actual[:6]} instead of {expected[:6]}")
