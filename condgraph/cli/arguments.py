"""What commands take: arguments and options that several of them share, groups of options as dataclasses,
and the texts of a command line as what the library takes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

import condgraph
from condgraph.cli import complete
from condgraph.cli.exits import SWITCHES
from condgraph.engine.addresses import NEO4J_SCHEMES, SPARQL_SCHEMES, SQL_SCHEMES
from condgraph.engine.bounds import within
from condgraph.graph import Graph

if TYPE_CHECKING:
    from condgraph.engine.conflicts import Prefer

#: How a report is written, and how a text is.
TableOrJson = Literal["table", "json"]
TextOrJson = Literal["text", "json"]


# -- groups of options -------------------------------------------------------------------------------
# Options that belong together, as one dataclass: a command takes the dataclass, the command line
# its fields.


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: a parameter that is a dataclass becomes one parameter for each
    field, in its place, with the field's default.
    """
    groups: dict[str, type[Any]] = {}
    flat: list[Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
            flat += _options(hint)
        else:
            flat.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: group(**{item.name: given.pop(item.name) for item in fields(group)}) for name, group in groups.items()}
        command(**given, **made)

    run.__annotations__ = {item.name: item.annotation for item in flat}
    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    return run


def _options(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            item.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(group)
    ]


# -- from texts to values ----------------------------------------------------------------------------
# Texts of the command line as what the library takes: `-O option=value`, `--param name=value`, and
# the program from TEXT, a file or standard input.


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
        if name in SWITCHES:
            raise typer.BadParameter(f"{name!r} is given with {SWITCHES[name]}", param_hint="-O")
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
    are. Raises `typer.BadParameter`.
    """
    result: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint="--param")
        if name in result:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="--param")
        result[name] = value
    return result


def preference(texts: Sequence[str] | None) -> Prefer | None:
    """Values of `--prefer` as the library takes them: one of its words, sources, or these of each predicate that is named
    (`capital=latest`). Raises `typer.BadParameter` where only some name a predicate.
    """
    from condgraph.engine.conflicts import CRITERIA

    if not texts:
        return None
    pairs = [text.partition("=") for text in texts]
    if not any(mark for _, mark, _ in pairs):
        return texts[0] if len(texts) == 1 and texts[0] in CRITERIA else list(texts)
    if not all(mark for _, mark, _ in pairs):
        raise typer.BadParameter("either every one is PREDICATE=PREFERENCE, or none", param_hint="--prefer")
    named: dict[str, list[str]] = {}
    for predicate, _, text in pairs:
        named.setdefault(predicate, []).append(text)
    return {predicate: few[0] if len(few) == 1 and few[0] in CRITERIA else few for predicate, few in named.items()}


def program_text(text: str | None, file: Path | None) -> str:
    """The program: TEXT, or the content of the file, or standard input where TEXT is `-` or neither
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


# -- shared arguments --------------------------------------------------------------------------------


StoreOption = Annotated[
    str,
    typer.Option(
        "--directory",
        "-d",
        "--address",
        "-a",
        envvar=complete.STORE_VARIABLES,
        metavar="STORE",
        help="The folder of the store, or an address: neo4j://HOST:PORT, sparql+http://HOST/PATH, duckdb:///FILE.",
    ),
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="STORE", help="A further store that is asked with it as one graph; may be repeated."),
]
UserOption = Annotated[str | None, typer.Option("--username", "-u", metavar="NAME", help="Who logs in to a server.")]
PasswordOption = Annotated[
    str | None, typer.Option("--password", "-p", metavar="PASSWORD", help="The password; NEO4J_PASSWORD keeps it out of sight.")
]
DatabaseOption = Annotated[
    str | None, typer.Option("--database", metavar="NAME", help="The database of a Neo4j server; its home database by default.")
]
FolderOption = Annotated[
    str | None, typer.Option("--folder", metavar="FOLDER", help="Of Spark, where an export to Parquet is, as Spark reads it.")
]
GraphOption = Annotated[
    str, typer.Option("--graph", metavar="NAME", help="The graph in the store.", autocompletion=complete.graphs)
]
TextArgument = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="The program; `-`, or nothing, reads it from standard input.", show_default=False),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", exists=True, dir_okay=False, help="Read the program from a file."),
]
TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="CLAUSE",
        help="Make a table of the rows: `group by country show count() having count() > 5 order by count() desc limit 3`.",
    ),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="The value of a parameter ($NAME) of the program, without quotes."),
]
PreferOption = Annotated[
    list[str] | None,
    typer.Option(
        "--prefer",
        metavar="PREFERENCE",
        help="What counts of two statements that contradict each other: rank, latest, earliest, or a source; may be repeated. "
        "Or for one predicate: capital=latest.",
    ),
]
TimeoutOption = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="LANGUAGE",
        help="The program's language, such as `kopl`; recognised from the text by default.",
        autocompletion=complete.languages,
    ),
]


def is_neo4j(store: str) -> bool:
    """Whether a store is the address of a Neo4j server."""
    scheme, mark, _ = store.partition("://")
    return bool(mark) and scheme.lower() in NEO4J_SCHEMES


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """Which graph of the store, where it is there, and who logs in."""

    graph: GraphOption = "default"
    user: UserOption = None
    password: PasswordOption = None
    database: DatabaseOption = None
    folder: FolderOption = None


def opened(
    store: str,
    login: LoginOptions,
    *,
    read_only: bool = True,
    labels: bool | None = None,
    timeout: float | None = None,
    also: Sequence[str] | None = None,
) -> Graph:
    """The graph that a command is about; what to log in with is passed on where it was given, and
    what a load is to do about labels. A server that is silent for `timeout` seconds is not waited for.
    `also` are further stores, which are asked with it as one graph.
    """
    with within(timeout):
        if also:
            from condgraph.remote_several import several

            return several([(store, login), *((one, LoginOptions()) for one in also)], lambda place: opened(*place))
        return condgraph.open(store, graph=login.graph, read_only=read_only, **how_to_open(store, login, read_only, labels))


def how_to_open(store: str, login: LoginOptions, read_only: bool = True, labels: bool | None = None) -> dict[str, Any]:
    """The options of `condgraph.open` that a command line and its environment specify.

    A command that writes is about a graph that condgraph wrote. For others the environment says how
    to read a database or an endpoint: `CONDGRAPH_LAYOUT`, and `CONDGRAPH_MAPPING`, a mapping file. It
    also has the addresses of an RDF store besides the one for queries: `SPARQL_UPDATE`, and
    `SPARQL_STORE` (Graph Store Protocol).
    """
    given: dict[str, Any] = {name: getattr(login, name) for name in ("user", "password", "database", "folder")}
    given["labels"] = labels
    scheme, mark, _ = store.lower().partition("://")
    endpoint, sql = (bool(mark) and scheme in schemes for schemes in (SPARQL_SCHEMES, SQL_SCHEMES))
    if is_neo4j(store) or endpoint or (sql and read_only and login.folder is None):
        given |= {"layout": os.environ.get("CONDGRAPH_LAYOUT") or None, "mapping": os.environ.get("CONDGRAPH_MAPPING") or None}
        if not read_only:
            given |= {"layout": "condgraph", "mapping": None}
    if endpoint and given["layout"] != "native" and given["mapping"] is None:
        given |= {"update": os.environ.get("SPARQL_UPDATE") or None, "store": os.environ.get("SPARQL_STORE") or None}
    return {name: value for name, value in given.items() if value is not None}
