"""What real writers leave in event files is read as they meant it, live and afterwards."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import NAME, event_file, framed

from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.open import open_sources
from rule_core.sources.recognize import recognize, source_folder
from rule_core.sources.tensorboard import FORMAT
from rule_core.storage.local import LocalStore

WEIGHTS = np.array([-1.0, 0.5, 3.0, 3.0])


def opened(path: Path) -> SourceIndex:
    store = LocalStore(path)
    folder = source_folder(store, "")
    (run,) = recognize(folder, {"tensorboard": FORMAT}).runs
    return open_sources(store, run.sources)


def columns(index: SourceIndex) -> dict[str, Any]:
    return {
        f"{column.lane.mode.name} {name}": [*zip(column.steps, column.values, strict=False)]
        for record in index._records
        for name, column in record.columns.items()
    }


def written(writer: Any, path: Path) -> tuple[SourceIndex, dict[str, Any]]:
    """Return the index that followed the writer, and what is read afterwards."""
    live = None
    for step in range(6):
        writer.add_scalar("loss", float("nan") if step == 3 else step / 2, step)
        writer.add_scalar("loss", -1.0, step) if step == 5 else None
        writer.add_histogram("weights", WEIGHTS, step)
        writer.add_text("text", "words", step)
        writer.add_scalars("both", {"train": step, "val": 2 * step}, step)
        writer.flush()
        live = live or opened(path)
        live.refresh()
    writer.close()
    assert live is not None
    live.refresh()
    afterwards = opened(path)
    afterwards.refresh()
    np.testing.assert_equal(columns(live), columns(afterwards))
    assert not afterwards.file_problems.problems
    assert live.segments == afterwards.segments == [0, (1 << 48) + 5]
    weights = afterwards._records[0].columns["weights"]
    assert weights.reductions is not None
    known = {
        name: number
        for (name, _), number in zip(weights.reductions, weights.values[:6], strict=True)
    }
    assert known == pytest.approx(
        {
            **{name: getattr(WEIGHTS, name)() for name in ("min", "max", "mean", "std", "sum")},
            "l2": np.linalg.norm(WEIGHTS),
        }
    )
    return afterwards, columns(afterwards)


def test_torch_writes_a_run(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    tensorboard = pytest.importorskip(
        "torch.utils.tensorboard", reason="tensorboard is not installed."
    )
    index, found = written(tensorboard.SummaryWriter(str(tmp_path)), tmp_path)
    np.testing.assert_equal(found["TRAIN loss"][3], (3, np.nan))
    assert found["TRAIN both"] == [(step, step) for step in range(6)]
    assert found["EVAL both"] == [(step, 2 * step) for step in range(6)]
    assert {lane.mode for lane in index._lanes()} == {ModeKeys.TRAIN, ModeKeys.EVAL}


def test_torch_writes_numbers_in_several_forms(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    tensorboard = pytest.importorskip(
        "torch.utils.tensorboard", reason="tensorboard is not installed."
    )
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("double", 0.1, 1, new_style=True, double_precision=True)
        writer.add_scalar("new", 0.1, 2, new_style=True)
        writer.add_image("image", np.zeros((3, 8, 8)), 3)
        writer.add_hparams({"lr": 0.1}, {"result": 0.5}, run_name=".")
    index = opened(tmp_path)
    index.refresh()
    found = columns(index)
    assert found["TRAIN double"] == [(1, 0.1)]
    assert found["TRAIN new"] == [(2, np.float32(0.1))]
    assert {*found} == {"TRAIN double", "TRAIN new", "TRAIN result"}


def test_tensorboardx_writes_a_run(tmp_path: Path) -> None:
    writers = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed.")
    index, found = written(writers.SummaryWriter(str(tmp_path)), tmp_path)
    np.testing.assert_equal(found["TRAIN loss"][3], (3, np.nan))
    assert {*found} == {"TRAIN loss", "TRAIN weights"}  # the curves are runs of their own
    assert [lane.mode for lane in index._lanes()] == [ModeKeys.TRAIN]


def test_summaries_of_tensorflow_are_read(tmp_path: Path) -> None:
    protocol = pytest.importorskip("tensorboard.compat.proto.event_pb2", reason="no tensorboard.")
    scalar = pytest.importorskip("tensorboard.plugins.scalar.summary_v2", reason="no tensorboard.")
    histogram = pytest.importorskip("tensorboard.plugins.histogram.summary_v2", reason="likewise.")
    summaries = [scalar.scalar_pb("loss", 0.25), histogram.histogram_pb("weights", WEIGHTS)]
    events = [protocol.Event(wall_time=1.0, step=7, summary=summary) for summary in summaries]
    content = event_file(*(framed(event.SerializeToString()) for event in events))
    for folder in ("train", "validation"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / NAME).write_bytes(content)
    index = opened(tmp_path)
    index.refresh()
    (first,) = {name for name in columns(index) if name.startswith("TRAIN loss")}
    assert columns(index)[first] == [(7, 0.25)]
    assert columns(index)[first.replace("TRAIN", "EVAL")] == [(7, 0.25)]
    (weights,) = (c for n, c in index._records[0].columns.items() if n.startswith("weights"))
    assert (weights.reductions, [*weights.values]) == (
        (("min", False), ("max", False)),
        [-1.0, 3.0],
    )


def test_keras_writes_a_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="tensorflow is not installed.")
    keras = pytest.importorskip("keras", reason="keras is not installed.")
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    data = np.ones((8, 2)), np.zeros((8, 1))
    callback = keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1)
    history = model.fit(*data, validation_data=data, epochs=3, callbacks=[callback], verbose=0)
    index = opened(tmp_path)
    index.refresh()
    found = columns(index)
    for mode, name in (("TRAIN", "loss"), ("EVAL", "val_loss")):
        values = [value for _, value in found[f"{mode} epoch_loss"]]
        assert values == pytest.approx(history.history[name], rel=1e-6)
