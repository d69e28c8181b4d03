"""The page of a report: one HTML file that needs no other, no network and no server."""

import hashlib
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from rule_runner.durable import make_folder, write_atomically
from rule_runner.loader import every_builtin
from rule_runner.report.chart import COLOURED, Chart
from rule_runner.report.lines import Drawing, Line, shown
from rule_runner.report.picture import CHART, COLOURS
from rule_runner.report.saved import ORDER, RuleJob, Run, Saved, read
from rule_runner.report.scale import number
from rule_runner.results import JsonScalar
from rule_runner.results import versions as own_versions
from rule_runner.show import printable
from rule_runner.status import NOT_ENOUGH, Outcome

NAME: Final = "report.html"
TEMPLATES: Final = Path(__file__).with_name("templates")
FINDINGS_SHOWN: Final = 5  # before one has to ask for the rest
LINES_SHOWN: Final = 8
NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
OPEN_JOBS: Final = 6  # a page of more rule jobs folds up those without an issue

WORDS: Final = {
    Outcome.ISSUES_FOUND: ("Issues found", "✕"),
    Outcome.ERROR: ("Error", "!"),
    Outcome.NOT_EVALUATED: ("Not evaluated", "?"),
    Outcome.STOPPED: ("Stopped", "■"),
    Outcome.STOPPING: ("Stopping", "■"),
    Outcome.IN_PROGRESS: ("In progress", "…"),
    Outcome.NO_ISSUES_FOUND: ("No issues found", "✓"),
}


@dataclass(frozen=True, slots=True)
class _Figure:
    """A chart on the page."""

    id: str
    chart: Chart

    @property
    def drawing(self) -> Drawing:
        return self.chart.drawing

    @property
    def svg(self) -> Markup:
        return Markup(self.chart.svg(self.id))  # noqa: S704 - its texts are escaped

    @property
    def limit_shown(self) -> str:
        """What the legend calls the limit; "" if there is none to be seen."""
        limit, lines = self.drawing.limit, self.drawing.lines
        if limit is not None:
            return f"limit {number(limit)}" if math.isfinite(limit) else ""
        return "its limit" if len(lines) == 1 else f"limit of {lines[0].name}"

    @property
    def odd_shown(self) -> str:
        """What the legend calls the values at the edge; "" if there are none."""
        odd = {
            number(point.measured)
            for line in self.drawing.lines
            for point in line.points
            if not self.chart.values.holds(point.measured)
        }
        names = [one if one in NOT_FINITE else "0 or less" for one in odd]
        return f"at the edge: {', '.join(sorted(set(names)))}" if names else ""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines, the worst first, as a table."""
        return [self._row(at, line) for at, line in enumerate(self.drawing.lines)]

    def _row(self, at: int, line: Line) -> dict[str, Any]:
        worst, met = line.worst(self.drawing.quantity.worse), line.met
        return {
            "at_line": at,
            "name": line.name,
            "colour": f"c{at}" if at < COLOURED else "pale",
            "worst": number(worst.measured),
            "limit": number(worst.limit),
            "at": f"{worst.step:,}",
            "first": f"{met[0].step:,}" if met else "",
        }


def write_report(folders: Sequence[Path], output: Path, title: str) -> Path:
    """Write one page on all results in `folders`, and return where it lies.

    Parameters
    ----------
    folders
        Output folders of rule jobs, or folders with such in them.
    output
        The file; in a folder it is called ``report.html``.
    title
        What stands at the top.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    return write_page(read(folders), output, title)


def write_page(saved: Saved, output: Path, title: str) -> Path:
    """Write the page on what was read; see `write_report`."""
    path = output / NAME if output.is_dir() else output
    make_folder(path.parent)
    write_atomically(path, page(saved, title))
    return path


