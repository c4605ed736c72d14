"""Lowers the patterns of `MATCH`: labels to sets, relationships to basic patterns, variable lengths to paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from condgraph.engine.algebra import AllEntities, Among, ByName, Entities, Facts, Scan, Solutions, Where, intersect, solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import PlanError, UnsupportedError
from condgraph.languages.cypher import tree
from condgraph.languages.cypher.expressions import (
    NODE,
    PATH,
    RELATIONSHIP,
    RELATIONSHIPS,
    START,
    VALUE,
    Naming,
    Rows,
    all_of,
    conjuncts,
    mentioned_in,
)


@dataclass(slots=True)
class _Path:
    """A relationship of variable length between two nodes."""

    pattern: tree.RelationshipPattern
    subject: str
    object: str
    variable: str
    mode: solutions.PathMode
    types: tuple[str, ...] | None


class Matching:
    """Lowers the patterns of one MATCH, given the rows before it."""

    def __init__(self, lowering: Naming, clause: tree.Match, rows: Rows) -> None:
        self._lowering, self._clause, self._rows = lowering, clause, rows
        self._bound_before = set(rows.scope)
        self._statements: list[tuple[solutions.StatementPattern, str, str]] = []
        self._paths: list[_Path] = []
        self._nodes: dict[str, None] = {}
        self._conditions: list[ex.Expression] = []
        self._is_empty = False
        #: The variables of relationships and, with a star, of paths; no relationship may repeat.
        self._edges: list[str] = []
        self._named: list[tuple[str, list[str]]] = []
        #: Nodes without relationships that are restricted by conditions.
        self._started: set[str] = set()

    def _declare(self, name: str, kind: str, position: int) -> str:
        """Return the plan's variable for a name of the pattern."""
        rows = self._rows
        variable = rows.scope.get(name)
        if variable is None:
            variable = name if name not in rows.plan.variables else self._lowering.fresh(name)
            rows.scope[name] = variable
            rows.types[variable] = kind
        else:
            known = rows.types.get(variable, VALUE)
            if known not in (kind, VALUE):
                raise PlanError(f"the variable {name!r} is a {known}, and a {kind} here", span=(position, position + 1))
        return variable

    def rows(self) -> Rows:
        """Return the rows that match."""
        clause, rows = self._clause, self._rows
        for pattern in clause.patterns:
            self._add(pattern)
        plan = self._joined()
        if self._is_empty:
            # Some relationship has a type that is not in the graph.
            plan = solutions.SliceRows(plan, 0, 0)
        rows.plan = plan
        self._extend_paths()
        for condition in self._conditions:
            self._lowering.filtered(rows, condition)
        self._lowering.filtered(rows, clause.where)
        return rows

    def _add(self, pattern: tree.PathPattern) -> None:
        rows = self._rows
        if pattern.variable is not None and pattern.variable in rows.scope:
            raise PlanError(f"the variable {pattern.variable!r} already exists", span=(pattern.position, pattern.position + 1))
        ends: list[str] = []
        for node in pattern.nodes:
            ends.append(self._declare(node.variable, NODE, node.position))
            self._nodes[ends[-1]] = None
            self._conditions.extend(node.conditions)
        steps: list[str] = []
        for relationship, left, right in zip(pattern.relationships, ends, ends[1:], strict=False):
            steps.append(self._relationship(relationship, left, right, pattern))
        if pattern.variable is not None and pattern.variable in rows.scope:
            raise PlanError(f"{pattern.variable!r} is both a path and a part of it", span=(pattern.position, pattern.position + 1))
        if pattern.variable is not None:
            self._named.append((pattern.variable, [part for pair in zip(ends, [*steps, ""], strict=True) for part in pair][:-1]))
            rows.scope[pattern.variable] = self._lowering.fresh(pattern.variable)
            rows.types[rows.scope[pattern.variable]] = PATH
            rows.nullable.add(rows.scope[pattern.variable])

    def _relationship(self, relationship: tree.RelationshipPattern, left: str, right: str, pattern: tree.PathPattern) -> str:
        lowering, rows = self._lowering, self._rows
        name = relationship.variable
        types = tuple(type_name for type_name in relationship.types if lowering.relationship_type(type_name))
        impossible = bool(relationship.types) and not types
        if relationship.length is None and pattern.shortest is None:
            if name in rows.scope and name not in self._bound_before:
                raise PlanError(
                    f"the relationship {name!r} occurs twice in one MATCH", span=(relationship.position, relationship.position + 1)
                )
            variable = self._declare(name, RELATIONSHIP, relationship.position)
            subject, target = (right, left) if relationship.direction == "backward" else (left, right)
            self._is_empty = self._is_empty or impossible
            statement = solutions.StatementPattern(
                solutions.Variable(subject), types or None, solutions.Variable(target), statement=solutions.Variable(variable),
                family="relation", undirected=relationship.direction == "either",
            )  # fmt: skip
            self._statements.append((statement, left, right))
            self._edges.append(variable)
            self._conditions.extend(relationship.conditions)
            return variable
        if name in rows.scope:
            raise UnsupportedError("Cypher", [f"the variable {name!r}, bound before, as a path of several relationships"])
        if pattern.shortest is not None and (relationship.conditions or self._mentions_path(relationship, pattern)):
            raise UnsupportedError(
                "the search for shortest paths", ["conditions about the path or its relationships"],
                hint="it would find another path: name the types in the pattern, or put WITH between MATCH and WHERE",
            )  # fmt: skip
        least, most = relationship.length or (1, 1)
        path = lowering.fresh()
        mode: solutions.PathMode = pattern.shortest or "trails"
        if impossible:
            # Only the path without relationships can match.
            most, self._is_empty = (0, self._is_empty) if least == 0 else (most, True)
        if most is not None and least > most:
            self._is_empty = True
            least = most
        bounded = _Path(replace(relationship, length=(least, most)), left, right, path, mode, types or None)
        self._paths.append(bounded)
        self._edges.append(f"*{path}")
        rows.types[path] = PATH
        if name[0] != " ":
            rows.scope[name] = lowering.fresh(name)
            rows.types[rows.scope[name]] = RELATIONSHIPS
        if relationship.conditions:
            rows.scope[f" {path}"] = path
            items = ex.Call("relationships", (ex.Variable(f" {path}"),))
            self._conditions.append(ex.Quantified("all", relationship.item, items, all_of(relationship.conditions)))
        return path

    def _mentions_path(self, relationship: tree.RelationshipPattern, pattern: tree.PathPattern) -> bool:
        mentioned: dict[str, None] = {}
        mentioned_in(self._clause.where, mentioned)
        return relationship.variable in mentioned or (pattern.variable is not None and pattern.variable in mentioned)

    # -- joins -------------------------------------------------------------------------------------

    def _joined(self) -> Solutions:
        """Join the rows before, the relationships and the paths along their shared variables."""
        rows = self._rows
        bound = set(rows.plan.variables)
        nulls = [name for name in (*self._nodes, *self._edges) if name in rows.nullable and name in bound]
        plan: Solutions | None = solutions.BoundRows(rows.plan, tuple(nulls)) if nulls else rows.plan
        rows.nullable.difference_update(nulls)
        if plan is START or (isinstance(plan, solutions.Pattern) and not plan.variables):
            plan = None
        components = self._components()
        paths = list(self._paths)
        fixed: list[set[str]] = []
        while components or paths:
            known = set() if plan is None else set(plan.variables)
            path = next((candidate for candidate in paths if candidate.subject in known or candidate.object in known), None)
            component = next((candidate for candidate in components if known.intersection(candidate[1])), None)
            if component is not None and (path is None or component[2]):
                components.remove(component)
                plan = self._join(plan, component[0])
                fixed.append(set(component[2]))
                continue
            if path is not None:
                if path.mode != "trails" and (
                    component := next((candidate for candidate in components if self._at_end(path, candidate[0], known)), None)
                ):
                    # Bind the other end first, too: shortest paths are searched between two known ends.
                    components.remove(component)
                    plan = self._join(plan, component[0])
                    fixed.append(set(component[2]))
                paths.remove(path)
                plan = self._follow(plan, path)
                continue
            if components:
                # Nothing is shared: take the product, with relationships first.
                component = next((candidate for candidate in components if candidate[2]), components[0])
                components.remove(component)
                plan = self._join(plan, component[0])
                fixed.append(set(component[2]))
                continue
            plan = self._follow(plan, paths.pop(0))
        if plan is None:
            return START
        return self._different(plan, fixed)

    def _at_end(self, path: _Path, part: Solutions, known: set[str]) -> bool:
        """Whether a component is the restricted node at the open end of a path."""
        if not isinstance(part, solutions.EntityRows) or part.variable not in self._started:
            return False
        return part.variable not in known and part.variable in (path.subject, path.object)

    @staticmethod
    def _join(plan: Solutions | None, part: Solutions) -> Solutions:
        return part if plan is None else solutions.Join(plan, part)

    def _follow(self, plan: Solutions | None, path: _Path) -> Solutions:
        least, most = path.pattern.length or (1, 1)
        hop = solutions.Hop(path.types, path.pattern.direction)
        return solutions.Path(
            plan, solutions.Variable(path.subject), (hop,), solutions.Variable(path.object), least, most, path.mode,
            solutions.Variable(path.variable),
        )  # fmt: skip

    def _components(self) -> list[tuple[Solutions, set[str], list[str]]]:
        """Return the connected components of the relationships, and the single nodes.

        Each has its plan, its nodes, and the variables of its relationships.
        """
        groups: list[tuple[list[solutions.StatementPattern], set[str], list[str]]] = []
        for statement, left, right in self._statements:
            assert statement.statement is not None
            component = ([statement], {left, right}, [statement.statement.name])
            for group in [candidate for candidate in groups if candidate[1] & component[1]]:
                groups.remove(group)
                component = (group[0] + component[0], group[1] | component[1], group[2] + component[2])
            groups.append(component)
        result: list[tuple[Solutions, set[str], list[str]]] = []
        labels, chosen = self._labels(), self._restrictions()
        for statements, nodes, edges in groups:
            statements = _restricted(statements, chosen)
            members = tuple(
                solutions.MembershipPattern(solutions.Variable(node), concept)
                for node in sorted(nodes)
                for concept, _ in labels.get(node, ())
                if concept is not None
            )
            plan: Solutions = solutions.Pattern(tuple(statements), members, different=len(statements) > 1)
            for node in sorted(nodes):
                for concept, entities in labels.get(node, ()):
                    if concept is None:
                        plan = solutions.Join(solutions.EntityRows(node, entities), plan)
            result.append((plan, nodes, edges))
        connected = {node for _, nodes, _ in groups for node in nodes}
        before = set(self._rows.plan.variables)
        # A path binds its end node. A node restricted by conditions is bound before, as the start of the path.
        reached = {end for path in self._paths for end in (path.subject, path.object)}
        known = before | connected | labels.keys() | chosen.keys()
        # The start of a path of length 0 is any node.
        starts = {
            path.subject
            for path in self._paths
            if path.pattern.length is not None and path.pattern.length[0] == 0 and not known & {path.subject, path.object}
        }
        for node in self._nodes:
            if node in connected:
                continue
            sets = [entities for _, entities in labels.get(node, ())]
            is_chosen = node not in before and node in chosen
            if is_chosen:
                self._started.add(node)
                sets.extend(chosen[node])
            if not sets and (node in before or node in reached - starts):
                continue
            rows = solutions.EntityRows(node, intersect(*sets) if sets else AllEntities())
            # Restricted nodes come before other single nodes.
            result.insert(0 if is_chosen else len(result), (rows, {node}, []))
        return result

    def _restrictions(self) -> dict[str, list[Entities]]:
        """Return sets that restrict nodes.

        They come from earlier rows, and from comparisons of a property with a constant, which are still
        tested as conditions.
        """
        sets: dict[str, list[Entities]] = {}
        bound = set(self._rows.plan.variables)
        for node in self._nodes:
            if node in bound and self._rows.types.get(node) == NODE:
                sets.setdefault(node, []).append(solutions.EntitiesOf(self._rows.plan, node))
        for condition in (part for conjunction in (*self._conditions, self._clause.where) for part in conjuncts(conjunction)):
            if not isinstance(condition, ex.Comparison):
                continue
            sides = (
                (condition.left, condition.operator, condition.right),
                (condition.right, _SWAPPED[condition.operator], condition.left),
            )
            for of, operator, value in sides:
                if not isinstance(of, ex.Property) or not isinstance(of.of, ex.Variable):
                    continue
                variable = self._rows.scope.get(of.of.name)
                if variable in self._nodes and isinstance(value, ex.Constant | tree.Parameter):
                    entities = self._lowering.having(of.key, operator, value, self._rows)
                    if entities is not None:
                        sets.setdefault(str(variable), []).append(entities)
        return sets

    def _labels(self) -> dict[str, list[tuple[Entities | None, Entities]]]:
        """Return the sets that labels require nodes to be in, and remove these labels from the conditions.

        Each set comes with its concepts, or None if some label is a table.
        """
        lowering, remaining = self._lowering, []
        sets: dict[str, list[tuple[Entities | None, Entities]]] = {}
        for condition in (part for conjunction in self._conditions for part in conjuncts(conjunction)):
            if isinstance(condition, ex.HasConcept) and isinstance(condition.of, ex.Variable):
                variable = self._rows.scope.get(condition.of.name)
                if variable in self._nodes and self._rows.types.get(variable) == NODE:
                    names = [name for name in condition.names if lowering.label(name)]
                    if names:
                        all_concepts = all(lowering.schema.has_concept(name) for name in names)
                        assert variable is not None
                        sets.setdefault(variable, []).append(
                            (ByName(tuple(names)) if all_concepts else None, lowering.label_set(names))
                        )
                    else:
                        self._is_empty = True
                    continue
            remaining.append(condition)
        self._conditions = remaining
        return sets

    def _different(self, plan: Solutions, fixed: list[set[str]]) -> Solutions:
        """Drop rows in which a relationship repeats; a single pattern never repeats one."""
        edges = self._edges
        for at, edge in enumerate(edges):
            for other in edges[at + 1 :]:
                if any(edge in group and other in group for group in fixed):
                    continue
                plan = solutions.Filter(plan, _disjoint(edge, other, self._lowering.fresh()))
        return plan

    def _extend_paths(self) -> None:
        rows = self._rows
        for path in self._paths:
            name = path.pattern.variable
            if name[0] != " ":
                rows.plan = solutions.Extend(rows.plan, rows.scope[name], ex.Call("relationships", (ex.Variable(path.variable),)))
        known = {path.variable for path in self._paths}
        for name, parts in self._named:
            if len(parts) == 3 and parts[1] in known:
                value: ex.Expression = ex.Variable(parts[1])
            else:
                steps = [ex.Call("relationships", (ex.Variable(part),)) if part in known else ex.Variable(part) for part in parts]
                value = ex.Call("path", tuple(steps))
            rows.plan = solutions.Extend(rows.plan, rows.scope[name], value)


