"""CreateXgboostReport: which files it writes, when, and what stands on the page."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clocks import PatientClock
from judging import judge, opened, save

from builtin_rules import CreateXgboostReport
from builtin_rules.reports.xgboost.history import PROBLEMS_KEPT, SERIES_KEPT
from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.rules import invoke_rule

Tensors = dict[str, Any]
LABELS = np.array([0.0, 0, 1, 1])


def text(value: str) -> "np.ndarray":
    return np.array([value])


def scored(predictions: Any, labels: Any = LABELS) -> Tensors:
    return {"labels": np.array(labels), "predictions": np.array(predictions)}


def objective(name: str) -> Tensors:
    return {"hyperparameters/objective": text(name), "hyperparameters/eta": np.float64(0.5)}


BINARY = objective("binary:logistic")
MULTI = objective("multi:softmax")
REGRESSION = objective("reg:squarederror")
TREES = {"trees/Node": np.arange(3)}  # of XGBoost, without an objective
GOOD = scored([0.1, 0.2, 0.9, 0.8])
IMPORTANCES = {
    "feature_importance/weight/age": np.float64(0.75),
    "feature_importance/weight/<b>": np.float64(0.25),
    "feature_importance/gain/age": np.float64(1.0),
    "feature_importance/total_gain/age": np.float64(1.0),
}


class Written:
    """A report in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = folder.glob("xgboost-reports/*")
        self.documents = {path.stem: json.loads(path.read_text()) for path in sorted(found)}
        page = folder / "xgboost_report.html"
        self.html = page.read_text() if page.exists() else ""

    @property
    def sections(self) -> list[str]:
        return re.findall(r'<section id="(\w+)">', self.html)

    @property
    def warnings(self) -> list[str]:
        return re.findall(r'<p class="warning">(.*?)</p>', self.html)


def report(
    root: Path, *rounds: Tensors, every: int = 5, workers: tuple[Tensors, ...] = ()
) -> Written:
    """Let the rule judge rounds 0, 5, 10..., and of further workers one round each at 0."""
    of = 1 + len(workers)
    metric = {"train-rmse": np.ones(1)} if workers else {}
    save(root, {every * at: one | metric for at, one in enumerate(rounds)}, num_workers=of)
    for rank, one in enumerate(workers, 1):
        save(root, {0: one}, num_workers=of, worker=f"worker_{rank}")
    trial = opened(root)
    rule = CreateXgboostReport(trial, clock=PatientClock())
    rule.output_dir = root / "out"
    for step in trial.steps(show_incomplete_steps=True):
        assert rule.invoke_at_step(step) is False
    rule.invoke_at_end(0)
    return Written(root / "out")


# -- which files, for which objective ------------------------------------------------------------

OF_CLASSES = ["ConfusionMatrix", "EvaluationMetrics", "IterativeClassAccuracy"]


@pytest.mark.parametrize(
    ("rounds", "documents", "sections"),
    [
        pytest.param(
            [BINARY | GOOD, GOOD],
            [*OF_CLASSES, "LabelsDistribution", "RocCurve"],
            ["hyperparameters", "labels", "confusion", "evaluation", "accuracy", "roc"],
            id="binary",
        ),
        pytest.param(
            [MULTI | scored([0.0, 1, 2, 2], [0, 1, 2, 1])] * 2,
            [*OF_CLASSES, "LabelsDistribution"],
            ["hyperparameters", "labels", "confusion", "evaluation", "accuracy"],
            id="multi",
        ),
        pytest.param(
            [REGRESSION | scored([0.5, 1.5, 2.5, 2.5], [0, 1, 2, 3])] * 2,
            ["AbsoluteErrorPerLabelBin", "LabelsDistribution", "ResidualDistribution"],
            ["hyperparameters", "labels", "residuals", "errors"],
            id="regression",
        ),
        pytest.param([IMPORTANCES], ["FeatureImportance"], ["importance"], id="importances"),
        pytest.param([objective("rank:ndcg") | GOOD], [], ["hyperparameters"], id="other"),
    ],
)
def test_each_objective_has_its_own_files_and_sections(
    rounds: list[Tensors], documents: list[str], sections: list[str], tmp_path: Path
) -> None:
    written = report(tmp_path, *rounds)
    assert (list(written.documents), written.sections) == (documents, sections)


