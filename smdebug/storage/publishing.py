"""publish: a whole file, or none, where a trial or a report is written."""

from smdebug.storage.protocol import TrialOutput


def publish(output: TrialOutput, key: str, *parts: bytes) -> None:
    """Write a file, then give it its key; nothing of it is left if that cannot be done.

    Raises
    ------
    OSError
        If the store does not take it.
    """
    draft = output.open(key)
    try:
        draft.write(*parts)
        draft.publish()
    except BaseException:
        draft.discard()
        raise
