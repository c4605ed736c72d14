"""Groups of a query as clauses of Cypher that leave a row for each solution.

A part is joined with what stands before it by going on from its rows. That is what SPARQL means,
where groups are worked out by themselves and then joined, only where a shared variable is bound on
both sides for sure; where it may not be, the query is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.base import give
from condgraph.languages.sparql.syntax import (
    Along,
    Basic,
    Bind,
    Either,
    Exists,
    Expression,
    Group,
    Lit,
    Maybe,
    Nested,
    Part,
    Values,
    Var,
    Without,
    beyond,
    parts_of,
)
from condgraph.live.basic import Pattern
from condgraph.live.expressions import Bound, Expressions, Made
from condgraph.live.vocabulary import Vocabulary

if TYPE_CHECKING:
    from condgraph.cypher.native.layout import NativeLayout

Scope = dict[Var, Bound]
#: Parts that make what follows depend on their place.
_PLACED: Final = (Maybe, Without, Bind)


class Writer:
    """Writes the groups of one query. `parameters` are what its text needs."""

    def __init__(self, vocabulary: Vocabulary, layout: NativeLayout) -> None:
        self.vocabulary, self.layout = vocabulary, layout
        self.parameters: dict[str, Any] = {**layout.parameters(""), "p": {}}
        self._variables: dict[Var, str] = {}
        self._count = 0

    def variable(self, found: Var) -> str:
        """A variable of SPARQL in Cypher: the same one wherever it stands."""
        return self._variables.setdefault(found, f"v{len(self._variables) + 1}")

    def fresh(self) -> str:
        """A variable for anything else."""
        self._count += 1
        return f"x{self._count}"

    def parameter(self, value: Any) -> str:
        """A value."""
        return give(self.parameters, f"p{len(self.parameters['p']) + 1}", value)

    def expressions(self, scope: Scope, known: dict[Expression, Made] | None = None) -> Expressions:
        """What says expressions in a scope."""
        return Expressions(self.vocabulary, self.parameter, self.layout.id, scope, known or {})

    # -- groups ------------------------------------------------------------------------------------

    def group(self, group: Group, outer: Scope, seen: Iterable[Var] = ()) -> tuple[list[str], Scope]:
        """Clauses for a group that is joined with the rows of a scope, and what is bound behind them.
        Its filters may also see the variables `seen`.
        """
        lines, scope = list[str](), dict(outer)
        own: set[Var] = set()
        for part in _ordered(group.parts):
            made = self._part(part, scope, own)
            lines += made
            own.update(Group((part,), ()).variables())
        allowed = {one: bound for one, bound in scope.items() if one in own or one in set(seen)}
        tests = []
        for one in group.filters:
            before, known = self._existing(one, scope, allowed)
            lines += before
            tests.append(f"({self.expressions(allowed, known).condition(one)})")
        if tests:
            if not group.parts:
                raise beyond("a group of filters alone")
            lines.append(f"WITH * WHERE {' AND '.join(tests)}")
        return lines, scope

    def _part(self, part: Part, scope: Scope, own: set[Var]) -> list[str]:
        """Clauses for a part; what it binds is put into the scope."""
        if isinstance(part, Basic):
            lines, new = self._basic(part, scope)
            scope.update(new)
            return ["CALL (*) {", *lines, "}"]
        if isinstance(part, Values):
            return self._rows(part, scope)
        if isinstance(part, Either):
            return self._union(part, scope)
        if isinstance(part, Bind):
            return self._bind(part, scope, own)
        if isinstance(part, Along | Nested):
            what = "a path of any length, or with alternatives" if isinstance(part, Along) else "a SELECT within a query"
            raise beyond(f"{what}, live", "the replica (without --live) has it")
        # What is bound outside of this group is not known within it.
        mentioned = set(part.group.variables())
        if any(one in scope and one not in own for one in mentioned):
            raise beyond("an OPTIONAL or MINUS in a group with variables of another one")
        if any(not isinstance(one, Basic) for one in part.group.parts) or not part.group.parts:
            raise beyond("an OPTIONAL or MINUS that has more than triples and filters")
        if isinstance(part, Without):
            return self._without(part.group, scope, own & mentioned)
        lines, inner = self.group(part.group, scope, own)
        new = {one: bound for one, bound in inner.items() if one not in scope}
        scope.update({one: Bound(bound.sort, bound.text, certain=False) for one, bound in new.items()})
        returned = ", ".join(bound.text for bound in new.values()) or f"1 AS {self.fresh()}"
        return ["OPTIONAL CALL (*) {", *lines, f"RETURN {returned}", "}"]

    def _basic(self, part: Basic, scope: Scope) -> tuple[list[str], Scope]:
        return Pattern(part, scope, self.vocabulary, self.layout, self.variable, self.fresh, self.parameter).clauses()

    def _rows(self, part: Values, scope: Scope) -> list[str]:
        if any(one in scope for one in part.variables):
            raise beyond("VALUES of variables that are bound before")
        columns = []
        for number, variable in enumerate(part.variables):
            terms = [row[number] for row in part.rows]
            plain = [term for term in terms if isinstance(term, Lit) and not term.language]
            if len(plain) != len(terms) or any(not term.datatype.endswith("#string") for term in plain):
                raise beyond("VALUES of anything but plain texts", "FILTER with = and IN compares numbers and IRIs")
            columns.append([term.text for term in plain])
            scope[variable] = Bound("text", self.variable(variable))
        row = self.fresh()
        names = ", ".join(f"{row}[{number}] AS {scope[one].text}" for number, one in enumerate(part.variables))
        return [f"UNWIND {self.parameter([list(one) for one in zip(*columns, strict=True)])} AS {row}", f"WITH *, {names}"]

    def _union(self, part: Either, scope: Scope) -> list[str]:
        made = [self.group(branch, scope) for branch in part.branches]
        if any(not lines for lines, _ in made):
            raise beyond("an empty group")
        new: dict[Var, Bound] = {}
        for _, inner in made:
            for one, bound in inner.items():
                if one in scope:
                    continue
                known = new.setdefault(one, bound)
                if known.sort != bound.sort:
                    raise beyond(f"?{one.name}, which is {known.sort} in one branch and {bound.sort} in another")
        for one, bound in new.items():
            everywhere = all(one in inner and inner[one].certain for _, inner in made)
            scope[one] = Bound(bound.sort, bound.text, certain=everywhere)
        texts = []
        for lines, inner in made:
            columns = [bound.text if one in inner else f"null AS {bound.text}" for one, bound in new.items()]
            texts.append("\n".join([*lines, f"RETURN {', '.join(columns) or '1 AS ' + _NOTHING}"]))
        if not new:
            raise beyond("a UNION that binds nothing")
        return ["CALL (*) {", "\nUNION ALL\n".join(texts), "}"]

    def _bind(self, part: Bind, scope: Scope, own: set[Var]) -> list[str]:
        if part.variable in scope:
            raise beyond(f"BIND of ?{part.variable.name}, which is bound before")
        made = self.expressions({one: bound for one, bound in scope.items() if one in own}).made(part.expression)
        scope[part.variable] = Bound(made.sort, self.variable(part.variable), made.certain)
        return [f"WITH *, {made.text} AS {scope[part.variable].text}"]

    def _without(self, group: Group, scope: Scope, shared: set[Var]) -> list[str]:
        if not shared:
            # Nothing is taken away where no variable is shared.
            return []
        lines, _ = self.group(group, {one: bound for one, bound in scope.items() if one in shared})
        found = self.fresh()
        return [*self._found(lines, found), f"WITH * WHERE NOT {found}"]

    def _found(self, lines: list[str], name: str) -> list[str]:
        """Clauses that say whether some leave a row."""
        one = self.fresh()
        return ["CALL (*) {", *lines, f"WITH 1 AS {one} LIMIT 1", f"RETURN count({one}) > 0 AS {name}", "}"]

    def _existing(self, expression: Expression, scope: Scope, allowed: Scope) -> tuple[list[str], dict[Expression, Made]]:
        """Clauses for what EXISTS in an expression says, and how it is said then."""
        lines, known = list[str](), dict[Expression, Made]()
        for one in parts_of(expression):
            if not isinstance(one, Exists):
                continue
            if any(not isinstance(part, Basic) for part in one.group.parts) or not one.group.parts:
                raise beyond("EXISTS of more than triples and filters")
            if any(found in scope and found not in allowed for found in one.group.variables()):
                raise beyond("EXISTS in a group with variables of another one")
            inner, _ = self.group(one.group, allowed, allowed)
            name = self.fresh()
            lines += self._found(inner, name)
            known[one] = Made(f"NOT {name}" if one.negated else name, "boolean", True)
        return lines, known


_NOTHING: Final = "nothing"


def _ordered(parts: tuple[Part, ...]) -> list[Part]:
    """The parts with VALUES in front, which is the same where no part before depends on its place."""
    for number, part in enumerate(parts):
        if isinstance(part, Values) and any(isinstance(one, _PLACED) for one in parts[:number]):
            raise beyond("VALUES behind OPTIONAL, MINUS or BIND", "write it first")
    return sorted(parts, key=lambda part: not isinstance(part, Values))