def test_metrics_are_those_of_the_collections(tmp_path: Path) -> None:
    """The collection losses of these trials has what ``loss`` is found in."""
    rounds = [
        {"train-logloss": np.array([one]), "accuracy": np.array([0.5]), "loss": np.array([1.0])}
        for one in (0.5, 0.25, np.inf)
    ]
    rows = [
        {"steps": 0, "loss": 0.5, "category": "train-logloss"},
        {"steps": 5, "loss": 0.25, "category": "train-logloss"},
        {"steps": 10, "loss": None, "category": "train-logloss"},
    ]
    written = report(tmp_path, *rounds)
    assert written.documents == {"LossData": {"category_loss_per_step": rows}}
    assert written.sections == ["loss"]


def test_labels_are_counted_over_all_steps(tmp_path: Path) -> None:
    written = report(tmp_path, BINARY | GOOD, GOOD, scored([0.1, 0.9], [0.0, 1]))
    assert written.documents["LabelsDistribution"] == {
        "labels_and_samples": [
            {"labels": "0", "num_samples_per_label": 5},
            {"labels": "1", "num_samples_per_label": 5},
        ]
    }


def test_the_confusion_matrix_is_of_the_last_step(tmp_path: Path) -> None:
    written = report(tmp_path, BINARY | scored([0.9] * 4), scored([0.1, 0.7, 0.9, 0.8]))
    assert written.documents["ConfusionMatrix"] == {
        "group_labels": ["0 as 0", "0 as 1", "1 as 0", "1 as 1"],
        "group_counts": [1, 1, 0, 2],
        "group_percentages": [0.25, 0.25, 0.0, 0.5],
        "stats": {"accuracy": 0.75, "precision": 2 / 3, "recall": 1.0, "f1_score": 0.8},
    }


def test_recalls_are_followed_over_the_steps(tmp_path: Path) -> None:
    rounds = [scored([0.0, 1, 1, 1]), scored([0.0, 0, 1, 0]), scored([2.0], [2])]
    written = report(tmp_path, MULTI | rounds[0], *rounds[1:])
    assert written.documents["IterativeClassAccuracy"] == {
        "0": [0.5, 1.0, None],
        "1": [1.0, 0.5, None],
        "2": [None, None, 1.0],
    }


def test_importances_are_percent_and_sorted(tmp_path: Path) -> None:
    written = report(tmp_path, IMPORTANCES)
    assert written.documents["FeatureImportance"] == {
        "features": {
            "weight": [
                {"feature": "age", "importance": 75.0},
                {"feature": "<b>", "importance": 25.0},
            ],
            "gain": [{"feature": "age", "importance": 100.0}],
        }
    }


def test_a_poor_curve_is_called_poor(tmp_path: Path) -> None:
    written = report(tmp_path / "poor", BINARY | scored([0.9, 0.2, 0.8, 0.1]))
    assert written.documents["RocCurve"]["auc"] == 0.25
    assert "poor" in written.html
    good = report(tmp_path / "good", BINARY | GOOD)
    assert (good.documents["RocCurve"]["auc"], "poor" in good.html) == (1.0, False)


def test_workers_are_taken_together(tmp_path: Path) -> None:
    second = {"train-rmse": np.array([3.0])} | scored([0.9], [1.0])
    written = report(tmp_path, BINARY | GOOD, workers=(second,))
    assert written.documents["ConfusionMatrix"]["group_counts"] == [2, 0, 0, 3]


# -- what the page says --------------------------------------------------------------------------


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    html = report(tmp_path, BINARY | GOOD | IMPORTANCES).html
    assert re.findall(r"https?:|<script|<link|<img|@import|url\(", html) == []
    assert "default-src 'none'" in html


