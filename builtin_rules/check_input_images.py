"""CheckInputImages: input images are not normalised to mean 0."""

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from builtin_rules.selection import LITERAL, by_role, numbers, saved
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, PatternsParam, set_parameters

MEAN: Final = "mean of a channel"
IMAGES: Final = PatternsParam(
    "regex",
    "Patterns: a tensor is judged if one of them is found in its name.",
    default=".*hybridsequential0_input_0",
    also=(
        # PyTorch: what a model takes, under the name of its class.
        r"^(?!.*([Ll]oss|ReLU|Norm|Pool|Dropout))[A-Z]\w*_input_(0|pixel_values|images?|x)$",
        # Keras: what a model takes, as a model, by its input layer or by its first layer.
        r"^inputs$|^input[^/]*/(in|out)puts$",
        r"^(conv2d|conv1|zero_padding2d|sequential|functional|model)/inputs$",
    ),
    collection="input_image",
)
CHANNEL: Final = 1
CHANNELS: Final = frozenset({1, 3, 4})  # grey, colours, and these with transparency


@dataclass(slots=True)
class _Channels:
    """What was seen of one tensor: sums over all images so far, by channel."""

    sums: Any
    counts: Any
    images: int = 0

    def means(self) -> Any:
        """Return the mean of each channel; NaN if it had no finite number."""
        with np.errstate(all="ignore"):
            return self.sums / self.counts


