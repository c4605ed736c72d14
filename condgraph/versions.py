"""Earlier versions of a graph in a folder, and the rule for how long they are stored."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import OptionError, StoreDamagedError, StoreMissingError
from condgraph.engine.period import time_of
from condgraph.engine.snapshot.directory import damaged_versions
from condgraph.engine.snapshot.directory import versions as manifests

#: A reference to a version: its id, or a time at which it was the current one.
AsOf: TypeAlias = str | date | int
#: How many versions are stored, or for how long each is stored after it was replaced; None: only the current one.
Keep: TypeAlias = int | str | timedelta | None

_ID: Final = re.compile(r"g(\d{6,})")
_AGE: Final = re.compile(r"(\d{1,6})\s*(second|minute|hour|day|week|month|year)s?")
_SECONDS: Final = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400, "month": 31 * 86_400, "year": 366 * 86_400
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a graph: its id, when it was written (UTC), the sources that were loaded and removed by the change
    that made it, and its counts.
    """

    id: str
    written: datetime
    loaded: tuple[str, ...]
    removed: tuple[str, ...]
    counts: Mapping[str, int]
    current: bool

    @property
    def statements(self) -> int:
        """The number of relations and attributes."""
        return self.counts.get("relations", 0) + self.counts.get("attributes", 0)

    def data(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {
            "id": self.id, "written": self.written.isoformat(), "loaded": list(self.loaded), "removed": list(self.removed),
            "counts": dict(self.counts), "current": self.current,
        }  # fmt: skip

    def __str__(self) -> str:
        changes = [f"{verb} {', '.join(names)}" for verb, names in (("loaded", self.loaded), ("removed", self.removed)) if names]
        text = f"{self.id}  {shown(self.written)}  {self.statements:,} statements"
        return "; ".join([text, *changes]) + ("  (current)" if self.current else "")


def shown(moment: datetime) -> str:
    """Format a moment in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def versions_in(directory: Path) -> list[Version]:
    """Return the stored versions of a graph, the current one last."""
    stored = manifests(directory)
    return [_version(manifest, current=manifest is stored[-1]) for manifest in stored]


def _version(manifest: Mapping[str, Any], *, current: bool) -> Version:
    change = manifest.get("change", {})
    return Version(
        manifest["generation"], datetime.fromtimestamp(manifest["written"], UTC), tuple(change.get("loaded", ())),
        tuple(change.get("removed", ())), dict(manifest["counts"]), current,
    )  # fmt: skip


def version_as_of(directory: Path, as_of: AsOf) -> Version:
    """Return the version with an id, or the one that was current at a time (a date means its end). Times without a
    zone are UTC.

    Raises `StoreMissingError`, with the nearest version, if the version is no longer stored or nothing was loaded by
    then; `StoreDamagedError` if its manifest cannot be read, or that of a version that may have been current at the
    time; `OptionError` for an argument that is neither an id nor a time.
    """
    stored = versions_in(directory)
    if not stored:
        raise StoreMissingError(f"there is no graph in {directory.parent}", hint="load something first")
    match = _ID.fullmatch(as_of) if isinstance(as_of, str) else None
    damaged = damaged_versions(directory)
    if match is not None:
        if as_of in damaged:
            raise _damaged(directory, [str(as_of)])
        version = next((candidate for candidate in stored if candidate.id == as_of), None)
        if version is not None:
            return version
        nearest_version = min(stored, key=lambda candidate: (abs(int(candidate.id[1:]) - int(match[1])), candidate.id))
        verb = "is not there yet" if int(match[1]) > int(stored[-1].id[1:]) else "was removed"
        raise StoreMissingError(
            f"version {as_of} {verb}", candidates=[nearest_version.id],
            hint=f"{nearest_version.id} is of {shown(nearest_version.written)}; graph.versions() lists those that are stored",
        )  # fmt: skip
    moment = moment_of(as_of)
    version = next((candidate for candidate in reversed(stored) if candidate.written.timestamp() <= moment), None)
    after = next((candidate for candidate in stored if candidate.written.timestamp() > moment), None)
    low, high = (0 if version is None else int(version.id[1:])), None if after is None else int(after.id[1:])
    between = [name for name in damaged if low < int(name[1:]) and (high is None or int(name[1:]) < high)]
    if between:
        raise _damaged(directory, between)
    if version is not None:
        return version
    first = stored[0]
    if int(first.id[1:]) > 1:
        message = f"the versions from before {shown(first.written)} were removed"
        hint = f"the oldest is {first.id}; graph.keep_versions(...) says how many, or how long, versions are stored"
    else:
        message = f"nothing was loaded by then: the first version, {first.id}, is of {shown(first.written)}"
        hint = "name a later time"
    raise StoreMissingError(message, candidates=[first.id], hint=hint)


def _damaged(directory: Path, names: list[str]) -> StoreDamagedError:
    folders = ", ".join(str(directory / name) for name in names)
    return StoreDamagedError(
        f"when version {', '.join(names)} was the current one is not known: its manifest is not what was written",
        hint=f"name another version, put the manifest back, or delete {folders}",
    )


def damage_of(directory: Path) -> list[str]:
    """Return a warning for each version with an unreadable manifest."""
    return [
        f"the manifest of version {name} is not what was written: nothing reads it, and it stays until "
        f"{directory / name} is deleted"
        for name in damaged_versions(directory)
    ]


def moment_of(as_of: AsOf) -> float:
    """Return the last moment of a time, in seconds of Unix time; infinity for the id of a version."""
    if isinstance(as_of, str) and _ID.fullmatch(as_of):
        return math.inf
    if isinstance(as_of, datetime):
        return (as_of if as_of.tzinfo is not None else as_of.replace(tzinfo=UTC)).timestamp()
    time = time_of(as_of, "as_of")
    # The end of a time is exclusive.
    return float(time.end) - 1e-6


def keep_rule(keep: Keep) -> dict[str, float]:
    """Return the rule for storing versions, as in the settings. Raises `OptionError` for an invalid rule."""
    if keep is None:
        return {}
    if isinstance(keep, timedelta) and keep > timedelta():
        return {"seconds": keep.total_seconds()}
    if isinstance(keep, int) and not isinstance(keep, bool) and keep >= 1:
        return {"number": keep} if keep > 1 else {}
    if isinstance(keep, str):
        text = keep.strip().casefold()
        if text.isascii() and text.isdigit() and len(text) <= 6 and int(text) >= 1:
            return keep_rule(int(text))
        if (match := _AGE.fullmatch(text)) is not None and int(match[1]):
            return {"seconds": int(match[1]) * _SECONDS[match[2]]}
    raise OptionError(
        f"{keep!r} is neither a number of versions nor an age", hint="as 10, '30 days', or None for the current version alone"
    )
