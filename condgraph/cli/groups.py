"""Options that belong together, as one dataclass: a command takes the dataclass, the command line
its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


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
        made = {name: group(**{one.name: given.pop(one.name) for one in fields(group)}) for name, group in groups.items()}
        command(**given, **made)

    run.__annotations__ = {one.name: one.annotation for one in flat}
    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    return run


def _options(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            one.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(group)
    ]
