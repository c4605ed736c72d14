"""What the triples of an endpoint stand for: their shape, names and predicates; and the mapping file, which people can edit."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.iris import RDF, RDFS, XSD
from condgraph.engine.terms import Property, Terms, is_iri, is_tag
from condgraph.engine.toml import read_file
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.loaders.rdf.inference import INVERSE, RULES, SUBPROPERTY, Inference, rules_of
from condgraph.loaders.rdf.load import AXIOM_PARTS, PARTS
from condgraph.loaders.rdf.structures import GRAPHS, SINGLETON, path_of
from condgraph.loaders.validity import StatementTimes
from condgraph.sparql.dialect import STANDARD

#: How statements are written: as single triples, or as Wikibase statement nodes.
Shape: TypeAlias = Literal["plain", "wikibase"]

LABEL: Final = RDFS + "label"
SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
#: Predicates of names, best first, as in the RDF loader.
NAMING: Final = (
    LABEL,
    SKOS + "prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
)
TYPE: Final = RDF + "type"
#: The prefix of qualifiers that no predicate gives (such as the language of a text).
OWN: Final = "urn:condgraph:"
SUBCLASS: Final = RDFS + "subClassOf"
#: Datatypes of numbers.
NUMBERS: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "decimal", "double", "float", "long", "int", "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort"),
        *("unsignedByte", "nonNegativeInteger", "nonPositiveInteger", "positiveInteger", "negativeInteger"),
    )
)
REIFIES: Final = RDF + "reifies"
#: The name for nodes that are singleton properties.
SINGLETONS: Final = "rdf:singletonPropertyOf"


def is_unknown(node: str) -> str:
    """Return a test that a Wikibase node stands for an unknown value."""
    return f'isBlank({node}) || CONTAINS(STR({node}), "/genid/")'


class Node(NamedTuple):
    """How a node `?f` stands for statements.

    `patterns` are those of the terms `s`, `p`, `o`, with `p` fixed if `predicate` is given. `triple` is the triple of
    the patterns that is not about the node. `own` are the node's predicates, which programs do not see.
    """

    patterns: str
    own: tuple[str, ...] = ()
    predicate: str = ""
    triple: tuple[str, str, str] | None = None
    #: Predicates from a subject to the node, and from there to an object; such triples are no statements themselves.
    reached_by: tuple[str, str] | None = None


def _reified(subject: str, predicate: str, object_: str) -> Node:
    return Node(f"?f <{subject}> %(s)s ; <{predicate}> %(p)s ; <{object_}> %(o)s", (subject, predicate, object_))


#: Nodes that stand for statements, by their names in a mapping.
NODES: Final = {
    "rdf:Statement": _reified(*PARTS),
    "owl:Axiom": _reified(*AXIOM_PARTS),
    "rdf:reifies": Node(f"?f <{REIFIES}> <<( %(s)s %(p)s %(o)s )>>", (REIFIES,)),
    SINGLETONS: Node(f"?f <{SINGLETON}> %(p)s . %(s)s ?f %(o)s", (SINGLETON,), triple=("%(s)s", "?f", "%(o)s")),
    GRAPHS: Node("GRAPH ?f { %(s)s %(p)s %(o)s }"),
}


def node_of(name: str) -> Node:
    """Return how nodes stand for statements: one of `NODES`, or a path; raise `OptionError` for any other text."""
    if name in NODES:
        return NODES[name]
    path = path_of(name)
    if path.inverse:
        # A literal cannot be a subject.
        return Node(f"?f <{path.first}> %(s)s ; <{path.last}> %(o)s . FILTER(!isLiteral(%(s)s))", (), path.predicate)
    return Node(
        *(f"%(s)s <{path.first}> ?f . ?f <{path.last}> %(o)s", (), path.predicate, ("%(s)s", f"<{path.first}>", "?f")),
        reached_by=(path.first, path.last),
    )


#: Counts of values by kind and unit.
Counts: TypeAlias = "dict[tuple[Kind, str], int]"


@dataclass(frozen=True)
class Predicate:
    """A predicate: its name in programs, and how often it leads to a node and to values of each kind.

    `types` has the commonest datatype of literals whose text suggests another one. `languages` are those of its texts,
    "" for none; they are None if unknown, or if white space of a text is folded. `units` are the nodes and names of all
    its numbers' units (in a Wikibase); in a sample, of those that were seen.
    """

    iri: str
    name: str
    relations: int = 0
    values: Counts = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    languages: tuple[str, ...] | None = None
    units: dict[str, str] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The only unit, or "" if there are several."""
        return next(iter(self.units)) if len(self.units) == 1 else ""


