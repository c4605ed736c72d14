"""One engine in one process, for `benchmarks/kopl.py`: builds it, then runs the requested blocks of programs.

    python benchmarks/kopl_worker.py peer KB PROGRAMS            the KoPL package
    python benchmarks/kopl_worker.py ours STORE PROGRAMS         condgraph on a store that was loaded before

Prints one JSON line when it is ready, and one for each line it reads: "run FIRST LAST" gives the seconds of each of
these programs, "read FIRST LAST" the same for parsed programs (condgraph parses their text otherwise), "memory" gives
megabytes. Only the standard library is imported here, so that the memory is the engine's.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[Any], Any]


def peer(kb: str, programs: list[Any]) -> tuple[Run, list[Any], dict[str, float]]:
    """The KoPL package: its functions are called one after the other; nothing of the program is
    left to read.
    """
    # This folder has a kopl.py of its own.
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]
    begin = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        from kopl.kopl import KoPLEngine

        imported = time.perf_counter()
        data = json.loads(Path(kb).read_text(encoding="utf-8"))
        read = time.perf_counter()
        engine = KoPLEngine(data)
    built = time.perf_counter()
    del data

    def run(program: Any) -> Any:
        results: list[Any] = []
        for step in program:
            function = getattr(engine, step["function"])
            results.append(function(*[results[i] for i in step["dependencies"]], *step["inputs"]))
        return results[-1]

    return run, programs, {"import": imported - begin, "start": built - imported, "json": read - imported}


def ours(store: str, programs: list[Any]) -> tuple[Run, list[Any], dict[str, float]]:
    """condgraph: from the text of a program to the texts of its answer."""
    begin = time.perf_counter()
    import condgraph

    imported = time.perf_counter()
    graph = condgraph.open(store)
    opened = time.perf_counter()
    texts = [as_text(program) for program in programs]
    first = time.perf_counter()
    graph.kopl("FindAll() Count()").texts  # noqa: B018 - the property does the work
    asked = time.perf_counter()

    def run(program: Any) -> Any:
        return graph.kopl(program).texts

    return run, texts, {"import": imported - begin, "start": opened - imported, "first": asked - first}


def as_text(program: Any) -> str:
    """A program of the data set as KoPL text; the arguments are JSON strings."""
    return " ".join(
        f"{step['function']}({', '.join(json.dumps(text, ensure_ascii=False) for text in step['inputs'])})" for step in program
    )


def resident() -> dict[str, float]:
    """Megabytes of memory now and at the peak."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return {"now": int(line.split()[1]) / 1e3, "peak": most}
    return {"now": most, "peak": most}


def main() -> None:
    """Stand up, then answer line by line."""
    which, place, listing = sys.argv[1:4]
    programs = json.loads(Path(listing).read_text(encoding="utf-8"))
    before = resident()["now"]
    run, ready, told = (peer if which == "peer" else ours)(place, programs)
    print(json.dumps(told | {"before": before, "after": resident()["now"]}), flush=True)
    clock = time.perf_counter
    for line in sys.stdin:
        words = line.split()
        if words[0] == "memory":
            print(json.dumps(resident()), flush=True)
            continue
        seconds = []
        for program in (programs if words[0] == "read" else ready)[int(words[1]) : int(words[2])]:
            begin = clock()
            run(program)
            seconds.append(clock() - begin)
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
