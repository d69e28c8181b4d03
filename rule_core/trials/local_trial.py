"""LocalTrial: a trial in a local folder, as `create_trial` returns it."""

import os
from typing import Any

from rule_core.clock import Clock
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.trials.opened_trial import OpenedTrial, Range


class LocalTrial(OpenedTrial):
    """A trial in a local folder; `create_trial` returns the same.

    Parameters
    ----------
    name, dirname
        A name of your choice, and the folder.
    range_steps, timeout, sources
        As for `create_trial`.
    parallel, check, index_mode, cache
        Accepted for compatibility; ignored.
    """

    def __init__(
        self,
        name: str,
        dirname: str | os.PathLike[str],
        range_steps: Range | None = None,
        parallel: Any = None,
        check: Any = None,
        index_mode: Any = None,
        cache: Any = None,
        *,
        timeout: float | None = None,
        clock: Clock | None = None,
        sources: SourceOptions = DEFAULT,
    ) -> None:
        del parallel, check, index_mode, cache
        super().__init__(name, os.fspath(dirname), range_steps, timeout, clock, sources)
