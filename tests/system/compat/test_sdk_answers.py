"""The configuration classes answer as the SDK does, but for what docs/compatibility.md lists."""

import json
import os
import re
import subprocess
from pathlib import Path

import debugger_answers
import pytest
from debugger_answers import Answer, answers, short
from debugger_calls import DIFFERENCES, calls

PYTHON = os.environ.get("RULE_RUNNER_SAGEMAKER_PYTHON", "")
RECORDED = Path(__file__).parents[2] / "data" / "sdk_answers.json"
DOCUMENT = Path(__file__).parents[3] / "docs" / "compatibility.md"
CALLS = list(dict.fromkeys(calls()))
DIFFERENT = [call for shown in DIFFERENCES.values() for call in shown]
without_sdk = pytest.mark.skipif(
    not PYTHON, reason="RULE_RUNNER_SAGEMAKER_PYTHON does not name a Python that has sagemaker 2."
)
# What the SDK's messages are about, in their first sentence: ours are about the same.
SUBJECTS = [
    *("start_step", "num_steps", "start_unix_time", "duration", "profile_default_steps"),
    *("metrics_regex", "python_profiler", "cprofile_timer", "local_path", "file_max_size"),
    *("file_close_interval", "file_open_fail.threshold", "steps? .*time", "comparable"),
    *("cpu_threshold_p95", "gpu_threshold_p95", "gpu_memory_threshold_p95", "cpu_threshold"),
    *("gpu_threshold", "io_threshold", "threshold_p95", "threshold_p5", "min_threshold"),
    *("max_threshold", "threshold", "patience", "window", "scan_interval_us", "stddev"),
    *("n_outliers", "increase", "percentile", "positive", "mode must be a string"),
    *("training.job.prefix", "email.address", "phone.number", "must be a string"),
    *("rule_to_invoke", "actions", "action objects", "you must also provide"),
    *("framework_profile_params", "profile_params must be of type", "profiler (will|does) not"),
    *(
        "rule name",
        "<rule_name>_<parameter_name>",
        "'(foo|patience|)'|^(foo|patience|) is an invalid p",
    ),
    *("us-gov-east-1", "mars", "il-central-1", "us-iso-east-1", "region", r"argument '\w+'"),
]
# Python's own words for a wrong type, where ours name the argument or what belongs there.
PYTHON_WORDS = (
    "not supported between instances of|has no attribute|is not subscriptable|"
    "indices must be|not iterable"
)


def subjects(message: str) -> set[str]:
    return {one for one in SUBJECTS if re.search(one, message, re.IGNORECASE)}


def agree(ours: Answer, theirs: Answer) -> bool:
    """Return whether both are the same value, or errors of one class on one subject."""
    if "value" in ours or "value" in theirs:
        return ours == theirs
    if theirs["errors"][0] not in ours["errors"]:
        return False
    if ours["message"] == theirs["message"] or re.search(PYTHON_WORDS, theirs["message"]):
        return True
    about = subjects(theirs["message"].partition("!")[0])
    return bool(about) and about <= subjects(ours["message"])


def among(recorded: str, ours: Answer) -> str:
    """Return our short answer: the recorded class of error if ours inherits from it."""
    inherits = recorded.removeprefix("raises ") in ours.get("errors", [])
    return recorded if inherits else short(ours)


@pytest.fixture(scope="module")
def theirs() -> dict[str, Answer]:
    done = subprocess.run(
        [PYTHON, "-W", "ignore", debugger_answers.__file__, "sagemaker.debugger"],
        input=json.dumps(CALLS + DIFFERENT),
        capture_output=True,
        text=True,
        check=True,
    )
    answered: dict[str, Answer] = json.loads(done.stdout[done.stdout.index("{") :])
    return answered


@pytest.fixture(scope="module")
def ours() -> dict[str, Answer]:
    return answers("rule_runner.debugger", CALLS + DIFFERENT)


def test_calls_are_answered_as_recorded(ours: dict[str, Answer]) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert {call: among(recorded[call], ours[call]) for call in CALLS} == recorded


@pytest.mark.old_library
@without_sdk
def test_the_record_is_what_the_sdk_answers(theirs: dict[str, Answer]) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert recorded == {call: short(theirs[call]) for call in CALLS}


@pytest.mark.old_library
@without_sdk
def test_calls_are_answered_alike(ours: dict[str, Answer], theirs: dict[str, Answer]) -> None:
    apart = {call: (ours[call], theirs[call]) for call in CALLS}
    assert {call: both for call, both in apart.items() if not agree(*both)} == {}


@pytest.mark.old_library
@without_sdk
def test_what_is_listed_as_different_is(ours: dict[str, Answer], theirs: dict[str, Answer]) -> None:
    assert [call for call in DIFFERENT if agree(ours[call], theirs[call])] == []


def test_there_are_enough_calls() -> None:
    assert len(CALLS) >= 250


def test_the_document_lists_the_differences() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").partition("\n## `smdebug`")[0]
    rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    assert rows == ["What", "---", *(name.replace("|", r"\|") for name in DIFFERENCES)]
