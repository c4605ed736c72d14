"""What loaders share: the description of a format, the state of a reading, and the report of problems.

A loader is a module with a `FORMAT: Format`. Its `read` is a generator of `facts.Item`s over one
source, and reports problems to its `Reading`: `bad` for a record that has to be skipped (raises with
`on_error="raise"`, the default), `warn` for a record that is kept but may not mean what its author
meant. Nothing is dropped without one of the two.
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
#: Called with the source's location, the number of records read so far, and the fraction of the source
#: read (None if unknown).
Progress: TypeAlias = Callable[[str, int, float | None], None]

#: How many problems are kept in full; further ones are only counted.
MAX_PROBLEMS = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a source: its message, its location, and whether the record was skipped or kept."""

    message: str
    file: str
    row: int | None
    field: str | None
    skipped: bool
    #: The table in a workbook or a database.
    table: str | None = None

    def __str__(self) -> str:
        return str(LoadError(self.message, file=self.file, table=self.table, row=self.row, field=self.field))


#: How many kinds of problems are distinguished; further ones share one kind.
_MAX_KINDS: Final = 500
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"")
_DIGITS: Final = str.maketrans("", "", "0123456789,.")


def kind_of(message: str) -> str:
    r"""Return a message without its quoted parts and numbers, which vary between problems of one kind.

    >>> kind_of("'S77' is not a key of 'stops'") == kind_of("\"it's\" is not a key of 'stops'")
    True
    """
    if '"' in message:
        plain = _QUOTED.sub("'", message)
    else:
        # Faster; there may be a million messages.
        plain = "'".join(message.split("'")[::2])
    return plain.translate(_DIGITS)


@dataclass(slots=True)
class ProblemKind:
    """Problems of one kind in different cells, rows and files: their number and the first two.

    Its text is one line.
    """

    count: int
    examples: list[Problem]

    @property
    def skipped(self) -> bool:
        """Whether the records were skipped."""
        return self.examples[0].skipped

    def __str__(self) -> str:
        return one_line(self.count, list(map(str, self.examples)))


def one_line(count: int, examples: Sequence[str]) -> str:
    """Return the first example of a kind, with the number of problems and a second example."""
    return examples[0] if count == 1 else f"{examples[0]} ({count:,} of this kind; another is: {examples[1]})"


def gathered(messages: Iterable[str]) -> list[str]:
    """Return messages as one line for each kind, in the order of the first of each."""
    kinds: dict[str, list[str]] = {}
    for message in messages:
        kinds.setdefault(kind_of(message), []).append(message)
    return [one_line(len(examples), examples) for examples in kinds.values()]


class Problems(list[Problem]):
    """The first thousand problems of a load, and all problems by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[tuple[bool, str], ProblemKind] = {}

    def note(self, message: str, file: str, row: int | None, field: str | None, skipped: bool, table: str | None) -> None:
        """Record a problem; the arguments are the fields of `Problem`."""
        message = shortened(message)
        key = skipped, kind_of(message)
        kind = self.kinds.get(key)
        if kind is None:
            if len(self.kinds) >= _MAX_KINDS:
                key = skipped, ""
            kind = self.kinds.setdefault(key, ProblemKind(0, []))
        kind.count += 1
        if kind.count > 2 and len(self) >= MAX_PROBLEMS:
            return
        problem = Problem(message, file, row, field, skipped, table)
        if kind.count <= 2:
            kind.examples.append(problem)
        if len(self) < MAX_PROBLEMS:
            self.append(problem)


@dataclass(slots=True)
class Reading:
    """The state of reading one source: the `Source`, the handling of bad records, and counts so far."""

    source: Source
    on_error: OnError = "raise"
    progress: Progress | None = None
    problems: Problems = field(default_factory=Problems)
    skipped: int = 0
    warned: int = 0
    records: int = 0
    #: Columns that were found to refer to rows of other tables, with the evidence for it.
    joins: list[str] = field(default_factory=list)
    #: Reads triples in condgraph's own RDF layout, given the IRI of their graph; set by the caller.
    own_rdf: Callable[[Iterable[Any], str], Iterator[Item]] | None = None
    #: Read folders of condgraph's own exports, by the name of the format; set by the caller.
    own_folders: Mapping[str, Callable[[Path, Reading], Iterator[Item]]] = field(default_factory=dict)
    #: The content of the graph before this load, for references to it; None if there is none, or if it
    #: cannot be read.
    known: Callable[[], Snapshot | None] | None = None
    #: Sources that this load replaces: what `known` has of them no longer counts.
    gone: tuple[str, ...] = ()
    #: The prefix of ids that are local to the source (rows without a key, blank nodes); empty for the
    #: source's name.
    scope: str = ""
    #: Temporary files of a load with bounded memory.
    spill: SpilledFiles | None = None
    #: The table in a workbook or a database that is being read.
    table: str | None = None
    #: Predicates that the source declares to have one value at a time, with their preferences.
    single_valued: dict[str, Any] = field(default_factory=dict)

    @property
    def within(self) -> str:
        """The prefix of ids that are local to the source."""
        return self.scope or self.source.name

    def bad(self, message: str, *, row: int | None = None, field: str | None = None, file: str | None = None) -> None:
        """Report an unusable record: raise `LoadError`, or with `on_error="skip"` record that it was skipped."""
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
        """Report a record that is kept, with a warning for the user."""
        self.warned += 1
        self.problems.note(message, file or self.source.location, row, field, False, self.table)

    def advance(self, records: int, fraction: float | None = None) -> None:
        """Report `records` more records to the progress callback; call it once for each batch, not each record."""
        self.records += records
        if self.progress is not None:
            self.progress(self.source.location, self.records, fraction)


#: The `sign` of a format that is never a file.
NO_FILE: Final = re.compile(b"(?!)").match
#: The `sign` of JSON files: the first printable character is a bracket.
JSON_SIGN: Final = re.compile(rb"[^!-~]*[\[{]").match

Options: TypeAlias = Mapping[str, Any]
Read: TypeAlias = Callable[[Any, Reading, Options], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its loader, its options (name to one line of help), and its recognition.

    `sniff` gets a path and its first 64 KiB (empty for a folder) and returns 0 (no) to 100 (certainly).
    It is called for files whose first 64 KiB have the format's `sign` (None: any), or whose extension is
    among `suffixes`; both may accept too many files, but must not miss any of the format. `claims` tells
    whether a Python object that is not a path (such as a dataframe) has this format.
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
        """Raise `OptionError` for an option that this format does not have."""
        for option in options:
            if option not in self.options:
                raise OptionError(
                    f"the {self.name} loader takes no option {option!r}",
                    candidates=nearest(option, self.options),
                    hint="it takes: " + (", ".join(self.options) or "none"),
                )


def option_text(options: Options, name: str, default: str = "") -> str:
    """Return an option that is text; raises `OptionError` for anything else."""
    value = options.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise OptionError(f"{name}= is text, not {type(value).__name__}")
    return value


def option_texts(options: Options, name: str, default: Sequence[str] = ()) -> tuple[str, ...]:
    """Return an option that is one text or several; raises `OptionError` for anything else."""
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
    """Return an option that is one of several words, by default the first; raises `OptionError` otherwise."""
    value = options.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise OptionError(f"{name}= is one of {', '.join(choices)}, not {value!r}")
    return str(value)


def option_bool(options: Options, name: str) -> bool | None:
    """Return an option that is true or false, None if it is missing; raises `OptionError` otherwise."""
    value = options.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise OptionError(f"{name}= is true or false, not {value!r}")
