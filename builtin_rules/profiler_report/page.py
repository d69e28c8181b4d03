"""The page of the profiler report: one HTML file that needs no other, no network and no script."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jinja2

from builtin_rules.profiler_report import charts, details, findings, tables
from builtin_rules.profiler_report.charts import Picture
from builtin_rules.profiler_report.gathered import Gathered
from builtin_rules.profiler_report.wording import SECOND_US, counted, duration, moment, step_name
from builtin_rules.xgboost_report.chart import HEIGHT, WIDTH

NAME: Final = "profiler-report.html"
FIRST: Final = 5  # pieces of advice at the top
PROBLEMS: Final = 10


def render(gathered: Gathered) -> str:
    """Return the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        trial=gathered.trial,
        path=gathered.path,
        ended=gathered.ended,
        made_at=f"{gathered.made_at:%Y-%m-%d %H:%M %Z}",
        width=WIDTH,
        height=HEIGHT,
        warnings=list(_warnings(gathered)),
        advice=findings.advice(gathered)[:FIRST],
        silence=_silence(gathered),
        summary=list(_summary(gathered)),
        phases=tables.phases(gathered),
        usage=tables.usage(gathered),
        has_gpus=any(gathered.details("OverallSystemUsage").get("GPU", {}).values()),
        nodes=list(charts.usage(gathered)),
        left_out=0 if gathered.usage is None else gathered.usage.left_out,
        has_framework_data=gathered.has_framework_data,
        framework=tables.framework(gathered),
        steps=list(charts.steps(gathered)),
        step_statistics=list(
            tables.step_statistics(gathered.rule("StepOutlier").report["Details"])
        ),
        loading=_loading(gathered),
        loading_chart=_loading_chart(gathered),
        rules=tables.rules(gathered),
        sections=list(details.sections(gathered)),
    )


def _warnings(gathered: Gathered) -> Iterator[str]:
    """Yield what whoever reads the page should know first."""
    if not gathered.ended:
        yield "The data had not ended when this was written: more may have come since."
    for rule in gathered.rules:
        if rule.failure:
            yield f"{rule.name} failed and judges no further: {rule.failure}."
    problems = gathered.problems
    yield from problems[:PROBLEMS]
    if len(problems) > PROBLEMS:
        yield f"And {counted(len(problems) - PROBLEMS, 'further problem')} with the data."


def _silence(gathered: Gathered) -> str:
    """Say how much it means that nothing was found."""
    rows = [one for one in tables.rules(gathered) if one.state != "failed"]
    judged = [one for one in rows if one.state != "not judged"]
    if not judged:
        return "No rule could judge anything: this says nothing about the job. See the rules below."
    silent = ", ".join(one.name for one in rows if one.state == "not judged")
    rest = f" These could judge nothing: {silent}." if silent else ""
    return f"None of the {counted(len(judged), 'rule')} that judged the job was triggered.{rest}"


def _summary(gathered: Gathered) -> Iterator[tuple[str, str]]:
    if not gathered.begin_us:
        return
    yield "begin", moment(gathered.begin_us)
    yield ("end" if gathered.ended else "so far until"), moment(gathered.end_us)
    yield "duration", duration((gathered.end_us - gathered.begin_us) / SECOND_US)
    if gathered.nodes:
        yield "nodes", ", ".join(gathered.nodes)
    if gathered.steps is not None:
        kinds: dict[str, int] = {}
        for kind, band in gathered.steps.bands():
            name = step_name(kind.name)
            kinds[name] = kinds.get(name, 0) + band.count
        if kinds:
            yield "steps", ", ".join(f"{count:,} of {name}" for name, count in kinds.items())


def _loading(gathered: Gathered) -> list[tuple[str, str]]:
    """Return what is known of how data are loaded."""
    found = gathered.details("Dataloader")
    names = {
        "dataloaders": "processes that load data at a time",
        "cores": "cores",
        "num_workers": "num_workers",
        "pin_memory": "pin_memory",
        "prefetch": "prefetch_factor",
    }
    rows = [(label, str(found[name])) for name, label in names.items() if found.get(name, None)]
    times = found.get("dataloading_time", {})
    percentiles = {"p25": "25th", "p50": "50th", "p95": "95th"}
    rows += [
        (f"{label} percentile of a batch", duration(times[name]))
        for name, label in percentiles.items()
        if name in times
    ]
    return rows


def _loading_chart(gathered: Gathered) -> Picture | None:
    times: dict[str, Any] = gathered.details("Dataloader").get("dataloading_time", {})
    return charts.histogram(
        "Time to load a batch",
        ("seconds", "percent of the batches"),
        times.get("binedges", []),
        times.get("probs", []),
    )
