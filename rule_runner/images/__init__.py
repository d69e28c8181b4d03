"""Rule images: lookup by region, and registrations of your own images."""

from rule_runner.errors import ImageError, UnknownRegionError
from rule_runner.images.lookup import get_rule_container_image_uri, image_uri

__all__ = ["ImageError", "UnknownRegionError", "get_rule_container_image_uri", "image_uri"]
