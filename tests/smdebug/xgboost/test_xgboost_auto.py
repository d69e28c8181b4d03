import json
from pathlib import Path

import hooked
import pytest
import training_scripts
from auto_host import FOLDER, SITE, document

pytest.importorskip("xgboost", reason="xgboost is not installed.")
BEGIN = """
import numpy as np
import xgboost

x = np.random.default_rng(0).normal(size=(100, 3))
y = (x[:, 0] > 0).astype(int)
data = xgboost.DMatrix(x, y)
params = {"objective": "binary:logistic", "seed": 1}
"""


def trained(tmp_path: Path, text: str, *collections: str) -> tuple[str, str, Path]:
    """Run a script as `rule-runner train` does; return what it wrote, and its trial."""
    root = tmp_path / "trial"
    (tmp_path / "hook.json").write_text(json.dumps(document(root, *collections)))
    more = {"PYTHONPATH": str(SITE), FOLDER: str(tmp_path)}
    done = training_scripts.python(tmp_path, BEGIN + text, more)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, root


def test_training_is_saved_and_stays_the_same(tmp_path: Path) -> None:
    text = 'model = xgboost.train(params, data, 4, evals=[(data, "train")])\n'
    text += "print(model.predict(data).tolist())"
    out, err, root = trained(tmp_path, text, "losses", "trees", "predictions", "gradients")
    assert out == training_scripts.python(tmp_path, BEGIN + text, {}).stdout
    assert "rule-runner" not in err
    trial = hooked.opened(root)
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor_names(collection="losses") == ["train-logloss"]
    assert {"predictions", "trees/Node"} <= set(trial.tensor_names())


def test_estimator_is_saved_and_callbacks_are_kept(tmp_path: Path) -> None:
    text = """
stop = xgboost.callback.EarlyStopping(2)
model = xgboost.XGBClassifier(n_estimators=50, callbacks=[stop])
model.fit(x, y, eval_set=[(x, y)], verbose=False)
print(len(model.callbacks))
"""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed.")
    out, _, root = trained(tmp_path, text, "losses")
    assert out == "1\n"
    assert hooked.opened(root).tensor_names() == ["validation_0-logloss"]


def test_only_the_first_training_is_saved_and_what_goes_on_from_it(tmp_path: Path) -> None:
    text = """
evals = [(data, "train")]
model = xgboost.train(params, data, 2, evals=evals, verbose_eval=False)
xgboost.train(params, data, 2, evals=evals, xgb_model=model, verbose_eval=False)
xgboost.train(params, data, 2, evals=evals, verbose_eval=False)
"""
    _, err, root = trained(tmp_path, text, "losses")
    assert hooked.opened(root).steps() == [0, 1, 2, 3]
    assert "The script trains again, which is not saved: the trial is the first training's." in err


def test_hook_of_the_script_is_left_alone(tmp_path: Path) -> None:
    text = """
from smdebug.xgboost import Hook
xgboost.train(params, data, 2, callbacks=[Hook("own", hyperparameters=params)])
"""
    _, err, root = trained(tmp_path, text, "losses")
    assert ("rule-runner" in err, root.exists()) == (False, False)
    assert (tmp_path / "own").exists()


def test_wrong_call_fails_as_ever(tmp_path: Path) -> None:
    text = "try:\n    xgboost.train(params, data, nonsense=1)\nexcept TypeError as err:\n"
    text += "    print(type(err).__name__)"
    out, _, root = trained(tmp_path, text, "losses")
    assert (out, root.exists()) == ("TypeError\n", False)
