"""NLPSequenceRatio: too many tokens are padding or another given token."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, names
from builtin_rules.statistics.tensor_selection import LITERAL, by_role, numbers, saved_tensors
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import NamesParam, PatternsParam, Quantity, Severity

DEFAULT_PERCENT: Final = "50"
_ALL: Final = 100  # percent
USUAL_PERCENT: Final = 200 / 3  # up to here, padding makes each text three times as long at most
# Embeddings of other things than tokens, such as image patches.
_NOT: Final = r"(?i)^(?!.*(patch|(?<![a-z])(?<!token_and_)pos|wpe|segment|type|(?<![a-z])time))"
TOKENS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor is judged if one of them matches in its name.",
    default=".*embedding0_input_0",
    also=(
        # PyTorch, MXNet: inputs of an embedding, or of a Hugging Face model.
        _NOT + r".*(embed(ding)?s?|embed_?tokens|wte)(_?\d+)?_input_(\d+|input|input_ids)$",
        r"(^|\.)shared_input_\d+$|^[A-Z]\w*_input_input_ids$",
        _NOT + r".*embed[^/]*/inputs(_\d+)?$",  # Keras
    ),
    collection="input_sequence",
)


@dataclass(frozen=True)
class _NumbersParam(NamesParam):
    """Numbers, or percentages, as text, from a list or from comma-separated text."""

    of_percent: bool = False

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        kind = "numbers in [0, 100]" if self.of_percent else "finite numbers"
        return f"{kind} separated by commas"

    def _read(self, raw: object) -> tuple[str, ...]:
        parts = raw if isinstance(raw, (list, tuple)) else [raw]
        return super()._read([str(number) for part in parts for number in str(part).split(",")])

    def _checked(self, part: str) -> str:
        value = float(part)
        if not (0 <= value <= _ALL if self.of_percent else math.isfinite(value)):
            raise ValueError
        return part


class NLPSequenceRatio(DeclaredRule):
    """Met when a token of `token_values` has more than its percentage of all tokens at a step.

    Unless `token_thresholds_percent` is given or `literal` is set, the finding is a note up to two
    thirds of the tokens: that much padding is usual where texts differ in length, and token 0 may
    stand for something.

    Each tensor and each step is judged separately, with the tokens of all workers combined. NaN
    counts as a token that equals no other. Of the tensors selected by the default patterns, only
    those with integers are judged.
    """

    READS = (
        "the collection input_sequence (our PyTorch hook fills it by the type and shape of a "
        "model's inputs), and inputs of embeddings as PyTorch (embedding_input_0, "
        "transformer.wte_input_0), MXNet (embedding0_input_0) and Keras (embedding/inputs) name "
        "them: values."
    )
    tensor_regex = names(TOKENS)
    token_values = names(_NumbersParam("", "Tokens to count.", default="0", unit="tokens"))
    token_thresholds_percent = names(
        _NumbersParam(
            "",
            "Largest accepted share of all tokens, for each of these tokens.",
            default=DEFAULT_PERCENT,
            unit="percent",
            of_percent=True,
        )
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity("share of token 0", "share of token 0, percent of all tokens"),)

    def _prepare(self) -> None:
        values, limits = self.token_values, self.token_thresholds_percent
        if len(values) != len(limits):
            raise SMDebugValueError(
                "Parameters 'token_values' and 'token_thresholds_percent' must have the same "
                f"number of entries, got {len(values)} and {len(limits)}."
            )
        self._inputs = by_role("sequences of tokens", TOKENS, self.tensor_regex)
        self.required_inputs = (self._inputs,)
        self._limits = [
            (float(value), float(limit)) for value, limit in zip(values, limits, strict=True)
        ]

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tokens of global step `step`."""
        names = self._inputs.names(self.base_trial, step)
        if not names:
            return self.not_judged("no sequences of tokens at this step")
        tokens = {name: arrays for name in names if (arrays := self._tokens(name, step))}
        if not tokens:
            return self.not_judged("no values that are tokens at this step")
        answers = [self._judge(name, step, arrays) for name, arrays in tokens.items()]
        return any(answers)

    def _tokens(self, name: str, step: int) -> list[Any]:
        """Return the arrays of tokens that the workers saved of a tensor."""
        arrays = [numbers(saved, step) for saved in saved_tensors(self.base_trial, step, [name])]
        is_default = self.tensor_regex == TOKENS.whole_default
        return [
            array
            for array in arrays
            if array is not None and not (is_default and not _is_whole(array))
        ]

    def _judge(self, name: str, step: int, arrays: list[Any]) -> bool:
        size = sum(array.size for array in arrays)
        met = False
        for value, limit in self._limits:
            with np.errstate(all="ignore"):  # a token outside the range of the type
                number = sum(int(np.count_nonzero(array == value)) for array in arrays)
            share = 100.0 * number / size
            note = f"Token {value:g}: {number} of {size}."
            quantity, key = f"share of token {value:g}", (name, None)
            severity = Severity.NOTE if self._is_usual(share) else None
            met |= self.record(
                key, step, quantity, share, limit, met=share > limit, note=note, severity=severity
            )
        return met

    def _is_usual(self, share: float) -> bool:
        """Return whether a share in percent is usual for padding, unless users said what is."""
        return not self.binds("token_thresholds_percent") and share <= USUAL_PERCENT


def _is_whole(array: Any) -> bool:
    """Return whether an array may hold tokens: integers, possibly stored as floats."""
    if array.dtype.kind in "iu":
        return True
    with np.errstate(all="ignore"):
        return array.dtype.kind in "fV" and bool((array == np.rint(array)).all())
