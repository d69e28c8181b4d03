"""DebuggerCallback for Keras: a folder is enough, and each trial ends with its training."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed.")
os.environ.setdefault("KERAS_BACKEND", "torch")  # Keras reads it once, when it is imported
keras = pytest.importorskip("keras", reason="keras is not installed.")
if keras.backend.backend() != "torch":
    pytest.skip("Keras runs on another backend than torch.", allow_module_level=True)

import smdebug.keras as smd
from rule_core.exceptions import SMDebugRuntimeError
from rule_core.trials.create_trial import create_trial
from rule_core.trials.trial import Trial

# Keras itself does that with tensors of torch, in a fit without any callback too.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
POINTS = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
LABELS = POINTS.sum(axis=1, keepdims=True)
TRAIN, EVAL, PREDICT = smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT


def model() -> Any:
    keras.utils.set_random_seed(0)
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, name="last")])
    made.compile("sgd", "mse")
    return made


def opened(root: Path) -> Trial:
    return create_trial(str(root), timeout=0)


def test_a_folder_is_enough(tmp_path: Path) -> None:
    watching = smd.DebuggerCallback(
        tmp_path / "x", include_collections=["gradients"], on_error="raise"
    )
    model().fit(POINTS, LABELS, batch_size=5, epochs=30, verbose=0, callbacks=[watching])
    trial = opened(tmp_path / "x")
    assert trial.index.has_ended()
    assert trial.tensor("loss").steps() == [*range(100), 100, 110]
    name = trial.tensor_names(collection="gradients")[0]
    assert trial.tensor(name).steps() == [*range(0, 120, 10)]


def test_trainings_and_evaluations_are_one_trial_that_ends_each_time(tmp_path: Path) -> None:
    every = smd.SaveConfig(save_interval=1)
    watching = smd.DebuggerCallback(str(tmp_path / "x"), save_config=every, on_error="raise")
    trained, options = model(), {"batch_size": 5, "verbose": 0, "callbacks": [watching]}
    trained.fit(POINTS, LABELS, validation_data=(POINTS, LABELS), **options)
    trial = opened(tmp_path / "x")
    assert trial.index.has_ended()
    assert (len(trial.steps(mode=TRAIN)), len(trial.steps(mode=EVAL))) == (4, 4)
    trained.fit(POINTS, LABELS, **options)
    trained.evaluate(POINTS, LABELS, **options)
    trained.predict(POINTS, **options)
    trial = opened(tmp_path / "x")
    assert trial.index.has_ended()
    assert (len(trial.steps(mode=TRAIN)), len(trial.steps(mode=EVAL))) == (8, 8)
    assert watching.hook is not None
    assert watching.hook.mode_steps == {TRAIN: 7, EVAL: 7, PREDICT: 3}


def test_a_fit_that_fails_is_continued(tmp_path: Path) -> None:
    watching = smd.DebuggerCallback(tmp_path / "x", on_error="raise")

    def fail(batch: int, **_: Any) -> None:
        if batch == 2:
            raise ArithmeticError

    failing = keras.callbacks.LambdaCallback(on_train_batch_end=fail)
    trained = model()
    with pytest.raises(ArithmeticError):
        trained.fit(POINTS, LABELS, batch_size=5, verbose=0, callbacks=[watching, failing])
    trained.fit(POINTS, LABELS, batch_size=5, verbose=0, callbacks=[watching])
    trial = opened(tmp_path / "x")
    assert trial.index.has_ended()
    assert trial.tensor("loss").steps() == [*range(7)]


def test_a_folder_with_a_trial_is_refused_when_the_training_begins(tmp_path: Path) -> None:
    options = {"batch_size": 5, "verbose": 0}
    model().fit(POINTS, LABELS, callbacks=[smd.DebuggerCallback(tmp_path / "x")], **options)
    with pytest.raises(SMDebugRuntimeError, match="resume=True"):
        model().fit(POINTS, LABELS, callbacks=[smd.DebuggerCallback(tmp_path / "x")], **options)
