# ruff: noqa: E501
"""Two small realistic data sets of several tables, with questions as SQL and as table clauses: a library in a
PostgreSQL database (enum types, foreign keys, a key of two columns, tables that refer to themselves), and a league in a
workbook (merged headers, dates, headers with spaces, two columns that refer to one table). DuckDB has the same rows.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any, Final

import condgraph
from condgraph.graph import Graph

Tables = dict[str, list[tuple[Any, ...]]]

# -- a library -------------------------------------------------------------------------------------

LIBRARY_SCHEMA: Final = """
    CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT, born DATE, country CHAR(2));
    CREATE TABLE book (isbn VARCHAR PRIMARY KEY, title TEXT, kind {kind}, pages SMALLINT, price NUMERIC(8, 2), author_id INTEGER REFERENCES author, sequel_of VARCHAR REFERENCES book);
    CREATE TABLE branch (code CHAR(3) PRIMARY KEY, town TEXT, opened DATE);
    CREATE TABLE item (id BIGINT PRIMARY KEY, isbn VARCHAR REFERENCES book, branch CHAR(3) REFERENCES branch);
    CREATE TABLE member (id VARCHAR PRIMARY KEY, name TEXT, joined DATE, home CHAR(3) REFERENCES branch, advised_by VARCHAR REFERENCES member);
    CREATE TABLE loan (item_id BIGINT REFERENCES item, taken DATE, returned DATE, member_id VARCHAR REFERENCES member, fee NUMERIC(6, 2), PRIMARY KEY (item_id, taken));
