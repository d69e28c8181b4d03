"""Files for TensorBoard, read by TensorBoard's own reader."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects

from rule_core.saving.hook import Hook
from rule_core.saving.tensorboard_writer import TensorBoardWriter
from smdebug import Collection, ReductionConfig, SaveConfig, modes

pytest.importorskip("tensorboard", reason="tensorboard is not installed.")


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"histograms": 0}).Reload()


def histogram(folder: Path, name: str) -> tuple[float, ...]:
    value = read(folder).Histograms(name)[0].histogram_value
    assert sum(value.bucket) == value.num
    assert len(value.bucket) == len(value.bucket_limit)
    return value.min, value.max, value.num, value.sum, value.sum_squares


def train(hook: Hook) -> None:
    with hook:
        for step in range(3):
            hook.save_tensor("weights", np.arange(6.0).reshape(2, 3) * step)
            hook.save_tensor("loss", np.float32(1 / (step + 1)), "losses")
            hook.save_scalar("accuracy", step / 4)
            hook.step()
        hook.set_mode(modes.EVAL)
        hook.save_tensor("loss", np.float32(7), "losses")
        hook.step()


def test_a_hook_exports_scalars_and_histograms_to_the_configured_folder(tmp_path: Path) -> None:
    folder = tmp_path / "board"
    train(
        Hook(
            tmp_path / "trial",
            tensorboard_dir=str(folder),
            save_config=SaveConfig(save_interval=1),
            save_all=True,
        )
    )
    events = read(folder)
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [
        (0, 1.0),
        (1, 0.5),
        (2, pytest.approx(1 / 3)),
    ]
    assert [event.value for event in events.Scalars("scalar/accuracy")] == [0.0, 0.25, 0.5]
    assert [event.step for event in events.Histograms("weights")] == [0, 1, 2]
    last = events.Histograms("weights")[2].histogram_value
    assert (last.min, last.max, last.num, last.sum, last.sum_squares) == (0, 10, 6, 30, 220)
    assert [(event.step, event.value) for event in read(folder / "EVAL").Scalars("loss")] == [
        (3, 7.0)
    ]


def test_the_folder_is_in_the_trial_by_default(tmp_path: Path) -> None:
    train(Hook(tmp_path, export_tensorboard=True, save_config=SaveConfig(save_interval=1)))
    assert [event.step for event in read(tmp_path / "tensorboard").Scalars("loss")] == [0, 1, 2]


def test_save_histogram_selects_tensors_also_where_reductions_are_saved(tmp_path: Path) -> None:
    mean = ReductionConfig(["mean"])
    hook = Hook(
        tmp_path / "trial",
        tensorboard_dir=str(tmp_path / "board"),
        save_config=SaveConfig(save_interval=1),
        include_collections=["shown", "hidden"],
        collections=[
            Collection("shown", ["^shown"], reduction_config=mean),
            Collection("hidden", ["^hidden"], save_histogram=False),
        ],
    )
    with hook:
        hook.save_tensor("shown", np.arange(4.0), "shown")
        hook.save_tensor("hidden", np.arange(4.0), "hidden")
        hook.step()
    assert read(tmp_path / "board").Tags()["histograms"] == ["shown"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 2.0], (2, 2, 2, 4, 8)),
        ([0.0, np.nan, 1.0, np.inf], (0, 1, 2, 1, 1)),
        ([1.0, np.nextafter(1, 2)], (1, np.nextafter(1, 2), 2, 2, 2)),
        ([-1.7e308, 1.7e308], (-1.7e308, 1.7e308, 2, 0, np.inf)),
        (np.array([3, 4], np.int8), (3, 4, 2, 7, 25)),
        ([True, False], (0, 1, 2, 1, 1)),
    ],
)
def test_histograms_of_odd_values(tmp_path: Path, values: Any, expected: tuple[float, ...]) -> None:
    writer = TensorBoardWriter(str(tmp_path))
    writer.add(0, modes.GLOBAL, 1.0, [], {"values": np.array(values)})
    writer.close()
    assert histogram(tmp_path, "values") == pytest.approx(expected)


def test_what_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    writer = TensorBoardWriter(str(tmp_path))
    names = np.array(["a", "b"])
    large = np.array([1e300])
    arrays = [("text", names[:1]), ("complex", np.array([1j])), ("large", large)]
    writer.add(0, modes.GLOBAL, 1.0, arrays, {"names": names, "nan": np.full(2, np.nan)})
    writer.add(1, modes.TRAIN, 1.0, [], {"names": names, "empty": np.zeros(0)})
    writer.close()
    events = read(tmp_path)
    assert (events.Tags()["scalars"], events.Tags()["histograms"]) == (["large"], [])
    assert events.Scalars("large")[0].value == np.inf
    assert not (tmp_path / "TRAIN").exists()


def test_a_folder_in_s3_has_the_file_at_the_end(aws_endpoint: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    folder = f"s3://{s3_objects.BUCKET}/board"
    writer = TensorBoardWriter(folder)
    writer.add(3, modes.GLOBAL, 1.0, [("loss", np.ones(1))], {})
    writer.close()
    for key, content in s3_objects.content(aws_endpoint, "board/").items():
        (tmp_path / key.removeprefix("board/")).write_bytes(content)
    assert [event.step for event in read(tmp_path).Scalars("loss")] == [3]