@dataclass(frozen=True)
class Mapping:
    """What the triples of an endpoint stand for.

    `languages` are those of names, best first; names in other languages are ignored. `base` is the prefix of a
    Wikibase's IRIs (`base/prop/P31`, `base/entity/Q5`). `concepts` maps classes by IRI to names and numbers of direct
    members (in a Wikibase, only the best known). `whole` tells whether predicates were counted over all triples.
    `statements` are the nodes that stand for statements, by names in `NODES` or as paths. `apart` tells whether named
    graphs are read for these and the default graph lacks their triples. `infer` are the rules of inference, `axioms`
    those of properties. `rows` is the size of a result known to be complete.
    """

    shape: Shape = "plain"
    languages: tuple[str, ...] = ("en",)
    labels: tuple[str, ...] = NAMING
    names: Literal["iri", "local"] = "iri"
    graphs: tuple[str, ...] = ()
    base: str = ""
    statements: tuple[str, ...] = ()
    apart: bool = False
    infer: tuple[str, ...] = ()
    #: Predicates and classes that programs do not see.
    hidden: tuple[str, ...] = ()
    axioms: tuple[tuple[str, str, str], ...] = ()
    predicates: tuple[Predicate, ...] = ()
    qualifiers: tuple[Predicate, ...] = ()
    concepts: dict[str, tuple[str, int]] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    triples: int = 0
    whole: bool = True
    rows: int = 0
    notes: tuple[str, ...] = ()
    #: The qualifiers that tell when statements hold, by predicate, as with `times=` when loading.
    times: dict[str, str] = field(default_factory=dict)
    #: When the endpoint was looked at, in seconds since 1970, and the name of its dialect.
    at: float = 0.0
    dialect: str = STANDARD.name

    @property
    def declared(self) -> list[str]:
        """The nodes that stand for statements because a mapping file says so."""
        return [name for name in self.statements if name == GRAPHS or name not in NODES]

    @property
    def given_labels(self) -> tuple[str, ...] | None:
        """The predicates of names, or None if they are the default."""
        return None if self.labels == NAMING else self.labels

    @cached_property
    def inference(self) -> Inference:
        """What the axioms of properties imply."""
        inference = Inference(rules_of(self.infer), self.labels)
        for axiom in self.axioms:
            inference.see(*axiom)
        return inference

    def terms(self, used: Iterable[str]) -> Terms:
        """Return names of the predicates of some triples and of what they imply, as the RDF loader takes them for a
        source that grows.
        """
        implied = (predicate.iri for predicate in self.predicates) if self.infer else ()
        terms, ends = Terms(), {_end(iri) for iri in (*used, *implied)}
        for _, predicate in sorted((placed for end in ends for placed in self._by_end.get(end, ())), key=itemgetter(0)):
            terms.predicates[predicate.name] = Property(predicate.iri, dict(predicate.types), wikibase=self.shape == "wikibase")
        return terms

    @cached_property
    def _by_end(self) -> dict[str, list[tuple[int, Predicate]]]:
        """The predicates with their places, by the part that all forms of a property share."""
        by_end: dict[str, list[tuple[int, Predicate]]] = {}
        for position, predicate in enumerate((*self.qualifiers, *self.predicates)):
            if not predicate.iri.startswith(OWN):
                by_end.setdefault(_end(predicate.iri), []).append((position, predicate))
        return by_end

    @cached_property
    def value_nodes(self) -> dict[str, tuple[str, str]]:
        """The predicates of a Wikibase's numbers with a known unit, with the predicate of the number's node and the unit."""
        start = f"{self.base}/prop/"
        return {
            f"{start}{form}/{_end(predicate.iri)}": (f"{start}{form}/value/{_end(predicate.iri)}", predicate.unit)
            for form, predicates in (("statement", self.predicates), ("qualifier", self.qualifiers))
            for predicate in predicates
            if predicate.unit and self.whole
        }

    @cached_property
    def unit_names(self) -> dict[str, str]:
        """The names of the units that the look found."""
        units = (pair for predicate in (*self.predicates, *self.qualifiers) for pair in predicate.units.items())
        return {iri: name for iri, name in units if name != NO_UNIT}

    def dumps(self) -> str:
        """Return the mapping as JSON, which `loads` reads."""
        content = asdict(self)
        for key in ("predicates", "qualifiers"):
            for predicate in content[key]:
                predicate["values"] = [[int(kind), unit, count] for (kind, unit), count in predicate["values"].items()]
        return json.dumps(content, ensure_ascii=False)


