"""The image's entry point: whom it becomes, whose folders change their owner, and whose do not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rule_runner.containers import entry_point
from rule_runner.containers.entry_point import ORDINARY, hand_over, output_folders

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="Only root changes owners.")
ROOT = Path(__file__).parents[4]
OUTPUT = "processing/output/rule"
PROBE = """
import json, os
from rule_runner.containers.entry_point import give_up_root

give_up_root()
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
refused = []
for change in (os.setuid, os.setgid, os.seteuid):
    try:
        change(0)
    except PermissionError:
        refused.append(change.__name__)
print(json.dumps({
    "users": os.getresuid(), "groups": [*os.getresgid(), *os.getgroups()], "refused": refused,
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16),
    "no_new_privileges": status["NoNewPrivs"], "home": os.environ.get("HOME"),
}))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what stands for /opt/ml, with a trial, as root made it."""
    root = tmp_path / "ml"
    (root / "processing/input/tensors/index").mkdir(parents=True)
    (root / "processing/input/tensors/index/0.json").write_text("{}")
    monkeypatch.setenv("RULE_RUNNER_ROOT", str(root))
    return root


def write_job(root: Path, output: str, *inputs: str) -> None:
    (root / "config").mkdir(exist_ok=True)
    job = {
        "Environment": {"rule_to_invoke": "LossNotDecreasing"},
        "ProcessingInputs": [{"InputName": "x", "S3Input": {"LocalPath": path}} for path in inputs],
        "ProcessingOutputConfig": {"Outputs": [{"S3Output": {"LocalPath": output}}]},
    }
    (root / "config/processingjobconfig.json").write_text(json.dumps(job))


def probe(*before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Give up root in a process of its own, which says what became of it."""
    return subprocess.run(
        [*before, sys.executable, "-I", "-c", PROBE],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def owners(folder: Path) -> dict[str, tuple[int, int]]:
    """Return who owns a folder and each thing in it."""
    paths = [folder, *folder.rglob("*")]
    return {str(path): (path.lstat().st_uid, path.lstat().st_gid) for path in paths}


# -- which folders -----------------------------------------------------------------------------


def test_the_output_folders_are_the_contracts(root: Path) -> None:
    assert [*output_folders()] == [root / "output", root / OUTPUT]
    write_job(root, "/opt/ml/processing/output/other")
    assert [*output_folders()] == [root / "output", root / "processing/output/other"]


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("/etc", id="elsewhere"),
        pytest.param("/opt/ml", id="everything"),
        pytest.param("/opt/ml/config", id="configuration"),
        pytest.param("/opt/ml/processing", id="above-an-input"),
        pytest.param("/opt/ml/processing/input/tensors", id="input"),
        pytest.param("/opt/ml/processing/output/../input/tensors/index", id="dots"),
        pytest.param("/opt/ml/data/x", id="another-input"),
        pytest.param("processing/output", id="relative"),
    ],
)
def test_an_output_that_touches_an_input_is_left_alone(root: Path, output: str) -> None:
    write_job(root, output, "/opt/ml/data")
    assert [*output_folders()] == [root / "output"]


def test_a_damaged_job_configuration_is_left_to_the_command(root: Path) -> None:
    (root / "config").mkdir()
    (root / "config/processingjobconfig.json").write_text("{")
    assert [*output_folders()] == [root / "output", root / OUTPUT]


# -- whose they become -------------------------------------------------------------------------


@as_root
def test_root_hands_over_the_output_folders_only_and_becomes_ordinary(root: Path) -> None:
    (root / OUTPUT).mkdir(parents=True)
    (root / OUTPUT / "file").touch()
    before = owners(root)
    done = probe(HOME="/root")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "users": [ORDINARY] * 3,
        "groups": [ORDINARY] * 3,
        "refused": ["setuid", "setgid", "seteuid"],
        "capabilities": 0,
        "no_new_privileges": "1",
        "home": "/tmp",
    }
    handed_over = {str(root / name): (ORDINARY, ORDINARY) for name in ("output", OUTPUT)}
    assert owners(root) == before | handed_over


@as_root
def test_a_home_that_was_chosen_stays(root: Path) -> None:
    assert root
    assert json.loads(probe(HOME="/mine").stdout)["home"] == "/mine"


@as_root
@pytest.mark.parametrize("linked", ["processing/output/rule", "processing/output", "output"])
def test_no_link_is_followed(root: Path, tmp_path: Path, linked: str) -> None:
    victim = tmp_path / "victim"
    (victim / "rule").mkdir(parents=True)
    (root / linked).parent.mkdir(parents=True, exist_ok=True)
    (root / linked).symlink_to(victim)
    before = owners(victim) | owners(root / linked)
    done = probe()
    assert json.loads(done.stdout)["users"] == [ORDINARY] * 3
    assert owners(victim) | owners(root / linked) == before


