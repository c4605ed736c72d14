"""What readers are fed: pieces that are repeated, pieces that blow up, and the frames that they
stand in for each kind of text.
"""

from __future__ import annotations

#: What is repeated: one character of every class, what begins and ends things, and pairs of them.
SINGLES = (
    *("1", "0", "a", "Z", "é", "ß", "_", "-", "+", ".", ",", ";", ":", "!", "?", "*", "/", "|", "&", "=", "~", "^", "#", "@", "%"),
    *("$", "(", ")", "[", "]", "{", "}", "<", ">", "'", '"', "`", "\\", "€", "½", "東", "ا", "😀", "\u0301", "\u200d", "\u2028"),
    *("\ufeff", " ", "\n", "\r", "\t", "\r\n", "\0", "\u00a0", "\x85"),
)
PAIRS = (
    *("1.", "1,", "1 ", "1-", "-1", "1e", "1:", "1/", "1_", "1é", "a1", "a-", "a.", "a ", "a,", "a:", "a_", ":a", ".1", "..", "--"),
    *(
        "e\u0301",
        "\u0301\u0323",
        "\u0344",
        "\ufdfa",
        '\\"',
        "é ",
        "é\n",
        "😀 ",
        " \n",
        "\t ",
        " ,",
        ", ",
        " ;",
        "%41",
        "%",
        "\\u0041",
        "\\U00000041",
        "\\\\",
        '\\"',
        "\\'",
        "\\n",
    ),
    *(
        "()",
        "[]",
        "{}",
        "<>",
        "''",
        '""',
        "'''",
        '"""',
        "``",
        "```",
        "((",
        "[[",
        "{{",
        "<<",
        "<<(",
        "](",
        ")(",
        "( ",
        "[ ",
        "{ ",
        "< ",
    ),
    *(
        "a(",
        "a)",
        "(a",
        "[1",
        "[1,",
        '["a",',
        '{"a":',
        "{'a':",
        "<a>",
        "<a ",
        "</a>",
        "<!",
        "<!--",
        "-->",
        "<![CDATA[",
        "&a;",
        "&#1;",
    ),
    *(
        "#\n",
        "# ",
        "//",
        "/*",
        "*/",
        "--\n",
        "@a",
        "@a ",
        "^^",
        "?a",
        "?a ",
        "$a",
        "_:a",
        "_:a ",
        "a:b ",
        "<a> ",
        '"a" ',
        "'a', ",
        "|a",
    ),
    *(
        "UNION ",
        "SELECT ",
        "FROM ",
        "SERVICE ",
        "FILTER(",
        "PREFIX a: <b> ",
        "not ",
        "! ",
        "- ",
        "+ 1 ",
        "a=",
        "a='",
        "a=1,",
        "if(",
    ),
    *(
        "Find(a) ",
        "Find(",
        'Find("',
        'Find("a") ',
        "FindAll() ",
        "Or() ",
        "<func>",
        "<arg>",
        "Query1: ",
        "Query1:",
        "Query ",
        "query 1",
    ),
    *(
        "output_of_query1 ",
        "output_of_query1[",
        "set1,",
        "get_information(",
        "count(",
        "UNKNOWN ",
        "(a) -[b]-> (c); ",
        "-[",
        "]->",
        "<-[",
    ),
    *(
        "(a) -[b]-> ",
        '("a", "b", "c"), ',
        '"triples": ',
        "'a', ",
        "Q1,P1,",
        "P1=",
        "Q1\t",
        "a\tb\n",
        "a,b\n",
        "a|b|c\n",
        "1 2 3\n",
        "##-",
    ),
    *("1960-01-01 ", "1,234", "1'000", "1 000", "12:", "May 5 ", "1st ", "$1", "5 km ", "(1)", "1–", "BC ", "[1]", "* ", "* †"),
    *("q=", ";q=", ";q=1,", "a/b,", "a/b;", "a/b;c=", 'a/b;c="', '";"', "&a=b", "&", "a=b&", "text/csv;q=0.1,"),
)


