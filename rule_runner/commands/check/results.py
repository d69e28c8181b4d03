"""CheckResult and CheckedTrial: what `check` finds out."""

import msgspec

from rule_runner.results.schema import EvaluationResult


class CheckedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one trial: an entry of ``--format json``.

    Attributes
    ----------
    path
        The path of the trial, as it was found.
    results
        The folder of its results; "" if it has none.
    exit_code
        The exit code that `check` would have for this trial alone.
    evaluation
        The results of the rules that were run; None if the trial could not be judged.
    problem
        Why it could not be judged, or its results not be written; "" otherwise.
    left_out
        The reason why each of the other rules was not run, by name.
    """

    path: str
    results: str = ""
    exit_code: int = 0
    evaluation: EvaluationResult | None = None
    problem: str = ""
    left_out: dict[str, str] = {}


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `check`: the object that ``--format json`` prints.

    Attributes
    ----------
    problems
        Sentences on what is wrong with the paths.
    results, report
        The folder of all results, and the report on all trials; "" if there is none.
    """

    schema_version: int = 1
    trials: list[CheckedTrial]
    problems: list[str] = []
    results: str = ""
    report: str = ""
