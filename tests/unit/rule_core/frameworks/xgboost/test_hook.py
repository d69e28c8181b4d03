"""The XGBoost hook: what it saves in which rounds, and that the training never notices."""

import copy
import json
import os
import pickle
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import evaluating
import numpy as np
import pytest
from recorded_profiles import end_script, events, profiler_config
from trial_content import content

xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed.")

import smdebug.xgboost as smd
from builtin_rules import LossNotDecreasing
from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.frameworks.xgboost import booster
from rule_core.trials.create_trial import create_trial
from rule_core.trials.trial import Trial
from rule_runner.engine.runner import Runner

PARAMS = {"objective": "binary:logistic", "max_depth": 2, "eval_metric": ["logloss", "auc"]}
BOOSTERS: dict[str, dict[str, Any]] = {
    "gbtree": {"subsample": 0.5},
    "dart": {"subsample": 0.5, "rate_drop": 0.5},
    # The usual updater gives another result each time.
    "gblinear": {"updater": "coord_descent", "max_depth": None},
}
EVERY_OTHER = smd.SaveConfig(save_interval=2)
FEATURES = ["f0", "f1", "f2", "f3"]
IMPORTANCES = ["cover", "gain", "total_cover", "total_gain", "weight"]
COLUMNS = {
    "Tree": "int64",
    "Node": "int64",
    "ID": "<U3",
    "Feature": "<U4",
    "Split": "float64",
    "Yes": "<U3",
    "No": "<U3",
    "Missing": "<U3",
    "Gain": "float64",
    "Cover": "float64",
    "Category": "<U3",
}


class Data(NamedTuple):
    train: Any
    validation: Any