#: Whole pieces, not repeated: numbers and dates that blow up when they are made, texts that blow up
#: when they are normalised.
BOMBS = (
    *(
        "9" * 4301,
        "9" * 1_000_000,
        "-" + "9" * 5_000,
        "9" * 400 + ".5",
        "0." + "0" * 5_000 + "1",
        "1" + "0" * 1_000_000,
        "1," + "000," * 5_000,
    ),
    *(
        "1e400",
        "1e999",
        "1e9999",
        "1e999999999",
        "-1e-999999999",
        "1e" + "9" * 5_000,
        "1E+99999",
        "0x" + "f" * 5_000,
        "1_" * 3_000 + "1",
    ),
    *(
        "999999999999",
        "-999999999999",
        "999999999999-01-01",
        "99999999999999999999-12-31",
        "1960-01-01/999999999999",
        "9" * 30 + "-01-01",
    ),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "inf",
        "1/0",
        "00:00",
        "99:99:99",
        "1 " + "9" * 5_000 + " km",
        "1 m**9**9**9",
        "1 (m**9)**9",
        "1 9**9**9",
    ),
    *("e" + "\u0301\u0323" * 5_000, "\u0344" * 10_000, "\ufdfa" * 20_000, "\U0001d160" * 10_000, "ß" * 100_000, "İ" * 100_000),
    *(
        "[" * 100_000,
        "(" * 100_000,
        "{" * 100_000,
        '{"a":' * 100_000,
        "[" * 900 + "]" * 900,
        "<a>" * 100_000,
        "((" * 1_000 + "))" * 1_000,
    ),
    *("not " * 50_000, "!" * 100_000, "-" * 100_000, "(1+" * 50_000, "NOT EXISTS{" * 20_000, "1+" * 100_000 + "1", "a" * 1_000_000),
)

# -- frames: what stands before and behind ---------------------------------------------------------

