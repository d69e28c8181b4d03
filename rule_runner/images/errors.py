"""What can be wrong with an image, its name, its region or its registry."""

from rule_runner.errors import ClientError


class ImageError(ClientError):
    """An image or a registry is at fault."""


class UnknownRegionError(ImageError, ValueError):
    """There is no image for a region; the old SDK raises ValueError then."""
