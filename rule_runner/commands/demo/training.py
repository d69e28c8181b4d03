"""A real training in plain numpy that writes a trial: the other process of the demo.

Its images are digits: small, shifted, faint, broken and noisy.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rule_core.clock import Clock, SystemClock
from rule_core.modes import ModeKeys
from rule_core.saving.trial_writer import TrialWriter

Array = NDArray[np.float32]

SIZE: Final = 8  # pixels in a row and in a column
CLASSES: Final = 10
# Each digit is seven rows of five pixels; two hexadecimal digits are one row.
_GLYPHS: Final = (
    "0e11131519110e",
    "040c040404040e",
    "0e11010204081f",
    "1f02040201110e",
    "02060a121f0202",
    "1f101e0101110e",
    "0608101e11110e",
    "1f010204080808",
    "0e11110e11110e",
    "0e11110f01020c",
)
_BROKEN: Final = 0.1  # share of a digit's pixels that are missing
_NOISE: Final = 0.15  # standard deviation; ink is 1

TRAINING_IMAGES: Final = 6000
VALIDATION_IMAGES: Final = 1000
BATCH: Final = 64
VALIDATE_EVERY: Final = 20
WEIGHTS_EVERY: Final = 10
COLLECTIONS: Final = {
    "losses": "^loss$",
    "gradients": "^gradient/",
    "weights": "^weight/",
    "activations": "^activation/",
    "metrics": "^accuracy$",
}


class Images(NamedTuple):
    """Images of shape ``(n, 64)``, with mean 0 and standard deviation 1, and their digits."""

    pixels: NDArray[np.float32]
    digits: NDArray[np.intp]


def glyphs() -> NDArray[np.float64]:
    """Return the shapes of the ten digits, ink 1 on 0, as an array ``(10, 7, 5)``."""
    rows = np.array([list(bytes.fromhex(glyph)) for glyph in _GLYPHS])
    return (rows[:, :, None] >> np.arange(4, -1, -1) & 1).astype(float)


def draw(count: int, rng: np.random.Generator) -> Images:
    """Return `count` images of random digits at random positions."""
    digits = rng.integers(0, CLASSES, count)
    ink = glyphs()[digits] * (rng.random((count, 7, 5)) > _BROKEN)
    ink *= rng.uniform(0.5, 1.0, (count, 1, 1))
    rows = rng.integers(0, SIZE - 7 + 1, count)[:, None] + np.arange(7)
    columns = rng.integers(0, SIZE - 5 + 1, count)[:, None] + np.arange(5)
    fields = rng.normal(0.0, _NOISE, (count, SIZE, SIZE))
    fields[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]] += ink
    pixels = (fields - fields.mean()) / fields.std()
    return Images(pixels.reshape(count, -1).astype(np.float32), digits)


@dataclass(frozen=True, slots=True)
class Network:
    """Dense layers with one activation function between them; `biases` and `weights` by layer."""

    activation: str
    weights: list[Array] = field(default_factory=list)
    biases: list[Array] = field(default_factory=list)

    def forward(self, pixels: Array) -> tuple[list[Array], Array]:
        """Return the outputs for ``(batch, pixels)``, and the logits, ``(batch, classes)``.

        The outputs are the input and those of the hidden layers, ``(batch, width)``.
        """
        outputs = [pixels]
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            before = outputs[-1] @ weight + bias
            relu = self.activation == "relu"
            outputs.append(np.maximum(before, 0) if relu else 1 / (1 + np.exp(-before)))
        return outputs, outputs[-1] @ last[0] + last[1]

    def backward(
        self, outputs: Sequence[Array], error: Array
    ) -> Iterator[tuple[int, Array, Array]]:
        """Yield layer and gradients of its weight and bias, from the last layer to the first.

        Parameters
        ----------
        error
            Gradient of the loss by the logits, ``(batch, classes)``.
        """
        for layer in reversed(range(len(self.weights))):
            output = outputs[layer]
            yield layer, output.T @ error, error.sum(axis=0)
            slope = output > 0 if self.activation == "relu" else output * (1 - output)
            error = (error @ self.weights[layer].T) * slope


def initialised(widths: Sequence[int], activation: str, rng: np.random.Generator) -> Network:
    """Return a network initialised as in frameworks: He for relu, Glorot for sigmoid, biases 0."""
    network = Network(activation)
    for ins, outs in itertools.pairwise(widths):
        if activation == "relu":
            weight = rng.normal(0, np.sqrt(2 / ins), (ins, outs))
        else:
            limit = np.sqrt(6 / (ins + outs))
            weight = rng.uniform(-limit, limit, (ins, outs))
        network.weights.append(weight.astype(np.float32))
        network.biases.append(np.zeros(outs, np.float32))
    return network


def cross_entropy(logits: Array, digits: NDArray[np.intp]) -> tuple[np.float32, Array]:
    """Return the mean loss of a batch, and its gradient by the logits.

    Logits are shifted by their largest first, so that exp cannot overflow.
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(digits))
    error = np.exp(logs)
    error[rows, digits] -= 1
    return -logs[rows, digits].mean(), error / np.float32(len(digits))


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """The parameters of one training.

    Attributes
    ----------
    hidden
        Widths of the hidden layers.
    activation
        ``relu`` or ``sigmoid``.
    learning_rate, growth
        Learning rate of the first batch, and its growth factor per batch.
    steps
        Number of batches.
    pace
        Seconds to rest after a batch.
    """

    hidden: Sequence[int]
    activation: str
    learning_rate: float
    growth: float
    steps: int
    seed: int
    pace: float