def test_names_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&"
    rounds = [
        {
            f"feature_importance/weight/{evil}": np.float64(1),
            f"train-{evil}loss": np.array([1.0]),
            f"hyperparameters/{evil}": text(evil),
            "hyperparameters/objective": text(evil),
        }
    ]
    written = report(tmp_path, *rounds)
    assert written.sections == ["hyperparameters", "loss", "importance"]
    assert "<script" not in written.html
    assert written.html.count("&lt;script&gt;") == 6


@pytest.mark.parametrize(
    ("rounds", "warnings"),
    [
        pytest.param([BINARY | GOOD, GOOD], [], id="none"),
        pytest.param(
            [objective("rank:ndcg") | GOOD, GOOD],
            [
                (
                    "Plots of labels and predictions do not support objective &#39;rank:ndcg&#39;. "
                    "Supported objectives: reg:squarederror, binary:logistic, multi:softmax."
                )
            ],
            id="another-objective",
        ),
        pytest.param(
            [TREES | GOOD, GOOD],
            [
                (
                    "The objective was not saved; labels and predictions look like "
                    "binary:logistic. Pass &#39;hyperparameters&#39; to the hook to save it."
                )
            ],
            id="no-objective",
        ),
        pytest.param(
            [BINARY | GOOD],
            ["Only the first round was saved. Save at least one more."],
            id="first-round",
        ),
        pytest.param(
            [IMPORTANCES, IMPORTANCES],
            ["Labels and predictions were not saved together. Save both at the same steps."],
            id="no-predictions",
        ),
        pytest.param(
            [BINARY | GOOD, scored(np.ones((4, 3)))],
            [
                (
                    "Step 5, worker worker_0: labels and predictions must be equal in number, "
                    "got 4 and 12."
                )
            ],
            id="lengths-differ",
        ),
        pytest.param(
            [BINARY | GOOD, scored([np.nan, 0.2, np.inf, 1e200])],
            ["Step 5: 3 non-finite rows are left out."],
            id="not-finite",
        ),
        pytest.param(
            [MULTI | scored(np.arange(101.0), np.arange(101.0))] * 2,
            ["There are more than 100 classes, too many to show."],
            id="too-many-classes",
        ),
    ],
)
def test_warnings_stand_first(rounds: list[Tensors], warnings: list[str], tmp_path: Path) -> None:
    assert report(tmp_path, *rounds).warnings == warnings


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param([scored([0.5] * 4, [1.0] * 4)] * 2, id="one-class"),
        pytest.param([scored([5.0] * 4, [5.0] * 4)] * 2, id="all-right-and-equal"),
        pytest.param([scored([1e90] * 4, [1e90, 1e90, 1e90, -1e90])] * 2, id="very-large"),
        pytest.param([scored([1e99, 1e99], [-1e99, -1e99])] * 2, id="large-and-equal"),
        pytest.param([scored([0.0, 1e-320], [0.0, 0.0])] * 2, id="subnormal"),
        pytest.param([scored([0.0, 1e16], [0.0, 1e16 + 2])] * 2, id="close-and-large"),
        pytest.param([scored([0.5], [0.25])] * 2, id="one-row"),
        pytest.param([scored([[0.5]], [[1]])] * 2, id="two-dimensions"),
        pytest.param([scored(0.5, 1)] * 2, id="no-dimensions"),
        pytest.param([scored(np.array([], float), np.array([], float)) | MULTI], id="empty"),
        pytest.param([scored([True, False], [1, 0])] * 2, id="booleans"),
        pytest.param([scored(["a"], ["b"]) | MULTI], id="texts"),
        pytest.param([scored([1j], [1j]) | MULTI], id="complex"),
        pytest.param([scored([0.5, 0.5], [0.5, 0.25]) | MULTI], id="labels-are-no-integers"),
        pytest.param([{"feature_importance/weight/a": np.array([np.nan])} | MULTI], id="nan-share"),
        pytest.param([{"feature_importance/weight/a": np.zeros(1)}], id="zero-share"),
        pytest.param([{"feature_importance/weight/a": -np.ones(1)}], id="negative-share"),
        pytest.param([{"feature_importance/weight/a": np.full(1, 1e308)} | MULTI], id="huge-share"),
        pytest.param([{"train-loss": np.full(1, 1e308)}], id="huge-loss"),
        pytest.param([{"train-loss": np.full(1, np.nan)}], id="nan-loss"),
        pytest.param([{"train-loss": np.ones(3)}], id="several-losses"),
        pytest.param([{"train-loss": np.array([7])}] * 3, id="constant-integer-loss"),
        pytest.param([{"train-loss": np.array([1e-300])}, {"train-loss": np.zeros(1)}], id="tiny"),
        pytest.param([{"hyperparameters/objective": np.zeros(0)}], id="empty-objective"),
    ],
)
@pytest.mark.parametrize("name", ["", "binary:logistic", "reg:squarederror"])
def test_whatever_is_saved_is_reported(rounds: list[Tensors], name: str, tmp_path: Path) -> None:
    first = objective(name) if name else TREES
    written = report(tmp_path, rounds[0] | first, *rounds[1:])
    assert written.html.endswith("</html>")
    assert re.findall(r"[^-\w](nan|inf)[^\w]", written.html, re.IGNORECASE) == []


