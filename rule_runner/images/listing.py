"""Output of the image commands."""

from collections.abc import Iterator
from pathlib import Path

from rule_runner.escape import printable
from rule_runner.images.lookup import found_images
from rule_runner.images.registrations import trust_project


def listing() -> Iterator[str]:
    """Yield a line for each image of each region, in columns.

    Raises
    ------
    ImageError
        If a registrations file is invalid.
    """
    rows = [("REGION", "KIND", "IMAGE", "FROM"), *found_images()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield printable("  ".join(cells).rstrip())


def trusted(file: Path | None) -> Iterator[str]:
    """Trust the current content of a project's file; yield its path and images.

    Raises
    ------
    ImageError
        If it is missing or invalid.
    """
    file, images = trust_project(file)
    yield printable(f"Trusted with its current content: {file}")
    yield from (f"{region}  {uri}" for region, uri in sorted(images.items()))
