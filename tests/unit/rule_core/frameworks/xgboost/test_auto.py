from collections.abc import Callable, Iterator
from pathlib import Path

import hooked
import pytest
from auto_host import Host

from rule_core.saving.auto_hook import numbered_path

pytest.importorskip("xgboost", reason="xgboost is not installed.")
Trained = Callable[..., tuple[str, str, Path]]
BEGIN = """
import numpy as np
import xgboost

x = np.random.default_rng(0).normal(size=(100, 3))
y = (x[:, 0] > 0).astype(int)
data = xgboost.DMatrix(x, y)
params = {"objective": "binary:logistic", "seed": 1}
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host("xgboost")
    yield host
    assert host.close() == 0


@pytest.fixture
def trained(host: Host, tmp_path: Path) -> Trained:
    """Run a script as `rule-runner train` does; return what it wrote, and its trial."""
    return lambda text, *collections: host.train(tmp_path, BEGIN + text, *collections)


def test_training_is_saved_and_stays_the_same(host: Host, trained: Trained, tmp_path: Path) -> None:
    text = 'model = xgboost.train(params, data, 4, evals=[(data, "train")])\n'
    text += "print(model.predict(data).tolist())"
    out, err, root = trained(text, "losses", "trees", "predictions", "gradients")
    assert out == host.print_alone(tmp_path, BEGIN + text)[0]
    assert "rule-runner" not in err
    trial = hooked.opened(root)
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor_names(collection="losses") == ["train-logloss"]
    assert {"predictions", "trees/Node"} <= set(trial.tensor_names())


def test_estimator_is_saved_and_callbacks_are_kept(trained: Trained) -> None:
    text = """
stop = xgboost.callback.EarlyStopping(2)
model = xgboost.XGBClassifier(n_estimators=50, callbacks=[stop])
model.fit(x, y, eval_set=[(x, y)], verbose=False)
print(len(model.callbacks))
"""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed.")
    out, _, root = trained(text, "losses")
    assert out == "1\n"
    assert hooked.opened(root).tensor_names() == ["validation_0-logloss"]


CALLS = """
xgboost.train(params, data, 3, [(data, "train")])
xgboost.train(params, data, 3, [(data, "train")], None, None, None, {}, False, None, [Stop(9)])
xgboost.train(evals=[(data, "train")], dtrain=data, params=params, num_boost_round=3)
train(params, data, 3, evals=((data, "train"),), callbacks=(Stop(9),))
xgboost.cv(params, data, 3, 2)
xgboost.XGBClassifier(n_estimators=3).fit(x, y, eval_set=[(x, y)])
"""


def test_training_is_seen_however_it_is_called(
    host: Host, trained: Trained, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed.")
    text = f"from xgboost import train\nfrom xgboost.callback import EarlyStopping as Stop\n{CALLS}"
    out, err, root = trained(text, "losses")
    plain_out, plain_err = host.print_alone(tmp_path, BEGIN + text)
    assert out == plain_out
    # XGBoost warns of arguments by position, with and without us.
    assert err.count("FutureWarning") == plain_err.count("FutureWarning") > 0
    said = [line for line in err.splitlines() if line.startswith("rule-runner")]
    assert said == ["rule-runner: Of a cross-validation, only the mean metrics are saved."]
    for number in range(1, 7):
        trial = hooked.opened(Path(numbered_path(root, number)))
        assert trial.steps() == [0, 1, 2]
        names = trial.tensor_names(collection="losses")
        assert {name.partition("-")[2] for name in names} == {"logloss"}


def test_each_training_is_a_trial_unless_it_goes_on_with_the_latest(trained: Trained) -> None:
    text = """
options = {"evals": [(data, "train")], "verbose_eval": False}
model = xgboost.train(params, data, 2, **options)
model.save_model("model.json")
longer = xgboost.train(params, data, 2, xgb_model="model.json", **options)
xgboost.train(params, data, 2, xgb_model=model, **options)
xgboost.train(params, data, 3, **options)
"""
    _, err, root = trained(text, "losses")
    steps = [hooked.opened(Path(numbered_path(root, number))).steps() for number in (1, 2, 3)]
    assert (err, steps) == ("", [[0, 1, 2, 3], [2, 3], [0, 1, 2]])


def test_trainings_on_several_threads_are_trials_of_their_own(trained: Trained) -> None:
    text = """
import threading
both = threading.Barrier(2)
class Meet(xgboost.callback.TrainingCallback):
    def after_iteration(self, *_):
        both.wait(60)
def fold():
    xgboost.train(params, data, 3, [(data, "train")], verbose_eval=False, callbacks=[Meet()])
threads = [threading.Thread(target=fold) for _ in range(2)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""
    _, err, root = trained(text, "losses")
    trials = [hooked.opened(Path(numbered_path(root, number))) for number in (1, 2)]
    assert "rule-runner" not in err
    assert [one.steps() for one in trials] == [[0, 1, 2], [0, 1, 2]]
    assert all(one.loaded_all_steps for one in trials)


def test_training_without_evals_is_warned_of_missing_losses(trained: Trained) -> None:
    _, err, root = trained("xgboost.train(params, data, 2)", "losses", "trees")
    assert err == (
        "rule-runner: XGBoost computes no metrics without evals (estimators: eval_set): none "
        "are saved.\n"
    )
    assert "trees/Node" in hooked.opened(root).tensor_names()


def test_loop_of_the_script_is_named(trained: Trained) -> None:
    text = "model = xgboost.Booster(params, [data])\n"
    text += "for at in range(3):\n    model.update(data, at)"
    _, err, root = trained(text, "losses")
    assert not root.exists()
    assert err == (
        "rule-runner: The script calls Booster.update or Booster.boost itself, which is not saved; "
        "only xgboost.train, xgboost.cv and the estimators are.\n"
    )


def test_training_with_another_framework_is_a_trial_of_its_own(trained: Trained) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    text = """
import torch
def steps(count):
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(count):
        model(torch.zeros(2, 3)).sum().backward()
        optimizer.step()
steps(1)
xgboost.train(params, data, 2, evals=[(data, "train")])
steps(3)
"""
    _, err, root = trained(text, "losses")
    steps = [hooked.opened(Path(numbered_path(root, number))).steps() for number in (1, 2, 3)]
    assert (err, steps) == ("", [[0], [0, 1], [0, 1, 2]])


def test_hook_of_the_script_is_left_alone(trained: Trained, tmp_path: Path) -> None:
    text = """
from smdebug.xgboost import Hook
xgboost.train(params, data, 2, callbacks=[Hook("own", hyperparameters=params)])
"""
    _, err, root = trained(text, "losses")
    assert ("rule-runner" in err, root.exists()) == (False, False)
    assert (tmp_path / "own").exists()


def test_wrong_call_fails_as_ever(trained: Trained) -> None:
    text = "try:\n    xgboost.train(params, data, nonsense=1)\nexcept TypeError as err:\n"
    text += "    print(type(err).__name__)"
    out, _, root = trained(text, "losses")
    assert (out, root.exists()) == ("TypeError\n", False)
