"""The answer to a prepared program: its values at once, and evidence and trace when they are asked
for.

A prepared program is run on a plan that leaves its names open. Evidence, trace, checks and warnings
speak of the plan with the names in it, so that the first look at one of them lowers the program
with its values and runs that plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condgraph.engine.answer import Answer
from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: What the answer has once it is whole.
_WHOLE = frozenset({"run", "plan", "_steps", "_warnings"})


class QuickAnswer(Answer):
    """An answer whose outcome is `found`: what the open plan gave, or its entities as a list of
    numbers (`counted`: their number is asked for). `whole` gives the answer as it is asked without
    preparation, of the same generation.
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
        found, snapshot = self._quick
        if type(found) is not list:
            return super()._work_out()
        names = snapshot.names_of(found)
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
        # Only what is not there yet comes here.
        if name not in _WHOLE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with within(self._timeout):
            found = self._make_whole()
        for one in _WHOLE:
            self.__dict__[one] = getattr(found, one)
        return self.__dict__[name]


class QuickRows(QuickAnswer):
    """An answer of rows: `found` are their values, in order."""

    language = "cypher"
    _found = _texts = None

    def __init__(
        self, rows: list[tuple[Any, ...]], columns: tuple[str, ...], snapshot: Snapshot, whole: Callable[[], Answer], program: str
    ) -> None:
        self._rows, self._columns, self._snapshot, self._make_whole, self._program = rows, columns, snapshot, whole, program

    @property
    def values(self) -> list[Any]:
        """The rows, in their order."""
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
        """The rows as distinct texts, in their order."""
        return Answer.texts.fget(self)  # type: ignore[attr-defined, no-any-return]
