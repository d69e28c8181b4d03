"""Safetensors checkpoints: which there are, when they are complete, and what becomes of them."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from faulty_store import REMOTE, CountingStore
from safetensors_files import (
    checkpoint_index,
    encode,
    whole_trial,
    with_header,
    write,
    write_sharded,
)

from rule_core.exceptions import SMDebugValueError, TensorUnavailableForStep
from rule_core.model.segments import global_step
from rule_core.modes import ModeKeys
from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.format import Recognized, SourceFolder, SourceFormat
from rule_core.sources.safetensors import FORMAT, KIND, locate, refusal, step_in
from rule_core.storage.base import TrialStore
from rule_core.storage.local import LocalStore
from rule_core.trials.trial import Trial

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def read(root: Path, key: str = "") -> Trial:
    """Return the trial of a folder, to its end."""
    return whole_trial(checkpoint_index(LocalStore(root), key), root)


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("checkpoint-500/model.safetensors", 500),
        ("checkpoint-500/model-00001-of-00002.safetensors", 500),
        ("step_20/model.safetensors", 20),
        ("epoch_3/model.safetensors", 3),
        ("global_step7/model.safetensors", 7),
        ("700/model.safetensors", 700),
        ("checkpoint_0/model_1.safetensors", 0),
        ("checkpoint-9/unet/diffusion_pytorch_model.safetensors", 9),
        ("model_step_500.safetensors", 500),
        ("model_500.safetensors", 500),
        ("ckpt-500.safetensors", 500),
        ("epoch=3-step=500.safetensors", 500),
        ("step500-00002-of-00003.safetensors", 500),
        ("0000100_adapters.safetensors", 100),
        ("mylora-000010.safetensors", 10),
        ("model.safetensors", None),
        ("model-00001-of-00002.safetensors", None),
        ("llama-7b.safetensors", None),
        ("bert-base-110.safetensors", None),
    ],
)
def test_steps_are_in_names(key: str, step: int | None) -> None:
    location = locate(key)
    assert location is not None
    assert location.step == step


@pytest.mark.parametrize(
    "key",
    [
        "tmp-checkpoint-500/model.safetensors",
        "checkpoint-500-old/model.safetensors",
        "final/model.safetensors",
        "checkpoint-500/model.bin",
        "checkpoint-500/a/b/model.safetensors",
        ".tmpAbC.safetensors",
    ],
)
def test_other_files_are_no_checkpoints(key: str) -> None:
    assert locate(key) is None


def test_epochs_are_distinguished_from_steps() -> None:
    assert step_in("epoch_3", is_folder=True) == (3, True)
    assert step_in("step_3", is_folder=True) == (3, False)


def test_checkpoints_of_a_run_are_a_trial(tmp_path: Path) -> None:
    for step in (1000, 500):
        tensors = {"fc.weight": W + step, "fc.bias": W[0], "bn.running_mean": W[0]}
        write(tmp_path / f"checkpoint-{step}" / "model.safetensors", tensors)
    write(tmp_path / "model.safetensors", {"final": W})
    (tmp_path / "checkpoint-500" / "optimizer.pt").write_bytes(b"pickled")
    trial = read(tmp_path)
    assert trial.steps() == [500, 1000]
    assert trial.modes() == [ModeKeys.TRAIN]
    assert trial.tensor_names() == ["bn.running_mean", "fc.bias", "fc.weight"]
    assert trial.tensor_names(collection="weights") == ["fc.weight"]
    assert trial.tensor_names(collection="biases") == ["fc.bias"]
    tensor = trial.tensor("fc.weight")
    assert tensor.steps() == [500, 1000]
    assert np.array_equal(tensor.value(1000), W + 1000)
    assert tensor.shape(500) == (2, 3)
    assert tensor.reduction_value(500, "max") == 505
    assert tensor.workers(500) == ["worker_0"]
    assert trial.wall_time(500) == pytest.approx(
        (tmp_path / "checkpoint-500" / "model.safetensors").stat().st_mtime
    )
    assert not trial.index.file_problems.problems


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    for step, size in ((10, 3), (20, 2)):  # other shards after a restart
        shards = [{} for _ in range(size)]
        for place in range(6):
            shards[place % size][f"layer.{place}.weight"] = W * step + place
        write_sharded(tmp_path / f"checkpoint-{step}", *shards)
    trial = read(tmp_path)
    assert len(trial.tensor_names()) == 6
    for step in (10, 20):
        assert trial.tensor("layer.4.weight").value(step)[0, 1] == step + 4
    assert not trial.index.file_problems.problems


@pytest.mark.parametrize(
    ("name", "key", "step"),
    [
        ("model.safetensors", "", 0),
        ("model.safetensors", "model.safetensors", 0),
        ("adapter_model.safetensors", "", 0),
        ("checkpoint-70/model.safetensors", "checkpoint-70/", 70),
        ("checkpoint-70/model.safetensors", "checkpoint-70/model.safetensors", 70),
        ("model_step_9.safetensors", "model_step_9.safetensors", 9),
    ],
)
def test_a_lone_model_has_the_step_of_its_name_or_0(
    tmp_path: Path, name: str, key: str, step: int
) -> None:
    write(tmp_path / name, {"w": W})
    trial = read(tmp_path, key)
    assert trial.steps() == [step]
    assert np.array_equal(trial.tensor("w").value(step), W)


def test_one_of_several_files_can_be_named(tmp_path: Path) -> None:
    write(tmp_path / "model_step_9.safetensors", {"w": W})
    write(tmp_path / "model_step_10.safetensors", {"w": W})
    assert read(tmp_path, "model_step_9.safetensors").steps() == [9]
    write_sharded(tmp_path / "b", {"v": W}, {"w": W})
    shard = "b/model-00002-of-00002.safetensors"
    assert read(tmp_path, shard).tensor_names() == ["v", "w"]


def test_components_and_optimizers_have_names_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "step_3"
    for name in ("model", "ema", "model_1", "optimizer", "unet/diffusion_pytorch_model"):
        write(folder / f"{name}.safetensors", {"w": W})
    trial = read(tmp_path)
    assert trial.tensor_names() == ["ema/w", "model_1/w", "optimizer/w", "unet/w", "w"]
    assert trial.tensor_names(collection="optimizer_variables") == ["optimizer/w"]


def test_epochs_beside_steps_are_skipped(tmp_path: Path) -> None:
    write(tmp_path / "step_50" / "model.safetensors", {"w": W})
    write(tmp_path / "epoch_1" / "model.safetensors", {"w": W})
    trial = read(tmp_path)
    assert trial.steps() == [50]
    assert "epoch_1/model.safetensors" in trial.index.file_problems.problems


def test_a_checkpoint_is_given_once_it_is_complete(tmp_path: Path) -> None:
    index = checkpoint_index(LocalStore(tmp_path))
    data = encode({"w": W})
    path = tmp_path / "checkpoint-5" / "model-00001-of-00002.safetensors"
    path.parent.mkdir()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        index.refresh()
        assert not index.steps
    write(path.with_name("model-00002-of-00002.safetensors"), {"v": W})
    index.refresh()
    assert list(index.steps) == [5]
    index.refresh()
    assert list(index.steps) == [5]
    assert not index.file_problems.problems


def test_an_incomplete_checkpoint_that_is_deleted_is_forgotten(tmp_path: Path) -> None:
    index = checkpoint_index(LocalStore(tmp_path))
    path = tmp_path / "checkpoint-5" / "model-00001-of-00002.safetensors"
    write(path, {"w": W})
    index.refresh()
    path.unlink()
    write(tmp_path / "checkpoint-6" / "model.safetensors", {"w": W})
    index.refresh()
    assert list(index.steps) == [6]
    assert not index.file_problems.problems


def test_an_incomplete_checkpoint_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-5"
    write_sharded(folder, {"v": W}, {"w": W})
    (folder / "model-00001-of-00002.safetensors").unlink()
    write(tmp_path / "checkpoint-6" / "model.safetensors", {"w": W})
    trial = read(tmp_path)
    assert trial.steps() == [6]
    (text,) = trial.index.file_problems.problems.values()
    assert "checkpoint-5/model-00001-of-00002.safetensors" in text


def test_a_damaged_file_is_skipped_and_reported(tmp_path: Path) -> None:
    write(tmp_path / "step_5" / "model.safetensors", {"w": W})
    (tmp_path / "step_5" / "other.safetensors").write_bytes(b"\xff" * 100)
    (tmp_path / "step_6").mkdir()
    (tmp_path / "step_6" / "model.safetensors").write_bytes(b"\xff" * 100)
    trial = read(tmp_path)
    assert trial.steps() == [5]
    assert set(trial.index.file_problems.problems) == {
        "step_5/other.safetensors",
        "step_6/model.safetensors",
    }


def test_links_are_reported_and_skipped(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "model.safetensors", {"w": W})
    write(tmp_path / "run" / "step_1" / "model.safetensors", {"w": W})
    (tmp_path / "run" / "step_2").mkdir()
    link = tmp_path / "run" / "step_2" / "model.safetensors"
    link.symlink_to(tmp_path / "elsewhere" / "model.safetensors")
    trial = read(tmp_path / "run")
    assert trial.steps() == [1]
    assert "skipped" in trial.index.file_problems.problems["step_2/model.safetensors"]


def test_of_many_damaged_tensors_some_are_named(tmp_path: Path) -> None:
    infos = {
        f"t{number}": {"dtype": "F4", "shape": [0], "data_offsets": [0, 0]} for number in range(100)
    }
    (tmp_path / "model.safetensors").write_bytes(with_header(json.dumps(infos).encode()))
    problems = read(tmp_path).index.file_problems.problems
    assert len(problems) == 21
    assert problems["model.safetensors"].startswith("80 more")


@pytest.mark.parametrize("count", ["00000", "999999"])
def test_impossible_numbers_of_shards_are_ignored(tmp_path: Path, count: str) -> None:
    write(tmp_path / f"model-00001-of-{count}.safetensors", {"w": W})
    assert read(tmp_path).tensor_names() == ["w"]


def test_tensors_that_the_index_of_shards_does_not_assign_are_skipped(tmp_path: Path) -> None:
    write_sharded(tmp_path, {"v": W}, {"w": W})
    write(tmp_path / "model-00001-of-00002.safetensors", {"w": W * 2, "x": W})
    trial = read(tmp_path)
    assert trial.tensor_names() == ["w"]
    assert np.array_equal(trial.tensor("w").value(0), W)
    assert {key.rpartition(": ")[2] for key in trial.index.file_problems.problems} == {
        "v",
        "w",
        "x",
    }


def test_an_index_of_shards_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "secret.safetensors", {"w": W})
    folder = tmp_path / "step_1"
    write(folder / "model.safetensors", {"w": W})
    (folder / "model.safetensors.index.json").write_text('{"weight_map":{"w":"../secret"}}')
    trial = read(tmp_path)
    assert not trial.index.steps


def test_a_deleted_checkpoint_has_no_tensors(tmp_path: Path) -> None:
    for step in (1, 2):
        write_sharded(tmp_path / f"checkpoint-{step}", {"v": W + step}, {"w": W})
    index = checkpoint_index(LocalStore(tmp_path))
    trial = whole_trial(index)
    assert trial.tensor("v").value(1)[0, 0] == 1
    (tmp_path / "checkpoint-1" / "model-00001-of-00002.safetensors").unlink()
    index.refresh()
    index.refresh()
    assert list(index.steps) == [1, 2]
    assert trial.tensor("v").steps() == [2]
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("v").value(1)
    assert trial.tensor_names(step=1) == []


def test_a_replaced_checkpoint_is_a_new_segment(tmp_path: Path) -> None:
    paths = [tmp_path / f"checkpoint-{step}" / "model.safetensors" for step in (1, 2)]
    for path in paths:
        write(path, {"w": W})
    index = checkpoint_index(LocalStore(tmp_path))
    trial = whole_trial(index)
    assert trial.tensor("w").value(1)[0, 0] == 0
    write(paths[0], {"w": W + 7})
    os.utime(paths[0], (1e9, 1e9))
    index.refresh()
    again = global_step(1, 1)
    assert list(index.steps) == [1, 2, again]
    assert trial.tensor("w").value(again)[0, 0] == 7
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("w").value(1)


def folder_of(root: Path, key: str = "") -> SourceFolder:
    """Return a folder as the recognition passes it."""

    def names(path: Path) -> list[str]:
        if not path.is_dir():
            return []
        return sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir())

    base = root / key
    return SourceFolder(
        key, names(base), lambda name: names(base / name), lambda name: (base / name).read_bytes()
    )


def test_a_run_is_recognised_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run / "checkpoint-5" / "model.safetensors", {"w": W})
    write(run / "checkpoint-10" / "unet" / "model.safetensors", {"w": W})
    (run / "checkpoint-20").mkdir()
    (found,) = FORMAT.recognize(folder_of(tmp_path, "run/"))
    assert found.kind == KIND
    assert found.key == "run/"
    assert "checkpoint-10" in found.reason
    assert not [*FORMAT.recognize(folder_of(tmp_path))]
    assert not [*FORMAT.recognize(folder_of(tmp_path, "run/checkpoint-5/"))]
    assert [*FORMAT.recognize(folder_of(run / "checkpoint-5"))]
    assert not [*FORMAT.recognize(folder_of(run / "checkpoint-20"))]


def test_pickles_are_never_opened() -> None:
    assert refusal(["model.safetensors", "pytorch_model.bin"]) is None
    assert refusal(["config.json", "optimizer.pt", "rng_state.pth"]) is None
    assert "save_safetensors" in str(refusal(["pytorch_model.bin", "optimizer.pt"]))
    assert "dcp_to_torch" in str(refusal([".metadata", "__0_0.distcp"]))
    recognized = Recognized(KIND, "run/model.pt", "")
    with pytest.raises(SMDebugValueError, match="pickle"):
        FORMAT.open(LocalStore("."), recognized)


class TestCheckpointContract(SourceContract):
    """Checkpoints keep the contract of sources."""

    source_format: ClassVar[SourceFormat] = FORMAT
    has_restarts: ClassVar[bool] = False

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        for step, values in rows:
            path = folder / f"checkpoint-{step}" / "model.safetensors"
            write(path, {name: np.array([value]) for name, value in values.items()})


class TestRemoteCheckpointContract(TestCheckpointContract):
    """Checkpoints in a store over a network keep it too."""

    def store(self, folder: Path) -> TrialStore:
        return CountingStore(LocalStore(folder), REMOTE)
