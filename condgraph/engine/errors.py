"""Every exception condgraph raises on purpose, as one tree.

    CondgraphError
    +-- ParseError               the text of a program is not well formed; has a position
    +-- PlanError                the program is well formed and means nothing (a qualifier filter on entities, say)
    |   +-- UnknownNameError     a relation, attribute, concept, entity, function or operator that does not exist; has candidates
    |   +-- AmbiguousNameError   a name that occurs in several sources and was not scoped
    |   +-- LiteralError         a literal that cannot be read as the type the function asks for
    |   +-- ChainError           a token or a triple that the chain so far does not allow
    |   +-- CyclicQueryError     a logical query whose variables form a cycle
    |   +-- UnsafeQueryError     a logical query that only excludes answers
    +-- UnsupportedError         a target cannot express part of the plan; names the target and all that is missing
    +-- LoadError                a source cannot be read; has file, row and field
    |   +-- FormatError          a source whose format is not recognised, or not the expected one
    |   +-- SourceError          a source whose name is taken, or the same source with other content
    +-- StoreError               the store cannot be used
    |   +-- StoreMissingError    nothing there
    |   +-- StoreDamagedError    truncated, missing or altered files
    |   +-- StoreVersionError    written by a version that this one cannot read
    |   +-- StoreBusyError       somebody else is writing
    |   +-- ReadOnlyError        a write through a store opened for reading
    +-- InterruptedQueryError    a query that was ended
    |   +-- DeadlineError        by its deadline
    |   +-- CancelledError       by its caller
    +-- EncoderError             an encoder, or the server behind it, did not return vectors
    |   +-- EncoderMismatchError vectors of two encoders cannot be compared; names both
    +-- ModelError               a language model, or the server behind it, returned no completion
    +-- LinkModelError           a link prediction model that is damaged, incomplete or for another graph
    +-- BudgetError              the budget for calls of a model is spent; names the limit
    +-- TranscriptError          a transcript does not contain the request, or cannot be read
    +-- OptionError              an argument of an API call that makes no sense (also a ValueError)
    +-- MissingExtraError        an optional dependency is not installed; says the line that installs it (also an ImportError)

Each has a `message`, and where they apply a `hint` (what may help), a `span` (start and end offset in
the text), and `candidates` (nearest names, best first). `code` is stable, for programs that handle
errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from heapq import heapify, heappop, heappush
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

#: The largest number of characters of a message or hint, and of a name among the candidates: the
#: faulty text may be a megabyte long.
MAX_MESSAGE: Final = 2_000
MAX_CANDIDATE: Final = 200
#: The longest name that is compared with others, in characters: a longer one is hardly a misspelling,
#: and the comparison takes quadratic time.
MAX_NAME: Final = 300


def on_one_line(text: str, most: int = 80) -> str:
    """Return a text from data for use in a message: shortened, with unprintable characters escaped, on one line.

    >>> on_one_line("a\\nb")
    'a\\\\nb'
    """
    return printable(shortened(text, most))


def printable(text: str) -> str:
    """Return text with unprintable characters escaped."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def shortened(text: str, most: int = MAX_MESSAGE) -> str:
    """Return a text of at most about `most` characters: the beginning and end of a longer one, and how many
    characters are left out.

    >>> shortened("a" * 90 + "b" * 10, 40)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa[... 60 characters ...]bbbbbbbbbb'
    """
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]}[... {len(text) - most:,} characters ...]{text[-end:]}"


def numbered(count: int, one: str, many: str) -> str:
    """Return a number followed by the words for one or for many.

    >>> numbered(1, "value is", "values are"), numbered(2000, "value is", "values are")
    ('1 value is', '2000 values are')
    """
    return f"{count} {one if count == 1 else many}"


