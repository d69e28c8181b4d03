"""The HTML of a report; what it shows is prepared in `rule_runner.report.html.page`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rule_core.analysis.axis import number
from rule_core.named_texts import NamedTexts
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.html.markup import NOTHING, Html, html, html_if, script_json
from rule_runner.report.html.series import display_name, step_label
from rule_runner.report.html.svg_chart import SvgChart
from rule_runner.report.text import abandonment, judged_steps, mark
from rule_runner.results.json_text import JsonScalar
from rule_runner.results.schema import Evidence, RuleResult

FINDING_LIMIT: Final = 5  # the others are folded
LINE_LIMIT: Final = 8
REASON_LENGTH: Final = 240  # characters in the table of verdicts
View = Mapping[str, Any]
_FORMS: Final = NamedTexts(Path(__file__).with_name("templates") / "report.html")


def report_form(
    *,
    title: str,
    summary: Sequence[View],
    problems: Sequence[str],
    runs: Sequence[View],
    columns: Sequence[str],
    silent_columns: Sequence[str],
    **frame: str,
) -> str:
    """Return the page of a report; `frame` is what `rule_runner.report.html.page.frame` returns."""
    shows_matrix = len(runs) > 1 or any(run["page"] for run in runs)
    return html(
        _FORMS["page"],
        **frame,
        title=display_name(title),
        tally=_tally(summary),
        problems=[html(_FORMS["problem"], text=printable(text)) for text in problems],
        matrix=_matrix(summary, runs, columns, silent_columns) if shows_matrix else NOTHING,
        runs=[_run(run, len(runs)) for run in runs if not run["page"]],
    )


def _tally(summary: Sequence[View]) -> list[Html]:
    if not summary:
        return [Html(_FORMS["empty_tally"])]
    return [html(_FORMS["tally"], **entry) for entry in summary]


def _matrix(
    summary: Sequence[View],
    runs: Sequence[View],
    columns: Sequence[str],
    silent_columns: Sequence[str],
) -> Html:
    """Return the table of the verdicts of each rule on each run."""
    return html(
        _FORMS["matrix"],
        columns=[html(_FORMS["column"], name=display_name(name)) for name in columns],
        rows=[_matrix_row(run, columns) for run in runs],
        silent=html_if(silent_columns, _FORMS["silent_columns"], names=", ".join(silent_columns)),
        key=[html(_FORMS["key"], text=entry["word"].lower(), **entry) for entry in summary],
    )


def _matrix_row(run: View, columns: Sequence[str]) -> Html:
    count = _FORMS["count"] + " "
    return html(
        _FORMS["matrix_row"],
        link=run["page"] or f"#{run['id']}",
        name=run["name"],
        folder=display_name(run["folder"]),
        cells=[_matrix_cell(run["by_name"].get(name), run["page"]) for name in columns],
        counts=[html(count, **entry) for entry in run["counts"]],
    )


def _matrix_cell(job: View | None, page: str) -> Html:
    if job is None:
        return Html(_FORMS["no_cell"])
    return html(
        _FORMS["cell"],
        quiet=Html(' class="quiet"' * job["quiet"]),
        name=display_name(job["result"].configuration_name),
        page=page,
        **_chosen(job, "tone", "id", "word", "acknowledged", "at", "sign"),
    )


def _chosen(view: View, *names: str) -> dict[str, Any]:
    return {name: view[name] for name in names}


def _run(run: View, runs: int) -> Html:
    return html(
        _FORMS["run"],
        id=run["id"],
        heading=run["name"] if runs > 1 else "Verdicts",
        trial=display_name(run["trial"]),
        state=printable(run["state"]).capitalize(),
        tone=run["tone"],
        unended=NOTHING if run["ended"] else Html(_FORMS["unended"]),
        name=run["name"],
        verdicts=[_verdict(job) for job in run["shown"]],
        unevaluated=_unevaluated(run["unevaluated"]),
        articles=[_article(job) for job in run["shown"]],
    )


def _verdict(job: View) -> Html:
    reason, coverage = _shortened(printable(job["reason"])), job["result"].coverage
    return html(
        _FORMS["verdict"],
        name=display_name(job["result"].configuration_name),
        badge=_badge(job),
        why=html_if(reason, _FORMS["why"], text=reason),
        coverage=_coverage(job["result"]),
        share=round(100 * coverage.judged / max(coverage.known, 1)),
        **_chosen(job, "id", "at"),
    )


def _shortened(text: str, end: str = "...", leeway: int = 5) -> str:
    """Return a text, or its first words if it is much longer than `REASON_LENGTH`."""
    if len(text) <= REASON_LENGTH + leeway:
        return text
    return text[: REASON_LENGTH - len(end)].rsplit(" ", 1)[0] + end


def _badge(job: View) -> Html:
    return html(_FORMS["badge"], **_chosen(job, "tone", "sign", "word", "acknowledged"))


def _coverage(result: RuleResult) -> str:
    coverage = result.coverage
    text = f"judged {coverage.judged:,} of {coverage.known:,} {result.unit}s"
    if coverage.segments:
        return f"{text} ({judged_steps(coverage)})"
    return text if coverage.first is None else f"{text} ({coverage.first:,} to {coverage.last:,})"


def _unevaluated(rules: Mapping[str, tuple[str, str, Sequence[str]]]) -> Html:
    return html_if(
        rules,
        _FORMS["unevaluated"],
        count=len(rules),
        names=", ".join(map(display_name, rules)),
        items=[_unevaluated_rule(name, *why) for name, why in rules.items()],
    )


def _unevaluated_rule(name: str, job_id: str, reason: str, notes: Sequence[str]) -> Html:
    return html(
        _FORMS["unevaluated_rule"],
        id=html_if(job_id, ' id="{id}"', id=job_id),
        name=display_name(name),
        reason=printable(reason),
        notes=[html(_FORMS["note"], text=printable(note)) for note in notes],
    )


def _article(job: View) -> Html:
    result: RuleResult = job["result"]
    name, rule, mode = map(display_name, (result.configuration_name, result.rule, result.mode))
    skipped, missing = result.coverage.skipped, result.coverage.missing_workers
    saved, said = job["saved"], result.acknowledgement
    later, findings, left_out = abandonment(result), result.findings_count, saved.left_out
    return html(
        _FORMS["article"],
        id=job["id"],
        open=" open" * job["open"],
        name=name,
        badge=_badge(job),
        at=job["at"],
        rule=html_if(result.rule != result.configuration_name, _FORMS["rule"], rule=rule),
        mode=html_if(result.mode not in {"enforce", "report"}, _FORMS["mode"], mode=mode),
        reason=_reason(job),
        coverage=_coverage(result).capitalize(),
        skipped=[f"; skipped {count:,}: {display_name(why)}" for why, count in skipped.items()],
        missing=[f"; {count:,} without {display_name(who)}" for who, count in missing.items()],
        abandonment=f" The condition was first met{job['at']}{later}." if later else "",
        findings_count=f"{counted(findings, 'finding')}." if findings else "",
        acknowledgement=html(_FORMS["acknowledged"], mark=mark(said)) if said else NOTHING,
        problem=html_if(saved.problem, _FORMS["saved_problem"], text=printable(saved.problem)),
        figures=[
            _figure(f"{job['id']}-{n}", chart, result.unit) for n, chart in enumerate(job["charts"])
        ],
        left_out=html_if(
            left_out,
            _FORMS["left_out"],
            count=f"{left_out:,}",
            lines="line is" if left_out == 1 else "lines are",
        ),
        remedy=html_if(job["page"], _FORMS["remedy"], id=job["id"], page=Html(job["page"])),
        findings=_findings(result),
        asides=_asides(result),
        actions=_actions(result),
        notes=_notes(result),
        parameters=_definitions(
            {name: _scalar(value) or "not given" for name, value in result.parameters.items()}
        ),
        started=display_name(result.started_at),
        ended=f" to {display_name(result.ended_at)}" if result.ended_at else "",
        versions=_definitions(result.versions),
    )


def _definitions(values: Mapping[str, str]) -> list[Html]:
    return [
        html(_FORMS["definition"], name=display_name(name), value=display_name(value))
        for name, value in values.items()
    ]


def _reason(job: View) -> Html:
    heading, sentence = f"{job['word']}.", job["reason"]
    if job["outcome"] == "NotEvaluated":
        heading = "No step was judged, so the training may still be faulty."
    elif job["outcome"] == "IssuesFound":
        heading, sentence = sentence, job["advice"]
    return html_if(
        job["reason"],
        _FORMS["reason"],
        tone=job["tone"],
        heading=printable(heading),
        text=printable(sentence),
    )


def _figure(name: str, chart: SvgChart, unit: str) -> Html:
    rows, has_limits = chart.rows, chart.drawing.limit is None
    return html(
        _FORMS["figure"],
        label=display_name(chart.drawing.quantity.label),
        id=name,
        svg=Html(chart.svg(name)),
        unit=unit,
        limit=_legend("limit", chart.limit_label),
        repeated=_legend("repeated", "repeated later" * chart.has_repeated),
        odd=_legend("odd", chart.odd_label),
        lines=_line_table(
            rows[:LINE_LIMIT], "Worst first; select one to highlight it", has_limits=has_limits
        ),
        more=html_if(
            len(rows) > LINE_LIMIT,
            _FORMS["more_lines"],
            count=len(rows) - LINE_LIMIT,
            lines=_line_table(rows[LINE_LIMIT:], "Less severe", has_limits=has_limits),
        ),
        data=script_json(chart.data()),
    )


def _legend(key: str, label: str) -> Html:
    return html_if(label, _FORMS["legend"], key=key, label=label)


def _line_table(rows: Sequence[View], caption: str, *, has_limits: bool) -> Html:
    """Return lines as a table, with their limits if they have different ones."""
    return html(
        _FORMS["lines"],
        caption=caption,
        limit=Html(_FORMS["limit_heading"] * has_limits),
        rows=[
            html(
                _FORMS["line"],
                **{**row, "limit": html_if(has_limits, _FORMS["limit"], limit=row["limit"])},
            )
            for row in rows
        ],
    )


def _findings(result: RuleResult) -> Html:
    findings, count = result.findings, result.findings_count
    if not findings:
        return NOTHING
    caption = "The first finding" if len(findings) == 1 else "The first findings"
    return html(
        "{table}\n{more}",
        table=_finding_table(caption, findings[:FINDING_LIMIT]),
        more=html_if(
            len(findings) > FINDING_LIMIT,
            _FORMS["more_findings"],
            more=len(findings) - FINDING_LIMIT,
            further=_finding_table("Further findings", findings[FINDING_LIMIT:]),
            all=html_if(count > len(findings), _FORMS["in_file"], count=f"{count:,}"),
        ),
    )


def _asides(result: RuleResult) -> Html:
    return html_if(
        result.asides,
        _FORMS["asides"],
        notes=f"{result.notes_count:,}",
        muted=f"{result.muted_count:,}",
        table=_finding_table("The first notes and muted findings", result.asides),
    )


def _finding_table(caption: str, findings: Sequence[Evidence]) -> Html:
    return html(
        _FORMS["findings"], caption=caption, rows=[_finding(finding) for finding in findings]
    )


def _finding(finding: Evidence) -> Html:
    step, worker = finding.resumed_from, finding.worker
    return html(
        _FORMS["finding"],
        step=step_of(finding),
        resumed=html(_FORMS["resumed"], step=f"{step:,}") if isinstance(step, int) else NOTHING,
        tensor="" if finding.tensor is None else display_name(finding.tensor),
        worker=html_if(worker is not None, _FORMS["worker"], worker=display_name(worker)),
        notes=[html(_FORMS["note"], text=text) for text in _remarks(finding)],
        measured=_scalar(finding.measured),
        limit=_scalar(finding.limit),
    )


def _remarks(finding: Evidence) -> list[str]:
    """Return what stands below the tensor of a finding."""
    remarks = [display_name(finding.note)] if finding.note else []
    if isinstance(finding.mode, str):
        remarks.append(f"in mode {finding.mode}")
    if finding.severity != "error":
        remarks.append(str(finding.severity))
    if finding.acknowledgement:
        remarks.append(mark(finding.acknowledgement))
    elif isinstance(finding.muted, str):
        remarks.append(f"muted: {display_name(finding.muted)}")
    return remarks


def _actions(result: RuleResult) -> Html:
    return html_if(
        result.actions,
        _FORMS["actions"],
        items=[
            html(
                _FORMS["action"],
                name=display_name(action.name),
                target=display_name(action.target),
                state=display_name(action.state),
                detail=printable(action.detail),
            )
            for action in result.actions
        ],
    )


def _notes(result: RuleResult) -> Html:
    return html_if(
        result.notes,
        _FORMS["notes"],
        items=[html(_FORMS["result_note"], note=printable(note)) for note in result.notes],
    )


def step_of(finding: RuleResult | Evidence) -> str:
    """Return the step of a finding, or of a verdict, for people."""
    return step_label(finding.step or 0, finding.segment or 0)


def _scalar(value: JsonScalar) -> str:
    """Return a value of a finding as text."""
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return display_name(value)
