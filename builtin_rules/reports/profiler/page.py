"""The page of the profiler report: one HTML file without scripts or external resources."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import SECOND_US
from builtin_rules.profiler.statistics.report_file import OUTPUT_FOLDER, write_report
from builtin_rules.reports.page_template import template
from builtin_rules.reports.profiler import charts, details, findings, tables
from builtin_rules.reports.profiler.charts import RangePlot
from builtin_rules.reports.profiler.moments import by_node
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.wording import counted, duration, moment, step_name
from smdebug.rules.extensions import LocalOutput, Plot, publish

NAME: Final = "profiler-report.html"
NOTEBOOK: Final = "profiler-report.ipynb"  # the file beside this module, and the one written
MAX_ADVICE: Final = 5
MAX_PROBLEMS: Final = 10


def render(data: ReportData) -> str:
    """Return the page."""
    nodes = list(charts.usage(data))
    sections = list(details.sections(data))
    shown = [moment for section in sections for moment in section.moments if moment]
    return template(Path(__file__).parent).render(
        trial=data.trial,
        path=data.path,
        ended=data.ended,
        made_at=f"{data.made_at:%Y-%m-%d %H:%M %Z}",
        width=Plot.WIDTH,
        height=Plot.HEIGHT,
        warnings=list(_warnings(data)),
        advice=findings.advice(data)[:MAX_ADVICE],
        silence=_silence(data),
        summary=list(_summary(data)),
        phases=tables.phases(data),
        usage=tables.usage(data),
        has_gpus=any(data.details("OverallSystemUsage").get("GPU", {}).values()),
        nodes=nodes,
        left_out=0 if data.usage is None else data.usage.left_out,
        has_framework_data=data.has_framework_data,
        framework=tables.framework(data),
        steps=list(charts.steps(data)),
        step_statistics=list(tables.step_statistics(data.rule("StepOutlier").report["Details"])),
        loading=_loading(data),
        loading_chart=_loading_chart(data),
        rules=tables.rules(data),
        sections=sections,
        moments=shown,
        anchors=by_node(shown, [node.node for node in nodes]),
    )


def _warnings(data: ReportData) -> Iterator[str]:
    """Yield the warnings at the top of the page."""
    if not data.ended:
        yield "The data was incomplete when this was written; more may have arrived since."
    for rule in data.rules:
        if rule.failure:
            yield f"{rule.name} failed and stopped judging: {rule.failure}."
    problems = data.problems
    yield from problems[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        yield f"And {counted(len(problems) - MAX_PROBLEMS, 'further problem')} with the data."


def _silence(data: ReportData) -> str:
    """Return what the absence of findings means."""
    rows = [row for row in tables.rules(data) if row.state != "failed"]
    judged = [row for row in rows if row.state != "not judged"]
    if not judged:
        return "No rule could judge any window. See the rules below for the reasons."
    silent = ", ".join(row.name for row in rows if row.state == "not judged")
    unjudged = f" Rules without data to judge: {silent}." if silent else ""
    return (
        f"None of the {counted(len(judged), 'rule')} that judged the job was triggered.{unjudged}"
    )


def _summary(data: ReportData) -> Iterator[tuple[str, str]]:
    if not data.begin_us:
        return
    yield "start", moment(data.begin_us)
    yield ("end" if data.ended else "latest data"), moment(data.end_us)
    yield "duration", duration((data.end_us - data.begin_us) / SECOND_US)
    if data.nodes:
        yield "nodes", ", ".join(data.nodes)
    if data.steps is not None:
        kinds: dict[str, int] = {}
        for kind, band in data.steps.bands():
            name = step_name(kind.name)
            kinds[name] = kinds.get(name, 0) + band.count
        if kinds:
            yield "steps", ", ".join(f"{count:,} of {name}" for name, count in kinds.items())


def _loading(data: ReportData) -> list[tuple[str, str]]:
    """Return the rows of the table on data loading."""
    details = data.details("Dataloader")
    names = {
        "dataloaders": "concurrent loader processes",
        "cores": "cores",
        "num_workers": "num_workers",
        "pin_memory": "pin_memory",
        "prefetch": "prefetch_factor",
    }
    rows = [(label, str(details[name])) for name, label in names.items() if details.get(name, None)]
    times = details.get("dataloading_time", {})
    percentiles = {"p25": "25th", "p50": "50th", "p95": "95th"}
    rows += [
        (f"{label} percentile of the time per batch", duration(times[name]))
        for name, label in percentiles.items()
        if name in times
    ]
    return rows


def _loading_chart(data: ReportData) -> RangePlot | None:
    times: dict[str, Any] = data.details("Dataloader").get("dataloading_time", {})
    return charts.histogram(
        "Time to load a batch",
        ("seconds", "percent of the batches"),
        times.get("binedges", []),
        times.get("probs", []),
    )


def notebook(path: str) -> dict[str, Any]:
    """Return the notebook that opens the profiler data at `path` in pandas, without outputs."""
    document: dict[str, Any] = json.loads(Path(__file__).with_name(NOTEBOOK).read_text("utf-8"))
    for cell in document["cells"]:
        cell["source"] = "".join(cell["source"]).replace("'PATH'", repr(path))
    return document


def write(folder: Path, data: ReportData) -> Path:
    """Write all files of the report below a folder, each atomically, and return the page.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    for rule in data.rules:
        write_report(folder, rule.name, rule.report)
    output = LocalOutput(folder)
    text = json.dumps(notebook(data.path), indent=1)
    publish(output, f"{OUTPUT_FOLDER}/{NOTEBOOK}", text.encode())
    html = render(data).encode("utf-8", "replace")  # names may not be valid Unicode
    publish(output, f"{OUTPUT_FOLDER}/{NAME}", html)
    return folder / OUTPUT_FOLDER / NAME
