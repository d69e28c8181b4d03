"""Errors of images, their names, regions and registries."""

from rule_runner.errors import ClientError


class ImageError(ClientError):
    """An image or a registry cannot be used."""


class UnknownRegionError(ImageError, ValueError):
    """A region has no image; a ValueError as in the old SDK."""
