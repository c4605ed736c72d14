"""What every loader shares: how a source is named, how problems are reported, and the table entry
that makes a format known.

A loader is a module with a `FORMAT: Format`. Its `read` is a generator of `facts.Item`s over one
source, and reports anything bad through the `Reading` it is given: `bad` for a record that has to
be left out (raises with `on_error="raise"`, the default), `warn` for a record that is kept and may
not mean what its author meant. Nothing is left out without one of the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from condgraph.engine.errors import LoadError, OptionError, nearest, shortened
from condgraph.engine.facts import Item, Source

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.snapshot.spill import SpilledFiles

OnError: TypeAlias = Literal["raise", "skip"]
#: Called with the source's location, the records read so far, and the fraction of the source read
#: (None where not known).
Progress: TypeAlias = Callable[[str, int, float | None], None]

#: Problems kept whole; those beyond are counted only.
MOST_PROBLEMS = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something bad in a source: where it is, what it is, and whether the record was left out
    (`skipped`) or kept.
    """

    message: str
    file: str
    row: int | None
    field: str | None
    skipped: bool
    #: The table of a workbook or a database.
    table: str | None = None

    def __str__(self) -> str:
        return str(LoadError(self.message, file=self.file, table=self.table, row=self.row, field=self.field))


#: Kinds of problems that are told apart; those beyond are one.
_MOST_KINDS: Final = 500
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"")
_DIGITS: Final = str.maketrans("", "", "0123456789,.")


def kind_of(message: str) -> str:
    """A message without what differs between messages of one kind: what it quotes, and numbers.

    >>> kind_of("'S77' is no key of 'stops'") == kind_of("\\"it's\\" is no key of 'stops'")
    True
    """
    if '"' in message:
        plain = _QUOTED.sub("'", message)
    else:
        # Quicker, and there may be a million of them.
        plain = "'".join(message.split("'")[::2])
    return plain.translate(_DIGITS)


@dataclass(slots=True)
class ProblemKind:
    """Problems that say the same of different cells, rows and files: how many there are, and the
    first two; as a text, one line.
    """

    count: int
    examples: list[Problem]

    @property
    def skipped(self) -> bool:
        """Whether the records were left out."""
        return self.examples[0].skipped

    def __str__(self) -> str:
        return one_line(self.count, list(map(str, self.examples)))


def one_line(count: int, examples: Sequence[str]) -> str:
    """The first example of a kind, and how many there are with a second one."""
    return examples[0] if count == 1 else f"{examples[0]} ({count:,} of this kind; another is: {examples[1]})"


def gathered(messages: Iterable[str]) -> list[str]:
    """Messages as one line a kind, in the order of the first of each."""
    kinds: dict[str, list[str]] = {}
    for message in messages:
        kinds.setdefault(kind_of(message), []).append(message)
    return [one_line(len(several), several) for several in kinds.values()]


