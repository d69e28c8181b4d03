"""A brief answer for programs, and for people in a hurry: at most 2 kB of plain lines.

Its form is stable: ``exit code``, then for each run a line with its state and indented lines that
begin with ``cause``, ``evidence``, ``advice``, ``follows``, ``other causes``, ``problem``,
``steps``, ``seen`` and ``not seen``. What comes from a trial or a rule stands in double quotes, as
in JSON, and is shortened.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from rule_runner import errors
from rule_runner.escape import printable
from rule_runner.report.text import evidence, headline, place, reason
from rule_runner.results.issues.incidents import RunState, incidents, run_state
from rule_runner.results.schema import RuleResult, TrialSummary
from rule_runner.results.status import Outcome

LIMIT: Final = 2000  # bytes
_CLOSING: Final = 150  # bytes kept for the last line
NAME_LENGTH: Final = 60  # bytes
SENTENCE_LENGTH: Final = 260
_NAMED: Final = 3  # consequences, and further causes
_MEANINGS: Final = {
    0: "no issue counts for --fail-on, or it was not given",
    errors.EXIT_CLIENT: "a rule, its parameters or the trial is at fault, or nothing was judged",
    errors.EXIT_ISSUES: "an issue counts for --fail-on",
    errors.EXIT_OUTPUT: "results could not be written",
    errors.EXIT_TIMEOUT: "the evaluation ended before all steps were judged",
}
_ORDER: Final = (*RunState,)


class JudgedRun(NamedTuple):
    """A run and the results of its rules.

    Attributes
    ----------
    trial
        What is known of the trial; None if nothing is.
    left_out
        The names of the rules that were not run.
    problem
        Why the run could not be judged, or its results not be written; "" otherwise.
    """

    name: str
    rules: Sequence[RuleResult]
    trial: TrialSummary | None = None
    left_out: Collection[str] = ()
    problem: str = ""


def brief(runs: Sequence[JudgedRun], exit_code: int) -> str:
    """Return the states of runs, the worst first, as many as fit."""
    meaning = _MEANINGS.get(exit_code, "a signal ended the command, or it failed")
    lines = [f"exit code {exit_code}: {meaning}"]
    size = len(lines[0].encode()) + 1
    ordered = sorted(runs, key=lambda run: _ORDER.index(_state(run)))
    for count, run in enumerate(ordered):
        described = [*_run(run)]
        size += sum(len(line.encode()) + 1 for line in described)
        if size > LIMIT - _CLOSING:
            states = Counter(map(_state, ordered[count:]))
            counts = ", ".join(f"{states[state]} {state}" for state in _ORDER if states[state])
            return "\n".join([*lines, f"and {len(ordered) - count} more: {counts}"])
        lines += described
    return "\n".join(lines)


def _state(run: JudgedRun) -> RunState:
    return run_state(run.rules, run.problem)


def _run(run: JudgedRun) -> Iterator[str]:
    """Yield the lines on a run."""
    name = _quoted(run.name, NAME_LENGTH)
    if run.problem and not run.rules:
        yield f"{name}: {RunState.UNKNOWN}"
        yield f"  problem: {_quoted(run.problem)}"
        return
    grows = "" if run.trial is None or run.trial.ended else " (may still grow)"
    yield f"{name}: {headline(run.rules, left_out=run.left_out, problem=run.problem)}{grows}"
    grouped = incidents(run.rules)
    for root, consequences in grouped[:1]:
        yield from _incident(root, consequences)
    if grouped[1:]:
        yield f"  other causes: {_names([incident.root for incident in grouped[1:]])}"
    failed = [rule for rule in run.rules if rule.outcome in {Outcome.ERROR, Outcome.STOPPED}]
    problems = [f"{rule.configuration_name}: {reason(rule)}" for rule in failed]
    for problem in ([run.problem] if run.problem else problems)[:1]:
        yield f"  problem: {_quoted(problem)}"
    if run.trial is not None:
        first, last = run.trial.first_step, run.trial.last_step
        yield f"  steps: {run.trial.steps}, {first} to {last}"
        for label, names in (("seen", run.trial.saved), ("not seen", run.trial.not_saved)):
            if names:
                yield f"  {label}: {', '.join(names)}"


def _incident(root: RuleResult, consequences: Sequence[RuleResult]) -> Iterator[str]:
    """Yield the lines on a root cause and what may follow from it."""
    severity = root.counted_severity
    yield f"  cause: {_quoted(root.configuration_name, NAME_LENGTH)} ({severity})"
    if finding := root.main_finding:
        yield f"  evidence: {_quoted(evidence(finding, root.unit, advised=False))}"
        if finding.advice:
            yield f"  advice: {_quoted(finding.advice)}"
    if consequences:
        yield f"  follows: {_names(consequences)}"


def _names(rules: Sequence[RuleResult]) -> str:
    names = [
        f"{_quoted(rule.configuration_name, NAME_LENGTH)}{place(rule)}" for rule in rules[:_NAMED]
    ]
    return ", ".join(names) + f" and {len(rules) - _NAMED} more" * (len(rules) > _NAMED)


def _quoted(words: str, length: int = SENTENCE_LENGTH) -> str:
    """Return words as a JSON string of at most so many bytes."""
    quoted = json.dumps(printable(words), ensure_ascii=False)
    if len(quoted.encode()) <= length:
        return quoted
    return quoted.encode()[: length - 4].decode(errors="ignore").rstrip("\\") + '..."'
