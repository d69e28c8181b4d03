"""Regions: whether one is called so, and which known one a misspelt name is nearest to."""

import difflib
from collections.abc import Collection
from typing import Final

from rule_runner.images.aws_images import AWS_IMAGES, dns_suffix
from rule_runner.images.errors import UnknownRegionError

NAMES: Final = frozenset(region for images in AWS_IMAGES.values() for region in images.accounts)


def nearest(region: str, known: Collection[str]) -> str:
    """Return a question that names the known region most like a misspelt one, or nothing."""
    close = [] if region in NAMES else difflib.get_close_matches(region.casefold(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def require_region(region: str) -> str:
    """Return the end of the host names of a region's registries.

    Raises
    ------
    UnknownRegionError
        If no region can be called so.
    """
    suffix = dns_suffix(region)
    if suffix is None:
        known = sorted(NAMES)
        msg = (
            f"Region must be one of AWS's, got {region!r}.{nearest(region, known)} "
            f"Known: {', '.join(known)}."
        )
        raise UnknownRegionError(msg)
    return suffix
