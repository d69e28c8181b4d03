"""Look-up: the image of a region, yours if you registered one, else AWS's own."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rule_runner.images.aws_images import AWS_IMAGES, TAG, ImageKind, dns_suffix
from rule_runner.images.errors import UnknownRegionError
from rule_runner.images.regions import nearest
from rule_runner.images.registrations import registered

AWS: Final = "AWS"
ANY: Final = "any"  # yours does the work of every kind
RULE_KINDS: Final = (ImageKind.BUILTIN, ImageKind.CUSTOM)

_PROFILER_JOB: Final = "DetailedProfilerProcessingJobConfig"


class FoundImage(NamedTuple):
    """An image and where it comes from: a file, or AWS."""

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
        Of the rule configuration; one that begins with `DetailedProfilerProcessingJobConfig`
        has an image of its own.

    Raises
    ------
    UnknownRegionError
        A `ValueError`: if AWS has no such image there.

    Examples
    --------
    >>> get_rule_container_image_uri("cn-north-1")
    '618459771430.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-debugger-rules:latest'
    """
    profiler = name is not None and name.startswith(_PROFILER_JOB)
    kind = ImageKind.DETAILED_PROFILER if profiler else ImageKind.BUILTIN
    uri = aws_image_uri(region, kind)
    if uri is None:
        raise UnknownRegionError(_nowhere(region, kind, AWS_IMAGES[kind].accounts))
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
        Of AWS's image: ``builtin`` or ``custom``; yours does the work of both.
    folder
        Where the search for the project's file begins; by default the current one.

    Raises
    ------
    UnknownRegionError
        A `ValueError`: if there is neither.
    ImageError
        If a file of registrations is not as it should be.
    """
    own = registered(folder)
    if region in own:
        return own[region].uri
    aws_kind = ImageKind(kind)
    uri = aws_image_uri(region, aws_kind)
    if uri is None:
        known = {*own, *AWS_IMAGES[aws_kind].accounts}
        msg = _nowhere(region, aws_kind, known)
        msg += " Register yours with 'rule-runner images register'."
        raise UnknownRegionError(msg)
    return uri


def _nowhere(region: str, kind: ImageKind, known: Iterable[str]) -> str:
    regions = sorted(known)
    return (
        f"No {kind} rule image is known in region {region!r}.{nearest(region, regions)} "
        f"Regions that have one: {', '.join(regions)}."
    )


def found_images(folder: Path | None = None) -> Iterator[FoundImage]:
    """Yield the image of every region that has one, by region: what `image_uri` answers.

    Raises
    ------
    ImageError
        If a file of registrations is not as it should be.
    """
    own = registered(folder)
    theirs = {region for kind in RULE_KINDS for region in AWS_IMAGES[kind].accounts}
    for region in sorted({*own, *theirs}):
        if region in own:
            yield FoundImage(region, ANY, own[region].uri, str(own[region].file))
            continue
        for kind in RULE_KINDS:
            uri = aws_image_uri(region, kind)
            if uri is not None:
                yield FoundImage(region, kind, uri, AWS)
