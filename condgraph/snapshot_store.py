"""A snapshot as a store (`engine.store`): runs plans and searches for patterns in process.

Programs of the same shape reuse a plan in which names remain open (`quick_answer`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.algebra import ById, ByName, Compare, Node
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import current, within
from condgraph.engine.describe import tree
from condgraph.engine.errors import CondgraphError, OptionError
from condgraph.engine.execute import Run
from condgraph.engine.execute.paths import Path, path_of
from condgraph.engine.execute.run import count
from condgraph.engine.execute.validity import cut
from condgraph.engine.passes import names
from condgraph.engine.schema import OpenSchema, Schema
from condgraph.engine.store import Request
from condgraph.languages.parameters import BoundQuery, GivenText
from condgraph.languages.pattern.pattern import Pattern, shown
from condgraph.languages.registry import PATTERN, lower

if TYPE_CHECKING:
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute.small_rows import SmallRows
    from condgraph.engine.period import Period
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.languages.parameters import Template
    from condgraph.patterns.distance.near_terms import NearTerms
    from condgraph.patterns.matches import Matches
    from condgraph.vectors.encoders import Encoder


# -- open plans --------------------------------------------------------------------------------------
# Plans whose parameters are names of entities, and texts in Cypher: planned once, run with different values.


#: The number of runs after which a plan gets arrays of its own (`paths`).
_OFTEN: Final = 3
#: The prefix of the names that replace parameters during planning; no name in a graph has it.
_PLACEHOLDER: Final = f"\0{os.urandom(12).hex()}:"


class OpenPlan:
    """A plan for one snapshot with parameters for names. `names` lists the ids of the operators that return the
    entities of a parameter, each with its parameter.
    """

    __slots__ = ("_names", "_order", "_plan", "_runs", "path", "snapshot")

    def __init__(self, snapshot: Snapshot, plan: Node, order: list[Node], names: list[tuple[int, str]]) -> None:
        self.snapshot, self._plan, self._order, self._names = snapshot, plan, order, names
        self._runs = 0
        #: The plan as a path, if it is one and has run often.
        self.path: Path | None = None

    def answer(self, values: Mapping[str, str], whole: Callable[[], Answer], language: str) -> Answer | None:
        """Answer with these names, or return None if one of them is unknown. `whole` returns the answer to the
        program with the names inserted.
        """
        path, snapshot = self.path, self.snapshot
        if path is not None and current() is None:
            numbers = path.run(values)
            return None if numbers is None else QuickAnswer(numbers, snapshot, whole, language, counted=path.counted)
        run = Run(snapshot)
        for node, name in self._names:
            entities = snapshot.named(values[name])
            if not len(entities):
                return None
            run.results[node] = entities
        run.execute(self._plan, self._order)
        self._runs += 1
        if self._runs == _OFTEN:
            self.path = path_of(snapshot, self._plan, self._order, dict(self._names))
        return QuickAnswer(run.results[id(self._plan)], snapshot, whole, language)


def _is_placeholder(name: str) -> bool:
    return name.startswith(_PLACEHOLDER)


def open_plan(template: Template, snapshot: Snapshot, texts: Mapping[str, GivenText], options: dict[str, Any]) -> OpenPlan | None:
    """Plan a program with its parameters for entities left open and these values for the others.

    Returns None if the plan depends on the names, or if lowering fails; the error is then reported when the program
    is run with its values.
    """
    # Each parameter gets a different name, so that no two are taken for the same entity.
    values = {name: GivenText.of(name, _PLACEHOLDER + name) if name in template.entities else text for name, text in texts.items()}
    request = Request(template.bind(values), template.language, options, None, lower)
    try:
        lowered = request.lowered(OpenSchema(snapshot.schema, _is_placeholder))  # type: ignore[arg-type]
    except CondgraphError:
        return None
    open_names: list[tuple[int, str]] = []
    order = lowered.order or []
    for node in order:
        if isinstance(node, ByName):
            placeholders = [name for name in node.names if name.startswith(_PLACEHOLDER)]
            if placeholders and len(node.names) > 1:
                return None
            open_names.extend((id(node), name.removeprefix(_PLACEHOLDER)) for name in placeholders)
    return OpenPlan(snapshot, lowered.plan, order, open_names) if {name for _, name in open_names} == template.entities else None


# -- texts of one shape ------------------------------------------------------------------------------
# Programs that are sent as texts often differ only in the names they contain.

#: `Find(name)` or `Find("name")`, with a name that every KoPL parser reads literally.
_BEGINS: Final = re.compile(r"""Find\((?:"([^"\\\x00-\x1f]+)"|([^\s()\[\]<>"'\\,$]+(?: [^\s()\[\]<>"'\\,$]+)*))\)""")
#: A text in a Cypher query (without backslashes), a name in backticks, or the beginning of a comment.
_TEXTS: Final = re.compile(r"""('[^'\\]*'|"[^"\\]*"|`[^`]*`|//|/\*)""")
#: The maximum number of cached shapes of a snapshot, and the maximum length of a program with a shape, in characters.
_MAX_SHAPES: Final = 256
_MAX_CHARACTERS: Final = 1_000

