"""The tables that real writers leave: Lightning, Keras and pandas."""

import csv
import os
from pathlib import Path

import pytest
from source_files import Followed, recognized

from rule_core.sources.rows.csv_table import FORMAT
from rule_core.storage.local import LocalStore


def followed(folder: Path, name: str) -> Followed:
    files = {name: (folder / name).read_bytes()}
    assert [item.key for item in recognized(FORMAT, files)] == [name]
    return Followed(FORMAT, name, store=LocalStore(folder))


def test_lightning_rewrites_its_file_for_a_new_column(tmp_path: Path) -> None:
    loggers = pytest.importorskip("lightning.pytorch.loggers", reason="lightning is not installed.")
    logger = loggers.CSVLogger(str(tmp_path), name="", version="", flush_logs_every_n_steps=1)
    logger.log_metrics({"train_loss": 1.0, "epoch": 0}, 0)
    folder = Path(logger.log_dir)
    run = followed(folder, "metrics.csv")
    run.look()
    for step in range(1, 6):
        logger.log_metrics({"train_loss": float("nan"), "epoch": step // 2}, step)
        if step % 2:
            logger.log_metrics({"val_loss": 2.0, "epoch": step // 2, f"new_{step}": 1.0}, step)
        run.look()
    logger.finalize("success")
    content = run.end()
    assert run.problems == []
    assert repr(content) == repr(followed(folder, "metrics.csv").end())
    assert [step for step, _ in content["train_loss"]] == ["0", "1", "2", "3", "4", "5"]
    assert [step for step, _ in content["val_loss"]] == ["1", "3", "5"]
    assert run.index.segments == []


def test_keras_appends_another_training(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras", reason="keras is not installed.")
    for append in (False, True):
        # With torch, Model.fit of Keras 3.15 passes tensors on, at which this callback fails.
        callback = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"), append=append)
        callback.set_model(keras.Sequential())
        callback.on_train_begin()
        callback.on_epoch_end(0, {"loss": 1.5, "accuracy": float("nan")})
        callback.on_epoch_end(1, {"loss": 1.25, "accuracy": 0.5, "val_loss": 2.0})
        callback.on_train_end()
    run = followed(tmp_path, "log.csv")
    steps = ["0", "1", "0 of segment 2", "1 of segment 2"]
    content = run.end()
    assert [step for step, _ in content["loss"]] == steps
    assert [step for step, _ in content["accuracy"]] == steps
    assert content["val_loss"] == [("1", 2.0), ("1 of segment 2", 2.0)]
    assert run.problems == []


def test_pandas_writes_an_index(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed.")
    frame = pandas.DataFrame({"step": [1.0, 2.0], "loss": [float("inf"), None]})
    frame.to_csv(tmp_path / "a.csv")
    assert followed(tmp_path, "a.csv").end() == {"loss": [("1", float("inf"))]}


def test_dict_writer_quotes_what_needs_it(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["note", "iteration", "loss, mean"], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerow({"note": 'a "b"\nc', "iteration": 1, "loss, mean": 0.1 + 0.2})
    assert followed(tmp_path, "a.csv").end() == {"loss, mean": [("1", 0.1 + 0.2)]}