BARE = (("", ""),)
CELL = (*BARE, ("name,size\nAnn,", "\n"), ('name,size\nAnn,"', '"\n'), ("name,", "\nAnn,5\n"), ("name,size\nAnn,5\n", ",5\n"))
TAB = (*BARE, ("name\tsize\nAnn\t", "\n"), ('name\tsize\nAnn\t"', '"\n'), ("name\t", "\nAnn\t5\n"))
TTL = (
    *BARE,
    *(("<http://e/", "> <http://e/p> 1 ."), ('<http://e/a> <http://e/p> "', '" .'), ("<http://e/a> <http://e/p> ", " .")),
    *(
        ('<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer', "> ."),
        ("@prefix a: <http://e/> . a:", " a:b a:c ."),
    ),
    ('<http://e/a> <http://e/p> "', '"^^<http://www.w3.org/2001/XMLSchema#integer> .'),
    ('<http://e/a> <http://e/p> "', '"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'),
)
XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><rdf:Description rdf:about="http://e/a">'
)
RDFXML = (
    (XML + "<e:p>", "</e:p></rdf:Description></rdf:RDF>"),
    (XML, "</rdf:Description></rdf:RDF>"),
    ("<!DOCTYPE rdf:RDF [", "]>" + XML + "<e:p>1</e:p></rdf:Description></rdf:RDF>"),
    ('<?xml version="1.0"?><!-- ', " -->" + XML + "<e:p>1</e:p></rdf:Description></rdf:RDF>"),
    ("<rdf:RDF ", "/>"),
)
JSONL = (
    *BARE,
    ('{"condgraph": 1}\n{"s": "', '", "p": "b", "o": "c"}\n'),
    ('{"condgraph": 1}\n{"s": "a", "p": "b", "o": ', "}\n"),
    ('{"condgraph": 1}\n{"s": "a", "p": "b", "o": {"n": "', '"}}\n'),
    ('{"condgraph": 1}\n{"s": "a", "p": "b", "o": {"t": "', '"}}\n'),
    ('{"condgraph": 1}\n', "\n"),
)
_ENTITY = '{"concepts": {}, "entities": {"e": {"name": "a", "instanceOf": [], "relations": [], "attributes": [{"key": "k", '
KB = (
    *BARE,
    ('{"concepts": {}, "entities": {"e": {"name": "', '", "instanceOf": [], "attributes": [], "relations": []}}}'),
    (_ENTITY + '"value":', "}]}}}"),
    (_ENTITY + '"qualifiers": {}, "value": {"type": "date", "value": "', '"}}]}}}'),
    (_ENTITY + '"qualifiers": {}, "value": {"type": "quantity", "unit": "1", "value": ', "}}]}}}"),
)
SPARQL = (
    *BARE,
    *(("SELECT * { ?s ?p ", " }"), ('SELECT * { ?s ?p "', '" }'), ('SELECT * { ?s ?p """', '""" }'), ("SELECT * { ?s ?p <", "> }")),
    *(
        ("SELECT * { ?s ?p ?o FILTER(", ") }"),
        ("SELECT * { ?s ?p ?o } # ", ""),
        ("SELECT ?", " { ?s ?p ?o }"),
        ("PREFIX ", ": <x> ASK {}"),
    ),
    *(('SELECT * { ?s ?p ?o FILTER(regex(?o, "', '")) }'), ("SELECT * { ?s ?p '", "' }"), ("SELECT * { ?s ?p a:", " }")),
)
KOPL = (
    *BARE,
    *(("Find(", ") QueryName()"), ('Find("', '") QueryName()'), ("Find(", ""), ("FindAll() FilterNum(size, ", ", =) Count()")),
    *(
        ("FindAll() FilterYear(born, ", ", <) Count()"),
        ("FindAll() ", " Count()"),
        ("Find<arg>", "<func>Count"),
        ("FindAll() Relate(", ")"),
    ),
    *(
        ('Find("a",', ""),
        ('FindAll() FilterNum("size",', ', "=")'),
        ("[", "]"),
        ("FindAll() QueryAttrUnderCondition(a, b, ", ")"),
        ('FindAll() FilterStr("name", "', '") Count()'),
    ),
)
LLM = (
    *BARE,
    *(
        ("Query1: \"get_information(relation='", "', head_entity='Ann')\""),
        ("Query1: \"get_information(relation='name', head_entity='", "')\""),
    ),
    *(
        ('Query1: "', '"'),
        ('Query1: "count(', ')"'),
        ("Step: a\nQuery1: \"get_information(relation='age', tail_entity > '", "')\""),
    ),
    *(
        ("", ": \"get_information(relation='age')\""),
        ("Query1: \"get_information(relation='age')\"\n", ""),
        ('Query1: "keep(values = ', ')"'),
    ),
    ("Query1: \"get_information(relation='age')\"\nQuery2: \"count(set=output_of_query1, x='", "')\""),
    ("Query1: \"get_information(relation='born', tail_entity='", "')\""),
    *(("Query1: \"sum(set=['1', '", "'])\""), ("Query1: \"round(value='1.5', digits=", ')"'), ('Query1: "1 + ', '"')),
)
PATTERN = (
    *BARE,
    *(("(", ") -[b]-> (c)"), ("(a) -[", "]-> (c)"), ("(a)", "-[b]-> (c)"), ('("', '", "b", "c")'), ('[["a", "b", "', '"]]')),
    *(('{"triples": ', "}"), ("(UNKNOWN ", ") -[b]-> (c)"), ("```", "```"), ("(a) -[b]-> (c) ", ""), ("('a', 'b', '", "')")),
)
LOGIC = (
    *BARE,
    *(("?x : ", ""), ("?x : knows(", ", ?x)"), ('?x : knows("', '", ?x)'), ("?x : ", '("Ann", ?x)'), ("?", ' : knows("Ann", ?x)')),
    *(("?x : exists ", '. knows("Ann", ?x)'), ('?x : knows("Ann", ?x) and ', ""), ('?x : knows("Ann", ?x) ', 'knows("Bo", ?x)')),
    *(
        ("?x : not ", 'knows("Ann", ?x)'),
        ('?x : knows("Ann", ?x)', " and not knows(?x, ?v)"),
        ('[["2in", ', "]]"),
        ("((1, (2,)), (", "))"),
    ),
)
