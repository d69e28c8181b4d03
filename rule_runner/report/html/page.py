"""The page of a report: one self-contained HTML file."""

import hashlib
import os
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import UNSET

from builtin_rules.rule_page import rule_page
from rule_core.severity import Severity
from rule_core.sources.address import address_of
from rule_runner.loading.loader import every_builtin
from rule_runner.report.html.markup import Html
from rule_runner.report.html.report_form import report_form, step_of
from rule_runner.report.html.series import display_name
from rule_runner.report.html.svg_chart import SvgChart
from rule_runner.report.saved_results import Run, Saved, SavedRuleJob, ordered, read
from rule_runner.report.text import STATE_OUTCOMES, headline, origin
from rule_runner.results.durable_files import make_folder, remove_scratch, write_atomically
from rule_runner.results.evaluations import ORDER
from rule_runner.results.file_names import REPORT
from rule_runner.results.issues.incidents import in_causal_order, run_state
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import FindingState, Outcome, for_people
from rule_runner.results.versions import versions as own_versions

TEMPLATES: Final = Path(__file__).with_name("templates")
OPEN_JOBS: Final = 6  # on larger pages, rule jobs without issues are folded
FOLDED_JOBS: Final = 2  # at least so many rule jobs without a verdict are folded into one line
SILENT: Final = Outcome.NOT_EVALUATED
QUIET: Final = (SILENT, Outcome.NO_ISSUES_FOUND)  # only counted on narrow screens

_RECOVERED: Final = "Recovered", "○"
WORDS: Final = {
    Outcome.ISSUES_FOUND: ("Issues found", "✕"),
    Outcome.ERROR: ("Error", "!"),
    Outcome.NOT_EVALUATED: ("Not evaluated", "?"),
    Outcome.STOPPED: ("Stopped", "■"),
    Outcome.STOPPING: ("Stopping", "■"),
    Outcome.IN_PROGRESS: ("In progress", "…"),
    Outcome.NO_ISSUES_FOUND: ("No issues found", "✓"),
}


def write_report(output: Path, title: str, target: Path | None = None) -> Path:
    """Write one page about the results in a folder and below, and return its path.

    Parameters
    ----------
    output
        The output folder.
    title
        Title of the page.
    target
        The file, or a folder for ``report.html``; by default `output`.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    return write_page(read([str(output)]), target or output, title)


def write_page(saved: Saved, output: Path, title: str) -> Path:
    """Write the page about saved results to a file or folder, and return its path."""
    path = output / REPORT if output.is_dir() else output
    make_folder(path.parent)
    write_atomically(path, page(saved, title))
    remove_scratch(path.parent)
    return path


def write_overview(
    results: Mapping[Path, Sequence[RuleResult]], problems: Sequence[str], output: Path
) -> Path:
    """Write the report on many trials to the folder `output`, and return its path.

    It is a table of verdicts with links to the report of each trial.

    Parameters
    ----------
    results
        The results of each trial, in the order of the table, by its folder in `output`.
    problems
        A message for each trial that could not be judged.

    Raises
    ------
    OutputError
        If the report cannot be written.
    """
    runs = [_linked_run(folder, rules, output) for folder, rules in results.items() if rules]
    title = f"{len(runs)} trials" if len(runs) != 1 else "1 trial"
    return write_page(Saved(tuple(runs), tuple(problems)), output, title)


def _linked_run(folder: Path, rules: Sequence[RuleResult], output: Path) -> Run:
    jobs = ordered(map(SavedRuleJob, rules))
    own = folder / REPORT
    link = quote(os.path.relpath(own, output)) if own.is_file() else ""
    return Run(str(folder), rules[0].trial, jobs, page=link)


def page(saved: Saved, title: str) -> str:
    """Return the page as text."""
    jobs = [job for run in saved.runs for job in run.jobs]
    columns = _columns(saved.runs, evaluated=True)
    return report_form(
        title=title,
        summary=tally(_outcomes(jobs)),
        problems=saved.problems,
        runs=_runs(saved.runs, len(jobs)),
        columns=columns,
        silent_columns=[display_name(name) for name in _columns(saved.runs) if name not in columns],
        **frame(
            template_text("colours.css", "charts.css", "report.css"), template_text("report.js")
        ),
    )


def template_text(*names: str) -> str:
    """Return the texts of files in the folder of templates, one after the other."""
    return "".join((TEMPLATES / name).read_text("utf-8") for name in names)


def frame(style: str, script: str) -> dict[str, Html]:
    """Return what every page has: style and script with their hashes, its date and version."""
    values = {
        "style": style,
        "script": script,
        "style_hash": content_hash(style),
        "script_hash": content_hash(script),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": own_versions()["rule-runner"],
    }
    return {name: Html(value) for name, value in values.items()}


def content_hash(text: str) -> str:
    """Return the hash by which a page allows its own style and script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{b64encode(digest).decode()}"


