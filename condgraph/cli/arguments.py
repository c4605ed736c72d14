"""Arguments and options that several commands share, groups of options as dataclasses, and the conversion
of command-line texts to values for the library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import typer

import condgraph
from condgraph.cli import complete
from condgraph.cli.exits import SWITCHES
from condgraph.engine.addresses import NEO4J_SCHEMES, SPARQL_SCHEMES, SQL_SCHEMES
from condgraph.engine.bounds import within
from condgraph.graph import Graph
from condgraph.query_options import ABOUT

if TYPE_CHECKING:
    from condgraph.engine.conflicts import Prefer

#: How a report is written, and how a text is.
TableOrJson = Literal["table", "json"]
TextOrJson = Literal["text", "json"]


# -- groups of options -------------------------------------------------------------------------------
# Options that belong together form a dataclass. The command has one parameter for it, and the command
# line has its fields.


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in the form that typer reads.

    A parameter whose type is a dataclass becomes one parameter for each field, in its place and with
    the field's default.
    """
    groups: dict[str, type[Any]] = {}
    flat: list[Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        hint = _option(parameter.name, hints[parameter.name])
        if is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
            flat += _options(hint)
        else:
            flat.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        group_values = {
            name: group(**{item.name: given.pop(item.name) for item in fields(group)}) for name, group in groups.items()
        }
        command(**given, **group_values)

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
            annotation=_option(item.name, hints[item.name]),
        )
        for item in fields(group)
    ]


def _option(name: str, hint: Any) -> Any:
    """Return the type of an option, with what the record of shared options says of it unless it says so itself."""
    if get_origin(hint) is Annotated or (shared := ABOUT.get(name)) is None:
        return hint
    metavar = shared.value or ("N" if shared.least is not None else name.upper() if hint == str | None else None)
    return Annotated[hint, typer.Option(f"--{name.replace('_', '-')}", metavar=metavar, min=shared.least, help=shared.about)]


# -- from texts to values ----------------------------------------------------------------------------
# Texts of the command line as values for the library: `-O option=value`, `--param name=value`, and the
# program from TEXT, a file or standard input.


def file_of(output: Path | None) -> Path | None:
    """Return the file given with `--output`, or None for standard output, which `-` also means.

    >>> file_of(Path("-")), file_of(Path("a.jsonl")).name
    (None, 'a.jsonl')
    """
    return None if output is None or str(output) == "-" else output


