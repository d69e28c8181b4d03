"""Registrations: your images by region, the project's before the user's."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from rule_runner.images import trust
from rule_runner.images.errors import ImageError
from rule_runner.images.files import (
    NAME,
    parse,
    project_file,
    read_bytes,
    replace,
    text_of,
    user_file,
)
from rule_runner.images.uris import is_ecr, parse_uri, require_fit

_log: Final = structlog.get_logger()


class Registered(NamedTuple):
    """Your image for one region."""

    uri: str
    file: Path


def registered(folder: Path | None = None) -> dict[str, Registered]:
    """Return your images by region; a project's file counts only while it is trusted.

    Parameters
    ----------
    folder
        Where the search for the project's file begins; by default the current one.

    Raises
    ------
    ImageError
        If a file that counts is not as it should be.
    """
    found: dict[str, Registered] = {}
    for file in (user_file(), project_file(folder or Path.cwd())):
        data = read_bytes(file) if file is not None else None
        if file is None or data is None:
            continue
        if file != user_file() and not trust.is_trusted(file, data):
            _log.warning("project_images_ignored", reason=untrusted(file))
            continue
        found |= {region: Registered(uri, file) for region, uri in parse(file, data).items()}
    return found


def untrusted(file: Path) -> str:
    """Return the sentence about a project's file that the user has not found good."""
    return (
        f"Image file {str(file)!r} is not used because it is not trusted, or has changed since. "
        f"Read it, then run 'rule-runner images trust'."
    )


def place(folder: Path | None = None, *, project: bool) -> Path:
    """Return the file that a registration is written to.

    Raises
    ------
    ImageError
        If it is a project's and holds what the user has not found good.
    """
    if not project:
        return user_file()
    folder = folder or Path.cwd()
    file = project_file(folder) or folder / NAME
    data = read_bytes(file)
    if data is not None and not trust.is_trusted(file, data):
        raise ImageError(untrusted(file))
    return file


def register(region: str, uri: str, *, project: bool = False, folder: Path | None = None) -> Path:
    """Note that `uri` is your image in `region`; return the file that says so now.

    Raises
    ------
    ImageError
        If the URI is none, or the image is in another region's registry.
    UnknownRegionError
        If no region is called so.
    OutputError
        If the file cannot be written.
    """
    image = parse_uri(uri)
    require_fit(image, region)
    if not is_ecr(image):
        reason = f"SageMaker takes rule images from ECR, and {uri!r} is in another registry."
        _log.warning("image_outside_ecr", reason=reason)
    return _change(place(folder, project=project), project, lambda images: images | {region: uri})


def unregister(region: str, *, project: bool = False, folder: Path | None = None) -> Path:
    """Forget your image in `region`; return the file that said so.

    Raises
    ------
    ImageError
        If there is none in that file.
    OutputError
        If the file cannot be written.
    """
    file = place(folder, project=project)

    def without(images: dict[str, str]) -> dict[str, str]:
        if region not in images:
            msg = (
                f"Image file {str(file)!r} has no image for region {region!r}. "
                "'rule-runner images list' shows which file has one."
            )
            raise ImageError(msg)
        return {one: uri for one, uri in images.items() if one != region}

    return _change(file, project, without)


def _change(file: Path, project: bool, edit: Callable[[dict[str, str]], dict[str, str]]) -> Path:
    text = text_of(edit(parse(file, read_bytes(file) or b"")))
    replace(file, text)
    if project:
        trust.record(file, text.encode())  # what we wrote is what the user asked for
    return file


def trust_project(file: Path | None = None) -> tuple[Path, dict[str, str]]:
    """Trust a project's file as it is now; return it and the images that it names.

    Parameters
    ----------
    file
        By default the one that is found from the current folder.

    Raises
    ------
    ImageError
        If there is none, or it is not as it should be.
    """
    file = file or project_file(Path.cwd())
    data = read_bytes(file) if file is not None else None
    if file is None or data is None:
        msg = (
            f"No image file to trust, got {str(file or Path.cwd())!r}. "
            f"Name one, or go to the project that has an {NAME}."
        )
        raise ImageError(msg)
    images = parse(file, data)
    trust.record(file, data)
    return file, images
