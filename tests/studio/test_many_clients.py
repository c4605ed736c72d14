"""64 clients at once, each with questions of its own: nothing of one client's answer reaches another,
deadlines end, and limits hold for each alone.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.pace import quick_enough
from tests.support.serving import ask

pytestmark = pytest.mark.service

CLIENTS = 64
NAMES = ["it's", 'say "hi"', "<b>x</b>", "\u202eabc", "a\nb", "🙂" * 300, "2019-01-01", "=1+1"]
RUNAWAY = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a = ?l) }"


def name_of(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]} {number}"


def test_answers_are_those_of_who_asked(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        for number in range(CLIENTS):
            graph.add([Entity(f"e{number}", name_of(number)), Statement(f"e{number}", "secret", f"secret of {number}")])
    wrong: list[Any] = []

    def check(number: int, found: Any, wanted: str) -> None:
        said = repr(found)
        others = [one for one in range(CLIENTS) if one != number and f"secret of {one}'" in said]
        if wanted not in said or others:
            wrong.append((number, others, said[:300]))

    def one(number: int) -> None:
        try:
            mine = f"secret of {number}'"
            program = "Find($name) QueryAttr(secret)"
            check(number, client.post("query", program=program, parameters={"name": name_of(number)}), mine)
            check(number, client.post("entity", id=f"e{number}"), mine)
            if number % 8 == 0:
                begin = time.monotonic()
                found = client.post("query", program=RUNAWAY, language="sparql", timeout=1)
                if found.get("error", {}).get("code") not in ("deadline", "busy") or not quick_enough(time.monotonic() - begin, 30):
                    wrong.append((number, found, time.monotonic() - begin))
            check(number, client.post("query", program=program, parameters={"name": name_of(number)}, limit=1), mine)
            if number % 16 == 1:
                status, dropped = client.drop(f"name,secret\nx,secret of {number}'\n".encode(), name=f"{number}.csv", key="name")
                if status == 200:
                    check(
                        number,
                        client.post("query", program="FindAll() QueryAttr(secret)", graph=dropped["graph"]),
                        f"secret of {number}",
                    )
                elif status != 503:
                    wrong.append((number, status, dropped))
        except Exception as error:  # noqa: BLE001 - told by the thread that started this one
            wrong.append((number, error))

    with command("-d", str(tmp_path / "store"), "--rate", "0", "--timeout", "60", "--workers", "2") as (url, _):
        client = Client(url)
        threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:5]


def test_tokens_and_rates_hold_at_once(tmp_path: Path) -> None:
    """Whoever has no token gets nothing, however many ask beside him."""
    token, seen = "a-token-of-the-tests-0123456789", list[tuple[bool, int]]()
    (tmp_path / "tokens").write_text(f"ann:{token}\n")
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Statement("x", "secret", "of ann")])

    def one(number: int) -> None:
        good = number % 8 == 0
        headers = {"Authorization": f"Bearer {token if good else token[:-1]}"} if number % 4 < 3 else {}
        reply = ask(url, "GET", "/api/v1/entity?name=x", headers=headers)
        assert good or b"of ann" not in reply.body
        seen.append((good, reply.status))

    options = ("--token-file", str(tmp_path / "tokens"), "--rate", "5", "--workers", "2")
    with command("-d", str(tmp_path / "store"), *options) as (url, _):
        threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == CLIENTS
    assert {status for good, status in seen if not good} <= {401, 429}
    assert {status for good, status in seen if good} <= {200, 429}
    assert 429 in {status for _, status in seen}
