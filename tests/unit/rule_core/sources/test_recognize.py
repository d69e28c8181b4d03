"""Which files of a folder are one run, and in which format they are read."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore

from rule_core.modes import ModeKeys
from rule_core.sources.format import Recognized, SourceFolder, Unreadable
from rule_core.sources.options import SourceOptions
from rule_core.sources.recognize import SourceRun, recognize, source_folder


class NamedFormat:
    """Recognises the files with an ending, and folders with a prefix; opens nothing."""

    def __init__(self, kind: str, *, ending: str = "?", folder: str = "?") -> None:
        self.kind = kind
        self._ending = ending
        self._folder = folder

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the files with the ending."""
        for name in folder.names:
            if name.endswith(self._ending) or name.startswith(self._folder):
                yield Recognized(self.kind, folder.key + name, f"its name is {name}")

    def open(self, *_: object) -> Any:
        """Not called."""
        raise NotImplementedError


FORMATS = {
    source_format.kind: source_format
    for source_format in (
        NamedFormat("tensorboard", ending=".tfevents"),
        NamedFormat("jsonl", ending=".jsonl"),
        NamedFormat("csv", ending=".csv"),
        NamedFormat("trainer-state", ending="trainer_state.json"),
        NamedFormat("text-log", ending=".log"),
        NamedFormat("safetensors", ending=".safetensors", folder="checkpoint-"),
    )
}


def runs(*files: str) -> list[SourceRun]:
    store = MemoryStore(dict.fromkeys(files, b""))
    return list(recognize(source_folder(store, ""), FORMATS).runs)


def read(run: SourceRun) -> list[str]:
    return [item.key for _, item in run.sources]


def keys(found: Sequence[SourceRun]) -> dict[str, list[str]]:
    return {run.key: read(run) for run in found}


def test_nothing_is_recognised() -> None:
    assert runs("notes.md", "below/metrics.csv") == []


def test_one_file_makes_the_folder_a_run() -> None:
    assert keys(runs("metrics.csv", "notes.md")) == {"": ["metrics.csv"]}


def test_log_and_checkpoints_are_one_run() -> None:
    found = runs("metrics.csv", "checkpoint-10/model", "checkpoint-20/model")
    assert keys(found) == {"": ["metrics.csv", "checkpoint-10/", "checkpoint-20/"]}


def test_checkpoints_alone_are_a_run() -> None:
    assert keys(runs("model.safetensors")) == {"": ["model.safetensors"]}


def test_one_format_of_numbers_is_read_and_the_others_are_set_aside() -> None:
    (run,) = runs("a.tfevents", "metrics.csv", "log.jsonl", "model.safetensors")
    assert read(run) == ["a.tfevents", "model.safetensors"]
    assert [item.key for item in run.set_aside] == ["log.jsonl", "metrics.csv"]


def test_a_file_that_is_read_is_not_set_aside_for_another_format() -> None:
    store = MemoryStore({"train.log": b"", "old.log": b""})
    formats = {"own": NamedFormat("own", ending="train.log"), "text-log": FORMATS["text-log"]}
    (run,) = recognize(source_folder(store, ""), formats).runs
    assert read(run) == ["train.log"]
    assert [item.key for item in run.set_aside] == ["old.log"]


@pytest.mark.parametrize(
    "names",
    [
        ("train.csv", "val.csv"),
        ("metrics_train.csv", "metrics_val.csv", "test_metrics.csv"),
        ("Train-Loss.csv", "validation.loss.csv"),
    ],
)
def test_files_of_the_modes_are_one_run(names: tuple[str, ...]) -> None:
    assert keys(runs(*names)) == {"": sorted(names)}


@pytest.mark.parametrize("names", [("run1.csv", "run2.csv"), ("adam.csv", "sgd.csv", "train.csv")])
def test_other_files_of_one_format_are_runs_of_their_own(names: tuple[str, ...]) -> None:
    assert keys(runs(*names)) == {name: [name] for name in names}


def test_checkpoints_beside_several_runs_belong_to_none() -> None:
    found = runs("run1.csv", "run2.csv", "model.safetensors")
    assert keys(found) == {
        "": ["model.safetensors"],
        "run1.csv": ["run1.csv"],
        "run2.csv": ["run2.csv"],
    }


