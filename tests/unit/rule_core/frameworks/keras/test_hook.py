"""The Keras hook: modes and steps, what each collection holds, and the model left as it was."""

import gc
import itertools
import json
import os
import subprocess
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_profiles import end_script, events, profiler_config
from trial_content import content

pytest.importorskip("torch", reason="torch is not installed.")
os.environ.setdefault("KERAS_BACKEND", "torch")  # Keras reads it once, when it is imported
keras = pytest.importorskip("keras", reason="keras is not installed.")
if keras.backend.backend() != "torch":
    pytest.skip("Keras runs on another backend than torch.", allow_module_level=True)

import smdebug.keras as smd
from builtin_rules import LossNotDecreasing, VanishingGradient
from rule_core.frameworks.keras import layers
from rule_core.trials.create_trial import create_trial
from rule_core.trials.trial import Trial

# Keras itself does that with tensors of torch, in a fit without any callback too.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
EACH = smd.SaveConfig(save_interval=1)
VARIABLES = ["hidden/bias", "hidden/kernel", "last/bias", "last/kernel"]
SIDES = ("inputs", "outputs")
POINTS = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
LABELS = POINTS.sum(axis=1, keepdims=True)


def model(*, optimizer: Any = "sgd", **kwargs: Any) -> Any:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(3, activation="relu", name="hidden")(inputs)
    squashed = keras.layers.Activation("tanh", name="squash")(hidden)
    made = keras.Model(inputs, keras.layers.Dense(1, name="last")(squashed))
    made.compile(optimizer, "mse", metrics=["mae"], **kwargs)
    return made


def fit(made: Any, *callbacks: Any, **kwargs: Any) -> Any:
    return made.fit(
        POINTS, LABELS, batch_size=5, shuffle=False, verbose=0, callbacks=callbacks, **kwargs
    )


def after_batches(look: Callable[..., Any]) -> Any:
    """Return a callback that looks at the end of each training batch."""
    return keras.callbacks.LambdaCallback(on_train_batch_end=look)


def opened(root: Path) -> Trial:
    return create_trial(str(root), timeout=0)


def test_losses_and_metrics_are_saved_by_mode(tmp_path: Path) -> None:
    made = model()
    logged: list[dict[str, float]] = []
    looking = after_batches(lambda _, logs: logged.append(dict(logs)))
    with smd.KerasHook(tmp_path, save_config=EACH, on_error="raise") as hook:
        history = fit(made, hook, looking, epochs=2, validation_data=(POINTS, LABELS))
        final = made.evaluate(POINTS, LABELS, batch_size=5, callbacks=[hook], verbose=0)
    trial = opened(tmp_path)
    assert {mode.name: trial.steps(mode=mode) for mode in smd.modes} == {
        "TRAIN": list(range(8)),
        "EVAL": list(range(12)),
        "PREDICT": [],
        "GLOBAL": list(range(20)),
    }
    assert sorted(trial.tensor_names()) == ["loss", "mae", "val_loss", "val_mae"]
    assert sorted(trial.tensor_names(collection="losses")) == ["loss", "val_loss"]
    assert sorted(trial.tensor_names(collection="metrics")) == ["mae", "val_mae"]
    for name in ("loss", "mae"):
        found = [trial.tensor(name).value(step, mode=smd.modes.TRAIN)[0] for step in range(8)]
        if name == "loss":  # of each batch; Keras logs the mean over those of the epoch so far
            found = [np.mean(found[step - step % 4 : step + 1]) for step in range(8)]
        assert found == pytest.approx([one[name] for one in logged])
        of_epochs = [trial.tensor(f"val_{name}").value(step) for step in (7, 15)]
        assert of_epochs == [[one] for one in history.history[f"val_{name}"]]
    losses = [trial.tensor("loss").value(step, mode=smd.modes.EVAL)[0] for step in range(8, 12)]
    assert np.mean(losses) == pytest.approx(final[0])


def test_predictions_are_steps_of_their_own_mode(tmp_path: Path) -> None:
    made = model()
    with smd.KerasHook(
        tmp_path, save_config=EACH, include_collections="outputs", on_error="raise"
    ) as hook:
        found = made.predict(POINTS, batch_size=10, callbacks=[hook], verbose=0)
    trial = opened(tmp_path)
    assert trial.steps(mode=smd.modes.PREDICT) == [0, 1]
    np.testing.assert_array_equal(trial.tensor("predictions").value(1), found[10:])