class Problems(list[Problem]):
    """The first thousand problems of a load, and all of them by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[tuple[bool, str], ProblemKind] = {}

    def note(self, message: str, file: str, row: int | None, field: str | None, skipped: bool, table: str | None) -> None:
        """Remember a problem, whose parts are those of `Problem`."""
        message = shortened(message)
        key = skipped, kind_of(message)
        kind = self.kinds.get(key)
        if kind is None:
            if len(self.kinds) >= _MOST_KINDS:
                key = skipped, ""
            kind = self.kinds.setdefault(key, ProblemKind(0, []))
        kind.count += 1
        if kind.count > 2 and len(self) >= MOST_PROBLEMS:
            return
        problem = Problem(message, file, row, field, skipped, table)
        if kind.count <= 2:
            kind.examples.append(problem)
        if len(self) < MOST_PROBLEMS:
            self.append(problem)


@dataclass(slots=True)
class Reading:
    """One source while it is read: its `Source`, what to do with bad records, and what has been
    found so far.
    """

    source: Source
    on_error: OnError = "raise"
    progress: Progress | None = None
    problems: Problems = field(default_factory=Problems)
    skipped: int = 0
    warned: int = 0
    records: int = 0
    #: Columns of tables that were found to refer to rows of others, with what speaks for it.
    joins: list[str] = field(default_factory=list)
    #: Reads triples in condgraph's own RDF layout, by the IRI of their graph; the caller of a load
    #: gives it.
    own_rdf: Callable[[Iterable[Any], str], Iterator[Item]] | None = None
    #: Reads a folder of condgraph's own tables in Parquet, too.
    own_parquet: Callable[[Path, Reading], Iterator[Item]] | None = None
    #: What the graph holds before this load, for references to what is there; None where nothing
    #: is, or where it cannot be looked at.
    known: Callable[[], Snapshot | None] | None = None
    #: Sources that this load puts something else in the place of: what `known` has of them is not
    #: there any more.
    gone: tuple[str, ...] = ()
    #: What ids begin with that hold within the source alone (rows without a key, blank nodes); its
    #: name where it is empty.
    scope: str = ""
    #: The files of a load that is bounded in memory.
    spill: SpilledFiles | None = None
    #: The table of a workbook or a database that is read.
    table: str | None = None
    #: Predicates that the source itself declares as having one value at a time, with their preferences.
    single_valued: dict[str, Any] = field(default_factory=dict)

    @property
    def within(self) -> str:
        """What ids that hold within the source alone begin with."""
        return self.scope or self.source.name

    def bad(self, message: str, *, row: int | None = None, field: str | None = None, file: str | None = None) -> None:
        """A record that cannot be used: raises `LoadError`, or with `on_error="skip"` remembers
        that it was left out.
        """
        if self.on_error == "raise":
            raise LoadError(
                message,
                file=file or self.source.location,
                table=self.table,
                row=row,
                field=field,
                hint="on_error='skip' leaves such records out and reports them",
            )
        self.skipped += 1
        self.problems.note(message, file or self.source.location, row, field, True, self.table)

    def warn(self, message: str, *, row: int | None = None, field: str | None = None, file: str | None = None) -> None:
        """A record that is kept, with something a user should know."""
        self.warned += 1
        self.problems.note(message, file or self.source.location, row, field, False, self.table)

    def advance(self, records: int, fraction: float | None = None) -> None:
        """Report to the progress callback that `records` more were read; call it once a batch, not
        once a record.
        """
        self.records += records
        if self.progress is not None:
            self.progress(self.source.location, self.records, fraction)


#: The sign of a format that is never a file.
NO_FILE: Final = re.compile(b"(?!)").match
#: The sign of a file that is JSON: its first character that is printed is a bracket.
JSON_SIGN: Final = re.compile(rb"[^!-~]*[\[{]").match

Options: TypeAlias = Mapping[str, Any]
Read: TypeAlias = Callable[[Any, Reading, Options], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its loader, the options it takes (name to one line of help), and how it
    is recognised.

    `sniff` gets the path and the first 64 KiB of it (empty for a folder) and answers 0 (no) to 100
    (certainly). It is asked about files whose first 64 KiB have the format's `sign` (None: any), or
    whose extension is among its `suffixes`: both may be wrong, but miss no file of the format.
    `claims` says whether a Python object that is no path (a dataframe, say) is of this format.
    """

    name: str
    about: str
    read: Read
    options: Mapping[str, str] = field(default_factory=dict)
    sniff: Callable[[Path, bytes], int] = lambda path, head: 0
    claims: Callable[[Any], bool] = lambda source: False
    sign: Callable[[bytes], object] | None = None
    suffixes: Collection[str] = ()

    def check_options(self, options: Options) -> None:
        """Raise `OptionError` for an option that this format does not take."""
        for option in options:
            if option not in self.options:
                raise OptionError(
                    f"the {self.name} loader takes no option {option!r}",
                    candidates=nearest(option, self.options),
                    hint="it takes: " + (", ".join(self.options) or "none"),
                )


def option_text(options: Options, name: str, default: str = "") -> str:
    """An option that is text; raises `OptionError` for anything else."""
    value = options.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise OptionError(f"{name}= is text, not {type(value).__name__}")
    return value


def option_texts(options: Options, name: str, default: Sequence[str] = ()) -> tuple[str, ...]:
    """An option that is one text or several; raises `OptionError` for anything else."""
    value = options.get(name)
    if value is None:
        return tuple(default)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        texts = tuple(value)
        if all(isinstance(text, str) for text in texts):
            return texts
    raise OptionError(f"{name}= is a text or a list of texts")


def option_choice(options: Options, name: str, choices: Sequence[str]) -> str:
    """An option that is one of several words, the first by default; raises `OptionError` for
    anything else.
    """
    value = options.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise OptionError(f"{name}= is one of {', '.join(choices)}, not {value!r}")
    return str(value)


def option_bool(options: Options, name: str) -> bool | None:
    """An option that is true or false, None where it is not given; raises `OptionError` for anything else."""
    value = options.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise OptionError(f"{name}= is true or false, not {value!r}")
