"""SelectingRule: the base class of rules over tensors that users select by collection or name."""

from typing import ClassVar

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared
from builtin_rules.statistics.tensor_selection import ANY_NAME, selection_input
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import StreamingStatistic, WantedMeasure


class SelectingRule(DeclaredRule):
    """A rule over the tensors that `collection_names` and `tensor_regex` select.

    Attributes
    ----------
    ALL_BY_DEFAULT
        Whether the rule judges every tensor if neither parameter is set.
    STATISTIC
        The statistic that the rule asks of these tensors; None if it asks for other ones.

    Raises
    ------
    SMDebugValueError
        If neither parameter is set and `ALL_BY_DEFAULT` is false.
    """

    ALL_BY_DEFAULT: ClassVar[bool] = False
    STATISTIC: ClassVar[StreamingStatistic | None] = None

    collection_names: Declared[tuple[str, ...]]
    tensor_regex: Declared[tuple[str, ...]]

    def _prepare(self) -> None:
        self._has_selection = bool(self.collection_names or self.tensor_regex)
        self._selected = selection_input((), (ANY_NAME,))
        if self._has_selection:
            self._selected = selection_input(self.collection_names, self.tensor_regex)
            self.required_inputs = (self._selected,)
        elif not self.ALL_BY_DEFAULT:
            raise SMDebugValueError(
                f"Rule {self.rule_name!r} needs parameter 'collection_names' or 'tensor_regex', "
                "and neither was given."
            )

    @property
    def wants(self) -> list[WantedMeasure] | None:
        """The statistic of the selected tensors."""
        return None if self.STATISTIC is None else [WantedMeasure(self.STATISTIC, self._selected)]
