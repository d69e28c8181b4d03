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
from rule_runner.errors import UsageError, translated

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
            msg = f"Line {self.number} of the plan is not a JSON object, got {self.text[:60]!r}."
            raise UsageError(msg)
        problem = f"Line {self.number} of the plan is no request. "
        with translated(UsageError, UsageError, before=problem):
            request = read_request(self.text)
        if request.output is None:
            msg = f"Line {self.number} of the plan has no 'output', so it could not be resumed."
            raise UsageError(msg)
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
    with ExitStack() as stack:
        try:
            lines = _lines(place, stack)
            for number, line in enumerate(lines):
                text = line.decode(errors="replace").strip()
                if text and shard.holds(number):
                    yield PlanLine(number + 1, text)
        except OSError as err:
            msg = f"Plan {place!r} cannot be read: {err.strerror}. {_GIVE}"
            raise UsageError(msg) from err


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
    try:
        return open_store(folder).read(name)
    except ObjectNotFoundError as err:
        msg = f"Plan {address!r} does not exist. {_GIVE}"
        raise UsageError(msg) from err
    except StorageUnavailableError as err:
        msg = f"Plan {address!r} cannot be read: {err.reason}."
        raise UsageError(msg) from err
    except SMDebugError as err:
        raise UsageError(str(err)) from err
