"""Exit codes, and the conversion of errors to messages on standard error and exit codes."""

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


#: This is shown below the help of every command.
EXIT_CODES: Final = (
    "Exit codes: 0 an answer, also an empty one of your own program; 1 an error in the program or the data; 2 wrong usage; "
    "3 the store cannot be used; 4 the deadline passed; "
    "5 an uncertain answer: a name in the program was read as another one, or, with ask, a name has several meanings, "
    "or the program of the model returned nothing or does not fit the question; "
    "130 interrupted; 141 the reader of the output closed it."
)


def code_of(error: CondgraphError) -> Exit:
    """Return the exit code of an error."""
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
    """Return the message for an error in several lines.

    It has the code and message, the place in the program, the nearest names and a hint.
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


#: The command-line options of a load by their names in Python.
SWITCHES: Final = {
    "format": "--as", "name": "--name", "on_error": "--on-error", "progress": "--quiet", "wait": "--wait",
    "replace": "--replace", "append": "--append", "memory": "--memory",
}  # fmt: skip
_SWITCH: Final = re.compile(rf"\b({'|'.join(SWITCHES)})=(?:True|'(\w+)')?")


def _switched(hint: str) -> str:
    """Rewrite a hint with the command-line names of load options.

    >>> _switched("replace=True puts it in place of the other; on_error='skip' skips such records, key= is as it was")
    '--replace puts it in place of the other; --on-error skip skips such records, key= is as it was'
    """
    return _SWITCH.sub(lambda match: SWITCHES[match[1]] + (f" {match[2]}" if match[2] else ""), hint)


def _place(program: str, start: int, end: int) -> list[str]:
    """Return the line of the program in which a span begins, with carets below the span."""
    start = min(max(start, 0), len(program))
    first = program.rfind("\n", 0, start) + 1
    last = program.find("\n", start)
    line = program[first : len(program) if last < 0 else last]
    # Only the part of a long line around the span is shown.
    cut = max(0, start - first - 60)
    shown = line[cut : cut + 120]
    width = max(1, min(end, first + cut + len(shown)) - start)
    prefix = "  | " + ("..." if cut else "")
    # Keep tabs, so that they have the same width as in the line above.
    indent = "".join("\t" if letter == "\t" else " " for letter in shown[: start - first - cut])
    where = f"  at character {start + 1}" + (f", line {program.count(chr(10), 0, start) + 1}" if "\n" in program.strip() else "")
    return [where, prefix + shown + ("..." if cut + 120 < len(line) else ""), " " * len(prefix) + indent + "^" * width]


def complain(text: str, *, nl: bool = True) -> None:
    """Write a line to standard error (or, without `nl`, part of a line), if anybody is still reading."""
    try:
        typer.echo(text, nl=nl, err=True)
    except BrokenPipeError:
        _forget(sys.stderr.fileno())


@contextmanager
def guard(program: str | None = None) -> Iterator[None]:
    """Turn errors into messages and exit codes. `program` is the text to which the spans of errors refer."""
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
        # Otherwise the interpreter would try to write the buffered data again when it closes the stream.
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
