"""KinetoFormat: traces of torch.profiler among the formats that are converted."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rule_core.profiler.converted.format import Converted, ConvertedFormat, NumberedKey
from rule_core.profiler.kineto.conversion import convert_trace
from rule_core.profiler.kineto.trace_names import begins_as_trace, is_trace_name, other_kind
from rule_core.profiler.whole_text import is_json_name
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError, TrialStore


class KinetoFormat(ConvertedFormat):
    """See `ConvertedFormat`."""

    label: str = "traces of torch.profiler"

    def has_name(self, key: str) -> bool:
        """Return whether only traces have such a name."""
        return is_trace_name(key)

    def may_have_name(self, key: str) -> bool:
        """Return whether a trace may have such a name."""
        return is_json_name(key)

    def begins(self, text: bytes) -> bool:
        """Return whether a text begins as a trace does."""
        return begins_as_trace(text)

    def refusal(self, key: str, start: bytes) -> str:
        """Return of which other kind a trace is; "" for other files."""
        del key
        return "" if self.begins(start) else other_kind(start)

    def convert(
        self, store: TrialStore, keys: Sequence[NumberedKey], folder: Path
    ) -> Iterator[Converted]:
        """Convert traces one by one; one that cannot be read is a problem of its own."""
        for number, key in keys:
            try:
                trace = convert_trace(store, key, number, folder)
            except ObjectNotFoundError:  # removed meanwhile
                continue
            except StorageUnavailableError as err:
                if err.transient:
                    raise
                yield Converted(key, {}, [str(err)], 1)
            else:
                yield Converted(key, *trace)


KINETO: Final = KinetoFormat()
