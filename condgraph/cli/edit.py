"""Commands that change single statements: add, retract, correct, edits, compact."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, TextOrJson, grouped, opened
from condgraph.cli.exits import complain, guard
from condgraph.cli.render import printable
from condgraph.edits import WAIT
from condgraph.engine.errors import LiteralError, OptionError
from condgraph.engine.facts import Member, Ref, Subclass
from condgraph.engine.values import UNKNOWN, Time, parse_quantity
from condgraph.reports import EditReport

#: Predicates that mean memberships and subclasses.
INSTANCE_OF, SUBCLASS_OF = "instance of", "subclass of"


#: Types of objects.
Type = Literal["text", "number", "time", "entity", "unknown"]

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The entity, by its id or, if it is unique, its name.")]
Predicate = Annotated[
    str, typer.Argument(metavar="PREDICATE", help="The predicate; `instance of` and `subclass of` are memberships and subclasses.")
]
Object = Annotated[
    str,
    typer.Argument(metavar="OBJECT", help="The object, read as the type of the predicate's values: `134591`, `8848 metre`."),
]
Qualifiers = Annotated[
    list[str] | None, typer.Option("--qualifier", "-Q", metavar="KEY=VALUE", help="A qualifier of the statement; may be repeated.")
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Author of the change; the user of the system by default.")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Reason.")]
Kind = Annotated[Type | None, typer.Option("--as", help="The type of the new object, if it differs from the predicate's type.")]
Wait = Annotated[float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for other writers.")]


@grouped
def add(
    *,
    store: StoreOption,
    subject: Subject,
    predicate: Predicate,
    thing: Object,
    qualifiers: Qualifiers = None,
    kind: Kind = None,
    login: LoginOptions,
    by: By = None,
    note: Note = "",
    wait: Wait = WAIT,
) -> None:
    """Add one statement as a change in the source `edits`, which is kept when other sources are loaded
    again.
    """
    with guard(), opened(store, login, read_only=False) as at:
        link = _link(subject, predicate, thing, qualifiers)
        if link is not None:
            _reported(at.add(link, by=by, note=note, wait=wait))
            return
        typed = kind is not None
        value, pairs = _value(thing, kind), _pairs(qualifiers)
        _reported(at.add(subject, predicate, value, pairs, by=by, note=note, new_type=typed, wait=wait))


@grouped
def retract(
    *,
    store: StoreOption,
    subject: Subject,
    predicate: Predicate,
    thing: Annotated[str, typer.Argument(metavar="OBJECT", help="The object, as an answer shows it.")],
    qualifiers: Qualifiers = None,
    login: LoginOptions,
    by: By = None,
    note: Note = "",
    wait: Wait = WAIT,
) -> None:
    """Hide one statement in all sources. Qualifiers are needed if several statements have the same
    subject, predicate and object.
    """
    with guard(), opened(store, login, read_only=False) as at:
        statement = _link(subject, predicate, thing, qualifiers) or _stated(subject, predicate, thing, qualifiers)
        _reported(at.retract(statement, by=by, note=note, wait=wait))


@grouped
def correct(
    *,
    store: StoreOption,
    subject: Subject,
    predicate: Annotated[str | None, typer.Argument(metavar="[PREDICATE]", help="The predicate of the statement.")] = None,
    thing: Annotated[str | None, typer.Argument(metavar="[OBJECT]", help="The current object of the statement.")] = None,
    qualifiers: Qualifiers = None,
    kind: Kind = None,
    new_subject: Annotated[str | None, typer.Option("--subject", metavar="ENTITY", help="The new subject.")] = None,
    new_predicate: Annotated[str | None, typer.Option("--predicate", metavar="PREDICATE", help="The new predicate.")] = None,
    new_object: Annotated[str | None, typer.Option("--object", metavar="OBJECT", help="The new object.")] = None,
    new_qualifiers: Annotated[
        list[str] | None,
        typer.Option("--new-qualifier", metavar="KEY=VALUE", help="A qualifier that replaces all current ones; may be repeated."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The new name of the entity SUBJECT.")] = None,
    login: LoginOptions,
    by: By = None,
    note: Note = "",
    wait: Wait = WAIT,
) -> None:
    """Replace one statement by another in a single change, or rename an entity with `--name`."""
    with guard(), opened(store, login, read_only=False) as at:
        if name is not None:
            others = (predicate, thing, qualifiers, new_subject, new_predicate, new_object, new_qualifiers)
            if any(part is not None for part in others):
                raise OptionError(
                    "--name renames an entity, and changes no statement", hint="condgraph correct SUBJECT --name NAME"
                )
            _reported(at.correct(subject, name=name, by=by, note=note, wait=wait))
            return
        if predicate is None or thing is None:
            raise OptionError("a statement has a subject, a predicate and an object", hint="--name renames an entity")
        statement = _stated(subject, predicate, thing, qualifiers)
        changes: dict[str, Any] = {"subject": new_subject, "predicate": new_predicate}
        changes["object"] = None if new_object is None else _value(new_object, kind)
        changes["qualifiers"] = None if new_qualifiers is None else _pairs(new_qualifiers)
        changed = {part: value for part, value in changes.items() if value is not None}
        _reported(at.correct(statement, **changed, by=by, note=note, new_type=kind is not None, wait=wait))


def _link(subject: str, predicate: str, thing: str, qualifiers: list[str] | None) -> Member | Subclass | None:
    """Return a membership or a subclass, or None for another predicate."""
    if predicate not in (INSTANCE_OF, SUBCLASS_OF):
        return None
    if qualifiers:
        raise OptionError(f"{predicate!r} has no qualifiers")
    return Member(subject, thing) if predicate == INSTANCE_OF else Subclass(subject, thing)


def _stated(subject: str, predicate: str, thing: str, qualifiers: list[str] | None) -> tuple[Any, ...]:
    return (subject, predicate, thing) if qualifiers is None else (subject, predicate, thing, _pairs(qualifiers))


def _pairs(texts: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{text!r} is not of the form key=value", param_hint="--qualifier")
        pairs.append((key.strip(), value))
    return pairs


def _value(text: str, kind: Type | None) -> Any:
    """Parse an object of a given type. Without a type it stays a text."""
    try:
        match kind:
            case None | "text":
                return text
            case "number":
                return parse_quantity(text)
            case "time":
                return Time.parse(text)
            case "entity":
                return Ref(text)
            case "unknown":
                return UNKNOWN
    except ValueError as error:
        raise LiteralError(f"{text!r} is not of the type {kind}: {error}") from None


def _reported(report: EditReport) -> None:
    for warning in report.warnings:
        complain(f"warning: {printable(warning)}")
    typer.echo(f"change {report.number}, by {printable(report.by)} at {report.at}")
    for sign, texts in (("-", report.removed), ("+", report.added)):
        for text in texts:
            typer.echo(f"{sign} {printable(text)}")


@grouped
def edits(
    *,
    store: StoreOption,
    login: LoginOptions,
    output: Annotated[TextOrJson, typer.Option("--format", help="Format of the list.")] = "text",
) -> None:
    """List all single changes of a graph: number, kind, author, time, and what was added and removed."""
    with guard(), opened(store, login, read_only=True) as at:
        for edit in at.edits():
            typer.echo(edit.record().decode() if output == "json" else printable(str(edit)))


@grouped
def compact(*, store: StoreOption, login: LoginOptions, wait: Wait = WAIT) -> None:
    """Merge the single changes since the last load of a folder into its columns. Loads do this, too."""
    with guard(), opened(store, login, read_only=False) as at:
        count = at.compact(wait=wait)
        typer.echo(f"{count} single change{' is' if count == 1 else 's are'} merged" if count else "no single change waits")
