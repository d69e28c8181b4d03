"""Results as Markdown: the summary of a workflow, a check run, or a comment on GitHub."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from rule_core.sources.address import address_of
from rule_runner.escape import printable
from rule_runner.report.saved_results import Run, Saved, SavedRuleJob
from rule_runner.report.text import evidence, place, reason
from rule_runner.results.status import Outcome

MOST_FINDINGS: Final = 200  # lines
MOST_CHARACTERS: Final = 60_000  # GitHub takes 65,535
_BACKTICKS: Final = re.compile("`+")
_ATTENTION: Final = (Outcome.ISSUES_FOUND, Outcome.ERROR)


def title(saved: Saved) -> str:
    """Return the result in a few words."""
    marked = sum(any(_attention(job) for job in run.jobs) for run in saved.runs)
    trials = f"{len(saved.runs)} trial" + "s" * (len(saved.runs) != 1)
    return f"{marked} of {trials} with issues" if marked else f"No issues in {trials}"


def markdown(saved: Saved) -> str:
    """Return a table of trials, and a line for each rule that found issues or failed."""
    lines = [f"### rule-runner: {title(saved)}", "", "| trial | outcome |", "|---|---|"]
    lines += [f"| {code(address_of(run.trial).name)} | {_outcomes(run)} |" for run in saved.runs]
    findings = [line for run in saved.runs for line in _findings(run)]
    lines += ["", *findings[:MOST_FINDINGS]]
    if len(findings) > MOST_FINDINGS:
        lines.append(f"- and {len(findings) - MOST_FINDINGS} more")
    lines += [f"- {code(problem)}" for problem in saved.problems]
    text = "\n".join(lines).rstrip() + "\n"
    if len(text) <= MOST_CHARACTERS:
        return text
    return text[:MOST_CHARACTERS].rpartition("\n")[0] + "\n\nThe rest is in the report.\n"


def code(text: str) -> str:
    """Return text as Markdown code, which mentions nobody and holds no markup.

    >>> code("a`b")
    '`` a`b ``'
    """
    plain = printable(text).replace("|", r"\|")
    longest = max((len(run) for run in _BACKTICKS.findall(plain)), default=0)
    if not longest:
        return f"`{plain}`"
    fence = "`" * (longest + 1)
    return f"{fence} {plain} {fence}"


def _attention(job: SavedRuleJob) -> bool:
    return job.result.outcome in _ATTENTION and not job.result.is_set_aside


def _outcomes(run: Run) -> str:
    counts = Counter(job.result.current_outcome for job in run.jobs)
    muted = sum(job.result.is_muted for job in run.jobs)
    texts = [f"{count} {outcome}" for outcome, count in counts.items()]
    return ", ".join(texts + [f"{muted} of them muted"] * (muted > 0))


def _findings(run: Run) -> Iterator[str]:
    """Yield a line for each rule of a run that needs attention, or has recovered."""
    for job in run.jobs:
        rule = job.result
        if not (_attention(job) or rule.has_recovered):
            continue
        found = rule.outcome == Outcome.ISSUES_FOUND
        word = rule.severity or "issue" if found else rule.outcome
        word = rule.current_outcome if rule.has_recovered else word
        finding = rule.main_finding
        evidenced = evidence(finding, rule.unit) if finding else place(rule).strip()
        details = evidenced if found else reason(rule)
        name = code(rule.configuration_name)
        yield f"- **{word}** {name} in {code(address_of(run.trial).name)}: {code(details)}"
