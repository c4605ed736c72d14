"""The parser of Cypher: the reading part of openCypher 9 and GQL.

It takes linear time and has a bounded depth. Clauses that write and unsupported ones are refused by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn

from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import ParseError, UnknownNameError, nearest
from condgraph.languages.cypher import tree
from condgraph.languages.cypher.tokens import MAX_CHAIN, MAX_INTEGER, MAX_TEXT, RESERVED, WRITE_CLAUSES, Tokens
from condgraph.languages.parameters import BoundQuery, GivenText, in_order


class _Parser(Tokens):
    """A recursive-descent parser of one query."""

    # -- queries -----------------------------------------------------------------------------------

    def whole(self) -> tree.Query:
        """Parse the text as one query."""
        if self.words[self.at] in ("explain", "profile", "cypher") and self.kinds[self.at + 1] in ("word", "number"):
            self.refuse(
                f"{self.values[self.at].upper()} before a query is not supported",
                hint="graph.explain(text) shows the plan of a query, answer.explain() what each step gave",
            )
        query = self.query()
        self.mark(";")
        if self.kinds[self.at] != "end":
            self.expected("a clause, or the end of the query,")
        return query

    def query(self, nested: bool = False) -> tree.Query:
        """Parse clauses joined by `UNION`; within braces (`nested`) they need no `RETURN`."""
        parts, kinds, unions = [self.single(nested)], set(), []
        while self.words[self.at] == "union":
            begin = self.starts[self.at]
            self.at += 1
            kinds.add("all" if self.word("all") else "distinct")
            self.word("distinct")
            unions.append((begin, self.ends[self.at - 1]))
            parts.append(self.single(nested))
        if len(kinds) > 1:
            self.refuse("UNION and UNION ALL cannot be mixed in one query", self.starts[self.at - 1])
        return tree.Query(tuple(parts), kinds == {"all"}, tuple(unions))

    def single(self, nested: bool) -> tree.Single:
        clauses: list[tree.Clause] = []
        start = self.starts[self.at]
        while True:
            word = self.words[self.at]
            position = self.starts[self.at]
            if word in ("match", "optional"):
                if word == "optional" and self.words[self.at + 1] == "call":
                    self.at += 1
                    clauses.append(self.call(position, optional=True))
                    continue
                clauses.append(self.match(position))
            elif word == "unwind":
                self.at += 1
                items = self.expression()
                if not self.word("as"):
                    self.expected("AS", hint="UNWIND list AS item")
                clauses.append(tree.Unwind(items, self.variable(), position))
            elif word == "with":
                self.at += 1
                clauses.append(self.projection(position, final=False))
            elif word == "call":
                clauses.append(self.call(position))
            elif word == "return":
                self.at += 1
                clauses.append(self.projection(position, final=True))
                break
            elif word == "finish":
                self.refuse("FINISH is not supported: a query that only reads has nothing to do without RETURN", position)
            elif word in WRITE_CLAUSES and not (word in ("start", "use", "set") and self.kinds[self.at + 1] == "mark"):
                self.refuse_write()
            else:
                break
        if not clauses:
            self.expected("MATCH, OPTIONAL MATCH, UNWIND, WITH, CALL or RETURN")
        last = clauses[-1]
        alone = len(clauses) == 1 and isinstance(last, tree.Procedure)
        if not nested and not alone and not (isinstance(last, tree.Projection) and last.final):
            if self.kinds[self.at] == "end":
                self.refuse("the query ends without RETURN", start, hint="end it with RETURN and what it returns")
            self.expected("a clause or RETURN")
        if isinstance(last, tree.Projection) and not last.final:
            self.refuse("WITH needs a clause after it", last.position, hint="end the query with RETURN")
        return tree.Single(tuple(clauses))

    def match(self, position: int) -> tree.Match:
        optional = self.word("optional")
        if not self.word("match"):
            self.expected("MATCH")
        if self.words[self.at] in ("different", "repeatable") and self.kinds[self.at + 1] == "word":
            self.refuse(
                f"MATCH {self.values[self.at].upper()} is not supported",
                hint="relationships of one MATCH are different; write two MATCH clauses to let them repeat",
            )
        patterns = self.several(self.path_pattern)
        if self.words[self.at] == "using":
            self.refuse("USING (a hint for a planner) is not supported", hint="leave it out")
        where = self.expression() if self.word("where") else None
        return tree.Match(tuple(patterns), where, optional, position)

    def call(self, position: int, optional: bool = False) -> tree.Call | tree.Procedure:
        self.at += 1
        imports: tuple[str, ...] | None = None
        if self.mark("("):
            if self.mark("*"):
                imports = ("*",)
                self.need(")")
            else:
                imports = tuple(self.several_until(")", self.variable))
        if not self.mark("{"):
            if imports is not None:
                self.expected("{", hint="CALL (x) { ... } runs a query for each x")
            return self.procedure(position, optional)
        self.deeper()
        query = self.query()
        self.depth -= 1
        self.need("}")
        if self.words[self.at] == "in" and self.words[self.at + 1] in ("transactions", "concurrent"):
            self.refuse("CALL { } IN TRANSACTIONS writes; only queries that read are answered")
        return tree.Call(query, imports, optional, position)

    def procedure(self, position: int, optional: bool) -> tree.Procedure:
        """Parse `name.of.it(arguments) YIELD columns`, after `CALL`."""
        words: list[str] = []
        while True:
            if self.kinds[self.at] not in ("word", "name"):
                self.expected("{, or the name of a procedure", hint="CALL { ... } runs a query")
            words.append(str(self.values[self.at]))
            self.at += 1
            if not self.mark("."):
                break
        end = self.ends[self.at - 1]
        arguments = self.several_until(")", self.expression) if self.mark("(") else []
        columns = self.projection(self.starts[self.at], final=False) if self.word("yield") else None
        for item in () if columns is None else columns.items:
            if not isinstance(item.value, ex.Variable):
                self.refuse("YIELD takes columns of the procedure by their names", item.position)
        return tree.Procedure(".".join(words), tuple(arguments), columns, optional, position, end)

    def projection(self, position: int, *, final: bool) -> tree.Projection:
        distinct = self.word("distinct")
        star = self.mark("*")
        items = self.several(self.item) if not star or self.mark(",") else []
        order: list[tree.Order] = []
        if self.word("order"):
            if not self.word("by"):
                self.expected("BY")
            order = self.several(self.order)
        skip = self.expression() if self.word("skip") or self.word("offset") else None
        limit = self.expression() if self.word("limit") else None
        where = self.expression() if not final and self.word("where") else None
        return tree.Projection(tuple(items), star, distinct, tuple(order), skip, limit, where, final, position)

    def item(self) -> tree.Item:
        start = self.starts[self.at]
        value = self.expression()
        end = self.ends[self.at - 1]
        if self.word("as"):
            return tree.Item(value, self.variable("a name"), True, start)
        name = value.name if isinstance(value, ex.Variable) else self.text[start:end]
        return tree.Item(value, name, False, start)

    def order(self) -> tree.Order:
        value = self.expression()
        if self.word("desc") or self.word("descending"):
            return tree.Order(value, True)
        if not self.word("asc"):
            self.word("ascending")
        return tree.Order(value)

    # -- patterns ----------------------------------------------------------------------------------

    def path_pattern(self) -> tree.PathPattern:
        """Parse a path, with an optional variable or search for the shortest."""
        position, variable = self.starts[self.at], None
        if self.kinds[self.at] in ("word", "name") and self.marks[self.at + 1] == "=":
            variable = self.variable()
            self.at += 1
        word = self.words[self.at]
        if word in ("shortestpath", "allshortestpaths") and self.marks[self.at + 1] == "(":
            self.at += 2
            inner = self.chain()
            self.need(")")
            if len(inner.relationships) != 1:
                self.refuse(f"{word}() takes one relationship between two nodes", position)
            kind = "shortest" if word == "shortestpath" else "all shortest"
            return tree.PathPattern(inner.nodes, inner.relationships, variable, kind, position)  # type: ignore[arg-type]
        if (
            word in ("shortest", "any", "all")
            and self.kinds[self.at + 1] in ("word", "number", "mark")
            and self.marks[self.at + 1] != "("
        ):
            return self.selected(variable, position)
        if word in ("walk", "trail", "acyclic", "simple", "paths", "path") and self.kinds[self.at + 1] == "mark":
            self.refuse(f"{word.upper()} before a path is not supported", position, hint="paths use each relationship once")
        inner = self.chain()
        return tree.PathPattern(inner.nodes, inner.relationships, variable, None, position)

    def selected(self, variable: str | None, position: int) -> tree.PathPattern:
        """Parse `SHORTEST 1`, `ANY SHORTEST`, `ALL SHORTEST` or `ANY` and the path after it."""
        words: list[str] = []
        while self.kinds[self.at] in ("word", "number") and len(words) < 4:
            words.append(self.words[self.at] or str(self.values[self.at]))
            self.at += 1
        search = " ".join(word for word in words if word not in ("path", "paths"))
        kind = {"shortest 1": "shortest", "any shortest": "shortest", "all shortest": "all shortest", "any": "shortest"}.get(search)
        if kind is None:
            self.refuse(
                f"{' '.join(words).upper()} before a path is not supported", position, hint="SHORTEST 1, ALL SHORTEST and ANY are"
            )
        inner = self.chain()
        if len(inner.relationships) != 1:
            self.refuse(
                "the shortest path of a pattern with several relationships is not supported",
                position,
                hint="search between two nodes: SHORTEST 1 (a)-[*]->(b)",
            )
        return tree.PathPattern(inner.nodes, inner.relationships, variable, kind, position)  # type: ignore[arg-type]

    def chain(self) -> tree.PathPattern:
        """Parse alternating nodes and relationships."""
        position = self.starts[self.at]
        if self.marks[self.at] == "(" and self.marks[self.at + 1] == "(":
            return self.quantified_group()
        nodes, relationships = [self.node()], []
        while self.marks[self.at] in ("-", "<"):
            relationships.append(self.relationship())
            if self.marks[self.at] == "(" and self.marks[self.at + 1] == "(":
                break
            nodes.append(self.node())
        if self.marks[self.at] == "(":
            self.refuse("a group within a longer path is not supported", hint="write (a)-[:TYPE]->{1,3}(b)")
        return tree.PathPattern(tuple(nodes), tuple(relationships), None, None, position)

    def quantified_group(self) -> tree.PathPattern:
        """Parse `((a)-[r]->(b)){1,3}`: one relationship between nodes without conditions."""
        position = self.starts[self.at]
        self.at += 1
        inner = self.chain()
        if self.words[self.at] == "where":
            self.refuse(
                "WHERE within a group of a path is not supported", hint="write the condition in the relationship, or after MATCH"
            )
        self.need(")")
        bounds = self.quantifier()
        if bounds is None:
            if self.marks[self.at] in ("-", "<", "("):
                self.refuse("a group without a quantifier is not supported", position, hint="leave its parentheses out")
            return inner
        if len(inner.relationships) != 1 or any(node.conditions for node in inner.nodes) or self.marks[self.at] in ("-", "<", "("):
            self.refuse(
                "a group of a path with several relationships or conditions is not supported",
                position,
                hint="write (a)-[:TYPE]->{1,3}(b)",
            )
        (only,) = inner.relationships
        if any(node.variable[0] != " " for node in inner.nodes) or only.variable[0] != " ":
            self.refuse(
                "variables within a group of a path are not supported",
                position,
                hint="p = (a)-[:TYPE]->{1,3}(b), and nodes(p) and relationships(p) of it",
            )
        repeated = replace(only, length=bounds)
        return tree.PathPattern(tuple(tree.NodePattern(self.anonymous()) for _ in "ab"), (repeated,), None, None, position)

    def node(self) -> tree.NodePattern:
        position = self.starts[self.at]
        self.need("(")
        is_keyword = self.words[self.at] in ("where", "is") and self.kinds[self.at + 1] != "mark"
        variable = self.variable() if self.kinds[self.at] in ("word", "name") and not is_keyword else self.anonymous()
        conditions = self.about(ex.Variable(variable), ("label",))
        self.need(")")
        return tree.NodePattern(variable, tuple(conditions), position)

    def about(self, subject: ex.Variable, kinds: tuple[str, ...]) -> list[ex.Expression]:
        """Parse labels, properties and `WHERE` of a node or relationship."""
        conditions: list[ex.Expression] = []
        if self.mark(":") or self.word("is"):
            conditions.append(self.label_or(subject, kinds[0]))
        if self.mark("{"):

            def equality() -> ex.Expression:
                key = self.known("property", self.name("a property"))
                self.need(":")
                return ex.Comparison("=", ex.Property(subject, key), self.expression())

            conditions += self.several_until("}", equality)
        elif self.kinds[self.at] == "parameter":
            self.refuse(
                "a parameter as the properties of a pattern is not supported", hint="write the properties one by one: {name: $name}"
            )
        if self.word("where"):
            conditions.append(self.expression())
        return conditions

    def label_or(self, subject: ex.Expression, kind: str) -> ex.Expression:
        """Parse a label expression: `A:B`, `A&B`, `A|B`, `!A`, `%`."""
        parts = [self.label_and(subject, kind)]
        while self.marks[self.at] == "|":
            self.at += 1
            self.mark(":")
            parts.append(self.label_and(subject, kind))
        if len(parts) > 1 and all(isinstance(part, ex.HasConcept) for part in parts):
            return ex.HasConcept(subject, tuple(name for part in parts for name in part.names))  # type: ignore[attr-defined]
        return parts[0] if len(parts) == 1 else ex.Or(tuple(parts))

    def label_and(self, subject: ex.Expression, kind: str) -> ex.Expression:
        parts = [self.label_not(subject, kind)]
        while self.marks[self.at] == "&" or (self.marks[self.at] == ":" and self.kinds[self.at + 1] in ("word", "name")):
            self.at += 1
            parts.append(self.label_not(subject, kind))
        return parts[0] if len(parts) == 1 else ex.And(tuple(parts))

    def label_not(self, subject: ex.Expression, kind: str) -> ex.Expression:
        negations = 0
        while self.mark("!"):
            negations += 1
        if self.mark("("):
            self.deeper()
            inner = self.label_or(subject, kind)
            self.depth -= 1
            self.need(")")
        elif self.mark("%"):
            labels = ex.Call("size", (ex.Call("labels", (subject,)),))
            inner = ex.Comparison(">", labels, ex.Constant(0)) if kind == "label" else ex.Constant(True)
        else:
            inner = ex.HasConcept(subject, (self.known(kind, self.name(f"a {'label' if kind == 'label' else 'type'}")),))
        return ex.Not(inner) if negations % 2 else inner

    def relationship(self) -> tree.RelationshipPattern:
        position = self.starts[self.at]
        to_left = self.mark("<")
        self.need("-")
        variable, types, length, conditions, item = self.anonymous(), [], None, [], ""
        if self.mark("["):
            if self.kinds[self.at] in ("word", "name") and not (
                self.words[self.at] in ("where", "is") and self.kinds[self.at + 1] != "mark"
            ):
                variable = self.variable()
            item = self.anonymous()
            condition = None
            if self.mark(":") or self.word("is"):
                condition = self.label_or(ex.Variable(item), "relationship type")
            if self.mark("*"):
                length = self.bounds()
            subject = item if length is not None else variable
            conditions = self.about(ex.Variable(subject), ("relationship type",))
            if isinstance(condition, ex.HasConcept):
                types = list(dict.fromkeys(condition.names))
            elif condition is not None:
                conditions.insert(0, _renamed(condition, item, subject))
            self.need("]")
        self.need("-")
        to_right = self.mark(">")
        direction = "either" if to_left is to_right else "backward" if to_left else "forward"
        bounds = self.quantifier()
        if bounds is not None:
            if length is not None:
                self.refuse("a relationship has two lengths", position)
            length, item = bounds, item or self.anonymous()
            conditions = [_renamed(condition, variable, item) for condition in conditions]
        return tree.RelationshipPattern(variable, tuple(types), direction, length, tuple(conditions), item, position)  # type: ignore[arg-type]

    def bounds(self) -> tuple[int, int | None]:
        """Parse the bounds after `*`: nothing, `2`, `1..3`, `..3`, `1..`."""
        least: int | None = None
        if self.kinds[self.at] == "number":
            least = self.whole_number()
            if not self.mark(".."):
                return least, least
        elif not self.mark(".."):
            return 1, None
        most = self.whole_number() if self.kinds[self.at] == "number" else None
        return (1 if least is None else least), most

    def quantifier(self) -> tuple[int, int | None] | None:
        """Parse `{1,3}`, `{2}`, `+` or `*` after a relationship."""
        if self.mark("+"):
            return 1, None
        if self.mark("*"):
            return 0, None
        if self.marks[self.at] != "{" or not (self.kinds[self.at + 1] == "number" or self.marks[self.at + 1] == ","):
            return None
        self.at += 1
        least = self.whole_number() if self.kinds[self.at] == "number" else 0
        most: int | None = least
        if self.mark(","):
            most = self.whole_number() if self.kinds[self.at] == "number" else None
        self.need("}")
        return least, most

    def whole_number(self) -> int:
        value = self.values[self.at]
        if self.kinds[self.at] != "number" or not isinstance(value, int):
            self.expected("a whole number")
        self.at += 1
        return value

    # -- expressions -------------------------------------------------------------------------------

    def expression(self) -> ex.Expression:
        """Parse an expression, beginning with the loosest operator."""
        self.deeper()
        result = self.or_()
        self.depth -= 1
        return result

    def or_(self) -> ex.Expression:
        parts = [self.xor()]
        while self.word("or"):
            parts.append(self.xor())
        return parts[0] if len(parts) == 1 else ex.Or(tuple(parts))

    def xor(self) -> ex.Expression:
        result = self.and_()
        count = 0
        while self.word("xor"):
            count = self.counted(count)
            result = ex.Xor(result, self.and_())
        return result

    def and_(self) -> ex.Expression:
        parts = [self.not_()]
        while self.word("and"):
            parts.append(self.not_())
        return parts[0] if len(parts) == 1 else ex.And(tuple(parts))

    def not_(self) -> ex.Expression:
        count = 0
        while self.words[self.at] == "not" and self.marks[self.at + 1] not in (".", ",", ")", ":"):
            self.at += 1
            count = self.counted(count)
        result = self.comparison()
        for _ in range(count):
            result = ex.Not(result)
        return result

    def counted(self, count: int) -> int:
        """Count one more operator in a row; raises if there are too many."""
        if count >= MAX_CHAIN:
            self.refuse(f"more than {MAX_CHAIN} operators in a row")
        return count + 1

    def comparison(self) -> ex.Expression:
        left = self.predicate()
        parts: list[ex.Expression] = []
        while (operator := self.marks[self.at]) in _COMPARISONS:
            self.at += 1
            right = self.predicate()
            parts.append(ex.Comparison(operator, left, right))  # type: ignore[arg-type]
            left = right
        if not parts:
            return left
        return parts[0] if len(parts) == 1 else ex.And(tuple(parts))

    def predicate(self) -> ex.Expression:
        """Parse `STARTS WITH`, `IN`, `IS NULL`, `=~` and the like after a sum."""
        result = self.arithmetic()
        count = 0
        while True:
            word, following = self.words[self.at], self.words[self.at + 1] if self.at + 1 < len(self.words) else ""
            if word in ("starts", "ends") and following == "with":
                self.at += 2
                result = ex.TextTest("starts with" if word == "starts" else "ends with", result, self.arithmetic())
            elif word == "contains":
                self.at += 1
                result = ex.TextTest("contains", result, self.arithmetic())
            elif self.marks[self.at] == "=~":
                self.at += 1
                result = ex.TextTest("matches", result, self.arithmetic())
            elif word == "in":
                self.at += 1
                result = ex.In(result, self.arithmetic())
            elif word == "is":
                self.at += 1
                negated = self.word("not")
                if not self.word("null"):
                    if self.marks[self.at] == ":" or self.words[self.at] in ("typed", "normalized", "labeled"):
                        self.refuse("IS with a type is not supported", hint="valueType(x) gives the type of a value")
                    self.expected("NULL or NOT NULL")
                result = ex.Not(ex.IsNull(result)) if negated else ex.IsNull(result)
            else:
                return result
            count = self.counted(count)

    def arithmetic(self, level: int = 0) -> ex.Expression:
        """Parse left-associative operators of one level: sums of products of powers."""
        last = level + 1 == len(_ARITHMETIC)
        result, count = self.unary() if last else self.arithmetic(level + 1), 0
        while (mark := self.marks[self.at]) in _ARITHMETIC[level]:
            self.at += 1
            count = self.counted(count)
            right = self.unary() if last else self.arithmetic(level + 1)
            result = ex.Arithmetic("+" if mark == "||" else mark, result, right)  # type: ignore[arg-type]
        return result

    def unary(self) -> ex.Expression:
        signs, count = 0, 0
        while self.marks[self.at] in ("-", "+"):
            if self.marks[self.at] == "-":
                signs += 1
            self.at += 1
            count = self.counted(count)
        start = self.starts[self.at]
        if signs and self.kinds[self.at] == "number" and self.marks[self.at + 1] not in (".", "[", ":"):
            value = self.values[self.at]
            self.at += 1
            value = -value if signs % 2 and value else value
            self.check_integer(value, start)
            return ex.Constant(value)
        result = self.postfix()
        return ex.Negative(result) if signs % 2 else result

    def check_integer(self, value: Any, start: int) -> None:
        if isinstance(value, int) and value > MAX_INTEGER:
            self.refuse(f"{value} is too large for an integer of 64 bits", start)

    def postfix(self) -> ex.Expression:
        result = self.atom()
        count = 0
        while True:
            mark = self.marks[self.at]
            if mark == ".":
                self.at += 1
                result = ex.Property(result, self.known("property", self.name("a property")))
            elif mark == "[":
                self.at += 1
                result = self.indexed(result)
            elif mark == ":" and isinstance(result, ex.Variable | ex.Property) and self.kinds[self.at + 1] in ("word", "name"):
                self.at += 1
                result = self.label_or(result, "label")
            elif mark == "{" and isinstance(result, ex.Variable):
                result = self.map_projection(result)
            else:
                return result
            count = self.counted(count)

    def indexed(self, of: ex.Expression) -> ex.Expression:
        index = None if self.marks[self.at] == ".." else self.expression()
        if index is not None and self.mark("]"):
            return ex.Index(of, index)
        if not self.mark(".."):
            self.need("]")
        stop = None if self.marks[self.at] == "]" else self.expression()
        self.need("]")
        return ex.Slice(of, index, stop)

    def map_projection(self, of: ex.Variable) -> ex.Expression:
        """Parse `n {.name, .*, age: 3, other}`."""
        self.at += 1

        def item() -> tuple[str, ex.Expression] | None:
            if not self.mark("."):
                key = self.name("a key")
                return key, self.expression() if self.mark(":") else ex.Variable(key)
            if self.mark("*"):
                return None
            key = self.known("property", self.name("a property"))
            return key, ex.Property(of, key)

        items = self.several_until("}", item)
        projection: ex.Expression = ex.MapOf(tuple(entry for entry in items if entry is not None))
        if None in items:
            projection = ex.Call("merged", (tree.AllProperties(of), projection))
        return ex.Case(((ex.IsNull(of), ex.NULL),), projection)

    def atom(self) -> ex.Expression:
        at = self.at
        kind, value, word = self.kinds[at], self.values[at], self.words[at]
        if kind == "number":
            self.at += 1
            self.check_integer(value, self.starts[at])
            return ex.Constant(value)
        if kind == "string":
            self.at += 1
            return ex.Constant(value)
        if kind == "parameter":
            self.at += 1
            return tree.Parameter(value)
        if kind == "mark":
            if value == "(":
                return self.parenthesis()
            if value == "[":
                return self.list()
            if value == "{":
                self.at += 1
                return ex.MapOf(tuple(self.several_until("}", self.entry)))
        if kind == "name" or (kind == "word" and word != "case" and (word not in RESERVED or self.marks[at + 1] == "(")):
            return self.named(word)
        if word in ("true", "false", "null"):
            self.at += 1
            return ex.Constant({"true": True, "false": False, "null": None}[word])
        if word != "case":
            self.expected("an expression")
        self.at += 1
        return self.case()

    def parenthesis(self) -> ex.Expression:
        """Parse an expression in parentheses, or a pattern."""
        if self.is_pattern():
            return tree.PatternTest(self.chain())
        self.at += 1
        inner = self.expression()
        self.need(")")
        return inner

    def is_pattern(self) -> bool:
        """Whether the parenthesis here begins a pattern: `(n)-`, `(n:A {..})<-`."""
        at, marks, kinds = self.at + 1, self.marks, self.kinds
        if marks[at] == ")":
            return marks[at + 1] in ("-", "<")
        if kinds[at] in ("word", "name"):
            at += 1
        if marks[at] == ")":
            following = marks[at + 1]
            if following == "<":
                return marks[at + 2] == "-" and (marks[at + 3] in ("[", "-"))
            return following == "-" and (marks[at + 2] == "[" or (marks[at + 2] == "-" and marks[at + 3] in (">", "(")))
        if marks[at] == ":" or (marks[at] == "{" and kinds[self.at + 1] in ("word", "name", "mark")):
            # Labels and properties extend to the closing parenthesis of this level.
            depth, end = 0, at
            while kinds[end] != "end" and end - at < 10_000:
                if marks[end] in ("(", "[", "{"):
                    depth += 1
                elif marks[end] in (")", "]", "}"):
                    if depth == 0:
                        break
                    depth -= 1
                end += 1
            return marks[end] == ")" and (
                (marks[end + 1] == "-" and marks[end + 2] in ("[", "-")) or (marks[end + 1] == "<" and marks[end + 2] == "-")
            )
        return False

    def list(self) -> ex.Expression:
        """Parse a list or a list comprehension."""
        self.at += 1
        at = self.at
        if self.kinds[at] in ("word", "name") and self.words[at + 1] == "in" and self.words[at] not in RESERVED:
            mark = self.at
            variable = self.variable()
            self.at += 1
            items = self.expression()
            if self.words[self.at] == "where" or self.marks[self.at] in ("|", "]"):
                where = self.expression() if self.word("where") else None
                bar = self.mark("|")
                result = self.expression() if bar else None
                if where is not None or result is not None or self.marks[self.at] == "]":
                    self.need("]")
                    return ex.ListComprehension(variable, items, where, result)
            self.again(mark)
        pattern = self.pattern_comprehension()
        if pattern is not None:
            return pattern
        return ex.ListOf(tuple(self.several_until("]", self.expression)))

    def pattern_comprehension(self) -> ex.Expression | None:
        at, variable = self.at, None
        if self.kinds[at] in ("word", "name") and self.marks[at + 1] == "=" and self.marks[at + 2] == "(":
            variable = self.variable()
            self.at += 1
        if self.marks[self.at] != "(" or not self.is_pattern():
            self.at = at
            return None
        chain = self.chain()
        if self.words[self.at] != "where" and self.marks[self.at] != "|":
            # A list of patterns, each a truth value.
            self.again(at)
            return None
        where = self.expression() if self.word("where") else None
        self.need("|")
        result = self.expression()
        self.need("]")
        return tree.PatternComprehension(
            tree.PathPattern(chain.nodes, chain.relationships, variable, None, chain.position), where, result
        )

    def entry(self) -> tuple[str, ex.Expression]:
        key = self.name("a key")
        self.need(":")
        return key, self.expression()

    def case(self) -> ex.Expression:
        operand = None if self.words[self.at] == "when" else self.expression()
        branches: list[tuple[ex.Expression, ex.Expression]] = []
        while self.word("when"):
            conditions = [self.expression()]
            while operand is not None and self.mark(","):
                conditions.append(self.expression())
            if not self.word("then"):
                self.expected("THEN")
            value = self.expression()
            branches.extend((condition, value) for condition in conditions)
        if not branches:
            self.expected("WHEN")
        otherwise = self.expression() if self.word("else") else ex.NULL
        if not self.word("end"):
            self.expected("END")
        return ex.Case(tuple(branches), otherwise, operand)

    def named(self, word: str) -> ex.Expression:
        """Parse a variable, a function, or an expression that begins with a word."""
        at = self.at
        following = self.marks[at + 1]
        if following == "{" and word in ("exists", "count", "collect") and self.kinds[at] == "word":
            return self.sub_query(word)
        # A function may have dots in its name.
        end = at
        while self.marks[end + 1] == "." and self.kinds[end + 2] in ("word", "name"):
            end += 2
        if self.marks[end + 1] == "(" and (end == at or self.is_function(at, end)):
            return self.call_of(at, end)
        return ex.Variable(self.variable())

    def is_function(self, at: int, end: int) -> bool:
        name = ".".join(str(self.values[i]) for i in range(at, end + 1, 2)).lower()
        return name in ex.FUNCTIONS or self.values[at].lower() in _NAMESPACES or end - at >= 2

    def sub_query(self, word: str) -> ex.Expression:
        self.at += 2
        self.deeper()
        if self.marks[self.at] == "(" or (self.kinds[self.at] in ("word", "name") and self.marks[self.at + 1] == "="):
            # A pattern alone.
            position = self.starts[self.at]
            patterns = self.several(self.path_pattern)
            where = self.expression() if self.word("where") else None
            query = tree.Query((tree.Single((tree.Match(tuple(patterns), where, False, position),)),))
        else:
            query = self.query(nested=True)
        self.depth -= 1
        self.need("}")
        if word == "collect":
            for part in query.parts:
                last = part.clauses[-1]
                if not isinstance(last, tree.Projection) or last.star or len(last.items) != 1:
                    self.refuse("COLLECT { } needs a RETURN of one column", self.starts[self.at - 1])
        return tree.SubQuery(word, query)  # type: ignore[arg-type]

    def call_of(self, at: int, end: int) -> ex.Expression:
        """Parse a function call; the name is at tokens `at` to `end`."""
        spelling = ".".join(str(self.values[i]) for i in range(at, end + 1, 2))
        name = spelling.lower()
        self.at = end + 2
        span = (self.starts[at], self.ends[end])
        if name in _SPECIAL:
            special: Callable[[str], ex.Expression] = getattr(self, _SPECIAL[name])
            return special(name)
        distinct = self.word("distinct")
        if name == "count" and self.mark("*"):
            self.need(")")
            return tree.Aggregate("count")
        arguments = self.several_until(")", self.expression)
        if name in tree.AGGREGATES:
            arity = 2 if name.startswith("percentile") else 1
            if len(arguments) != arity:
                self.refuse(
                    f"{spelling}() takes {arity} argument{'s' if arity > 1 else ''}, not {len(arguments)}", span[0], end=span[1]
                )
            return tree.Aggregate(name, arguments[0], distinct, arguments[1] if arity == 2 else None)
        name = _ALIASES.get(name, name)
        signature = ex.FUNCTIONS.get(name)
        if signature is None or name.startswith("group_") or name in ("path", "merged"):
            if name.startswith(("apoc.", "gds.", "db.", "dbms.")):
                self.refuse(f"{spelling}() is a function of a plug-in or server, which are not supported", span[0], end=span[1])
            raise UnknownNameError("function", spelling, candidates=nearest(name, [*ex.FUNCTIONS, *tree.AGGREGATES]), span=span)
        if distinct:
            self.refuse(f"DISTINCT is for aggregates, which {spelling}() is not", span[0], end=span[1])
        if not signature.takes(len(arguments)):
            least, most = signature.least, signature.least if signature.most == -1 else signature.most
            count = f"{least}" if most == least else f"{least} to {most}" if most else f"{least} or more"
            self.refuse(f"{spelling}() takes {count} arguments, not {len(arguments)}", span[0], end=span[1])
        if name == "properties":
            return tree.AllProperties(arguments[0])
        return ex.Call(name, tuple(arguments))

    def quantified(self, name: str) -> ex.Expression:
        variable = self.variable()
        if not self.word("in"):
            self.expected("IN", hint=f"{name}(x IN list WHERE condition)")
        items = self.expression()
        if not self.word("where"):
            self.expected("WHERE", hint=f"{name}(x IN list WHERE condition)")
        where = self.expression()
        self.need(")")
        return ex.Quantified(name, variable, items, where)  # type: ignore[arg-type]

    def reduced(self, name: str) -> ex.Expression:
        accumulator = self.variable()
        self.need("=")
        initial = self.expression()
        self.need(",")
        variable = self.variable()
        if not self.word("in"):
            self.expected("IN", hint="reduce(sum = 0, x IN list | sum + x)")
        items = self.expression()
        self.need("|")
        result = self.expression()
        self.need(")")
        return ex.Reduce(accumulator, initial, variable, items, result)

    def exists(self, name: str) -> ex.Expression:
        """Parse `exists(n.name)` or `exists((n)-->())`."""
        inner = self.expression()
        self.need(")")
        if isinstance(inner, tree.PatternTest):
            return tree.SubQuery("exists", tree.Query((tree.Single((tree.Match((inner.pattern,)),)),)))
        return ex.Not(ex.IsNull(inner))

    def trimmed(self, name: str) -> ex.Expression:
        """Parse `trim(x)` or `trim(BOTH "x" FROM y)`."""
        if self.words[self.at] in ("both", "leading", "trailing") and self.kinds[self.at + 1] in ("string", "word", "parameter"):
            side = self.words[self.at]
            self.at += 1
            characters = None if self.words[self.at] == "from" else self.expression()
            if not self.word("from"):
                self.expected("FROM")
            value = self.expression()
            self.need(")")
            function = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[side]
            return ex.Call(function, (value,) if characters is None else (value, characters))
        value = self.expression()
        self.need(")")
        return ex.Call("trim", (value,))

    def shortest(self, name: str) -> NoReturn:
        self.refuse(
            f"{name}() within an expression is not supported", self.starts[self.at - 2], hint="MATCH p = shortestPath((a)-[*]->(b))"
        )


#: Operators by level, loosest first.
_ARITHMETIC: Final = (("+", "-", "||"), ("*", "/", "%"), ("^",))
_COMPARISONS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))
_ALIASES: Final = {"ceiling": "ceil", "rels": "relationships"}
_NAMESPACES: Final = frozenset(
    ("date", "time", "datetime", "localtime", "localdatetime", "duration", "apoc", "gds", "db", "dbms", "point")
)
_SPECIAL: Final = {
    "all": "quantified", "any": "quantified", "none": "quantified", "single": "quantified", "reduce": "reduced",
    "exists": "exists", "trim": "trimmed", "shortestpath": "shortest", "allshortestpaths": "shortest",
}  # fmt: skip


def _renamed(expression: ex.Expression, old: str, new: str) -> ex.Expression:
    """Return an expression with a variable renamed."""
    return ex.rebuilt(expression, lambda part: ex.Variable(new) if isinstance(part, ex.Variable) and part.name == old else None)


class Parsed:
    """A parsed query, and the first position of each label, type and key by kind and name."""

    __slots__ = ("names", "query")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise ParseError(f"the query has {len(text):,} characters; at most {MAX_TEXT:,} are read")
        parser = _Parser(text)
        self.query = parser.whole()
        self.names = parser.names


def all_branches(text: str) -> list[str]:
    """Return the queries that `UNION ALL` joins, or the text alone if it has none.

    Each is padded with blanks at its start, so that positions in messages refer to the whole text.
    Raises `ParseError`.
    """
    query = parse(text).query
    if not query.every:
        return [text]
    begins, ends = [0, *(end for _, end in query.unions)], [*(begin for begin, _ in query.unions), len(text)]
    return [" " * begin + text[begin:end] for begin, end in zip(begins, ends, strict=True)]


@lru_cache(maxsize=512)
def _parse_short(text: str) -> Parsed:
    return Parsed(text)


def parse(text: str) -> Parsed:
    """Parse a query; parsed short texts are cached.

    Raises `ParseError` with a position for invalid text, and for a query that does more than read.
    """
    return _parse_short(text) if len(text) <= 4_000 else Parsed(text)


# -- templates ---------------------------------------------------------------------------------------
# Cypher has parameters of its own: `$name` is a value.


class CypherTemplate:
    """A parsed Cypher query with parameters; raises as `parse`."""

    language: ClassVar[str] = "cypher"

    def __init__(self, program: Any) -> None:
        self._text = program if isinstance(program, str) else str(program)
        parts = tree.within(parse(self._text).query)
        self.parameters = in_order([part.name for part in parts if isinstance(part, tree.Parameter)])
        self.entities: frozenset[str] = frozenset()

    def bind(self, values: Mapping[str, GivenText]) -> BoundQuery:
        return BoundQuery(self._text, {name: value.value for name, value in values.items()})