"""
_LOANS: Final = "loan l JOIN item i ON l.item_id = i.id JOIN book b ON i.isbn = b.isbn"

LIBRARY: Final[list[tuple[str, str, str]]] = [
    ("SELECT count(*) FROM loan", "loan", "show count()"),
    ("SELECT kind, count(*), avg(price), max(pages) FROM book GROUP BY 1", "book", "group by kind show count(), avg(price), max(pages)"),
    ("SELECT a.country, count(*) FROM book LEFT JOIN author a ON author_id = a.id GROUP BY 1", "book", "group by author_id.country show count()"),
    ("SELECT r.town, count(*), sum(fee) FROM loan l JOIN item i ON item_id = i.id JOIN branch r ON branch = code GROUP BY 1", "loan",
     "group by item_id.branch.town show count(), sum(fee)"),
    ("SELECT count(*) FROM loan WHERE returned IS NULL", "loan", "where returned is missing show count()"),
    ("SELECT year(taken), month(taken), count(*) FROM loan GROUP BY ALL", "loan", "group by year(taken), month(taken) show count()"),
    ("SELECT m.id, m.name, count(l.item_id) n FROM member m LEFT JOIN loan l ON member_id = m.id GROUP BY 1, 2 ORDER BY n DESC, m.id LIMIT 5", "member",
     "show id, name, count(^member_id) as n order by n desc, id limit 5"),
    ("SELECT name FROM member m LEFT JOIN loan l ON member_id = m.id WHERE l.item_id IS NULL", "member", "where ^member_id is missing show name"),
    ("SELECT b.title, f.title FROM book b JOIN book f ON b.sequel_of = f.isbn", "book", "where sequel_of is known show title, sequel_of.title as first"),
    ("SELECT kind, min(price), max(price), median(price) FROM book GROUP BY 1", "book", "group by kind show min(price), max(price), median(price)"),
    (f"SELECT b.kind, sum(fee), count(fee) FROM {_LOANS} GROUP BY 1", "loan", "group by item_id.isbn.kind show sum(fee), count(fee)"),
    ("SELECT m.id, count(*) FROM loan JOIN member m ON member_id = m.id GROUP BY 1 HAVING count(*) > 8", "loan",
     "group by member_id.id show count() having count() > 8"),
    ("SELECT count(DISTINCT member_id) FROM loan WHERE year(taken) = 2023", "loan", "where taken = 2023 show count(distinct member_id)"),
    ("SELECT avg(n), max(n) FROM (SELECT count(l.item_id) n FROM member m LEFT JOIN loan l ON member_id = m.id GROUP BY m.id)", "member",
     "show mean(count(^member_id)), max(count(^member_id))"),
    ("SELECT count(*) FROM book WHERE contains(title, 'of')", "book", "where title contains 'of' show count()"),
    ("SELECT a.name, count(*) FROM member m JOIN member a ON m.advised_by = a.id GROUP BY a.id, a.name", "member",
     "where advised_by is known group by advised_by show count()"),
    ("SELECT title, count(i.id) FROM book b LEFT JOIN item i ON i.isbn = b.isbn GROUP BY b.isbn, title", "book", "show title, count(^isbn)"),
    ("SELECT sum(pages * price) FROM book", "book", "show sum(pages * price)"),
    (f"SELECT a.country, year(taken), sum(b.price) FROM {_LOANS} LEFT JOIN author a ON author_id = a.id GROUP BY ALL", "loan",
     "group by item_id.isbn.author_id.country, year(taken) show sum(item_id.isbn.price)"),
    ("SELECT kind, title FROM (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY price DESC NULLS LAST, title) r FROM book WHERE price IS NOT NULL) WHERE r = 1", "book",
     "where price is known group by kind show top(1, price)"),
    ("SELECT count(*) FROM loan WHERE member_id IN ('m003', 'm007') OR NOT fee > 1", "loan",
     "where member_id in ('m003', 'm007') or (fee is known and not fee > 1) show count()"),
    ("SELECT h.town, count(*) FROM member m JOIN branch h ON home = code WHERE m.joined >= DATE '2021-06-01' GROUP BY 1 ORDER BY 2 DESC, 1", "member",
     "where joined >= 2021-06-01 and home is known group by home.town show count() order by count() desc, home.town"),
]  # fmt: skip


def library_rows() -> Tables:
    """Return the rows of the library, in the order of the schema."""
    dice = random.Random(11)
    day = datetime.date(2021, 1, 1)
    countries = ["NO", "IT", "PE", None]
    authors = [
        (i, name, None if i == 4 else datetime.date(1900 + 7 * i, 1 + i % 12, 1 + i), dice.choice(countries))
        for i, name in enumerate(["O'Neil, Ann", "Ünal Zoë", "Bob", "Bob", "Li 李", "Ng"], 1)
    ]
    books: list[tuple[Any, ...]] = []
    for i in range(24):
        title = (
            f"{dice.choice(['Book', 'Tale', 'Art'])} of {dice.choice(['tea', 'snow', 'ink'])} {i:02}"
            if i % 5
            else f'The "{i}"; a life'
        )
        sequel = books[i - 3][0] if i > 5 and i % 4 == 0 else None
        price = None if i % 9 == 4 else round(dice.uniform(2, 80), 2)
        books.append((f"978-{i:04}-{i % 10}", title, dice.choice(["novel", "essay", "verse"]), dice.randint(40, 900), price,
                      dice.choice([*range(1, 7), None]), sequel))  # fmt: skip
    branches = [("OSL", "Oslo", day), ("ROM", "Rome", datetime.date(1999, 12, 31)), ("RM2", "Rome", None), ("LIM", "Lima", day)]
    items = [(1000 + i, dice.choice(books)[0], dice.choice(branches)[0]) for i in range(40)]
    members: list[tuple[Any, ...]] = []
    for i in range(20):
        adviser = members[dice.randrange(i)][0] if i and dice.random() < 0.6 else None
        joined = day + datetime.timedelta(days=dice.randrange(400))
        members.append((f"m{i:03}", f"Reader {i % 17}", joined, dice.choice([branch[0] for branch in branches] + [None]), adviser))
    loans = {}
    for _ in range(130):
        item, taken = dice.choice(items)[0], day + datetime.timedelta(days=dice.randrange(1000))
        returned = None if dice.random() < 0.15 else taken + datetime.timedelta(days=dice.randrange(1, 60))
        fee = dice.choice([None, 0, 0.5, 1.25, 12])
        loans[item, taken] = item, taken, returned, dice.choice(members[:18])[0], fee
    return {"author": authors, "book": books, "branch": branches, "item": items, "member": members, "loan": list(loans.values())}


def to_postgres(url: str) -> None:
    """Write the library into a PostgreSQL database."""
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TYPE kind AS ENUM ('novel', 'essay', 'verse')")
        connection.execute(LIBRARY_SCHEMA.format(kind="kind").encode())
        with connection.cursor() as cursor:
            for name, rows in library_rows().items():
                cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(rows[0]))})".encode(), rows)


def library_tables() -> Any:
    """Return the library in DuckDB."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(LIBRARY_SCHEMA.format(kind="VARCHAR"))
    for name, rows in library_rows().items():
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return connection


