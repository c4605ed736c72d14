"""Coverage-guided fuzzing with atheris, which is no dependency: `pip install atheris`, then

    python -m tests.fuzz.coverage_guided kopl 60

fuzzes a target ("kopl", "kopl json", the name of a format or of a reader, `readers.READERS`) for so
many seconds. It ends with an error at the first failure, which a byte is that costs more than
`readers.BUDGET`, and leaves the input that led to it in the working directory (`crash-...`).

    python -m tests.fuzz.coverage_guided --each FOLDER SECONDS TARGET ...

fuzzes many, two at a time, each in a process and a folder of its own, and says how each went.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

#: How many times as long code takes whose coverage is watched, and that does all a target does.
INSTRUMENTED = 20


#: Targets that are fuzzed at the same time.
AT_ONCE = 2


def watched() -> Any:
    """Atheris, which watches the code that is imported here."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    with atheris.instrument_imports(include=["condgraph"]):
        from tests.fuzz import readers, targets  # noqa: F401 - read again where they are used
    return atheris


def each(folder: str, seconds: str, *names: str) -> None:
    """Fuzz many targets, and end with an error where one failed."""
    watched()
    waiting, running, failed = list(names), {}, False
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            place = Path(folder).absolute() / name
            place.mkdir(parents=True, exist_ok=True)
            running[_child(name, seconds, place)] = name, place
        done, status = os.wait()
        name, place = running.pop(done)
        said = (place / "log").read_text("utf-8", "replace")
        if os.waitstatus_to_exitcode(status) == 0:
            inputs = re.findall(r"^stat::number_of_executed_units: *(\d+)", said, re.M)
            print(f"fuzzing {name}: ok, {'?' if not inputs else inputs[-1]} inputs in {seconds} s", flush=True)
        else:
            failed = True
            print(f"fuzzing {name}: FAILED, see {place}", *said.splitlines()[-40:], sep="\n", flush=True)
    sys.exit(failed)


def _child(name: str, seconds: str, place: Path) -> int:
    """A process that fuzzes a target, and writes what it says beside what it finds."""
    child = os.fork()
    if child:
        return child
    os.chdir(place)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        main(name, seconds)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the parent is told
        if not isinstance(error, SystemExit) or error.code:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)


def main(target: str = "kopl", seconds: str = "60") -> None:
    """Fuzz one target."""
    atheris = watched()
    from tests.fuzz import readers, targets

    names = ("kopl", "kopl json", *targets.FILES, *(name for name in readers.READERS if name not in targets.FILES))

    def run(content: bytes) -> None:
        begin = time.process_time()
        look(content)
        taken, most = time.process_time() - begin, readers.most(len(content)) * INSTRUMENTED
        if taken > most:
            raise targets.Slow(f"{len(content)} bytes took {taken:.1f} s, and may take {most:.1f}")

    def look(content: bytes) -> None:
        if target == "kopl":
            targets.ask(content)
        elif target == "kopl json":
            targets.ask_json(content)
        elif target in targets.FILES:
            targets.load(content, target)
        else:
            readers.cost(readers.READERS[target], content)

    def change(content: bytes, most: int, seed: int) -> bytes:
        changed: bytes = atheris.Mutate(content, most)
        return targets.mutated(targets.Dice(seed), changed)[:most] if seed % 3 == 0 else changed

    if target not in names:
        sys.exit(f"there is no target {target!r}; targets: {', '.join(names)}")
    known = target.startswith("kopl") or target in targets.FILES
    seeds = targets.seeds(target) if known else readers.seeds(readers.READERS[target])
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate((*seeds, *targets.NASTY)):
            (Path(folder) / str(number)).write_bytes(content)
        options = [f"-max_total_time={seconds}", "-max_len=20000", "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]
        if seed := os.environ.get("FUZZ_SEED"):
            options.append(f"-seed={seed}")
        atheris.Setup([sys.argv[0], *options, folder], run, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--each"]:
        each(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