class CheckInputImages(Rule):
    """Met when the mean of some channel is further from 0 than `threshold_mean`.

    The mean is taken over all images saved so far, of all workers and modes; it is judged at each
    step with images, once there are `threshold_samples`. Images lie along the first axis. NaN and
    infinity are left out. Another number of channels begins anew.

    The channel axis is `channel`. At its default the layout may be another one: it is then the
    axis 1 or the last one, whichever has 1, 3 or 4 entries; if both have, the last one for names
    of Keras (with a ``/``, or ``inputs``), axis 1 for others; if neither, axis 1. Arrays of two or
    three dimensions are images of one channel then. With `literal` the channel axis is `channel`,
    whatever the layout.

    Of what the default patterns select only what looks like images is judged: four dimensions, of
    which axis 1 or the last one has 1, 3 or 4 entries, or three, of which the last two are equal.
    """

    READS = (
        "the collection input_image (our PyTorch hook knows it by the shape of what a model "
        "takes), and the first inputs of models as PyTorch (Net_input_0), MXNet "
        "(hybridsequential0_input_0) and Keras (inputs, conv2d/inputs) name them: values."
    )
    PARAMS = (
        FloatParam(
            "threshold_mean",
            "Largest accepted distance of a channel's mean from 0.",
            default=0.2,
            minimum=0.0,
            unit="value of a pixel",
        ),
        IntParam(
            "threshold_samples",
            "Number of images to see before judging.",
            default=500,
            minimum=1,
            unit="images",
        ),
        IMAGES,
        IntParam(
            "channel",
            "Axis of the colour channel: 1 in (batch, channel, height, width), 3 if it is last.",
            default=CHANNEL,
            minimum=1,
            unit="axis",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(MEAN, "largest |mean| of a channel, over all images so far"),)
    PAGE = Page(
        why="""
        Weights are initialised for inputs around 0. Images from 0 to 255, or from 0 to 1, shift
        what every unit of the first layer sees: training is slower, or unstable, and a model that
        was pretrained on normalised images does not recognise them.
        """,
        save="""
        The collection `input_image`, or the model's inputs by name; with PyTorch:

            Hook(out_dir, include_collections=["input_image"])
        """,
        missing="""
        Pixels that are NaN or infinite are left out. Steps before there are `threshold_samples`
        images are skipped, as are steps without images or with reductions only: their means do not
        tell channels apart.
        """,
        remedy="""
        - Subtract each channel's mean and divide by its deviation, both of the training set
          (`transforms.Normalize` in PyTorch, `Normalization` in Keras).
        - Do the same in training, validation and serving.
        - With a pretrained model use the numbers that it was trained with.
        """,
        limits="""
        Models that normalise inside (a `Rescaling` or `Normalization` layer) take raw images:
        let `regex` select the output of that layer. Images scaled to -1..1 are mostly background,
        and fire if that is dark: raise `threshold_mean`. The deviation is not judged. Images of
        other than 1, 3 or 4 channels are judged if `regex` names them. Batches sorted by class
        may differ from the whole: raise `threshold_samples`.
        """,
    )
    threshold_mean: float
    threshold_samples: int
    regex: tuple[str, ...]
    channel: int
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        threshold_mean: Any = 0.2,
        threshold_samples: Any = 500,
        regex: Any = None,
        channel: Any = CHANNEL,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            threshold_mean=threshold_mean,
            threshold_samples=threshold_samples,
            regex=regex,
            channel=channel,
            literal=literal,
        )
        # One number by channel: as many entries as tensors, and none goes.
        self._seen: dict[str, _Channels] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the images up to global step `step`, if it has any."""
        names = by_role(self.base_trial, step, IMAGES, self.regex)
        seen = [name for name in names if self._see(name, step)]
        if not seen:
            return self.not_judged(
                "no values that are images at this step" if names else "no images at this step"
            )
        enough = [name for name in seen if self._seen[name].images >= self.threshold_samples]
        if not enough:
            return self.not_judged(f"fewer than {self.threshold_samples} images so far")
        answers = [self._judge(name, step) for name in enough]
        if all(answer is None for answer in answers):
            return self.not_judged("no finite pixel so far")
        return any(answers)

    def _see(self, name: str, step: int) -> bool:
        """Add the images that workers saved, and say whether there were any."""
        found = False
        for one in saved(self.base_trial, step, [name]):
            images = numbers(one, step)
            if images is not None and self._is_judged(images.shape):
                self._add(name, images)
                found = True
        return found

    def _is_judged(self, shape: tuple[int, ...]) -> bool:
        """Say whether arrays of this shape are images, as far as can be told."""
        if self.regex == IMAGES.whole_default and not _looks_like_images(shape):
            return False
        return len(shape) > (self.channel if self._is_literal else 1)

    @property
    def _is_literal(self) -> bool:
        """Whether the channel axis is that of the parameter, whatever the layout."""
        return self.literal or self.channel != CHANNEL

    def _add(self, name: str, images: Any) -> None:
        axis = self.channel if self._is_literal else _channel_axis(name, images.shape)
        sums, counts = _sums(images, axis)
        before = self._seen.get(name)
        if before is None or before.sums.shape != sums.shape:
            before = self._seen[name] = _Channels(np.zeros_like(sums), np.zeros_like(counts))
        with np.errstate(all="ignore"):  # of numbers near the largest
            before.sums = before.sums + sums
        before.counts = before.counts + counts
        before.images += len(images)

    def _judge(self, name: str, step: int) -> bool | None:
        """Say whether the worst channel is too far out, or None if no pixel was a number."""
        seen = self._seen[name]
        means = seen.means()
        if np.isnan(means).all():
            return None
        worst = int(np.nanargmax(np.abs(means)))
        mean = float(means[worst])
        return self.measured(
            step,
            MEAN,
            abs(mean),
            self.threshold_mean,
            met=abs(mean) > self.threshold_mean,
            tensor=name,
            note=f"Channel {worst} of {len(means)} has mean {mean:.4g}; images: {seen.images}.",
        )


def _looks_like_images(shape: tuple[int, ...]) -> bool:
    if len(shape) == 4:  # noqa: PLR2004 - batch, channels, two sides
        return bool({shape[1], shape[3]} & CHANNELS)
    return len(shape) == 3 and shape[1] == shape[2]  # noqa: PLR2004 - batch, two sides


def _channel_axis(name: str, shape: tuple[int, ...]) -> int | None:
    """Return which axis holds the channels; None where there are none."""
    if len(shape) < 4:  # noqa: PLR2004 - batch, channels, two sides
        return None
    first, last = shape[1] in CHANNELS, shape[-1] in CHANNELS
    is_last = last and (not first or re.search(r"/|^inputs", name))
    return len(shape) - 1 if is_last else 1


def _sums(images: Any, axis: int | None) -> tuple[Any, Any]:
    """Return the sums and the numbers of finite pixels, by channel: two arrays of one shape."""
    others = tuple(one for one in range(images.ndim) if one != axis)
    with np.errstate(all="ignore"):
        sums = np.atleast_1d(np.sum(images, axis=others, dtype=np.float64))
        if np.isfinite(sums).all():
            return sums, np.full_like(sums, images.size / sums.size)
        finite = np.isfinite(images)
        sums = np.sum(images, axis=others, dtype=np.float64, where=finite)
    return np.atleast_1d(sums), np.atleast_1d(np.count_nonzero(finite, axis=others)).astype(float)
