"""The HTML of a report; what it shows is prepared in `rule_runner.report.html.page`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rule_core.analysis.axis import number
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

_HEAD: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{style_hash}'; \
script-src '{script_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#results">Skip to the results</a>
<header>
<p class="eyebrow">rule-runner report</p>
<h1>{title}</h1>
<ul class="tally">
{tally}</ul>
{problems}</header>
<main id="results">
{matrix}{runs}</main>
<footer><p>Created {made} by rule-runner {version}. This page works offline.</p></footer>
<script>{script}</script>
</body>
</html>"""
_MATRIX: Final = """\
<section aria-labelledby="overview">
<h2 id="overview">All runs</h2>
<div class="scroll" tabindex="0" role="region" aria-labelledby="overview">
<table class="matrix" role="table"><caption>Verdict of each rule on each run</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Run</th>\
{columns}</tr></thead>
<tbody role="rowgroup">
{rows}</tbody></table>
</div>
{silent}<ul class="key" aria-hidden="true">{key}</ul>
</section>
"""
_CELL: Final = """\
<td role="cell"{quiet}>\
<a class="cell {tone}" href="{page}#{id}" title="{name}: {word}{acknowledged}{at}">\
<span aria-hidden="true">{sign}<span class="rule"> {name}</span></span>\
<span class="hidden">{word}{acknowledged}{at}</span></a></td>
"""
_NO_CELL: Final = Html(
    '<td role="cell" class="quiet"><span class="note" aria-hidden="true">-</span>'
    '<span class="hidden">not requested</span></td>\n'
)
_RUN: Final = """\
<section class="run" aria-labelledby="{id}">
<h2 id="{id}">{heading}</h2>
<p class="facts">Trial <span class="path">{trial}</span>{unended}.</p>
<table class="verdicts" role="table"><caption class="hidden">Verdicts on {name}</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Rule</th>\
<th scope="col" role="columnheader">Verdict</th>\
<th scope="col" role="columnheader">Coverage</th></tr></thead>
<tbody role="rowgroup">
{verdicts}</tbody></table>
{unevaluated}{articles}</section>
"""
_UNENDED: Final = Html(
    "; <strong>it had not ended</strong> at the time of the evaluation: more steps may follow"
)
_VERDICT: Final = """\
<tr role="row"><th scope="row" role="rowheader"><a href="#{id}">{name}</a></th>
<td role="cell">{badge}<span class="at">{at}</span>{why}</td>
<td role="cell"><svg class="bar" aria-hidden="true" focusable="false">\
<rect width="100%" height="100%"/><rect class="done" width="{share}%" height="100%"/></svg>\
<span class="note">{coverage}</span></td></tr>
"""
_BADGE: Final = """\
<span class="badge {tone}"><span aria-hidden="true">{sign}</span> {word}{acknowledged}</span>"""
_UNEVALUATED: Final = """\
<details class="more folded"><summary>{count} rules were not evaluated: {names}</summary>
<p class="note">These rules judged no step, so the training may still be faulty.</p>
<dl>{items}</dl></details>
"""
_ARTICLE: Final = """\
<article aria-labelledby="{id}-name">
<details id="{id}"{open}>
<summary><h3 id="{id}-name">{name}</h3>{badge}<span class="at">{at}</span>{rule}{mode}</summary>
{reason}<p class="facts">{coverage}{skipped}{missing}.{abandonment}{findings_count}</p>
{acknowledgement}{problem}{figures}{left_out}{remedy}{findings}{asides}{actions}{notes}\
<details class="more"><summary>Parameters and versions</summary>
<dl>{parameters}<dt>judged</dt><dd>{started}{ended}</dd>
{versions}</dl>
</details>
</details>
</article>
"""
_FIGURE: Final = """\
<figure class="chart">
<figcaption>{label}</figcaption>
<div class="box" tabindex="0" aria-describedby="{id}-said">{svg}</div>
<p class="axis" aria-hidden="true">{unit}</p>
<p class="legend" aria-hidden="true"><span><i class="key-met"></i>condition met</span>\
{limit}{repeated}{odd}</p>
<output id="{id}-said" class="said"></output>
{lines}
{more}<script type="application/json">{data}</script>
</figure>
"""
_LINES: Final = """\
<table class="lines"><caption>{caption}</caption>
<thead><tr><th scope="col">Tensor</th><th scope="col" class="num">Worst</th>{limit}\
<th scope="col" class="num">First met</th></tr></thead>
<tbody>
{rows}</tbody></table>
"""
_LINE: Final = """\
<tr><td class="name"><button type="button" data-line="{line_index}" aria-pressed="false">\
<span class="swatch {colour}" aria-hidden="true"></span><span>{name}</span></button></td>\
<td class="num">{worst}</td>{limit}<td class="num">{first}</td></tr>
"""
_FINDINGS: Final = """\
<table><caption>{caption}</caption>
<thead><tr><th scope="col" class="num">Step</th><th scope="col">Tensor</th>\
<th scope="col" class="num">Measured</th><th scope="col" class="num">Limit</th></tr></thead>
<tbody>{rows}</tbody></table>
"""
_FINDING: Final = """\
<tr><td class="num">{step}{resumed}</td><td class="name">{tensor}{worker}{notes}</td>\
<td class="num">{measured}</td><td class="num">{limit}</td></tr>
"""
_ACKNOWLEDGED: Final = '<p class="callout Stopped">All findings of this rule are {mark}.</p>'
_REMEDY: Final = """\
<section class="remedy" aria-labelledby="{id}-do"><h4 id="{id}-do">What to do</h4>{page}</section>
"""
_NOTE: Final = '<br><span class="note">{text}</span>'


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
    problem = '<p class="callout Error"><strong>Not in this report.</strong> {text}</p>\n'
    return html(
        _HEAD,
        **frame,
        title=display_name(title),
        tally=_tally(summary),
        problems=[html(problem, text=printable(text)) for text in problems],
        matrix=_matrix(summary, runs, columns, silent_columns) if shows_matrix else NOTHING,
        runs=[_run(run, len(runs)) for run in runs if not run["page"]],
    )


