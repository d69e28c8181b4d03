"""AWS's own rule images: their accounts by region, and the domains of the registries."""

import difflib
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from rule_runner.errors import UnknownRegionError


class ImageKind(StrEnum):
    """The kinds of AWS's images; each has its own repository."""

    BUILTIN = "builtin"
    CUSTOM = "custom"
    DETAILED_PROFILER = "detailed_profiler"


class AwsImages(NamedTuple):
    """One image of AWS in all regions that have it.

    Attributes
    ----------
    repository
        Its name; the tag is always `TAG`.
    accounts
        Account IDs by region; text, because some begin with a zero.
    """

    repository: str
    accounts: Mapping[str, str]


class Partition(NamedTuple):
    """Regions whose registries share a domain."""

    regions: re.Pattern[str]
    dns_suffix: str


TAG: Final = "latest"

# builtin, detailed_profiler: sagemaker-python-sdk v2.257.7 (the built-in list, debugger.json of its
# image_uri_config, last changed on 2021-08-30).
# custom: SageMaker developer guide, "Docker images for Debugger rules"; the SDK has no such list.
# No source has an account of the custom evaluator in ap-northeast-3.
AWS_IMAGES: Final[Mapping[ImageKind, AwsImages]] = {
    ImageKind.BUILTIN: AwsImages(
        "sagemaker-debugger-rules",
        {
            "af-south-1": "314341159256",
            "ap-east-1": "199566480951",
            "ap-northeast-1": "430734990657",
            "ap-northeast-2": "578805364391",
            "ap-northeast-3": "479947661362",
            "ap-south-1": "904829902805",
            "ap-southeast-1": "972752614525",
            "ap-southeast-2": "184798709955",
            "ca-central-1": "519511493484",
            "cn-north-1": "618459771430",
            "cn-northwest-1": "658757709296",
            "eu-central-1": "482524230118",
            "eu-north-1": "314864569078",
            "eu-south-1": "563282790590",
            "eu-west-1": "929884845733",
            "eu-west-2": "250201462417",
            "eu-west-3": "447278800020",
            "me-south-1": "986000313247",
            "sa-east-1": "818342061345",
            "us-east-1": "503895931360",
            "us-east-2": "915447279597",
            "us-gov-west-1": "515509971035",
            "us-west-1": "685455198987",
            "us-west-2": "895741380848",
        },
    ),
    ImageKind.CUSTOM: AwsImages(
        "sagemaker-debugger-rule-evaluator",
        {
            "af-south-1": "515950693465",
            "ap-east-1": "645844755771",
            "ap-northeast-1": "670969264625",
            "ap-northeast-2": "326368420253",
            "ap-south-1": "552407032007",
            "ap-southeast-1": "631532610101",
            "ap-southeast-2": "445670767460",
            "ca-central-1": "105842248657",
            "cn-north-1": "617202126805",
            "cn-northwest-1": "658559488188",
            "eu-central-1": "691764027602",
            "eu-north-1": "091235270104",
            "eu-south-1": "335033873580",
            "eu-west-1": "606966180310",
            "eu-west-2": "074613877050",
            "eu-west-3": "224335253976",
            "me-south-1": "050406412588",
            "sa-east-1": "466516958431",
            "us-east-1": "864354269164",
            "us-east-2": "840043622174",
            "us-gov-west-1": "515361955729",
            "us-west-1": "952348334681",
            "us-west-2": "759209512951",
        },
    ),
    ImageKind.DETAILED_PROFILER: AwsImages(
        "detailed-profiler-processing",
        {
            "eu-central-1": "482524230118",
            "eu-west-1": "929884845733",
            "il-central-1": "216881608335",
            "us-east-1": "503895931360",
            "us-east-2": "915447279597",
            "us-west-2": "895741380848",
        },
    ),
}

# botocore 1.44.5, partitions.json.
PARTITIONS: Final = (
    Partition(re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+", re.ASCII), "amazonaws.com"),
    Partition(re.compile(r"cn-\w+-\d+", re.ASCII), "amazonaws.com.cn"),
    Partition(re.compile(r"us-gov-\w+-\d+", re.ASCII), "amazonaws.com"),
    Partition(re.compile(r"us-iso-\w+-\d+", re.ASCII), "c2s.ic.gov"),
    Partition(re.compile(r"us-isob-\w+-\d+", re.ASCII), "sc2s.sgov.gov"),
    Partition(re.compile(r"eu-isoe-\w+-\d+", re.ASCII), "cloud.adc-e.uk"),
    Partition(re.compile(r"us-isof-\w+-\d+", re.ASCII), "csp.hci.ic.gov"),
    Partition(re.compile(r"eusc-(de)-\w+-\d+", re.ASCII), "amazonaws.eu"),
)
NAMES: Final = frozenset(region for images in AWS_IMAGES.values() for region in images.accounts)


def dns_suffix(region: str) -> str | None:
    """Return the domain of a region's registries; None if the name cannot be a region."""
    return next((part.dns_suffix for part in PARTITIONS if part.regions.fullmatch(region)), None)


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
