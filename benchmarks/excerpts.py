"""Check whether an excerpt of a schema has every name that the query of a question needs.

    python -m benchmarks.excerpts DATA [--step N] [--demos N] [--tokens N N ...] [--oracle FOLDER]

DATA is a folder with `flexkbqa` (questions with SPARQL) and `kqapro_vocabulary` (992 predicates, 791 concepts). The
graph has the vocabulary and one statement of each predicate. Demonstrations have other query templates than the
questions.

With the oracle's FOLDER, it takes 200 questions of each set and checks whether every predicate of the program is in
the excerpt with its direction and type. The sets: questions generated over the oracle's graph, MetaQA (1 to 3 hops,
programs by a model), the Movies database (Cypher by a model), questions with SPARQL over the vocabulary, and
WikiTableQuestions, each over its table.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import condgraph
from benchmarks.wtq import questions
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.overview.schema import quoted
from tests.support.movies import movies as movies_graph

_PREDICATE = re.compile(r"<((?!pred:)[^<>]+)>")
_CONCEPT = re.compile(r'\?c \. \?c <pred:name> "([^"]*)"|<pred:instance_of> \?c[^.]*\. \?c[^.]* <pred:name> "([^"]*)"')
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"(?:\^\^\S+)?')


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the predicates and concepts of its query, and the template of that."""

    question: str
    predicates: frozenset[str]
    concepts: frozenset[str]
    template: str


def vocabulary(data: Path) -> dict[str, dict[str, str]]:
    """Relations, attributes and qualifiers by name, each with the type of its values; concepts."""
    found = json.loads((data / "kqapro_vocabulary" / "kb_schema_vocabulary.json").read_text("utf-8"))
    types = {name: of for of, names in found["keys_by_type"].items() for name in names}
    attributes = dict.fromkeys([*found["attrs"], *types])
    return {
        "relations": dict.fromkeys(found["relations"], "entity"),
        "attributes": {name: types.get(name, "string") for name in attributes},
        "qualifiers": {name: types.get(name, "string") for name in found["qualifiers"]},
        "concepts": dict.fromkeys(found["concepts"], ""),
    }


