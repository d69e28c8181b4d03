"""Metrics: what the index and the service know, in the format of Prometheus."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rule_runner.service.responses import service_of
from rule_runner.service.service import Service

_WORK: Final = (  # the columns of `IndexReader.rule_work`
    ("judged_steps", "Steps that rules have judged."),
    ("waiting_steps", "Steps of running trials that are known and not judged yet."),
    ("rule_seconds", "Time in the own code of rules, in seconds."),
)
_RESTARTS: Final = "Restarts of evaluations that died, of the trials in the index."
_UNDELIVERED: Final = "Events of ended evaluations that a sink has not taken, or has refused."


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
            incidents = {(severity,): n for severity, n in index.incident_counts().items()}
            undelivered = sum(index.undelivered().values())
        jobs = {
            (rule, outcome): n for rule, counts in rules.items() for outcome, n in counts.items()
        }
        yield _gauge("trials", "Trials by state and outcome.", trials.items(), "state", "outcome")
        yield _gauge("rule_jobs", "Rule jobs by rule and outcome.", jobs.items(), "rule", "outcome")
        yield _gauge("incidents", "Open incidents by severity.", incidents.items(), "severity")
        for column, (name, meaning) in enumerate(_WORK):
            figures = [((rule,), row[column]) for rule, row in work.items()]
            yield _gauge(name, meaning, figures, "rule")
        yield _gauge("restarts", _RESTARTS, [((), restarts)])
        yield _gauge("undelivered_events", _UNDELIVERED, [((), undelivered)])
        yield _gauge("event_streams", "Open event streams.", [((), len(self._service.changes))])
        requests = CounterMetricFamily(
            "rule_runner_http_requests", "Requests by route and status.", labels=("route", "status")
        )
        for (route, status), count in sorted(self._service.requests.items()):
            requests.add_metric((route, str(status)), count)
        yield requests


def _gauge(
    name: str, meaning: str, figures: Iterable[tuple[Sequence[str], float]], *labels: str
) -> Metric:
    """Return a metric with its figures by the values of its labels."""
    gauge = GaugeMetricFamily(f"rule_runner_{name}", meaning, labels=labels)
    for values, figure in sorted(figures):
        gauge.add_metric(values, figure)
    return gauge


def metrics(request: Request) -> Response:
    """Answer ``GET /metrics``."""
    text = generate_latest(ServiceCollector(service_of(request)))
    return Response(text, media_type=CONTENT_TYPE_LATEST)