def page(saved: Saved, title: str) -> str:
    """Return the page as text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, printable=printable, scalar=_scalar)
    jobs = [job for run in saved.runs for job in run.jobs]
    style = COLOURS + CHART + (TEMPLATES / "report.css").read_text("utf-8")
    script = (TEMPLATES / "report.js").read_text("utf-8")
    return environment.get_template("report.html.jinja").render(
        title=title,
        style=Markup(style),  # noqa: S704 - our own
        script=Markup(script),  # noqa: S704 - our own
        style_hash=_hash(style),
        script_hash=_hash(script),
        summary=_summary(jobs),
        problems=saved.problems,
        lines_shown=LINES_SHOWN,
        findings_shown=FINDINGS_SHOWN,
        runs=_runs(saved.runs, len(jobs)),
        columns=_columns(saved.runs),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=own_versions()["rule-runner"],
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{b64encode(digest).decode()}"


def _summary(jobs: Iterable[RuleJob]) -> list[dict[str, Any]]:
    """Return how many rule jobs came to what, those that need a reader first."""
    counts = Counter(job.result.outcome for job in jobs)
    return [
        {
            "outcome": str(outcome),
            "word": WORDS[outcome][0],
            "sign": WORDS[outcome][1],
            "count": counts[outcome],
        }
        for outcome in ORDER
        if counts[outcome]
    ]


def _columns(runs: Iterable[Run]) -> list[str]:
    """Return the names of all rule jobs, sorted."""
    return sorted({job.result.configuration_name for run in runs for job in run.jobs})


def _runs(runs: Sequence[Run], jobs: int) -> list[dict[str, Any]]:
    """Return what the page shows of each run; of trials of one name, their folders' names too."""
    trials = [shown(run.trial.rstrip("/").rpartition("/")[2] or run.trial) for run in runs]
    names = [
        f"{trial} in {shown(run.folder.name)}" if trials.count(trial) > 1 else trial
        for trial, run in zip(trials, runs, strict=True)
    ]
    return [
        _run(at, name, run, jobs) for at, (name, run) in enumerate(zip(names, runs, strict=True))
    ]


def _run(at: int, name: str, run: Run, jobs: int) -> dict[str, Any]:
    views = [_job(f"rule-{at + 1}-{n + 1}", job, jobs) for n, job in enumerate(run.jobs)]
    return {
        "id": f"run-{at + 1}",
        "name": name,
        "trial": run.trial,
        "folder": run.address or str(run.folder),
        "ended": all(job.result.trial_ended for job in run.jobs),
        "jobs": views,
        "by_name": {view["result"].configuration_name: view for view in views},
    }


def _job(name: str, job: RuleJob, jobs: int) -> dict[str, Any]:
    result = job.result
    outcome = Outcome(result.outcome) if result.outcome in list(Outcome) else Outcome.ERROR
    word, sign = WORDS[outcome]
    silent = outcome is Outcome.NO_ISSUES_FOUND
    return {
        "id": name,
        "result": result,
        "outcome": str(outcome),
        "word": word,
        "sign": sign,
        "at": f" at {result.unit} {result.step:,}" if result.step is not None else "",
        "reason": _reason(result.status_details or "", outcome),
        "share": round(100 * result.coverage.judged / max(result.coverage.known, 1)),
        "open": not silent or jobs <= OPEN_JOBS,
        "figures": [_Figure(f"{name}-{n}", Chart(one)) for n, one in enumerate(job.drawings)],
        "left_out": job.left_out,
        "problem": job.problem,
        "page": _advice(result.rule) if outcome is Outcome.ISSUES_FOUND else None,
    }


def _reason(details: str, outcome: Outcome) -> str:
    """Return why there is no other verdict."""
    if outcome is Outcome.ISSUES_FOUND:
        return ""
    return details.removeprefix(NOT_ENOUGH).strip()


def _advice(rule: str) -> Markup | None:
    """Return what to do when a built-in rule fires; None for others."""
    rules = every_builtin()
    page = rules[rule].PAGE if rule in rules else None
    if page is None:
        return None
    html = MarkdownIt("commonmark", {"html": False}).render(page.remedy)
    return Markup(html)  # noqa: S704 - a rule's own text, and HTML in it is escaped


def _scalar(value: JsonScalar) -> str:
    """Return a value of a finding for people."""
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return shown(value)