Shapes: TypeAlias = "dict[Any, OpenPlan | SmallRows | bool]"
_NO_SHAPES: Final[Shapes] = {}


def quick_answer(
    snapshot: Snapshot, program: Any, language: str, options: Mapping[str, Any], whole: Callable[[], Answer], *, ready: bool = False
) -> Answer | None:
    """Answer a program by the plan of an earlier program of the same shape.

    KoPL texts have the same shape if they differ only in the name of their first `Find`, Cypher queries if they
    differ only in their texts and in those of their parameters. Returns None if there is no plan, or if it does not
    apply to these names. `whole` returns the answer without a shared plan. With `ready`, no new plan is made.
    """
    if language == "cypher":
        return _quick_cypher(snapshot, program, options, whole, ready)
    if language != "kopl" or options or type(program) is not str or len(program) > _MAX_CHARACTERS:
        return None
    match = _BEGINS.match(program)
    if match is None:
        return None
    shape = program[match.end() :]
    plan = snapshot.schema.kept.get("shapes", _NO_SHAPES).get(shape)
    if plan is None or type(plan) is bool:
        plan = None if ready else _shaped(snapshot, shape, lambda: _plan_of_shape(snapshot, shape))
        if plan is None:
            return None
    answer = plan.answer({"name": match[1] or match[2]}, whole, "kopl")
    return None if answer is None else answer.asked_with(program, {})


#: The options that a query with a quick answer may have.
_CYPHER_OPTIONS: Final = frozenset(("parameters", "on_unknown"))


def _quick_cypher(
    snapshot: Snapshot, program: Any, options: Mapping[str, Any], whole: Callable[[], Answer], ready: bool
) -> Answer | None:
    parameters: Mapping[str, Any] = {}
    if type(program) is BoundQuery:
        program, parameters = program.text, program.parameters
    if options:
        if not options.keys() <= _CYPHER_OPTIONS or (parameters and "parameters" in options):
            return None
        parameters = options.get("parameters") or parameters
    if type(program) is not str or len(program) > _MAX_CHARACTERS or "\\" in program:
        return None
    key: Any
    if '"' not in program and "`" not in program and "/" not in program and len(pieces := program.split("'")) == 3:
        # Most queries have one text.
        texts = {_HOLES[0]: pieces[1]}
        key = (pieces[0], pieces[2])
    else:
        pieces = _TEXTS.split(program)
        if len(pieces) > 2 * len(_HOLES) or "//" in pieces or "/*" in pieces:
            return None
        quoted = [piece[1:-1] for piece in pieces[1::2] if piece[0] != "`"]
        texts = dict(zip(_HOLES, quoted, strict=False))
        key = tuple([None if at % 2 and piece[0] != "`" else piece for at, piece in enumerate(pieces)])
    constants: dict[str, Any] = {}
    if parameters:
        for name, value in parameters.items():
            if type(value) is str:
                texts[name] = value
            elif value is None or type(value) in (int, float, bool):
                constants[name] = value
            else:
                return None
        key = (key, *parameters, *((name, type(value), value) for name, value in constants.items()))
    if "on_unknown" in options:
        key = (key, options["on_unknown"])
    plan: Any = snapshot.schema.kept.get("shapes", _NO_SHAPES).get(key)
    if plan is None or type(plan) is bool:
        plan = (
            None if ready else _shaped(snapshot, key, lambda: open_rows(snapshot, _TEXTS.split(program), texts, constants, options))
        )
        if plan is None:
            return None
    rows = plan.run(texts)
    return None if rows is None else QuickRows(rows, plan.names, snapshot, whole, program)


def _shaped(snapshot: Snapshot, key: Any, make: Callable[[], OpenPlan | SmallRows | None]) -> OpenPlan | SmallRows | None:
    """Return the plan of a shape, which is made for its second program, since most shapes occur only once."""
    shapes: Shapes = snapshot.schema.kept.setdefault("shapes", {})
    state = shapes.get(key)
    if state is None:
        if len(shapes) >= _MAX_SHAPES:
            shapes.clear()
        shapes[key] = True
    elif state is True:
        plan = make()
        shapes[key] = plan or False
        return plan
    return None


