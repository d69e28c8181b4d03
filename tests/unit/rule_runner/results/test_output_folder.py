"""Outputs: locks, resuming, atomic files; nothing lost, nothing twice."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import saved
from told import START, WAY, news

from rule_runner.errors import OutputError, UsageError
from rule_runner.notify.outbox import Outbox
from rule_runner.results.durable_files import FolderLock
from rule_runner.results.file_names import safe_name
from rule_runner.results.issues.acknowledged import FindingIds
from rule_runner.results.measurements import MeasurementsRecord, QuantityRecord, SeriesRecord
from rule_runner.results.output_folder import OutputFolder
from rule_runner.results.schema import (
    EvaluationResult,
    Evidence,
    RuleJobFacts,
    RuleResult,
    rule_result,
    summary_of_trial,
)
from rule_runner.results.state import RuleJobState

OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"


def result(
    *, mark: str = "f", ended: bool = False, run_id: str = "", name: str = "zeros"
) -> RuleResult:
    evaluation = RuleJobState("AllZero", name, True, START)
    if ended:
        evaluation.rule_failed("ClientError: x.", START)
    facts = RuleJobFacts({}, "/t", "enforce", mark, {}, run_id=run_id)
    return rule_result(evaluation, facts, trial_ended=ended, duration_s=1, rule_time_s=0)


def evaluation(*rules: RuleResult) -> EvaluationResult:
    return EvaluationResult(trial=summary_of_trial("t", "/t", rules), rules=[*rules], run_id="r")


def opened(folder: Path, mark: str = "f", *, overwrite: bool = False) -> OutputFolder:
    """Open the folder of an evaluation of one rule."""
    return OutputFolder(folder, {"zeros": mark}, overwrite=overwrite)


def append(output: OutputFolder, *findings: Evidence) -> None:
    ids = FindingIds("f", "r")
    for finding in findings:
        output.append_finding("zeros", ids.next(finding), finding)


def found(step: int, tensor: str = "w", measured: float = 0.0) -> Evidence:
    return Evidence(step, tensor, None, measured, None, None)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "out"


# --- names


@pytest.mark.parametrize("name", ["results.json", "report.html", "rule_result.json"])
def test_a_name_of_a_file_with_results_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"must not be that of a results file, got '{name}'"):
        safe_name(name)


@pytest.mark.parametrize("name", ["a", "LossCheck", "a b", "é" * 127, "a..b", "<b>&", "\\"])
def test_a_name_that_stays_in_the_folder_is_taken(name: str) -> None:
    assert name == safe_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/", ".hidden", "a\0b", "a\nb", "\x1b[31m", "\ud800", "é" * 128],
)
def test_a_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"Name of a rule job must be 1 to 255 bytes, .* got '"):
        safe_name(name)


# --- the folder of an evaluation


def test_a_new_folder_is_made_with_its_parents(folder: Path) -> None:
    with opened(folder) as output:
        assert output.recorded == {}
        output.write(evaluation(result()))
    assert [path.name for path in folder.iterdir()] == ["results.json"]
    assert saved.result(folder)["fingerprint"] == "f"


def test_a_result_replaces_the_one_before(folder: Path) -> None:
    with opened(folder) as output:
        output.write(evaluation(result()))
        assert saved.document(folder)["ended_at"] is None
        output.write(evaluation(result(ended=True)))
        assert [path.name for path in (folder / ".sagemaker-ignore").iterdir()] == ["lock"]
    assert saved.result(folder)["status"] == "Error"
    assert saved.document(folder)["ended_at"] == saved.result(folder)["ended_at"]


def test_an_unfinished_evaluation_is_resumed_without_repeating_findings(folder: Path) -> None:
    findings = [found(1), found(1), found(1, "b"), found(2), found(4), found(1), found(1)]
    with opened(folder) as output:
        output.write(evaluation(result()))
        append(output, *findings[:3])
    with opened(folder) as output:
        assert (output.run_id, [*output.recorded]) == ("r", ["zeros"])
        append(output, *findings)
    records = lines(folder / "findings.jsonl")
    assert [record["step"] for record in records] == [1, 1, 1, 2, 4, 1, 1]
    assert len({record["id"] for record in records}) == 7
    assert {record["configuration_name"] for record in records} == {"zeros"}


def test_results_of_rules_that_are_not_evaluated_again_are_kept(folder: Path) -> None:
    names = {"zeros": "f", "other": "g"}
    series = SeriesRecord("mean", None, None, [1], [0.5], [1.0], [])
    measured = MeasurementsRecord([QuantityRecord("mean", "mean")], [series], 0)
    with OutputFolder(folder, names) as output:
        output.write_measurements(dict.fromkeys(names, measured))
        output.write(evaluation(result(), result(name="other", mark="g", ended=True)))
    with opened(folder) as output:
        output.write_measurements({"zeros": msgspec.structs.replace(measured, left_out=3)})
        output.write(evaluation(result(ended=True)))
    assert {name: one["status"] for name, one in saved.results(folder).items()} == {
        "zeros": "Error",
        "other": "Error",
    }
    rules = json.loads((folder / "measurements.json").read_text())["rules"]
    assert {name: rule["left_out"] for name, rule in rules.items()} == {"zeros": 3, "other": 0}


def test_nothing_measured_leaves_no_file(folder: Path) -> None:
    with opened(folder) as output:
        output.write(evaluation(result()))
        output.write_measurements({"zeros": MeasurementsRecord([], [], 0)})
    assert [path.name for path in folder.iterdir()] == ["results.json"]


def test_findings_torn_at_any_byte_are_mended(folder: Path) -> None:
    findings = [found(1), found(2), found(3, "grün")]
    with opened(folder) as output:
        output.write(evaluation(result()))
        append(output, *findings)
    path = folder / "findings.jsonl"
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(whole) + 1):
        path.write_bytes(whole[:cut])
        with opened(folder) as output:
            append(output, *findings)
        assert whole == path.read_bytes()


def test_another_evaluation_is_not_mixed_in(folder: Path) -> None:
    with opened(folder) as output:
        output.write(evaluation(result()))
    message = r"out' holds another evaluation: .* Choose another folder, or use --overwrite\."
    with pytest.raises(OutputError, match=message):
        opened(folder, "g")


def test_an_ended_evaluation_is_given_again_and_not_overwritten_unasked(folder: Path) -> None:
    with opened(folder) as output:
        append(output, found(1))
        output.write(evaluation(result(ended=True)))
    with opened(folder) as output:
        assert output.recorded == {"zeros": result(ended=True)}
    (folder / "mine.txt").write_text("kept")
    with opened(folder, "g", overwrite=True) as output:
        assert (output.recorded, output.run_id != "r") == ({}, True)
        append(output, found(1))
    assert (folder / "mine.txt").read_text() == "kept"
    assert not (folder / "results.json").exists()
    assert len(lines(folder / "findings.jsonl")) == 1


@pytest.mark.parametrize("layout", ["single", "several"])
def test_results_of_version_0_1_0_are_not_continued(folder: Path, layout: str) -> None:
    shutil.copytree(OLD / layout, folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(OutputError, match=r"out' holds results of version 0\.1\.0, which can be"):
        OutputFolder(folder, {"ExplodingTensor": "f"})
    assert sorted(folder.rglob("*")) == before
    (folder / "ExplodingTensor").mkdir(exist_ok=True)
    (folder / "ExplodingTensor" / "plot.png").write_text("of the rule")
    with OutputFolder(folder, {"ExplodingTensor": "f"}, overwrite=True) as output:
        output.write(evaluation(result(name="ExplodingTensor")))
    left = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert sorted(left) == ["ExplodingTensor/plot.png", "results.json"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"fingerprint": 1}', b"\xff"])
def test_a_result_that_is_not_ours_is_not_overwritten(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "results.json").write_bytes(content)
    with pytest.raises(OutputError, match=r"results.json' is not a readable result\."):
        opened(folder)
    assert (folder / "results.json").read_bytes() == content


def test_findings_without_a_result_are_not_mixed_in(folder: Path) -> None:
    with opened(folder) as output:
        append(output, found(1))
    with pytest.raises(OutputError, match="has findings without results"):
        opened(folder)


def test_a_line_that_is_not_ours_is_named(folder: Path) -> None:
    with opened(folder) as output:
        output.write(evaluation(result()))
    (folder / "findings.jsonl").write_bytes(b"garbage\n")
    with pytest.raises(OutputError, match=r"findings.jsonl' has an unexpected line, got b'ga"):
        opened(folder)


# --- the lock


@pytest.mark.parametrize("again", [opened, FolderLock])
def test_a_second_evaluation_names_the_first(folder: Path, again: Callable[..., Any]) -> None:
    with opened(folder):
        message = f"out' is in use by process {os.getpid()}. Choose another folder, or wait"
        with pytest.raises(OutputError, match=message):
            again(folder)
    again(folder).close()


def test_a_holder_that_did_not_say_who_it_is_holds_the_lock_all_the_same(folder: Path) -> None:
    with opened(folder):
        (folder / ".sagemaker-ignore" / "lock").write_text("")
        with pytest.raises(OutputError, match="is in use by another process"):
            opened(folder)


def test_a_killed_process_leaves_the_folder_free(folder: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path;"
        "from rule_runner.results.output_folder import OutputFolder;"
        "OutputFolder(Path(sys.argv[1]), {'zeros': 'f'}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[4]
    killed = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        check=False,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert killed.returncode == -9
    opened(folder).close()


def test_a_folder_that_is_refused_is_left_free(folder: Path) -> None:
    with opened(folder) as output:
        output.write(evaluation(result()))
    for _ in range(2):
        with pytest.raises(OutputError, match="holds another evaluation"):
            opened(folder, "g")
    opened(folder).close()


# --- paths that cannot be used


def _file(path: Path) -> None:
    path.write_text("")


def _link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("make", [_file, _link])
@pytest.mark.parametrize("name", ["out", "out/.sagemaker-ignore"])
def test_a_link_or_file_is_no_output_folder(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    make(path)
    with pytest.raises(OutputError, match=f"Output folder '{path}' is a link or not a folder."):
        opened(tmp_path / "out", "f")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_on_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot write '.*file/out': Not a directory\."):
        opened(tmp_path / "file" / "out", "f")


def test_a_path_with_a_nul_is_a_sentence() -> None:
    with pytest.raises(OutputError, match=r"Cannot write '.*\\x00b': .*null.*\."):
        opened(Path("/tmp/a\0b"), "f")


@pytest.mark.parametrize("name", ["findings.jsonl", ".sagemaker-ignore/lock", "results.json"])
def test_links_and_pipes_in_the_folder_are_not_followed(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    for kind in ("link", "pipe"):
        folder = tmp_path / kind
        (folder / ".sagemaker-ignore").mkdir(parents=True)
        if kind == "link":
            (folder / name).symlink_to(target)
        else:
            os.mkfifo(folder / name)
        with pytest.raises(OutputError, match=f"{Path(name).name}'.*[.]"):
            opened(folder)
    assert target.read_text() == "mine"


@pytest.mark.skipif(
    os.geteuid() == 0, reason="Only an ordinary user is refused what permissions forbid."
)
def test_a_folder_without_permission_is_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    message = rf"Permission denied\. Give the folder to user {os.geteuid()} with chown, or choose"
    with pytest.raises(OutputError, match=message):
        opened(tmp_path / "out", "f")


# --- a disk that is full


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_keeps_what_was_written(
    folder: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(folder) as output, Outbox(folder) as outbox:
        output.write(evaluation(result()))
        append(output, found(1))
        outbox.publish(news(WAY[0], outbox))
        before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with monkeypatch.context() as patch:
            patch.setattr(os, call, _full(getattr(os, call)))
            message = r"Cannot write '.*': No space left on device\. Free some space"
            with pytest.raises(OutputError, match=message):
                output.write(evaluation(result(ended=True)))
            with pytest.raises(OutputError, match=message):
                outbox.publish(news(WAY[1], outbox))
            if call == "write":
                with pytest.raises(OutputError, match=message):
                    append(output, found(2))
        assert before == {path: path.read_bytes() for path in before}
        assert not list((folder / ".sagemaker-ignore").glob("*.tmp"))
        append(output, found(3))
        assert outbox.publish(news(WAY[1], outbox))
    assert [event["detail"]["EventSequence"] for event in lines(folder / "events.jsonl")] == [1, 2]
    assert [finding["step"] for finding in lines(folder / "findings.jsonl")] == [1, 3]


def _full(call: Callable[..., int]) -> Callable[..., int]:
    """Return `call` as on a disk that takes seven more bytes."""
    left = 7

    def full(fd: int, *data: memoryview) -> int:
        nonlocal left
        if not data or not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left, room = 0, left
        return call(fd, data[0][:room])

    return full


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            errno.EROFS,
            r"out': Read-only file system\. Choose a folder that this user may write to\.",
        ),
        (
            errno.EACCES,
            (
                rf"out': Permission denied\. Give the folder to user {os.geteuid()} with chown, "
                r"or choose another folder or user \(in a container, --user\)\."
            ),
        ),
        (errno.EIO, r"out': Input/output error\.$"),
    ],
)
def test_a_disk_that_refuses_is_a_sentence(
    folder: Path, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        with pytest.raises(OutputError, match=message):
            opened(folder)
    with monkeypatch.context() as patch, opened(folder) as output:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OutputError, match=r"Cannot write '.*results.json': "):
            output.write(evaluation(result()))
    opened(folder).close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(path)]
    try:
        done = subprocess.run(mount, check=False, capture_output=True)
        mounted = done.returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("No file system can be mounted here.")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def _fill(output: OutputFolder) -> None:
    append(output, *(found(step, "w" * 100) for step in range(10_000)))


def test_a_disk_that_is_really_full_keeps_what_was_written(tiny_disk: Path) -> None:
    with opened(tiny_disk / "out", "f") as output:
        output.write(evaluation(result()))
        with pytest.raises(OutputError, match=r"findings.jsonl': No space left on device\."):
            _fill(output)
        with pytest.raises(OutputError, match=r"results.json': No space left on device\."):
            output.write(evaluation(result(ended=True)))
    assert saved.result(tiny_disk / "out")["ended_at"] is None
    steps = [finding["step"] for finding in lines(tiny_disk / "out" / "findings.jsonl")]
    assert steps == list(range(len(steps)))
    assert len(steps) > 10
