"""Pages of the documentation: their fenced blocks, and a reader who works through a page.

Comments before a block, which are not rendered, say what its text cannot:

- ``<!-- needs: docker -->``: what a reader needs beyond this page; `document_needs` has the names.
- ``<!-- file: NAME -->``: save the block; a first line ``# NAME.py`` does the same.
- ``<!-- run: last -->``: run it after the other blocks, for it needs what they make.
- ``<!-- exits: 10 -->``: the exit code, if it is not 0.
- ``<!-- until: TEXT -->``: the last command runs until it is stopped; it has started once it has
  printed TEXT, or once TEXT answers, if that is an address.
- ``<!-- shows: ... -->``: a block ``text`` that no command of the page prints; says what it is.

Every other block ``text`` is what the last commands printed; its ``...`` stand for anything.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import uncounted

ROOT: Final = Path(__file__).parents[2]
SHELLS: Final = frozenset({"sh", "bash", "console"})
DIRECTIVES: Final = frozenset({"needs", "file", "run", "exits", "until", "shows"})
STARTS_S: Final = 60.0
ENDS_S: Final = 100.0
_BLOCK: Final = re.compile(
    r"(?P<comments>(?:^ *<!-- [^>]* -->\n\n?)*)"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_COMMENT: Final = re.compile(r"<!-- (\w+): (.*?) -->", re.DOTALL)
_NAMED: Final = re.compile(r"# ([\w.-]+\.(?:py|yaml|toml))\b")
# What differs from one run to the next, in the documents and in what is printed.
_VARYING: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
    (re.compile(r"\b\d{8}-\d{6}\b"), "<time>"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "<id>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b"), "<duration>"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the comments before it."""

    page: str
    line: int
    language: str
    code: str
    comments: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of what a reader needs for it."""
        return tuple(filter(None, re.split(r",\s*", self.comments.get("needs", ""))))

    @property
    def file(self) -> str:
        """The name under which a reader saves it, or ""."""
        named = _NAMED.match(self.code)
        return self.comments.get("file") or (named[1] if named else "")

    @property
    def is_run(self) -> bool:
        """Whether a reader runs it as it stands."""
        is_python = self.language == "python"
        return self.language in SHELLS or (is_python and (not self.file or "run" in self.comments))

    @property
    def is_output(self) -> bool:
        """Whether the commands before it print it."""
        return self.language == "text" and "shows" not in self.comments and not self.file


def blocks_of(page: str, text: str) -> list[Block]:
    """Return the blocks of a page, in the order in which a reader runs them."""
    blocks = [
        Block(
            page,
            text.count("\n", 0, match.start("indent")) + 1,
            match["language"],
            re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE),
            dict(_COMMENT.findall(match["comments"])),
        )
        for match in _BLOCK.finditer(text)
    ]
    return sorted(blocks, key=lambda block: "run" in block.comments)


def blocks_in(page: str) -> list[Block]:
    """Return the blocks of a page of this project, by its path."""
    return blocks_of(page, (ROOT / page).read_text("utf-8"))


def differing_lines(expected: str, printed: str) -> str:
    """Return "" if a document's output was printed, else what was expected and what came."""
    wanted, came = (_calmed(lines).strip("\n") for lines in (expected, printed))
    pattern = "[^\n]*".join(map(re.escape, wanted.split("...")))
    # A line of its own stands for any number of lines.
    pattern = pattern.replace("\\\n[^\n]*\\\n", "\\\n(?:.*\n)*?")
    if re.search(rf"^{pattern}$", came, re.MULTILINE):
        return ""
    return f"expected:\n{expected}\nbut the commands printed:\n{printed}"


def _calmed(lines: str) -> str:
    for pattern, name in _VARYING:
        lines = pattern.sub(name, lines)
    return re.sub(r" +$", "", lines, flags=re.MULTILINE)


@dataclass
class Reader:
    """Somebody who does what a page says, block by block, in a folder.

    Attributes
    ----------
    environment
        Variables beside those of this process.
    python
        The Python that runs blocks of Python.
    printed
        What the last block that was to be run has printed; None if it was not.
    done
        The blocks that were read, also if they failed.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    printed: str | None = None
    done: list[Block] = field(default_factory=list)

    def skip(self, block: Block) -> None:
        """Leave out a block."""
        self.done.append(block)
        self.printed = None

    def read(self, block: Block) -> str:
        """Do what a block says; return what went wrong, or ""."""
        self.done.append(block)
        if block.is_output:
            return differing_lines(block.code, self.printed or "")
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, "utf-8")
        return self.run(block) if block.is_run else ""

    def run(self, block: Block) -> str:
        """Run a block; return what went wrong, or ""."""
        bash = ["bash", "-euo", "pipefail", "-c"]
        command = [self.python, "-c"] if block.language == "python" else bash
        if "until" in block.comments:
            return self._start_and_stop([*command, block.code], block.comments["until"])
        return self.execute([*command, block.code], int(block.comments.get("exits", "0")))

    def execute(self, command: list[str], exit_code: int = 0) -> str:
        """Run a command to its end; return what went wrong, or ""."""
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self._variables(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=ENDS_S,
            )
        except subprocess.TimeoutExpired as err:
            self.printed = None
            return f"it did not end within {ENDS_S:.0f} s: {err}"
        self.printed = done.stdout + done.stderr
        if done.returncode == exit_code and "Traceback" not in done.stderr:
            return ""
        return f"exit code {done.returncode} instead of {exit_code}; it printed:\n{self.printed}"

    def _variables(self) -> dict[str, str]:
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home)}
        path = f"{self.folder.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**uncounted.environment(), **own, "PATH": path, **self.environment}

    def _start_and_stop(self, command: list[str], until: str) -> str:
        """Run a command until it has started, then end it and its children."""
        output = self.folder.parent / "running.txt"
        with (
            output.open("wb") as stream,
            subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._variables(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as running,
        ):
            try:
                has_started = any(
                    _is_up(until, output) for _ in _until_ended(running, STARTS_S)
                ) or _is_up(until, output)
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGTERM)
                    running.wait(STARTS_S)
        self.printed = output.read_text("utf-8", "replace")
        return "" if has_started else f"no sign of {until!r}; it printed:\n{self.printed}"


def _until_ended(running: "subprocess.Popen[bytes]", seconds: float) -> Iterator[None]:
    """Yield every tenth of a second until a process has ended, or time is over."""
    end = time.monotonic() + seconds
    while running.poll() is None and time.monotonic() < end:
        yield
        try:
            running.wait(0.1)
        except subprocess.TimeoutExpired:
            continue


def _is_up(until: str, output: Path) -> bool:
    """Return whether an address answers, or a text was printed."""
    if not until.startswith("http://"):
        return until in output.read_text("utf-8", "replace")
    try:
        with urlopen(until, timeout=5) as response:
            return bool(response.status == HTTPStatus.OK)
    except (URLError, ConnectionError):
        return False
