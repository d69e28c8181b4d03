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


TAG: Final = "latest"

# builtin, detailed_profiler: sagemaker-python-sdk v2.257.7 (the built-in list, debugger.json of its
# image_uri_config, last changed on 2021-08-30).
# custom: SageMaker developer guide, "Docker images for Debugger rules"; the SDK has no such list.
# No source has an account of the custom evaluator in ap-northeast-3.
_ACCOUNTS: Final = {  # by region: of the built-in, the custom and the detailed profiler image
    "af-south-1": ("314341159256", "515950693465", ""),
    "ap-east-1": ("199566480951", "645844755771", ""),
    "ap-northeast-1": ("430734990657", "670969264625", ""),
    "ap-northeast-2": ("578805364391", "326368420253", ""),
    "ap-northeast-3": ("479947661362", "", ""),
    "ap-south-1": ("904829902805", "552407032007", ""),
    "ap-southeast-1": ("972752614525", "631532610101", ""),
    "ap-southeast-2": ("184798709955", "445670767460", ""),
    "ca-central-1": ("519511493484", "105842248657", ""),
    "cn-north-1": ("618459771430", "617202126805", ""),
    "cn-northwest-1": ("658757709296", "658559488188", ""),
    "eu-central-1": ("482524230118", "691764027602", "482524230118"),
    "eu-north-1": ("314864569078", "091235270104", ""),
    "eu-south-1": ("563282790590", "335033873580", ""),
    "eu-west-1": ("929884845733", "606966180310", "929884845733"),
    "eu-west-2": ("250201462417", "074613877050", ""),
    "eu-west-3": ("447278800020", "224335253976", ""),
    "il-central-1": ("", "", "216881608335"),
    "me-south-1": ("986000313247", "050406412588", ""),
    "sa-east-1": ("818342061345", "466516958431", ""),
    "us-east-1": ("503895931360", "864354269164", "503895931360"),
    "us-east-2": ("915447279597", "840043622174", "915447279597"),
    "us-gov-west-1": ("515509971035", "515361955729", ""),
    "us-west-1": ("685455198987", "952348334681", ""),
    "us-west-2": ("895741380848", "759209512951", "895741380848"),
}
_REPOSITORIES: Final = (
    "sagemaker-debugger-rules",
    "sagemaker-debugger-rule-evaluator",
    "detailed-profiler-processing",
)
AWS_IMAGES: Final[Mapping[ImageKind, AwsImages]] = {
    kind: AwsImages(
        repository,
        {region: accounts[column] for region, accounts in _ACCOUNTS.items() if accounts[column]},
    )
    for column, (kind, repository) in enumerate(zip(ImageKind, _REPOSITORIES, strict=True))
}

# botocore 1.44.5, partitions.json.
PARTITIONS: Final = {  # the domain of the registries, by a pattern of the names of regions
    r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+": "amazonaws.com",
    r"cn-\w+-\d+": "amazonaws.com.cn",
    r"us-gov-\w+-\d+": "amazonaws.com",
    r"us-iso-\w+-\d+": "c2s.ic.gov",
    r"us-isob-\w+-\d+": "sc2s.sgov.gov",
    r"eu-isoe-\w+-\d+": "cloud.adc-e.uk",
    r"us-isof-\w+-\d+": "csp.hci.ic.gov",
    r"eusc-(de)-\w+-\d+": "amazonaws.eu",
}
NAMES: Final = frozenset(region for images in AWS_IMAGES.values() for region in images.accounts)


def dns_suffix(region: str) -> str | None:
    """Return the domain of a region's registries; None if the name cannot be a region."""
    matching = (
        suffix for names, suffix in PARTITIONS.items() if re.fullmatch(names, region, re.ASCII)
    )
    return next(matching, None)


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
        raise UnknownRegionError(
            f"Region must be one of AWS's, got {region!r}.{nearest(region, names)} "
            f"Known: {', '.join(names)}."
        )
    return suffix