def test_logs_of_a_trainer_are_read_instead_of_its_state() -> None:
    store = MemoryStore(
        dict.fromkeys(
            ["trainer_state.json", "runs/Jan01_host/a.tfevents", "checkpoint-5/model"], b""
        )
    )
    found = recognize(source_folder(store, ""), FORMATS)
    assert keys(found.runs) == {"": ["runs/Jan01_host/a.tfevents", "checkpoint-5/"]}
    assert [item.key for item in found.runs[0].set_aside] == ["trainer_state.json"]
    assert found.owned == {"runs/", "checkpoint-5/"}


def test_state_of_a_trainer_that_was_resumed_is_read_instead_of_its_logs() -> None:
    store = MemoryStore(
        dict.fromkeys(
            ["trainer_state.json", "runs/Jan01_host/a.tfevents", "runs/Jan02_host/b.tfevents"],
            b"",
        )
    )
    found = recognize(source_folder(store, ""), FORMATS)
    assert keys(found.runs) == {"": ["trainer_state.json"]}
    assert found.owned == {"runs/"}


def test_logs_below_a_folder_without_a_trainer_are_not_its_own() -> None:
    store = MemoryStore({"runs/first/a.tfevents": b"", "runs/second/a.tfevents": b""})
    assert recognize(source_folder(store, ""), FORMATS).runs == []


def test_format_of_another_package_that_fails_is_named() -> None:
    class Failing(NamedFormat):
        def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
            raise KeyError(folder.names[0])

    store = MemoryStore({"metrics.csv": b""})
    found = recognize(source_folder(store, ""), {"mine": Failing("mine"), **FORMATS})
    assert keys(found.runs) == {"": ["metrics.csv"]}
    assert found.problems == ["Format 'mine' failed on folder '.': KeyError: 'metrics.csv'."]


def test_head_of_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a").write_bytes(b"x" * (1 << 17))
    reads = []

    class Counting(MemoryStore):
        def read(self, key: str, byte_range: Any = None) -> memoryview:
            reads.append(key)
            return super().read(key, byte_range)

    folder = source_folder(Counting({"a/b": b"12"}), "a/")
    assert (folder.names, folder.head("b"), folder.head("b")) == (["b"], b"12", b"12")
    assert (folder.head("no"), list(folder.list_folder("no/"))) == (b"", [])
    assert reads == ["a/b", "a/no"]


def test_formats_see_the_options_of_the_user() -> None:
    columns = []

    class Seeing(NamedFormat):
        def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
            columns.append(folder.options.step_column)
            yield from super().recognize(folder)

    folder = source_folder(MemoryStore({"runs/a.csv": b""}), "runs/")
    options = SourceOptions(step_column="when")
    recognize(folder._replace(options=options), {"csv": Seeing("csv", ending=".csv")})
    assert columns == ["when"]


def test_compressed_heads_and_rotated_names() -> None:
    files = {"a.log": b"", "a.log.1": b"", "b.csv.gz": gzip.compress(b"step,loss\n"), "c.gz": b"x"}
    folder = source_folder(MemoryStore(files), "")
    assert folder.names == ["a.log", "b.csv.gz", "c.gz"]
    assert (folder.head_text("b.csv.gz"), folder.head_text("c.gz")) == ("step,loss\n", "")


# -- files of one run ------------------------------------------------------------------------------


def modes(run: SourceRun) -> dict[str, str | None]:
    return {item.key: item.mode and item.mode.name for _, item in run.sources}


@pytest.mark.parametrize(
    "names",
    [
        ("learn_error.csv", "test_error.csv"),
        ("run_train_tag_loss.csv", "run_validation_tag_loss.csv"),
        ("plots/train/loss.csv", "plots/eval/loss.csv", "plots/learning_rate.csv"),
        ("train/acc.csv", "train/loss.csv", "val/loss.csv"),
        ("train.log", "test.log"),
        ("0.monitor.csv", "1.monitor.csv", "12.monitor.csv"),
        ("env_0.0.monitor.csv", "env_1.0.monitor.csv"),
    ],
)
def test_files_that_differ_in_modes_and_metrics_are_one_run(names: tuple[str, ...]) -> None:
    store = MemoryStore(dict.fromkeys(names, b""))
    folder = "plots/" if names[0].startswith("plots") else ""
    (run,) = recognize(source_folder(store, folder), FORMATS).runs
    assert (run.key, read(run)) == (folder, sorted(names)) or folder
    evaluated = {name for name, mode in modes(run).items() if mode == "EVAL"}
    assert evaluated == {name for name in names if "val" in name or "test" in name}


