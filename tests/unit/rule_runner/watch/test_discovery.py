"""What is new below a root."""

from pathlib import Path

import pytest
from kineto_writer import write_training
from profiler_writer import minute, write
from watched import log

from rule_runner.errors import TrialError
from rule_runner.index.outputs import output_of
from rule_runner.watch.discovery import new_trials, parse_root


def names(tmp_path: Path, root: str, *known: Path) -> list[str]:
    output = str(tmp_path / "runs" / "out" / "{trial}")
    paths = {str(path) for path in known}
    found = new_trials(parse_root(root), paths, output)
    return sorted(str(Path(trial.path).relative_to(tmp_path)) for trial in found)


def test_trials_at_any_depth_but_not_in_outputs_hidden_folders_or_known_ones(
    tmp_path: Path,
) -> None:
    runs = tmp_path / "runs"
    known = log(runs, "known")
    log(runs, "known/inner"), log(runs, "a"), log(runs, "deep/er/b"), log(runs, ".hidden")
    log(runs, "out/result")
    assert names(tmp_path, str(runs), known) == ["runs/a", "runs/deep/er/b"]


def test_a_profile_in_a_known_trial_is_found_when_it_appears(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    known = log(runs, "known")
    assert names(tmp_path, str(runs), known) == []
    write(known / "profile", minute(0))
    log(runs, "known/inner")
    assert "runs/known/profile" in names(tmp_path, str(runs), known)
    assert names(tmp_path, str(runs), known, known / "profile") == []


def test_traces_in_a_recording_are_no_trials_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "profile", minute(0))
    write_training(tmp_path / "runs" / "profile" / "kineto" / "2020091312" / "000000005")
    write_training(tmp_path / "runs" / "traces")
    assert names(tmp_path, str(tmp_path / "runs")) == ["runs/profile", "runs/traces"]


def test_patterns_choose_folders(tmp_path: Path) -> None:
    for name in ("llm-1/logs", "llm-2/other", "toy/logs"):
        log(tmp_path, name)
    assert names(tmp_path, f"{tmp_path}/llm-*") == ["llm-1/logs", "llm-2/other"]
    assert names(tmp_path, f"{tmp_path}/*/logs") == ["llm-1/logs", "toy/logs"]
    assert names(tmp_path, f"{tmp_path}/*/*/*") == []


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    log(tmp_path, "runs[1]/a")
    assert names(tmp_path, f"{tmp_path}/runs[1]") == ["runs[1]/a"]


def test_a_missing_root_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match=r"Trial '.*/missing' does not exist\."):
        names(tmp_path, f"{tmp_path}/missing")


def test_outputs_are_stable_and_differ() -> None:
    template = "/out/{trial}"
    outputs = {output_of(path, template) for path in ("/a/b c", "/a/b-c", "/x/a/b-c", "/", "/é")}
    assert len(outputs) == 5
    assert output_of("/a/b c", template) == output_of("/a/b c", template)
    assert all(Path(output).parent == Path("/out") for output in outputs)
    assert len(Path(output_of("/a/" + "b" * 500, template)).name) < 100
