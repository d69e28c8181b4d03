"""Image URIs: registry, repository, tag and digest; ECR images must be in their region."""

import re
from dataclasses import dataclass
from typing import Final

from rule_runner.errors import ImageError
from rule_runner.images.aws_images import require_region

LONGEST: Final = 255  # characters of RuleEvaluatorImage

# The grammar of image references of the Docker registry's protocol.
_HOST: Final = r"(?P<host>[A-Za-z0-9]+(?:[.-][A-Za-z0-9-]+)*(?::[0-9]{1,5})?)"
_PART: Final = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REPOSITORY: Final = rf"(?P<repository>{_PART}(?:/{_PART})*)"
_TAG: Final = r"(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})"
_DIGEST: Final = r"(?P<digest>sha256:[0-9a-f]{64})"
_URI: Final = re.compile(rf"{_HOST}/{_REPOSITORY}(?::{_TAG})?(?:@{_DIGEST})?")
_ECR: Final = re.compile(r"[0-9]{12}\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?P<suffix>.+)")


@dataclass(frozen=True, slots=True)
class ImageUri:
    """The parts of an image's URI.

    Attributes
    ----------
    host
        The registry with its port, if any.
    tag, digest
        At least one of them, except for the target of a push.
    """

    host: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @property
    def name(self) -> str:
        """Return registry and repository."""
        return f"{self.host}/{self.repository}"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return self.name + tag + (f"@{self.digest}" if self.digest else "")


def parse_place(text: str) -> ImageUri:
    """Return the parts of a URI with a registry; tag and digest are optional.

    Raises
    ------
    ImageError
        If it is invalid.
    """
    match = _URI.fullmatch(text) if len(text) <= LONGEST else None
    # Without a dot or a port the first part is not a host: for Docker it is a user of its hub.
    if match is None or not (set(".:") & set(match["host"]) or match["host"] == "localhost"):
        raise ImageError(
            f"Image URI must name a registry and a repository in at most {LONGEST} characters, "
            f"as in HOST/REPOSITORY:TAG or HOST/REPOSITORY@sha256:..., got {text[:300]!r}."
        )
    return ImageUri(match["host"], match["repository"], match["tag"], match["digest"])


def parse_uri(text: str) -> ImageUri:
    """Return the parts of the URI of one image.

    Raises
    ------
    ImageError
        If it is invalid, or has neither tag nor digest.
    """
    uri = parse_place(text)
    if uri.tag is None and uri.digest is None:
        raise ImageError(f"Image URI must end in a tag or a digest, got {text!r}. Add ':TAG'.")
    return uri


def is_ecr(uri: ImageUri) -> bool:
    """Return whether an image is in a registry of ECR."""
    return _ECR.fullmatch(uri.host) is not None


def require_fit(uri: ImageUri, region: str) -> None:
    """Check that an image in ECR is in the given region.

    Raises
    ------
    ImageError
        If it is in another region; SageMaker rejects such images.
    UnknownRegionError
        If the region is unknown.
    """
    suffix = require_region(region)
    match = _ECR.fullmatch(uri.host)
    if match is not None and (match["region"], match["suffix"]) != (region, suffix):
        raise ImageError(
            f"Image for region {region!r} must be in its registry, one that ends in "
            f"'.ecr.{region}.{suffix}', got {uri.host!r}. "
            f"Push it there with 'rule-runner images push --region {region}'."
        )