class CondgraphError(Exception):
    """The base class of all deliberate errors."""

    code = "error"

    def __init__(
        self, message: str, *, hint: str | None = None, span: tuple[int, int] | None = None, candidates: Sequence[str] = ()
    ) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else shortened(hint)
        self.span = span
        self.candidates = tuple(candidates)

    def __str__(self) -> str:
        text = self.message
        if self.span is not None:
            text += f" (at character {self.span[0] + 1})"
        if self.candidates:
            text += "; nearest: " + shortened(", ".join(repr(shortened(name, MAX_CANDIDATE)) for name in self.candidates))
        if self.hint:
            text += f"; {self.hint}"
        return text

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython and notebooks print: the user's line that led here, and the message."""
        from traceback import extract_tb

        package = str(Path(__file__).parents[1])
        user_frames = takewhile(lambda frame: not frame.filename.startswith(package), extract_tb(self.__traceback__))
        user_frame = next((frame for frame in reversed([*user_frames]) if "/IPython/" not in frame.filename), None)
        location = [] if user_frame is None or not user_frame.line else [f"line {user_frame.lineno}: {user_frame.line}", ""]
        return [*location, f"{type(self).__name__}: {self}"]


class ParseError(CondgraphError):
    """The text of a program is not well formed. `span` is the position."""

    code = "parse"


class PlanError(CondgraphError):
    """The program is well formed and has no meaning."""

    code = "plan"


