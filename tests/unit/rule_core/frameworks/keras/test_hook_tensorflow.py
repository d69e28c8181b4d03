"""The Keras hook on TensorFlow: gradients of `fit`, and loops with a tape.

Keras reads its backend once in a process, so each test runs a script.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rule_core.trials.create_trial import create_trial
from rule_core.trials.trial import Trial

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed."
    ),
]
MODEL = """
import sys
import keras, numpy as np, tensorflow as tf
import smdebug.tensorflow as smd

keras.utils.set_random_seed(0)
points = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
labels = points.sum(1, keepdims=True)
hidden = keras.layers.Dense(3, activation="relu", name="hidden")
model = keras.Sequential([keras.Input((4,)), hidden, keras.layers.Dense(1, name="last")], name="m")
hook = smd.KerasHook(
    sys.argv[1], save_config=smd.SaveConfig(save_interval=1), include_collections=COLLECTIONS,
    on_error="raise",
)
"""
FIT = """
model.compile(keras.optimizers.SGD(0.1), "mse", OPTIONS)
model.fit(points, labels, batch_size=5, verbose=0)  # compiled before the hook is there
before = model.get_weights()
model.fit(points, labels, batch_size=5, shuffle=False, verbose=0, callbacks=[hook])
hook.close()
np.savez(sys.argv[2], *before, *model.get_weights())
model.fit(points, labels, batch_size=5, verbose=0)
"""
TAPE = """
optimizer = hook.wrap_optimizer(keras.optimizers.SGD(0.1))
hook.register_model(model)
hook.add_to_collection("mine", model.trainable_variables[0])
hook.get_collection("mine").add_keras_layer(model.layers[-1], inputs=True)
loss, accuracy = keras.losses.MeanSquaredError(), keras.metrics.MeanAbsoluteError()
for first in range(0, 20, 5):
    data, truth = points[first : first + 5], labels[first : first + 5]
    with hook.wrap_tape(tf.GradientTape(persistent=True)) as tape:
        logits = model(data, training=True)
        value = loss(truth, logits)
    hook.save_tensor("y_labels", truth, "outputs")
    gradients = tape.gradient(value, model.variables)
    optimizer.apply_gradients(zip(gradients, model.variables))
    hook.record_tensor_value(tensor_name="accuracy", tensor_value=accuracy(truth, logits))
hook.close()
"""
COMPILED_TAPE = """
@tf.function
def step(data):
    with hook.wrap_tape(tf.GradientTape()) as tape:
        value = tf.reduce_sum(model(data))
    return tape.gradient(value, model.trainable_variables)

step(points)
hook.close()
"""


def ran(root: Path, script: str) -> str:
    """Run a script with the backend tensorflow; return what it logged."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(root / "trial"), str(root / "weights.npz")],
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def opened(root: Path) -> Trial:
    return create_trial(str(root / "trial"), timeout=0)


@pytest.mark.parametrize("options", ["jit_compile=True", "jit_compile=False", "run_eagerly=True"])
def test_gradients_of_a_fit_are_saved_and_the_fit_is_not_changed(
    tmp_path: Path, options: str
) -> None:
    model = MODEL.replace("COLLECTIONS", "['gradients', 'weights']")
    ran(tmp_path, model + FIT.replace("OPTIONS", options))
    trial = opened(tmp_path)
    assert trial.tensor_names(collection="gradients") == [
        *("gradients/m/hidden/biasGrad", "gradients/m/hidden/kernelGrad"),
        *("gradients/m/last/biasGrad", "gradients/m/last/kernelGrad"),
    ]
    weights = list(np.load(tmp_path / "weights.npz").values())
    kernel = weights[0]
    for step in range(4):
        kernel = kernel - np.float32(0.1) * trial.tensor("gradients/m/hidden/kernelGrad").value(
            step
        )
        saved = trial.tensor("m/hidden/kernel").value(step)
        assert np.allclose(kernel, saved, rtol=1e-5, atol=1e-6)
    assert np.array_equal(trial.tensor("m/hidden/kernel").value(3), weights[4])


def test_a_loop_with_a_tape_is_saved_as_documented(tmp_path: Path) -> None:
    collections = "['gradients', 'weights', 'biases', 'layers', 'optimizer_variables', 'mine']"
    ran(tmp_path, MODEL.replace("COLLECTIONS", collections) + TAPE)
    trial = opened(tmp_path)
    assert trial.steps() == [0, 1, 2, 3]
    assert {name: trial.tensor_names(collection=name) for name in ("losses", "metrics")} == {
        "losses": ["loss"],
        "metrics": ["accuracy"],
    }
    assert trial.tensor_names(collection="outputs") == ["predictions", "y_labels"]
    assert trial.tensor_names(collection="mine") == [
        *("last/inputs", "last/outputs", "m/hidden/kernel")
    ]
    assert len(trial.tensor_names(collection="gradients")) == 4
    assert "hidden/outputs" in trial.tensor_names(collection="layers")
    assert "sgd/learning_rate" in trial.tensor_names(collection="optimizer_variables")
    for name in ("m/hidden/kernel", "m/last/bias"):
        tensor = trial.tensor(name)
        stepped = tensor.value(0) - np.float32(0.1) * trial.tensor(f"gradients/{name}Grad").value(0)
        assert np.allclose(stepped, tensor.value(1), rtol=1e-5, atol=1e-6)
    loss = np.square(trial.tensor("y_labels").value(2) - trial.tensor("predictions").value(2))
    assert np.allclose(trial.tensor("loss").value(2), loss.mean())


def test_a_tape_in_compiled_code_is_named(tmp_path: Path) -> None:
    logged = ran(tmp_path, MODEL.replace("COLLECTIONS", "['gradients']") + COMPILED_TAPE)
    assert "Inside tf.function, what a tape records cannot be saved." in logged
