"""Parts of a table clause in words, and what is looked for in one."""

from __future__ import annotations

from collections.abc import Iterator

from condgraph.languages.table.tree import Binary, Call, Clause, Expression, Junction, Number, Path, Step, Test, Text


def title(of: Expression) -> str:
    """An expression as it is written, which is the name of its column."""
    if isinstance(of, Path):
        name = ".".join(("^" if step.backward else "") + step.name for step in of.steps)
        return (name or ("" if of.qualifier else "self")) + (f"@{of.qualifier}" if of.qualifier else "")
    if isinstance(of, Number):
        return f"{of.text} {of.unit}".strip()
    if isinstance(of, Text):
        return of.text
    if isinstance(of, Call):
        inside = "" if of.of is None else f"'{of.of.text}'" if isinstance(of.of, Text) and of.options else title(of.of)
        if of.number is not None:
            inside = f"{of.number}, {inside}"
        for option in reversed(of.options):
            inside = f"'{option.text}', {inside}" if isinstance(option, Text) else f"{title(option)}, {inside}"
        return f"{of.function}({'distinct ' if of.distinct else ''}{inside})"
    sides = [f"({title(side)})" if isinstance(side, Binary) else title(side) for side in (of.left, of.right)]
    return f" {of.operator} ".join(sides)


def named_row() -> Path:
    """The row itself."""
    return Path(())


def step(name: str) -> Path:
    """One predicate of the row."""
    return Path((Step(name),))


def mentions(clause: Clause) -> bool:
    """Whether a path begins with a qualifier, so that the rows are facts."""
    return any(not path.steps and path.qualifier is not None for path in _paths(clause))


def _paths(clause: Clause) -> Iterator[Path]:
    for column in (*clause.keys, *clause.shown):
        yield from _inside(column.of)
    for by in clause.order:
        yield from _inside(by.of)
    for test in (clause.where, clause.having):
        if test is not None:
            yield from _tested(test)


def _inside(of: Expression) -> Iterator[Path]:
    if isinstance(of, Path):
        yield of
    elif isinstance(of, Call) and of.of is not None:
        for part in (*of.options, of.of):
            yield from _inside(part)
    elif isinstance(of, Binary):
        yield from _inside(of.left)
        yield from _inside(of.right)


def _tested(test: Test) -> Iterator[Path]:
    if isinstance(test, Junction):
        for part in test.tests:
            yield from _tested(part)
    else:
        yield from _inside(test.of)
