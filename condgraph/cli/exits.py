"""Exit codes, and how an error becomes a message on standard error and one of them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

import typer

from condgraph.engine.errors import CancelledError, CondgraphError, DeadlineError, OptionError, StoreError


class Exit(IntEnum):
    """The exit codes of the command line."""

    ANSWER = 0
    ERROR = 1
    USAGE = 2
    STORE = 3
    DEADLINE = 4
    UNSURE = 5
    INTERRUPTED = 130
    READER_GONE = 141


#: Under every command's help.
EXIT_CODES: Final = (
    "Exit codes: 0 an answer, also an empty one of a program of your own; 1 an error in the program or the data; 2 wrong usage; "
    "3 the store cannot be used; "
    "4 the deadline passed; 5 no sure answer: a name of the program was read as another, or, of ask, a name has several meanings "
    "or the program of the model gives nothing or does not fit the question; "
    "130 interrupted; 141 the reader of the output went away."
)


def code_of(error: CondgraphError) -> Exit:
    """The exit code of an error."""
    if isinstance(error, StoreError):
        return Exit.STORE
    if isinstance(error, DeadlineError):
        return Exit.DEADLINE
    if isinstance(error, CancelledError):
        return Exit.INTERRUPTED
    if isinstance(error, OptionError):
        return Exit.USAGE
    return Exit.ERROR


def message_of(error: CondgraphError, program: str | None = None) -> str:
    """An error over several lines: its code and message, the place in the program, nearest names,
    what may help.
    """
    lines = [f"error[{error.code}]: {error.message}"]
    if error.span is not None and program is not None:
        lines += _place(program, *error.span)
    elif error.span is not None:
        lines[0] += f" (at character {error.span[0] + 1})"
    if error.candidates:
        lines.append("  nearest: " + ", ".join(repr(name) for name in error.candidates))
    if error.hint:
        lines.append(f"  hint: {_switched(error.hint)}")
    return "\n".join(lines)


#: How options of a load are written here, by their names in Python.
SWITCHES: Final = {
    "format": "--as", "name": "--name", "on_error": "--on-error", "progress": "--quiet", "wait": "--wait",
    "replace": "--replace", "append": "--append", "memory": "--memory",
}  # fmt: skip
_SWITCH: Final = re.compile(rf"\b({'|'.join(SWITCHES)})=(?:True|'(\w+)')?")


def _switched(hint: str) -> str:
    """A hint with the options of a load as they are written here.

    >>> _switched("replace=True puts it in place of the other; on_error='skip' skips such records, key= is as it was")
    '--replace puts it in place of the other; --on-error skip skips such records, key= is as it was'
    """
    return _SWITCH.sub(lambda found: SWITCHES[found[1]] + (f" {found[2]}" if found[2] else ""), hint)


def _place(program: str, start: int, end: int) -> list[str]:
    """The line of the program that a span begins in, and carets under the span."""
    start = min(max(start, 0), len(program))
    first = program.rfind("\n", 0, start) + 1
    last = program.find("\n", start)
    line = program[first : len(program) if last < 0 else last]
    # A long line is shown around the place only.
    cut = max(0, start - first - 60)
    shown = line[cut : cut + 120]
    width = max(1, min(end, first + cut + len(shown)) - start)
    prefix = "  | " + ("..." if cut else "")
    # Tabs take the width that the terminal gives them in the line above.
    indent = "".join("\t" if letter == "\t" else " " for letter in shown[: start - first - cut])
    where = f"  at character {start + 1}" + (f", line {program.count(chr(10), 0, start) + 1}" if "\n" in program.strip() else "")
    return [where, prefix + shown + ("..." if cut + 120 < len(line) else ""), " " * len(prefix) + indent + "^" * width]


def complain(text: str, *, nl: bool = True) -> None:
    """Write a line (a part of one without `nl`) to standard error, if anybody still reads it."""
    try:
        typer.echo(text, nl=nl, err=True)
    except BrokenPipeError:
        _forget(sys.stderr.fileno())


@contextmanager
def guard(program: str | None = None) -> Iterator[None]:
    """Turn what goes wrong inside into a message and an exit code; `program` is the text that spans
    of errors are places in.
    """
    try:
        yield
        sys.stdout.flush()
    except CondgraphError as error:
        complain(message_of(error, program))
        raise typer.Exit(code_of(error)) from None
    except KeyboardInterrupt:
        complain("interrupted")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        # What is still buffered would be written, and fail again, when the interpreter closes the
        # stream.
        _forget(sys.stdout.fileno())
        raise typer.Exit(Exit.READER_GONE) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"error[file]: {where}{error.strerror or error}")
        raise typer.Exit(Exit.ERROR) from None


def _forget(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
