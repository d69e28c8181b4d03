"""A plan: evaluation requests as JSON, one on each line."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, NamedTuple

from rule_core.exceptions import SMDebugError
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.uri import is_s3, open_store
from rule_runner.batch.shards import WHOLE, Shard
from rule_runner.config.request import STDIN, EvaluationRequest, read_request
from rule_runner.errors import UsageError, reason_of, restated, translated, unreadable

_GIVE: Final = "Give a file that 'rule-runner fleet plan' wrote."


class PlanLine(NamedTuple):
    """A line of a plan, and its number, from 1."""

    number: int
    text: str

    def request(self) -> EvaluationRequest:
        """Return the evaluation that the line requests.

        Raises
        ------
        UsageError
            If the line is not a request with an output.
        """
        if not self.text.startswith("{"):  # `read_request` takes paths too
            raise UsageError(
                f"Line {self.number} of the plan is not a JSON object, got {self.text[:60]!r}."
            )
        problem = f"Line {self.number} of the plan is no request. "
        with translated(UsageError, UsageError, before=problem):
            request = read_request(self.text)
        if request.output is None:
            raise UsageError(
                f"Line {self.number} of the plan has no 'output', so it could not be resumed."
            )
        return request


def plan_text(requests: Iterable[EvaluationRequest]) -> str:
    """Return requests as the text of a plan."""
    return "".join(f"{request.to_json()}\n" for request in requests)


def read_plan(place: str, shard: Shard = WHOLE) -> Iterator[PlanLine]:
    """Yield the lines of a shard; empty lines count, but are not yielded.

    Parameters
    ----------
    place
        A file, an ``s3://`` address, or ``-`` for standard input.

    Raises
    ------
    UsageError
        If it cannot be read.
    """
    problem = f"Plan {place!r} cannot be read: "
    with (
        ExitStack() as stack,
        translated(UsageError, OSError, before=problem, after=f". {_GIVE}", words=reason_of),
    ):
        for number, line in enumerate(_lines(place, stack)):
            text = line.decode(errors="replace").strip()
            if text and shard.holds(number):
                yield PlanLine(number + 1, text)


def _lines(place: str, stack: ExitStack) -> Iterable[bytes]:
    if place == STDIN:
        return sys.stdin.buffer
    if is_s3(place):
        return bytes(_object(place)).splitlines()
    file: IO[bytes] = stack.enter_context(Path(place).expanduser().open("rb"))
    return file


def _object(address: str) -> memoryview:
    """Return the content of an object in S3."""
    folder, _, name = address.strip().rpartition("/")
    absence = f"Plan {address!r} does not exist. {_GIVE}"
    with (
        translated(UsageError, SMDebugError),
        unreadable(f"Plan {address!r}", UsageError, StorageUnavailableError),
        restated(UsageError, ObjectNotFoundError, sentence=absence),
    ):
        return open_store(folder).read(name)