def test_gradients_are_those_of_the_backend(tmp_path: Path) -> None:
    made = model()
    seen: list[dict[str, Any]] = []

    def look(_: int, **__: Any) -> None:
        seen.append({one.path: one.value.grad.numpy().copy() for one in made.trainable_weights})

    with smd.KerasHook(
        tmp_path, save_config=EACH, include_collections=["gradients"], on_error="raise"
    ) as hook:
        fit(made, hook, after_batches(look))
        made.evaluate(POINTS, LABELS, callbacks=[hook], verbose=0)
    trial = opened(tmp_path)
    names = [f"gradients/{name}Grad" for name in VARIABLES]
    assert sorted(trial.tensor_names(collection="gradients")) == names
    for step in range(4):
        for name in VARIABLES:
            saved = trial.tensor(f"gradients/{name}Grad").value(step)
            np.testing.assert_array_equal(saved, seen[step][name])
    assert trial.tensor(names[0]).steps() == [0, 1, 2, 3]
    assert len(trial.steps()) == 5


def test_gradients_are_saved_without_the_scale_of_the_loss(tmp_path: Path) -> None:
    found = []
    for optimizer in (
        keras.optimizers.SGD(),
        # Its scale doubles after the second step.
        keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(), initial_scale=1024.0, dynamic_growth_steps=2
        ),
    ):
        root = tmp_path / optimizer.name
        with smd.KerasHook(
            root, save_config=EACH, include_collections=["gradients"], on_error="raise"
        ) as hook:
            fit(model(optimizer=optimizer), hook)
        tensor = opened(root).tensor("gradients/hidden/kernelGrad")
        found.append([tensor.value(step) for step in range(4)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_variables_are_saved_as_they_are_after_the_step(tmp_path: Path) -> None:
    made = model(optimizer="adam")
    seen: list[dict[str, Any]] = []

    def look(_: int, **__: Any) -> None:
        variables = [*made.variables, *made.optimizer.variables]
        seen.append({one.path: keras.ops.convert_to_numpy(one) for one in variables})

    with smd.KerasHook(
        tmp_path,
        save_config=EACH,
        include_collections=["weights", "biases", "optimizer_variables"],
        on_error="raise",
    ) as hook:
        fit(made, hook, after_batches(look))
    trial = opened(tmp_path)
    own = {one.path for one in made.optimizer.variables}
    assert set(trial.tensor_names(collection="weights")) == {"hidden/kernel", "last/kernel"}
    assert set(trial.tensor_names(collection="biases")) == {"hidden/bias", "last/bias"}
    assert set(trial.tensor_names(collection="optimizer_variables")) == own
    for step in range(4):
        for name in {*own, *VARIABLES}:
            np.testing.assert_array_equal(trial.tensor(name).value(step), seen[step][name])


def test_layers_and_their_kinds_are_seen_in_the_calls(tmp_path: Path) -> None:
    made = model()
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True, on_error="raise") as hook:
        made.evaluate(POINTS, LABELS, batch_size=20, callbacks=[hook], verbose=0)
    trial = opened(tmp_path)
    assert {
        name: sorted(trial.tensor_names(collection=name))
        for name in ("inputs", "outputs", "labels", "predictions", "layers")
    } == {
        "inputs": ["inputs"],
        "outputs": ["labels", "predictions"],
        "labels": ["labels"],
        "predictions": ["predictions"],
        "layers": [f"{name}/{side}" for name in ("hidden", "last", "squash") for side in SIDES],
    }
    kinds = ("relu_input", "relu_output", "sigmoid_output", "tanh_input", "tanh_output")
    assert {
        one: trial.tensor_names(collection=one) for one in kinds if one in trial.collections()
    } == {
        "relu_output": ["hidden/outputs"],
        "tanh_input": ["squash/inputs"],
        "tanh_output": ["squash/outputs"],
    }
    hidden = made.get_layer("hidden")
    expected = keras.ops.convert_to_numpy(hidden(POINTS))
    np.testing.assert_array_equal(trial.tensor("inputs").value(0), POINTS)
    np.testing.assert_array_equal(trial.tensor("labels").value(0), LABELS)
    np.testing.assert_allclose(trial.tensor("hidden/outputs").value(0), expected, rtol=1e-6)
    np.testing.assert_array_equal(
        trial.tensor("squash/inputs").value(0), trial.tensor("hidden/outputs").value(0)
    )


def test_only_collections_that_are_asked_for_are_saved(tmp_path: Path) -> None:
    with smd.KerasHook(
        tmp_path, save_config=EACH, include_collections=["relu_output"], on_error="raise"
    ) as hook:
        fit(model(), hook)
    trial = opened(tmp_path)
    assert sorted(trial.tensor_names()) == ["hidden/outputs", "loss", "mae"]
    assert trial.tensor_names(collection="relu_output") == ["hidden/outputs"]


def test_a_layer_that_is_called_twice_has_two_outputs(tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    shared = keras.layers.Dense(4, name="shared")
    made = keras.Model(inputs, shared(shared(inputs)))
    made.compile("sgd", "mse")
    with smd.KerasHook(
        tmp_path, save_config=EACH, include_regex="shared/", on_error="raise"
    ) as hook:
        made.predict(POINTS, callbacks=[hook], verbose=0)
    trial = opened(tmp_path)
    found = {name: trial.tensor(name).value(0) for name in trial.tensor_names(collection="default")}
    assert sorted(found) == [
        *("shared/bias", "shared/inputs", "shared/inputs_1", "shared/kernel"),
        *("shared/outputs", "shared/outputs_1"),
    ]
    np.testing.assert_array_equal(found["shared/inputs_1"], found["shared/outputs"])


class Twice(keras.layers.Layer):
    """A layer whose shapes Keras finds out by calls without values."""

    def call(self, inputs: Any) -> Any:
        return 2 * inputs


def test_a_model_that_is_built_by_its_first_batch_is_seen(tmp_path: Path) -> None:
    made = keras.Sequential([Twice(name="twice"), keras.layers.Dense(2, name="last")])
    made.compile("sgd", "mse")
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True, on_error="raise") as hook:
        made.predict(POINTS, callbacks=[hook], verbose=0)
    trial = opened(tmp_path)
    assert trial.tensor_names(regex="^twice/") == ["twice/inputs", "twice/outputs"]
    np.testing.assert_array_equal(trial.tensor("twice/outputs").value(0), 2 * POINTS)


def is_watched(made: Any) -> bool:
    return any({"call", "compute_loss"} & {*vars(one)} for one in (made, *made.layers))


def test_the_result_is_the_same_with_and_without_the_hook(tmp_path: Path) -> None:
    plain, watched = model(optimizer="adam"), model(optimizer="adam")
    seen: list[bool] = []
    fit(plain)
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True, on_error="raise") as hook:
        assert is_watched(model()) is False
        watching = after_batches(lambda *_, **__: seen.append(is_watched(watched)))
        fit(watched, hook, watching, validation_data=(POINTS, LABELS))
        assert is_watched(watched) is False
    assert seen == [True] * 4
    for one, other in zip(plain.get_weights(), watched.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_closed_hook_keeps_no_model_alive(tmp_path: Path) -> None:
    made = model()
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True, on_error="raise") as hook:
        fit(made, hook)
    reference = weakref.ref(made)
    del made
    gc.collect()
    assert reference() is None


