"""Openings: trials by path, and whether they are there."""

from pathlib import Path

import pytest

from rule_runner.errors import TrialError
from rule_runner.openings import is_there, open_trial, real_path, roots, trial_name
from smdebug.rules import Rule
from smdebug.storage.memory import MemoryStore
from smdebug.trials import Trial
from smdebug.trials.trial_index import TrialIndex


class Plain(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


def test_opening_looks_at_no_file(tmp_path: Path) -> None:
    trial = open_trial(str(tmp_path / "no"), window=7)
    assert (trial.name, trial.path, trial.index.window) == ("no", str(tmp_path / "no"), 7)
    assert open_trial("/x", "mine").name == "mine"


@pytest.mark.parametrize("path", ["ftp://host/x", "s3://x/y", "", "  "])
def test_path_that_cannot_be_read(path: str) -> None:
    with pytest.raises(TrialError, match=r"cannot be read|bucket's name|must not be empty"):
        open_trial(path)


@pytest.mark.parametrize(
    ("path", "name"), [("/runs/mnist/", "mnist"), ("mnist", "mnist"), ("/", "trial")]
)
def test_name_of_a_trial(path: str, name: str) -> None:
    assert trial_name(path) == name


def test_name_of_here_is_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert trial_name(".") == tmp_path.name


def test_identity_is_the_same_however_the_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "link").symlink_to("trial")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    spellings = ["trial", "./trial/", "link", "~/trial", f" {tmp_path}/x/../trial"]
    assert {real_path(one) for one in spellings} == {str(tmp_path.resolve() / "trial")}


def test_only_folders_can_be_watched(tmp_path: Path) -> None:
    memory = Trial("m", "m", TrialIndex(MemoryStore({})))
    assert roots([open_trial(str(tmp_path)), memory]) == [tmp_path]
    assert is_there(memory)


def test_whether_a_folder_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert is_there(open_trial(str(tmp_path)))
    assert not is_there(open_trial(str(tmp_path / "no")))
    with pytest.raises(TrialError, match=r"^Trial '.*/file' is no folder\. Give the root folder"):
        is_there(open_trial(str(tmp_path / "file")))
