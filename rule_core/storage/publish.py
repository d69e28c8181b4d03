"""publish: writes a file of a trial or report atomically."""

from rule_core.storage.base import TrialOutput


def publish(output: TrialOutput, key: str, *parts: bytes) -> None:
    """Write a file and publish it; on errors, discard it.

    Raises
    ------
    OSError
        If the write fails.
    """
    pending = output.open(key)
    try:
        pending.write(*parts)
        pending.publish()
    except BaseException:
        pending.discard()
        raise
