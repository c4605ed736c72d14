"""Words of Cypher 5 and Cypher 25 (Neo4j 5.26 to 2026.x), in small letters, as the check of a
foreign text needs them.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Procedures that read the graph and nothing else.
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
#: Functions that come with every server and see no more than their arguments and the graph. A
#: function of a plug-in always has a dot in its name.
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
#: Words that may stand before a parenthesis and are no functions.
BEFORE_PARENTHESIS: Final = _words("""
    match where with return unwind and or xor not in by distinct case when then else skip limit offset on contains is implies
    allshortestpaths shortestpath shortest path paths group groups walk trail acyclic simple any all elements element bindings
    relationships filter using for of vector varchar char union
    """)
#: Words that begin a clause which does more than read; a name, a pattern or an expression follows.
CLAUSES: Final = _words("create merge insert set delete remove foreach use grant deny revoke")
#: Words that begin something which does more than read; a word of its own follows.
COMMANDS: Final = _words("""
    load show terminate drop alter rename start stop enable dryrun deallocate reallocate detach nodetach periodic
    define local
    """)
#: Words that may follow a name, and none of the commands.
AFTER_A_NAME: Final = _words("""
    and or xor in is as contains starts ends order limit skip offset return with where match optional unwind union when then else
    end asc ascending desc descending call yield finish filter let next for group implies using from
    """)
#: Words after which an operand comes, where they stand after the end of one.
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
#: What `SHOW` may show.
SHOWN: Final = (
    "all|aliases|alias|analyzers?|auth|btree|built|composite|constraints?|current|databases?|default|executable|exist\\w*|fulltext|"
    "functions?|home|index(?:es)?|key|lookup|node|point|populated|privileges?|procedures?|property|providers?|range|rel|"
    "relationship|roles?|rules?|servers?|settings?|supported|text|transactions?|unique\\w*|users?|vector"
)
#: The options before a query that change how it is planned, and not what it does.
OPTIONS: Final = frozenset({"planner", "runtime", "replan"})
VERSIONS: Final = frozenset({"5", "25"})