def tally(counts: Mapping[Any, int]) -> list[dict[str, Any]]:
    """Return words for the counts of outcomes; outcomes that need attention come first."""
    shown = [
        *((str(outcome), outcome, *WORDS[outcome]) for outcome in ORDER),
        (str(FindingState.RECOVERED), Outcome.STOPPED, *_RECOVERED),
    ]
    return [
        {"outcome": str(tone), "word": word, "sign": sign, "count": counts[key]}
        for key, tone, word, sign in shown
        if counts.get(key)
    ]


def _outcomes(jobs: Iterable[SavedRuleJob]) -> Counter[str]:
    """Return how many rule jobs have each outcome; issues that have recovered count apart."""
    return Counter(job.result.current_outcome for job in jobs)


def _columns(runs: Iterable[Run], *, evaluated: bool = False) -> list[str]:
    """Return the sorted names of all rule jobs, or of those with a verdict in any run."""
    jobs = [job.result for run in runs for job in run.jobs]
    return sorted(
        {job.configuration_name for job in jobs if not (evaluated and job.outcome == SILENT)}
    )


def _runs(runs: Sequence[Run], jobs: int) -> list[dict[str, Any]]:
    """Return each run for the template; trials of the same name are shown with their folders."""
    trials = [display_name(address_of(run.trial).name) for run in runs]
    names = [
        f"{trial} in {display_name(run.output.rpartition('/')[2])}"
        if trials.count(trial) > 1
        else trial
        for trial, run in zip(trials, runs, strict=True)
    ]
    return [_run(index, names[index], run, jobs) for index, run in enumerate(runs)]


def _run(index: int, name: str, run: Run, jobs: int) -> dict[str, Any]:
    own = 0 if run.page else index  # a run with its own page is the first on that page
    results = [job.result for job in run.jobs]
    roots = {id(rule): root for rule, root in in_causal_order(results)}
    views = [
        _job(f"rule-{own + 1}-{n + 1}", job, jobs, roots[id(job.result)])
        for n, job in enumerate(run.jobs)
    ]
    outcomes = _outcomes(run.jobs)
    folded = [view for view in views if view["outcome"] == SILENT]
    if len(folded) < FOLDED_JOBS or len(folded) == len(views):
        folded = []
    is_folded = {view["id"] for view in folded}
    unevaluated = {
        view["result"].configuration_name: (view["id"], view["reason"], view["result"].notes)
        for view in folded
    } | {rule: ("", reason, []) for rule, reason in run.left_out.items()}
    return {
        "id": f"run-{index + 1}",
        "name": name,
        "trial": run.trial,
        "folder": run.output,
        "page": run.page,
        "state": headline(results, run.summary, run.left_out),
        "tone": STATE_OUTCOMES[run_state(results)],
        "ended": all(job.result.trial_ended for job in run.jobs),
        "shown": [view for view in views if view["id"] not in is_folded],
        "unevaluated": dict(sorted(unevaluated.items())),
        "counts": [count for count in tally(outcomes) if count["outcome"] in QUIET],
        "by_name": {view["result"].configuration_name: view for view in views},
    }


def _place(result: RuleResult) -> str:
    """Return where the condition was first met, and until where it held if it has recovered."""
    if result.step is None:
        return ""
    place = f" at {result.unit} {step_of(result)}"
    if result.recovered_at is UNSET or result.resumed_from is not UNSET:
        return place
    return f"{place}, until {result.unit} {result.recovered_at}"


def _job(name: str, job: SavedRuleJob, jobs: int, root: RuleResult | None) -> dict[str, Any]:
    """Return a rule job for the template; `root` is the issue that its own may follow from."""
    result = job.result
    outcome = Outcome(result.outcome) if result.outcome in list(Outcome) else Outcome.ERROR
    word, sign = WORDS[outcome]
    details = "" if outcome is Outcome.ISSUES_FOUND else result.status_details or ""
    finding = result.main_finding
    silent = outcome is Outcome.NO_ISSUES_FOUND
    if result.severity is Severity.WARNING:
        word, sign = "Warning", "▲"
    if result.is_set_aside:
        word, sign = ("Muted", "○") if result.is_muted else _RECOVERED
    return {
        "id": name,
        "result": result,
        "outcome": str(outcome),
        "tone": str(Outcome.STOPPED if result.is_set_aside else outcome),
        "word": word,
        "sign": sign,
        "acknowledged": ", acknowledged" * result.is_acknowledged,
        "at": _place(result) + origin(root),
        "reason": for_people(details) or (finding and finding.summary) or "",
        "advice": (finding and finding.advice) or "",
        "quiet": outcome in QUIET,
        "open": not silent or jobs <= OPEN_JOBS,
        "charts": [*map(SvgChart, job.drawings)],
        "saved": job,
        "page": _advice(result.rule) if outcome is Outcome.ISSUES_FOUND else "",
    }


def _advice(rule: str) -> str:
    """Return the advice of a built-in rule as HTML; "" for other rules."""
    rules = every_builtin()
    if rule not in rules:
        return ""
    from markdown_it import MarkdownIt

    html: str = MarkdownIt("commonmark", {"html": False}).render(rule_page(rules[rule]).remedy)
    return html
