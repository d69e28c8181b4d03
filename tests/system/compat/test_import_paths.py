"""Every documented name is where rules written for smdebug look, and takes what they give."""

import importlib
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

from smdebug import exceptions, modes
from smdebug.core.tensor import StepState, Tensor
from smdebug.rules import Rule, invoke_rule
from smdebug.rules.req_tensors import RequiredTensors
from smdebug.trials import Trial, create_trial

PATHS = {
    "smdebug": [
        *("Collection", "CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode"),
        *("__version__", "core", "create_trial", "exceptions", "modes"),
    ],
    "smdebug.analysis.utils": ["no_refresh", "refresh", "parse_list_from_str", "parse_bool"],
    "smdebug.core.collection": ["Collection", "CollectionKeys"],
    "smdebug.core.collection_manager": ["CollectionManager"],
    "smdebug.core.hook": ["Hook"],
    "smdebug.core.json_config": ["CONFIG_FILE_PATH_ENV_STR"],
    "smdebug.core.logger": ["get_logger"],
    "smdebug.core.modes": ["ModeKeys"],
    "smdebug.core.reduction_config": ["ReductionConfig"],
    "smdebug.core.save_config": ["SaveConfig", "SaveConfigMode"],
    "smdebug.core.tensor": ["StepState", "Tensor"],
    "smdebug.core.writer": ["TrialWriter"],
    "smdebug.profiler": [
        *("LocalAlgorithmMetricsReader", "LocalSystemMetricsReader", "MetricsReaderBase"),
        *("S3AlgorithmMetricsReader", "S3SystemMetricsReader", "SystemProfilerEventParser"),
        *("HorovodProfilerEvents", "SMDataParallelProfilerEvents", "SMProfilerEvents"),
        *("ProfilerSystemEvents", "TensorboardProfilerEvents", "TraceEvent", "TraceEventParser"),
    ],
    "smdebug.profiler.algorithm_metrics_reader": [
        *("LocalAlgorithmMetricsReader", "S3AlgorithmMetricsReader"),
    ],
    "smdebug.profiler.analysis.notebook_utils": [
        *("MetricsHistogram", "StepHistogram", "TrainingJob"),
    ],
    "smdebug.profiler.analysis.notebook_utils.heatmap": ["Heatmap"],
    "smdebug.profiler.analysis.notebook_utils.metrics_histogram": ["MetricsHistogram"],
    "smdebug.profiler.analysis.notebook_utils.step_histogram": ["StepHistogram"],
    "smdebug.profiler.analysis.notebook_utils.step_timeline_chart": ["StepTimelineChart"],
    "smdebug.profiler.analysis.notebook_utils.timeline_charts": ["TimelineCharts"],
    "smdebug.profiler.analysis.notebook_utils.training_job": ["TrainingJob"],
    "smdebug.profiler.analysis.python_profile_analysis": [
        *("PythonProfileAnalysis", "PyinstrumentAnalysis", "cProfileAnalysis"),
    ],
    "smdebug.profiler.analysis.utils.merge_timelines": ["MergeUnit", "MergedTimeline"],
    "smdebug.profiler.analysis.utils.pandas_data_analysis": [
        *("JobStats", "PandasFrameAnalysis", "Resource", "StatsBy"),
    ],
    "smdebug.profiler.analysis.utils.profiler_data_to_pandas": ["PandasFrame"],
    "smdebug.profiler.analysis.utils.python_profile_analysis_utils": [
        *("Metrics", "PyinstrumentStepStats", "StepPhase", "StepPythonProfileStats"),
        *("cProfileFunctionStats", "cProfileStats"),
    ],
    "smdebug.profiler.analysis.utils.pytorch_dataloader_analysis": ["PT_dataloader_analysis"],
    "smdebug.profiler.profiler_constants": ["CONVERT_TO_MICROSECS", "PT_DATALOADER_WORKER"],
    "smdebug.profiler.python_profile_utils": ["PythonProfileModes"],
    "smdebug.profiler.system_metrics_reader": [
        *("LocalSystemMetricsReader", "S3SystemMetricsReader"),
    ],
    "smdebug.profiler.utils": ["TimeUnits", "str2bool"],
    "smdebug.rules": ["Rule", "invoke_rule"],
    "smdebug.rules.action": ["Actions"],
    "smdebug.rules.action.action": ["Actions"],
    "smdebug.rules.req_tensors": ["RequiredTensors"],
    "smdebug.rules.rule": ["Rule"],
    "smdebug.rules.rule_invoker": ["invoke_rule"],
    "smdebug.trials": ["LocalTrial", "S3Trial", "Trial", "create_trial"],
    "smdebug.trials.local_trial": ["LocalTrial"],
    "smdebug.trials.profiler_trial": ["ProfilerTrial"],
    "smdebug.trials.s3_trial": ["S3Trial"],
    "smdebug.trials.trial": ["Trial"],
    "smdebug.trials.utils": ["create_trial"],
}
# What training scripts import; each needs its framework.
HOOK_PATHS = {
    "torch": "smdebug.pytorch",
    "xgboost": "smdebug.xgboost",
    "keras": "smdebug.keras",
}
HOOK_NAMES = [
    *("Collection", "CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode"),
    *("create_trial", "modes", "get_hook", "set_hook", "del_hook"),
]
BASES: dict[str, list[type]] = {
    "SMDebugError": [Exception],
    "SMDebugTypeError": [TypeError],
    "SMDebugRuntimeError": [RuntimeError],
    "SMDebugNotImplementedError": [NotImplementedError],
    "SMDebugValueError": [ValueError],
    "SMDebugCustomerError": [],
    "InvalidCollectionConfiguration": [],
    "StepNotYetAvailable": [],
    "MissingCollectionFiles": [],
    "IndexReaderException": [],
    "StepUnavailable": [],
    "TensorUnavailableForStep": [],
    "ShapeUnavailableForStep": [],
    "TensorUnavailable": [],
    "InvalidWorker": [],
    "NoMoreProfilerData": [],
    "NoMoreData": [],
    "RuleEvaluationConditionMet": [],
    "InsufficientInformationForRuleInvocation": [],
}
STEP = {"step": 3, "mode": modes.TRAIN}
TENSOR = {"tname": "w", **STEP}
MADE: list[tuple[str, dict[str, Any], str]] = [
    ("StepNotYetAvailable", STEP, "Step 3 of mode TRAIN was not seen yet."),
    ("StepUnavailable", STEP, "Step 3 of mode TRAIN was not saved."),
    ("TensorUnavailable", {"tname": "w"}, "Tensor 'w' was not saved."),
    (
        "TensorUnavailableForStep",
        {**TENSOR, "has_reductions": False},
        "Tensor 'w' has no value at step 3 of mode TRAIN.",
    ),
    (
        "TensorUnavailableForStep",
        {**TENSOR, "has_reductions": True},
        (
            "Tensor 'w' has no value at step 3 of mode TRAIN. "
            "Reductions of it were saved at this step: ask for those."
        ),
    ),
    (
        "TensorDamaged",
        {**TENSOR, "reason": "File 'x' is gone."},
        "Tensor 'w' cannot be read at step 3 of mode TRAIN. File 'x' is gone.",
    ),
    ("ShapeUnavailableForStep", TENSOR, "Tensor 'w' has no shape at step 3 of mode TRAIN."),
    (
        "NoMoreData",
        {**STEP, "last_step": 2},
        "The training job has ended before step 3 of mode TRAIN: its last step is 2.",
    ),
    (
        "NoMoreProfilerData",
        {"timestamp": 7},
        "The training job has ended before time stamp 7 us.",
    ),
    ("InvalidWorker", {"worker": "x"}, "No worker 'x' here."),
    ("IndexReaderException", {"message": "No."}, "No."),
    (
        "InvalidCollectionConfiguration",
        {"c_name": "c"},
        "Collection 'c' has neither patterns nor tensor names.",
    ),
    (
        "RuleEvaluationConditionMet",
        {"rule_name": "R", "step": 3, "end_of_rule": True},
        "Evaluation of the rule R at step 3 resulted in the condition being met\n",
    ),
    (
        "InsufficientInformationForRuleInvocation",
        {"rule_name": "R", "message": "no losses."},
        "Rule R cannot judge: no losses.",
    ),
    (
        "TruncatedFileError",
        {"key": "k", "expected": "a", "got": "b"},
        "File 'k' is cut off: expected a, got b.",
    ),
    (
        "CorruptFileError",
        {"key": "k", "expected": "a", "got": "b"},
        "File 'k' is corrupt: expected a, got b.",
    ),
]
PARAMETERS: list[tuple[Any, list[str]]] = [
    (Trial.tensor, ["tname"]),
    (Trial.has_tensor, ["tname"]),
    (Trial.steps, ["mode", "show_incomplete_steps"]),
    (Trial.modes, []),
    (Trial.mode, ["global_step"]),
    (Trial.mode_step, ["global_step"]),
    (Trial.global_step, ["mode", "mode_step"]),
    (Trial.workers, []),
    (Trial.collections, []),
    (Trial.collection, ["coll_name"]),
    (Trial.wait_for_steps, ["required_steps", "mode"]),
    (Trial.has_passed_step, ["step", "mode"]),
    (Tensor.steps, ["mode", "show_incomplete_steps"]),
    (Tensor.value, ["step_num", "mode", "worker"]),
    (Tensor.values, ["mode", "worker"]),
    (Tensor.reduction_value, ["step_num", "reduction_name", "mode", "worker", "abs"]),
    (Tensor.reduction_values, ["step_num", "mode", "worker"]),
    (Tensor.shape, ["step_num", "mode", "worker"]),
    (Tensor.shapes, ["mode", "worker"]),
    (Tensor.workers, ["step_num", "mode"]),
    (Tensor.prev_steps, ["step", "n", "mode"]),
    (Rule.__init__, ["base_trial", "action_str", "other_trials"]),
    (Rule.invoke_at_step, ["step"]),
    (Rule.set_required_tensors, ["step"]),
    (RequiredTensors.add, ["name", "steps", "trial", "should_match_regex"]),
    (RequiredTensors.get, ["trial"]),
    (RequiredTensors.get_names, ["trial"]),
    (RequiredTensors.get_tensor_steps, ["name"]),
]


