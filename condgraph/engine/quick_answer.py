"""The answer to a prepared program: its values at once, evidence and trace on demand.

A prepared program runs on a plan with open names. Evidence, trace, checks and warnings need the plan with the names
in it, so the first access to one of them lowers the program with its values and runs that plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condgraph.engine.answer import Answer
from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Attributes that exist once the complete answer has been computed.
_WHOLE = frozenset({"run", "plan", "_steps", "_warnings"})


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
        self._found = self._texts = None

    def _result(self) -> tuple[Any, Snapshot]:
        return self._quick

    def _work_out(self) -> tuple[list[Any], list[str]]:
        result, snapshot = self._quick
        if type(result) is not list:
            return super()._work_out()
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
        if name not in _WHOLE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with within(self._timeout):
            complete = self._make_whole()
        for attribute in _WHOLE:
            self.__dict__[attribute] = getattr(complete, attribute)
        return self.__dict__[name]


class QuickRows(QuickAnswer):
    """An answer of rows, given their values in order."""

    language = "cypher"
    _found = _texts = None

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

    def _work_out(self) -> tuple[list[Any], list[str]]:
        from condgraph.engine.execute.small_rows import texts_of

        return self._rows, texts_of(self._rows)

    @property
    def texts(self) -> list[str]:
        """The rows as distinct texts, in order."""
        return Answer.texts.fget(self)  # type: ignore[attr-defined, no-any-return]
