"""A full disk under the output folder: one sentence, exit code 73, and findings are reported."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import saved
from click.testing import CliRunner

from rule_runner.cli import main
from smdebug.core.writer import TrialWriter

RULE = """
from smdebug.rules import Rule
class Mine(Rule):
    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").value(step)
        return self.found(step, tensor="loss", measured=loss, limit=0, note="x" * 3000)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a file system of three pages."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"No file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_what_was_found_is_reported_though_it_cannot_be_written(
    tmp_path: Path, small_disk: Path
) -> None:
    with TrialWriter(tmp_path / "trial") as writer:
        writer.step(0, {"loss": 1.0})
    (tmp_path / "mine.py").write_text(RULE)
    arguments = ["evaluate", "--trial", str(tmp_path / "trial"), "--format", "json"]
    arguments += ["--source", str(tmp_path / "mine.py"), "--output", str(small_disk / "out")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 73
    (rule,) = json.loads(result.stdout)["rules"]
    assert (rule["status"], rule["step"], rule["findings_count"]) == ("IssuesFound", 0, 1)
    assert result.stderr == (
        f"Cannot write '{small_disk}/out/findings.jsonl': No space left on device. "
        "Free some space and start it again.\n"
    )
    written = saved.result(small_disk / "out")
    assert written["status"] == "InProgress"


def test_a_message_that_standard_error_cannot_take_changes_no_exit_code(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "trial") as writer:
        writer.step(0, {"loss": 1.0})
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", str(tmp_path / "trial")]
    options = ["--rule", "LossNotDecreasing", "--output", str(tmp_path / "file" / "out")]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([*command, *options], stderr=full, check=False).returncode == 73
