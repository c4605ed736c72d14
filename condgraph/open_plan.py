"""Plans in which names of entities are parameters: planned once, run with any names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.algebra import ByName, Node
from condgraph.engine.bounds import current
from condgraph.engine.errors import CondgraphError
from condgraph.engine.execute.paths import Path, path_of
from condgraph.engine.execute.run import Run
from condgraph.engine.quick_answer import QuickAnswer
from condgraph.engine.store import Request
from condgraph.languages.parameters import Given
from condgraph.languages.registry import lower

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.schema import Schema
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.languages.parameters import Template

#: The run of a plan that is worth arrays of its own (`paths`).
_OFTEN: Final = 3
#: The beginning of the names that replace parameters while a plan is made; no name of a graph has it.
_PLACEHOLDER: Final = f"\0{os.urandom(12).hex()}:"


class OpenPlan:
    """A plan for one snapshot. `names` are the ids of the operators that give the entities of a
    parameter, each with its parameter.
    """

    __slots__ = ("_names", "_order", "_plan", "_runs", "path", "snapshot")

    def __init__(self, snapshot: Snapshot, plan: Node, order: list[Node], names: list[tuple[int, str]]) -> None:
        self.snapshot, self._plan, self._order, self._names = snapshot, plan, order, names
        self._runs = 0
        #: The plan as a path, where it is one and has run often.
        self.path: Path | None = None

    def answer(self, values: Mapping[str, str], whole: Callable[[], Answer], language: str) -> Answer | None:
        """The answer with these names; None where one of them is unknown. `whole` gives the answer
        to the program with the names in it.
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


def open_plan(template: Template, snapshot: Snapshot, texts: Mapping[str, Given], options: dict[str, Any]) -> OpenPlan | None:
    """The plan of a program whose parameters for entities are left open, and whose others have these
    values; None where the plan depends on the names, or where lowering fails, which is reported
    when the program is run with its values.
    """
    # Each parameter has a name of its own, so that no two are taken for the same entity.
    bound = {name: Given.of(name, _PLACEHOLDER + name) if name in template.entities else text for name, text in texts.items()}
    request = Request(template.bind(bound), template.language, options, None, lower)
    try:
        lowered = request.lowered(_SchemaWithPlaceholders(snapshot.schema))  # type: ignore[arg-type]
    except CondgraphError:
        return None
    names: list[tuple[int, str]] = []
    order = lowered.order or []
    for node in order:
        if isinstance(node, ByName):
            placeholders = [name for name in node.names if name.startswith(_PLACEHOLDER)]
            if placeholders and len(node.names) > 1:
                return None
            names.extend((id(node), name.removeprefix(_PLACEHOLDER)) for name in placeholders)
    return OpenPlan(snapshot, lowered.plan, order, names) if {name for _, name in names} == template.entities else None


class _SchemaWithPlaceholders:
    """A schema that has an entity for every placeholder."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schema, name)

    def has_entity(self, name: str) -> bool:
        """Whether the graph has an entity of this name, or it is a placeholder."""
        return name.startswith(_PLACEHOLDER) or self._schema.has_entity(name)


# -- Texts of one shape ------------------------------------------------------------------------------
# Programs that are sent as texts often differ in the name that they begin with, and in nothing else.

#: `Find(name)` or `Find("name")`, with a name that every reading of KoPL takes as it is.
_BEGINS: Final = re.compile(r"""Find\((?:"([^"\\\x00-\x1f]+)"|([^\s()\[\]<>"'\\,$]+(?: [^\s()\[\]<>"'\\,$]+)*))\)""")
#: Shapes that are remembered of a snapshot, and the characters of the longest.
_MOST_SHAPES: Final = 256
_MOST_CHARACTERS: Final = 1_000


def quick_answer(snapshot: Snapshot, program: str, whole: Callable[[], Answer]) -> Answer | None:
    """The answer to a KoPL text by the plan of an earlier text of the same shape, which differs in
    the name of its first `Find` alone; None where there is no such plan, or the name is unknown.
    """
    match = _BEGINS.match(program)
    if match is None or len(program) > _MOST_CHARACTERS:
        return None
    rest = program[match.end() :]
    shapes: dict[str, OpenPlan | bool] = snapshot.schema.kept.setdefault("shapes", {})
    plan = shapes.get(rest)
    if plan is None:
        if len(shapes) >= _MOST_SHAPES:
            shapes.clear()
        # Most texts come once: the plan is made for the second of a shape.
        shapes[rest] = True
        return None
    if plan is True:
        plan = shapes[rest] = _plan_of_shape(snapshot, rest) or False
    if isinstance(plan, bool):
        return None
    answer = plan.answer({"name": match[1] or match[2]}, whole, "kopl")
    return None if answer is None else answer.asked_with(program, {})


def _plan_of_shape(snapshot: Snapshot, rest: str) -> OpenPlan | None:
    if "$" in rest:
        # Not a parameter, but a name, or a mistake that has its own message.
        return None
    from condgraph.languages.kopl.template import KoplTemplate

    try:
        template = KoplTemplate(f"Find($name){rest}")
    except CondgraphError:
        return None
    return open_plan(template, snapshot, {"name": Given.of("name", "")}, {})
