"""`rule-runner serve` in a process of its own, and logs for it to judge."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

PATIENCE_S: Final = 60.0


class Serving:
    """A running service, which may open `limit_files` files; None: as many as this process."""

    def __init__(self, folder: Path, *arguments: str, limit_files: int | None = None) -> None:
        command = [sys.executable, "-m", "rule_runner", "serve", "--port", "0", *arguments]
        if limit_files is not None:
            command = ["sh", "-c", f'ulimit -n {limit_files} && exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        self.log: list[str] = []
        self.url = ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"address=(http\S+)/", line):
                self.url = found[1]
                break
        assert self.url, "".join(self.log)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    def open(self, path: str, body: Any = None, **headers: str) -> Any:
        """Open an address; a body is posted."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def get(self, path: str, **headers: str) -> Any:
        """Return the JSON at an address."""
        with self.open(path, **headers) as answer:
            return json.load(answer)

    def events(self, **headers: str) -> "queue.Queue[str]":
        """Return the types of the events of the stream as they come; "" at its end."""
        events: queue.Queue[str] = queue.Queue()
        answer = self.open("/api/v1/events", **headers)

        def read() -> None:
            with answer:
                for line in answer:
                    if line.startswith(b"event: "):
                        events.put(line.decode().removeprefix("event: ").strip())
            events.put("")

        threading.Thread(target=read, daemon=True).start()
        return events

    def stop(self) -> int:
        """Stop it by a signal, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let it stop its evaluations, which would go on without it."""
        with suppress(subprocess.TimeoutExpired):
            self.stop()
        self.end()

    def end(self) -> None:
        """End it in any case."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


def write(folder: Path, rows: int, first: int = 0) -> None:
    """Write rows of a loss that never falls to a log."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.csv").open("a") as log:
        if not first:
            log.write("step,loss,lr\n")
        for step in range(first, first + rows):
            log.write(f"{step},{1.0 + 0.01 * (step % 3)},0.1\n")
