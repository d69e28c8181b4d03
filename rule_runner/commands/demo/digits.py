"""Images of digits for the demo's trainings: small, shifted, faint, broken and noisy."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
