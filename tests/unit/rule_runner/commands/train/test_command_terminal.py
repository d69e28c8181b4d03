"""`rule-runner train` on a terminal on which the script shows its progress, too."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import training_scripts
from training_scripts import LOSSES, RULE

pytest.importorskip("tqdm", reason="tqdm is not installed.")
WIDTH = 60
SCRIPT = f"""
{LOSSES}
import warnings, logging
from tqdm import tqdm
from rule_core.saving.auto_hook import AUTO, _log_to_stderr
bar = tqdm(total=10, desc="epoch", ascii=True, mininterval=0)
bar.update(3)
save(0, 6)
open("printed").close()
AUTO.print_once("A sentence.")
_log_to_stderr()
logging.getLogger("smdebug.hook").warning("A warning.")
bar.update(7)
bar.close()
print("half a line", end="", file=sys.stderr)
"""


def screen(written: str) -> list[str]:
    """Return the lines of a terminal; a full line is left at the next character only."""
    lines, column = [""], 0
    for char in re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", written):
        if char == "\r":
            column = 0
        elif char == "\n":
            lines.append("")
        else:
            if column == WIDTH:
                lines.append("")
                column = 0
            line = lines[-1].ljust(column)
            lines[-1] = line[:column] + char + line[column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def read(terminal: int) -> str:
    try:
        return os.read(terminal, 1 << 16).decode()
    except OSError:  # nobody writes to it any more
        return ""


def test_findings_stand_between_the_lines_of_a_progress_bar(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "three.py").write_text(RULE.format(then="pass"))
    os.mkfifo(tmp_path / "printed")
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    options = ["--source", "three.py", "--output", "out"]
    with subprocess.Popen(
        training_scripts.command(options, [sys.executable, "script.py"]),
        cwd=tmp_path,
        env=training_scripts.environment({"TERM": "xterm"}),
        stdout=subprocess.DEVNULL,
        stderr=end,
    ) as process:
        os.close(end)
        written = ""
        while "goes on." not in written:
            written += read(terminal)
        (tmp_path / "printed").open("w").close()
        while part := read(terminal):
            written += part
        assert process.wait(60) == 0
    os.close(terminal)
    lines = screen(written)
    said = [line for line in lines if line.startswith("rule-runner: ")]
    assert said == [
        "rule-runner: Three has found an issue; the training goes on.",
        "rule-runner: A sentence.",
        "rule-runner: A warning.",
        "rule-runner: The training ended with exit code 0.",
    ]
    at = lines.index(said[0])
    assert lines[at - 1].startswith("epoch:  30%|###")
    assert any(re.match(r"epoch: 100%\|#+\| 10/10", line) for line in lines[at:])
    assert "half a line" in lines
