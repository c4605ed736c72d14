"""A basic graph pattern as clauses of Cypher.

Its solutions are a set over all of its variables, those of blank nodes and paths included: RDF has
a triple once, however many relationships say it. So the clauses end in a RETURN DISTINCT of all
that they bind. Each relation is a MATCH of its own, since within one MATCH no relationship is met
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.identity import foreign, within_labels
from condgraph.engine.iris import PRED, XSD
from condgraph.engine.values import DAY_SECONDS, Precision
from condgraph.languages.sparql.syntax import Basic, Iri, Lit, Term, Triple, Var, beyond
from condgraph.live.expressions import Bound, Sort
from condgraph.live.vocabulary import TERMS, Attribute, Of, Predicate, Relation, Vocabulary

if TYPE_CHECKING:
    from condgraph.cypher.native.layout import NativeLayout

#: Datatypes of the literals of the view.
_DATATYPES: Final[dict[str, Sort]] = {
    f"{XSD}string": "text", f"{XSD}double": "number", f"{XSD}integer": "integer", f"{XSD}date": "date",
}  # fmt: skip
#: Sorts of value nodes, by what the value is.
VALUES: Final[dict[Of, Sort]] = {
    "text": "value:text", "number": "value:number", "boolean": "value:boolean", "day": "value:day",
}  # fmt: skip


class Pattern:
    """One basic graph pattern, in a scope. `variable` names a variable of SPARQL, `fresh` anything
    else, `parameter` keeps a value.
    """

    def __init__(
        self,
        part: Basic,
        scope: dict[Var, Bound],
        vocabulary: Vocabulary,
        layout: NativeLayout,
        variable: Callable[[Var], str],
        fresh: Callable[[], str],
        parameter: Callable[[Any], str],
    ) -> None:
        self._vocabulary, self._layout, self._parameter = vocabulary, layout, parameter
        self._variable, self._fresh, self._scope = variable, fresh, scope
        self._triples = [(one, vocabulary.predicate(one.predicate)) for one in part.triples]
        self._sorts: dict[Var, Sort] = {}
        for term in (term for one in part.triples for term in (one.subject, one.object)):
            if isinstance(term, Var) and term in scope:
                if not scope[term].certain:
                    raise beyond(f"?{term.name} here, which may be unbound", "use it in filters and results alone")
                self._sorts[term] = scope[term].sort
        self._infer()
        self._lines: list[str] = []
        self._new: dict[Var, Bound] = {}
        self._nodes: dict[Term, str] = {}
        self._placed: set[str] = set()
        self._wanted: dict[str, list[str]] = {}
        #: Nodes that one of their texts tells from most others, by the pattern that finds them.
        self._told: dict[str, str] = {}

    # -- what each variable is ---------------------------------------------------------------------

    def _infer(self) -> None:
        before = -1
        while before != len(self._sorts):
            before = len(self._sorts)
            for one, predicate in self._triples:
                said = self._said(one, predicate)
                # Statements have qualifiers, so that something else has to say that this is a node.
                for term, sort in said[1:] if isinstance(predicate, Attribute) and predicate.qualifies else said:
                    self._is(term, sort)
        for one, predicate in self._triples:
            if isinstance(predicate, Attribute) and predicate.qualifies and isinstance(one.subject, Var):
                self._no_statement(one.subject, predicate)
        for one, predicate in self._triples:
            if isinstance(one.subject, Lit):
                raise beyond("a literal as a subject")
            if isinstance(one.subject, Var) and one.subject not in self._sorts:
                name = "a blank node" if one.subject.hidden else f"?{one.subject.name}"
                if predicate == "name":
                    raise beyond(f"{name}, which may be an entity or a concept", "say which: ?x a <pred:Entity>")
                raise beyond(f"{name}, of which no predicate says what it is")

    def _no_statement(self, term: Var, predicate: Attribute) -> None:
        """Make sure that what has a property which relationships have, too, is a node: of all with
        properties, nodes alone have names.
        """
        if term not in self._sorts and any(one.subject == term and other == "name" for one, other in self._triples):
            self._sorts[term] = "node"
        if self._sorts.get(term) != "node":
            raise beyond(
                f"?{term.name}, which may be a node, or a statement with the qualifier {predicate.key!r}",
                "say which: ?x a <pred:Entity>",
            )

    def _said(self, one: Triple, predicate: Predicate) -> list[tuple[Term, Sort]]:
        if isinstance(predicate, Relation):
            return [(one.subject, "node"), (one.object, "node")]
        if isinstance(predicate, Attribute):
            if not isinstance(one.object, Var):
                raise beyond("the node of a value as it is", "<pred:value> leads to what it says")
            return [(one.subject, "node"), (one.object, VALUES[predicate.of])]
        if predicate == "type":
            if one.object not in (Iri(f"{PRED}Entity"), Iri(f"{PRED}Concept")):
                raise beyond("rdf:type of anything but <pred:Entity> and <pred:Concept>", "<pred:instance_of> leads to concepts")
            return [(one.subject, "node" if one.object == Iri(f"{PRED}Entity") else "concept")]
        if predicate == "instance_of":
            return [(one.subject, "node"), (one.object, "concept")]
        if predicate == "name":
            found: list[tuple[Term, Sort]] = [(one.object, "text")]
            if isinstance(one.subject, Iri):
                found.append((one.subject, "concept" if self._vocabulary.entity(one.subject).startswith(":") else "node"))
            return found
        # A term of a value node: what the node is decides what it leads to.
        sort = self._sorts.get(one.subject) if isinstance(one.subject, Var) else None
        if isinstance(one.subject, Iri):
            raise beyond("the node of a value as it is")
        if sort is None:
            return []
        of = sort.partition(":")[2]
        if of not in TERMS[str(predicate)]:
            raise beyond(
                f"<{PRED}{predicate}> of {'a day' if of == 'day' else f'a {of or sort}'}", "a day has pred:date and pred:year"
            )
        if predicate == "value":
            return [(one.object, "number" if of == "number" else "text")]
        return [(one.object, "text" if predicate == "unit" else "date" if predicate == "date" else "integer")]

    def _is(self, term: Term, sort: Sort) -> None:
        if isinstance(term, Var):
            if self._sorts.setdefault(term, sort) != sort:
                raise beyond(f"?{term.name}, which is {self._sorts[term]} and {sort}", "nothing is both")
        elif isinstance(term, Lit):
            if term.language or _DATATYPES.get(term.datatype) != sort:
                raise beyond(f"the literal {term.text!r} where a {sort} stands", "FILTER compares numbers of all types")
        elif sort not in ("node", "concept"):
            raise beyond(f"<{term.iri}> where a {sort} stands")

    # -- clauses -----------------------------------------------------------------------------------

    def clauses(self) -> tuple[list[str], dict[Var, Bound]]:
        """Clauses that end in a RETURN, and what they bind."""
        self._gather()
        self._anchors()
        self._edges()
        self._rest()
        self._concepts()
        self._values()
        returned = ", ".join(bound.text for bound in self._new.values()) or f"1 AS {self._fresh()}"
        return [*self._lines, f"RETURN DISTINCT {returned}"], self._new

    def _gather(self) -> None:
        """The nodes, and what each has to have."""
        for one, predicate in self._triples:
            for term, sort in self._said(one, predicate):
                if sort == "node":
                    self._node(term)
            subject = self._nodes.get(one.subject)
            if isinstance(predicate, Attribute) and subject is not None:
                self._wanted[subject].append(predicate.there(subject))
                self._compare(subject, predicate, one.object)
            elif predicate == "instance_of" and subject is not None:
                labels = self._labels(one.object)
                if labels is not None:
                    self._wanted[subject].append(within_labels(subject, labels) if labels else "false")
            elif predicate == "name" and isinstance(one.subject, Var) and self._sorts[one.subject] == "node":
                self._node(one.subject)

    def _compare(self, subject: str, predicate: Attribute, value: Term) -> None:
        """Where a text is said of a value, it is asked of the property itself, before anything is followed."""
        for one, other in self._triples:
            if predicate.of == "text" and other == "value" and one.subject == value and isinstance(one.object, Lit):
                self._wanted[subject].append(predicate.equals(subject, f"toString({self._parameter(_value(one.object))})"))
                self._told.setdefault(subject, predicate.nodes(subject))

    def _node(self, term: Term) -> str:
        if term in self._nodes:
            return self._nodes[term]
        if isinstance(term, Var):
            name = self._variable(term)
            if term in self._scope:
                self._placed.add(name)
            else:
                self._new[term] = Bound("node", name)
        else:
            name = self._fresh()
        self._wanted.setdefault(name, [])
        self._nodes[term] = name
        return name

    def _labels(self, concept: Term) -> list[str] | None:
        """The labels that a concept can be; None for any."""
        if isinstance(concept, Iri):
            return [self._vocabulary.label(concept)]
        names = [
            one.object.text
            for one, predicate in self._triples
            if predicate == "name" and one.subject == concept and isinstance(one.object, Lit)
        ]
        return self._vocabulary.labels_called(names[0]) if names else None

    def _text(self, term: Term) -> str | None:
        """A literal, or a text that is bound, as an expression."""
        if isinstance(term, Lit):
            return self._parameter(_value(term))
        bound = self._scope.get(term) or self._new.get(term) if isinstance(term, Var) else None
        return None if bound is None else bound.text

    def _anchors(self) -> None:
        """Nodes that are known by their ids or names."""
        for term, name in self._nodes.items():
            if isinstance(term, Iri):
                self._lines += self._layout.by_id(name, f"= toString({self._parameter(self._vocabulary.entity(term))})")
                self._placed.add(name)
        for one, predicate in self._triples:
            subject = self._nodes.get(one.subject)
            if predicate == "name" and subject is not None and (text := self._text(one.object)) is not None:
                if subject in self._placed:
                    self._wanted[subject].append(self._layout.named(subject, f"= {text}"))
                else:
                    self._lines += self._layout.by_name(subject, f"= toString({text})")
                    self._placed.add(subject)
        for name in sorted(self._placed):
            self._test(name)
        for name, pattern in self._told.items():
            if name not in self._placed:
                self._lines.append(f"MATCH {pattern}{self._taken(name)}")

    def _test(self, name: str) -> None:
        """What is wanted of a node that is bound."""
        if self._wanted[name]:
            self._lines.append(f"WITH * WHERE {' AND '.join(self._wanted[name])}")
            self._wanted[name] = []

    def _taken(self, *names: str) -> str:
        """The conditions of nodes that a MATCH binds."""
        fresh = [name for name in dict.fromkeys(names) if name not in self._placed]
        tests = [test for name in fresh for test in (foreign(name), *self._wanted[name])]
        self._placed.update(fresh)
        for name in fresh:
            self._wanted[name] = []
        return f" WHERE {' AND '.join(tests)}" if tests else ""

    def _edges(self) -> None:
        left = [(one, predicate) for one, predicate in self._triples if isinstance(predicate, Relation)]
        while left:
            # From what is bound; else from where something is wanted.
            def weight(pair: tuple[Triple, Predicate]) -> tuple[bool, bool]:
                ends = [self._nodes[pair[0].subject], self._nodes[pair[0].object]]
                return not any(end in self._placed for end in ends), not any(self._wanted[end] for end in ends)

            chosen = min(left, key=weight)
            left.remove(chosen)
            one, predicate = chosen
            assert isinstance(predicate, Relation)
            a, b = self._nodes[one.subject], self._nodes[one.object]
            types = "|".join(map(quote, predicate.types))
            self._lines.append(f"MATCH ({a})-[:{types}]->({b}){self._taken(a, b)}")

    def _rest(self) -> None:
        for name in self._nodes.values():
            if name not in self._placed:
                self._lines.append(f"MATCH ({name}){self._taken(name)}")

    def _concepts(self) -> None:
        every = self._vocabulary.concepts
        for one, predicate in self._triples:
            if predicate == "instance_of" and isinstance(one.object, Var):
                subject, known = self._nodes[one.subject], self._text(one.object)
                if known is not None:
                    self._lines.append(f"WITH * WHERE {known} IN labels({subject})")
                    continue
                labels = self._labels(one.object)
                some = self._parameter(list(every) if labels is None else labels)
                self._bind(one.object, f"UNWIND [l IN labels({subject}) WHERE l IN {some} | l] AS %s")
        for term in dict.fromkeys(one.subject for one, _ in self._triples):
            if isinstance(term, Var) and self._sorts[term] == "concept" and self._text(term) is None:
                labels = self._labels(term)
                self._bind(term, f"UNWIND {self._parameter(list(every) if labels is None else labels)} AS %s")
        for one, predicate in self._triples:
            concept = (
                isinstance(one.subject, Iri) or self._sorts.get(one.subject) == "concept"
                if not isinstance(one.subject, Lit)
                else False
            )
            if predicate == "name" and concept and one.subject not in self._nodes:
                label = (
                    self._parameter(self._vocabulary.label(one.subject))
                    if isinstance(one.subject, Iri)
                    else self._text(one.subject)
                )
                self._equal(one.object, f"{self._parameter(every)}[{label}]")

    def _bind(self, term: Var, line: str) -> None:
        name = self._variable(term)
        self._lines.append(line % name)
        self._new[term] = Bound(self._sorts[term], name)

    def _equal(self, term: Term, expression: str) -> None:
        """Bind an expression to a term, or compare it with what the term is already."""
        known = self._text(term)
        if known is not None:
            self._lines.append(f"WITH * WHERE {expression} = {known}")
        elif isinstance(term, Var):
            self._bind(term, f"WITH *, {expression} AS %s")

    def _values(self) -> None:
        """Values of properties, names, and what follows from them."""
        for one, predicate in self._triples:
            if isinstance(predicate, Attribute):
                self._equal(one.object, predicate.value(self._nodes[one.subject]))
        for one, predicate in self._triples:
            if predicate == "name" and one.subject in self._nodes and not isinstance(one.object, Lit):
                known = self._text(one.object)
                name = self._layout.name(self._nodes[one.subject])
                self._lines.append(f"WITH * WHERE {name} = {known}") if known else self._equal(one.object, name)
        for one, predicate in self._triples:
            if isinstance(predicate, str) and predicate in TERMS and isinstance(one.subject, Var):
                raw = self._text(one.subject)
                self._equal(one.object, _term(predicate, self._sorts[one.subject], str(raw)))


def _value(term: Lit) -> Any:
    if term.datatype == f"{XSD}double":
        return float(term.text)
    if term.datatype == f"{XSD}integer":
        return int(term.text)
    if term.datatype == f"{XSD}date":
        return date.fromisoformat(term.text)
    return term.text


def _term(word: str, sort: Sort, raw: str) -> str:
    """A term of the vocabulary about a value."""
    seconds = f"datetime({{date: {raw}, timezone: 'Z'}}).epochSeconds"
    if word == "value":
        return {"value:number": f"toFloat({raw})", "value:boolean": f"toString({raw})"}.get(sort, raw)
    return {
        "unit": "'1'",
        "year": f"{raw}.year",
        "date": raw,
        "start": seconds,
        "end": f"{seconds} + {DAY_SECONDS}",
        "precision": str(int(Precision.DAY)),
    }[word]
