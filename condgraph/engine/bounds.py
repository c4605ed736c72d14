"""What may be said of a deadline and of a limit, the same for every language and every store."""

from __future__ import annotations

from condgraph.engine.errors import OptionError


def check_bounds(timeout: float | None, limit: int | None = None, *, what: str = "values to give") -> None:
    """Raise `OptionError` for a `timeout` (seconds) that is not more than 0, or a `limit` (the most of `what`) less than 0."""
    if timeout is not None and timeout <= 0:
        raise OptionError(f"timeout is in seconds and more than 0, not {timeout}")
    if limit is not None and limit < 0:
        raise OptionError(f"limit is the most {what}, not {limit}")
