"""A folder with files of other tools, as the files that a profiler would have written."""

import gc
from pathlib import Path

import pytest
from kineto_writer import write_training
from profiled_job import write_job

from rule_core.exceptions import SMDebugRuntimeError
from rule_core.profiler.converted.store import ConvertedFiles
from rule_core.storage.local import LocalStore
from rule_core.trials.profiler_trial import ProfilerTrial
from smdebug.trials import create_trial


def test_ranks_of_several_folders_are_one_trial(tmp_path: Path) -> None:
    for path in write_training(tmp_path, 4):
        folder = tmp_path / f"step_{path.name[8]}" / path.name.split(".")[0]
        folder.mkdir(parents=True)
        path.rename(folder / "trace.json")
    trial = create_trial(str(tmp_path), profiler=True)
    assert trial.nodes == [f"rank-{rank}" for rank in range(4)]
    assert trial.loaded_all_steps
    assert trial.has_torch_traces


def test_one_trace_is_a_trial(tmp_path: Path) -> None:
    first, _ = write_training(tmp_path, 2)
    assert create_trial(str(first), profiler=True).nodes == ["rank-0"]


def test_files_of_a_profiler_come_first(tmp_path: Path) -> None:
    write_job(tmp_path, nodes=1)
    write_training(tmp_path / "kineto", 2)
    trial = ProfilerTrial("job", tmp_path)
    assert trial.nodes == ["algo-1"]
    assert not trial.has_torch_traces
    assert create_trial(str(tmp_path / "kineto"), profiler=True).nodes == ["rank-0", "rank-1"]


def test_traces_that_arrive_later_join(tmp_path: Path) -> None:
    write_training(tmp_path, 1)
    trial = ProfilerTrial("job", tmp_path)
    write_training(tmp_path / "later", 2)
    trial.refresh()
    assert trial.nodes == ["gpu-box-4000", "rank-0", "rank-1"]


def test_json_of_other_tools_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    store = ConvertedFiles(LocalStore(tmp_path)).store
    assert list(store.list_keys("framework/")) == []
    assert not store.finds_formats()
    assert not ConvertedFiles(LocalStore(tmp_path / "missing")).store.finds_formats()


def test_the_converted_files_are_removed_with_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write_training(tmp_path / "traces")
    trial = ProfilerTrial("job", tmp_path / "traces")
    assert trial.framework_events(0, 1 << 53)
    assert len(list(temporary.iterdir())) == 1
    del trial
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_no_room_for_temporary_files_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_training(tmp_path / "traces")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(SMDebugRuntimeError, match="Set TMPDIR to a folder with free space"):
        ProfilerTrial("job", tmp_path / "traces")


def test_a_trace_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    write_training(tmp_path, 1)
    (tmp_path / "link.pt.trace.json").mkdir()
    (tmp_path / "odd.pt.trace.json").symlink_to(tmp_path / "nowhere")
    trial = ProfilerTrial("job", tmp_path)
    assert trial.nodes == ["gpu-box-4000"]