def test_an_error_turns_the_hook_off_and_leaves_the_training_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, watched = model(), model()
    fit(plain)

    def broken(_: Any) -> Any:
        msg = "No."
        raise KeyError(msg)

    monkeypatch.setattr(layers, "collections_of", broken)
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True) as hook:
        fit(watched, hook)
    for one, other in zip(plain.get_weights(), watched.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert caplog.messages == [
        "The hook is off for the rest of the training job: KeyError: 'No.'",
        *caplog.messages[1:],
    ]


def test_what_compiled_code_hides_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = model()
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True, on_error="raise") as hook:
        fit(made, hook, epochs=2)
        made.predict(POINTS, callbacks=[hook], verbose=0)
    assert caplog.messages == [
        "Inputs and outputs of layers cannot be saved in compiled code.",
        "Gradients can be saved with the backends torch and tensorflow.",
    ]
    trial = opened(tmp_path)
    assert set(VARIABLES) < set(trial.tensor_names())
    assert trial.tensor("predictions").steps(mode=smd.modes.PREDICT) == [0]
    assert not [name for name in trial.tensor_names() if name.startswith("gradients/")]


def test_reductions_and_half_precision(tmp_path: Path) -> None:
    made = model()
    made.get_layer("hidden").kernel.assign(np.full((4, 3), 2.0))
    half = keras.Sequential([keras.layers.Dense(2, dtype="bfloat16", name="half")], name="small")
    half.compile("sgd", "mse")
    reductions = smd.ReductionConfig(reductions=["max"], abs_norms=["l2"], save_shape=True)
    with smd.KerasHook(
        tmp_path,
        save_config=EACH,
        include_collections=["weights"],
        reduction_config=reductions,
        on_error="raise",
    ) as hook:
        made.predict(POINTS, callbacks=[hook], verbose=0)
        half.predict(POINTS, callbacks=[hook], verbose=0)
        hook.save_scalar("given", keras.ops.ones(1))
    trial = opened(tmp_path)
    kernel = trial.tensor("hidden/kernel")
    assert kernel.reduction_value(0, "max") == 2.0
    assert kernel.reduction_value(0, "l2", abs=True) == pytest.approx(np.sqrt(48))
    assert kernel.shape(0) == (4, 3)
    assert "small/half/kernel" in trial.tensor_names()
    assert trial.tensor("scalar/given").value(2) == [1.0]


