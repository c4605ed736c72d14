"""Random programs over a graph of statements with times, made from its statements so that they have answers."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Precision, Quantity, Time, civil

_OPERATORS = ("=", "!=", "<", ">")


def _call(function: str, *inputs: str, of: Sequence[int] = ()) -> dict[str, Any]:
    return {"function": function, "inputs": list(inputs), "dependencies": list(of)}


def quoted(text: str) -> str:
    """Return a text as in Cypher and logical queries."""
    return json.dumps(text, ensure_ascii=False)


def backticked(text: str) -> str:
    """Return a name as in Cypher."""
    return "`" + text.replace("`", "``") + "`"


class Maker:
    """Generates programs over one snapshot."""

    def __init__(self, snapshot: Snapshot, seed: int) -> None:
        self.snapshot, self.dice = snapshot, random.Random(seed)

    def relation(self, around: int | None = None) -> tuple[int, str, int]:
        """Return a relation as subject, predicate, object; one at the entity `around` if it has any."""
        snapshot = self.snapshot
        chosen = self.dice.randrange(snapshot.relations)
        if around is not None:
            near = [*snapshot.outgoing(around, 0, snapshot.relations), *snapshot.incoming(around, 0, snapshot.relations)]
            chosen = int(self.dice.choice(near)) if near else chosen
        ends = int(snapshot.relation_subject[chosen]), int(snapshot.relation_object[chosen])
        return ends[0], snapshot.predicate_name(snapshot.predicate_of(chosen)), ends[1]

    def attribute(self) -> tuple[int, str, Any]:
        """Return an attribute as subject, predicate, value."""
        snapshot = self.snapshot
        index = self.dice.randrange(snapshot.statements - snapshot.relations)
        number = snapshot.relations + index
        return (
            int(snapshot.attribute_subject[index]),
            snapshot.predicate_name(snapshot.predicate_of(number)),
            snapshot.value("att", index),
        )

    def time(self) -> tuple[Time, bool]:
        """Return a year, a month, a day or several years near a time in the graph, and whether statements must hold for
        certain.
        """
        dice, starts = self.dice, self.snapshot.arrays.get("val.start")
        ends = self.snapshot.arrays.get("val.end")
        second = int(dice.choice([starts, ends])[dice.randrange(len(starts))])
        day = second // 86_400 if abs(second) < 2**40 else 0
        year, month, date = civil(day)
        period = dice.choice(
            (Time.year(year), Time.year(year + dice.randint(-3, 3)), Time.month(year, month), Time.day(year, month, date))
        )
        if dice.random() < 0.2:
            period = Time(period.start, Time.year(year + dice.randint(4, 9)).end, Precision.SPAN)
        return period, dice.random() < 0.35

    def program(self) -> Any:
        """Return a program in one of the languages."""
        kinds = [self._walk, self._walk, self._both, self._qualifier, self._cypher, self._cypher, self._logic, self._llm]
        if self.snapshot.statements > self.snapshot.relations:
            kinds += [self._value, self._value]
        return self.dice.choice(kinds)()

    def _hop(self, entity: int) -> tuple[str, str, int]:
        head, name, tail = self.relation(entity)
        return (name, "forward", tail) if head == entity else (name, "backward", head)

    def _steps(self, entity: int, steps: list[dict[str, Any]]) -> None:
        steps.append(_call("Find", self.snapshot.name(entity)))
        for _ in range(self.dice.randint(1, 2)):
            name, direction, entity = self._hop(entity)
            steps.append(_call("Relate", name, direction, of=[len(steps) - 1]))

    def _walk(self) -> Any:
        steps: list[dict[str, Any]] = []
        self._steps(self.relation()[0], steps)
        if self.dice.random() < 0.3:
            year = civil(self.time()[0].start // 86_400)[0]
            key = self.dice.choice(("start time", "end time", "point in time"))
            steps.append(_call("QFilterYear", key, str(year), self.dice.choice(_OPERATORS), of=[len(steps) - 1]))
        steps.append(_call(self.dice.choice(("QueryName", "Count")), of=[len(steps) - 1]))
        return steps

    def _both(self) -> Any:
        steps: list[dict[str, Any]] = []
        head, _, tail = self.relation()
        self._steps(head, steps)
        first = len(steps) - 1
        self._steps(self.dice.choice((head, tail)), steps)
        steps.append(_call(self.dice.choice(("And", "Or")), of=[first, len(steps) - 1]))
        steps.append(_call("QueryName", of=[len(steps) - 1]))
        return steps

    def _qualifier(self) -> Any:
        head, name, tail = self.relation()
        steps = [_call("Find", self.snapshot.name(head)), _call("Find", self.snapshot.name(tail))]
        if self.dice.random() < 0.5:
            return [*steps, _call("QueryRelation", of=[0, 1])]
        key = self.dice.choice(("start time", "end time", "point in time"))
        return [*steps, _call("QueryRelationQualifier", name, key, of=[0, 1])]

    def _value(self) -> Any:
        head, key, value = self.attribute()
        name, dice = self.snapshot.name(head), self.dice
        programs = [[_call("Find", name), _call("QueryAttr", key, of=[0])]]
        if isinstance(value, Quantity):
            text = str(value)
            test = _call("FilterNum", key, text, dice.choice(_OPERATORS), of=[0])
            programs.append([_call("FindAll"), test, _call(dice.choice(("Count", "QueryName")), of=[1])])
            programs.append([_call("FindAll"), _call("SelectAmong", key, dice.choice(("largest", "smallest")), of=[0])])
            other = self.snapshot.name(self.attribute()[0])
            ends = [_call("Find", name), _call("Find", other)]
            programs.append([*ends, _call("SelectBetween", key, dice.choice(("greater", "less")), of=[0, 1])])
        return dice.choice(programs)

    def _cypher(self) -> str:
        head, name, tail = self.relation()
        head_name, tail_name, relation = quoted(self.snapshot.name(head)), quoted(self.snapshot.name(tail)), backticked(name)
        other_relation = backticked(self.relation(tail)[1])
        return self.dice.choice(
            (
                f"MATCH (a {{name: {head_name}}})-[r:{relation}]->(b) RETURN b.name",
                f"MATCH (a {{name: {head_name}}})-[r]-(b) RETURN type(r), b.name",
                f"MATCH (a {{name: {head_name}}})-[:{relation}]->(b)-[:{other_relation}]-(c) RETURN DISTINCT c.name",
                f"MATCH (b {{name: {tail_name}}}) OPTIONAL MATCH (a)-[:{relation}]->(b) RETURN b.name, count(a)",
                f"MATCH (a {{name: {head_name}}})-[:{relation}|{other_relation}*1..2]->(b) RETURN b.name",
                f"MATCH (a)-[:{relation}]->(b {{name: {tail_name}}}) WHERE NOT (a)-[:{other_relation}]->() RETURN a.name",
                f"MATCH (a {{name: {head_name}}})-[r]->(b) RETURN type(r), count(*)",
            )
        )

    def _logic(self) -> str:
        head, name, tail = self.relation()
        other = self.relation(tail)
        head_name = quoted(self.snapshot.name(head))
        first = f"{_atom(name)}({head_name}, ?x)"
        second = f"{_atom(other[1])}({quoted(self.snapshot.name(other[0]))}, ?x)"
        link = self.dice.choice((" and ", " or ", " and not "))
        return f"?x : {first}{link}{second}" if self.dice.random() < 0.6 else f"?x : {first}"

    def _llm(self) -> str:
        head, name, tail = self.relation()
        parts = [f"relation={name!r}"]
        parts += self.dice.choice(([f"head_entity={self.snapshot.name(head)!r}"], [f"tail_entity={self.snapshot.name(tail)!r}"]))
        if self.dice.random() < 0.4:
            parts.append(f"key={self.dice.choice(('start time', 'end time', 'time'))!r}")
        return json.dumps("get_information(" + ", ".join(parts) + ")", ensure_ascii=False).join(("Query1: ", ""))


def _atom(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


# -- data sets ---------------------------------------------------------------------------------------

#: The names of the graphs.
GRAPHS: Final = ("oracle", "wikidata12k", "icews14")


def _names(file: Path) -> dict[str, str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return {number: name for name, number in (line.split("\t") for line in lines)}


def loaded(name: str, data: Path, most: int | None = None) -> condgraph.Graph:
    """Return a graph of the data sets in a folder, with at most `most` facts if given."""
    graph, folder = condgraph.Graph(), data / "data" / name
    if name == "oracle":
        graph.load(data / "oracle" / "kb_small.json")
        return graph
    entities, relations = (_names(folder / file) for file in ("entity2id.txt", "relation2id.txt"))
    lines = [
        line for part in ("train", "valid", "test") for line in (folder / f"{part}.txt").read_text(encoding="utf-8").splitlines()
    ]
    rows = [line.split("\t") for line in lines[:most]]
    if name == "wikidata12k":
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "facts.txt"
            path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
            graph.load(path, format="quintuples", names=entities, relation_names=relations)
        return graph
    # Times are hours since the start of 2014; every event lasts one day.
    start = Time.day(2014, 1, 1).start
    days = {
        hours: Time(start + int(hours) * 3600, start + (int(hours) + 24) * 3600, Precision.DAY)
        for hours in {row[3] for row in rows}
    }
    used = {row[at] for row in rows for at in (0, 2)}
    graph.add(
        [
            *(Entity(entity_id, entities[entity_id].replace("_", " ")) for entity_id in sorted(used)),
            *(Statement(a, relations[r].replace("_", " "), Ref(b), (("point in time", days[t]),)) for a, r, b, t, _ in rows),
        ]
    )
    return graph


class Embedded:
    """The embedded RDF store of a graph, with the interface that `disagreements` needs."""

    place = "embedded RDF store"

    def __init__(self, graph: condgraph.Graph) -> None:
        self._graph = graph

    def query(self, program: Any, **options: Any) -> Any:
        return self._graph.query(program, engine="sparql", **options)