def _plan_of_shape(snapshot: Snapshot, rest: str) -> OpenPlan | None:
    if "$" in rest:
        # A `$` here belongs to a name, or is a mistake with its own error message.
        return None
    from condgraph.languages.kopl.syntax import KoplTemplate

    try:
        template = KoplTemplate(f"Find($name){rest}")
    except CondgraphError:
        return None
    return open_plan(template, snapshot, {"name": GivenText.of("name", "")}, {})


# -- Cypher ------------------------------------------------------------------------------------------

#: The names of the parameters that replace the texts of a query. No query can contain them.
_HOLES: Final = tuple(f"{_PLACEHOLDER}{at}" for at in range(32))


def open_rows(
    snapshot: Snapshot, pieces: list[str], texts: Mapping[str, str], others: Mapping[str, Any], options: Mapping[str, Any]
) -> SmallRows | None:
    """Plan a Cypher query with parameters in place of its texts, as functions over small lists.

    `pieces` alternate between the query and its texts and names in quotes. Returns None if the plan depends on the
    texts, or if it is not one for few rows.
    """
    # Imported late: this is only needed for Cypher.
    from condgraph.engine.execute.small_rows import small_rows

    holes = iter(_HOLES)
    query = "".join([f"$`{next(holes)}`" if at % 2 and piece[0] != "`" else piece for at, piece in enumerate(pieces)])
    language_options = {name: value for name, value in options.items() if name != "parameters"}
    placeholders = {name: f"{_PLACEHOLDER}:{name}" for name in texts}
    try:
        lowered = Request(BoundQuery(query, {**placeholders, **others}), "cypher", language_options, None, lower).lowered(
            snapshot.schema
        )
    except CondgraphError:
        return None
    order = lowered.order or []
    if lowered.warnings or any(_depends(node) for node in order):
        return None
    return small_rows(snapshot, lowered.plan, order, {text: name for name, text in placeholders.items()})


def _depends(node: Any) -> bool:
    """Return whether an operator contains a placeholder anywhere but in a field that accepts any text."""
    from condgraph.engine.algebra.expressions import Constant

    open_fields = ((ByName, "names"), (ById, "ids"), (Compare, "value"), (Constant, "value"))
    stack: list[tuple[Any, Any, str]] = [(getattr(node, name), node, name) for name in names(node)]
    while stack:
        value, record, field = stack.pop()
        if isinstance(value, str):
            if _PLACEHOLDER in value and not any(isinstance(record, kind) and field == name for kind, name in open_fields):
                return True
        elif isinstance(value, tuple):
            if len(value) > 1 and isinstance(record, ByName | ById) and any(_PLACEHOLDER in part for part in value):
                return True
            stack.extend((part, record, field) for part in value)
        elif isinstance(value, list | dict):
            if _PLACEHOLDER in repr(value):
                return True
        elif hasattr(value, "__dataclass_fields__") and not isinstance(value, Node):
            stack.extend((getattr(value, name), value, name) for name in names(value))
    return False


# -- the store ---------------------------------------------------------------------------------------


