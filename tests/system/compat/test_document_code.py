"""The code of the documents, run as printed where it is code that can run."""

import ast
import cProfile
import importlib
import pstats
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import smdebug.trials
from rule_runner import debugger
from smdebug.exceptions import NoMoreData
from smdebug.profiler.analysis.utils.python_profile_analysis_utils import cProfileStats
from smdebug.rules import Rule
from smdebug.trials import Trial, create_trial

DOCUMENTS = Path(__file__).parents[4] / "shared" / "documents"
MISSING = "../shared/documents is not beside the clone."
BEGIN = re.compile(r"\s*(?:(?:from [\w.]+ )?import |trial\.|(?:collection|hook)_configs? ?=)")
PROSE = re.compile(r"```|\w+ \(|get_\w+\(")  # a parameter with its type, a heading, a block's end
# What the code of a document needs that it does not define.
ARGUMENTS = {
    "step": 4,
    "step_num": 4,
    "n": 2,
    "tname": "loss",
    "name": "loss",
    "coll_name": "losses",
    "required_steps": [0, 4],
    "reduction_name": "mean",
    "collection_configs": [debugger.CollectionConfig("losses")],
}


def blocks(text: str) -> list[str]:
    """Return the longest pieces of code that parse, by the line where each begins."""
    found, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        ends = range(at + 1, min(at + 40, len(lines)) + 1) if BEGIN.match(lines[at]) else ()
        prose = next((end for end in ends[1:] if PROSE.match(lines[end - 1].strip())), None)
        pieces = {end: dedent("\n".join(lines[at:end])) for end in ends if end != prose}
        parsed = [
            end for end, code in pieces.items() if (not prose or end < prose) and _parses(code)
        ]
        if parsed:
            found.append(pieces[parsed[-1]])
        at = parsed[-1] if parsed else at + 1
    return found


def corrected(text: str) -> str:
    """Return a document without two errors: a lost indentation, and a method that is given self."""
    return text.replace(":\npass", ":\n    pass").replace("_function(self, ", "_function(")


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


class VanishingGradientRule(Rule):
    def __init__(self, base_trial: Trial, threshold: object = 0.0000001) -> None:
        super().__init__(base_trial, other_trials=None)
        self.threshold = threshold

    def invoke_at_step(self, step: int) -> bool:
        return step == 4


CODE = [
    pytest.param(code, id=f"{path.name[:3]}-{number}")
    for path in sorted(DOCUMENTS.glob("0*.txt"))
    for number, code in enumerate(blocks(corrected(path.read_text(encoding="utf-8"))))
]


@pytest.fixture
def names(documented_path: Path, ended: Trial, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the documents' code may use; its imports and trials are those of this product."""
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    for module in ("debugger", "debugger.metrics_config"):
        ours = importlib.import_module(f"rule_runner.{module}")
        monkeypatch.setitem(sys.modules, f"sagemaker.{module}", ours)
    monkeypatch.setitem(sys.modules, "sagemaker", sys.modules["rule_runner"])

    def opened(path: str, **options: Any) -> Trial:
        assert path.startswith(("s3://", "/home/ubuntu/"))
        return create_trial(str(documented_path), **{**options, "range_steps": None})

    monkeypatch.setattr(smdebug.trials, "create_trial", opened)
    every = {name: value for name, value in vars(debugger).items() if name[0] != "_"}
    own: dict[str, Any] = {
        "VanishingGradientRule": VanishingGradientRule,
        "trial": ended,
        "trials": [ended],
    }
    profile = cProfile.Profile()
    profile.runcall(sorted, [2, 1])
    own["cprofile_stats"] = cProfileStats(pstats.Stats(profile))
    modes = {"modes": smdebug.modes, "ModeKeys": smdebug.modes}
    return {**every, **own, **modes, **ARGUMENTS}


@pytest.mark.skipif(not CODE, reason=MISSING)
@pytest.mark.parametrize("code", CODE)
def test_code_of_the_documents_runs_as_printed(code: str, names: dict[str, Any]) -> None:
    try:
        exec(compile(code, "<document>", "exec"), names)
    except NoMoreData:  # the documented end of `invoke_rule`
        assert "invoke_rule" in code


@pytest.mark.skipif(not CODE, reason=MISSING)
def test_the_code_of_the_documents_is_found() -> None:
    assert len(CODE) >= 50