def _end(iri: str) -> str:
    """Return the part that all forms of a Wikibase property share."""
    return iri.rpartition("/")[2]


def loads(text: str) -> Mapping:
    """Return the mapping that `dumps` wrote; raise `ValueError`, `TypeError` or `KeyError` for other text."""
    content = json.loads(text)
    for key in ("predicates", "qualifiers"):
        content[key] = tuple(
            Predicate(
                **{
                    **fields,
                    "values": {(Kind(kind), unit): count for kind, unit, count in fields["values"]},
                    "languages": None if fields["languages"] is None else tuple(fields["languages"]),
                }
            )
            for fields in content[key]
        )
    for key in ("languages", "labels", "graphs", "namespaces", "notes", "infer", "statements", "hidden"):
        content[key] = tuple(content[key])
    content["axioms"] = tuple(tuple(axiom) for axiom in content["axioms"])
    # A text by an earlier version lacks some keys, so the endpoint is looked at again.
    content["dialect"] = str(content["dialect"])
    content["concepts"] = {iri: (name, count) for iri, (name, count) in content["concepts"].items()}
    return Mapping(**content)


# -- the mapping file --------------------------------------------------------------------------------

#: Common vocabularies by name, as parts of mapping files.
PRESETS: Final = read_file(Path(__file__).with_name("presets.toml"))
#: Keys of presets whose lists are replaced by those of a file.
_LISTS: Final = ("labels", "infer", "axioms", "statements")
_KEYS: Final = ("preset", "shape", "languages", "names", "graphs", "hide", *_LISTS, "predicate", "times")


