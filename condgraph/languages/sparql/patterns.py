"""Translates a basic graph pattern of the RDF view (`docs/reference/rdf.md`) to a pattern over statements.

Its solutions are a set over all variables, including those of blank nodes and paths: RDF has a triple
only once, however many statements produce it. So the rows are made distinct before anything is
computed from them. The contents of value nodes (`pred:value`) and the names of entities are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from condgraph.engine.algebra import AllEntities, ById, ByName, Compare, Entities, Solutions, intersect, solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import UnknownNameError, nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.iris import NAMESPACE, PRED, RDF, VALUE, XSD, decode
from condgraph.engine.values import Kind
from condgraph.languages.sparql.syntax import Basic, Iri, Lit, Term, Triple, Var, beyond

if TYPE_CHECKING:
    from condgraph.engine.store import KnownSchema

#: What a variable is bound to. "node" is an entity or the node of a value, "literal" a text or a number. "number or 0" is
#: a sum: a double, or the integer 0 for an empty group.
Sort: TypeAlias = Literal[
    "entity", "value", "statement", "predicate", "node", "text", "number", "number or 0", "integer", "decimal", "date", "boolean",
    "literal",
]  # fmt: skip
NODES: Final = frozenset(("entity", "value", "statement", "node"))
#: The properties of a value node other than `pred:value`, and their sorts.
_SAID: Final[dict[str, Sort]] = {
    "unit": "text", "year": "integer", "date": "date", "start": "integer", "end": "integer", "precision": "integer",
}  # fmt: skip
_CLASSES: Final = {"Entity": EntityKind.ENTITY, "Concept": EntityKind.CONCEPT, "Row": EntityKind.ROW}
_FACT: Final = ("fact_h", "fact_r", "fact_t")


class Names:
    """Translates IRIs to names of a graph; `base` is their common prefix."""

    def __init__(self, schema: KnownSchema, base: str, *, lenient: bool, warn: Callable[[str], None]) -> None:
        self.schema, self.base, self._lenient, self.warn = schema, base, lenient, warn

    def rest(self, iri: str) -> str:
        """Return an IRI without the base, or the whole IRI if it does not begin with it."""
        if iri.startswith(self.base):
            return iri[len(self.base) :]
        if iri.startswith(NAMESPACE):
            raise beyond(f"<{iri}>, which is in another graph", f"names of this one begin with {self.base}")
        return iri

    def ident(self, iri: str) -> str:
        """Return the id of the entity that an IRI identifies."""
        local_name = self.rest(iri)
        if local_name.startswith("."):
            raise beyond(f"<{iri}> in place of an entity")
        return decode(local_name) if local_name != iri else iri

    def predicate(self, iri: str) -> str:
        """Return the relation, attribute or qualifier of an IRI; raises `UnknownNameError` if there is none."""
        local_name, schema = self.rest(iri), self.schema
        decoded = decode(local_name) if local_name != iri else iri
        # Also accept a name whose underscores are not escaped, as people copy it from a table.
        for name in (decoded, local_name):
            if schema.has_relation(name) or schema.has_attribute(name) or schema.has_qualifier(name):
                return name
        if not self._lenient:
            known = [*schema.relations, *schema.attributes, *schema.qualifiers]
            raise UnknownNameError(
                "predicate", decoded, candidates=nearest(decoded, known), hint='on_unknown="empty" lets it mean nothing'
            )
        self.warn(f"the graph has no predicate {decoded!r}: no triple has it")
        return decoded


@dataclass(slots=True)
class _Statement:
    """The ends and qualifiers that triples state about a statement."""

    subject: Term | None = None
    predicate: Term | None = None
    object: Term | None = None
    qualifiers: list[tuple[str, Term]] = field(default_factory=list)


@dataclass(slots=True)
class _Computed:
    """A literal that is computed from a variable."""

    of: str
    function: str
    sort: Sort
    target: Term


class Matching:
    """Translates one basic graph pattern; `fresh` returns unused variables."""

    def __init__(self, part: Basic, names: Names, fresh: Callable[[], str]) -> None:
        self._names, self._fresh, self._triples = names, fresh, part.triples
        self.sorts: dict[str, Sort] = {}
        self._statements: dict[Term, _Statement] = {}
        self._patterns: list[solutions.StatementPattern] = []
        self._members: list[solutions.MembershipPattern] = []
        #: Sets that contain the entities, by variable.
        self._sets: dict[str, list[Entities]] = {}
        self._computed: list[_Computed] = []
        #: The variables that patterns bind to entities or values.
        self._mixed: set[str] = set()
        #: The texts that values must equal, by variable.
        self._texts: dict[str, str] = {}

    def rows(self) -> Solutions:
        """Return the rows that match; afterwards `sorts` has the sorts of the variables."""
        entities: set[Term] = set()
        for triple in self._triples:
            word = self._word(triple)
            if isinstance(triple.subject, Lit):
                raise beyond("a literal as a subject")
            if word in _FACT:
                self._statements.setdefault(triple.subject, _Statement())
            elif word in ("instance_of", "name", "a"):
                entities.add(triple.subject)
        for triple in self._triples:
            self._gather(triple, entities)
        for term, statement in self._statements.items():
            self._write(term, statement)
        return self._plan()

    @staticmethod
    def _word(one: Triple) -> str | None:
        """Return the vocabulary word of a predicate; None for a name of the graph."""
        iri = one.predicate.iri
        return "a" if iri == f"{RDF}type" else iri[len(PRED) :] if iri.startswith(PRED) else None

    # -- triples -----------------------------------------------------------------------------------

    def _gather(self, one: Triple, entities: set[Term]) -> None:
        word, subject = self._word(one), one.subject
        if word is None:
            self._named(one, entities)
        elif word == "a":
            kind = _CLASSES.get(one.object.iri.removeprefix(PRED)) if isinstance(one.object, Iri) else None
            if kind is None:
                raise beyond(
                    "rdf:type of anything but pred:Entity, pred:Concept and pred:Row", "<pred:instance_of> leads to concepts"
                )
            self._within(subject, AllEntities((kind,)))
        elif word == "name":
            name = self._entity(subject)
            if isinstance(one.object, Lit):
                self._within(subject, ByName((self._text(one.object),)))
            else:
                self._sets.setdefault(name, [])
                self._computed.append(_Computed(name, "name", "text", one.object))
        elif word == "instance_of":
            self._members.append(solutions.MembershipPattern(self._place(subject), self._place(one.object)))
        elif word in _FACT:
            place = {"fact_h": "subject", "fact_r": "predicate", "fact_t": "object"}[word]
            statement = self._statements[subject]
            if getattr(statement, place) is not None:
                raise beyond(f"<pred:{word}> of a statement twice")
            setattr(statement, place, one.object)
        elif word == "value" or word in _SAID:
            if not isinstance(subject, Var):
                raise beyond("the node of a value as it is")
            if word == "value" and isinstance(one.object, Lit):
                self._texts[subject.name] = self._text(one.object)
            self._computed.append(_Computed(subject.name, f"rdf.{word}", _SAID.get(word, "literal"), one.object))
        else:
            raise beyond(f"<pred:{word}>")

    def _named(self, one: Triple, entities: set[Term]) -> None:
        """Translate a triple whose predicate is a relation, an attribute or a qualifier."""
        name, subject, schema = self._names.predicate(one.predicate.iri), one.subject, self._names.schema
        if subject in self._statements:
            self._statements[subject].qualifiers.append((name, one.object))
            return
        undetermined = isinstance(subject, Var) and subject not in entities and schema.has_qualifier(name)
        if undetermined and not self._is_entity(subject, name):
            described = f"?{subject.name}, which may be an entity, or a statement with the qualifier {name!r}"  # type: ignore[union-attr]
            raise beyond(described, "say which: ?x a <pred:Entity>")
        self._pattern(subject, (name,), one.object)

    def _is_entity(self, subject: Term, besides: str) -> bool:
        """Whether another triple implies that a term is an entity."""
        for triple in self._triples:
            if self._word(triple) is None and (triple.subject == subject or triple.object == subject):
                name = self._names.predicate(triple.predicate.iri)
                schema = self._names.schema
                if name != besides and (
                    schema.has_relation(name) or (triple.subject == subject and not schema.has_qualifier(name))
                ):
                    return True
        return False

    def _pattern(
        self, subject: Term | None, predicate: tuple[str, ...] | solutions.Variable | None, target: Term | None,
        statement: str | None = None, qualifiers: tuple[solutions.QualifierPattern, ...] = (),
    ) -> None:  # fmt: skip
        schema = self._names.schema
        known = predicate if isinstance(predicate, tuple) else ()
        relation = any(map(schema.has_relation, known)) or not known
        attribute = any(map(schema.has_attribute, known)) or not known
        if isinstance(target, Lit):
            raise beyond("a literal in place of a node", "<pred:value> leads to what the node of a value says")
        value = isinstance(target, Iri) and self._names.rest(target.iri).startswith(VALUE)
        if value:
            raise beyond("the node of a value as it is", "<pred:value> leads to what it says")
        if isinstance(target, Var):
            self._is(target.name, "node" if relation and attribute else "value" if attribute else "entity")
            if relation and attribute:
                self._mixed.add(target.name)
        self._patterns.append(
            solutions.StatementPattern(
                self._place(subject), predicate, self._place(target, "node"), None,
                None if statement is None else solutions.Variable(statement), qualifiers,
                "any" if relation == attribute else "relation" if relation else "attribute",
            )
        )  # fmt: skip

    def _write(self, term: Term, said: _Statement) -> None:
        """Add the pattern of a statement that is a node."""
        if not isinstance(term, Var):
            raise beyond("the node of a statement as it is")
        self._is(term.name, "statement")
        predicate: tuple[str, ...] | solutions.Variable | None = None
        if isinstance(said.predicate, Var):
            self._is(said.predicate.name, "predicate")
            predicate = solutions.Variable(said.predicate.name)
        elif isinstance(said.predicate, Iri):
            predicate = (self._names.predicate(said.predicate.iri),)
        elif said.predicate is not None:
            raise beyond("a literal as a predicate")
        qualifiers = []
        for key, value in said.qualifiers:
            if isinstance(value, Lit):
                raise beyond("a literal in place of a node", "<pred:value> leads to what the node of a value says")
            kinds = self._names.schema.qualifier_kinds(key)
            sort: Sort = "entity" if kinds and all(kind is Kind.ENTITY for kind, _ in kinds) else "node"
            if isinstance(value, Var):
                self._is(value.name, sort)
                if sort == "node":
                    self._mixed.add(value.name)
            qualifiers.append(solutions.QualifierPattern(key, self._place(value, sort)))
        self._pattern(said.subject, predicate, said.object, term.name, tuple(qualifiers))

    # -- places ------------------------------------------------------------------------------------

    def _place(self, term: Term | None, sort: Sort = "entity") -> solutions.Place:
        if term is None:
            return None
        if isinstance(term, Var):
            self._is(term.name, sort)
            return solutions.Variable(term.name)
        if isinstance(term, Iri):
            return ById((self._names.ident(term.iri),))
        raise beyond("a literal in place of an entity")

    def _entity(self, term: Term) -> str:
        """Return the variable of an entity; a new one for an IRI."""
        if isinstance(term, Var):
            self._is(term.name, "entity")
            return term.name
        name = self._fresh()
        self._within(Var(name), ById((self._names.ident(getattr(term, "iri", "")),)))
        return name

    def _within(self, term: Term, entities: Entities) -> None:
        if isinstance(term, Lit):
            raise beyond("a literal in place of an entity")
        self._sets.setdefault(self._entity(term), []).append(entities)

    def _is(self, name: str, sort: Sort) -> None:
        known = self.sorts.setdefault(name, sort)
        if known == sort or (sort == "node" and known in NODES):
            return
        if known != "node" or sort not in NODES:
            raise beyond(f"?{name}, which is {an(known)} and {an(sort)}", "nothing is both")
        self.sorts[name] = sort

    @staticmethod
    def _text(term: Lit) -> str:
        if term.language or term.datatype != f"{XSD}string":
            raise beyond(f"the literal {term.text!r} in a triple", "FILTER compares numbers and dates of all types")
        return term.text

    # -- the plan ----------------------------------------------------------------------------------

    def _plan(self) -> Solutions:
        patterns = [self._tested(pattern) for pattern in self._patterns]
        plan: Solutions | None = None
        if patterns or self._members:
            plan = solutions.Pattern(tuple(patterns), tuple(self._members))
        for name, sets in self._sets.items():
            if sets or plan is None or name not in plan.variables or name in self._mixed:
                rows = solutions.EntityRows(name, intersect(*sets) if sets else AllEntities(tuple(EntityKind)))
                plan = rows if plan is None else solutions.Join(rows, plan)
        if plan is None:
            raise beyond("triples that name nothing but values", "say what has them")
        plan = solutions.DistinctRows(plan)
        for computed in self._computed:
            plan = self._compute(plan, computed)
        return plan

    def _tested(self, pattern: solutions.StatementPattern) -> solutions.StatementPattern:
        """Add the text that the value must equal to a pattern, so that an index can find it."""
        target = pattern.object
        text = self._texts.get(target.name) if isinstance(target, solutions.Variable) else None
        if text is None or pattern.family != "attribute":
            return pattern
        return solutions.StatementPattern(
            pattern.subject, pattern.predicate, target, Compare("=", text), pattern.statement, pattern.qualifiers, pattern.family
        )

    def _compute(self, plan: Solutions, one: _Computed) -> Solutions:
        if one.of not in plan.variables:
            raise beyond(f"?{one.of}, of which no triple says what it is")
        value = ex.Call(one.function, (ex.Variable(one.of),))
        if isinstance(one.target, Lit):
            return solutions.Filter(plan, ex.Comparison("=", value, ex.Constant(self._text(one.target))))
        if not isinstance(one.target, Var):
            raise beyond("an IRI in place of a literal")
        self._is(one.target.name, one.sort)
        if one.target.name in plan.variables:
            return solutions.Filter(plan, ex.Comparison("=", value, ex.Variable(one.target.name)))
        plan = solutions.Extend(plan, one.target.name, value)
        return plan if one.function == "name" else solutions.BoundRows(plan, (one.target.name,))


def an(sort: Sort) -> str:
    """Return a sort in words, with its article."""
    words = {"integer": "a whole number", "value": "the node of a value", "boolean": "a truth value"}
    return words.get(sort, f"an {sort}" if sort == "entity" else f"a {sort}")
