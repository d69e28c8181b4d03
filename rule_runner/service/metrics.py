"""Metrics: what the index and the service know, in the format of Prometheus."""

from collections.abc import Iterator, MutableMapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rule_runner.service.responses import service_of
from rule_runner.service.service import Service


class RequestCounter:
    """Middleware that counts requests by route and status."""

    def __init__(self, app: ASGIApp, *, counts: MutableMapping[tuple[str, int], int]) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "") or "other"
                key = (route, message["status"])
                self._counts[key] = self._counts.get(key, 0) + 1
            await send(message)

        await self._app(scope, receive, send_counted)


class ServiceCollector(Collector):
    """Reads all metrics on request. Trials are never labels."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics.

        Raises
        ------
        OutputError
            If the index cannot be read.
        """
        with self._service.index() as index:
            trials, rules = index.counts(), index.rule_counts()
            work, restarts = index.rule_work(), index.restarts()
            undelivered = sum(index.undelivered().values())
        states = GaugeMetricFamily(
            "rule_runner_trials", "Trials by state and outcome.", labels=("state", "outcome")
        )
        for (state, outcome), count in sorted(trials.items()):
            states.add_metric((state, outcome), count)
        yield states
        jobs = GaugeMetricFamily(
            "rule_runner_rule_jobs", "Rule jobs by rule and outcome.", labels=("rule", "outcome")
        )
        for rule, outcomes in rules.items():
            for outcome, count in outcomes.items():
                jobs.add_metric((rule, outcome), count)
        yield jobs
        yield from _work(work)
        yield GaugeMetricFamily(
            "rule_runner_restarts",
            "Restarts of evaluations that died, of the trials in the index.",
            value=restarts,
        )
        yield GaugeMetricFamily(
            "rule_runner_undelivered_events",
            "Events of ended evaluations that a sink has not taken, or has refused.",
            value=undelivered,
        )
        yield GaugeMetricFamily(
            "rule_runner_event_streams", "Open event streams.", value=len(self._service.changes)
        )
        requests = CounterMetricFamily(
            "rule_runner_http_requests", "Requests by route and status.", labels=("route", "status")
        )
        for (route, status), count in sorted(self._service.requests.items()):
            requests.add_metric((route, str(status)), count)
        yield requests


def _work(work: dict[str, tuple[int, int, float]]) -> Iterator[Metric]:
    """Yield the judged and the remaining steps by rule."""
    judged = GaugeMetricFamily(
        "rule_runner_judged_steps", "Steps that rules have judged.", labels=("rule",)
    )
    left = GaugeMetricFamily(
        "rule_runner_waiting_steps",
        "Steps of running trials that are known and not judged yet.",
        labels=("rule",),
    )
    seconds = GaugeMetricFamily(
        "rule_runner_rule_seconds", "Time in the own code of rules, in seconds.", labels=("rule",)
    )
    for rule, (steps, waiting, spent) in sorted(work.items()):
        judged.add_metric((rule,), steps)
        left.add_metric((rule,), waiting)
        seconds.add_metric((rule,), spent)
    yield from (judged, left, seconds)


def metrics(request: Request) -> Response:
    """Answer ``GET /metrics``."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ServiceCollector(service_of(request)))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
