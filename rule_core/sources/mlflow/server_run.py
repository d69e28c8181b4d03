"""ServerRun: a run on a tracking server of MLflow, read through its REST interface.

urllib3 speaks it rather than ``MlflowClient``: three addresses are needed, the package takes over a
second to import, and urllib3 is a dependency already.
"""

import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from rule_core.exceptions import SMDebugValueError
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.mlflow.database_run import ENDED, unlimited
from rule_core.sources.mlflow.run import MergedRun, MetricPoint, Series, point_of
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError

if TYPE_CHECKING:
    from urllib3 import PoolManager

PAGE: Final = 2_000  # values asked for at once; each takes some 100 bytes
ANSWER_BYTES: Final = 32 << 20
TIMEOUT_S: Final = 20.0
SETTINGS: Final = ("USERNAME", "PASSWORD", "TOKEN", "INSECURE_TLS", "SERVER_CERT_PATH")
API: Final = "/api/2.0/mlflow/"
_RUN: Final = re.compile(r"(?:.*/)?runs/([0-9A-Za-z_-]+)(?:[/?].*)?")
_TRANSIENT: Final = {408, 425, 429, *range(500, 600)}
_NOT_FOUND: Final = 404
_OK: Final = 200


class _Info(msgspec.Struct):
    status: str = "RUNNING"


class _Latest(msgspec.Struct):
    key: str


class _Tag(msgspec.Struct):
    key: str
    value: str = ""


class _Data(msgspec.Struct):
    metrics: list[_Latest] = []
    tags: list[_Tag] = []


class _Run(msgspec.Struct):
    info: _Info
    data: _Data


class _RunAnswer(msgspec.Struct):
    run: _Run


class _Value(msgspec.Struct):
    value: float | str  # text such as "NaN", as protobuf writes it in JSON
    timestamp: int | str = 0
    step: int | str = 0

    def point(self) -> MetricPoint | None:
        """Return the number; None if the texts are none."""
        point = point_of(self.timestamp, self.step, self.value)
        return point and point._replace(value=unlimited(point.value))


class _HistoryAnswer(msgspec.Struct):
    metrics: list[_Value] = []
    next_page_token: str = ""


