"""An interactive graph for notebooks, drawn by the code of the studio (extra `notebook`).

Usage:

    from condgraph.notebook import explore
    explore(graph, answer)  # or a solution of a pattern, statements, the name of an entity
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.answer import Answer
from condgraph.engine.drawing import of_statements
from condgraph.engine.errors import CondgraphError, MissingExtraError
from condgraph.engine.records import Evidence
from condgraph.patterns.result import Solution
from condgraph.studio import answers, calls

try:
    import traitlets
    from anywidget import AnyWidget
except ImportError as error:
    raise MissingExtraError(error.name or "anywidget", "notebook") from None

if TYPE_CHECKING:
    from condgraph.graph import Graph

#: The modules of the studio for drawing. Replacements of two other modules send calls to the kernel and disable links.
_STUDIO: Final = Path(calls.__file__).parent / "static"
_MODULES: Final = ("vendor-drawing.js", "dom.js", "graph.js", "facts.js", "explore.js", "evidence.js")
_REPLACEMENTS: Final = {
    "api.js": "export let post; export const through = (ask) => { post = ask; };",
    "state.js": "export const state = {}; export const link = () => null;",
}
#: The maximum number of statements of an entity that are fetched at first, and of those with the same predicate.
_LISTED, _EACH = 1000, 100


def _script() -> str:
    """Return one module with the others as texts, since a notebook serves no files."""
    sources = {name: (_STUDIO / name).read_text("utf-8") for name in _MODULES} | _REPLACEMENTS
    return f"const SOURCES = {json.dumps(sources)};\n{(_STUDIO / 'notebook.js').read_text('utf-8')}"


def _style() -> str:
    """Return the studio's style sheet for one element instead of a page."""
    text = (_STUDIO / "studio.css").read_text("utf-8").replace(":root", "&").replace("\nbody {", "\n& {")
    return f".condgraph-explorer {{\n{text}\n}}"


class Explorer(AnyWidget):
    """A widget that shows statements as a graph. Nodes can be expanded by predicate, hidden and pinned, and every
    step can be undone. Without support for widgets it is a drawing.
    """

    _esm = _script()
    _css = _style()
    #: The first content, in the form of the studio's API: `evidence` with the `trace`, or an `entity`.
    begin = traitlets.Dict().tag(sync=True)

    def __init__(self, graph: Graph, begin: dict[str, Any], statements: list[Evidence], marked: list[str], timeout: float) -> None:
        super().__init__(begin=begin)
        self._graph, self._statements, self._marked, self._timeout = graph, statements, marked, timeout
        self.on_msg(self._handle)

    def _handle(self, widget: Any, content: Any, buffers: Any) -> None:
        """Answer a call of the page. `number` identifies the call in the reply."""
        reply: dict[str, Any] = {"number": content["number"]}
        try:
            reply["found"] = calls.call(self._graph, "entity", content["arguments"], self._timeout)
        except CondgraphError as error:
            reply["error"] = error.message
        self.send(reply)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and a drawing for front ends without widgets."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        picture = {"image/svg+xml": of_statements(self._statements, self._marked).svg} if self._statements else {}
        return data | picture, metadata


def explore(
    graph: Graph, what: Answer | Solution | Iterable[Evidence] | str, *, limit: int = 1000, timeout: float = 30.0
) -> Explorer:
    """Show an interactive graph of the first `limit` statements: the evidence of an answer, the subgraph of a
    solution, statements, or those of an entity (given by name). Nodes are expanded from `graph`, within `timeout`
    seconds each.

    Raises `UnknownNameError` for an unknown entity. Importing this module raises `MissingExtraError` if anywidget is
    not installed.
    """
    if isinstance(what, str):
        entity = calls.call(graph, "entity", {"name": what, "limit": _LISTED, "each": _EACH}, timeout)
        return Explorer(graph, {"entity": entity}, [], [], timeout)
    if isinstance(what, Answer):
        begin = answers.explored(what, limit)
        marked = [entity.id for entity in what.entities] or what.texts
        return Explorer(graph, begin, list(islice(what.evidence, limit)), marked, timeout)
    statements = list(what.statements if isinstance(what, Solution) else what)
    facts = list(map(answers.fact, statements[:limit]))
    evidence = {"facts": facts, "total": len(statements), "by_step": [], "named": [], "searched": []}
    return Explorer(graph, {"evidence": evidence, "trace": []}, statements[:limit], [], timeout)
