"""S3Trial: a trial in S3, as `create_trial` returns it."""

from typing import Any

from rule_core.clock import Clock
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.trials.opened_trial import OpenedTrial, Range


class S3Trial(OpenedTrial):
    """A trial in S3; `create_trial` returns the same.

    Parameters
    ----------
    name, bucket_name, prefix_name
        A name of your choice, and the location: ``s3://bucket_name/prefix_name``.
    range_steps, timeout, sources
        As for `create_trial`.
    kind
        The format of the files with a colon, such as ``csv:``, if it is not to be recognised.
    check, index_mode, cache
        Accepted for compatibility; ignored.
    """

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: Range | None = None,
        check: Any = None,
        index_mode: Any = None,
        cache: Any = None,
        *,
        timeout: float | None = None,
        clock: Clock | None = None,
        sources: SourceOptions = DEFAULT,
        kind: str = "",
    ) -> None:
        del check, index_mode, cache
        path = f"{kind}s3://{bucket_name}" + (f"/{prefix_name}" if prefix_name else "")
        super().__init__(name, path, range_steps, timeout, clock, sources)
