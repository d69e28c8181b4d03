"""Views: the pages."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rule_core.severity import Severity
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RECOVERED, RuleRecord, TrialRecord
from rule_runner.loading.loader import every_builtin
from rule_runner.results.status import Outcome
from rule_runner.service.api.files import output_files
from rule_runner.service.api.queries import TrialQuery, is_number, trial_of, trial_query
from rule_runner.service.api.trials import (
    TrialPage,
    incident_items,
    saved_results,
    trial_item,
    trial_list,
)
from rule_runner.service.pages.rendering import render
from rule_runner.service.pages.rule_page import rule_entry, rule_text, rule_trials
from rule_runner.service.pages.table import ROWS, address, chips, columns, rows, sort_link
from rule_runner.service.pages.trial_page import (
    MAX_RUNS,
    ProfileView,
    finding_views,
    job_views,
    run_views,
)
from rule_runner.service.pages.words import (
    STATES,
    VERDICTS,
    Verdict,
    split_path,
    verdict,
    verdict_so_far,
    waits_for,
)
from rule_runner.service.responses import service_of

_OUTCOMES: Final = {str(outcome): verdict(outcome).word for outcome in VERDICTS}
_SIGNS: Final = {str(outcome): verdict(outcome).sign for outcome in VERDICTS}
_LEGEND: Final = (
    verdict(Outcome.ISSUES_FOUND),
    verdict(Outcome.ISSUES_FOUND, Severity.WARNING),
    verdict(RECOVERED),
    *map(verdict, (Outcome.ERROR, Outcome.NOT_EVALUATED, Outcome.STOPPED, Outcome.IN_PROGRESS)),
    verdict(Outcome.NO_ISSUES_FOUND),
)


def start(request: Request) -> Response:
    """Lead from ``/`` to the table of trials."""
    del request
    return RedirectResponse("/trials")


def trials(request: Request) -> Response:
    """Show the table of trials."""
    query = trial_query(request.query_params)
    if "limit" not in request.query_params:
        query = msgspec.structs.replace(query, limit=ROWS)
    with service_of(request).index() as index:
        listed = trial_list(index, query)
        counts = index.counts()
        rules = {*index.rule_counts()}
    return render(request, "trials.html.jinja", **_table(query, listed, counts, rules))


def _table(
    query: TrialQuery, listed: TrialPage, counts: dict[tuple[str, str], int], rules: set[str]
) -> dict[str, Any]:
    names = columns(listed.trials)
    clear = TrialQuery(sort=query.sort)
    return {
        "query": query,
        "total": listed.total,
        "all_trials": sum(counts.values()),
        "chips": chips(query, counts),
        "columns": names,
        "rows": rows(listed.trials, names),
        "rules": sorted(rules.union(names, [query.rule] if query.rule else [])),
        "states": STATES,
        "outcomes": _OUTCOMES,
        "legend": _LEGEND,
        "sorts": {
            "path": sort_link(query, "path"),
            "outcome": sort_link(query, "outcome"),
            "changed": sort_link(query, "changed", descending=True),
        },
        "is_filtered": address(query) != address(clear),
        "clear": address(clear),
        "pages": -(-listed.total // query.limit),
        "previous": address(query, page=query.page - 1),
        "next": address(query, page=query.page + 1),
    }


def trial(request: Request) -> Response:
    """Show a trial: its verdicts, findings and curves, with those of other trials overlaid."""
    service = service_of(request)
    with service.index() as index:
        own = trial_of(index, request.path_params["trial"])
        others = [trial_of(index, number) for number in _overlaid(request, own)]
        rules = index.rules_of_trials(run.id for run in (own, *others))
        profile = _profile(index, own)
    results, problem = saved_results(own)
    item = trial_item(own, rules[own.id])
    runs = run_views(own, others)
    hindrance = service.commands.hindrance if service.commands is not None else ""
    names = sorted({rule.name for run_rules in rules.values() for rule in run_rules})
    return render(
        request,
        "trial.html.jinja",
        trial=own,
        item=item,
        title=split_path(own.path),
        state=STATES[own.state],
        waits_for=waits_for(own, service.clock.time(), hindrance),
        verdict=verdict_so_far(item.verdict, item.severity),
        incidents=incident_items(results),
        jobs=job_views(rules[own.id], results),
        findings=finding_views(results, own.path),
        profile=profile,
        findings_total=sum(rule.findings for rule in rules[own.id]),
        problem=own.problem or problem,
        files=output_files(own.output),
        versions=results[0].versions if results else {},
        runs=runs,
        verdicts=[
            (name, [_verdict_of(rules[run.id], name) for run in (own, *others)]) for name in names
        ],
        has_room=own.tensors and len(runs) < MAX_RUNS,
    )


def _profile(index: IndexReader, own: TrialRecord) -> ProfileView | None:
    """Return the profile of a trial, if it is one or one is near it."""
    profile = index.profile_of(own)
    if profile is None:
        return None
    if profile.id == own.id:
        training = index.training_of(own)
        if training is None:
            return ProfileView(own.id)
        return ProfileView(own.id, training=training.id, training_path=training.path)
    item = trial_item(profile, index.rules_of(profile.id))
    return ProfileView(
        profile.id,
        profile.path,
        verdict_so_far(item.verdict, item.severity),
        sum(rule.findings for rule in index.rules_of(profile.id)),
    )


def _overlaid(request: Request, own: TrialRecord) -> list[str]:
    """Return the trials whose curves are laid over those of the page's trial."""
    words = map(str.strip, request.query_params.get("with", "").split(","))
    numbers = dict.fromkeys(word for word in words if is_number(word))
    return [number for number in numbers if int(number) != own.id][: MAX_RUNS - 1]


def _verdict_of(rules: Iterable[RuleRecord], name: str) -> Verdict | None:
    return next((verdict(rule.verdict, rule.severity) for rule in rules if rule.name == name), None)


def rules(request: Request) -> Response:
    """Show all rules, with how many trials have which verdict."""
    with service_of(request).index() as index:
        counts = index.rule_counts()
    names = sorted({*counts, *every_builtin()})
    return render(
        request,
        "rules.html.jinja",
        rules=[rule_entry(name, counts.get(name, {})) for name in names],
        words=_OUTCOMES,
        signs=_SIGNS,
    )


def rule(request: Request) -> Response:
    """Show what a rule means, and the trials on which it has a verdict."""
    name = request.path_params["name"]
    with service_of(request).index() as index:
        listed, total = rule_trials(index, name)
        counts = index.rule_counts()
    class_name = listed[0].record.rule if listed else name
    text = rule_text(class_name)
    if text is None and not listed:
        raise HTTPException(404, f"There is no rule {name!r:.200}, and no trial was judged by it.")
    return render(
        request,
        "rule.html.jinja",
        job=name,
        class_name=class_name,
        text=text,
        trials=listed,
        fired=total,
        counts=rule_entry(class_name, counts.get(class_name, {})).counts,
        words=_OUTCOMES,
        signs=_SIGNS,
    )


def login(request: Request) -> Response:
    """Show the form that takes a token."""
    return render(request, "login.html.jinja", error="", next=request.query_params.get("next", "/"))


ROUTES = [
    Route("/", start),
    Route("/trials", trials),
    Route("/trials/{trial}", trial),
    Route("/rules", rules),
    Route("/rules/{name}", rule),
    Route("/login", login),
]