# -- a league --------------------------------------------------------------------------------------

LEAGUE_SCHEMA: Final = """
    CREATE TABLE teams ("team id" INTEGER, team VARCHAR, town VARCHAR, founded DATE, budget DOUBLE);
    CREATE TABLE players ("player id" INTEGER, player VARCHAR, "team id" INTEGER, born DATE, position VARCHAR);
    CREATE TABLE matches ("match id" INTEGER, played DATE, home INTEGER, guest INTEGER, "goals home" INTEGER, "goals guest" INTEGER, stadium VARCHAR);
    CREATE TABLE goals ("match id" INTEGER, "player id" INTEGER, minute INTEGER);
"""
LEAGUE_JOIN: Final = {"matches.home": "teams.team id", "matches.guest": "teams.team id"}

LEAGUE: Final[list[tuple[str, str, str]]] = [
    ("SELECT count(*), sum(budget), max(budget) FROM teams", "teams", "show count(), sum(budget), max(budget)"),
    ("SELECT town, count(*) FROM teams GROUP BY 1", "teams", "group by town show count()"),
    ('SELECT t.team, count(*) FROM players p JOIN teams t ON p."team id" = t."team id" GROUP BY t."team id", t.team', "players", "where team id is known group by team id.team show count()"),
    ('SELECT t.town, position, count(*) FROM players p LEFT JOIN teams t ON p."team id" = t."team id" GROUP BY ALL', "players", "group by team id.town, position show count()"),
    ('SELECT sum("goals home"), sum("goals guest") FROM matches', "matches", "show sum(goals home), sum(goals guest)"),
    ('SELECT h.team, count(*), sum("goals home") FROM matches JOIN teams h ON home = h."team id" GROUP BY 1', "matches", "group by home.team show count(), sum(goals home)"),
    ('SELECT h.town, g.town, count(*) FROM matches JOIN teams h ON home = h."team id" JOIN teams g ON guest = g."team id" GROUP BY ALL', "matches",
     "group by home.town, guest.town show count()"),
    ('SELECT count(*) FROM matches WHERE "goals home" IS NULL', "matches", "where goals home is missing show count()"),
    ('SELECT sum("goals home" + "goals guest") FROM matches', "matches", "show sum(goals home + goals guest)"),
    ("SELECT year(played), month(played), count(*) FROM matches GROUP BY ALL", "matches", "group by year(played), month(played) show count()"),
    ('SELECT player, count(g.minute) n FROM players p LEFT JOIN goals g ON g."player id" = p."player id" GROUP BY p."player id", player ORDER BY n DESC, p."player id" LIMIT 6', "players",
     "show player, count(^player id) as n order by n desc, player id limit 6"),
    ('SELECT player FROM players p LEFT JOIN goals g ON g."player id" = p."player id" WHERE g.minute IS NULL', "players", "where ^player id is missing show player"),
    ('SELECT t.team, count(*) FROM goals g JOIN players p ON g."player id" = p."player id" JOIN teams t ON p."team id" = t."team id" GROUP BY 1 HAVING count(*) > 3', "goals",
     "where player id.team id is known group by player id.team id.team show count() having count() > 3"),
    ("SELECT position, min(born), max(born) FROM players GROUP BY 1", "players", "group by position show min(born), max(born)"),
    ("SELECT count(*) FROM players WHERE born >= '2000-01-01' AND position = 'keeper'", "players", "where born >= 2000-01-01 and position = 'keeper' show count()"),
    ("SELECT median(minute), avg(minute) FROM goals", "goals", "show median(minute), mean(minute)"),
    ('SELECT t.team, count(m."match id") FROM teams t LEFT JOIN matches m ON m.guest = t."team id" GROUP BY t."team id", t.team', "teams", "show team, count(^guest)"),
    ('SELECT stadium, list(DISTINCT t.town ORDER BY t.town) FROM matches JOIN teams t ON home = t."team id" GROUP BY 1', "matches", "group by stadium show values(home.town)"),
    ("SELECT count(DISTINCT stadium) FROM matches WHERE starts_with(stadium, 'S')", "matches", "where stadium starts with 'S' show count(distinct stadium)"),
    ('SELECT year(m.played), count(*) FROM goals g JOIN matches m ON g."match id" = m."match id" WHERE minute > 45 GROUP BY 1', "goals",
     "where minute > 45 group by year(match id.played) show count()"),
]  # fmt: skip


