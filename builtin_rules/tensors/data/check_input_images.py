"""CheckInputImages: input images are not normalised to mean 0."""

import math
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, count, names, non_negative
from builtin_rules.statistics.tensor_selection import (
    LITERAL,
    LOSSES,
    any_met,
    by_role,
    numbers,
    saved_tensors,
)
from smdebug.rules.extensions import PatternsParam, Quantity, Severity

MEAN: Final = "mean of a channel"
PIECE_PIXELS: Final = 2**20  # pixels
CENTRED_DEVIATIONS: Final = 0.4  # standard deviations: a mean so near to 0 is near enough
SCALED_LIMIT: Final = 1.0  # pixels from -1 or 0 to 1 are scaled as usual, whatever their mean
ROUNDING: Final = 0.02
IMAGES: Final = PatternsParam(
    "regex",
    "Patterns: a tensor is judged if one of them matches in its name.",
    default=".*hybridsequential0_input_0",
    also=(
        # PyTorch: the inputs of a model, under the name of its class.
        r"^(?!.*([Ll]oss|ReLU|Norm|Pool|Dropout))[A-Z]\w*_input_(0|pixel_values|images?|x)$",
        # Keras: the inputs of a model, of its input layer or of its first layer.
        r"^inputs$|^input[^/]*/(in|out)puts$",
        r"^(conv2d|conv1|zero_padding2d|sequential|functional|model)/inputs$",
    ),
    collection="input_image",
)
CHANNEL: Final = 1
IMAGE_BATCH: Final = 4  # dimensions: batch, channels, height and width
CHANNELS: Final = frozenset({1, 3, 4})  # grey, RGB, RGBA


@dataclass(slots=True)
class _Channels:
    """Sums over all images of one tensor so far, by channel."""

    sums: Any
    squares: Any
    counts: Any
    images: int = 0
    lowest: float = math.inf
    highest: float = -math.inf

    @property
    def is_scaled(self) -> bool:
        """Whether the pixels of all channels span an interval from -1 or 0 to at most 1."""
        is_start = min(abs(self.lowest + SCALED_LIMIT), abs(self.lowest)) < ROUNDING
        return is_start and 0 < self.highest < SCALED_LIMIT + ROUNDING

    def widen(self, images: Any) -> None:
        """Widen the interval of the pixels, as long as they may be scaled to it."""
        if images.size and max(-self.lowest, self.highest) < SCALED_LIMIT + ROUNDING:
            with np.errstate(all="ignore"):  # NaN
                lowest = np.fmin.reduce(images, axis=None)
                highest = np.fmax.reduce(images, axis=None)
            if np.isinf(lowest) or np.isinf(highest):
                self.widen(images[np.isfinite(images)])
                return
            self.lowest = float(np.fmin(self.lowest, lowest))
            self.highest = float(np.fmax(self.highest, highest))

    def means(self) -> Any:
        """Return the mean of each channel; NaN without finite numbers."""
        with np.errstate(all="ignore"):
            return self.sums / self.counts

    def deviations(self) -> Any:
        """Return the standard deviation of each channel; 0 where it is not finite."""
        with np.errstate(all="ignore"):
            variances = self.squares / self.counts - self.means() ** 2
        return np.sqrt(np.where((variances > 0) & np.isfinite(variances), variances, 0.0))


