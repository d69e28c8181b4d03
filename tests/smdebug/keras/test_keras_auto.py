import json
from pathlib import Path

import hooked
import pytest
import training_scripts
from auto_host import FOLDER, SITE, document

pytest.importorskip("keras", reason="keras is not installed.")
pytest.importorskip("torch", reason="torch is not installed.")
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


def trained(tmp_path: Path, text: str, *collections: str) -> tuple[str, str, Path]:
    """Run a script as `rule-runner train` does; return what it wrote, and its trial."""
    root = tmp_path / "trial"
    (tmp_path / "hook.json").write_text(json.dumps(document(root, *collections)))
    more = {"PYTHONPATH": str(SITE), FOLDER: str(tmp_path)}
    done = training_scripts.python(tmp_path, BEGIN + text, more)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, root


def test_fit_is_saved_once_and_stays_the_same(tmp_path: Path) -> None:
    text = "print(model.fit(x, y, batch_size=8, epochs=2, verbose=0).history)\n"
    text += "model.fit(x, y, batch_size=8, verbose=0, callbacks=[keras.callbacks.Callback()])\n"
    text += "other = made()\nother.fit(x, y, verbose=0)"
    out, err, root = trained(tmp_path, text, "losses", "gradients", "trees")
    assert out == training_scripts.python(tmp_path, BEGIN + text, {}).stdout
    assert err == (
        "rule-runner: The script fits a further model, which is not saved: the trial is the "
        "first.\n"
    )
    trial = hooked.opened(root)
    assert trial.steps() == list(range(12))
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert len(trial.tensor_names(collection="gradients")) == 2


def test_hook_of_the_script_and_made_lists_are_left_alone(tmp_path: Path) -> None:
    text = """
made_list = keras.callbacks.CallbackList([], add_history=True, model=model)
model.fit(x, y, verbose=0, callbacks=made_list)
from smdebug.keras import KerasHook
model.fit(x, y, verbose=0, callbacks=KerasHook("own"))
"""
    _, err, root = trained(tmp_path, text, "losses")
    assert "A list of callbacks that is made already takes no hook: nothing is saved." in err
    assert (root.exists(), (tmp_path / "own").exists()) == (False, True)


def test_wrong_call_fails_as_ever(tmp_path: Path) -> None:
    text = "try:\n    model.fit(x, y, nonsense=1)\nexcept TypeError:\n    print('refused')"
    out, _, root = trained(tmp_path, text, "losses")
    assert (out, root.exists()) == ("refused\n", False)
