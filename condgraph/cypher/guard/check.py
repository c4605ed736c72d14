"""Whether a query that a person or a model wrote reads the graph and does nothing else.

Two looks that know nothing of each other, either of which refuses: at the text, before anything is
sent (`text`), and at the server's own plan of it. Subqueries within expressions are no operators of
a plan; they stand in what it says of its operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from condgraph.cypher.guard.text import check_text
from condgraph.cypher.guard.words import AFTER_A_NAME, FUNCTIONS, PROCEDURES, SHOWN
from condgraph.engine.errors import ReadOnlyError

__all__ = ["PROCEDURES", "check_plan", "check_text"]

#: Operators of a plan that read or change more than the graph, whatever the query type says.
_FORBIDDEN: Final = (
    *("Show", "Create", "Delete", "Detach", "Merge", "Set", "Remove", "Drop", "Alter", "Foreach", "Grant", "Deny", "Revoke"),
    *("Rename", "Start", "Stop", "Enable", "Do", "Assert", "Log", "System"),
)
_FORBIDDEN_ANYWHERE: Final = ("LoadCSV", "Terminate", "Administration", "Transaction", "Command")
#: What stands in the plan of a subquery within an expression. A word in backticks, or of a
#: property, is no clause.
_WITHIN: Final = re.compile(
    rf"(?<![`.\w])(?:(?P<load>LOAD\s+CSV)\b|(?P<show>SHOW\s+(?:{SHOWN}))\b|(?P<end>TERMINATE\s+TRANSACTIONS?)\b"
    r"|CALL\s++(?P<call>[\w`]++(?:\.[\w`]++)*+)|ResolvedCall\(\s*+(?P<resolved>[^\s()]++))",
    re.IGNORECASE,
)
_FUNCTION: Final = re.compile(r"(?<![`.\w])[\w`]++(?:\.[\w`]++)++(?=\()")
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`[^`]*+`""", re.DOTALL)
_UNSEEN: Final = frozenset({"string-representation"})


def check_plan(query_type: str | None, plan: Any, columns: Iterable[str] = ()) -> None:
    """Raise `ReadOnlyError` unless a plan reads the graph and nothing else. `columns` are the names
    of the result's columns.
    """
    if query_type != "r":
        raise ReadOnlyError(f"the query is of type {query_type!r}; only reading is allowed")
    if not plan:
        raise ReadOnlyError("the server gave no plan of the query")
    harmless = _harmless(columns)
    graphs = set()
    for operator, arguments in _operators(plan):
        name, _, graph = operator.partition("@")
        graphs.add(graph)
        if name.startswith(_FORBIDDEN) or any(word in name for word in _FORBIDDEN_ANYWHERE):
            raise ReadOnlyError(f"the query does more than read the graph: {name}")
        details = str(arguments.get("Details", ""))
        if "ProcedureCall" in name and (called := _plain(details.partition("(")[0])) not in PROCEDURES:
            raise ReadOnlyError(f"the query calls a procedure that is not on the list: {called}")
        if name != "ProduceResults":
            for key, value in arguments.items():
                if isinstance(value, str) and key not in _UNSEEN:
                    _check_within(value, harmless)
    if len(graphs) > 1 or "system" in graphs:
        raise ReadOnlyError(f"the query reads more than one database: {', '.join(sorted(graphs))}")


def _check_within(text: str, harmless: list[str]) -> None:
    """Refuse what an operator's description says that it computes."""
    for column in harmless:
        text = text.replace(column, "``")
    for found in _WITHIN.finditer(text):
        name = _plain(found["call"] or found["resolved"] or "")
        if not name:
            raise ReadOnlyError(f"the query does more than read the graph: {found[0]}", hint=_HINT)
        if name not in PROCEDURES and name.casefold() not in AFTER_A_NAME:
            raise ReadOnlyError(f"the query calls a procedure that is not on the list: {name}", hint=_HINT)
    for found in _FUNCTION.finditer(text):
        name = _plain(found[0])
        if name.casefold() not in FUNCTIONS and name not in PROCEDURES:
            raise ReadOnlyError(f"the query calls a function that is not on the list: {name}", hint=_HINT)


_HINT: Final = "where this is part of a text or a name, give the text as a parameter, and the column a name with AS"


def _harmless(columns: Iterable[str]) -> list[str]:
    """The columns, as a plan writes them, that hold such words in quotes only: their names are the
    text of their expressions.
    """
    found = []
    for column in columns:
        if _speaks(column) and not _speaks(_QUOTED.sub(" ", column)):
            found.append("`" + column.replace("`", "``") + "`")
    return found


def _speaks(text: str) -> bool:
    return bool(_WITHIN.search(text) or _FUNCTION.search(text))


def _plain(name: str) -> str:
    return name.strip().replace("`", "")


def _operators(plan: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node["operatorType"], node.get("args", {})
        stack.extend(node.get("children", ()))