def train(plan: TrainingPlan, writer: TrialWriter, clock: Clock) -> None:
    """Train a network, and save tensors as a hook does."""
    rng = np.random.default_rng(plan.seed)
    images, validation = draw(TRAINING_IMAGES, rng), draw(VALIDATION_IMAGES, rng)
    network = initialised([SIZE * SIZE, *plan.hidden, CLASSES], plan.activation, rng)
    step = 0
    for number, batch in enumerate(_batches(images, plan.steps, rng)):
        weights = _by_layer("weight", network.weights) if number % WEIGHTS_EVERY == 0 else {}
        saved = weights | _learn(network, batch, plan.learning_rate * plan.growth**number)
        writer.step(step, saved, mode=ModeKeys.TRAIN, mode_step=number)
        step += 1
        if (number + 1) % VALIDATE_EVERY == 0:
            mode_step = number // VALIDATE_EVERY
            saved = _validate(network, validation)
            writer.step(step, saved, mode=ModeKeys.EVAL, mode_step=mode_step)
            step += 1
        clock.sleep(plan.pace)


def _batches(images: Images, count: int, rng: np.random.Generator) -> Iterator[Images]:
    """Yield random batches, shuffled in each epoch."""
    size = len(images.digits)
    epochs = (rng.permutation(size) for _ in itertools.count())
    batches = (order[start : start + BATCH] for order in epochs for start in range(0, size, BATCH))
    for chosen in itertools.islice(batches, count):
        yield Images(images.pixels[chosen], images.digits[chosen])


def _learn(network: Network, batch: Images, rate: float) -> dict[str, ArrayLike]:
    """Take one step of gradient descent; return the tensors to save."""
    outputs, logits = network.forward(batch.pixels)
    loss, error = cross_entropy(logits, batch.digits)
    gradients = list(network.backward(outputs, error))
    saved: dict[str, ArrayLike] = {"loss": loss}
    saved |= _by_layer("activation", outputs[1:])
    for layer, weight, bias in gradients:
        saved[f"gradient/dense_{layer}/weight"] = weight
        saved[f"gradient/dense_{layer}/bias"] = bias
        network.weights[layer] = network.weights[layer] - np.float32(rate) * weight
        network.biases[layer] = network.biases[layer] - np.float32(rate) * bias
    return saved


def _by_layer(kind: str, arrays: Sequence[Array]) -> dict[str, ArrayLike]:
    return {f"{kind}/dense_{layer}": array for layer, array in enumerate(arrays)}


def _validate(network: Network, images: Images) -> dict[str, ArrayLike]:
    """Return loss and accuracy on images that the network does not learn from."""
    _, logits = network.forward(images.pixels)
    loss, _ = cross_entropy(logits, images.digits)
    right = logits.argmax(axis=1) == images.digits
    return {"loss": loss, "accuracy": np.float32(right.mean())}


def main(arguments: Sequence[str] | None = None, clock: Clock | None = None) -> None:
    """Train with the parameters of the command line, and write the trial."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="root folder of the trial")
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 32], help="widths")
    parser.add_argument("--activation", choices=("relu", "sigmoid"), default="relu")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--growth", type=float, default=1.0, help="of the rate, per step")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=0.0, help="seconds to rest after a step")
    options = vars(parser.parse_args(arguments))
    path = options.pop("path")
    with np.errstate(all="ignore"), TrialWriter(path, collections=COLLECTIONS) as writer:
        train(TrainingPlan(**options), writer, clock or SystemClock())


if __name__ == "__main__":
    main()
