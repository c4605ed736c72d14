"""Fast execution of plans whose operators return few rows, on Python lists instead of arrays.

A call of NumPy takes longer than a loop over twenty rows, and most queries sent as text begin at a name and reach
some dozens of entities. A plan over rows (`algebra.solutions`) is turned into a chain of functions once; its start
and its texts are parameters. The chain returns the same as the operators of `execute.solutions`, or None if that is
not certain: for more than `MAX_ROWS` rows, and for values that Python orders or compares differently.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from condgraph.engine.algebra import (
    Among,
    ById,
    ByName,
    Compare,
    Entities,
    Facts,
    Intersect,
    Node,
    Scan,
    Solutions,
    Where,
    postorder,
    remade,
)
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra import solutions as alg
from condgraph.engine.errors import CondgraphError
from condgraph.engine.execute.edges import Edge, may_meet
from condgraph.engine.execute.expressions import Compiler
from condgraph.engine.execute.grid import SEPARATOR
from condgraph.engine.execute.rowset import term_text
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.terms import EntityAt, GraphTerms, StatementAt
from condgraph.engine.snapshot.snapshot import make_room

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The largest number of rows of one operator; for more, arrays are faster.
MAX_ROWS: Final = 1_000
#: The largest index of one predicate, in bytes.
_MAX_INDEX_BYTES: Final = 64_000_000

#: Columns by variable: numbers of entities or statements, or values; None where unbound.
_Columns: TypeAlias = dict[str, list[Any]]
_Rows: TypeAlias = tuple[int, _Columns]
#: The state of a run: the texts of the parameters by name, and the rows of shared operators by identity.
_State: TypeAlias = dict[Any, Any]
_Evaluate: TypeAlias = Callable[[_State], _Rows]
_Values: TypeAlias = Callable[[int, _Columns, _State], list[Any]]
#: The kinds of an operator's columns.
_Kinds: TypeAlias = dict[str, str]

_ENTITY, _STATEMENT, _VALUE = "entity", "statement", "value"


class _Kind(str):
    """A kind with more information. `name`: all entities have this name, a text of the plan, which may be a
    parameter.
    """

    name: str | None = None

    @classmethod
    def of(cls, sets: Sequence[Entities]) -> str:
        """Return the kind of a variable that is in some sets."""
        for entities in sets:
            if isinstance(entities, ByName) and len(entities.names) == 1:
                kind = cls(_ENTITY)
                kind.name = entities.names[0]
                return kind
        return _ENTITY


#: Values that are texts, or null.
_TEXT: Final = _Kind(_VALUE)
#: Counts, never null.
_COUNT: Final = _Kind(_VALUE)


_NONE: Final = type(None)
_SCALAR_TYPES: Final = frozenset((str, int, float, bool, _NONE))
_LISTED: Final = _SCALAR_TYPES | {list}
#: Types that Python orders and compares like terms.
_COMPARABLE: Final[tuple[frozenset[type], ...]] = (frozenset((str,)), frozenset((int,)), frozenset((bool,)))
#: Functions whose result changes with each call.
_VOLATILE: Final = frozenset(("rand", "randomuuid", "timestamp"))


class _Unsuited(Exception):
    """Raised for a plan, or rows, that the operators over arrays must handle."""


class SmallRows:
    """A plan as functions over lists. `names` are the names of its columns."""

    __slots__ = ("_columns", "_evaluate", "_kinds", "_ordered", "_plain", "names", "snapshot")

    def __init__(
        self, snapshot: Snapshot, names: tuple[str, ...], columns: Sequence[str], make: _Evaluate, kinds: _Kinds, ordered: bool
    ) -> None:
        self.snapshot, self._evaluate, self._ordered, self.names = snapshot, make, ordered, names
        self._columns, self._kinds = columns, [kinds[name] for name in columns]
        self._plain = all(kind is _TEXT or kind is _COUNT for kind in self._kinds)

    def run(self, texts: dict[Any, Any]) -> list[tuple[Any, ...]] | None:
        """Return the rows in the order of an answer, or None if the operators over arrays must compute them. `texts`
        are the texts of the parameters by name; the run writes to this dictionary.
        """
        try:
            size, columns = self._evaluate(texts)
            lists = [columns[name] for name in self._columns]
            if self._plain:
                if size < 2 or self._ordered:
                    return list(zip(*lists, strict=True))
                try:
                    # Fails if the order depends on a null.
                    return list(zip(sorted(lists[0]))) if len(lists) == 1 else sorted(zip(*lists, strict=True))
                except TypeError:
                    pass
            if size > 1 and not self._ordered:
                lists = _in_fixed_order(lists, self._kinds)
            for index, kind in enumerate(self._kinds):
                if kind is not _TEXT and kind is not _COUNT:
                    lists[index] = self._shown(lists[index], kind)
            return list(zip(*lists, strict=True))
        except (_Unsuited, CondgraphError):
            # The operators over arrays raise the errors.
            return None

    def _shown(self, values: list[Any], kind: str) -> list[Any]:
        """Return the values of a column as in an answer."""
        if kind == _VALUE:
            if set(map(type, values)) <= _SCALAR_TYPES:
                return values
            return [self._of_list(value) if type(value) is list else _scalar(value) for value in values]
        if kind == _STATEMENT:
            raise _Unsuited
        entity = self.snapshot.entity
        return [None if number is None else entity(number) for number in values]

    def _of_list(self, values: list[Any]) -> tuple[Any, ...]:
        return tuple([self.snapshot.entity(value.number) if type(value) is EntityAt else _scalar(value) for value in values])


def texts_of(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return the texts of rows returned by `SmallRows.run`."""
    return [SEPARATOR.join(["" if value is None else _text(value) for value in row]) for row in rows]


