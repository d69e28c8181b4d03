"""find_trials: trials at and below a path, and the nearest name of a path that does not exist."""

import errno
import os
import tracemalloc
from pathlib import Path
from typing import Any

import faulty_s3
import pytest
import rawtrial
import s3_objects

from rule_core.sources.format import HEAD_BYTES
from rule_core.sources.recognize import HEADS
from rule_core.sources.unread import FILES_NAMED
from rule_runner.errors import TrialError
from rule_runner.loading import trial_search
from rule_runner.loading.trial_lists import list_trials
from rule_runner.loading.trial_search import find_trials, missing, nearest_path, trials_below

TENSORS = {
    rawtrial.collections_key(): b"{}",
    rawtrial.index_key(0): b"{}",
    rawtrial.event_key(0): b"",
}
PROFILER = {
    "system/incremental/2020060500/1591160699.algo-1.json": b"",
    "framework/pevents/20200702/1593673051472361_11-algo-1_model_timeline.json": b"",
}
# Files that do not make a folder a trial.
DECOYS = {
    "site/index/page.html": b"",
    "site/events/2024/party.txt": b"",
    "papers/collections/rock.json": b"",
    ".cache/hidden/training_job_end.ts": b"",
    "etc/system/units": b"",
}


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{key}": content for key, content in files.items()}


FILES = {
    **below("mnist/debug-output", TENSORS | {"tensorboard/events.out.tfevents.1.x": b""}),
    **below("mnist/profiler-output", PROFILER),
    **below("both", {**TENSORS, **PROFILER}),
    "ended/training_job_end.ts": b"",
    "quiet/system/training_job_end.ts": b"",
    **below("recorded", PROFILER | {"training_job_end.ts": b""}),
    rawtrial.collections_key().replace("collections", "begun/collections", 1): b"{}",
    **{f"{name}/{key}": b"" for name in ("deep/a/b/c",) for key in TENSORS},
    **DECOYS,
}
FOUND = [
    ("begun", True, False),
    ("both", True, True),
    ("deep/a/b/c", True, False),
    ("ended", True, False),
    ("mnist/debug-output", True, False),
    ("mnist/profiler-output", False, True),
    ("quiet", False, True),
    ("recorded", False, True),
]


def test_trials_below_a_local_folder(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, FILES)
    search = find_trials(str(tmp_path))
    assert search.trials == [(str(tmp_path / name), *kinds, ()) for name, *kinds in FOUND]
    assert search.complete


def test_trials_below_an_address(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/", FILES)
    search = find_trials("s3://bucket/runs/")
    assert search.trials == [(f"s3://bucket/runs/{name}", *kinds, ()) for name, *kinds in FOUND]
    assert find_trials("s3://bucket").trials[0].path == "s3://bucket/runs/begun"


def test_path_that_is_a_trial_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rawtrial.write(tmp_path / "run", {**TENSORS, **below("again", TENSORS)})
    monkeypatch.chdir(tmp_path)
    assert [trial.path for trial in find_trials("run/").trials] == ["run", "run/again"]
    assert find_trials(f"file://{tmp_path}/run").trials[0].path == f"{tmp_path}/run"


def test_a_folder_whose_files_are_one_run_is_found_by_its_format(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss\n0,3\n1,2\n2,1\n")
    for path in (tmp_path, tmp_path / "metrics.csv"):
        assert [trial.path for trial in find_trials(f"csv:{path}").trials] == [f"csv:{path}"]


def test_links_below_the_path_are_not_followed(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "run", TENSORS)
    (tmp_path / "latest").symlink_to("run")
    (tmp_path / "loop").symlink_to(".")
    assert [trial.path for trial in find_trials(str(tmp_path)).trials] == [str(tmp_path / "run")]


@pytest.mark.parametrize(("limit", "complete"), [(2, False), (8, True)])
def test_number_of_trials_is_bounded(tmp_path: Path, limit: int, complete: bool) -> None:
    rawtrial.write(tmp_path, FILES)
    search = find_trials(str(tmp_path), limit=limit)
    assert (len(search.trials), search.complete) == (limit, complete)


@pytest.mark.parametrize(("bound", "value"), [("LEVELS", 1), ("LOCAL_FOLDERS", 5), ("ENTRIES", 2)])
def test_search_that_was_cut_short_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    rawtrial.write(tmp_path, FILES)
    monkeypatch.setattr(trial_search, bound, value)
    search = find_trials(str(tmp_path))
    assert len(search.trials) < len(FOUND)
    assert not search.complete


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("runs/mnits", "runs/mnist"),
        ("runs/MNIST/", "runs/mnist"),
        ("runs/mnits/debug-output", "runs/mnist/debug-output"),
        ("runs/mnits/no-such", "runs/mnist"),
        ("runz/mnist/debug-output", "runs/mnist/debug-output"),
        ("runs/entirely-different", None),
        ("/no-such-folder-at-all", None),
    ],
)
def test_wrong_path_gets_the_nearest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, nearest: str | None
) -> None:
    rawtrial.write(tmp_path / "runs", FILES)
    monkeypatch.chdir(tmp_path)
    assert nearest_path(path) == nearest
    hint = f" Did you mean '{nearest}'?" if nearest else ""
    with pytest.raises(TrialError) as error:
        find_trials(path)
    assert str(error.value) == f"Trial {path!r} does not exist.{hint}"