@pytest.mark.parametrize("module", PATHS)
def test_documented_names_are_there(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in PATHS[module] if not hasattr(found, name)] == []


@pytest.mark.parametrize("framework", HOOK_PATHS)
def test_names_of_training_scripts_are_there(framework: str) -> None:
    pytest.importorskip(framework, reason=f"{framework} is not installed.")
    found = importlib.import_module(HOOK_PATHS[framework])
    assert [name for name in HOOK_NAMES if not hasattr(found, name)] == []
    found.del_hook()
    assert found.get_hook() is None
    assert found.get_hook(json_config_path="no.json", create_if_not_exists=True) is None
    hook = found.KerasHook if framework == "keras" else found.Hook
    made = hook("unused", dry_run=True)
    found.set_hook(made)
    assert found.get_hook(create_if_not_exists=True) is made
    made.close()
    found.del_hook()


@pytest.mark.parametrize(
    ("module", "name", "replacement"),
    [
        ("smdebug.core.writer", "FileWriter", "TrialWriter"),
        ("smdebug.core.reader", "FileReader", "create_trial"),
        ("smdebug.core.locations", "IndexFileLocationUtils", "create_trial"),
        ("smdebug.rules", "create_rule", "rule-runner evaluate"),
    ],
)
def test_a_name_that_is_not_offered_is_an_error_that_names_the_replacement(
    module: str, name: str, replacement: str
) -> None:
    with pytest.raises(
        ImportError, match=rf"^{module}\.{name} is not offered: use .*{replacement}"
    ):
        exec(f"from {module} import {name}")