def _text(value: Any) -> str:
    if type(value) is tuple:
        return f"[{', '.join(['' if item is None else _text(item) for item in value])}]"
    return value if type(value) is str else term_text(value)


def _scalar(value: Any) -> Any:
    if type(value) not in _SCALAR_TYPES:
        raise _Unsuited
    return value


# -- order and equality ------------------------------------------------------------------------------


def _keys(values: list[Any], kind: str) -> list[Any]:
    """Return keys of a column that are equal for equal terms and sort in the fixed order."""
    if kind is _COUNT or (kind is _TEXT and None not in values):
        return values
    types: set[type] = set(map(type, values))
    if frozenset(types) in _COMPARABLE or not types:
        return values
    if _NONE in types:
        types.discard(_NONE)
        if frozenset(types) in _COMPARABLE or not types:
            return [(value is None, value) for value in values] if types else [0] * len(values)
    elif types == {float} and all(isfinite(value) and value for value in values):
        return values
    raise _Unsuited


def _in_fixed_order(lists: list[list[Any]], kinds: list[str]) -> list[list[Any]]:
    """Return columns with their rows in the fixed order."""
    if len(lists) == 1:
        values = lists[0]
        row_keys = _keys(values, kinds[0])
        return [sorted(values)] if row_keys is values else [[values[place] for place in _sorted_by([row_keys])]]
    keys: list[list[Any]] = []
    for values, kind in zip(lists, kinds, strict=True):
        try:
            keys.append(_keys(values, kind))
        except _Unsuited:
            # Not needed if the columns before distinguish all rows.
            if len(set(zip(*keys, strict=True))) < len(values):
                raise
            break
    if len(keys) == len(lists) and all(key is values for key, values in zip(keys, lists, strict=True)):
        return [list(column) for column in zip(*sorted(zip(*lists, strict=True)), strict=True)]
    order = _sorted_by(keys)
    return [[values[place] for place in order] for values in lists]


def _sorted_by(keys: list[list[Any]]) -> list[int]:
    """Return the positions of rows, sorted by columns of keys."""
    if len(keys) == 1:
        return sorted(range(len(keys[0])), key=keys[0].__getitem__)
    row_keys = list(zip(*keys, strict=True))
    return sorted(range(len(row_keys)), key=row_keys.__getitem__)


def _take(columns: _Columns, places: Sequence[int]) -> _Columns:
    return {name: [values[place] for place in places] for name, values in columns.items()}


def _check_size(size: int) -> None:
    if size > MAX_ROWS:
        raise _Unsuited


# -- from a plan to functions ------------------------------------------------------------------------


def small_rows(snapshot: Snapshot, plan: Node, order: Sequence[Node], holes: Mapping[str, str]) -> SmallRows | None:
    """Return the plan as functions over lists, or None if it has an unsupported operator. `holes` maps texts of the
    plan to the names of the parameters that replace them.
    """
    if not isinstance(plan, alg.Project) or not plan.names:
        return None
    try:
        planner = _Planner(snapshot, order, holes)
        pairs, input_node = _through(planner, plan)
        columns = [old for _, old in pairs]
        make, kinds = planner.rows(input_node, set(columns))
        return SmallRows(snapshot, plan.variables, columns, make, kinds, planner.ordered(plan))
    except (_Unsuited, CondgraphError):
        return None


