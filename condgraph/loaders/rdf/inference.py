"""Inference from declared axioms: `rdfs:subPropertyOf`, `owl:inverseOf` and `owl:sameAs`.

(`rdfs:subClassOf` needs no rule: membership in a graph is closed under it.)

A stated triple `s p o` gives `s' q o'` for every property `q` that `p` implies, and for all `s'`, `o'` that
`owl:sameAs` links to its ends; the ends are swapped if the axioms for `q` have an odd number of inverses. These are the
rules prp-spo1, prp-inv1, prp-inv2, eq-rep-s and eq-rep-o of OWL 2 RL (https://www.w3.org/TR/owl2-profiles/, section
4.3). Axioms count as stated: nothing is derived from `owl:sameAs` between properties or classes.

An inferred statement has the qualifiers of the original statement, and its axioms as further qualifiers. Memberships
have no qualifiers, so the terms of the source have the axioms of inferred ones.
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
#: The values of `infer=`. Membership is closed under the first one in any case.
RULES: Final = {
    "rdfs:subClassOf": RDFS + "subClassOf",
    "rdfs:subPropertyOf": SUBPROPERTY,
    "owl:inverseOf": INVERSE,
    "owl:sameAs": SAME,
}
_SHORT: Final = {iri: name for name, iri in RULES.items()}
#: Properties with a built-in meaning; axioms about them are ignored.
_FIXED: Final = frozenset(
    (*RULES.values(), *(RDF + name for name in ("type", "reifies", "subject", "predicate", "object", "first", "rest")))
)
#: The most properties with axioms, and the most nodes that are the same; more are an error.
MAX_AXIOMS: Final = 10_000
MAX_SAME: Final = 100
#: The most inferred statements for each stated one, and the least such limit; more are an error.
_FACTOR: Final = 100
_MIN_INFERRED: Final = 1_000_000


class Implied(NamedTuple):
    """A property that another one implies, with the axioms of the shortest derivation; `inverse` swaps the ends."""

    property: str
    inverse: bool
    axioms: tuple[str, ...]


def rules_of(names: Sequence[str]) -> frozenset[str]:
    """Return the IRIs of rules by name; raises `OptionError` for an unknown one."""
    for name in names:
        if name not in RULES:
            raise OptionError(
                f"infer= follows {', '.join(RULES)}, and not {name!r}",
                candidates=nearest(name, RULES),
                hint="a reasoner can write what else follows into the data",
            )
    return frozenset(RULES[name] for name in names)


def _axiom(subject: str, rule: str, other: str) -> str:
    return f"{subject} {_SHORT[rule]} {other}"


class Inference:
    """The axioms of a source and their consequences: `see` every triple, then call `items`.

    `fixed` are predicates of names, which are left alone. `rules` are IRIs from `rules_of`.
    """

    def __init__(self, rules: Iterable[str] = (), fixed: Iterable[str] = ()) -> None:
        self._rules = frozenset(rules) - {RULES["rdfs:subClassOf"]}
        self._fixed = _FIXED | frozenset(fixed)
        #: By property: the implied one, whether the ends are swapped, and the axiom.
        self._steps: dict[str, list[tuple[str, bool, str]]] = {}
        self._links: dict[str, list[tuple[str, str]]] = {}
        self._implied: dict[tuple[str, bool], list[Implied]] = {}
        self._same: dict[str, dict[str, tuple[str, ...]]] = {}
        self._axioms: set[str] = set()
        #: Ignored axioms with the reason, and the rules that some axiom uses.
        self.left: dict[str, str] = {}
        self._used: set[str] = set()
        #: The memberships that `items` inferred: entity, class, and the axioms.
        self.memberships: list[tuple[str, ...]] = []

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def inverses(self) -> list[str]:
        """The properties that imply some property with the ends swapped."""
        return [iri for iri in self._steps if any(implied.inverse for implied in self.implied(iri))]

    @property
    def properties(self) -> list[str]:
        """The properties that have axioms."""
        return list(self._steps)

    @property
    def same(self) -> bool:
        """Whether `owl:sameAs` is followed."""
        return SAME in self._rules

    def unused(self) -> list[str]:
        """Return the rules without any axiom."""
        return [_SHORT[rule] for rule in sorted(self._rules - self._used)]

    def see(self, subject: str, predicate: str, other: str) -> None:
        """Record a triple whose object is a node."""
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
            self.left[axiom] = "one side is a blank node" if fixed is None else f"{fixed} is not an ordinary property"
            return
        self._axioms.add(axiom)
        if len(self._steps) > MAX_AXIOMS:
            raise OptionError(f"there are axioms about more than {MAX_AXIOMS:,} properties", hint="infer= without them")
        self._steps.setdefault(other, [])
        self._steps.setdefault(subject, []).append((other, predicate == INVERSE, axiom))
        if predicate == INVERSE:
            self._steps[other].append((subject, True, axiom))

    def implied(self, iri: str, *, literal: bool = False) -> list[Implied]:
        """Return the properties that a property implies, itself first.

        With a `literal` object the ends can never be swapped, not even twice.
        """
        result = self._implied.get((iri, literal))
        if result is None:
            paths: dict[tuple[str, bool], tuple[str, ...]] = {(iri, False): ()}
            level = [(iri, False)]
            while level:
                # The shortest path, and among equal ones the first in order, so that the result is deterministic.
                nearer: dict[tuple[str, bool], tuple[str, ...]] = {}
                for at in level:
                    for other, swapped, axiom in self._steps.get(at[0], ()):
                        if swapped and literal:
                            continue
                        reached, path = (other, at[1] != swapped), (*paths[at], axiom)
                        if reached not in paths and path < nearer.get(reached, (*path, "")):
                            nearer[reached] = path
                paths |= nearer
                level = list(nearer)
            result = self._implied[iri, literal] = [Implied(other, inverse, path) for (other, inverse), path in paths.items()]
        return result

    def sames(self, node: str) -> dict[str, tuple[str, ...]]:
        """Return the nodes that are the same as one, itself first, each with the links of the shortest path.

        Raises `OptionError` for more than `MAX_SAME`.
        """
        if node not in self._links:
            return {node: ()}
        result = self._same.get(node)
        if result is None:
            result, level = {node: ()}, [node]
            while level:
                nearer: dict[str, tuple[str, ...]] = {}
                for at in level:
                    for other, axiom in self._links[at]:
                        path = (*result[at], axiom)
                        if other not in result and path < nearer.get(other, (*path, "")):
                            nearer[other] = path
                result |= nearer
                if len(result) > MAX_SAME:
                    raise OptionError(
                        f"owl:sameAs makes more than {MAX_SAME} nodes one: {min(result)!r} and others",
                        hint="infer= without owl:sameAs, or without the links that are wrong",
                    )
                level = list(nearer)
            self._same[node] = result
        return result

    # -- items -------------------------------------------------------------------------------------

    def items(self, stated: Iterable[Item], called: Mapping[str, str]) -> Iterator[Item]:
        """Yield the stated items, then the statements that follow from them; `called` has the names of predicates."""
        iris: dict[str, str] = {}
        for iri, name in called.items():
            iris.setdefault(name, iri)
        kind = called[RDF + "type"]
        fixed = {called[iri] for iri in self._fixed if iri in called}
        targets = {called[implied.property] for iri in self._steps if iri in called for implied in self.implied(iri)[1:]}
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
                for axioms, inferred_statement in self._inferred(item, iri, called, class_of=item.predicate == kind):
                    key = _key(inferred_statement)
                    if key not in inferred or axioms < inferred[key][0]:
                        inferred[key] = axioms, inferred_statement
            if len(inferred) > max(_MIN_INFERRED, _FACTOR * count):
                raise OptionError(
                    f"more than {len(inferred) - 1:,} statements follow from the first {count:,}", hint="infer= with fewer rules"
                )
        for key, (axioms, inferred_statement) in inferred.items():
            if key not in known:
                if inferred_statement.predicate == kind and isinstance(inferred_statement.object, Ref):
                    self.memberships.append((inferred_statement.subject, inferred_statement.object.id, *axioms))
                    yield Member(inferred_statement.subject, inferred_statement.object.id, inferred_statement.row)
                    continue
                yield replace(
                    inferred_statement, qualifiers=(*inferred_statement.qualifiers, *((INFERRED, axiom) for axiom in axioms))
                )

    def _inferred(
        self, item: Statement, iri: str, called: Mapping[str, str], *, class_of: bool
    ) -> Iterator[tuple[tuple[str, ...], Statement]]:
        """Yield the statements that follow from one, with the axioms; for a membership, only about its entity."""
        literal = not isinstance(item.object, Ref)
        objects: dict[Any, tuple[str, ...]] = {item.object: ()}
        if not literal and not class_of:
            objects = {Ref(ident): path for ident, path in self.sames(item.object.id).items()}  # type: ignore[union-attr]
        for implied in self.implied(iri, literal=literal):
            name = called.get(implied.property, item.predicate)
            for subject, subject_axioms in self.sames(item.subject).items():
                for target, object_axioms in objects.items():
                    axioms = (*implied.axioms, *dict.fromkeys((*subject_axioms, *object_axioms)))
                    if axioms:
                        ends = (target.id, Ref(subject)) if implied.inverse else (subject, target)
                        yield axioms, replace(item, subject=ends[0], predicate=name, object=ends[1])


_Key: TypeAlias = tuple[str, str, Any, frozenset[Any]]


def _key(statement: Statement) -> _Key:
    return statement.subject, statement.predicate, statement.object, frozenset(statement.qualifiers)