def test_names_that_notebooks_and_scripts_import_are_there() -> None:
    pytest.importorskip("xgboost", reason="xgboost is not installed.")
    from smdebug.core.utils import setup_profiler_report
    from smdebug.xgboost.collection import CollectionKeys, CollectionManager

    assert setup_profiler_report("arn:aws:sagemaker:eu-west-1:123456789012:job/1") is None  # type: ignore[func-returns-value]
    assert CollectionManager().get(CollectionKeys.LOSSES).name == "losses"


def test_the_short_ways_lead_to_the_same_objects() -> None:
    import smdebug as smd

    core = importlib.import_module("smdebug.core.modes")
    assert smd.modes is core.ModeKeys is modes
    assert importlib.import_module("smdebug.rules.rule").Rule is Rule
    assert importlib.import_module("smdebug.rules.rule_invoker").invoke_rule is invoke_rule
    assert smd.create_trial is create_trial
    assert smd.__version__ == "1.0.34"
    assert not hasattr(smd, "create_trail")
    local = importlib.import_module("smdebug.trials.local_trial").LocalTrial
    assert issubclass(local, Trial)
    assert importlib.import_module("smdebug.trials").LocalTrial is local
    assert [mode.name for mode in smd.modes] == ["TRAIN", "EVAL", "PREDICT", "GLOBAL"]
    assert [mode.value for mode in smd.modes] == [1, 2, 3, 4]
    assert [one.name for one in StepState] == ["UNAVAILABLE", "AVAILABLE", "NOT_YET_AVAILABLE"]


