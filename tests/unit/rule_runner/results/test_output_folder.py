"""Outputs: locks, resuming, atomic files; nothing lost, nothing twice."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from told import START, WAY, news

from rule_runner.errors import OutputError, UsageError
from rule_runner.notify.outbox import Outbox
from rule_runner.results.job_names import safe_name
from rule_runner.results.output_folder import OutputFolder
from rule_runner.results.schema import Evidence, RuleJobFacts, RuleResult, rule_result
from rule_runner.results.state import RuleJobState


def result(*, mark: str = "f", ended: bool = False, run_id: str = "") -> RuleResult:
    evaluation = RuleJobState("AllZero", "zeros", True, START)
    if ended:
        evaluation.rule_failed("ClientError: x.", START)
    facts = RuleJobFacts({}, "/t", "enforce", mark, {}, run_id=run_id)
    return rule_result(evaluation, facts, trial_ended=ended, duration_s=1, rule_time_s=0)


def found(step: int, tensor: str = "w", measured: float = 0.0) -> Evidence:
    return Evidence(step, tensor, None, measured, None, None)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "out"


# --- names


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


# --- the folder of a rule job


def test_a_new_folder_is_made_with_its_parents(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        assert not output.resumed
        output.write_result(result())
    assert sorted(path.name for path in folder.iterdir()) == [
        ".sagemaker-ignore",
        "findings.jsonl",
        "rule_result.json",
    ]
    assert (folder / "findings.jsonl").read_bytes() == b""
    assert json.loads((folder / "rule_result.json").read_text())["fingerprint"] == "f"


def test_a_result_replaces_the_one_before(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        output.write_result(result())
        output.write_result(result(ended=True))
    assert json.loads((folder / "rule_result.json").read_text())["status"] == "Error"
    assert [path.name for path in (folder / ".sagemaker-ignore").iterdir()] == ["lock"]


def test_an_unfinished_evaluation_is_resumed_without_repeating_findings(folder: Path) -> None:
    findings = [found(1), found(1), found(1, "b"), found(2), found(4), found(1), found(1)]
    with OutputFolder(folder, "f", run_id="r") as output:
        output.write_result(result(run_id="r"))
        assert all(output.append_finding(each) for each in findings[:3])
    with OutputFolder(folder, "f") as output:
        assert output.resumed
        written = [output.append_finding(each) for each in findings]
    assert written == [False, False, False, True, True, True, True]
    records = lines(folder / "findings.jsonl")
    assert [record["step"] for record in records] == [1, 1, 1, 2, 4, 1, 1]
    assert len({record["id"] for record in records}) == 7


def test_the_id_of_a_finding_is_that_of_its_rule_job_and_evaluation(tmp_path: Path) -> None:
    ids = []
    for name, mark, run_id in [("a", "f", "r"), ("b", "f", "r"), ("c", "g", "r"), ("d", "f", "s")]:
        with OutputFolder(tmp_path / name, mark, run_id=run_id) as output:
            output.append_finding(found(1))
        ids.append(lines(tmp_path / name / "findings.jsonl")[0]["id"])
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_findings_torn_at_any_byte_are_mended(folder: Path) -> None:
    findings = [found(1), found(2), found(3, "grün")]
    with OutputFolder(folder, "f", run_id="r") as output:
        output.write_result(result(run_id="r"))
        for each in findings:
            output.append_finding(each)
    path = folder / "findings.jsonl"
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(whole) + 1):
        path.write_bytes(whole[:cut])
        with OutputFolder(folder, "f") as output:
            for each in findings:
                output.append_finding(each)
        assert whole == path.read_bytes()


def test_another_evaluation_is_not_mixed_in(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        output.write_result(result())
    message = r"out' holds another evaluation: .* Choose another folder, or use --overwrite\."
    with pytest.raises(OutputError, match=message):
        OutputFolder(folder, "g")


def test_an_ended_evaluation_is_given_again_and_not_overwritten_unasked(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        output.append_finding(found(1))
        output.write_result(result(ended=True))
    with OutputFolder(folder, "f") as output:
        assert (output.resumed, output.ended) == (True, result(ended=True))
    (folder / "mine.txt").write_text("kept")
    with OutputFolder(folder, "g", overwrite=True) as output:
        assert not output.resumed
        assert output.append_finding(found(1))
    assert (folder / "mine.txt").read_text() == "kept"
    assert not (folder / "rule_result.json").exists()
    assert len(lines(folder / "findings.jsonl")) == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"fingerprint": 1}', b"\xff"])
def test_a_result_that_is_not_ours_is_not_overwritten(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "rule_result.json").write_bytes(content)
    with pytest.raises(OutputError, match=r"rule_result.json' is not a readable result\."):
        OutputFolder(folder, "f")
    assert (folder / "rule_result.json").read_bytes() == content


def test_findings_without_a_result_are_not_mixed_in(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        output.append_finding(found(1))
    with pytest.raises(OutputError, match="has findings without a result"):
        OutputFolder(folder, "f")


def test_a_line_that_is_not_ours_is_named(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        output.write_result(result())
    (folder / "findings.jsonl").write_bytes(b"garbage\n")
    with pytest.raises(OutputError, match=r"findings.jsonl' has an unexpected line, got b'ga"):
        OutputFolder(folder, "f")


# --- the lock


@pytest.mark.parametrize("again", [lambda p: OutputFolder(p, "f"), Outbox])
def test_a_second_evaluation_names_the_first(folder: Path, again: Callable[..., Any]) -> None:
    with OutputFolder(folder, "f"), Outbox(folder):
        message = f"out' is in use by process {os.getpid()}. Choose another folder, or wait"
        with pytest.raises(OutputError, match=message):
            again(folder)
    again(folder).close()


def test_a_holder_that_did_not_say_who_it_is_holds_the_lock_all_the_same(folder: Path) -> None:
    with OutputFolder(folder, "f"):
        (folder / ".sagemaker-ignore" / "lock").write_text("")
        with pytest.raises(OutputError, match="is in use by another process"):
            OutputFolder(folder, "f")


def test_a_killed_process_leaves_the_folder_free(folder: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path;"
        "from rule_runner.results.output_folder import OutputFolder;"
        "OutputFolder(Path(sys.argv[1]), 'f'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[4]
    killed = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        check=False,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert killed.returncode == -9
    OutputFolder(folder, "f").close()


def test_a_folder_that_is_refused_is_left_free(folder: Path) -> None:
    with OutputFolder(folder, "f") as output:
        output.write_result(result())
    for _ in range(2):
        with pytest.raises(OutputError, match="holds another evaluation"):
            OutputFolder(folder, "g")
    OutputFolder(folder, "f").close()


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
        OutputFolder(tmp_path / "out", "f")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_on_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Cannot write '.*file/out': Not a directory\."):
        OutputFolder(tmp_path / "file" / "out", "f")


def test_a_path_with_a_nul_is_a_sentence() -> None:
    with pytest.raises(OutputError, match=r"Cannot write '.*\\x00b': .*null.*\."):
        OutputFolder(Path("/tmp/a\0b"), "f")


@pytest.mark.parametrize("name", ["findings.jsonl", ".sagemaker-ignore/lock", "rule_result.json"])
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
            OutputFolder(folder, "f")
    assert target.read_text() == "mine"


@pytest.mark.skipif(
    os.geteuid() == 0, reason="Only an ordinary user is refused what permissions forbid."
)
def test_a_folder_without_permission_is_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    message = rf"Permission denied\. Give the folder to user {os.geteuid()} with chown, or choose"
    with pytest.raises(OutputError, match=message):
        OutputFolder(tmp_path / "out", "f")


# --- a disk that is full


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_keeps_what_was_written(
    folder: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OutputFolder(folder, "f") as output, Outbox(folder) as outbox:
        output.write_result(result())
        output.append_finding(found(1))
        outbox.publish(news(WAY[0], outbox))
        before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with monkeypatch.context() as patch:
            patch.setattr(os, call, _full(getattr(os, call)))
            message = r"Cannot write '.*': No space left on device\. Free some space"
            with pytest.raises(OutputError, match=message):
                output.write_result(result(ended=True))
            with pytest.raises(OutputError, match=message):
                outbox.publish(news(WAY[1], outbox))
            if call == "write":
                with pytest.raises(OutputError, match=message):
                    output.append_finding(found(2))
        assert before == {path: path.read_bytes() for path in before}
        assert not list((folder / ".sagemaker-ignore").glob("*.tmp"))
        assert output.append_finding(found(3))
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
            OutputFolder(folder, "f")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OutputError, match=r"Cannot write '.*findings.jsonl': "):
            OutputFolder(folder, "f")
    OutputFolder(folder, "f").close()


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
    for step in range(10_000):
        output.append_finding(found(step, "w" * 100))


def test_a_disk_that_is_really_full_keeps_what_was_written(tiny_disk: Path) -> None:
    with OutputFolder(tiny_disk / "out", "f") as output:
        output.write_result(result())
        with pytest.raises(OutputError, match=r"findings.jsonl': No space left on device\."):
            _fill(output)
        with pytest.raises(OutputError, match=r"rule_result.json': No space left on device\."):
            output.write_result(result(ended=True))
    assert json.loads((tiny_disk / "out" / "rule_result.json").read_text())["ended_at"] is None
    steps = [finding["step"] for finding in lines(tiny_disk / "out" / "findings.jsonl")]
    assert steps == list(range(len(steps)))
    assert len(steps) > 10
