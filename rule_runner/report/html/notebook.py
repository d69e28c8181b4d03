"""The results of runs as HTML for notebooks: a line for each run, its incidents, small curves."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from rule_core.named_texts import NamedTexts
from rule_core.optional_imports import data_frame
from rule_runner.escape import printable
from rule_runner.report.html.markup import NOTHING, Html, html, html_if
from rule_runner.report.html.page import TEMPLATES, template_text
from rule_runner.report.html.series import display_name
from rule_runner.report.html.svg_chart import SvgChart
from rule_runner.report.saved_results import saved_rule_job
from rule_runner.report.text import headline, lines, reason, sentence, verdict
from rule_runner.results.evaluations import UNREADABLE, read_measurements
from rule_runner.results.issues.incidents import Incident, RunState, incidents, run_state
from rule_runner.results.json_text import json_digest
from rule_runner.results.measurements import MeasurementsFile
from rule_runner.results.schema import EvaluationResult, RuleResult, finding_rows, in_order, summary
from rule_runner.results.status import Outcome

if TYPE_CHECKING:
    from rule_core.optional_imports import DataFrame

RUNS_IN_FULL: Final = 20  # of further runs, only the line is shown
LINES_DRAWN: Final = 5
CONSEQUENCES: Final = 8
_FORMS: Final = NamedTexts(TEMPLATES / "notebook.html")


class NotebookRun(NamedTuple):
    """A run as notebooks show it.

    Attributes
    ----------
    evaluation
        The results of its rules; None if it could not be judged.
    lines
        Sentences below its line; "" is left out.
    left_out
        The names of the rules that were not run.
    """

    name: str
    headline: str
    state: RunState
    evaluation: EvaluationResult | None
    lines: Sequence[str] = ()
    left_out: Collection[str] = ()


class ShownResult(EvaluationResult, frozen=True, kw_only=True, dict=True):
    """Results of an evaluation that notebooks show, and that pandas takes."""

    @classmethod
    def of(cls, result: EvaluationResult, folder: str | Path) -> "ShownResult":
        """Return a result with what its rules with issues measured, if its folder holds that."""
        shown = cls(**structs.asdict(result))
        with suppress(*UNREADABLE):
            saved = read_measurements(str(folder))
            names = {rule.configuration_name for rule in result.rules if rule.has_issues()}
            kept = {name: record for name, record in saved.rules.items() if name in names}
            vars(shown)["measurements"] = MeasurementsFile(rules=kept)  # no field: not in JSON
        return shown

    def _repr_html_(self) -> str:
        """Return the results as HTML, which notebooks show."""
        return evaluation_html(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print the results as text in IPython."""
        printer.text("\n".join(lines(self, folded=True)))

    def to_pandas(self) -> "DataFrame":
        """Return a frame with a row for each finding, and for each rule without one."""
        return data_frame(finding_rows(self.rules))


def evaluation_html(result: EvaluationResult) -> str:
    """Return the results of an evaluation as HTML."""
    rules = result.rules
    name, left_out = result.trial.name, result.left_out
    line = headline(rules, result.trial, left_out)
    run = NotebookRun(name, line, run_state(rules), result, result.notes, left_out)
    return runs_html([run])


def runs_html(runs: Sequence[NotebookRun], lines: Iterable[str] = ()) -> str:
    """Return runs as HTML, followed by sentences; everything that comes from a trial is escaped."""
    return html(
        _FORMS["output"],
        style=_style(),
        runs=[_run(run, is_full=index < RUNS_IN_FULL) for index, run in enumerate(runs)],
        lines=_lines(lines),
    )


@cache
def _style() -> Html:
    """Return the style of charts, in the light colours only: themes of notebooks have their own."""
    colours, _, _ = template_text("colours.css").partition("@media")
    own = template_text("charts.css", "notebook.css")
    return Html(f".rule-runner{{{colours.replace(':root', '&')}{own}}}")


def _lines(sentences: Iterable[str]) -> list[Html]:
    return [html(_FORMS["line"], text=printable(line)) for line in filter(None, sentences)]


def _run(run: NotebookRun, *, is_full: bool) -> Html:
    rules = run.evaluation.rules if run.evaluation and is_full else []
    measurements = getattr(run.evaluation, "measurements", None)
    return html(
        _FORMS["run"],
        tone=run.state.replace(" ", "-"),
        name=display_name(run.name),
        headline=printable(run.headline),
        lines=_lines(run.lines),
        incidents=[_incident(incident, measurements) for incident in incidents(rules)],
        rules=_rules(rules, run.left_out),
    )


def _incident(incident: Incident, measurements: MeasurementsFile | None) -> Html:
    root = incident.root
    advice = root.main_finding.advice if root.main_finding else ""
    return html(
        _FORMS["incident"],
        severity=root.severity or incident.severity,
        advice=html_if(advice, _FORMS["advice"], text=printable(advice)),
        consequences=[
            html(_FORMS["consequence"], **_said(rule))
            for rule in incident.consequences[:CONSEQUENCES]
        ],
        figure=_figure(root, measurements),
        **_said(root),
    )


def _said(rule: RuleResult) -> dict[str, str]:
    return {"rule": display_name(rule.configuration_name), "sentence": _sentence(rule)}


def _sentence(rule: RuleResult) -> str:
    """Return what the main finding of a rule says, or what failed."""
    failed = rule.outcome in {Outcome.ERROR, Outcome.STOPPED}
    return reason(rule) if failed else printable(sentence(rule))


def _figure(rule: RuleResult, measurements: MeasurementsFile | None) -> Html:
    """Return a small chart of the first quantity of a rule; nothing if it has none."""
    drawings = saved_rule_job(rule, measurements).drawings
    if not drawings:
        return NOTHING
    chart = SvgChart(replace(drawings[0], lines=drawings[0].lines[:LINES_DRAWN]))
    digest = json_digest([rule.trial, rule.run_id, rule.configuration_name], 16)
    return html(
        _FORMS["figure"],
        label=display_name(drawings[0].quantity.label),
        svg=Html(chart.svg(f"rule-runner-{digest}")),
        unit=rule.unit,
        lines=[
            html(_FORMS["legend_line"], colour=row["colour"], name=row["name"])
            for row in chart.rows
        ],
        limit=html_if(chart.limit_label, _FORMS["legend_limit"], limit=chart.limit_label),
    )


def _rules(rules: Sequence[RuleResult], left_out: Collection[str]) -> Html:
    """Return a folded table of the rules with a verdict; it is open if one failed."""
    return html_if(
        rules,
        _FORMS["rules"],
        open=" open" * any(rule.outcome == Outcome.ERROR for rule in rules),
        summary=summary(rules, left_out),
        rows=[
            html(_FORMS["rule"], verdict=verdict(rule), **_said(rule))
            for rule in in_order(rules)
            if rule.outcome != Outcome.NOT_EVALUATED
        ],
    )