def cases(data: Path) -> list[Case]:
    """The questions, in the order of the file."""
    found = []
    for line in (data / "flexkbqa" / "questions.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        text = record["sparql"]
        names = frozenset(name.replace("_", " ") for name in _PREDICATE.findall(_LITERAL.sub('"v"', text)))
        concepts = frozenset(one or other for one, other in _CONCEPT.findall(text))
        template = _PREDICATE.sub("<p>", _LITERAL.sub('"v"', text))
        found.append(Case(record["question"], names, concepts, template))
    return found


def graph_of(words: dict[str, dict[str, str]]) -> Graph:
    """A graph of that vocabulary alone: one statement of each predicate, one member of each concept."""

    def value(kind: str) -> object:
        return Quantity(1) if kind == "quantity" else Time.parse("2000") if kind == "date" else "text"

    def items() -> Iterator[Item]:
        yield Entity("Q1", "thing one", EntityKind.ENTITY)
        yield Entity("Q2", "thing two", EntityKind.ENTITY)
        for number, name in enumerate(words["concepts"]):
            yield Entity(f"C{number}", name, EntityKind.CONCEPT)
            yield Member("Q1", f"C{number}")
        keys = list(words["qualifiers"].items())
        for number, name in enumerate(words["relations"]):
            key, kind = keys[number % len(keys)]
            yield Statement("Q1", name, Ref("Q2"), ((key, value(kind)),))  # type: ignore[arg-type]
        for name, of in words["attributes"].items():
            yield Statement("Q1", name, value(of))  # type: ignore[arg-type]

    graph = condgraph.open()
    graph.add(items(), source="vocabulary")
    return graph


def program(graph: Graph, case: Case) -> str:
    """A KoPL program that uses the names of a case, so that it can be kept as a demonstration."""
    schema = graph.current.schema
    parts = [f"FindAll() FilterConcept({json.dumps(name)})" for name in sorted(case.concepts) if schema.has_concept(name)]
    for name in sorted(case.predicates):
        said = json.dumps(name)
        if schema.has_relation(name):
            parts.append(f"FindAll() Relate({said}, forward)")
        elif schema.has_attribute(name):
            kind = next(iter(schema.attribute_kinds(name)))[0].name
            filters = {"QUANTITY": f"FilterNum({said}, 1, =)", "TIME": f"FilterYear({said}, 2000, =)"}
            parts.append(f"FindAll() {filters.get(kind, f'FilterStr({said}, text)')}")
        elif schema.has_qualifier(name):
            kind = next(iter(schema.qualifier_kinds(name)))[0].name
            filters = {"QUANTITY": f"QFilterNum({said}, 1, =)", "TIME": f"QFilterYear({said}, 2000, =)"}
            relation = json.dumps(schema.relations[0])
            parts.append(f"FindAll() Relate({relation}, forward) {filters.get(kind, f'QFilterStr({said}, text)')}")
    return "".join([parts[0], *(f" {part} And()" for part in parts[1:])]) + " QueryName()" if parts else ""


def split(found: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Demonstrations and questions that share no template."""
    templates = sorted({one.template for one in found})
    shown = set(templates[::2])
    return [one for one in found if one.template in shown], [one for one in found if one.template not in shown]


@dataclass(slots=True)
class Held:
    """Of how many questions the excerpt held all predicates, and concepts as well; the most tokens."""

    asked: int = 0
    predicates: int = 0
    both: int = 0
    most: int = 0
    over: int = 0

    def __str__(self) -> str:
        return (
            f"{self.asked} questions: all predicates {100 * self.predicates / self.asked:.1f} %, concepts too "
            f"{100 * self.both / self.asked:.1f} %, at most {self.most} tokens, {self.over} over the budget"
        )


def measure(data: Path, tokens: int, demos: int, step: int = 1) -> Held:
    """Ask for excerpts of so many tokens."""
    words = vocabulary(data)
    graph = graph_of(words)
    known = {*words["relations"], *words["attributes"], *words["qualifiers"]}
    every = [one for one in cases(data) if one.predicates <= known and one.concepts <= words["concepts"].keys()]
    shown, asked = split(every)
    if demos:
        for one in shown:
            text = program(graph, one)
            if text:
                graph.demos.keep(one.question, text, graph.kopl(text))
    held = Held()
    for one in asked[::step]:
        found = graph.excerpt(one.question, tokens, demos=demos)
        held.asked += 1
        names = {*found.predicates, *found.qualifiers}
        held.predicates += one.predicates <= names
        held.both += one.predicates <= names and one.concepts <= set(found.concepts)
        held.most = max(held.most, found.tokens)
        held.over += found.tokens > tokens
    return held


# -- direction and type ------------------------------------------------------------------------------

#: Where functions of KoPL name a predicate.
_NAMING = {
    "Relate", "FilterStr", "FilterNum", "FilterYear", "FilterDate", "QueryAttr", "SelectBetween", "SelectAmong",
    "QueryAttrUnderCondition", "QueryAttrQualifier", "QueryRelationQualifier",
}  # fmt: skip
Asked = list[tuple[str, set[str]]]


def generated(oracle: Path) -> tuple[Graph, Asked]:
    """Questions over the oracle's graph, each with the predicates of its program."""
    graph = condgraph.open()
    graph.load(oracle / "kb.json")
    found = graph.generate(200, seed=1, queries=False)
    return graph, [(one.question, {s["inputs"][0] for s in one.program if s["function"] in _NAMING}) for one in found]


def films(data: Path) -> tuple[Graph, Asked]:
    """Questions of MetaQA with the relations of their programs."""
    graph = condgraph.open()
    graph.load(data / "metaqa" / "kb.txt", name="films")
    known, asked = set(graph.current.schema.relations), []
    for hops in (1, 2, 3):
        programs = json.loads((data / "trustuqa_programs" / f"metaqa_{hops}hop.json").read_text("utf-8"))
        named = [(re.sub(r"[\[\]]", "", text), set(re.findall(r"relation='([^']*)'", p)) & known) for text, p in programs.items()]
        asked += Random(hops).sample([one for one in named if one[1]], 67)
    return graph, asked[:200]


def movies(data: Path) -> tuple[Graph, Asked]:
    """Questions over the Movies database with the relations and properties of their Cypher."""
    graph, asked = movies_graph(data), []
    schema = graph.current.schema
    known = {*schema.relations, *schema.attributes}
    for line in (data / "text2cypher_movies" / "questions.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        types = [name for several in re.findall(r":\s*([A-Z_|:]{3,})", record["opus"]) for name in re.split(r"[|:]+", several)]
        names = {*types, *re.findall(r"\.(\w+)", record["opus"])} & known
        if names:
            asked.append((record["question"], names))
    return graph, asked[:200]


def worded(data: Path) -> tuple[Graph, Asked]:
    """Questions with the relations and attributes of their SPARQL, over the vocabulary alone."""
    words = vocabulary(data)
    known = {*words["relations"], *words["attributes"]}
    named = [(one.question, set(one.predicates & known)) for one in cases(data)]
    return graph_of(words), Random(1).sample([one for one in named if one[1]], 200)


def in_tables(data: Path) -> Iterator[tuple[Graph, Asked]]:
    """Questions of WikiTableQuestions with the columns of their programs, each with the graph of its table."""
    every, found = list(questions(data)), 0
    for one in Random(1).sample(every, len(every)):
        if one.program is None or found == 200:
            continue
        graph = condgraph.open()
        graph.load(data / "wikitablequestions" / one.table, format="csv")
        known = {name.casefold(): name for name in (*graph.current.schema.relations, *graph.current.schema.attributes)}
        named = {known[name] for text in re.findall(r"relation='([^']*)'", one.program) if (name := text.casefold()) in known}
        if named:
            found += 1
            yield graph, [(one.text, named)]


def described(text: str, name: str) -> bool:
    """Whether an excerpt has a predicate with its direction and the types of its ends, or of the other end
    from an entity of the question.
    """
    mark = re.escape(quoted(name))
    other = r'"(?:[^"\\]|\\.)*"'
    shown = rf"^- (?:{other}, )*{mark}(?:, {other})*(?: [\d,]+)?: [^\n]+ → \S|{mark} ?[→←=]+ ?\([^)\n]+\)"
    return re.search(shown, text, re.MULTILINE) is not None


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--step", type=int, default=1, help="every so manieth question")
    arguments.add_argument("--demos", type=int, default=8, help="demonstrations whose names count")
    arguments.add_argument("--tokens", type=int, nargs="+", default=[500, 1500])
    arguments.add_argument("--oracle", type=Path, help="the oracle's folder: direction and type of predicates")
    given = arguments.parse_args()
    if given.oracle is not None:
        for title, sets in (
            ("oracle", [generated(given.oracle)]), ("MetaQA", [films(given.data)]), ("Movies", [movies(given.data)]),
            ("vocabulary", [worded(given.data)]), ("tables", list(in_tables(given.data))),
        ):  # fmt: skip
            size = sum(len(asked) for _, asked in sets)
            for tokens in given.tokens:
                texts = [(graph.excerpt(question, tokens).text, names) for graph, asked in sets for question, names in asked]
                right = sum(all(described(text, name) for name in names) for text, names in texts)
                print(f"{title}, {tokens} tokens: {100 * right / size:.1f} % of {size} with direction and type", flush=True)
        return 0
    for tokens in given.tokens:
        print(f"{tokens} tokens:", measure(given.data, tokens, given.demos, given.step), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
