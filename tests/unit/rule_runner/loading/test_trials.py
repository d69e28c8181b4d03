"""Openings: trials by path, and whether they are there."""

from pathlib import Path

import pytest
import rawtrial
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_core.sources.address import address_of
from rule_runner.errors import TrialError
from rule_runner.loading.trials import (
    is_there,
    open_profiler_trial,
    open_trial,
    reject_parent,
    roots,
)
from smdebug.rules import Rule
from smdebug.trials import LocalTrial, S3Trial, Trial


class Plain(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


def test_opening_looks_at_no_file(tmp_path: Path) -> None:
    trial = open_trial(str(tmp_path / "no"), window=7)
    assert (trial.name, trial.path, trial.index.window) == ("no", str(tmp_path / "no"), 7)
    assert open_trial("/x", "mine").name == "mine"


def test_rules_get_the_classes_that_smdebug_has(tmp_path: Path, aws_endpoint: str) -> None:
    del aws_endpoint
    local, remote = open_trial(str(tmp_path)), open_trial("s3://bucket/runs/mnist")
    assert (type(local), type(local.share())) == (LocalTrial, LocalTrial)
    assert (type(remote), type(remote.share())) == (S3Trial, S3Trial)


@pytest.mark.parametrize("path", ["ftp://host/x", "s3://x/y", "", "  "])
def test_path_that_cannot_be_read(path: str) -> None:
    with pytest.raises(TrialError, match=r"cannot be read|bucket's name|must not be empty"):
        open_trial(path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/runs/mnist/", "mnist"),
        ("mnist", "mnist"),
        ("/", "trial"),
        ("s3://bucket/jobs/mnist-42/debug-output", "mnist-42"),
        ("s3://bucket/mnist-42/debug-output/", "mnist-42"),
        ("s3://bucket/debug-output", "bucket"),
        ("runs/mnist-42/debug-output/", "mnist-42"),
        ("/runs/mnist-42/profiler-output", "mnist-42"),
        ("/debug-output", "debug-output"),
        ("/opt/ml/processing/input/tensors", "tensors"),
        ("/opt/ml/input/data/debug-output", "debug-output"),
        ("/opt/ml/input/data/mnist-42/debug-output", "mnist-42"),
    ],
)
def test_name_of_a_trial(path: str, name: str) -> None:
    assert address_of(path).name == name


def test_name_of_here_is_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert address_of(".").name == tmp_path.name
    assert address_of("debug-output").name == tmp_path.name


def test_identity_is_the_same_however_the_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "link").symlink_to("trial")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    spellings = ["trial", "./trial/", "link", "~/trial", f" {tmp_path}/x/../trial"]
    assert {address_of(one).canonical for one in spellings} == {str(tmp_path.resolve() / "trial")}


def test_only_folders_can_be_watched(tmp_path: Path) -> None:
    memory = Trial("m", "m", NativeIndex(MemoryStore({})))
    assert roots([open_trial(str(tmp_path)), memory]) == [tmp_path]
    assert is_there(memory)


def test_whether_a_folder_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "file").write_text("x" * 5000)
    assert is_there(open_trial(str(tmp_path)))
    assert is_there(open_trial(str(tmp_path / "empty")))  # its first row may be written soon
    assert not is_there(open_trial(str(tmp_path / "no")))
    with pytest.raises(TrialError, match=r"^File '.*/file' is in no format that is read as a"):
        open_trial(str(tmp_path / "file"))


@pytest.mark.parametrize("folder", ["runs", "runs/"])
def test_folder_of_trials_is_an_error_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "abcdefg":
        rawtrial.write(tmp_path / "runs" / name, {rawtrial.collections_key(): b"{}"})
    rawtrial.write(tmp_path / "runs" / "profile", {"system/incremental/x/1.algo-1.json": b""})
    names = "'runs/a', 'runs/b', 'runs/c', 'runs/d', 'runs/e' and 2 more"
    with pytest.raises(TrialError) as error:
        reject_parent(open_trial(folder))
    text = f"Folder {folder!r} is not a trial, but contains {names}. Give one of them."
    assert str(error.value) == text
    with pytest.raises(
        TrialError, match=r"^Folder '.*' is not a trial, but contains 'runs/profile'\."
    ):
        reject_parent(open_profiler_trial(folder, None))
    reject_parent(open_trial("runs/a"))
    reject_parent(Trial("m", "runs", NativeIndex(MemoryStore({}))))


@pytest.mark.parametrize("kind", ["job", "empty"])
def test_folder_without_trials_of_a_kind_names_those_of_the_other(
    tmp_path: Path, kind: str
) -> None:
    rawtrial.write(tmp_path / "job" / "profiler-output", {"system/training_job_end.ts": b""})
    (tmp_path / "empty").mkdir()
    trial = open_trial(str(tmp_path / kind))
    if kind == "empty":
        reject_parent(trial)
        return
    with pytest.raises(TrialError, match=r"contains '.*/job/profiler-output'"):
        reject_parent(trial)