@as_root
def test_a_file_in_the_place_of_a_folder_is_left_to_the_evaluation(root: Path) -> None:
    (root / "processing/output").touch()
    assert json.loads(probe().stdout)["users"] == [ORDINARY] * 3
    assert (root / "processing/output").lstat().st_uid == 0


def test_a_folder_that_is_the_ordinary_users_takes_no_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(entry_point, "ORDINARY", os.geteuid())
    hand_over(tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder").stat().st_uid == os.geteuid()


# -- without the capabilities, and for others --------------------------------------------------


@as_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed.")
def test_root_without_capabilities_is_advised_of_the_user_flag(root: Path) -> None:
    (root / OUTPUT).mkdir(parents=True)
    done = subprocess.run(
        [
            *("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
            *(sys.executable, "-I", "-m", "rule_runner.containers.entry_point", "--version"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: This container was started as root and cannot become user 1000: "
        "Operation not permitted. Add --user 1000:1000, or the user and group that own the "
        "output folder.\n"
    )
    assert (root / OUTPUT).stat().st_uid == 0


@as_root
def test_a_strict_umask_of_root_does_not_lock_the_ordinary_user_out(root: Path) -> None:
    shutil.rmtree(root)
    done = probe("sh", "-c", 'umask 077; exec "$@"', "sh")
    assert done.returncode == 0, done.stderr
    modes = [(root / name).stat().st_mode & 0o777 for name in ("", "output", "processing", OUTPUT)]
    assert modes == [0o755] * 4


@as_root
def test_an_interpreter_of_root_alone_is_one_sentence(root: Path, tmp_path: Path) -> None:
    assert root
    command = tmp_path / "rule-runner"
    command.write_text("#!/bin/true\n")
    command.chmod(0o700)
    program = (
        f"import sys; sys.executable = {str(tmp_path / 'python')!r}; "
        "from rule_runner.containers.entry_point import main; main()"
    )
    # The ordinary user could not write what was covered, and would say so.
    environment = {
        name: setting for name, setting in os.environ.items() if not name.startswith("COVERAGE_")
    }
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: User {ORDINARY} cannot run '{command}': Permission denied. Use the image, or let "
        "that user read and execute the program and its interpreter.\n"
    )


def test_the_image_blocks_signals_before_it_imports_the_package() -> None:
    (line,) = re.findall("^ENTRYPOINT (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    _, *options, program = json.loads(line)
    probe = """
import sys, _signal
class Probe:
    def find_spec(name, *_):
        blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        sys.exit(f"{name} {sorted(map(int, blocked))}")
sys.meta_path.insert(0, Probe)
"""
    done = subprocess.run(
        [sys.executable, *options, probe + program], capture_output=True, text=True, check=False
    )
    assert done.stderr == f"rule_runner {[int(signal.SIGINT), int(signal.SIGTERM)]}\n"


def ran(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Path, Sequence[str]]:
    """Return the program that the entry point becomes, and its arguments."""
    programs: list[tuple[Path, Sequence[str]]] = []
    monkeypatch.setattr(os, "execv", lambda *program: programs.append(program))
    monkeypatch.setattr(sys, "argv", ["entry_point", *arguments])
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        entry_point.main()
        held = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert held >= {signal.SIGTERM, signal.SIGINT}
    (program,) = programs
    return program


def test_any_other_user_runs_the_command_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    program, arguments = ran(monkeypatch, "evaluate", "--trial", "x")
    assert program == Path(sys.executable).with_name("rule-runner")
    assert arguments == ["rule-runner", "evaluate", "--trial", "x"]


def test_root_gives_up_root_before_anything_else(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert root
    order: list[str] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(entry_point, "hand_over", lambda folder: order.append(folder.name))
    for name in ("setgroups", "setresgid", "setresuid"):
        monkeypatch.setattr(os, name, lambda *_, name=name: order.append(name))
    monkeypatch.setattr(entry_point, "prctl", lambda *_: order.append("forbidden"))
    monkeypatch.setenv("HOME", "/root")
    ran(monkeypatch)
    assert order == ["output", "rule", "forbidden", "setgroups", "setresgid", "setresuid"]
    assert os.environ["HOME"] == "/tmp"
    monkeypatch.setattr(os, "setgroups", lambda _: os.chown("/nowhere/at/all", 1, 1))
    with pytest.raises(SystemExit) as ended:
        ran(monkeypatch)
    # A text as exit code is printed to stderr, and means 1.
    assert str(ended.value.code).startswith("Error: This container was started as root")
