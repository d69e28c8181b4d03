"""publish: writes a file of a trial or report atomically."""

from rule_core.failures import OnError
from rule_core.storage.base import TrialOutput


def publish(output: TrialOutput, key: str, *parts: bytes) -> None:
    """Write a file and publish it; on errors, discard it.

    Raises
    ------
    OSError
        If the write fails.
    """
    pending = output.open(key)
    with OnError(pending.discard):
        pending.write(*parts)
        pending.publish()
