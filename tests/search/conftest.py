"""What the tests of the search share."""

from __future__ import annotations

from typing import Any

import pytest

from condgraph.patterns.join import join


@pytest.fixture
def extended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every step of a join, as they are made: time is the machine's, but these are the
    search's.
    """
    made: list[int] = []
    extend = join.Join._extended

    def counted(self: Any, *given: Any) -> Any:
        rows = extend(self, *given)
        made.append(len(rows))
        return rows

    monkeypatch.setattr(join.Join, "_extended", counted)
    return made