def _tally(summary: Sequence[View]) -> list[Html]:
    if not summary:
        return [Html('<li class="NotEvaluated">No results.</li>\n')]
    return [
        html('<li class="{outcome}">{word} <b>{count}</b></li>\n', **entry) for entry in summary
    ]


def _matrix(
    summary: Sequence[View],
    runs: Sequence[View],
    columns: Sequence[str],
    silent_columns: Sequence[str],
) -> Html:
    """Return the table of the verdicts of each rule on each run."""
    heading = '<th scope="col" role="columnheader" class="turned"><span>{name}</span></th>'
    key = '<li><span class="cell {outcome}">{sign}</span> {text}</li>'
    silent = '<p class="note">Not evaluated on any run: {names}.</p>\n'
    return html(
        _MATRIX,
        columns=[html(heading, name=display_name(name)) for name in columns],
        rows=[_matrix_row(run, columns) for run in runs],
        silent=html_if(silent_columns, silent, names=", ".join(silent_columns)),
        key=[html(key, text=entry["word"].lower(), **entry) for entry in summary],
    )


def _matrix_row(run: View, columns: Sequence[str]) -> Html:
    count = '<span class="cell {outcome}">{sign} {count}</span> '
    return html(
        '<tr role="row"><th scope="row" role="rowheader"><a href="{link}">{name}</a>'
        '<span class="note">{folder}</span></th>\n'
        '{cells}<td class="counts" aria-hidden="true">{counts}</td></tr>\n',
        link=run["page"] or f"#{run['id']}",
        name=run["name"],
        folder=display_name(run["folder"]),
        cells=[_matrix_cell(run["by_name"].get(name), run["page"]) for name in columns],
        counts=[html(count, **entry) for entry in run["counts"]],
    )


def _matrix_cell(job: View | None, page: str) -> Html:
    if job is None:
        return _NO_CELL
    return html(
        _CELL,
        quiet=Html(' class="quiet"' * job["quiet"]),
        name=display_name(job["result"].configuration_name),
        page=page,
        **_chosen(job, "tone", "id", "word", "acknowledged", "at", "sign"),
    )


