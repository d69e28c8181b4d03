"""What the commands about images print: tables and sentences."""

from collections.abc import Iterator
from pathlib import Path

from rule_runner.images.lookup import found_images
from rule_runner.images.registrations import trust_project
from rule_runner.show import printable


def listing() -> Iterator[str]:
    """Yield a line for each image of each region, in columns.

    Raises
    ------
    ImageError
        If a file of registrations is not as it should be.
    """
    rows = [("REGION", "KIND", "IMAGE", "FROM"), *found_images()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield printable("  ".join(cells).rstrip())


def trusted(file: Path | None) -> Iterator[str]:
    """Trust a project's file as it is; yield which one it is, and what it says.

    Raises
    ------
    ImageError
        If there is none, or it is not as it should be.
    """
    file, images = trust_project(file)
    yield printable(f"Trusted as it is now: {file}")
    yield from (f"{region}  {uri}" for region, uri in sorted(images.items()))
