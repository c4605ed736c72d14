"""The guard for Cypher written by users: checks its tokens, its clauses, and the server's plan."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn

from condgraph.engine.errors import OptionError, ParseError, ReadOnlyError, UnknownNameError, UnsupportedError

__all__ = ["PROCEDURES", "check_plan", "check_read_whole", "check_text"]


# -- Words -------------------------------------------------------------------------------------------
# Words of Cypher 5 and Cypher 25 (Neo4j 5.26 to 2026.x) in lower case, as far as the check needs them.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Procedures that only read the graph.
PROCEDURES: Final = frozenset(
    {
        "db.labels",
        "db.relationshipTypes",
        "db.propertyKeys",
        "db.index.vector.queryNodes",
        "db.index.vector.queryRelationships",
        "db.index.fulltext.queryNodes",
        "db.index.fulltext.queryRelationships",
        "db.schema.visualization",
        "db.schema.nodeTypeProperties",
        "db.schema.relTypeProperties",
    }
)
_CLOCKS: Final = ("date", "datetime", "time", "localdatetime", "localtime")
#: Functions that are part of every server and see only their arguments and the graph. A function of a
#: plug-in always has a dot in its name.
FUNCTIONS: Final = _words("""
    abs acos all allreduce any asin atan atan2 avg btrim cardinality ceil ceiling char_length character_length coalesce collect
    collect_list cos cosh cot coth count date datetime degrees duration duration_between e elementid endnode exists exp floor
    format haversin head id isempty isnan keys labels last left length ln local_datetime local_time localdatetime localtime log
    log10 lower ltrim max min nodes none normalize nullif path_length percentile_cont percentile_disc percentilecont
    percentiledisc pi point properties property_exists radians rand randomuuid range reduce relationships replace reverse right
    round rtrim sign sin single sinh size split sqrt startnode stdev stdev_pop stdev_samp stdevp substring sum tail tan tanh time
    timestamp toboolean tobooleanlist tobooleanornull tofloat tofloatlist tofloatornull tointeger tointegerlist tointegerornull
    tolower tostring tostringlist tostringornull toupper trim type upper uuid valuetype vector vector_dimension_count
    vector_distance vector_norm zoned_datetime zoned_time
    coll.distinct coll.flatten coll.indexof coll.insert coll.max coll.min coll.remove coll.sort
    datetime.fromepoch datetime.fromepochmillis duration.between duration.indays duration.inmonths duration.inseconds
    point.distance point.withinbbox string.indexof string.join string.regexreplace
    uuid.leastsignificantbits uuid.mostsignificantbits vector.similarity.cosine vector.similarity.euclidean
    """) | {f"{clock}.{kind}" for clock in _CLOCKS for kind in ("realtime", "statement", "transaction", "truncate")}  # fmt: skip
#: Words that may precede a parenthesis without being functions.
BEFORE_PARENTHESIS: Final = _words("""
    match where with return unwind and or xor not in by distinct case when then else skip limit offset on contains is implies
    allshortestpaths shortestpath shortest path paths group groups walk trail acyclic simple any all elements element bindings
    relationships filter using for of vector varchar char union
    """)
#: Words that begin a clause which does more than read; a name, a pattern or an expression follows.
CLAUSES: Final = _words("create merge insert set delete remove foreach use grant deny revoke")
#: Words that begin a command which does more than read; a keyword follows.
COMMANDS: Final = _words("""
    load show terminate drop alter rename start stop enable dryrun deallocate reallocate detach nodetach periodic
    define local
    """)
#: Words that may follow a name, but none of the commands.
AFTER_A_NAME: Final = _words("""
    and or xor in is as contains starts ends order limit skip offset return with where match optional unwind union when then else
    end asc ascending desc descending call yield finish filter let next for group implies using from
    """)
#: Words that an operand follows, if they follow an operand.
ASKING: Final = _words("return with where unwind and or xor in as contains")
#: Words that cannot be names where an operand is expected.
KEYWORDS: Final = (
    AFTER_A_NAME
    | ASKING
    | BEFORE_PARENTHESIS
    | CLAUSES
    | COMMANDS
    | _words("distinct not exists count collect none single reduce allreduce null true false cypher search let")
)
#: The objects of `SHOW`.
SHOWN: Final = (
    "all|aliases|alias|analyzers?|auth|btree|built|composite|constraints?|current|databases?|default|executable|exist\\w*|fulltext|"
    "functions?|home|index(?:es)?|key|lookup|node|point|populated|privileges?|procedures?|property|providers?|range|rel|"
    "relationship|roles?|rules?|servers?|settings?|supported|text|transactions?|unique\\w*|users?|vector"
)
#: Options before a query that change how it is planned, but not what it does.
OPTIONS: Final = frozenset({"planner", "runtime", "replan"})
VERSIONS: Final = frozenset({"5", "25"})


# -- Tokens ----------------------------------------------------------------------------------------
# Splits a Cypher text into tokens, in linear time; refuses what versions of a server may read
# differently.
#
# A server decodes `\uXXXX` before it splits, so that an escape may be a quote, or part of a word (observed on 5.26 and 2026.x,
# in Cypher 5 and 25). A text with escapes is therefore checked both as it is and decoded, and escapes are allowed only within
# quotes.


WORD, NAME, STRING, NUMBER, MARK = "word", "name", "string", "number", "mark"
# `/*/` begins a comment, but the parser of options before a query on 5.26 misreads it, so it is refused.
#: Characters that a server treats as space. Other invisible characters are parts of names in some
#: versions.
_SPACE: Final = "\\t-\\r\\x1c-\\x20\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_TOKEN: Final = re.compile(
    rf"""(?P<space>[{_SPACE}]++|//[^\n\r]*+|/\*(?!/).*?\*/)
    |(?P<word>[^\W\d]\w*+)
    |(?P<string>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<name>`[^`]*+(?:``[^`]*+)*+`)
    |(?P<number>(?:0[xX][0-9a-fA-F_]++|0[oO][0-7_]++|[0-9][0-9_]*+(?:\.[0-9][0-9_]*+)?(?:[eE][+-]?[0-9]++)?)[fFdD]?)
    |(?P<open>/\*|['"`])
    |(?P<mark>[-()\[\]{{}}<>=+*/%^.,:;|&!?~$])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:\\|u([0-9a-fA-F]{4}))")
_ANY_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
#: Longest error message about a token, and the names of open tokens.
_LONG: Final = 200
_OPENINGS: Final = {"'": "a string", '"': "a string", "`": "a name in backticks", "/*": "a comment"}


class Tokens:
    """The tokens of a text, without space and comments: parallel lists `kinds`, `values` and `starts`.

    The value of a word is in lower case, that of a name in backticks is the name, that of a string is empty.
    """

    def __init__(self, text: str, shifts: list[int] | None = None) -> None:
        """`shifts` are the positions of decoded escapes, so that errors refer to the original text."""
        self._text, self._shifts = text, shifts or []
        self.kinds: list[str] = []
        self.values: list[str] = []
        self.starts: list[int] = []
        previous_end = 0
        for match in _TOKEN.finditer(text):
            kind, start = match.lastgroup, match.start()
            if kind == "space":
                continue
            value = match[0]
            if kind == WORD:
                value = value.upper().casefold()
                if previous_end == start and start and self.kinds[-1] in (NUMBER, NAME):
                    self.refuse(start, f"{match[0]!r} follows {text[self.starts[-1] : start]!r} without a space")
            elif kind == NAME:
                value = value[1:-1].replace("``", "`")
            elif kind == STRING:
                if previous_end == start and start and self.kinds[-1] in (WORD, NAME):
                    # In Cypher 25, s'...{expression}...' evaluates the expression.
                    self.refuse(start, f"a string right after {text[self.starts[-1] : start]!r}", hint="write a space before it")
                value = ""
            elif kind == "open":
                self.refuse(start, f"{_OPENINGS[value]} begins here and does not end")
            elif text.startswith("\\u", start):
                self.refuse(start, "a '\\u' escape outside of quotes")
            elif kind == "other":
                self.refuse(start, f"the character U+{ord(value):04X} outside of quotes")
            elif value == "$" and previous_end == start and start and self.kinds[-1] in (WORD, NAME, NUMBER):
                self.refuse(start, "'$' within a word", hint="write a space before it")
            self.kinds.append(str(kind))
            self.values.append(value)
            self.starts.append(start)
            previous_end = match.end()

    def mark(self, at: int) -> str:
        """Return the mark at an index, or ""."""
        return self.values[at] if 0 <= at < len(self.kinds) and self.kinds[at] == MARK else ""

    def word(self, at: int) -> str:
        """Return the word at an index, or ""."""
        return self.values[at] if 0 <= at < len(self.kinds) and self.kinds[at] == WORD else ""

    def written(self, at: int) -> str:
        """Return the word at an index in its original case."""
        match = _TOKEN.match(self._text, self.starts[at])
        return match[0] if match else ""

    def named(self, at: int) -> bool:
        """Tell whether there is a word or a name in backticks at an index."""
        return 0 <= at < len(self.kinds) and self.kinds[at] in (WORD, NAME)

    def refuse(self, start: int, what: str, *, hint: str | None = None) -> NoReturn:
        """Raise the error, with the position in the original text."""
        what = what if len(what) <= _LONG else f"{what[:_LONG]}..."
        start += 5 * bisect_left(self._shifts, start)
        raise ReadOnlyError(f"the query may do more than read: {what}", span=(start, start + 1), hint=hint)


def readings(text: str) -> list[Tokens]:
    """Return the tokens of a text as it is and, if it has escapes, decoded; raises `ReadOnlyError` for text that has no tokens."""
    if not text.isascii():
        for index, letter in enumerate(text):
            if "\ud800" <= letter <= "\udfff":
                raise ReadOnlyError("the query contains an unpaired surrogate", span=(index, index + 1))
        # Combining marks are parts of words.
        text = "".join("_" if unicodedata.category(letter) in ("Mn", "Mc") else letter for letter in text)
    result = [Tokens(text)]
    if "\\u" in text:
        _only_in_quotes(text, result[0])
        result += [Tokens(*_decoded(text, _ESCAPE)), Tokens(*_decoded(text, _ANY_ESCAPE))]
    return result


def _only_in_quotes(text: str, tokens: Tokens) -> None:
    """Refuse an escape in a word, a comment or between tokens: nobody needs one there."""
    # In order, so that one pass suffices.
    quoted = [match.span() for match in _TOKEN.finditer(text) if match.lastgroup in (STRING, NAME)]
    index = 0
    for escape in re.finditer(r"\\u", text):
        while index < len(quoted) and quoted[index][1] <= escape.start():
            index += 1
        if index == len(quoted) or quoted[index][0] > escape.start():
            tokens.refuse(escape.start(), "a '\\u' escape outside of quotes")


def _decoded(text: str, escapes: re.Pattern[str]) -> tuple[str, list[int]]:
    parts, shifts, previous_end, length = [], [], 0, 0
    for match in escapes.finditer(text):
        if not match[1]:
            continue
        parts += [text[previous_end : match.start()], chr(int(match[1], 16))]
        length += match.start() - previous_end + 1
        previous_end = match.end()
        shifts.append(length - 1)
    parts.append(text[previous_end:])
    return "".join(parts), shifts


# -- Checks of the text ----------------------------------------------------------------------------
# Checks by its tokens alone that a query can only read.
#
# A word is refused wherever it may begin a clause or a command that does more than read, at any depth: in
# a subquery, a list, a `CASE`, a predicate. It is accepted where it can only be a name (`n.set`, `:CALL`,
# `{load: 1}`, `AS show`). In doubt it is refused, and the error advises backticks for a name. Procedures
# and functions have to be listed.


#: After these marks a name or an expression follows, never a clause.
_BEFORE_AN_OPERAND: Final = frozenset(".$([,=:|/^&-<~")
#: These marks follow a name, but no word that begins a clause.
_BEHIND_A_NAME: Final = frozenset("=<>,)]}:|/^%&;")
_ENDS, _ASKS = "ends", "asks"
_QUOTED: Final = "where it is a name, write it in backticks"


def check_text(text: str) -> None:
    """Raise `ReadOnlyError`, with the position, for a text that may do more than read; in linear time."""
    if not isinstance(text, str):
        raise OptionError(f"a query is a text, and this is {type(text).__name__}")
    for tokens in readings(text):
        _Reader(tokens).check()


class _Reader:
    """Checks one reading of a text."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        #: What is certain of each token: that an operand ends with it, or that one follows.
        self.roles: list[str] = []
        #: Indices where names of allowed procedures begin.
        self.called: set[int] = set()
        self.begin = self.prefix()

    def check(self) -> None:
        """Check every token once."""
        tokens = self.tokens
        self.roles = [""] * self.begin
        for index in range(self.begin, len(tokens.kinds)):
            self.roles.append(self.role(index))
            if tokens.kinds[index] == WORD:
                self.check_word(index, tokens.values[index])
            elif tokens.kinds[index] == MARK:
                if tokens.values[index] == "(":
                    self.check_call(index)
                elif tokens.values[index] == ";" and index + 1 < len(tokens.kinds):
                    tokens.refuse(tokens.starts[index + 1], "a second statement")

    # -- the words before a query ------------------------------------------------------------------

    def prefix(self) -> int:
        """Return the index where the query itself begins, after options such as `CYPHER 25 runtime=slotted`."""
        tokens, index = self.tokens, 0
        if tokens.word(0) == "cypher":
            index = 1
            if tokens.kinds[1:2] == [NUMBER]:
                if tokens.values[1] not in VERSIONS:
                    tokens.refuse(tokens.starts[1], f"version {tokens.values[1]!r} of Cypher is not known here")
                index = 2
            while tokens.word(index) and tokens.mark(index + 1) == "=":
                if tokens.word(index) not in OPTIONS or not tokens.word(index + 2):
                    known = ", ".join(sorted(OPTIONS))
                    tokens.refuse(tokens.starts[index], f"the option {tokens.word(index)!r}", hint=f"these may be given: {known}")
                index += 3
        if (word := tokens.word(index)) in ("explain", "profile", "cypher"):
            tokens.refuse(tokens.starts[index], f"it begins with {word.upper()}, so its plan cannot be requested")
        return index

    # -- names and keywords ------------------------------------------------------------------------

    def role(self, at: int) -> str:
        """Return what is certain of a token, given those before it."""
        tokens = self.tokens
        if tokens.kinds[at] == MARK:
            return _ENDS if tokens.values[at] in ")]}" else ""
        if tokens.kinds[at] != WORD:
            return _ENDS
        word, mark, before = tokens.values[at], tokens.mark(at - 1), tokens.word(at - 1)
        if mark == "$" or (mark == "." and tokens.mark(at - 2) != "."):
            return _ENDS
        ended = at == self.begin or self.roles[at - 1] == _ENDS
        if word in ASKING and (ended or (mark == "{" and word in ("return", "with", "unwind"))):
            return _ASKS
        if before and not ended:
            pair = (before, word) in (("order", "by"), ("starts", "with"), ("ends", "with"))
            if pair and self.roles[at - 2 : at - 1] == [_ENDS]:
                return _ASKS
            if self.roles[at - 1] == _ASKS:
                if (before, word) == ("return", "distinct"):
                    return _ASKS
                return _ENDS if before == "as" or word not in KEYWORDS else ""
        return _ENDS if mark and mark in _BEFORE_AN_OPERAND and word not in KEYWORDS else ""

    def check_word(self, at: int, word: str) -> None:
        """Refuse a word that may begin something that does more than read."""
        tokens = self.tokens
        if word in ("in", "concurrent") and tokens.word(at + 1) in ("transaction", "transactions"):
            if word == "concurrent" or tokens.mark(at - 1) == "}":
                tokens.refuse(tokens.starts[at], "IN TRANSACTIONS", hint=_QUOTED)
        elif word == "call":
            if not self.is_name(at):
                self.check_procedure(at)
        elif (word in CLAUSES or word in COMMANDS) and not self.is_name(at):
            after = tokens.word(at + 1)
            if word in COMMANDS and (after in AFTER_A_NAME or (tokens.mark(at + 1) and tokens.mark(at + 1) not in "($")):
                return
            tokens.refuse(tokens.starts[at], f"{f'{word} {after}'.strip().upper()} is not a reading clause", hint=_QUOTED)

    def is_name(self, at: int) -> bool:
        """Tell whether the word can only be a name here."""
        tokens = self.tokens
        mark, after = tokens.mark(at - 1), tokens.mark(at + 1)
        if mark == "$" or (mark == "." and tokens.mark(at - 2) != "."):
            return True
        if after == "(":
            return False
        if at + 1 == len(tokens.kinds) or (after and after in _BEHIND_A_NAME) or (after == "." and tokens.named(at + 2)):
            return True
        operand = (mark and mark in _BEFORE_AN_OPERAND) or (tokens.word(at - 1) and self.roles[at - 1] == _ASKS)
        return bool(operand) and tokens.kinds[at + 1] in (WORD, MARK) and (bool(after) or tokens.word(at + 1) in AFTER_A_NAME)

    # -- what is called ----------------------------------------------------------------------------

    def check_procedure(self, at: int) -> None:
        """Refuse `CALL` of anything but a subquery or a listed procedure."""
        tokens, index = self.tokens, at + 1
        if tokens.mark(index) == "{":
            return
        if tokens.mark(index) == "(":
            index += 1
            while tokens.named(index) or (tokens.mark(index) and tokens.mark(index) in ",*"):
                index += 1
            if tokens.mark(index) == ")" and tokens.mark(index + 1) == "{":
                return
            tokens.refuse(tokens.starts[at], "CALL of something that is not a subquery", hint=_QUOTED)
        parts = []
        while tokens.named(index):
            parts.append(self.written(index))
            if tokens.mark(index + 1) != ".":
                break
            index += 2
        name = ".".join(parts)
        if name not in PROCEDURES:
            tokens.refuse(tokens.starts[at], f"CALL of {name!r}, which is not on the list of procedures", hint=_QUOTED)
        self.called.add(at + 1)

    def written(self, at: int) -> str:
        """Return a name in its original case, which matters for procedures."""
        return self.tokens.written(at) if self.tokens.kinds[at] == WORD else self.tokens.values[at]

    def check_call(self, at: int) -> None:
        """Refuse the function before a parenthesis unless it is listed."""
        tokens, first = self.tokens, at - 1
        if not tokens.named(first):
            return
        while tokens.mark(first - 1) == "." and tokens.named(first - 2):
            first -= 2
        if first in self.called:
            return
        parts = tokens.values[first:at:2]
        name = ".".join(parts).upper().casefold()
        if name in FUNCTIONS and not any("." in part for part in parts):
            return
        if len(parts) == 1 and tokens.kinds[first] != NAME and (name in BEFORE_PARENTHESIS or name == "call"):
            return
        if len(parts) == 1 and tokens.mark(first - 1) == ":" and self.is_hint(first - 2):
            return
        tokens.refuse(tokens.starts[first], f"the function {'.'.join(parts)!r} is not on the list")

    def is_hint(self, at: int) -> bool:
        """Tell whether this is the variable of `USING INDEX n:Label(property)`."""
        words = [self.tokens.word(item) for item in range(max(at - 4, 0), at)]
        return self.tokens.named(at) and "using" in words and "index" in words


def check_read_whole(text: str, engine: str) -> None:
    """Raise `ReadOnlyError` unless condgraph's own Cypher parser reads the whole text.

    For servers (named `engine`) that neither tell whether a text writes nor refuse to write.
    """
    from condgraph.languages.cypher.parse import parse

    if "\\" in text:
        raise ReadOnlyError(
            f"a backslash could end a text or a name otherwise on {engine} than it does here", hint="give the text as a parameter"
        )
    try:
        parse(text)
    except (ParseError, UnknownNameError, UnsupportedError) as error:
        why = f"{engine} does not say whether a text writes, and this one is not read here to its end: {error.message}"
        raise ReadOnlyError(why, hint=error.hint) from error


# -- Checks of the text and of the plan ------------------------------------------------------------
# Two independent checks, each of which can refuse: of the text before it is sent, and of the server's
# plan. Subqueries within expressions are no operators of a plan; they appear in the details of its
# operators.


#: Operators that read or change more than the graph, whatever the query type is.
_FORBIDDEN: Final = (
    *("Show", "Create", "Delete", "Detach", "Merge", "Set", "Remove", "Drop", "Alter", "Foreach", "Grant", "Deny", "Revoke"),
    *("Rename", "Start", "Stop", "Enable", "Do", "Assert", "Log", "System"),
)
_FORBIDDEN_ANYWHERE: Final = ("LoadCSV", "Terminate", "Administration", "Transaction", "Command")
#: What a plan shows of a subquery within an expression. A word in backticks, or a property, is no clause.
_SUBQUERY: Final = re.compile(
    rf"(?<![`.\w])(?:(?P<load>LOAD\s+CSV)\b|(?P<show>SHOW\s+(?:{SHOWN}))\b|(?P<end>TERMINATE\s+TRANSACTIONS?)\b"
    r"|CALL\s++(?P<call>[\w`]++(?:\.[\w`]++)*+)|ResolvedCall\(\s*+(?P<resolved>[^\s()]++))",
    re.IGNORECASE,
)
_FUNCTION: Final = re.compile(r"(?<![`.\w])[\w`]++(?:\.[\w`]++)++(?=\()")
_QUOTED_TEXT: Final = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`[^`]*+`""", re.DOTALL)
_UNSEEN: Final = frozenset({"string-representation"})


def check_plan(query_type: str | None, plan: Any, columns: Iterable[str] = ()) -> None:
    """Raise `ReadOnlyError` unless a plan only reads the graph. `columns` are the names of the result's columns."""
    if query_type != "r":
        raise ReadOnlyError(f"the query is of type {query_type!r}; only reading is allowed")
    if not plan:
        raise ReadOnlyError("the server returned no plan for the query")
    harmless = _harmless(columns)
    graphs = set()
    for operator, arguments in _operators(plan):
        name, _, graph = operator.partition("@")
        graphs.add(graph)
        if name.startswith(_FORBIDDEN) or any(word in name for word in _FORBIDDEN_ANYWHERE):
            raise ReadOnlyError(f"the query does more than read the graph: {name}")
        details = str(arguments.get("Details", ""))
        if "ProcedureCall" in name and (called := _unquoted(details.partition("(")[0])) not in PROCEDURES:
            raise ReadOnlyError(f"the query calls a procedure that is not on the list: {called}")
        if name != "ProduceResults":
            for key, value in arguments.items():
                if isinstance(value, str) and key not in _UNSEEN:
                    _check_subqueries(value, harmless)
    if len(graphs) > 1 or "system" in graphs:
        raise ReadOnlyError(f"the query reads more than one database: {', '.join(sorted(graphs))}")


def _check_subqueries(text: str, harmless: list[str]) -> None:
    """Refuse what the description of an operator shows of its subqueries."""
    for column in harmless:
        text = text.replace(column, "``")
    for match in _SUBQUERY.finditer(text):
        name = _unquoted(match["call"] or match["resolved"] or "")
        if not name:
            raise ReadOnlyError(f"the query does more than read the graph: {match[0]}", hint=_HINT)
        if name not in PROCEDURES and name.casefold() not in AFTER_A_NAME:
            raise ReadOnlyError(f"the query calls a procedure that is not on the list: {name}", hint=_HINT)
    for match in _FUNCTION.finditer(text):
        name = _unquoted(match[0])
        if name.casefold() not in FUNCTIONS and name not in PROCEDURES:
            raise ReadOnlyError(f"the query calls a function that is not on the list: {name}", hint=_HINT)


_HINT: Final = "where this is part of a text or a name, give the text as a parameter, and the column a name with AS"


def _harmless(columns: Iterable[str]) -> list[str]:
    """Return the columns, as a plan writes them, that contain such words only in quotes: a column is named by its expression."""
    result = []
    for column in columns:
        if _speaks(column) and not _speaks(_QUOTED_TEXT.sub(" ", column)):
            result.append("`" + column.replace("`", "``") + "`")
    return result


def _speaks(text: str) -> bool:
    return bool(_SUBQUERY.search(text) or _FUNCTION.search(text))


def _unquoted(name: str) -> str:
    return name.strip().replace("`", "")


def _operators(plan: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node["operatorType"], node.get("args", {})
        stack.extend(node.get("children", ()))