def test_rules_judge_the_trial(tmp_path: Path) -> None:
    with smd.KerasHook(
        tmp_path, save_config=EACH, include_collections=["gradients"], on_error="raise"
    ) as hook:
        fit(model(optimizer=keras.optimizers.SGD(0.0)), hook, epochs=2)
    trial = opened(tmp_path)
    rule = LossNotDecreasing(trial, num_steps=4, mode="TRAIN", literal=True)
    assert any(rule.invoke_at_step(step) for step in trial.steps())
    rule = VanishingGradient(trial)
    assert not any(rule.invoke_at_step(step) for step in trial.steps())


def test_scripts_find_the_hook_where_it_was(tmp_path: Path) -> None:
    import smdebug.tensorflow as old_place

    names, old_names = ({*vars(place)} for place in (smd, old_place))
    assert {name for name in names if name[0].isupper() or "_hook" in name} <= old_names
    with old_place.KerasHook(tmp_path) as hook:
        assert old_place.get_hook() is hook
        optimizer = keras.optimizers.SGD()
        assert hook.wrap_optimizer(optimizer) is optimizer


@pytest.mark.old_library
@pytest.mark.skipif(
    "RULE_RUNNER_OLD_SMDEBUG_PYTHON" not in os.environ,
    reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
)
def test_the_old_library_reads_the_trial(tmp_path: Path) -> None:
    with smd.KerasHook(tmp_path, save_config=EACH, save_all=True, on_error="raise") as hook:
        fit(model(), hook, validation_data=(POINTS, LABELS))
    script = Path(__file__).parents[4] / "system" / "old_library" / "read_trial.py"
    done = subprocess.run(
        [os.environ["RULE_RUNNER_OLD_SMDEBUG_PYTHON"], str(script), str(tmp_path)],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0"},
        text=True,
        timeout=100,
    )
    ours = content(opened(tmp_path), dict(smd.modes.__members__))
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(json.dumps(ours))


def test_learning_rate_of_a_schedule(tmp_path: Path) -> None:
    rates = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])
    options = {"save_config": EACH, "include_collections": ["learning_rates"]}
    with smd.KerasHook(tmp_path, on_error="raise", **options) as hook:
        fit(model(optimizer=keras.optimizers.SGD(rates)), hook)
    trial = opened(tmp_path)
    assert trial.tensor_names(collection="learning_rates") == ["optimizer/lr/0"]
    saved = trial.tensor("optimizer/lr/0")
    assert [float(saved.value(step)) for step in range(4)] == [0.5, 0.5, 0.25, 0.25]


def test_batches_are_profiled_as_steps_without_the_time_between_them(tmp_path: Path) -> None:
    python = {"PythonProfilingConfig": {"StartStep": 1, "NumSteps": 1}}
    config = profiler_config(tmp_path, **python)
    with smd.KerasHook(tmp_path / "trial", profiler_config=config, on_error="raise") as hook:
        made = model()
        fit(made, hook, validation_data=(POINTS[:5], LABELS[:5]))
        made.predict(POINTS[:5], callbacks=[hook], verbose=0)
    end_script()
    recorded = events(tmp_path)
    assert [event.event_phase for event in recorded] == [
        *["Step:ModeKeys.TRAIN"] * 4,
        "Step:ModeKeys.EVAL",
        "Step:ModeKeys.PREDICT",
    ]
    for before, after in itertools.pairwise(recorded):
        assert before.end_time < after.start_time
    spans = [path.parent.name for path in (tmp_path / "profile").rglob("python_stats")]
    assert sum("train-1-stepstart" in span for span in spans) == 1
