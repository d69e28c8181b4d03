"""NLPSequenceRatio: too many of the tokens are padding, or another given token."""

import math
from typing import Any, Final

import numpy as np

from builtin_rules.selection import by_role, numbers, saved
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import NamesParam, PatternsParam, set_parameters

# Embeddings of something else than tokens; patches of images.
_NOT: Final = r"(?i)^(?!.*(patch|(?<![a-z])(?<!token_and_)pos|wpe|segment|type|(?<![a-z])time))"
TOKENS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor is judged if one of them is found in its name.",
    default=".*embedding0_input_0",
    also=(
        # PyTorch, MXNet: what an embedding takes, or a model of Hugging Face's.
        _NOT + r".*(embed(ding)?s?|embed_?tokens|wte)(_?\d+)?_input_(\d+|input|input_ids)$",
        r"(^|\.)shared_input_\d+$|^[A-Z]\w*_input_input_ids$",
        _NOT + r".*embed[^/]*/inputs(_\d+)?$",  # Keras
    ),
    collection="input_sequence",
)


class _NumbersParam(NamesParam):
    """Numbers in a tuple, each as it is written, given as text with commas or as a list."""

    minimum = -math.inf
    maximum = math.inf

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "finite numbers with commas between them"

    def _read(self, raw: object) -> tuple[str, ...]:
        parts = raw if isinstance(raw, (list, tuple)) else [raw]
        return super()._read([str(one) for part in parts for one in str(part).split(",")])

    def _checked(self, part: str) -> str:
        if not (math.isfinite(float(part)) and self.minimum <= float(part) <= self.maximum):
            raise ValueError
        return part


class _PercentagesParam(_NumbersParam):
    """Percentages in a tuple, likewise."""

    minimum = 0.0
    maximum = 100.0

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "numbers in [0, 100] with commas between them"


class NLPSequenceRatio(Rule):
    """Met when a token of `token_values` has more than its percentage of all tokens at a step.

    Each tensor is judged by itself, the tokens of all workers together, each step by itself. NaN
    is a token, and equal to none. Of what the default patterns select only tensors of whole
    numbers are judged.
    """

    READS = (
        "the collection input_sequence (our PyTorch hook knows it by the type and shape of what a "
        "model takes), and what embeddings take, as PyTorch (embedding_input_0, "
        "transformer.wte_input_0), MXNet (embedding0_input_0) and Keras (embedding/inputs) name "
        "it: values."
    )
    PARAMS = (
        TOKENS,
        _NumbersParam("token_values", "Tokens to count.", default="0", unit="tokens"),
        _PercentagesParam(
            "token_thresholds_percent",
            "For each of these tokens the largest accepted share of all tokens.",
            default="50",
            unit="percent",
        ),
    )
    QUANTITIES = (Quantity("share of token 0", "share of token 0, percent of all tokens"),)
    PAGE = Page(
        why="""
        Every token costs the same. Where most are padding, most of the computation is for nothing;
        where many are unknown or end tokens, the vocabulary or the splitting into sequences is
        wrong.
        """,
        save="""
        The collection `input_sequence`, or the inputs of the embedding by name; with PyTorch:

            Hook(out_dir, include_collections=["input_sequence"])
        """,
        missing="""
        A step without tokens, or with reductions only, is skipped. NaN counts among all tokens.
        """,
        remedy="""
        - Pad to the longest sequence of the batch, not to a fixed length.
        - Put sequences of about one length into a batch, or pack several into one.
        - Shorten the maximal length.
        - Of unknown tokens: use subwords, or a larger vocabulary.
        """,
        limits="""
        Padding is token 0 by default: others (1 in RoBERTa, 50256 in GPT-2) have to be named with
        `token_values`. A single batch with one long sequence fires: raise
        `token_thresholds_percent`, or let batches be of sequences of about one length.
        """,
    )
    tensor_regex: tuple[str, ...]
    token_values: tuple[str, ...]
    token_thresholds_percent: tuple[str, ...]

    def __init__(
        self,
        base_trial: Any,
        tensor_regex: Any = None,
        token_values: Any = "0",  # noqa: S107 - tokens of text
        token_thresholds_percent: Any = "50",  # noqa: S107 - tokens of text
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            tensor_regex=tensor_regex,
            token_values=token_values,
            token_thresholds_percent=token_thresholds_percent,
        )
        values, limits = self.token_values, self.token_thresholds_percent
        if len(values) != len(limits):
            msg = (
                "Parameters 'token_values' and 'token_thresholds_percent' must have as many "
                f"entries as each other, got {len(values)} and {len(limits)}."
            )
            raise SMDebugValueError(msg)
        self._limits = [
            (float(one), float(limit)) for one, limit in zip(values, limits, strict=True)
        ]

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tokens of global step `step`."""
        names = by_role(self.base_trial, step, TOKENS, self.tensor_regex)
        if not names:
            return self.not_judged("no sequences of tokens at this step")
        tokens = {name: arrays for name in names if (arrays := self._tokens(name, step))}
        if not tokens:
            return self.not_judged("no values that are tokens at this step")
        answers = [self._judge(name, step, arrays) for name, arrays in tokens.items()]
        return any(answers)

    def _tokens(self, name: str, step: int) -> list[Any]:
        """Return what the workers saved of a tensor, as far as it holds tokens."""
        arrays = [numbers(one, step) for one in saved(self.base_trial, step, [name])]
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
            with np.errstate(all="ignore"):  # of a token that the type does not hold
                number = sum(int(np.count_nonzero(array == value)) for array in arrays)
            share = 100.0 * number / size
            met |= self.measured(
                step,
                f"share of token {value:g}",
                share,
                limit,
                met=share > limit,
                tensor=name,
                note=f"Token {value:g}: {number} of {size}.",
            )
        return met


def _is_whole(array: Any) -> bool:
    """Say whether an array may hold tokens: whole numbers, which some frameworks keep as floats."""
    if array.dtype.kind in "iu":
        return True
    with np.errstate(all="ignore"):
        return array.dtype.kind in "fV" and bool((array == np.rint(array)).all())