#: The operator of a comparison with its sides swapped.
_SWAPPED: Final[dict[str, ex.ComparisonOperator]] = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _restricted(
    statements: list[solutions.StatementPattern], chosen: dict[str, list[Entities]]
) -> list[solutions.StatementPattern]:
    """Restrict statement patterns to the statements whose ends lie in the chosen sets."""
    result = []
    for statement in statements:
        ends = statement.subject, statement.object
        subject, target = (chosen.get(end.name) if isinstance(end, solutions.Variable) else None for end in ends)
        if subject is None and target is None:
            result.append(statement)
            continue
        predicates = statement.predicate if isinstance(statement.predicate, tuple) else None
        among: Facts
        if not statement.undirected:
            if subject is None:
                among = Scan(intersect(*target or ()), predicates, anchor="object", reach="subject", family="relation")
            else:
                among = Scan(intersect(*subject), predicates, anchor="subject", reach="object", family="relation")
                if target is not None:
                    among = Where(among, Among(intersect(*target)))
        else:
            # Either direction: the statements with an end in one of the sets.
            pattern = solutions.StatementPattern(predicate=predicates, statement=solutions.Variable("statement"), family="relation")
            near = intersect(*(subject or target or ()))
            directions = replace(pattern, subject=near), replace(pattern, object=near)
            rows = solutions.UnionAll(tuple(solutions.Pattern((direction,)) for direction in directions))
            among = solutions.FactsOf(rows, "statement")
        result.append(replace(statement, among=among))
    return result


def _disjoint(one: str, other: str, item: str) -> ex.Expression:
    """Return the condition that two relationships or paths (marked by a star) share no relationship."""
    if one[0] == "*" and other[0] == "*":
        within = ex.In(ex.Variable(item), ex.Call("relationships", (ex.Variable(other[1:]),)))
        return ex.Quantified("none", item, ex.Call("relationships", (ex.Variable(one[1:]),)), within)
    if one[0] == "*":
        one, other = other, one
    if other[0] == "*":
        return ex.Not(ex.In(ex.Variable(one), ex.Call("relationships", (ex.Variable(other[1:]),))))
    return ex.Comparison("<>", ex.Variable(one), ex.Variable(other))