class UnknownNameError(PlanError):
    """A name that the graph, or the language, does not have. `kind` is the kind of name."""

    code = "unknown-name"

    def __init__(
        self, kind: str, name: str, *, candidates: Sequence[str] = (), span: tuple[int, int] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(f"unknown {kind} {name!r}", candidates=candidates, span=span, hint=hint)
        self.kind = kind
        self.name = name


class AmbiguousNameError(PlanError):
    """A name that occurs in several sources. `candidates` lists the sources."""

    code = "ambiguous-name"


class LiteralError(PlanError):
    """A literal that cannot be read as the required type."""

    code = "literal"


class ChainError(PlanError):
    """A token, or a triple, that the chain so far does not allow."""

    code = "chain"


class CyclicQueryError(PlanError):
    """A logical query whose variables form a cycle, so that it is not a tree."""

    code = "cyclic-query"


class UnsafeQueryError(PlanError):
    """A logical query that only excludes answers."""

    code = "unsafe-query"


class UnsupportedError(CondgraphError):
    """A target cannot express part of a plan. `missing` lists every operator at once."""

    code = "unsupported"

    def __init__(self, target: str, missing: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__(f"{target} does not support: {', '.join(missing)}", hint=hint)
        self.target = target
        self.missing = tuple(missing)


class LoadError(CondgraphError):
    """A source cannot be read. `file`, `table` (of a workbook or a database), `row` (1-based line or record) and
    `field` are the position.
    """

    code = "load"

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        table: str | None = None,
        row: int | None = None,
        field: str | None = None,
        hint: str | None = None,
        candidates: Sequence[str] = (),
    ) -> None:
        where = ", ".join(
            part
            for part in (
                file,
                None if table is None else f"table {shortened(table, MAX_CANDIDATE)!r}",
                None if row is None else f"row {row}",
                None if field is None else f"field {shortened(field, MAX_CANDIDATE)!r}",
            )
            if part
        )
        message = shortened(message)
        super().__init__(f"{where}: {message}" if where else message, hint=hint, candidates=candidates)
        self.reason = message
        self.file = file
        self.table = table
        self.row = row
        self.field = field


class FormatError(LoadError):
    """A source whose format is not recognised, or is not the expected one."""

    code = "format"


class SourceError(LoadError):
    """A source whose name is used by another source of the graph, or the same source with other content."""

    code = "source"


class StoreError(CondgraphError):
    """The store cannot be used."""

    code = "store"


class StoreMissingError(StoreError):
    """There is no graph at this location."""

    code = "store-missing"


class StoreDamagedError(StoreError):
    """Files of the store are truncated, missing or altered."""

    code = "store-damaged"


class StoreVersionError(StoreError):
    """The store was written by a version that this one cannot read."""

    code = "store-version"


class StoreBusyError(StoreError):
    """Another process is writing to the store."""

    code = "store-busy"


class ReadOnlyError(StoreError):
    """A write through a store that was opened for reading."""

    code = "read-only"

    @classmethod
    def at(cls, place: str) -> ReadOnlyError:
        """Return the error for a store at a location."""
        return cls(f"{place} was opened for reading", hint="open it with read_only=False")


class InterruptedQueryError(CondgraphError):
    """A query that was interrupted before it had an answer."""

    code = "interrupted"


class DeadlineError(InterruptedQueryError):
    """A query that did not end before its deadline."""

    code = "deadline"


class CancelledError(InterruptedQueryError):
    """A query that its caller cancelled."""

    code = "cancelled"


class EncoderError(CondgraphError):
    """An encoder, or the server behind it, did not return the requested vectors."""

    code = "encoder"


class EncoderMismatchError(EncoderError):
    """Vectors of two encoders cannot be compared. `kept` and `asked` name both, with their dimensions."""

    code = "encoder-mismatch"

    def __init__(self, kept: str, asked: str) -> None:
        super().__init__(
            f"the index was made by the encoder {kept}, the one asked for is {asked}; their vectors do not compare",
            hint="ask with the index's encoder, or make the index again: `condgraph index --encoder ...`, `graph.index(...)`",
        )
        self.kept = kept
        self.asked = asked


class ModelError(CondgraphError):
    """A language model, or the server behind it, returned no usable completion."""

    code = "model"


class LinkModelError(CondgraphError):
    """A link prediction model that cannot be used: damaged, incomplete, or for another graph."""

    code = "link-model"


class BudgetError(CondgraphError):
    """The budget for calls of a language model is spent: calls, tokens or seconds."""

    code = "budget"


class TranscriptError(CondgraphError):
    """A transcript of calls does not contain this call, or cannot be read."""

    code = "transcript"


class OptionError(CondgraphError, ValueError):
    """An argument of an API call that makes no sense."""

    code = "option"


class MissingExtraError(CondgraphError, ImportError):
    """An optional dependency is not installed, or cannot be imported for another `reason`."""

    code = "missing-extra"

    def __init__(self, package: str, extra: str, reason: ImportError | None = None) -> None:
        installed = reason is not None and not isinstance(reason, ModuleNotFoundError)
        state = f"cannot be imported: {reason}" if installed else "is not installed"
        super().__init__(f"{package} {state}", hint=f"pip install 'condgraph[{extra}]'")
        self.package = package
        self.extra = extra


@contextmanager
def requiring(package: str, extra: str) -> Iterator[None]:
    """Raise `MissingExtraError` if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra, error) from None


def pyarrow_or_error() -> Any:
    """Return the package pyarrow, an extra; raise `MissingExtraError` without it."""
    with requiring("pyarrow", "arrow"):
        import pyarrow
    return pyarrow


def nearest(name: str, names: Iterable[str], *, most: int = 5) -> list[str]:
    """Return the names most similar to `name`, best first, at most `most`; names with nothing in common are left out.
    Names that end with it after a slash, such as predicates without a label, count as almost equal.

    Case does not matter. Similarity is the ratio of `difflib`, computed only if an upper bound, from the shared
    characters, is high enough. Names of more than `MAX_NAME` characters are never similar.
    """
    if len(name) > MAX_NAME or most < 1:
        return []
    # Imported late, because that module imports this one.
    from condgraph.engine.bounds import watched

    wanted = name.casefold()
    letters, counts = zip(*Counter(wanted).items(), strict=True) if wanted else ((), ())
    bounded: list[tuple[float, str, str]] = []
    ending, ends = [], (f"/{wanted}", f"#{wanted}")
    for candidate in watched(names, 256):
        folded = candidate.casefold()
        if wanted and folded.endswith(ends) and len(candidate) <= MAX_NAME:
            ending.append(candidate)
            continue
        total = (len(wanted) + len(folded)) or 1
        if len(candidate) > MAX_NAME or 2.0 * min(len(wanted), len(folded)) / total < 0.5:
            continue
        # An upper bound: no more characters can match than both names have.
        bound = 2.0 * sum(map(min, counts, map(folded.count, letters))) / total
        if bound >= 0.5:
            bounded.append((bound, folded, candidate))
    bounded.sort(key=itemgetter(0), reverse=True)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best = [(0.99, [-ord(character) for character in candidate], candidate) for candidate in sorted(ending)[:most]]
    heapify(best)
    for bound, folded, candidate in watched(bounded, 256):
        if len(best) == most and bound < best[0][0]:
            break
        matcher.set_seq1(folded)
        if (score := matcher.ratio()) >= 0.5:
            # The negated key makes ties alphabetical.
            heappush(best, (score, [-ord(character) for character in candidate], candidate))
            if len(best) > most:
                heappop(best)
    return [candidate for *_, candidate in sorted(best, reverse=True)]