class SnapshotStore:
    """One generation of a graph, in process."""

    __slots__ = ("snapshot",)

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def answer(self, request: Request) -> Answer:
        """Answer a program. A pattern has no plan and is searched for."""
        if request.language == PATTERN:
            # A pattern may contain names that the graph does not have.
            options = {name: value for name, value in request.options.items() if name != "on_unknown"}
            return self.match(request.program, limit=request.limit, **options)
        quick = None
        # With another function for lowering the plan may differ.
        if request.limit is None and request.lower is lower:
            complete_answer = partial(self._plainly, request)
            quick = quick_answer(self.snapshot, request.program, request.language, request.options, complete_answer)
        return self._plainly(request) if quick is None else quick

    def quick_answer(self, program: Any, language: str) -> Answer | None:
        """Answer a program without options by an existing plan, or return None."""

        def complete_answer() -> Answer:
            return self._plainly(Request(program, language, {}, None, lower))

        return quick_answer(self.snapshot, program, language, {}, complete_answer, ready=True)

    def _plainly(self, request: Request) -> Answer:
        snapshot = self.snapshot
        lowered = request.lowered(snapshot.schema)
        plan, run = lowered.plan, Run(snapshot)
        run.execute(plan, lowered.order)
        run.notes.update(lowered.notes)
        return Answer(
            run, plan, program=request.program, language=request.language, steps=lowered.steps, warnings=lowered.warnings,
            limit=request.limit,
        )  # fmt: skip

    @property
    def naming_schema(self) -> Schema:
        """The schema, which looks up names."""
        return self.snapshot.schema

    linking_schema = naming_schema

    def explain(self, request: Request) -> str:
        """Return the plan of a program, or the triples of a pattern, as text."""
        if request.language == PATTERN:
            return shown(Pattern.of(request.program))
        lowered = request.lowered(self.snapshot.schema)
        return "\n".join([tree(lowered.plan), *(f"warning: {warning}" for warning in lowered.warnings)])

    def match(self, pattern: Any, *, exact: bool = True, period: Period | None = None, **options: Any) -> Matches:
        """Return the subgraphs nearest to a pattern. With `exact=False` the candidates come from the graph's
        approximate index.
        """
        from condgraph.patterns.match import match

        if period is not None:
            from condgraph.vectors.stored import within_vectors

            part = cut(self.snapshot, period)
            within_vectors(self.snapshot, part)
            return match(part, pattern, **options)
        if exact:
            return match(self.snapshot, pattern, **options)
        terms, index = _near_terms(self.snapshot, options["encoder"], options["k_nodes"])
        return match(self.snapshot, pattern, terms=terms, index=index, **options)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Return how many statements or entities each operator yields."""
        return count(self.snapshot, nodes)


def _near_terms(snapshot: Snapshot, encoder: Encoder | str | None, k: int | None) -> tuple[NearTerms, str]:
    """Return the terms of the candidates from an approximate index, and the name of the index."""
    from condgraph.patterns.distance.near_terms import CANDIDATES, near_terms
    from condgraph.patterns.distance.terms import TextTerms
    from condgraph.vectors.stored import vectors_of

    vectors = vectors_of(snapshot, encoder)
    if vectors.approximate is None:
        raise OptionError(
            f"the graph has no approximate index by {vectors.about.id!r}",
            hint="make one with graph.index(encoder, faiss=True), or ask with exact=True",
        )
    return near_terms(vectors, TextTerms.of(snapshot, encoder), k or CANDIDATES), vectors.approximate.name


# -- answers of prepared programs ------------------------------------------------------------------
# A prepared program runs on a plan with open names, which returns the values at once. Evidence, trace, checks and warnings need the
# plan with the names inserted, so the first access to one of them lowers the program with its values and runs that plan.


#: Attributes that exist once the complete answer has been computed.
_COMPLETE_ONLY = frozenset({"run", "plan", "_steps", "_warnings"})


class QuickAnswer(Answer):
    """An answer whose result is `found`: that of the open plan, or its entities as a list of numbers (`counted`: the
    answer is their count). `whole` returns the answer without preparation, for the same generation.
    """

    _program: Any = ""
    _limit = None

    def __init__(
        self, found: Any, snapshot: Snapshot, whole: Callable[[], Answer], language: str, *, counted: bool = False
    ) -> None:
        self._quick, self._make_whole, self.language = (len(found) if counted else found, snapshot), whole, language
        self._computed = self._texts = None

    def _result(self) -> tuple[Any, Snapshot]:
        return self._quick

    def _compute(self) -> tuple[list[Any], list[str]]:
        result, snapshot = self._quick
        if type(result) is not list:
            return super()._compute()
        names = snapshot.names_of(result)
        if snapshot.names_differ and not snapshot.counts["rows"]:
            self._texts = names.copy()
        return names, names

    @property
    def texts(self) -> list[str]:
        """The values as distinct strings, in the order of `values`."""
        if self._texts is None:
            self._outcome()
        return super().texts if self._texts is None else self._texts

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes.
        if name not in _COMPLETE_ONLY:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with within(self._timeout):
            complete = self._make_whole()
        for attribute in _COMPLETE_ONLY:
            self.__dict__[attribute] = getattr(complete, attribute)
        return self.__dict__[name]


class QuickRows(QuickAnswer):
    """An answer of rows, given their values in order."""

    language = "cypher"
    _computed = _texts = None

    def __init__(
        self, rows: list[tuple[Any, ...]], columns: tuple[str, ...], snapshot: Snapshot, whole: Callable[[], Answer], program: str
    ) -> None:
        self._rows, self._columns, self._snapshot, self._make_whole, self._program = rows, columns, snapshot, whole, program

    @property
    def values(self) -> list[Any]:
        """The rows, in order."""
        return self._rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    def _result(self) -> tuple[Any, Snapshot]:
        return self.run.results[id(self.plan)].grid(self._columns), self._snapshot

    def _compute(self) -> tuple[list[Any], list[str]]:
        from condgraph.engine.execute.small_rows import texts_of

        return self._rows, texts_of(self._rows)

    @property
    def texts(self) -> list[str]:
        """The rows as distinct texts, in order."""
        return Answer.texts.fget(self)  # type: ignore[attr-defined, no-any-return]