def data(classes: int = 2, **kwargs: Any) -> Data:
    """Return data of which two of four features decide."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 4))
    labels = (points[:, 0] + points[:, 1] > 0).astype(int)
    if classes > 2:
        labels = rng.integers(classes, size=200)
    both = [
        xgboost.DMatrix(points[rows], label=labels[rows], **kwargs)
        for rows in (slice(150), slice(150, 200))
    ]
    return Data(*both)


def train(
    hooks: Sequence[Any], *, rounds: int = 5, given: Data | None = None, **kwargs: Any
) -> Any:
    found = given or data()
    return xgboost.train(
        kwargs.pop("params", PARAMS),
        found.train,
        rounds,
        evals=[(found.train, "train"), (found.validation, "validation")],
        callbacks=hooks,
        verbose_eval=False,
        **kwargs,
    )


def trained(root: Path, **options: Any) -> tuple[Trial, Any]:
    """Return the trial of a short training, and the booster."""
    with smd.Hook(root, on_error="raise", **options) as hook:
        booster = train([hook], rounds=options.get("rounds", 5))
    return create_trial(str(root), timeout=0), booster


def value(trial: Trial, name: str, step: int) -> Any:
    return trial.tensor(name).value(step)


def test_metrics_are_saved_every_tenth_round(tmp_path: Path) -> None:
    with smd.Hook(tmp_path, on_error="raise") as hook:
        results: dict[str, Any] = {}
        train([hook], rounds=12, evals_result=results)
    trial = create_trial(str(tmp_path), timeout=0)
    names = ["train-auc", "train-logloss", "validation-auc", "validation-logloss"]
    assert trial.steps() == [0, 10]
    assert sorted(trial.tensor_names()) == names
    assert sorted(trial.tensor_names(collection="metrics")) == names
    assert sorted(trial.tensor_names(collection="losses")) == [
        "train-logloss",
        "validation-logloss",
    ]
    assert trial.tensor(names[0]).steps(mode=smd.modes.TRAIN) == []
    for name in names:
        which, metric = name.split("-")
        for step in (0, 10):
            assert value(trial, name, step) == [results[which][metric][step]]


def test_data_and_hyperparameters_assigned_as_attributes_are_saved(tmp_path: Path) -> None:
    names = ["labels", "predictions", "average_shap", "full_shap", "hyperparameters"]
    given = data()
    with smd.Hook(tmp_path, include_collections=names, on_error="raise") as hook:
        hook.train_data, hook.validation_data = given
        hook.hyperparameters = PARAMS
        booster = train([hook], rounds=1, given=given)
    trial = create_trial(str(tmp_path), timeout=0)
    assert value(trial, "labels", 0).tolist() == given.validation.get_label().tolist()
    assert np.array_equal(value(trial, "predictions", 0), booster.predict(given.validation))
    shap = booster.predict(given.train, pred_contribs=True)
    assert np.array_equal(value(trial, "full_shap/f0", 0), shap)
    assert np.allclose(value(trial, "average_shap/f1", 0), shap.mean(0)[1])
    assert value(trial, "hyperparameters/max_depth", 0) == [2]


def test_invalid_data_assigned_as_an_attribute_is_rejected(tmp_path: Path) -> None:
    with smd.Hook(tmp_path) as hook, pytest.raises(SMDebugTypeError, match="'train_data' must be"):
        hook.train_data = 5


def test_a_hook_may_be_listed_after_the_callback_class_of_xgboost(tmp_path: Path) -> None:
    callback: Any = xgboost.callback.TrainingCallback

    class Listed(callback, smd.Hook):  # type: ignore[misc]  # a base class without types
        def __init__(self, root: Path) -> None:
            smd.Hook.__init__(self, root, on_error="raise")

    with Listed(tmp_path) as hook:
        train([hook], rounds=1)
    assert "train-auc" in create_trial(str(tmp_path), timeout=0).tensor_names()


def test_a_hook_is_made_by_the_older_name_of_create_from_json_file(tmp_path: Path) -> None:
    file = tmp_path / "hook.json"
    file.write_text(json.dumps({"LocalPath": str(tmp_path / "trial")}))
    with smd.Hook.hook_from_config(str(file)) as hook:
        assert hook.out_dir == str(tmp_path / "trial")


def test_importances_by_weight_are_no_weights_and_a_rule_over_weights_is_not_evaluated(
    tmp_path: Path,
) -> None:
    weights = smd.Collection("weights", include_regex=["^(?!gradient).*weight"])
    trial, _ = trained(
        tmp_path / "trial",
        include_collections=["weights", "feature_importance"],
        collections=[weights],
        save_config=EVERY_OTHER,
    )
    assert "feature_importance/weight/f0" in trial.tensor_names(collection="feature_importance")
    assert trial.tensor_names(collection="weights") == []
    output = tmp_path / "out"
    config = evaluating.configured(
        output, [evaluating.rule_job("WeightUpdateRatio")], str(tmp_path / "trial")
    )
    (result,) = Runner(config).run().result.rules
    assert result.outcome == "NotEvaluated"


def test_save_all_saves_each_collection_by_its_names(tmp_path: Path) -> None:
    given = data()
    trial, _ = trained(
        tmp_path,
        save_all=True,
        save_config=EVERY_OTHER,
        hyperparameters=PARAMS,
        train_data=given.train,
        validation_data=given.validation,
    )
    in_trees = [f"feature_importance/{kind}/{name}" for kind in IMPORTANCES for name in FEATURES]
    assert trial.steps() == [0, 2, 4]
    assert {name: sorted(trial.tensor_names(collection=name)) for name in trial.collections()} == {
        "all": sorted(trial.tensor_names()),
        "default": [],
        "hyperparameters": [f"hyperparameters/{name}" for name in sorted(PARAMS)],
        "metrics": ["train-auc", "train-logloss", "validation-auc", "validation-logloss"],
        "losses": ["train-logloss", "validation-logloss"],
        "predictions": ["predictions"],
        "labels": ["labels"],
        "feature_importance": [name for name in in_trees if name in trial.tensor_names()],
        "average_shap": [f"average_shap/{name}" for name in FEATURES],
        "full_shap": [f"full_shap/{name}" for name in FEATURES],
        "trees": [f"trees/{name}" for name in sorted(COLUMNS)],
    }
    assert {"average_shap/bias", "full_shap/bias"} < set(trial.tensor_names())


def test_values_are_those_that_xgboost_itself_tells(tmp_path: Path) -> None:
    given = data()
    trial, booster = trained(
        tmp_path,
        save_all=True,
        save_config=EVERY_OTHER,
        train_data=given.train,
        validation_data=given.validation,
    )
    for step in (0, 2, 4):
        then = booster[: step + 1]
        shap = then.predict(given.train, pred_contribs=True)
        np.testing.assert_array_equal(
            value(trial, "predictions", step), then.predict(given.validation)
        )
        np.testing.assert_array_equal(value(trial, "labels", step), given.validation.get_label())
        for at, name in enumerate([*FEATURES, "bias"]):
            np.testing.assert_allclose(value(trial, f"full_shap/{name}", step), shap, rtol=1e-6)
            mean = value(trial, f"average_shap/{name}", step)
            np.testing.assert_allclose(mean, [shap[:, at].mean(dtype=float)], atol=1e-6)
        for kind in IMPORTANCES:
            scores = then.get_score(importance_type=kind)
            found = {
                name: value(trial, f"feature_importance/{kind}/{name}", step) for name in scores
            }
            total = sum(scores.values())
            assert found == {name: [score / total] for name, score in scores.items()}


def dumped(booster: Any, tree: int) -> list[list[str]]:
    """Return the nodes of a tree as XGBoost prints them: number, then split or leaf."""
    text = booster.get_dump(with_stats=True)[tree]
    return [line.strip().split(":", 1) for line in text.splitlines()]


def test_trees_are_those_of_the_round(tmp_path: Path) -> None:
    trial, booster = trained(tmp_path, include_collections=["trees"], save_config=EVERY_OTHER)
    for step in (0, 2, 4):
        columns = {name: value(trial, f"trees/{name}", step) for name in COLUMNS}
        assert {name: str(column.dtype) for name, column in columns.items()} == COLUMNS
        nodes = dumped(booster, step)
        assert columns["Tree"].tolist() == [step] * len(nodes)
        assert columns["Node"].tolist() == [int(number) for number, _ in nodes]
        assert columns["ID"].tolist() == [f"{step}-{number}" for number, _ in nodes]
        for at, (_, text) in enumerate(nodes):
            row = {name: column[at] for name, column in columns.items()}
            said = dict(one.split("=") for one in text.rpartition("] ")[2].split(","))
            assert float(said["cover"]) == row["Cover"]
            if "leaf" in said:
                assert (row["Feature"], row["Yes"], row["No"], row["Missing"]) == (
                    "Leaf",
                    *("nan",) * 3,
                )
                assert float(said["leaf"]) == row["Gain"]
                assert np.isnan(row["Split"])
            else:
                assert text.startswith(f"[{row['Feature']}<{row['Split']}]")
                assert float(said["gain"]) == row["Gain"]
                assert [row[name] for name in ("Yes", "No", "Missing")] == [
                    f"{step}-{said[name]}" for name in ("yes", "no", "missing")
                ]
            assert row["Category"] == "nan"


def test_trees_of_all_classes_and_all_parallel_ones_are_of_the_round(tmp_path: Path) -> None:
    params = {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2}
    given = data(classes=3)
    with smd.Hook(
        tmp_path,
        include_collections=["trees", "average_shap", "full_shap"],
        save_config=EVERY_OTHER,
        train_data=given.train,
        on_error="raise",
    ) as hook:
        train([hook], rounds=3, given=given, params=params)
    trial = create_trial(str(tmp_path), timeout=0)
    assert set(value(trial, "trees/Tree", 2)) == {12, 13, 14, 15, 16, 17}
    assert value(trial, "full_shap/f0", 2).shape == (150, 3, 5)
    assert value(trial, "average_shap/f0", 2).shape == (1,)


def test_splits_of_categories_list_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    points = rng.integers(4, size=(200, 1))
    matrix = xgboost.DMatrix(
        points, label=points[:, 0] % 2, feature_types=["c"], enable_categorical=True
    )
    with smd.Hook(tmp_path, include_collections=["trees"], on_error="raise") as hook:
        xgboost.train({"max_depth": 1, "max_cat_to_onehot": 1}, matrix, 1, callbacks=[hook])
    trial = create_trial(str(tmp_path), timeout=0)
    assert value(trial, "trees/Category", 0).tolist() == ["0,2", "nan", "nan"]
    assert np.isnan(value(trial, "trees/Split", 0)).all()


def test_hyperparameters_are_numbers_or_texts(tmp_path: Path) -> None:
    given = {
        "eta": 0.5,
        "depth": 3,
        "silent": True,
        "name": "ä/b",
        "none": None,
        "many": ["a", "b"],
    }
    trial, _ = trained(tmp_path, include_collections="hyperparameters", hyperparameters=given)
    found = {name: value(trial, f"hyperparameters/{name}", 0).tolist() for name in given}
    assert found == {
        "eta": [0.5],
        "depth": [3],
        "silent": [True],
        "name": ["ä/b"],
        "none": ["None"],
        "many": ["a", "b"],
    }


def test_names_that_the_patterns_miss_belong_to_their_collections(tmp_path: Path) -> None:
    # The patterns know letters before the first hyphen, and no feature that ends in "s".
    given = data(feature_names=["radius", "mass", "a", "z"])
    with smd.Hook(
        tmp_path,
        include_collections=["metrics", "average_shap"],
        train_data=given.train,
        on_error="raise",
    ) as hook:
        xgboost.train(
            {"eval_metric": ["auc", "error@0.7"]},
            given.train,
            1,
            evals=[(given.train, "validation_0")],
            callbacks=[hook],
            verbose_eval=False,
        )
    trial = create_trial(str(tmp_path), timeout=0)
    metrics = ["validation_0-auc", "validation_0-error@0.7"]
    shap = [f"average_shap/{name}" for name in ("a", "mass", "radius", "z")]
    assert sorted(trial.tensor_names()) == [*shap, *metrics]
    assert sorted(trial.tensor_names(collection="metrics")) == metrics
    assert trial.tensor_names(collection="losses") == metrics[1:]
    assert sorted(trial.tensor_names(collection="average_shap")) == shap


def test_only_what_is_saved_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    predict = xgboost.Booster.predict

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(self.num_boosted_rounds())
        return predict(self, *args, **kwargs)

    monkeypatch.setattr(xgboost.Booster, "predict", counted)
    monkeypatch.delattr(xgboost.Booster, "get_dump")
    monkeypatch.delattr(xgboost.Booster, "get_score")
    given = data()
    with smd.Hook(
        tmp_path,
        include_collections=["average_shap", "full_shap"],
        train_data=given.train,
        save_config=smd.SaveConfig(save_steps=[0, 3]),
        on_error="raise",
    ) as hook:
        hook.get_collection("metrics").save_config = smd.SaveConfig(save_interval=1)
        train([hook])
    trial = create_trial(str(tmp_path), timeout=0)
    assert asked == [1, 4]
    assert trial.tensor("average_shap/f0").steps() == [0, 3]
    assert trial.tensor("full_shap/f0").steps() == [0, 3]
    assert trial.tensor("train-auc").steps() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", BOOSTERS)
def test_the_booster_is_the_same_with_and_without_the_hook(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    params = {**PARAMS, "booster": kind, "seed": 3, **BOOSTERS[kind]}
    given = data()
    with smd.Hook(
        tmp_path,
        save_all=True,
        save_config=EVERY_OTHER,
        train_data=given.train,
        validation_data=given.validation,
        on_error="raise",
    ) as hook:
        watched = train([hook], given=given, params=params)
    assert watched.save_raw() == train([], params=params).save_raw()
    trial = create_trial(str(tmp_path), timeout=0)
    assert trial.steps() == [0, 2, 4]
    assert ("trees/ID" in trial.tensor_names()) == (kind != "gblinear")
    assert ("'trees' is not saved. " in caplog.text) == (kind == "gblinear")


def test_an_error_turns_the_hook_off_and_leaves_the_training_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = train([])

    def broken(*_: Any, **__: Any) -> None:
        msg = "No."
        raise KeyError(msg)

    monkeypatch.setattr(booster, "last_trees", broken)
    with smd.Hook(tmp_path, save_all=True, save_config=EVERY_OTHER) as hook:
        found = train([hook])
    assert found.save_raw() == expected.save_raw()
    assert "The hook is off for the rest of the training job: KeyError: 'No.'" in (caplog.text)
    with (
        smd.Hook(tmp_path / "2", save_all=True, on_error="raise") as hook,
        pytest.raises(KeyError, match="No"),
    ):
        train([hook])


def test_what_a_collection_lacks_is_reported_once_and_the_rest_is_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial, _ = trained(tmp_path, save_all=True, save_config=EVERY_OTHER)
    for collection, argument in {
        "hyperparameters": "hyperparameters",
        "predictions": "validation_data",
        "labels": "validation_data",
        "average_shap": "train_data",
        "full_shap": "train_data",
    }.items():
        text = f"'{collection}' is not saved. The hook needs its attribute '{argument}' for that."
        assert caplog.messages.count(text) == 1
    assert sorted(trial.collection("predictions").tensor_names) == []
    assert trial.tensor("trees/ID").steps() == [0, 2, 4]


def test_predictions_are_those_of_the_training_data_if_there_is_no_other(tmp_path: Path) -> None:
    given = data()
    trial, booster = trained(
        tmp_path, include_collections=["predictions", "labels"], train_data=given.train
    )
    expected = booster[:1].predict(given.train)
    np.testing.assert_array_equal(value(trial, "predictions", 0), expected)
    np.testing.assert_array_equal(value(trial, "labels", 0), given.train.get_label())


def test_estimators_of_scikit_learn_take_the_hook(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed.")
    points = np.random.default_rng(2).normal(size=(60, 3))
    labels = (points[:, 0] > 0).astype(int)
    with smd.Hook(tmp_path, save_config=EVERY_OTHER, on_error="raise") as hook:
        model = xgboost.XGBClassifier(n_estimators=4, callbacks=[hook])
        model.fit(points, labels, eval_set=[(points, labels)], verbose=False)
        assert caplog.messages == []
        base.clone(model).fit(points, labels, eval_set=[(points, labels)], verbose=False)
    assert "A copy of the hook of" in caplog.text
    trial = create_trial(str(tmp_path), timeout=0)
    assert trial.steps() == [0, 2]
    assert trial.tensor_names(collection="losses") == ["validation_0-logloss"]


def test_copies_write_nothing_and_stay_out_of_the_way(tmp_path: Path) -> None:
    with smd.Hook(tmp_path, on_error="raise") as hook:
        for other in (copy.deepcopy(hook), pickle.loads(pickle.dumps(hook))):
            train([other])
        assert smd.get_hook() is hook
    assert create_trial(str(tmp_path), timeout=0).steps() == []


def test_cross_validation_saves_mean_metrics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = data()
    with smd.Hook(tmp_path, save_all=True, save_config=EVERY_OTHER, on_error="raise") as hook:
        found = xgboost.cv(PARAMS, given.train, 3, nfold=2, callbacks=[hook], as_pandas=False)
    trial = create_trial(str(tmp_path), timeout=0)
    assert sorted(trial.tensor_names()) == [
        "test-auc",
        "test-logloss",
        "train-auc",
        "train-logloss",
    ]
    for step in (0, 2):
        expected = found["test-logloss-mean"][step]
        assert value(trial, "test-logloss", step) == [expected]
    text = "Of a cross-validation, only the mean metrics are saved."
    assert caplog.messages.count(text) == 1


def test_a_training_that_goes_on_from_a_model_counts_its_rounds_on(tmp_path: Path) -> None:
    names = {"include_collections": "trees", "save_config": EVERY_OTHER, "on_error": "raise"}
    with smd.Hook(tmp_path, **names) as hook:
        first = train([hook], rounds=3)
    with smd.Hook(tmp_path, resume=True, **names) as hook:
        train([hook], rounds=4, xgb_model=first)
    trial = create_trial(str(tmp_path), timeout=0)
    assert trial.steps() == [0, 2, 4, 6]
    assert set(value(trial, "trees/Tree", 6)) == {6}


def test_a_second_training_follows_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with smd.Hook(tmp_path, save_config=EVERY_OTHER, on_error="raise") as hook:
        train([hook], rounds=3)
        train([hook], rounds=4)
    assert create_trial(str(tmp_path), timeout=0).steps() == [0, 2, 4, 6]
    assert "The steps of a further training follow those of the first." in caplog.text


def test_objectives_save_tensors_at_their_round(tmp_path: Path) -> None:
    with smd.Hook(tmp_path, save_config=EVERY_OTHER, on_error="raise") as hook:
        rounds = iter(range(5))

        def squared(predictions: Any, matrix: Any) -> Any:
            gradient = predictions - matrix.get_label()
            hook.save_tensor("round", next(rounds))
            return gradient, np.ones_like(gradient)

        train([hook], params={}, obj=squared)
    trial = create_trial(str(tmp_path), timeout=0)
    assert {step: value(trial, "round", step).tolist() for step in trial.steps()} == {
        0: [0],
        2: [2],
        4: [4],
    }


def test_ranks_are_those_of_the_communicator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xgboost.collective, "is_distributed", lambda: True)
    monkeypatch.setattr(xgboost.collective, "get_rank", lambda: 2)
    monkeypatch.setattr(xgboost.collective, "get_world_size", lambda: 3)
    hook = smd.Hook(tmp_path)
    assert (hook.worker, hook.rank, hook.world_size) == ("worker_2", 2, 3)
    hook.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*Text file input has been deprecated:UserWarning")
@pytest.mark.parametrize(
    ("text", "content_type"),
    [("1,0.5,2\n0,1,3\n", "text/csv"), ("1 0:0.5 1:2\n0 0:1 1:3\n", "libsvm")],
)
def test_data_may_be_in_a_file(text: str, content_type: str, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text(text)
    with smd.Hook(
        tmp_path / "trial",
        include_collections="labels",
        validation_data=(str(path), content_type),
        on_error="raise",
    ) as hook:
        train([hook])
    trial = create_trial(str(tmp_path / "trial"), timeout=0)
    assert value(trial, "labels", 0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            [1],
            SMDebugTypeError,
            r"^Argument 'train_data' must be an xgboost.DMatrix or .* content type, got list\.$",
        ),
        (
            ("data.json", "json"),
            SMDebugValueError,
            r"^The content type of 'train_data' must be csv or libsvm, got 'json'\.$",
        ),
        (
            ("/nowhere.csv", "csv"),
            SMDebugValueError,
            r"^Argument 'train_data' must name an existing file, got '/nowhere\.csv'\.$",
        ),
    ],
)
def test_data_of_another_kind_is_refused(
    given: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        smd.Hook(tmp_path, train_data=given)
    assert list(tmp_path.iterdir()) == []


def test_the_configuration_file_makes_a_hook_with_the_own_interval(tmp_path: Path) -> None:
    path = tmp_path / "hook.json"
    listed = [{"CollectionName": "trees"}]
    text = {"LocalPath": str(tmp_path / "trial"), "CollectionConfigurations": listed}
    path.write_text(json.dumps(text))
    with smd.Hook.create_from_json_file(path, on_error="raise") as hook:
        train([hook], rounds=11)
    trial = create_trial(str(tmp_path / "trial"), timeout=0)
    assert trial.tensor("train-auc").steps() == [0, 10]
    assert trial.tensor("trees/ID").steps() == [0]


def test_a_rule_judges_the_losses(tmp_path: Path) -> None:
    every = smd.SaveConfig(save_interval=1)
    with smd.Hook(tmp_path / "healthy", save_config=every, on_error="raise") as hook:
        train([hook], rounds=40)
    trial = create_trial(str(tmp_path / "healthy"), timeout=0)
    rule = LossNotDecreasing(trial)
    assert not any(rule.invoke_at_step(step) for step in trial.steps())
    with smd.Hook(tmp_path / "stalled", save_config=every, on_error="raise") as hook:
        train([hook], rounds=40, params={**PARAMS, "eta": 0.0})
    rule = LossNotDecreasing(create_trial(str(tmp_path / "stalled"), timeout=0))
    assert not any(rule.invoke_at_step(step) for step in trial.steps())
    assert rule.invoke_at_end(trial.steps()[-1])


@pytest.mark.old_library
@pytest.mark.skipif(
    "RULE_RUNNER_OLD_SMDEBUG_PYTHON" not in os.environ,
    reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
)
def test_the_old_library_reads_the_trial(tmp_path: Path) -> None:
    given = data()
    trial, _ = trained(
        tmp_path,
        save_all=True,
        save_config=EVERY_OTHER,
        hyperparameters=PARAMS,
        train_data=given.train,
    )
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
    ours = content(trial, dict(smd.modes.__members__))
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(json.dumps(ours))


def test_rounds_are_profiled_as_steps(tmp_path: Path) -> None:
    python = {"PythonProfilingConfig": {"StartStep": 1, "NumSteps": 1}}
    config = profiler_config(tmp_path, **python)
    with smd.Hook(tmp_path / "trial", profiler_config=config, on_error="raise") as hook:
        train([hook], rounds=3)
    end_script()
    assert [event.event_phase for event in events(tmp_path)] == ["Step:ModeKeys.GLOBAL"] * 3
    spans = [path.parent.name for path in (tmp_path / "profile").rglob("python_stats")]
    assert sum("global-1-stepstart" in span for span in spans) == 1
