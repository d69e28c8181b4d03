"""What rules measure: declared, so that it can be measured before they ask."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rule_core.format.index_file import IndexFile
from rule_core.model import patterns
from rule_core.model.collection import Collection
from rule_core.model.streaming_statistics import StreamingStatistic, Want
from rule_core.reading.measuring.block import Choose
from rule_core.reading.step_read_plan import Names
from rule_core.reading.trial_index import TrialIndex
from rule_core.rules.requirements import TensorInput


class WantedMeasure(NamedTuple):
    """A statistic that a rule asks of tensors at every step that it judges.

    Attributes
    ----------
    statistic
        A reduction such as ``Reduction("l2")``, or a statistic of the rule's own. Worker processes
        import its class.
    tensors
        The tensors.
    back
        How many saved steps of the mode back the value is that it compares with; 0 means none.
    """

    statistic: StreamingStatistic
    tensors: TensorInput
    back: int = 0


class DeclaredWants:
    """The statistics to compute for each index file, as rules declare them.

    Parameters
    ----------
    measures
        What the rules declare.
    """

    def __init__(self, measures: Sequence[WantedMeasure]) -> None:
        self._measures = [*dict.fromkeys(measures)]
        self._chosen: dict[tuple[str, ...], Mapping[Want, Names]] = {}
        self._version = -1
        self.wants: list[Want] = [*dict.fromkeys((each[0], each.back) for each in self._measures)]

    def of(
        self, file: IndexFile, collections: Mapping[str, Collection], version: int
    ) -> Mapping[Want, Names]:
        """Return the statistics of an index file, and their tensors.

        Parameters
        ----------
        collections, version
            The collections of the trial, and a number that changes with them.
        """
        if version != self._version:
            self._version, self._chosen = version, {}
        names = file.layout.names
        chosen = self._chosen.get(names)
        if chosen is None:
            chosen = self._chosen[names] = self._choose(_Names(names, collections))
        return chosen

    def chooser(self, index: TrialIndex) -> Choose:
        """Return `of` over the collections of a trial."""
        return lambda file: self.of(file, index.collections, index.collections_version)

    def _choose(self, names: "_Names") -> Mapping[Want, Names]:
        chosen: dict[Want, set[str]] = {}
        for statistic, tensors, back in self._measures:
            selected = tensors.names(names)
            if selected:
                chosen.setdefault((statistic, back), set()).update(selected)
        return {want: frozenset(selected) for want, selected in chosen.items()}


class _Names:
    """Names of tensors, which a `TensorInput` selects from as from those of a trial."""

    def __init__(self, names: Sequence[str], collections: Mapping[str, Collection]) -> None:
        self._names = sorted(names)
        self._collections = collections

    def tensor_names(
        self, *, step: int | None = None, regex: Any = None, collection: str = ""
    ) -> list[str]:
        """Return the names that match patterns, or are members of a collection."""
        del step
        if regex is not None:
            return patterns.matching(self._names, patterns.flatten(regex))
        members = self._collections.get(collection)
        return [] if members is None else members.members(self._names)
