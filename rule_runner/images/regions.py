"""Names of regions: validation, and suggestions for misspelt ones."""

import difflib
from collections.abc import Collection
from typing import Final

from rule_runner.images.aws_images import AWS_IMAGES, dns_suffix
from rule_runner.images.errors import UnknownRegionError

NAMES: Final = frozenset(region for images in AWS_IMAGES.values() for region in images.accounts)


def nearest(region: str, candidates: Collection[str]) -> str:
    """Return a question that suggests the most similar region, or an empty string."""
    close = [] if region in NAMES else difflib.get_close_matches(region.casefold(), candidates, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def require_region(region: str) -> str:
    """Return the domain of a region's registries.

    Raises
    ------
    UnknownRegionError
        If the name cannot be a region.
    """
    suffix = dns_suffix(region)
    if suffix is None:
        names = sorted(NAMES)
        msg = (
            f"Region must be one of AWS's, got {region!r}.{nearest(region, names)} "
            f"Known: {', '.join(names)}."
        )
        raise UnknownRegionError(msg)
    return suffix