@pytest.mark.parametrize(
    "names",
    [
        ("adam_loss.csv", "sgd_loss.csv"),
        ("run.log", "run_error.log"),
        ("monitor_0.csv", "monitor_1.csv"),
        ("metrics.csv", "test/metrics.csv", "train/run1.csv"),
    ],
)
def test_files_that_differ_in_other_words_are_not_one_run(names: tuple[str, ...]) -> None:
    assert keys(runs(*names)) == {
        name if len(names) == 2 else "": [name] for name in names if "/" not in name
    }


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("validations.log", "EVAL"),
        ("val_metrics.csv", "EVAL"),
        ("test.csv", None),  # of a training that is tried out
        ("train_and_val.csv", None),
        ("evaluator.csv", None),
    ],
)
def test_a_single_file_that_is_called_after_an_evaluation_is_one(
    name: str, mode: str | None
) -> None:
    (run,) = runs(name)
    assert modes(run) == {name: mode}


def test_a_mode_that_a_format_knows_is_kept() -> None:
    class Training(NamedFormat):
        def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
            for item in super().recognize(folder):
                yield item._replace(mode=ModeKeys.PREDICT)

    store = MemoryStore({"train.x": b"", "test.x": b""})
    found = recognize(source_folder(store, ""), {"x": Training("x", ending=".x")})
    assert modes(found.runs[0]) == {"test.x": "PREDICT", "train.x": "PREDICT"}


def test_a_folder_named_after_a_mode_is_a_run_of_its_own_if_nothing_is_beside_it() -> None:
    assert runs("test/metrics.csv", "notes.md") == []


@pytest.mark.parametrize(
    ("names", "read_keys", "aside"),
    [
        (("metrics.csv", "files/output.log"), ["metrics.csv"], ["files/output.log"]),
        (("output.log", "logs/metrics.csv"), ["logs/metrics.csv"], ["output.log"]),
        (("a.log", "logs/b.log"), ["a.log"], []),
        (("output.log", "logs/adam.csv", "logs/sgd.csv"), ["output.log"], []),
    ],
)
def test_folders_of_loggers_belong_to_the_run_in_other_formats(
    names: tuple[str, ...], read_keys: list[str], aside: list[str]
) -> None:
    found = recognize(source_folder(MemoryStore(dict.fromkeys(names, b"")), ""), FORMATS)
    assert read(found.runs[0]) == read_keys
    assert [item.key for item in found.runs[0].set_aside] == aside
    assert found.owned == ({names[1].split("/")[0] + "/"} if aside else frozenset())


def test_checkpoints_below_any_run_belong_to_it() -> None:
    store = MemoryStore({"metrics.csv": b"", "checkpoint-5/metrics.csv": b""})
    assert recognize(source_folder(store, ""), FORMATS).owned == {"checkpoint-5/"}


def test_one_file_is_looked_at_with_those_of_its_run() -> None:
    names = ["a_train.csv", "a_val.csv", "b_train.csv", "notes.md"]
    store = MemoryStore(dict.fromkeys(names, b""))
    assert source_folder(store, "", "a_val.csv").names == ["a_train.csv", "a_val.csv"]
    assert source_folder(store, "", "notes.md").names == ["notes.md"]


def test_what_a_format_refuses_and_no_other_reads_is_told() -> None:
    class Refusing(NamedFormat):
        def recognize(self, folder: SourceFolder) -> Iterator[Any]:
            for item in super().recognize(folder):
                yield Unreadable(item.key, "rows are samples")

    store = MemoryStore({"metrics.csv": b"", "data.json": b""})
    refusing = {"mine": Refusing("mine", ending="")}
    found = recognize(source_folder(store, ""), {**refusing, **FORMATS})
    assert found.refused == [Unreadable("data.json", "rows are samples")]
    assert keys(found.runs) == {"": ["metrics.csv"]}