def league_rows() -> Tables:
    """Return the rows of the league, in the order of the schema."""
    dice = random.Random(5)
    day = datetime.date(2022, 3, 1)
    towns = ["Oslo", "Oslo", "Bergen", "Tromsø", "Bodø", "Molde"]
    teams = [
        (i + 1, f"{towns[i]} {'United' if i % 2 else 'FK'}", towns[i], datetime.date(1890 + 9 * i, 1 + i, 3), 1.5 * i + 0.25)
        for i in range(6)
    ]
    players = [
        (
            100 + i, f"Player {i}", None if i % 13 == 12 else dice.randint(1, 6),
            datetime.date(1990 + dice.randrange(15), dice.randint(1, 12), dice.randint(1, 28)), dice.choice(["keeper", "back", "wing", None]),
        )
        for i in range(45)
    ]  # fmt: skip
    matches = []
    for i in range(30):
        home, guest = dice.sample(range(1, 7), 2)
        played = day + datetime.timedelta(days=dice.randrange(700))
        goals = (None, None) if i % 11 == 10 else (dice.randint(0, 5), dice.randint(0, 4))
        matches.append((i + 1, played, home, guest, *goals, dice.choice(["Stadion A", "Solheim", "Park", None])))
    scored = [(dice.randint(1, 30), dice.choice(players[:35])[0], dice.randint(1, 90)) for _ in range(70)]
    return {"teams": teams, "players": players, "matches": matches, "goals": scored}


def to_excel(path: Path) -> Path:
    """Write the league as a workbook; the goals of a match are under a merged header."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    headers = {
        "teams": [["team id", "team", "town", "founded", "budget"]],
        "players": [["player id", "player", "team id", "born", "position"]],
        "matches": [["match id", "played", "home", "guest", "goals", None, "stadium"], [None, None, None, None, "home", "guest", None]],
        "goals": [["match id", "player id", "minute"]],
    }  # fmt: skip
    for name, rows in league_rows().items():
        sheet = book.create_sheet(name)
        for row in (*headers[name], *rows):
            sheet.append(row)
    matches = book["matches"]
    matches.merge_cells("E1:F1")
    for column in "ABCDG":
        matches.merge_cells(f"{column}1:{column}2")
    book.save(path)
    return path


def league(path: Path) -> Graph:
    """Return the league in memory, loaded from its workbook."""
    graph = condgraph.open("memory:")
    graph.load(to_excel(path), name="league", join=LEAGUE_JOIN)
    return graph


def library(url: str) -> Graph:
    """Return the library in memory, loaded from its database."""
    to_postgres(url)
    graph = condgraph.open("memory:")
    graph.load(url, name="library")
    return graph


def league_tables() -> Any:
    """Return the league in DuckDB."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(LEAGUE_SCHEMA)
    for name, rows in league_rows().items():
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return connection
