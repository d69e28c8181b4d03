"""All recorded questions get the recorded answers of smdebug 1.0.34, but for a list of reasons."""

import shutil
from pathlib import Path
from typing import Any

import answers
import pytest
from clocks import PatientClock
from differences import CREATE, DIFFERENCES, Asked, Difference
from recorded import MISSING, OWN, SHARED, Session, agrees, classes, sessions

from smdebug import modes
from smdebug.trials import Trial, create_trial

MODES = dict(modes.__members__)
HANGS_S = 20.0  # such a call never returns
SAMPLES = sorted(path.name for path in OWN.iterdir())
LARGE = [f"{one}_*" for one in "abcdf"]


def _open(session: Session, root: Path, clock: PatientClock) -> tuple[Trial | None, Any]:
    """Open the trial as recorded; return it, and the encoded result."""
    create = {name: answers.decode(value, MODES) for name, value in session.create.items()}
    path = f"  {root} " if "spaces" in session.title else str(root)
    clock.wind()
    opened: list[Trial] = []
    result = answers.within(
        lambda: opened.append(create_trial(path, clock=clock, **create)), HANGS_S
    )
    return (opened[0], {"ok": True}) if opened else (None, result)


def _difference(asked: Asked) -> Difference | None:
    """Return the entry of the table that explains a question, if there is one."""
    for one in DIFFERENCES:
        if asked.session.sample in one.samples and one.applies(asked):
            return one
    return None


def _compare(session: Session, trial: Trial, root: Path, clock: PatientClock) -> set[Difference]:
    """Ask all questions in order; return the entries of the table that were needed."""
    used = set()
    wrong = []
    for query in session.queries:
        clock.wind()
        got = answers.ask(trial, query, MODES, HANGS_S)
        computed = query["call"] == "reduction_value"
        if agrees(query["out"], got, computed=computed):
            continue
        asked = Asked(session, query, root)
        difference = _difference(asked)
        if difference is None or not agrees(difference.ours(asked), got, computed=computed):
            wrong.append((session.title, query, got, difference and difference.reason))
        else:
            used.add(difference)
    assert wrong[:20] == []
    return used


def _check_sample(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    copied = tmp_path / folder.name
    shutil.copytree(folder, copied)
    before = _listing(copied)
    for session in sessions(folder):
        with monkeypatch.context() as patched:
            for name, value in session.env.items():
                patched.setenv(name, value)
            clock = PatientClock()
            root = copied / session.path
            trial, result = _open(session, root, clock)
            _check_created(session.create_result, result)
            if trial is not None:
                used |= _compare(session, trial, root, clock)
    assert _listing(copied) == before
    needed = {one for one in DIFFERENCES if next(sessions(folder)).sample in one.samples}
    assert {one.reason for one in needed - used} == set()


def _check_created(recorded: Any, result: Any) -> None:
    if agrees(recorded, result):
        return
    name = recorded["$exc"]["type"].rpartition(".")[2]
    assert CREATE[name] in classes(result)


def _listing(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.parametrize("sample", SAMPLES)
def test_own_samples_are_answered_as_recorded(
    sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_sample(OWN / sample, tmp_path, monkeypatch)


@pytest.mark.parametrize("pattern", LARGE)
def test_large_samples_are_answered_as_recorded(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = sorted(SHARED.glob(pattern))
    if not folders:
        pytest.skip(MISSING)
    _check_sample(folders[0], tmp_path, monkeypatch)


def test_a_changed_answer_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(OWN / "running", tmp_path / "running")
    expected = tmp_path / "running" / "expected.json"
    text = expected.read_text(encoding="utf-8")
    assert '"shape": [2, 2]' in text
    expected.write_text(text.replace('"shape": [2, 2]', '"shape": [4]', 1), encoding="utf-8")
    with pytest.raises(AssertionError, match="assert"):
        _check_sample(tmp_path / "running", tmp_path / "copy", monkeypatch)
