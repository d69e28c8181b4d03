"""The image of a rule, with the arguments of the documents and of the SDK."""

from inspect import signature
from typing import Any, get_overloads, overload


@overload
def get_rule_container_image_uri(region: str, name: str | None = None) -> str: ...
@overload
def get_rule_container_image_uri(name: str | None, region: str) -> str: ...
def get_rule_container_image_uri(*args: Any, **named: Any) -> str:
    """Return the URI of AWS's own image for built-in rules.

    Parameters
    ----------
    *args, **named
        `region`, such as ``eu-west-1``, and optionally `name`, that of the rule configuration: the
        job that processes detailed profiles has a separate image. The order of the SDK, `name`
        before `region`, works too.

    Raises
    ------
    ValueError
        If AWS has no such image in the region.
    TypeError
        If the region is missing, or there are too many arguments.

    Examples
    --------
    >>> get_rule_container_image_uri("us-east-1")
    '503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest'
    """
    from rule_runner.images import get_rule_container_image_uri as uri
    from rule_runner.images.aws_images import AWS_IMAGES, ImageKind

    match args:
        case (name,) if "region" in named:
            return uri(name=name, **named)
        case (name, region) if name not in AWS_IMAGES[ImageKind.BUILTIN].accounts:
            return uri(region, name, **named)
        case _:
            return uri(*args, **named)


# What `help` shows; callables have no such attribute for type checkers.
get_rule_container_image_uri.__signature__ = signature(  # type: ignore[attr-defined]
    get_overloads(get_rule_container_image_uri)[0]
)
