"""Source: the output of a training run in a format of its own, presented as a trial.

A reader implements `Source` and passes what it reads to a `SourceRecord`; everything else, such as
modes, collections, segments and which steps are settled, is the same for all formats.
"""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rule_core.reading.source_record import SourceRecord


class Source(Protocol):
    """One file or folder in one format."""

    @property
    def kind(self) -> str:
        """The name of the format, as in ``--trial csv:PATH``."""
        ...

    @property
    def description(self) -> str:
        """What was recognised and why, as a sentence for ``trial show`` and ``doctor``."""
        ...

    def read_new(self, record: "SourceRecord") -> bool:
        """Pass what was written since the last call to `record`, in the order written.

        A partial last line or record is left for the next call. Damage is reported by
        `SourceRecord.problem` and skipped.

        Returns
        -------
        bool
            Whether anything was read.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If a file does not exist or cannot be read.
        """
        ...

    def has_ended(self) -> bool | None:
        """Return whether the run has ended, as far as the format says it; None if it does not."""
        ...

    def last_write(self) -> float:
        """Return when the files were last written, in seconds since the epoch; 0 if unknown."""
        ...


@runtime_checkable
class FinishingSource(Source, Protocol):
    """A source that keeps something for its next look, such as a last line without its end."""

    def finish(self, record: "SourceRecord") -> None:
        """Pass on what was kept, since the run has ended. Files may grow nevertheless."""
        ...


@runtime_checkable
class DecidingSource(Source, Protocol):
    """A source that decides something that users may want to override, such as its steps."""

    def decisions(self) -> list[str]:
        """Return each decision so far with its reason, for ``trial show`` and ``doctor``.

        Such as ``steps: epoch x 124 iterations, from 'epoch' and 'iter'``.
        """
        ...