class _Planner:
    """Builds the functions of one plan."""

    def __init__(self, snapshot: Snapshot, order: Sequence[Node], holes: Mapping[str, str]) -> None:
        self.snapshot, self.holes = snapshot, holes
        takers: dict[int, int] = {}
        for node in order:
            for child in node.inputs():
                takers[id(child)] = takers.get(id(child), 0) + 1
        self.shared = {key for key, count in takers.items() if count > 1}
        self._planned: dict[int, tuple[_Evaluate, _Kinds]] = {}
        #: Variables that copy another one.
        self.same: dict[str, str] = {}
        self.mentioned = self._mentioned(order)

    @staticmethod
    def _mentioned(order: Sequence[Node]) -> set[str]:
        """Return the variables that the plan uses for more than an order."""
        names: set[str] = set()
        for node in order:
            if isinstance(node, alg.Filter):
                names |= ex.variables(node.test)
            elif isinstance(node, alg.Extend | alg.Unwind):
                names |= ex.variables(node.expression)
            elif isinstance(node, alg.Project):
                names.update(old for _, old in node.names)
            elif isinstance(node, alg.GroupRows):
                names.update([*node.keys, *(aggregate.of for aggregate in node.aggregates if aggregate.of is not None)])
        return names

    def ordered(self, node: Solutions) -> bool:
        """Return whether the rows of an operator have an order of their own."""
        while isinstance(node, alg.Project | alg.Extend | alg.Filter | alg.BoundRows | alg.DistinctRows):
            node = node.of
        return isinstance(node, alg.OrderRows | alg.SliceRows)

    def rows(self, node: Solutions, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
        """Return the function that makes the rows of an operator, with the needed columns (None: all), and their
        kinds.
        """
        shared = id(node) in self.shared
        if shared:
            needed = None
            if id(node) in self._planned:
                return self._planned[id(node)]
        build = _BUILD.get(type(node))
        if build is None:
            raise _Unsuited
        make, kinds = build(self, node, needed)
        if shared:
            key, once = id(node), make

            def again(known: _State) -> _Rows:
                rows: _Rows | None = known.get(key)
                if rows is None:
                    rows = known[key] = once(known)
                # A copy, because operators above add columns.
                return rows[0], dict(rows[1])

            make = again
            self._planned[key] = make, kinds
        return make, kinds

    # -- sets ----------------------------------------------------------------------------------------

    def is_open(self, node: Node) -> bool:
        """Return whether a set depends on parameters or on rows."""
        for part in postorder(node):
            if isinstance(part, alg.EntitiesOf | alg.FactsOf | Solutions):
                return True
            if isinstance(part, ByName) and any(name in self.holes for name in part.names):
                return True
            if isinstance(part, ById) and any(ident in self.holes for ident in part.ids):
                return True
            if isinstance(part, Where) and isinstance(part.condition, Compare) and part.condition.value in self.holes:
                return True
        return False

    def entities(self, node: Entities) -> Callable[[_State], list[int]]:
        """Return a function that returns the entities of a set, sorted."""
        if isinstance(node, ByName) and len(node.names) == 1:
            named, name = self.snapshot.named, node.names[0]
            hole = self.holes.get(name)
            if hole is None:
                entities: list[int] = named(name).tolist()
                return lambda known: entities
            return lambda known: named(known[hole]).tolist()
        if isinstance(node, alg.EntitiesOf):
            rows, kinds = self.rows(node.of, {node.variable})
            if kinds[node.variable] != _ENTITY:
                raise _Unsuited
            variable = node.variable
            return lambda known: sorted({number for number in rows(known)[1][variable] if number is not None})
        if isinstance(node, Intersect):
            parts = [self.entities(part) for part in node.parts]
            return lambda known: sorted(set.intersection(*[set(part(known)) for part in parts]))
        if self.is_open(node):
            return self._rebuilt(node)
        result: Any = Run(self.snapshot).execute(node)
        _check_size(len(result))
        constant: list[int] = result.tolist()
        return lambda known: constant

    def _rebuilt(self, node: Entities) -> Callable[[_State], list[int]]:
        """Return a function that computes a set with the operators over arrays, with texts in place of parameters."""
        if any(isinstance(part, alg.EntitiesOf | alg.FactsOf | Solutions) for part in postorder(node)):
            raise _Unsuited
        snapshot, holes = self.snapshot, self.holes

        def evaluate(known: _State) -> list[int]:
            def fill(part: Any) -> Any:
                return known[holes[part]] if type(part) is str and part in holes else part

            numbers: Any = Run(snapshot).execute(remade(node, fill))
            _check_size(len(numbers))
            return numbers.tolist()  # type: ignore[no-any-return]

        return evaluate

    # -- expressions ---------------------------------------------------------------------------------

    def values(self, e: ex.Expression, kinds: _Kinds) -> _Values:
        """Return a function that returns the value of an expression for each row."""
        quick = self._quick(e, kinds)
        if quick is not None:
            return quick
        names = [name for name in kinds if name in ex.variables(e)]
        for part in ex.walk(e):
            if isinstance(part, ex.Call) and (part.name in _VOLATILE or not part.arguments):
                raise _Unsuited
        texts: list[str] = []

        def open_text(part: Any) -> Any:
            if isinstance(part, ex.Constant) and type(part.value) is str and part.value in self.holes:
                texts.append(self.holes[part.value])
                return ex.Variable(f"\0{self.holes[part.value]}")
            return part

        e = remade(e, open_text)
        texts = list(dict.fromkeys(texts))
        places = {name: at for at, name in enumerate([*names, *(f"\0{text}" for text in texts)])}
        evaluate = Compiler(places, GraphTerms(self.snapshot))(e)
        sources = [(name, {_ENTITY: EntityAt, _STATEMENT: StatementAt}.get(kinds[name])) for name in names]

        def values(size: int, columns: _Columns, known: _State) -> list[Any]:
            # Rows that are only counted may exceed the limit.
            _check_size(size)
            terms = [
                columns[name] if wrap is None else [None if number is None else wrap(number) for number in columns[name]]
                for name, wrap in sources
            ]
            terms += [[known[text]] * size for text in texts]
            return [evaluate(row) for row in zip(*terms, strict=True)] if terms else [evaluate(()) for _ in range(size)]

        return values

    def _quick(self, e: ex.Expression, kinds: _Kinds) -> _Values | None:
        """Return the same for the most frequent expressions: names, properties, and `coalesce`."""
        if isinstance(e, ex.Call) and e.arguments and isinstance(e.arguments[0], ex.Variable):
            variable = e.arguments[0].name
            if e.name == "name" and kinds.get(variable) == _ENTITY:
                names_of = self.snapshot.names_of

                def names(size: int, columns: _Columns, known: _State) -> list[Any]:
                    numbers = columns[variable]
                    if None in numbers:
                        return [None if number is None else names_of([number])[0] for number in numbers]
                    return names_of(numbers)

                return names
            if e.name == "coalesce" and variable in kinds:
                alternatives = [self.values(argument, kinds) for argument in e.arguments[1:]]

                def first(size: int, columns: _Columns, known: _State) -> list[Any]:
                    values = columns[variable]
                    for alternative in alternatives:
                        if None not in values:
                            break
                        values = [b if a is None else a for a, b in zip(values, alternative(size, columns, known), strict=True)]
                    return values

                return first if kinds[variable] == _VALUE else None
        if isinstance(e, ex.Property) and e.period is None and isinstance(e.of, ex.Variable) and kinds.get(e.of.name) == _ENTITY:
            return self._property(e.of.name, e.key)
        return None

    def _property(self, variable: str, key: str) -> _Values:
        value = GraphTerms(self.snapshot).value
        cached: dict[int, Any] = self.snapshot.schema.kept.setdefault("values by entity", {}).setdefault(key, {})

        def values(size: int, columns: _Columns, known: _State) -> list[Any]:
            result: list[Any] = []
            for number in columns[variable]:
                if number is None:
                    result.append(None)
                    continue
                if number not in cached:
                    make_room(cached)
                    cached[number] = value(EntityAt(number), key)
                result.append(cached[number])
            return result

        return values

    @staticmethod
    def kind_of(e: ex.Expression, kinds: _Kinds) -> str:
        """Return the kind of the values of an expression other than a variable."""
        if isinstance(e, ex.Call) and e.name == "name" and isinstance(e.arguments[0], ex.Variable):
            return _TEXT if kinds.get(e.arguments[0].name) == _ENTITY else _VALUE
        return _VALUE

    def test(self, e: ex.Expression, kinds: _Kinds) -> _Values | None:
        """Return a function that tells whether a condition is true, or None if it always is."""
        if isinstance(e, ex.Comparison) and e.operator in ("=", "<>"):
            left, right = e.left, e.right
            if e.operator == "=" and isinstance(left, ex.Call) and isinstance(right, ex.Constant) and left.name == "name":
                (argument,) = left.arguments
                kind = kinds.get(argument.name) if isinstance(argument, ex.Variable) else None
                if isinstance(kind, _Kind) and kind.name == right.value:
                    return None
            if isinstance(left, ex.Variable) and isinstance(right, ex.Variable):
                left_name, right_name = left.name, right.name
                kind = kinds.get(left_name)
                if kind != kinds.get(right_name) or kind not in (_ENTITY, _STATEMENT):
                    raise _Unsuited
                equal = e.operator == "="
                return lambda size, columns, known: [
                    a is not None and b is not None and (a == b) is equal
                    for a, b in zip(columns[left_name], columns[right_name], strict=True)
                ]
        return self.values(e, kinds)


def _through(planner: _Planner, node: alg.Project) -> tuple[list[tuple[str, str]], Solutions]:
    """Return the columns of a projection merged with the projections below it that have no other consumer, and the
    operator below these.
    """
    pairs, below = list(node.names), node.of
    while isinstance(below, alg.Project | alg.Extend) and id(below) not in planner.shared:
        if isinstance(below, alg.Project):
            sources = dict(below.names)
            if any(old not in sources for _, old in pairs):
                raise _Unsuited
            pairs = [(new, sources[old]) for new, old in pairs]
        elif (name := _copied_variable(below)) is not None:
            pairs = [(new, name if old == below.variable else old) for new, old in pairs]
        else:
            break
        below = below.of
    return pairs, below


def _copied_variable(node: alg.Extend) -> str | None:
    """Return the variable that an `Extend` copies: a variable, or a count (never null) in `coalesce`."""
    e = node.expression
    if isinstance(e, ex.Call) and e.name == "coalesce" and isinstance(e.arguments[0], ex.Variable):
        aggregates = node.of.aggregates if isinstance(node.of, alg.GroupRows) else ()
        if e.arguments[0].name in [aggregate.name for aggregate in aggregates if aggregate.function == "count"]:
            e = e.arguments[0]
    return e.name if isinstance(e, ex.Variable) else None


def _project(planner: _Planner, node: alg.Project, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    pairs, below = _through(planner, node)
    pairs = [(new, old) for new, old in pairs if needed is None or new in needed]
    of, kinds = planner.rows(below, {old for _, old in pairs})
    if any(old not in kinds for _, old in pairs):
        raise _Unsuited

    def project(known: _State) -> _Rows:
        size, columns = of(known)
        return size, {new: columns[old] for new, old in pairs}

    return project, {new: kinds[old] for new, old in pairs}


def _extend(planner: _Planner, node: alg.Extend, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    e, variable = node.expression, node.variable
    if needed is not None and variable not in needed:
        return planner.rows(node.of, needed)
    if (
        isinstance(e, ex.Call)
        and e.name == "orderkey"
        and isinstance(e.arguments[0], ex.Variable)
        and variable not in planner.mentioned
    ):
        # Values of one type are their own keys, and `_keys` rejects others.
        e = e.arguments[0]
    name = e.name if isinstance(e, ex.Variable) else _copied_variable(node)
    input_columns = None if needed is None else (needed - {variable}) | ({name} if name is not None else ex.variables(e))
    make_input, kinds = planner.rows(node.of, input_columns)
    if name is not None:
        if name not in kinds or (e is not node.expression and kinds[name] != _VALUE):
            raise _Unsuited
        planner.same[variable] = planner.same.get(name, name)

        def alias(known: _State) -> _Rows:
            size, columns = make_input(known)
            columns[variable] = columns[name]
            return size, columns

        return alias, {**kinds, variable: kinds[name]}
    values = planner.values(e, kinds)
    kind = planner.kind_of(e, kinds)

    def extend(known: _State) -> _Rows:
        size, columns = make_input(known)
        results = columns[variable] = values(size, columns, known)
        if kind is not _TEXT and not _LISTED.issuperset(map(type, results)):
            raise _Unsuited
        return size, columns

    return extend, {**kinds, variable: kind}


def _filter(planner: _Planner, node: alg.Filter, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    # The kinds of the input tell which conditions always hold.
    compiled = planner.rows(node.of, None if needed is None else needed | ex.variables(node.test))
    make_input, kinds = compiled
    test = planner.test(node.test, kinds)
    if test is None:
        return planner.rows(node.of, needed)
    holds = test

    def chosen(known: _State) -> _Rows:
        size, columns = make_input(known)
        truths = holds(size, columns, known)
        places = [place for place, truth in enumerate(truths) if truth is True]
        return (size, columns) if len(places) == size else (len(places), _take(columns, places))

    return chosen, kinds


def _bound(planner: _Planner, node: alg.BoundRows, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    make_input, kinds = planner.rows(node.of, None if needed is None else needed | set(node.names))
    if any(name not in kinds for name in node.names):
        raise _Unsuited

    def bound(known: _State) -> _Rows:
        size, columns = make_input(known)
        lists = [columns[name] for name in node.names]
        places = [place for place in range(size) if all(values[place] is not None for values in lists)]
        return (size, columns) if len(places) == size else (len(places), _take(columns, places))

    return bound, kinds


def _distinct(planner: _Planner, node: alg.DistinctRows, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    make_input, kinds = planner.rows(node.of, None)
    names = list(kinds)

    def distinct(known: _State) -> _Rows:
        size, columns = make_input(known)
        if size < 2:
            return size, columns
        keys = [_keys(columns[name], kinds[name]) for name in names]
        if len(keys) == 1 and keys[0] is columns[names[0]]:
            only = list(dict.fromkeys(keys[0]))
            return len(only), {names[0]: only}
        row_keys = list(zip(*keys, strict=True))
        first: dict[Any, int] = {}
        for place, row_key in enumerate(row_keys):
            first.setdefault(row_key, place)
        places = list(first.values())
        return (size, columns) if len(places) == size else (len(places), _take(columns, places))

    return distinct, kinds


def _order(planner: _Planner, node: alg.OrderRows, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    make_input, kinds = planner.rows(node.of, None)
    if any(row_order.variable not in kinds for row_order in node.by) or list(kinds) != list(node.of.variables):
        raise _Unsuited
    # Copies of a column, and columns ordered by, need not break ties.
    unordered = {planner.same.get(name, name): name for name in kinds}
    for by in node.by:
        unordered.pop(planner.same.get(by.variable, by.variable), None)
    tie_breakers, steps = list(unordered.values()), list(reversed(node.by))

    def order(known: _State) -> _Rows:
        size, columns = make_input(known)
        if size < 2:
            return size, columns
        places = list(range(size))
        if tie_breakers:
            places = _sorted_by([_keys(columns[name], kinds[name]) for name in tie_breakers])
        for by in steps:
            values = columns[by.variable]
            keys = _keys(values, kinds[by.variable])
            places.sort(key=keys.__getitem__, reverse=by.descending)
            if keys is not values and None in values:
                places.sort(key=[(value is None) is not by.first for value in values].__getitem__)
        return size, _take(columns, places)

    return order, kinds


def _slice(planner: _Planner, node: alg.SliceRows, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    ordered = planner.ordered(node.of)
    make_input, kinds = planner.rows(node.of, needed if ordered else None)
    if node.start < 0 or (node.number is not None and node.number < 0) or (not ordered and list(kinds) != list(node.of.variables)):
        raise _Unsuited
    stop = None if node.number is None else node.start + node.number
    names = list(kinds)

    def part(known: _State) -> _Rows:
        size, columns = make_input(known)
        if not ordered and size > 1:
            columns = dict(zip(names, _in_fixed_order([columns[name] for name in names], list(kinds.values())), strict=True))
        last = size if stop is None else min(stop, size)
        return max(last - node.start, 0), {name: values[node.start : last] for name, values in columns.items()}

    return part, kinds


def _group(planner: _Planner, node: alg.GroupRows, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    for aggregate in node.aggregates:
        if aggregate.function not in ("count", "list") or (
            aggregate.of is None and (aggregate.distinct or aggregate.function == "list")
        ):
            raise _Unsuited
    used = {*node.keys, *(aggregate.of for aggregate in node.aggregates if aggregate.of is not None)}
    make_input, kinds = planner.rows(node.of, used)
    if not used <= set(kinds):
        raise _Unsuited
    ordered, keys = planner.ordered(node.of), node.keys
    result_kinds = {**{name: kinds[name] for name in keys}}
    result_kinds |= {aggregate.name: _COUNT if aggregate.function == "count" else _VALUE for aggregate in node.aggregates}
    if len(keys) < 2 and all(aggregate.of is None for aggregate in node.aggregates):
        return _counting(
            make_input, keys[0] if keys else None, [aggregate.name for aggregate in node.aggregates], kinds
        ), result_kinds

    def group(known: _State) -> _Rows:
        size, columns = make_input(known)
        row_keys: list[Any] = []
        if len(keys) == 1:
            row_keys = _keys(columns[keys[0]], kinds[keys[0]])
        elif keys:
            row_keys = list(zip(*[_keys(columns[name], kinds[name]) for name in keys], strict=True))
        groups: dict[Any, list[int]] = {}
        if keys:
            for place, row_key in enumerate(row_keys):
                members = groups.get(row_key)
                if members is None:
                    groups[row_key] = [place]
                else:
                    members.append(place)
        else:
            groups[None] = list(range(size))
        lists = list(groups.values())
        result: _Columns = {name: [columns[name][places[0]] for places in lists] for name in keys}
        for aggregate in node.aggregates:
            if aggregate.of is None:
                result[aggregate.name] = list(map(len, lists))
                continue
            values = columns[aggregate.of]
            sortable = _keys(values, kinds[aggregate.of])
            result[aggregate.name] = [
                _summed(aggregate, places, values, sortable, kinds[aggregate.of], ordered) for places in lists
            ]
        return len(lists), result

    return group, result_kinds


def _counting(of: _Evaluate, key: str | None, names: list[str], kinds: _Kinds) -> _Evaluate:
    """Return a function that groups by at most one column and counts rows."""

    def counted(known: _State) -> _Rows:
        size, columns = of(known)
        if key is None:
            return 1, {name: [size] for name in names}
        values = columns[key]
        keys = _keys(values, kinds[key])
        counts: dict[Any, int] = {}
        for group_key in keys:
            counts[group_key] = counts.get(group_key, 0) + 1
        key_values = list(counts) if keys is values else list(dict(zip(keys, values, strict=True)).values())
        numbers = list(counts.values())
        return len(numbers), {key: key_values, **dict.fromkeys(names, numbers)}

    return counted


def _summed(one: alg.RowAggregate, places: list[int], values: list[Any], keys: list[Any], kind: str, ordered: bool) -> Any:
    """Return a count or a list of the terms of a group."""
    places = [place for place in places if values[place] is not None]
    if one.distinct:
        first: dict[Any, int] = {}
        for place in places:
            first.setdefault(keys[place], place)
        places = list(first.values())
    if one.function == "count":
        return len(places)
    if not ordered:
        places.sort(key=keys.__getitem__)
    wrap: Any = {_ENTITY: EntityAt, _STATEMENT: StatementAt}.get(kind)
    return [values[place] if wrap is None else wrap(values[place]) for place in places]


def _unwind(planner: _Planner, node: alg.Unwind, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    if node.place is not None:
        raise _Unsuited
    make_input, kinds = planner.rows(
        node.of, None if needed is None else (needed - {node.variable}) | ex.variables(node.expression)
    )
    values = planner.values(node.expression, kinds)

    def unwind(known: _State) -> _Rows:
        size, columns = make_input(known)
        positions: list[int] = []
        items: list[Any] = []
        for place, value in enumerate(values(size, columns, known)):
            listed = [] if value is None else value if type(value) is list else [value]
            positions.extend([place] * len(listed))
            items.extend(listed)
            _check_size(len(items))
        if not set(map(type, items)) <= _SCALAR_TYPES:
            raise _Unsuited
        return len(positions), {**_take(columns, positions), node.variable: items}

    return unwind, {**kinds, node.variable: _VALUE}


def _entity_rows(planner: _Planner, node: alg.EntityRows, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    entities, name = planner.entities(node.entities), node.variable

    def rows(known: _State) -> _Rows:
        numbers = entities(known)
        _check_size(len(numbers))
        return len(numbers), {name: numbers}

    return rows, {name: _Kind.of([node.entities])}


def _join(planner: _Planner, node: alg.Join | alg.LeftJoin, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    if isinstance(node, alg.LeftJoin) and node.condition is not None:
        raise _Unsuited
    optional = isinstance(node, alg.LeftJoin)
    shared = [name for name in node.left.variables if name in node.right.variables]
    if not shared:
        raise _Unsuited
    used = None if needed is None else needed | set(shared)
    if isinstance(node.right, alg.Pattern) and not optional and id(node.right) not in planner.shared:
        left = planner.rows(node.left, used)
        try:
            return _Matching(planner, node.right, used, left).made()
        except _Unsuited:
            pass
    make_left, kinds = planner.rows(node.left, used)
    make_right, right_kinds = planner.rows(node.right, used)
    if not all(name in kinds and kinds[name] == right_kinds.get(name) for name in shared):
        raise _Unsuited
    new = [name for name in right_kinds if name not in kinds]

    def join(known: _State) -> _Rows:
        (_, left), (_, right) = make_left(known), make_right(known)
        for name in shared:
            # Unbound terms are compatible with everything.
            if None in left[name] or None in right[name]:
                raise _Unsuited
        keys = [list(zip(*[_keys(rows[name], kinds[name]) for name in shared], strict=True)) for rows in (left, right)]
        places: dict[Any, list[int]] = {}
        for place, key in enumerate(keys[1]):
            places.setdefault(key, []).append(place)
        left_places: list[int] = []
        right_places: list[int | None] = []
        for place, key in enumerate(keys[0]):
            matches: Sequence[int | None] = places.get(key, (None,) if optional else ())
            left_places.extend([place] * len(matches))
            right_places.extend(matches)
            _check_size(len(left_places))
        columns = _take(left, left_places)
        for name in new:
            values = right[name]
            columns[name] = [None if place is None else values[place] for place in right_places]
        return len(left_places), columns

    # `_Kind.name` does not hold for unbound terms.
    return join, {**kinds, **{name: str(right_kinds[name]) if optional else right_kinds[name] for name in new}}


# -- patterns ----------------------------------------------------------------------------------------


class _Step:
    """A statement pattern between two variables."""

    def __init__(self, planner: _Planner, part: alg.StatementPattern, number: int) -> None:
        plain = part.condition is None and not part.qualifiers and not isinstance(part.predicate, alg.Variable)
        if not plain or part.undirected or not isinstance(part.subject, alg.Variable) or not isinstance(part.object, alg.Variable):
            raise _Unsuited
        self.subject, self.object = part.subject.name, part.object.name
        self.statement = None if part.statement is None else part.statement.name
        self.edge = Edge(
            Run(planner.snapshot), alg.StatementPattern(part.subject, part.predicate, part.object, family=part.family), number
        )
        if self.edge.family != "relation" or self.subject == self.object:
            raise _Unsuited
        #: The sets that its ends are in, by variable.
        self.within: dict[str, Entities] = {}
        if part.among is not None:
            self._read(part.among, part.predicate)

    def _read(self, among: Facts, predicates: Any) -> None:
        if isinstance(among, Where) and isinstance(among.condition, Among) and isinstance(among.facts, Scan):
            if among.facts.anchor != "subject" or among.facts.reach != "object":
                raise _Unsuited
            self.within[self.object] = among.condition.entities
            among = among.facts
        if not isinstance(among, Scan) or among.of is None or among.source is not None or among.family != "relation":
            raise _Unsuited
        if among.predicates != predicates or among.anchor == among.reach:
            raise _Unsuited
        self.within[self.subject if among.anchor == "subject" else self.object] = among.of

    def follow(self, backward: bool) -> tuple[Any, Any, Any, Any]:
        """Return views of the index by the near end: offsets by entity (or None), near ends, far ends, statements."""
        if 12 * self.edge.size() + 8 * self.edge.run.snapshot.entities > _MAX_INDEX_BYTES:
            raise _Unsuited
        index = self.edge.index(backward)
        first = None if index.offsets is None else index.offsets.data
        return first, index.near.data, index.far.data, index.entries.data


class _Matching:
    """A pattern as steps from its first entities, or from the rows that it extends."""

    def __init__(
        self, planner: _Planner, node: alg.Pattern, needed: set[str] | None, seed: tuple[_Evaluate, _Kinds] | None = None
    ) -> None:
        self.planner, self.node, self.needed, self.seed = planner, node, needed, seed
        self.steps = [_Step(planner, part, number) for number, part in enumerate(node.statements)]
        if not self.steps:
            raise _Unsuited
        self.masks: dict[str, list[Any]] = {}
        for part in node.memberships:
            if not isinstance(part.member, alg.Variable) or not isinstance(part.concept, ByName) or part.direct:
                raise _Unsuited
            if self.planner.is_open(part.concept):
                raise _Unsuited
            concepts = [number for name in part.concept.names for number in planner.snapshot.concepts_named(name)]
            self.masks.setdefault(part.member.name, []).append(planner.snapshot.member_mask(tuple(concepts)).data)
        #: Pairs of steps, by number, whose statements must differ.
        self.distinct: list[tuple[int, int]] = []
        if node.different:
            for later, step in enumerate(self.steps):
                self.distinct += [(earlier, later) for earlier in range(later) if may_meet(self.steps[earlier].edge, step.edge)]

    def made(self) -> tuple[_Evaluate, _Kinds]:
        """Return the function of all steps, and the kinds of its columns."""
        bound: set[str] = set()
        begin: _Evaluate
        kinds: _Kinds
        if self.seed is not None:
            begin, kinds = self.seed[0], dict(self.seed[1])
            bound = {name for name in kinds if kinds[name] == _ENTITY}
            ends = {end for step in self.steps for end in (step.subject, step.object)}
            if not bound & ends or any(name in kinds for step in self.steps if (name := step.statement) is not None):
                raise _Unsuited
            if any(name in kinds and name not in bound for name in ends):
                raise _Unsuited
            begin = self._checked(begin, sorted(bound & ends))
        else:
            name, entities, of = self._start()
            begin = self._begun(name, entities, of)
            bound, kinds = {name}, {name: _Kind.of(self._sets(name))}
        remaining = list(enumerate(self.steps))
        chain: list[Callable[[int, _Columns, _State], _Rows]] = []
        apart = {self._statement_name(number, self.steps[number]) for pair in self.distinct for number in pair}
        while remaining:
            index = next(
                (index for index, (_, step) in enumerate(remaining) if step.subject in bound or step.object in bound), None
            )
            if index is None:
                # The pattern is not connected.
                raise _Unsuited
            number, step = remaining.pop(index)
            later_ends = {end for _, later in remaining for end in (later.subject, later.object)}
            bound |= {step.subject, step.object}
            used = None if self.needed is None else self.needed | later_ends | apart
            chain.append(self._step(number, step, dict(kinds), used))
            if self._needs_statement(number, step):
                kinds[self._statement_name(number, step)] = _STATEMENT
            for end in (step.subject, step.object):
                kinds.setdefault(end, _Kind.of(self._sets(end)))
        wanted = [*(self.seed[1] if self.seed is not None else ()), *self.node.variables]
        names = [name for name in dict.fromkeys(wanted) if self.needed is None or name in self.needed]

        def match(known: _State) -> _Rows:
            size, columns = begin(known)
            for follow in chain:
                size, columns = follow(size, columns, known)
            # There may be more columns than needed.
            return size, columns

        return match, {name: kinds[name] for name in names}

    def _needs_statement(self, number: int, step: _Step) -> bool:
        asked = step.statement is not None and (self.needed is None or step.statement in self.needed)
        return asked or any(number in pair for pair in self.distinct)

    @staticmethod
    def _statement_name(number: int, step: _Step) -> str:
        return step.statement or f"\0{number}"

    def _start(self) -> tuple[str, Callable[[_State], list[int]], Entities | None]:
        """Return the variable that the pattern begins with, its entities, and their set, if any: preferably a name,
        then other sets, then the smallest concept or relation.
        """
        sets = [(name, of) for step in self.steps for name, of in step.within.items()]
        sets.sort(key=lambda pair: not (isinstance(pair[1], ByName) and len(pair[1].names) == 1))
        if sets:
            name, of = sets[0]
            return name, self.planner.entities(of), of
        choices = [(len(members), name, members) for name, members in self._members() if len(members) <= MAX_ROWS]
        for step in self.steps:
            if step.edge.size() <= MAX_ROWS:
                near = np.unique(step.edge.index(False).near)
                choices.append((len(near), step.subject, near))
        if not choices:
            raise _Unsuited
        _, name, numbers = min(choices, key=lambda choice: choice[:2])
        constant: list[int] = numbers.tolist()
        return name, lambda known: constant, None

    def _members(self) -> Iterator[tuple[str, Any]]:
        for part in self.node.memberships:
            if isinstance(part.member, alg.Variable) and isinstance(part.concept, ByName):
                concepts = [number for name in part.concept.names for number in self.planner.snapshot.concepts_named(name)]
                yield part.member.name, self.planner.snapshot.members(tuple(concepts))

    def _begun(self, name: str, entities: Callable[[_State], list[int]], of: Entities | None) -> _Evaluate:
        masks = self.masks.get(name, [])
        tests = self._tests(name, of)

        def begin(known: _State) -> _Rows:
            numbers = entities(known)
            size = len(numbers)
            if size > MAX_ROWS:
                raise _Unsuited
            if masks or tests:
                for mask in masks:
                    numbers = [number for number in numbers if mask[number]]
                for test in tests:
                    allowed = set(test(known))
                    numbers = [number for number in numbers if number in allowed]
                size = len(numbers)
            return size, {name: numbers}

        return begin

    def _sets(self, name: str) -> list[Entities]:
        """Return the sets that a variable is in."""
        return list({id(of): of for step in self.steps if (of := step.within.get(name)) is not None}.values())

    def _tests(self, name: str, but: Entities | None = None) -> list[Callable[[_State], list[int]]]:
        """Return functions for the entities of these sets, except `but`, which is known to hold."""
        sets = [of for of in self._sets(name) if of is not but]
        if self.seed is not None and name in self.seed[1]:
            # Sets taken from the extended rows hold already.
            sets = [of for of in sets if not isinstance(of, alg.EntitiesOf)]
        return [self.planner.entities(of) for of in sets]

    def _checked(self, begin: _Evaluate, names: list[str]) -> _Evaluate:
        """Return the rows whose variables are bound and in their sets."""
        tests = [(name, self.masks.get(name, []), self._tests(name)) for name in names]

        def check_rows(known: _State) -> _Rows:
            size, columns = begin(known)
            for name, masks, sets in tests:
                if None in columns[name]:
                    raise _Unsuited
                for mask in masks:
                    size, columns = _keep(size, columns, [mask[number] for number in columns[name]])
                for test in sets:
                    allowed = set(test(known))
                    size, columns = _keep(size, columns, [number in allowed for number in columns[name]])
            return size, columns

        return check_rows

    def _step(self, number: int, step: _Step, kinds: _Kinds, asked: set[str] | None) -> Callable[[int, _Columns, _State], _Rows]:
        """Return a function that adds the far end of a step, or for two bound ends repeats each row for each
        statement between them.
        """
        backward = step.subject not in kinds
        near, far = (step.object, step.subject) if backward else (step.subject, step.object)
        first, ordered, view, entries = step.follow(backward)
        both_bound = far in kinds
        statement = self._statement_name(number, step) if self._needs_statement(number, step) else None
        carried_names = [name for name in kinds if asked is None or name in asked or name.startswith("\0")]
        masks, sets = ([], []) if both_bound else (self.masks.get(far, []), self._tests(far))
        partners = [sum(pair) - number for pair in self.distinct if number in pair]
        partner_columns = [name for other in partners if (name := self._statement_name(other, self.steps[other])) in kinds]

        def follow_only(size: int, columns: _Columns, known: _State) -> _Rows:
            """The far ends alone."""
            if size == 1:
                (entity,) = columns[near]
                low, high = first[entity], first[entity + 1]
                if high - low > MAX_ROWS:
                    raise _Unsuited
                return high - low, {far: view[low:high].tolist()}
            ends: list[int] = []
            for entity in columns[near]:
                ends += view[first[entity] : first[entity + 1]].tolist()
                if len(ends) > MAX_ROWS:
                    raise _Unsuited
            return len(ends), {far: ends}

        def count_only(size: int, columns: _Columns, known: _State) -> _Rows:
            """How many there are, which nobody asks more of."""
            return sum([first[entity + 1] - first[entity] for entity in columns[near]]), {}

        if not (both_bound or carried_names or masks or sets) and statement is None and first is not None:
            return follow_only if asked is None or far in asked else count_only

        def expand(size: int, columns: _Columns, known: _State) -> _Rows:
            ends: list[int] = []
            row_places: list[int] = []
            numbers: list[int] = []
            far_values = columns[far] if both_bound else None
            for place, entity in enumerate(columns[near]):
                if first is not None:
                    low, high = first[entity], first[entity + 1]
                else:
                    low, high = bisect_left(ordered, entity), bisect_right(ordered, entity)
                if far_values is not None:
                    low = bisect_left(view, far_values[place], low, high)
                    high = bisect_right(view, far_values[place], low, high)
                if low < high:
                    if high - low > MAX_ROWS:
                        raise _Unsuited
                    ends += view[low:high].tolist()
                    if carried_names:
                        row_places += [place] * (high - low)
                    if statement is not None:
                        numbers += entries[low:high].tolist()
            size = len(ends)
            if size > MAX_ROWS:
                raise _Unsuited
            result: _Columns = {}
            for name in carried_names:
                values = columns[name]
                result[name] = [values[place] for place in row_places]
            if not both_bound:
                result[far] = ends
            if statement is not None:
                result[statement] = numbers
                for other in partner_columns:
                    size, result = _keep(size, result, [a != b for a, b in zip(result[other], result[statement], strict=True)])
            for mask in masks:
                size, result = _keep(size, result, [mask[end] for end in result[far]])
            for test in sets:
                allowed = set(test(known))
                size, result = _keep(size, result, [end in allowed for end in result[far]])
            return size, result

        return expand


def _keep(size: int, columns: _Columns, truths: list[bool]) -> _Rows:
    if all(truths):
        return size, columns
    places = [place for place, truth in enumerate(truths) if truth]
    return len(places), _take(columns, places)


def _pattern(planner: _Planner, node: alg.Pattern, needed: set[str] | None) -> tuple[_Evaluate, _Kinds]:
    return _Matching(planner, node, needed).made()


_BUILD: Final[dict[type, Callable[[_Planner, Any, set[str] | None], tuple[_Evaluate, _Kinds]]]] = {
    alg.Pattern: _pattern,
    alg.EntityRows: _entity_rows,
    alg.Join: _join,
    alg.LeftJoin: _join,
    alg.Filter: _filter,
    alg.BoundRows: _bound,
    alg.Extend: _extend,
    alg.Unwind: _unwind,
    alg.Project: _project,
    alg.DistinctRows: _distinct,
    alg.GroupRows: _group,
    alg.OrderRows: _order,
    alg.SliceRows: _slice,
}