class _Metric(Series):
    """The history of one metric: pages, of which the last is asked for again as it grows."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.page = ""
        self.taken = 0  # values of that page


class ServerRun(MergedRun[_Metric]):
    """A run on a tracking server.

    Parameters
    ----------
    server
        The address of the server, such as ``http://host:5000``.
    """

    def __init__(self, server: str, run_id: str) -> None:
        self._server = server.rstrip("/")
        super().__init__(f"MLflow run {run_id} on the tracking server {self._server}")
        self._run_id = run_id

    @classmethod
    def at(cls, key: str) -> "ServerRun":
        """Return the run at the address of its page, or of an ID on the environment's server.

        Raises
        ------
        SMDebugValueError
            If the address names no run, or there is only an ID and no server.
        """
        if "://" not in key:
            server = os.environ.get("MLFLOW_TRACKING_URI", "")
            if not server.startswith(("http://", "https://")):
                raise SMDebugValueError(
                    f"Run {key!r} of MLflow needs a tracking server: set MLFLOW_TRACKING_URI to "
                    "its address, or give the address of the run's page."
                )
            return cls(server, key)
        parts = urlsplit(key)
        for text, root in (
            (parts.fragment, parts.path),
            (parts.path, parts.path.partition("/experiments/")[0]),
        ):
            run = _RUN.fullmatch(text)
            if run:
                return cls(f"{parts.scheme}://{parts.netloc}{root}", run[1])
        raise SMDebugValueError(
            f"Address {key!r} names no run of MLflow. Copy the address of a run's page: "
            "mlflow:http://HOST/#/experiments/ID/runs/RUN."
        )

    def find_series(self) -> bool:
        """Add new metrics; see `MergedRun`."""
        run = self._run()
        for latest in run.data.metrics:
            self.series.setdefault(latest.key, _Metric(latest.key))
        return run.info.status in ENDED

    def read_series(self, series: _Metric, record: SourceRecord) -> bool:
        """Read the rest of the last page, or the next one; see `MergedRun`."""
        asked = {"page_token": series.page} if series.page else {}
        answer = self._ask(
            "metrics/get-history",
            _HistoryAnswer,
            run_id=self._run_id,
            metric_key=series.name,
            max_results=str(PAGE),
            **asked,
        )
        new = answer.metrics[series.taken :]
        for value in new:
            point = value.point()
            if point is None:
                record.problem(f"Metric {series.name!r} has values that are not numbers; skipped.")
                continue
            series.add(point)
            self.written = max(self.written, point.time / 1000)
        series.has_more = bool(answer.next_page_token) and answer.next_page_token != series.page
        if series.has_more:
            series.page, series.taken = answer.next_page_token, 0
        else:
            series.taken = len(answer.metrics)
        return bool(new)

    def _run(self) -> _Run:
        answer: _RunAnswer = self._ask("runs/get", _RunAnswer, run_id=self._run_id)
        return answer.run

    def _ask(self, path: str, form: type[Any], method: str = "GET", **fields: str) -> Any:
        """Return the answer to a request.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the server does not have the run, or does not answer.
        """
        from urllib3.exceptions import HTTPError

        name = f"{self._server}{API}{path}"
        try:
            response = self._client.request(
                method,
                name,
                fields=fields if method == "GET" else None,
                json=None if method == "GET" else fields,
                preload_content=False,
                redirect=False,
            )
            with closing(response):
                content = response.read(ANSWER_BYTES + 1)
        except HTTPError as err:
            reason = f"the tracking server does not answer: {type(err).__name__}"
            raise StorageUnavailableError(name, reason, transient=True) from err
        if response.status == _NOT_FOUND:
            address = f"{self._server}/#/runs/{self._run_id}"
            raise ObjectNotFoundError(address)
        if response.status != _OK:
            remedy = ", set MLFLOW_TRACKING_USERNAME and _PASSWORD, or MLFLOW_TRACKING_TOKEN"
            is_denied = response.status in {401, 403}
            raise StorageUnavailableError(
                name,
                f"the tracking server answers {response.status}{remedy * is_denied}",
                transient=response.status in _TRANSIENT,
            )
        if len(content) > ANSWER_BYTES:
            raise StorageUnavailableError(name, f"its answer exceeds {ANSWER_BYTES} bytes")
        try:
            return msgspec.json.decode(content, type=form)
        except ValueError as err:
            reason = f"its answer is not that of MLflow: {str(err).rstrip('.')}"
            raise StorageUnavailableError(name, reason) from err

    def has_ended(self) -> bool | None:
        """Return True if the run says so; see `MlflowRun`."""
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return True if self._run().info.status in ENDED else None
        return None

    def tag(self, name: str) -> str:
        """Return a tag of the run; "" if it has none of this name."""
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return next((tag.value for tag in self._run().data.tags if tag.key == name), "")
        return ""

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the server does not have the run, or does not accept them.
        """
        for name, value in tags.items():
            self._ask("runs/set-tag", dict, "POST", run_id=self._run_id, key=name, value=value)

    @cached_property
    def _client(self) -> "PoolManager":
        """A client with the settings of the environment that MLflow documents."""
        from urllib3 import PoolManager, Retry, Timeout, make_headers

        settings = (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in SETTINGS)
        user, password, token, insecure, certificates = settings
        headers = {"accept": "application/json"}
        if user or password:
            headers |= make_headers(basic_auth=f"{user}:{password}")
        elif token:
            headers["authorization"] = f"Bearer {token}"
        options: dict[str, Any] = {}
        if insecure.lower() == "true":
            options["cert_reqs"] = "CERT_NONE"
        elif certificates:
            options["ca_certs"] = certificates
        timeout = Timeout(connect=TIMEOUT_S, read=TIMEOUT_S)
        retries = Retry(2, backoff_factor=0.2, redirect=0)
        return PoolManager(headers=headers, timeout=timeout, retries=retries, **options)
