"""Texts of the command line as what the library takes: `-O option=value`, `--param name=value`, and
the program from TEXT, a file or standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

#: Arguments of `Graph.load` that have a switch of their own.
_SWITCHES: Final = {
    "format": "--as", "name": "--name", "on_error": "--on-error", "progress": "--quiet", "wait": "--wait",
    "replace": "--replace", "append": "--append",
}  # fmt: skip


def file_of(output: Path | None) -> Path | None:
    """The file that `--output` names; None for standard output, which `-` is as well.

    >>> file_of(Path("-")), file_of(Path("a.jsonl")).name
    (None, 'a.jsonl')
    """
    return None if output is None or str(output) == "-" else output


def loader_options(texts: Sequence[str]) -> dict[str, Any]:
    """`["key=mountain", "refs=country"]` as options of a loader.

    A value that is a JSON list, object, string in quotes, `true`, `false` or `null` is read as
    such, anything else is text; an option given more than once is a list. Raises
    `typer.BadParameter`.
    """
    options: dict[str, Any] = {}
    seen: set[str] = set()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not of the form option=value", param_hint="-O")
        if name in _SWITCHES:
            raise typer.BadParameter(f"{name!r} is given with {_SWITCHES[name]}", param_hint="-O")
        read = _value(name, value)
        if name not in options:
            options[name] = read
        elif name in seen:
            options[name].append(read)
        else:
            options[name] = [options[name], read]
            seen.add(name)
    return options


def _value(name: str, text: str) -> Any:
    if text[:1] not in ("[", "{", '"') and text not in ("true", "false", "null"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"the value of {name!r} begins like JSON and is none: {error}", param_hint="-O") from None


def parameters(texts: Sequence[str]) -> dict[str, str]:
    """`["country=Nepal", "least=8000 m"]` as values of parameters, by name; values are texts as they
    stand. Raises `typer.BadParameter`.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint="--param")
        if name in found:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="--param")
        found[name] = value
    return found


def program_text(text: str | None, file: Path | None) -> str:
    """The program: TEXT, or what stands in the file, or standard input where TEXT is `-` or neither
    is given.
    """
    if file is not None:
        if text is not None:
            raise typer.BadParameter("a program is given as TEXT or with -f, not both")
        try:
            return file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise typer.BadParameter(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}", param_hint="-f") from None
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise typer.BadParameter("no program: give it as TEXT, with -f FILE, or on standard input")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not UTF-8 text: {error.reason} at byte {error.start}") from None
