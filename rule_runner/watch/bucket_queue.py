"""BucketQueue: a queue of S3 notifications, which says where to look for new trials."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote_plus

import msgspec

from rule_core.storage import aws
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.watch.pace import repeat

_log: Final = get_logger(__name__)

WAIT_S: Final = 10  # for messages, in one request
MOST_MESSAGES: Final = 10  # in one answer, the limit of SQS
RETRY_S: Final = 30.0  # after an error
QUEUE: Final = re.compile(r"https?://[^\s/?#]+/[0-9]{12}/[A-Za-z0-9_.-]{1,84}")
_REGION: Final = re.compile(r"https?://sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?/")
_CREATED: Final = "ObjectCreated:"
_CREATED_BY_EVENTBRIDGE: Final = "Object Created"


class BucketQueue:
    """Follows an SQS queue of notifications that buckets, SNS or EventBridge send.

    Messages of other kinds are left in the queue.

    Parameters
    ----------
    url
        The address of the queue.
    arrived
        Called with the addresses of new objects, in the thread of `run`.
    """

    def __init__(self, url: str, arrived: Callable[[Sequence[str]], None]) -> None:
        self._url = url
        self._arrived = arrived
        self._stopping = threading.Event()
        self._trouble = ""
        self._client: Any = None

    def run(self) -> None:
        """Follow the queue until `stop`; errors are logged once, and tried again."""
        repeat(self._follow, self._fail, self._stopping)

    def _follow(self) -> None:
        self.receive()
        if self._trouble:
            _log.info("queue_available", queue=self._url)
        self._trouble = ""

    def stop(self) -> None:
        """End `run` after the request that is under way."""
        self._stopping.set()

    def receive(self, wait_s: int = WAIT_S) -> None:
        """Hand over the objects of the next messages, then delete these.

        Raises
        ------
        Exception
            One of `rule_core.storage.aws.errors`.
        """
        if self._client is None:
            region = _REGION.match(self._url)
            self._client = aws.client(
                "sqs", region=region and region[1], read_timeout=WAIT_S + aws.READ_TIMEOUT_S
            )
        answer = self._client.receive_message(
            QueueUrl=self._url, MaxNumberOfMessages=MOST_MESSAGES, WaitTimeSeconds=wait_s
        )
        addresses: dict[str, None] = {}
        done: list[dict[str, str]] = []
        for message in answer.get("Messages", ()):
            objects = objects_of(message["Body"])
            if objects is None:
                _log.warning("message_left", queue=self._url, reason="It is no S3 notification.")
                continue
            addresses.update(dict.fromkeys(objects))
            done.append({"Id": str(len(done)), "ReceiptHandle": message["ReceiptHandle"]})
        if addresses:
            self._arrived([*addresses])
        if done:
            self._client.delete_message_batch(QueueUrl=self._url, Entries=done)

    def _fail(self, err: Exception) -> None:
        is_defect = not isinstance(err, aws.errors())
        reason = repr(err) if is_defect else aws.fault(err).reason
        if reason != self._trouble:
            details = {"exc_info": err} if is_defect else {}
            _log.warning("queue_unavailable", queue=self._url, reason=printable(reason), **details)
        self._trouble = reason
        self._stopping.wait(RETRY_S)


def objects_of(body: str) -> list[str] | None:
    """Return the addresses of the objects that a message says were written; None: no S3 message.

    It may come from the bucket, from SNS with or without raw delivery, or from EventBridge.
    """
    content = _json(body)
    if isinstance(content.get("Message"), str):  # an envelope of SNS
        content = _json(content["Message"])
    try:
        match content:
            case {"Event": "s3:TestEvent"}:
                return []
            case {"source": "aws.s3", "detail": dict(detail)}:
                is_created = content.get("detail-type") == _CREATED_BY_EVENTBRIDGE
                return [_address(detail, detail["object"]["key"])] if is_created else []
            case {"Records": list(records)}:
                created = [record["s3"] for record in records if _is_created(record)]
                return [_address(s3, unquote_plus(s3["object"]["key"])) for s3 in created]
            case _:
                return None
    except (KeyError, TypeError, AttributeError):
        return None


def _json(text: str) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_created(record: Mapping[str, Any]) -> bool:
    return str(record["eventName"]).removeprefix("s3:").startswith(_CREATED)


def _address(event: Mapping[str, Any], key: str) -> str:
    return f"s3://{event['bucket']['name']}/{key}"


@contextmanager
def following(url: str | None, arrived: Callable[[Sequence[str]], None]) -> Iterator[None]:
    """Follow a queue, if there is one, while the block runs."""
    if url is None:
        yield
        return
    queue = BucketQueue(url, arrived)
    threading.Thread(target=queue.run, name="bucket-queue", daemon=True).start()
    try:
        yield
    finally:
        queue.stop()