class CheckInputImages(DeclaredRule):
    """Met when the mean of some channel is further from 0 than `threshold_mean`.

    It must also be further from 0 than 0.4 of the channel's standard deviation: how far off a mean
    is depends on how much pixels vary. The finding is a note if the smallest pixel is -1 or 0 and
    the largest above 0 and at most 1, as many trainings scale them, or if the mean is smaller than
    the deviation and the root mean square at most 1, as with a dark background: a first layer copes
    with both.

    The mean covers all images saved so far, of all workers and modes. It is judged at each step
    with images, once there are `threshold_samples`. Images are along the first axis. NaN and
    infinity are left out. A different number of channels starts over.

    The channel axis is `channel`. If that is not given, the layout is detected: the channel axis is
    axis 1 or the last one, whichever has 1, 3 or 4 entries; if both have, the last one for Keras
    names (with a ``/``, or ``inputs``), axis 1 for others; if neither has, axis 1. Arrays with two
    or three dimensions are then images with a single channel. With `literal`, the channel axis is
    `channel` regardless of the layout. With `literal`, or if `threshold_mean` is given, deviations
    and scales do not matter.

    Of the tensors selected by the default patterns, only those that look like images are judged:
    with four dimensions, of which axis 1 or the last one has 1, 3 or 4 entries, or with three, of
    which the last two are equal.
    """

    READS = (
        "the collection input_image (our PyTorch hook fills it by the shape of a model's "
        "inputs), and the first inputs of models as PyTorch (Net_input_0), MXNet "
        "(hybridsequential0_input_0) and Keras (inputs, conv2d/inputs) name them: values."
    )
    threshold_mean = non_negative(
        "Largest accepted distance of a channel's mean from 0.", 0.2, "value of a pixel"
    )
    threshold_samples = count("Number of images required before judging.", 500, "images")
    regex = names(IMAGES)
    channel = count(
        "Axis of the colour channel: 1 in (batch, channel, height, width), 3 if it is last.",
        CHANNEL,
        "axis",
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(MEAN, "largest |mean| of a channel, over all images so far"),)

    def _prepare(self) -> None:
        self._inputs = by_role("images", IMAGES, self.regex)
        self.required_inputs = (self._inputs,)
        self._channels: dict[str, _Channels] = {}  # by tensor

    def invoke_at_step(self, step: int) -> bool:
        """Judge the images up to global step `step`, if it has any."""
        names = self._names(step)
        with_images = [name for name in names if self._add_images(name, step)]
        if not with_images:
            return self.not_judged(
                "no values that are images at this step" if names else "no images at this step"
            )
        enough = [
            name for name in with_images if self._channels[name].images >= self.threshold_samples
        ]
        if not enough:
            return self.not_judged(f"fewer than {self.threshold_samples} images so far")
        answers = [self._judge(name, step) for name in enough]
        return any_met(self, answers, "no finite pixel so far")

    def _names(self, step: int) -> list[str]:
        """Return the selected tensors, without what losses take: scores and targets."""
        names = self._inputs.names(self.base_trial, step)
        if self.regex != IMAGES.whole_default:
            return names
        losses = set(LOSSES.names(self.base_trial, step))
        return [name for name in names if f"{name.rpartition('_input_')[0]}_output_0" not in losses]

    def _add_images(self, name: str, step: int) -> bool:
        """Add the images of all workers; return whether there were any."""
        has_images = False
        for saved in saved_tensors(self.base_trial, step, [name]):
            images = numbers(saved, step)
            if images is not None and self._is_judged(images.shape):
                self._add(name, images)
                has_images = True
        return has_images

    def _is_judged(self, shape: tuple[int, ...]) -> bool:
        """Return whether to judge arrays of this shape as images."""
        if self.regex == IMAGES.whole_default and not _looks_like_images(shape):
            return False
        return len(shape) > (self.channel if self._is_literal else 1)

    @property
    def _is_literal(self) -> bool:
        """Whether the channel axis is that of the parameter, regardless of the layout."""
        return self.binds("channel")

    def _add(self, name: str, images: Any) -> None:
        axis = self.channel if self._is_literal else _channel_axis(name, images.shape)
        sums, squares, counts = _sums(images, axis)
        before = self._channels.get(name)
        if before is None or before.sums.shape != sums.shape:
            zeros = np.zeros_like(sums)
            before = self._channels[name] = _Channels(zeros, zeros, np.zeros_like(counts))
        with np.errstate(all="ignore"):  # overflow
            before.sums = before.sums + sums
            before.squares = before.squares + squares
        before.counts = before.counts + counts
        before.images += len(images)
        before.widen(images)

    def _judge(self, name: str, step: int) -> bool | None:
        """Return whether the worst channel is too far from 0, or None without finite pixels."""
        channels = self._channels[name]
        means = channels.means()
        if np.isnan(means).all():
            return None
        limits = np.full_like(means, self.threshold_mean)
        is_bound = self.binds("threshold_mean")
        is_usual = np.full(means.shape, not is_bound and channels.is_scaled)
        if not is_bound:
            deviations = channels.deviations()
            limits = np.maximum(limits, CENTRED_DEVIATIONS * deviations)
            is_usual |= (np.abs(means) < deviations) & (np.hypot(means, deviations) <= SCALED_LIMIT)
        excess = np.abs(means) - limits
        serious = np.where(is_usual, -math.inf, excess)
        worst = int(np.nanargmax(serious if np.nanmax(serious) > 0 else excess))
        mean, limit = float(means[worst]), float(limits[worst])
        note = f"Channel {worst} of {len(means)} has mean {mean:.4g}; images: {channels.images}."
        met, severity = abs(mean) > limit, Severity.NOTE if is_usual[worst] else None
        return self.record(
            (name, None), step, MEAN, abs(mean), limit, met=met, note=note, severity=severity
        )


def _looks_like_images(shape: tuple[int, ...]) -> bool:
    if len(shape) == IMAGE_BATCH:
        return bool({shape[1], shape[3]} & CHANNELS)
    return len(shape) == IMAGE_BATCH - 1 and shape[1] == shape[2]


def _channel_axis(name: str, shape: tuple[int, ...]) -> int | None:
    """Return the axis of the channels, or None."""
    if len(shape) < IMAGE_BATCH:
        return None
    first, last = shape[1] in CHANNELS, shape[-1] in CHANNELS
    is_last = last and (not first or re.search(r"/|^inputs", name))
    return len(shape) - 1 if is_last else 1


def _sums(images: Any, axis: int | None) -> tuple[Any, Any, Any]:
    """Return sums, sums of squares, and numbers of the finite pixels of each channel.

    Images are added up in pieces of 8 MiB: squares need a copy.
    """
    rows = len(images) if axis == 0 else max(1, PIECE_PIXELS // max(1, images[:1].size))
    pieces = [images[at : at + rows] for at in range(0, len(images), rows)] or [images]
    other_axes = tuple(other_axis for other_axis in range(images.ndim) if other_axis != axis)
    totals: Any = 0.0
    for piece in pieces:
        values = piece.astype(np.float64)
        with np.errstate(all="ignore"):
            sums = np.sum(values, axis=other_axes)
            counts = np.full_like(sums, values.size / max(1, sums.size))
            if not np.isfinite(sums).all():
                finite = np.isfinite(values)
                values = np.where(finite, values, 0.0)
                sums = np.sum(values, axis=other_axes)
                counts = np.count_nonzero(finite, axis=other_axes)
            squares = np.sum(np.square(values, out=values), axis=other_axes)
            totals = totals + np.array([np.atleast_1d(each) for each in (sums, squares, counts)])
    return tuple(totals)