def test_the_star_brings_every_name_of_the_package() -> None:
    names: dict[str, Any] = {}
    exec("from smdebug import *", names)
    assert {"SaveConfig", "SaveConfigMode", "ReductionConfig", "create_trial"} <= set(names)


def test_trials_are_imported_when_they_are_asked_for() -> None:
    program = (
        "import sys, smdebug; before = 'rule_core.trials' in sys.modules;"
        "from smdebug import create_trial; print(before, create_trial.__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "False rule_core.trials.create_trial\n"


def test_the_stars_of_training_scripts_bring_their_names() -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    names: dict[str, Any] = {}
    exec("from smdebug.pytorch.hook import *", names)
    exec("from smdebug.pytorch.collection import *", names)
    assert {"Collection", "CollectionKeys", "CollectionManager", "Hook", "set_hook"} <= set(names)


def test_the_star_brings_all_exceptions() -> None:
    found: dict[str, Any] = {}
    exec("from smdebug.exceptions import *", found)
    assert [name for name in BASES if name not in found] == []
    assert set(exceptions.__all__) <= set(found)


@pytest.mark.parametrize(("name", "bases"), BASES.items())
def test_exceptions_have_their_bases(name: str, bases: list[type]) -> None:
    cls = getattr(exceptions, name)
    assert issubclass(cls, exceptions.SMDebugError)
    assert all(issubclass(cls, base) for base in bases)


def test_damage_is_caught_as_what_rules_know() -> None:
    assert issubclass(exceptions.TensorDamaged, exceptions.TensorUnavailableForStep)


@pytest.mark.parametrize(("name", "kwargs", "text"), MADE)
def test_exceptions_hold_and_say_what_happened(
    name: str, kwargs: dict[str, Any], text: str
) -> None:
    err = getattr(exceptions, name)(**kwargs)
    assert {key: getattr(err, key) for key in kwargs} == kwargs
    assert str(err) == text


@pytest.mark.parametrize(("name", "kwargs", "text"), MADE)
def test_exceptions_cross_processes(name: str, kwargs: dict[str, Any], text: str) -> None:
    err = getattr(exceptions, name)(**kwargs)
    again = pickle.loads(pickle.dumps(err))
    assert (type(again), str(again), vars(again)) == (type(err), text, vars(err))


def test_missing_collections_say_something_without_a_message() -> None:
    assert str(exceptions.MissingCollectionFiles()).startswith("The training job has ended and ")
    assert str(exceptions.MissingCollectionFiles("Gone.")) == "Gone."


@pytest.mark.parametrize(("method", "names"), PARAMETERS)
def test_parameters_have_their_documented_names_and_order(method: Any, names: list[str]) -> None:
    found = [name for name in inspect.signature(method).parameters if name != "self"]
    assert found[: len(names)] == names


def test_functions_take_their_documented_parameters() -> None:
    keywords = inspect.signature(create_trial).parameters
    assert list(keywords)[:2] == ["path", "name"]
    assert {"range_steps", "timeout"} <= set(keywords)
    invoking = inspect.signature(invoke_rule).parameters
    assert list(invoking) == ["rule_obj", "start_step", "end_step", "raise_eval_cond"]
    assert (invoking["start_step"].default, invoking["end_step"].default) == (0, None)


def test_importing_has_no_effect() -> None:
    program = (
        "import importlib, logging, os, sys;"
        "before = (list(logging.root.handlers), dict(os.environ));"
        f"[importlib.import_module(name) for name in {list(PATHS)!r}];"
        "assert before == (list(logging.root.handlers), dict(os.environ));"
        "print(sorted({'boto3', 'docker', 'pandas', 'click', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