def test_what_is_damaged_is_left_out(tmp_path: Path) -> None:
    root = save(tmp_path / "trial", {0: MULTI, 5: losses(1)[0]})
    (root / "events/000000000000/000000000000_worker_0.tfevents").write_bytes(bytes(100))
    invoker = invoker_of(root, tmp_path / "out", PatientClock())
    for step in (0, 5):
        invoker.judge(step)
    invoker.finish(0)
    assert Written(tmp_path / "out").sections == ["hyperparameters", "loss"]


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    names = {f"set{at:03d}-loss": np.ones(1) for at in range(SERIES_KEPT + 1)}
    rounds = [names | scored([0.5], [np.nan]) for _ in range(PROBLEMS_KEPT + 1)]
    written = report(tmp_path, *rounds)
    rows = written.documents["LossData"]["category_loss_per_step"]
    assert len({row["category"] for row in rows}) == SERIES_KEPT
    assert len([one for one in written.warnings if "non-finite" in one]) == PROBLEMS_KEPT


def test_reductions_alone_make_no_plots(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"predictions": {("mean", False): 0.5}}})
    found = judge(CreateXgboostReport, tmp_path)
    assert (found.met, found.skipped) == ([], {0: "no XGBoost data at this step"})


# -- when and where it is written ----------------------------------------------------------------


def invoker_of(root: Path, out: Path | None, clock: PatientClock) -> InProcessInvoker:
    trial = opened(root)
    rule = CreateXgboostReport(trial, clock=clock)
    rule.output_dir = out
    return InProcessInvoker("CreateXgboostReport", rule, [trial])


def losses(count: int) -> dict[int, Tensors]:
    return {at: {"train-loss": np.array([float(at)])} for at in range(count)}


def points(out: Path) -> int:
    return len(Written(out).documents["LossData"]["category_loss_per_step"])


def test_it_is_written_at_most_once_a_minute_and_at_the_end(tmp_path: Path) -> None:
    clock = PatientClock()
    out = tmp_path / "out"
    invoker = invoker_of(save(tmp_path / "trial", losses(6)), out, clock)
    seen = []
    for step, now in enumerate([0, 1, 59, 60, 61, 119]):
        clock.now = now
        assert invoker.judge(step).did is InvocationOutcome.CLEAR
        seen.append(points(out))
    assert invoker.finish(0).did is not InvocationOutcome.FAILED
    assert [*seen, points(out)] == [1, 1, 1, 4, 4, 4, 6]


def test_nothing_is_written_twice_alike(tmp_path: Path) -> None:
    out = tmp_path / "out"
    invoker = invoker_of(save(tmp_path / "trial", losses(1)), out, PatientClock())
    invoker.judge(0)
    (out / "xgboost_report.html").unlink()
    invoker.finish(0)
    assert Written(out).html == ""


def test_a_trial_of_something_else_gets_no_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    root = save(tmp_path / "trial", {0: {"fc.weight": np.ones(2), "loss": np.ones(1)}})
    invoker = invoker_of(root, out, PatientClock())
    answer = invoker.judge(0)
    assert (answer.did, answer.reason) == (
        InvocationOutcome.SKIPPED,
        "no XGBoost data at this step",
    )
    assert (invoker.finish(0).did is InvocationOutcome.FAILED, out.exists()) == (False, False)