def test_wrong_address_gets_the_nearest_name(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/", FILES)
    with pytest.raises(TrialError, match=r"Did you mean 's3://bucket/runs/mnist/debug-output'\?"):
        find_trials("s3://bucket/runs/mnits/debug-output")
    assert nearest_path("s3://bucket/run") == "s3://bucket/runs"
    assert nearest_path("s3://bucket/other") is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "The path of a trial must not be empty"),
        ("ftp://host/runs", "cannot be read yet"),
        ("s3://", "An S3 address must be"),
        ("file.txt", "holds nothing that is read as a trial yet"),
    ],
)
def test_path_that_cannot_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    (tmp_path / "file.txt").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TrialError, match=message):
        find_trials(path)


def test_bucket_that_does_not_exist_is_named(aws_endpoint: str) -> None:
    assert aws_endpoint
    with pytest.raises(TrialError, match=r"bucket 'nowhere' does not exist"):
        find_trials("s3://nowhere/runs")
    assert nearest_path("s3://nowhere/runs") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".", [name for name, *_ in FOUND]),
        ("mnist", ["mnist/debug-output", "mnist/profiler-output"]),
        ("both", []),
        ("begun", []),
        ("empty", []),
        ("no-such", []),
        ("file.txt", []),
    ],
)
def test_trials_below_a_path_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, expected: list[str]
) -> None:
    rawtrial.write(tmp_path, FILES)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert [trial.path for trial in trials_below(path)] == expected


def test_hint_is_not_waited_for_long(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s3_objects.make_bucket(aws_endpoint)
    monkeypatch.setattr(trial_search, "HINT_TIMEOUT_S", 0.3)
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "6000")  # longer than the time limit of a test
    with faulty_s3.serving(aws_endpoint) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        server.always["list-type=2"] = faulty_s3.SLOW_DOWN
        assert missing("s3://bucket/a/b/c") == "Trial 's3://bucket/a/b/c' does not exist."
        assert trials_below("s3://bucket/a") == []


CSV = b"step,loss\n0,3\n1,2\n2,1\n"
OURS = b'{\n  "schema_version": 1,\n  "summary": "1 IssuesFound"}'


def found(path: Path) -> tuple[list[str], dict[str, str]]:
    """Return the trials below a folder, and what is not read, by relative paths."""
    search = find_trials(str(path))
    assert search.complete
    trials = [str(Path(trial.path).relative_to(path)) for trial in search.trials]
    return trials, {str(Path(key).relative_to(path)): why for key, why in search.not_read.items()}


def test_folders_of_packages_and_of_results_are_passed_over(tmp_path: Path) -> None:
    folders = {
        *(".git", ".ipynb_checkpoints", "node_modules", "lib/site-packages", "__pycache__"),
        *("env/lib", "conda/share", "rule-output/check", "out/run"),
    }
    rawtrial.write(tmp_path, {f"{name}/metrics.csv": CSV for name in {*folders, "run"}})
    marks = {"env/pyvenv.cfg": b"", "conda/conda-meta/history": b"", "out/run/results.json": OURS}
    rawtrial.write(tmp_path, {**marks, "mine/results.json": b'{"acc": 1}', "mine/metrics.csv": CSV})
    assert found(tmp_path) == (["mine", "run"], {})


def test_what_is_not_read_is_told_of_folders_without_a_trial(tmp_path: Path) -> None:
    files = {"a/metrics.csv": CSV, "a/other.npz": b"x", "b/table.csv": b"id,x\n1,2\n"}
    rawtrial.write(tmp_path, {**files, "b/README.md": b"x", "README.md": b"x", "c/x.py": b""})
    trials, not_read = found(tmp_path)
    assert (trials, [*not_read]) == (["a"], ["b/table.csv"])


def test_every_file_of_a_folder_without_any_trial_is_told(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {"config.json": b'{"lr": 0.1}', "below/notes.md": b"x"})
    trials, not_read = found(tmp_path)
    assert (trials, [*not_read]) == ([], ["config.json"])
    assert "only single values" in not_read["config.json"]


def test_folder_that_cannot_be_listed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rawtrial.write(tmp_path, {"a/metrics.csv": CSV, "closed/metrics.csv": CSV})
    scandir = os.scandir

    def denied(path: Path) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(trial_search.os, "scandir", denied)
    assert found(tmp_path) == (["a"], {"closed": "it cannot be listed: Permission denied"})


def test_links_give_no_run_twice(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {"runs/a/metrics.csv": CSV})
    (tmp_path / "runs" / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "runs" / "latest").symlink_to("a")
    (tmp_path / "runs" / "b").mkdir()
    (tmp_path / "runs" / "b" / "metrics.csv").symlink_to("../a/metrics.csv")
    trials, not_read = found(tmp_path)
    assert (trials, [*not_read]) == (["runs/a"], ["runs/b/metrics.csv"])
    listed = list_trials([str(tmp_path), str(tmp_path / "runs" / "latest")])
    assert [trial.path for trial in listed.trials] == [str(tmp_path / "runs" / "a")]


def test_heads_of_many_files_are_not_kept(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {f"{number}.csv": b"a,b\n" * (1 << 14) for number in range(400)})
    tracemalloc.start()
    try:
        search = find_trials(str(tmp_path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(search.not_read) == FILES_NAMED
    assert peak < (HEADS + 100) * HEAD_BYTES


def test_each_folder_is_counted(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {"a/b/metrics.csv": CSV, "c/x.py": b""})
    looked: list[None] = []
    find_trials(str(tmp_path), looked=lambda: looked.append(None))
    assert len(looked) == 4
