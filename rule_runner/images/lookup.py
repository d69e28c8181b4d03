"""Lookup of the image of a region: your registered image, or AWS's own."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rule_runner.errors import UnknownRegionError
from rule_runner.images.aws_images import AWS_IMAGES, TAG, ImageKind, dns_suffix, nearest
from rule_runner.images.registrations import registered

AWS: Final = "AWS"
ANY: Final = "any"  # a registered image serves all kinds
RULE_KINDS: Final = (ImageKind.BUILTIN, ImageKind.CUSTOM)

_PROFILER_JOB: Final = "DetailedProfilerProcessingJobConfig"


class FoundImage(NamedTuple):
    """An image and its source: a file, or AWS."""

    region: str
    kind: str
    uri: str
    source: str


def get_rule_container_image_uri(region: str, name: str | None = None) -> str:
    """Return the URI of AWS's own image for built-in rules.

    Parameters
    ----------
    region
        Such as ``eu-west-1``.
    name
        Name of the rule configuration; names that begin with
        `DetailedProfilerProcessingJobConfig` have a separate image.

    Raises
    ------
    UnknownRegionError
        A `ValueError`: if AWS has no such image in the region.

    Examples
    --------
    >>> get_rule_container_image_uri("cn-north-1")
    '618459771430.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-debugger-rules:latest'
    """
    profiler = name is not None and name.startswith(_PROFILER_JOB)
    kind = ImageKind.DETAILED_PROFILER if profiler else ImageKind.BUILTIN
    uri = aws_image_uri(region, kind)
    if uri is None:
        raise UnknownRegionError(_no_image(region, kind, AWS_IMAGES[kind].accounts))
    return uri


def aws_image_uri(region: str, kind: ImageKind) -> str | None:
    """Return the URI of AWS's image of a kind, or None if the region has none."""
    images = AWS_IMAGES[kind]
    account = images.accounts.get(region)
    if account is None:
        return None
    return f"{account}.dkr.ecr.{region}.{dns_suffix(region)}/{images.repository}:{TAG}"


def image_uri(region: str, kind: str = ImageKind.BUILTIN, *, folder: Path | None = None) -> str:
    """Return the URI of your image in a region, or of AWS's if you registered none.

    Parameters
    ----------
    kind
        Kind of AWS's image: ``builtin`` or ``custom``; your image serves both.
    folder
        Start of the search for the project's file; by default the working folder.

    Raises
    ------
    UnknownRegionError
        A `ValueError`: if neither exists.
    ImageError
        If a registrations file is invalid.
    """
    own = registered(folder)
    if region in own:
        return own[region].uri
    aws_kind = ImageKind(kind)
    uri = aws_image_uri(region, aws_kind)
    if uri is None:
        regions = {*own, *AWS_IMAGES[aws_kind].accounts}
        msg = _no_image(region, aws_kind, regions)
        msg += " Register yours with 'rule-runner images register'."
        raise UnknownRegionError(msg)
    return uri


def _no_image(region: str, kind: ImageKind, available: Iterable[str]) -> str:
    regions = sorted(available)
    return (
        f"No {kind} rule image is known in region {region!r}.{nearest(region, regions)} "
        f"Regions that have one: {', '.join(regions)}."
    )


def found_images() -> Iterator[FoundImage]:
    """Yield the image of every region that has one, sorted by region; see `image_uri`.

    Raises
    ------
    ImageError
        If a registrations file is invalid.
    """
    own = registered()
    aws_regions = {region for kind in RULE_KINDS for region in AWS_IMAGES[kind].accounts}
    for region in sorted({*own, *aws_regions}):
        if region in own:
            yield FoundImage(region, ANY, own[region].uri, str(own[region].file))
            continue
        for kind in RULE_KINDS:
            uri = aws_image_uri(region, kind)
            if uri is not None:
                yield FoundImage(region, kind, uri, AWS)
