import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hooked
import pytest
from auto_host import Host

from rule_core.saving.auto_hook import numbered_path

os.environ.setdefault("KERAS_BACKEND", "torch")  # Keras reads it once, when it is imported
pytest.importorskip("keras", reason="keras is not installed.")
pytest.importorskip("torch", reason="torch is not installed.")
Trained = Callable[..., tuple[str, str, Path]]
BEGIN = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np

keras.utils.set_random_seed(1)
x = np.random.normal(size=(32, 4)).astype("float32")
y = x.sum(1)
def made():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model
model = made()
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host("keras")
    yield host
    assert host.close() == 0


@pytest.fixture
def trained(host: Host, tmp_path: Path) -> Trained:
    """Run a script as `rule-runner train` does; return what it wrote, and its trial."""
    return lambda text, *collections: host.train(tmp_path, BEGIN + text, *collections)


def test_each_model_that_is_fitted_is_a_trial(host: Host, trained: Trained, tmp_path: Path) -> None:
    text = "print(model.fit(x, y, batch_size=8, epochs=2, verbose=0).history)\n"
    text += "model.fit(x, y, batch_size=8, verbose=0, callbacks=[keras.callbacks.Callback()])\n"
    text += "other = made()\nother.fit(x, y, verbose=0)"
    out, err, root = trained(text, "losses", "gradients", "trees")
    assert out == host.print_alone(tmp_path, BEGIN + text)[0]
    assert err == ""
    assert hooked.opened(Path(numbered_path(root, 2))).steps() == [0]
    trial = hooked.opened(root)
    assert trial.steps() == list(range(12))
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert len(trial.tensor_names(collection="gradients")) == 2


def test_hook_of_the_script_and_made_lists_are_left_alone(trained: Trained, tmp_path: Path) -> None:
    text = """
made_list = keras.callbacks.CallbackList([], add_history=True, model=model)
model.fit(x, y, verbose=0, callbacks=made_list)
from smdebug.keras import KerasHook
model.fit(x, y, verbose=0, callbacks=KerasHook("own"))
"""
    _, err, root = trained(text, "losses")
    assert "The script passes a CallbackList, which takes no hook: nothing is saved." in err
    assert (root.exists(), (tmp_path / "own").exists()) == (False, True)


def test_loop_of_the_script_is_named(trained: Trained) -> None:
    _, err, _ = trained("for _ in range(3):\n    model.train_on_batch(x, y)", "losses")
    assert err == "rule-runner: The script calls train_on_batch, which is not saved; only fit is.\n"


def test_wrong_call_fails_as_ever(trained: Trained) -> None:
    text = "try:\n    model.fit(x, y, nonsense=1)\nexcept TypeError:\n    print('refused')"
    out, _, root = trained(text, "losses")
    assert (out, root.exists()) == ("refused\n", False)