def _chosen(view: View, *names: str) -> dict[str, Any]:
    return {name: view[name] for name in names}


def _run(run: View, runs: int) -> Html:
    return html(
        _RUN,
        id=run["id"],
        heading=run["name"] if runs > 1 else "Verdicts",
        trial=display_name(run["trial"]),
        unended=NOTHING if run["ended"] else _UNENDED,
        name=run["name"],
        verdicts=[_verdict(job) for job in run["shown"]],
        unevaluated=_unevaluated(run["unevaluated"]),
        articles=[_article(job) for job in run["shown"]],
    )


def _verdict(job: View) -> Html:
    reason, coverage = _shortened(printable(job["reason"])), job["result"].coverage
    return html(
        _VERDICT,
        name=display_name(job["result"].configuration_name),
        badge=_badge(job),
        why=html_if(reason, '<span class="why">{text}</span>', text=reason),
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
    return html(_BADGE, **_chosen(job, "tone", "sign", "word", "acknowledged"))


def _coverage(result: RuleResult) -> str:
    coverage = result.coverage
    text = f"judged {coverage.judged:,} of {coverage.known:,} {result.unit}s"
    if coverage.segments:
        return f"{text} ({judged_steps(coverage)})"
    return text if coverage.first is None else f"{text} ({coverage.first:,} to {coverage.last:,})"


def _unevaluated(rules: Mapping[str, tuple[str, str, Sequence[str]]]) -> Html:
    return html_if(
        rules,
        _UNEVALUATED,
        count=len(rules),
        names=", ".join(map(display_name, rules)),
        items=[_unevaluated_rule(name, *why) for name, why in rules.items()],
    )


def _unevaluated_rule(name: str, job_id: str, reason: str, notes: Sequence[str]) -> Html:
    return html(
        "<dt{id}>{name}</dt><dd>{reason}{notes}</dd>\n",
        id=html_if(job_id, ' id="{id}"', id=job_id),
        name=display_name(name),
        reason=printable(reason),
        notes=[html(_NOTE, text=printable(note)) for note in notes],
    )


def _article(job: View) -> Html:
    result: RuleResult = job["result"]
    name, rule, mode = map(display_name, (result.configuration_name, result.rule, result.mode))
    skipped, missing = result.coverage.skipped, result.coverage.missing_workers
    saved, said = job["saved"], result.acknowledgement
    later, findings, left_out = abandonment(result), result.findings_count, saved.left_out
    return html(
        _ARTICLE,
        id=job["id"],
        open=" open" * job["open"],
        name=name,
        badge=_badge(job),
        at=job["at"],
        rule=html_if(
            result.rule != result.configuration_name,
            '<span class="note">rule {rule}</span>',
            rule=rule,
        ),
        mode=html_if(
            result.mode not in {"enforce", "report"},
            '<span class="note">{mode} only</span>',
            mode=mode,
        ),
        reason=_reason(job),
        coverage=_coverage(result).capitalize(),
        skipped=[f"; skipped {count:,}: {display_name(why)}" for why, count in skipped.items()],
        missing=[f"; {count:,} without {display_name(who)}" for who, count in missing.items()],
        abandonment=f" The condition was first met{job['at']}{later}." if later else "",
        findings_count=f" {counted(findings, 'finding')}." if findings else "",
        acknowledgement=html(_ACKNOWLEDGED, mark=mark(said)) if said else NOTHING,
        problem=html_if(
            saved.problem, '<p class="callout Error">{text}</p>', text=printable(saved.problem)
        ),
        figures=[
            _figure(f"{job['id']}-{n}", chart, result.unit) for n, chart in enumerate(job["charts"])
        ],
        left_out=html_if(
            left_out,
            '<p class="note">{count} less severe {lines} not shown.</p>',
            count=f"{left_out:,}",
            lines="line is" if left_out == 1 else "lines are",
        ),
        remedy=html_if(job["page"], _REMEDY, id=job["id"], page=Html(job["page"])),
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
    dd = "<dt>{name}</dt><dd>{value}</dd>"
    return [
        html(dd, name=display_name(name), value=display_name(value))
        for name, value in values.items()
    ]


def _reason(job: View) -> Html:
    silent = "No step was judged, so the training may still be faulty."
    return html_if(
        job["reason"],
        '<p class="callout {outcome}"><strong>{heading}</strong> {text}</p>\n',
        outcome=job["outcome"],
        heading=silent if job["outcome"] == "NotEvaluated" else f"{job['word']}.",
        text=printable(job["reason"]),
    )


def _figure(name: str, chart: SvgChart, unit: str) -> Html:
    rows, has_limits = chart.rows, chart.drawing.limit is None
    return html(
        _FIGURE,
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
            '<details class="more"><summary>{count} more</summary>\n{lines}</details>\n',
            count=len(rows) - LINE_LIMIT,
            lines=_line_table(rows[LINE_LIMIT:], "Less severe", has_limits=has_limits),
        ),
        data=script_json(chart.data()),
    )


def _legend(key: str, label: str) -> Html:
    form = ' <span><i class="key-{key}"></i>{label}</span>'
    return html_if(label, form, key=key, label=label)


def _line_table(rows: Sequence[View], caption: str, *, has_limits: bool) -> Html:
    """Return lines as a table, with their limits if they have different ones."""
    limit = '<td class="num">{limit}</td>'
    return html(
        _LINES,
        caption=caption,
        limit=Html('<th scope="col" class="num">Limit</th>' * has_limits),
        rows=[
            html(_LINE, **{**row, "limit": html_if(has_limits, limit, limit=row["limit"])})
            for row in rows
        ],
    )


def _findings(result: RuleResult) -> Html:
    findings, count = result.findings, result.findings_count
    if not findings:
        return NOTHING
    caption = "The first finding" if len(findings) == 1 else "The first findings"
    in_file = '<p class="note">All {count} are in findings.jsonl.</p>'
    return html(
        "{table}\n{more}",
        table=_finding_table(caption, findings[:FINDING_LIMIT]),
        more=html_if(
            len(findings) > FINDING_LIMIT,
            '<details class="more"><summary>{more} more</summary>\n{further}\n{all}</details>\n',
            more=len(findings) - FINDING_LIMIT,
            further=_finding_table("Further findings", findings[FINDING_LIMIT:]),
            all=html_if(count > len(findings), in_file, count=f"{count:,}"),
        ),
    )


def _asides(result: RuleResult) -> Html:
    return html_if(
        result.asides,
        '<details class="more"><summary>{notes} notes and {muted} muted findings, which do not '
        "count</summary>\n{table}\n</details>\n",
        notes=f"{result.notes_count:,}",
        muted=f"{result.muted_count:,}",
        table=_finding_table("The first notes and muted findings", result.asides),
    )


def _finding_table(caption: str, findings: Sequence[Evidence]) -> Html:
    return html(_FINDINGS, caption=caption, rows=[_finding(finding) for finding in findings])


def _finding(finding: Evidence) -> Html:
    resumed = '<br><span class="note">resumed from {step} later</span>'
    step, worker = finding.resumed_from, finding.worker
    return html(
        _FINDING,
        step=step_of(finding),
        resumed=html(resumed, step=f"{step:,}") if isinstance(step, int) else NOTHING,
        tensor="" if finding.tensor is None else display_name(finding.tensor),
        worker=html_if(
            worker is not None, ' <span class="worker">{worker}</span>', worker=display_name(worker)
        ),
        notes=[html(_NOTE, text=text) for text in _remarks(finding)],
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
    item = "<li><strong>{name}</strong> ({target}): {state}. {detail}</li>"
    return html_if(
        result.actions,
        '<h4>Actions</h4>\n<ul class="notes">{items}</ul>\n',
        items=[
            html(
                item,
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
        '<h4>Notes</h4>\n<ul class="notes">{items}</ul>\n',
        items=[html("<li>{note}</li>", note=printable(note)) for note in result.notes],
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
