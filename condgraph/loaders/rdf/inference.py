"""Inference from declared axioms: `rdfs:subPropertyOf`, `owl:inverseOf` and `owl:sameAs`. (`rdfs:subClassOf` needs no
rule: membership in a graph is closed under it.)

A stated triple `s p o` gives `s' q o'` for every property `q` that `p` implies by axioms of properties, and for all
`s'`, `o'` that `owl:sameAs` links to its ends, with the ends exchanged where the axioms of `q` are an odd number of
inverses: rules prp-spo1, prp-inv1, prp-inv2, eq-rep-s and eq-rep-o of OWL 2 RL (https://www.w3.org/TR/owl2-profiles/,
section 4.3). Axioms are taken as they are stated: nothing is derived from `owl:sameAs` between properties or classes.

An inferred statement has the qualifiers of the statement that it is inferred from, and names its axioms as further ones.
Memberships have no qualifiers: the terms of the source have the axioms of inferred ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.facts import Item, Member, Ref, Statement
from condgraph.engine.terms import INFERRED
from condgraph.loaders.rdf.terms import RDF

OWL: Final = "http://www.w3.org/2002/07/owl#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
SUBPROPERTY: Final = RDFS + "subPropertyOf"
INVERSE: Final = OWL + "inverseOf"
SAME: Final = OWL + "sameAs"
#: What `infer=` takes. Membership is closed under the first with or without it.
RULES: Final = {
    "rdfs:subClassOf": RDFS + "subClassOf",
    "rdfs:subPropertyOf": SUBPROPERTY,
    "owl:inverseOf": INVERSE,
    "owl:sameAs": SAME,
}
_SHORT: Final = {iri: name for name, iri in RULES.items()}
#: Properties whose meaning a graph has already: axioms about them are not followed.
_FIXED: Final = frozenset(
    (*RULES.values(), *(RDF + name for name in ("type", "reifies", "subject", "predicate", "object", "first", "rest")))
)
#: Axioms of properties, and nodes that are the same; more are an error.
MOST_AXIOMS: Final = 10_000
LARGEST: Final = 100
#: Inferred statements for each stated one, but at least so many; more are an error.
_FACTOR: Final = 100
_LEAST: Final = 1_000_000


class Implied(NamedTuple):
    """A property that another one implies; `inverse`: with the ends exchanged. `axioms` are those of the shortest way."""

    property: str
    inverse: bool
    axioms: tuple[str, ...]


def rules_of(given: Sequence[str]) -> frozenset[str]:
    """The IRIs of rules by their names. Raises `OptionError` for what is none."""
    for name in given:
        if name not in RULES:
            raise OptionError(
                f"infer= follows {', '.join(RULES)}, and not {name!r}",
                candidates=nearest(name, RULES),
                hint="a reasoner can write what else follows into the data",
            )
    return frozenset(RULES[name] for name in given)


def _axiom(subject: str, rule: str, other: str) -> str:
    return f"{subject} {_SHORT[rule]} {other}"


class Inference:
    """The axioms of a source, and what follows from them: `see` every triple, then `items`. `fixed` are predicates of
    names, which are left alone. `rules` are IRIs, as `rules_of` gives them.
    """

    def __init__(self, rules: Iterable[str] = (), fixed: Iterable[str] = ()) -> None:
        self._rules = frozenset(rules) - {RULES["rdfs:subClassOf"]}
        self._fixed = _FIXED | frozenset(fixed)
        #: By property: the other one, whether the ends are exchanged, the axiom.
        self._steps: dict[str, list[tuple[str, bool, str]]] = {}
        self._links: dict[str, list[tuple[str, str]]] = {}
        self._implied: dict[tuple[str, bool], list[Implied]] = {}
        self._same: dict[str, dict[str, tuple[str, ...]]] = {}
        self._axioms: set[str] = set()
        #: Axioms that are not followed, with why; and rules that some axiom uses.
        self.left: dict[str, str] = {}
        self._used: set[str] = set()
        #: Entities and classes of the memberships that `items` inferred, with the axioms.
        self.memberships: list[tuple[str, ...]] = []

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def inverses(self) -> list[str]:
        """The properties that imply some other, or themselves, with the ends exchanged."""
        return [iri for iri in self._steps if any(one.inverse for one in self.implied(iri))]

    @property
    def properties(self) -> list[str]:
        """The properties that axioms are about."""
        return list(self._steps)

    @property
    def same(self) -> bool:
        """Whether nodes are the same by `owl:sameAs`."""
        return SAME in self._rules

    def unused(self) -> list[str]:
        """The rules of which no axiom was seen."""
        return [_SHORT[rule] for rule in sorted(self._rules - self._used)]

    def see(self, subject: str, predicate: str, other: str) -> None:
        """Look at a triple whose object is a node."""
        if predicate not in self._rules:
            return
        self._used.add(predicate)
        axiom = _axiom(subject, predicate, other)
        if axiom in self._axioms or axiom in self.left:
            return
        if predicate == SAME:
            self._axioms.add(axiom)
            if subject != other:
                self._links.setdefault(subject, []).append((other, axiom))
                self._links.setdefault(other, []).append((subject, axiom))
            return
        fixed = next((iri for iri in (subject, other) if iri in self._fixed), None)
        if fixed is not None or subject.startswith("_:") or other.startswith("_:"):
            self.left[axiom] = "one side is a blank node" if fixed is None else f"{fixed} is no ordinary property"
            return
        self._axioms.add(axiom)
        if len(self._steps) > MOST_AXIOMS:
            raise OptionError(f"there are axioms about more than {MOST_AXIOMS:,} properties", hint="infer= without them")
        self._steps.setdefault(other, [])
        self._steps.setdefault(subject, []).append((other, predicate == INVERSE, axiom))
        if predicate == INVERSE:
            self._steps[other].append((subject, True, axiom))

    def implied(self, iri: str, *, literal: bool = False) -> list[Implied]:
        """The properties that a property implies, itself first. Of a `literal` no triple can have the ends exchanged, not
        even twice.
        """
        found = self._implied.get((iri, literal))
        if found is None:
            ways: dict[tuple[str, bool], tuple[str, ...]] = {(iri, False): ()}
            level = [(iri, False)]
            while level:
                # The shortest way, and of several the first in order: the same wherever the axioms are read.
                nearer: dict[tuple[str, bool], tuple[str, ...]] = {}
                for at in level:
                    for other, exchanged, axiom in self._steps.get(at[0], ()):
                        if exchanged and literal:
                            continue
                        to, way = (other, at[1] != exchanged), (*ways[at], axiom)
                        if to not in ways and way < nearer.get(to, (*way, "")):
                            nearer[to] = way
                ways |= nearer
                level = list(nearer)
            found = self._implied[iri, literal] = [Implied(other, inverse, way) for (other, inverse), way in ways.items()]
        return found

    def sames(self, node: str) -> dict[str, tuple[str, ...]]:
        """The nodes that are the same as one, itself first, with the links of the shortest way. Raises `OptionError` for
        more than `LARGEST`.
        """
        if node not in self._links:
            return {node: ()}
        found = self._same.get(node)
        if found is None:
            found, level = {node: ()}, [node]
            while level:
                nearer: dict[str, tuple[str, ...]] = {}
                for at in level:
                    for other, axiom in self._links[at]:
                        way = (*found[at], axiom)
                        if other not in found and way < nearer.get(other, (*way, "")):
                            nearer[other] = way
                found |= nearer
                if len(found) > LARGEST:
                    raise OptionError(
                        f"owl:sameAs makes more than {LARGEST} nodes one: {min(found)!r} and others",
                        hint="infer= without owl:sameAs, or without the links that are wrong",
                    )
                level = list(nearer)
            self._same[node] = found
        return found

    # -- items -------------------------------------------------------------------------------------

    def items(self, stated: Iterable[Item], called: Mapping[str, str]) -> Iterator[Item]:
        """Stated items, and then what follows from them and is not stated. `called` are the names of predicates."""
        iris: dict[str, str] = {}
        for iri, name in called.items():
            iris.setdefault(name, iri)
        kind = called[RDF + "type"]
        fixed = {called[iri] for iri in self._fixed if iri in called}
        targets = {called[one.property] for iri in self._steps if iri in called for one in self.implied(iri)[1:]}
        known: set[_Key] = set()
        inferred: dict[_Key, tuple[tuple[str, ...], Statement]] = {}
        count = 0
        for item in stated:
            yield item
            if isinstance(item, Member) and item.entity in self._links:
                item = Statement(item.entity, kind, Ref(item.concept), (), item.row)
            elif not isinstance(item, Statement) or item.predicate in fixed:
                continue
            count += 1
            iri = iris.get(item.predicate, "")
            linked = item.subject in self._links or (isinstance(item.object, Ref) and item.object.id in self._links)
            if linked or item.predicate in targets:
                known.add(_key(item))
            if linked or iri in self._steps:
                for axioms, one in self._inferred(item, iri, called, class_of=item.predicate == kind):
                    key = _key(one)
                    if key not in inferred or axioms < inferred[key][0]:
                        inferred[key] = axioms, one
            if len(inferred) > max(_LEAST, _FACTOR * count):
                raise OptionError(
                    f"more than {len(inferred) - 1:,} statements follow from the first {count:,}", hint="infer= with fewer rules"
                )
        for key, (axioms, one) in inferred.items():
            if key not in known:
                if one.predicate == kind and isinstance(one.object, Ref):
                    self.memberships.append((one.subject, one.object.id, *axioms))
                    yield Member(one.subject, one.object.id, one.row)
                    continue
                yield replace(one, qualifiers=(*one.qualifiers, *((INFERRED, axiom) for axiom in axioms)))

    def _inferred(
        self, item: Statement, iri: str, called: Mapping[str, str], *, class_of: bool
    ) -> Iterator[tuple[tuple[str, ...], Statement]]:
        """What follows from a statement, with the axioms; of a membership, for its entity alone."""
        literal = not isinstance(item.object, Ref)
        objects: dict[Any, tuple[str, ...]] = {item.object: ()}
        if not literal and not class_of:
            objects = {Ref(ident): way for ident, way in self.sames(item.object.id).items()}  # type: ignore[union-attr]
        for implied in self.implied(iri, literal=literal):
            name = called.get(implied.property, item.predicate)
            for subject, first in self.sames(item.subject).items():
                for thing, last in objects.items():
                    axioms = (*implied.axioms, *dict.fromkeys((*first, *last)))
                    if axioms:
                        ends = (thing.id, Ref(subject)) if implied.inverse else (subject, thing)
                        yield axioms, replace(item, subject=ends[0], predicate=name, object=ends[1])


_Key: TypeAlias = tuple[str, str, Any, frozenset[Any]]


def _key(one: Statement) -> _Key:
    return one.subject, one.predicate, one.object, frozenset(one.qualifiers)