def loader_options(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `["key=mountain", "refs=country"]` as options of a loader.

    A value that is a JSON list, object, quoted string, `true`, `false` or `null` is parsed as JSON, and
    anything else is a text. An option that is given more than once becomes a list. Raises
    `typer.BadParameter`.
    """
    options: dict[str, Any] = {}
    repeated: set[str] = set()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not of the form option=value", param_hint="-O")
        if name in SWITCHES:
            raise typer.BadParameter(f"{name!r} is given with {SWITCHES[name]}", param_hint="-O")
        parsed = _value(name, value)
        if name not in options:
            options[name] = parsed
        elif name in repeated:
            options[name].append(parsed)
        else:
            options[name] = [options[name], parsed]
            repeated.add(name)
    return options


def _value(name: str, text: str) -> Any:
    if text[:1] not in ("[", "{", '"') and text not in ("true", "false", "null"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"the value of {name!r} looks like JSON, but is not: {error}", param_hint="-O") from None


def parameters(texts: Sequence[str]) -> dict[str, str]:
    """Parse `["country=Nepal", "least=8000 m"]` as values of parameters by name. Values stay texts.

    Raises `typer.BadParameter`.
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
    """Parse values of `--prefer` for the library.

    They are one of its words, sources, or these for each named predicate (`capital=latest`). Raises
    `typer.BadParameter` if only some of them name a predicate.
    """
    from condgraph.engine.conflicts import CRITERIA

    if not texts:
        return None
    pairs = [text.partition("=") for text in texts]
    if not any(mark for _, mark, _ in pairs):
        return texts[0] if len(texts) == 1 and texts[0] in CRITERIA else list(texts)
    if not all(mark for _, mark, _ in pairs):
        raise typer.BadParameter("either every one is PREDICATE=PREFERENCE, or none", param_hint="--prefer")
    by_predicate: dict[str, list[str]] = {}
    for predicate, _, text in pairs:
        by_predicate.setdefault(predicate, []).append(text)
    return {
        predicate: values[0] if len(values) == 1 and values[0] in CRITERIA else values for predicate, values in by_predicate.items()
    }


def program_text(text: str | None, file: Path | None) -> str:
    """Return the program: TEXT, the content of the file, or standard input.

    Standard input is read if TEXT is `-` or if neither is given.
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
    typer.Option("--also", metavar="STORE", help="A further store to query together with it; may be repeated."),
]
UserOption = Annotated[str | None, typer.Option("--username", "-u", metavar="NAME", help="The user name for a server.")]
PasswordOption = Annotated[
    str | None, typer.Option("--password", "-p", metavar="PASSWORD", help="The password; better set by NEO4J_PASSWORD.")
]
DatabaseOption = Annotated[
    str | None, typer.Option("--database", metavar="NAME", help="The database of a Neo4j server; its home database by default.")
]
FolderOption = Annotated[
    str | None, typer.Option("--folder", metavar="FOLDER", help="For Spark: the folder of a Parquet export, as Spark reads it.")
]
GraphOption = Annotated[
    str, typer.Option("--graph", metavar="NAME", help="The graph in the store.", autocompletion=complete.graphs)
]
TextArgument = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="The program; `-` or nothing reads it from standard input.", show_default=False),
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
        help="Which of two contradicting statements counts: rank, latest, earliest, or a source; may be repeated. "
        "For one predicate: capital=latest.",
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
    """Return whether a store is the address of a Neo4j server."""
    scheme, mark, _ = store.partition("://")
    return bool(mark) and scheme.lower() in NEO4J_SCHEMES


def is_spark(store: str) -> bool:
    """Return whether a store is the address of Spark."""
    return store.lower().startswith("spark://")


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """The graph in the store, its folder, and the login."""

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
    """Open the graph of a command.

    The login and the option for labels are passed on if they were given. `timeout` is also the longest
    wait for a silent server. `also` are further stores, which are queried together with it as one
    graph.
    """
    with within(timeout):
        if also:
            from condgraph.remote_several import several

            # A folder is for Spark, wherever it is among the stores.
            first = replace(login, folder=None) if not is_spark(store) and any(map(is_spark, also)) else login
            others = [(one, LoginOptions(folder=login.folder if is_spark(one) else None)) for one in also]
            return several([(store, first), *others], lambda place: opened(*place))
        return condgraph.open(store, graph=login.graph, read_only=read_only, **how_to_open(store, login, read_only, labels))


def how_to_open(store: str, login: LoginOptions, read_only: bool = True, labels: bool | None = None) -> dict[str, Any]:
    """Return the options of `condgraph.open` that follow from a command line and its environment.

    A command that writes is for a graph that condgraph wrote. For reading, the environment may say how
    to read a database or an endpoint: `CONDGRAPH_LAYOUT`, and `CONDGRAPH_MAPPING`, a mapping file. It
    may also have the other addresses of an RDF store: `SPARQL_UPDATE`, and `SPARQL_STORE` (Graph Store
    Protocol).
    """
    options: dict[str, Any] = {name: getattr(login, name) for name in ("user", "password", "database", "folder")}
    options["labels"] = labels
    scheme, mark, _ = store.lower().partition("://")
    endpoint, sql = (bool(mark) and scheme in schemes for schemes in (SPARQL_SCHEMES, SQL_SCHEMES))
    if is_neo4j(store) or endpoint or (sql and read_only and login.folder is None):
        options |= {"layout": os.environ.get("CONDGRAPH_LAYOUT") or None, "mapping": os.environ.get("CONDGRAPH_MAPPING") or None}
        if not read_only:
            options |= {"layout": "condgraph", "mapping": None}
    if endpoint and options["layout"] != "native" and options["mapping"] is None:
        options |= {"update": os.environ.get("SPARQL_UPDATE") or None, "store": os.environ.get("SPARQL_STORE") or None}
    return {name: value for name, value in options.items() if value is not None}