def read_mapping(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the checked content of a mapping file; raise `OptionError` or `SourceError`."""
    file, content = os.fspath(path), read_file(path)
    for key, value in content.items():
        if key not in _KEYS:
            raise OptionError(f"the mapping file {file} has no use for {key!r}", candidates=nearest(key, _KEYS))
        is_valid = {
            "shape": lambda item: item in ("plain", "wikibase"),
            "names": lambda item: item in ("iri", "local"),
            "preset": lambda item: _is_list_of(item, PRESETS.__contains__),
            "languages": lambda item: _is_list_of(item, is_tag),
            "axioms": lambda item: _is_list_of(item, lambda text: axiom_of(text) is not None),
            "infer": lambda item: _is_list_of(item, RULES.__contains__),
            "statements": lambda item: _is_list_of(item, lambda text: isinstance(text, str)),
            "times": lambda item: isinstance(item, dict) and _is_list_of(list(item.values()), _is_name),
            "predicate": lambda item: (
                isinstance(item, dict) and all(map(is_iri, item)) and _is_list_of(list(item.values()), _is_name)
            ),
        }.get(key, lambda item: _is_list_of(item, is_iri))
        valid: bool = is_valid(value)  # type: ignore[no-untyped-call]
        if not valid:
            expected = {
                "shape": '"plain" or "wikibase"',
                "names": '"iri" or "local"',
                "preset": f"a list of some of {', '.join(PRESETS)}",
                "languages": "a list of language tags",
                "axioms": "a list of axioms of properties, as 'IRI owl:inverseOf IRI'",
                "infer": f"a list of some of {', '.join(RULES)}",
                "statements": f"a list of {GRAPHS!r} and paths over nodes, as 'IRI / IRI'",
                "predicate": "a table of names by IRI",
                "times": 'a table of intervals of qualifiers by the name of a predicate, as "[since, until)"',
            }.get(key, "a list of IRIs")
            raise OptionError(f"{key} in the mapping file {file} is {expected}, not {value!r}")
    for text in content.get("statements", ()):
        if text != GRAPHS:
            path_of(text)
    for axiom in filter(None, map(axiom_of, content.get("axioms", ()))):
        if axiom[1] not in rules_of(content.get("infer", preset_of(content).get("infer", ()))):
            raise OptionError(f"axioms in the mapping file {file} has one of {axiom[1]}, which infer does not name")
    for key in ("graphs", "infer"):
        if GRAPHS in content.get("statements", ()) and content.get(key):
            raise OptionError(f"statements in the mapping file {file} names {GRAPHS!r}, which goes without {key}")
    return content


def axiom_of(text: Any) -> tuple[str, str, str] | None:
    """Return an axiom of properties written as `IRI owl:inverseOf IRI`, or None for other text."""
    parts = text.split(" ") if isinstance(text, str) else []
    if len(parts) != 3 or RULES.get(parts[1]) not in (SUBPROPERTY, INVERSE) or not (is_iri(parts[0]) and is_iri(parts[2])):
        return None
    return parts[0], RULES[parts[1]], parts[2]


def preset_of(stating: dict[str, Any]) -> dict[str, Any]:
    """Return the combined presets of a mapping file; earlier ones come first."""
    combined: dict[str, Any] = {}
    for name in stating.get("preset", ()):
        for key, value in PRESETS[name].items():
            merged = combined.setdefault(key, type(value)())
            if isinstance(value, dict):
                merged.update({term: meaning for term, meaning in value.items() if term not in merged})
            else:
                merged += [item for item in value if item not in merged]
    return combined


def fitted(declared: dict[str, Any], preset: dict[str, Any], predicates: Container[str]) -> dict[str, Any]:
    """Return a file's content plus what its presets state about existing predicates.

    Lists of the file replace those of presets.
    """
    content: dict[str, Any] = {**{key: preset[key] for key in _LISTS if key in preset}, **declared}
    if "statements" not in declared:
        paths = (path_of(text) for text in preset.get("statements", ()))
        content["statements"] = [
            f"{path.first} / {path.last}" for path in paths if path.first in predicates and path.last in predicates
        ]
    if "axioms" not in declared:
        rules, remaining, used = rules_of(content.get("infer", ())), list(preset.get("axioms", ())), list[str]()
        known = set[str]()
        while applicable := [
            (text, axiom)
            for text in remaining
            if (axiom := axiom_of(text)) is not None
            and axiom[1] in rules
            and any(end in predicates or end in known for end in (axiom[::2] if axiom[1] == INVERSE else axiom[:1]))
        ]:
            for text, axiom in applicable:
                remaining.remove(text)
                used.append(text)
                known.update(axiom[::2])
        content["axioms"] = used
    return content


def preset_hides(preset: dict[str, Any], mapping: Mapping, types: Container[str]) -> dict[str, Any]:
    """Return the hidden terms and times of presets, limited to what the mapping or the `types` of statement nodes have."""
    iris = {predicate.iri for predicate in (*mapping.predicates, *mapping.qualifiers)}
    names = {predicate.name for predicate in (*mapping.predicates, *mapping.qualifiers)}
    times = {
        key: text
        for key, text in preset.get("times", {}).items()
        if mapping.declared and names.issuperset(StatementTimes.of({key: text}).columns()[key])
    }
    hidden = [iri for iri in preset.get("hide", ()) if iri in iris or iri in mapping.concepts or iri in types]
    return {"hide": hidden, "times": times}


def _is_list_of(value: Any, test: Any) -> bool:
    return isinstance(value, list) and all(map(test, value))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def renamed(guess: Mapping, content: dict[str, Any]) -> Mapping:
    """Return a guess with the names of predicates that a file gives, without those it hides.

    Raise `OptionError` for a predicate that the endpoint lacks, and for two predicates with the same name.
    """
    known = {predicate.iri for predicate in (*guess.predicates, *guess.qualifiers)} | guess.concepts.keys()
    # Types of nodes that stand for statements are no concepts.
    known.update(*(preset.get("hide", ()) for preset in PRESETS.values()))
    hidden, names = content.get("hide", ()), content.get("predicate", {})
    for iri in (*names, *hidden):
        if iri not in known and guess.whole:
            raise OptionError(f"no triple has the predicate or class {iri!r} of the mapping file", candidates=nearest(iri, known))

    def apply(predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
        return tuple(
            replace(predicate, name=names.get(predicate.iri, predicate.name))
            for predicate in predicates
            if predicate.iri not in hidden
        )

    unseen = tuple(Predicate(iri, name, 1, {(Kind.TEXT, NO_UNIT): 1}) for iri, name in names.items() if iri not in known)
    result = replace(guess, predicates=apply(guess.predicates) + unseen, qualifiers=apply(guess.qualifiers))
    owners: dict[str, str] = {}
    for predicate in (*result.predicates, *result.qualifiers):
        if owners.setdefault(predicate.name, predicate.iri) != predicate.iri:
            pair = f"{owners[predicate.name]!r} and {predicate.iri!r}"
            raise OptionError(f"the mapping calls {pair} both {predicate.name!r}", hint="name one otherwise")
    return replace(
        result,
        times={**guess.times, **content.get("times", {})},
        hidden=tuple(dict.fromkeys((*guess.hidden, *hidden))),
        concepts={iri: known for iri, known in guess.concepts.items() if iri not in hidden},
    )


_RULES: Final = {iri: name for name, iri in RULES.items()}


def written(mapping: Mapping, place: str) -> str:
    """Return a mapping as the text of a mapping file."""
    lines = [
        f"# What {place} is taken for. Every key may be left out: it is found out then.",
        *(f"# {note}" for note in mapping.notes),
        f"shape = {_text(mapping.shape)}  # or {'plain' if mapping.shape == 'wikibase' else 'wikibase'}",
        f"languages = {_list(mapping.languages)}  # of names, best first; names in others are not seen",
        f"labels = {_list(mapping.labels)}  # predicates that give names, best first",
        f"names = {_text(mapping.names)}  # what nodes without a name are called: the IRI, or its end (local)",
        f"graphs = {_list(mapping.graphs)}  # named graphs to ask; none is the endpoint's default graph",
        f"hide = {_list(mapping.hidden)}  # predicates and classes that programs do not see",
        f"statements = {_list(mapping.declared)}  # what stands for statements: 'graph', or paths 'IRI / IRI' over nodes",
        f"infer = {_list(mapping.infer)}  # axioms whose consequences are statements too: {', '.join(RULES)}",
        f"axioms = {_list(f'{s} {_RULES[rule]} {o}' for s, rule, o in mapping.axioms)}  # those that infer follows",
        "",
        "# What programs call the predicates.",
        "[predicate]",
    ]
    predicates = {
        predicate.iri: predicate for predicate in (*mapping.qualifiers, *mapping.predicates) if not predicate.iri.startswith(OWN)
    }
    for predicate in sorted(predicates.values(), key=lambda predicate: predicate.name):
        counts = [f"{predicate.relations:,} relations"] if predicate.relations else []
        for (kind, unit), count in predicate.values.items():
            counts.append(f"{count:,} {kind.name.lower()}" + ("" if unit == NO_UNIT else f" in {unit}"))
        lines.append(f"{_text(predicate.iri)} = {_text(predicate.name)}" + (f"  # {', '.join(counts)}" if counts else ""))
    if mapping.times:
        lines += ["", "# Qualifiers that say when statements hold.", "[times]"]
        lines += (f"{_text(key)} = {_text(text)}" for key, text in mapping.times.items())
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"