def test_in_python_it_is_written_to_a_folder_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    invoker = invoker_of(save(tmp_path / "trial", losses(1)), None, PatientClock())
    invoker.judge(0)
    assert Written(tmp_path / "xgboost_report").html.startswith("<!doctype html>")


def test_the_loop_in_python_writes_the_last_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    trial = opened(save(tmp_path / "trial", losses(3)))
    rule = CreateXgboostReport(trial, clock=PatientClock())
    rule.output_dir = tmp_path / "out"
    invoke_rule(rule, 0, 3)
    assert points(tmp_path / "out") == 3


def test_a_report_that_cannot_be_written_is_an_error_at_the_end(tmp_path: Path) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("")
    invoker = invoker_of(save(tmp_path / "trial", losses(2)), blocked, PatientClock())
    assert [invoker.judge(step).did for step in range(2)] == [
        InvocationOutcome.CLEAR,
        InvocationOutcome.CLEAR,
    ]
    answer = invoker.finish(0)
    assert answer.did is InvocationOutcome.FAILED
    assert "No report could be written to" in answer.reason


def test_a_report_that_was_written_once_is_no_error(tmp_path: Path) -> None:
    out = tmp_path / "out"
    clock = PatientClock()
    invoker = invoker_of(save(tmp_path / "trial", losses(2)), out, clock)
    invoker.judge(0)
    (out / "xgboost_report.html").unlink()
    (out / "xgboost_report.html").mkdir()
    invoker.judge(1)
    assert invoker.finish(0).did is not InvocationOutcome.FAILED
    assert list(out.glob("*.tmp")) == []


def test_what_hinders_it_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    trial = opened(save(tmp_path / "trial", losses(1)))
    rule = CreateXgboostReport(trial)
    rule.output_dir = tmp_path / "out"
    rule.invoke_at_step(0)
    with pytest.raises(SMDebugRuntimeError, match=r"^No report could be written to '.*out': .*\.$"):
        rule.invoke_at_end(0)


# -- models of XGBoost ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "classes", "documents"),
    [
        ("reg:squarederror", 0, ["AbsoluteErrorPerLabelBin", "ResidualDistribution"]),
        ("binary:logistic", 2, [*OF_CLASSES, "RocCurve"]),
        ("multi:softmax", 3, OF_CLASSES),
    ],
)
def test_reports_of_models(name: str, classes: int, documents: list[str], tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed.")
    from smdebug.xgboost import Hook, SaveConfig

    rng = np.random.default_rng(0)
    points_of = rng.normal(size=(200, 4))
    labels = points_of.sum(axis=1)
    if classes:
        labels = np.digitize(labels, np.quantile(labels, np.linspace(0, 1, classes + 1)[1:-1]))
    params = {"objective": name, "max_depth": 2, "nthread": 1} | (
        {"num_class": classes} if classes > 2 else {}
    )
    data = xgboost.DMatrix(points_of, labels, feature_names=["a", "b", "c/d", ">e&"])
    collections = ["metrics", "feature_importance", "hyperparameters", "predictions", "labels"]
    with Hook(
        tmp_path / "trial",
        include_collections=collections,
        hyperparameters=params,
        train_data=data,
        save_config=SaveConfig(save_interval=5),
    ) as hook:
        xgboost.train(
            params, data, 12, evals=[(data, "train")], callbacks=[hook], verbose_eval=False
        )
    out = tmp_path / "out"
    invoker = invoker_of(tmp_path / "trial", out, PatientClock())
    assert [invoker.judge(step).did for step in (0, 5, 10)] == [InvocationOutcome.CLEAR] * 3
    invoker.finish(0)
    written = Written(out)
    common = ["FeatureImportance", "LabelsDistribution", "LossData"]
    assert (sorted(written.documents), written.warnings) == (sorted(documents + common), [])
    assert {
        row["feature"] for row in written.documents["FeatureImportance"]["features"]["weight"]
    } == {"a", "b", "c/d", ">e&"}
