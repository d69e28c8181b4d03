"""Registrations of images by region; those of the project override those of the user.

A file of a project counts while the user trusts its path and content.
"""

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from rule_runner.errors import ImageError, translated
from rule_runner.images import config_files
from rule_runner.images.uri import is_ecr, parse_uri, require_fit
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)


class Registered(NamedTuple):
    """Your image for one region."""

    uri: str
    file: Path


def registered(folder: Path | None = None) -> dict[str, Registered]:
    """Return your images by region; a project's file counts only while it is trusted.

    Parameters
    ----------
    folder
        Start of the search for the project's file; by default the working folder.

    Raises
    ------
    ImageError
        If a used file is invalid.
    """
    images: dict[str, Registered] = {}
    for file in (config_files.user_file(), config_files.project_file(folder or Path.cwd())):
        data = config_files.read_bytes(file) if file is not None else None
        if file is None or data is None:
            continue
        if file != config_files.user_file() and not _is_trusted(file, data):
            _log.warning("project_images_ignored", reason=untrusted(file))
            continue
        images |= {
            region: Registered(uri, file) for region, uri in config_files.parse(file, data).items()
        }
    return images


def untrusted(file: Path) -> str:
    """Return the message about a project's file that the user does not trust."""
    return (
        f"Image file {str(file)!r} is ignored because it is not trusted, or has changed since. "
        f"Read it, then run 'rule-runner images trust'."
    )


def place(*, project: bool) -> Path:
    """Return the file for a registration.

    Raises
    ------
    ImageError
        If it is a project's file that the user does not trust.
    """
    if not project:
        return config_files.user_file()
    file = config_files.project_file(Path.cwd()) or Path.cwd() / config_files.NAME
    data = config_files.read_bytes(file)
    if data is not None and not _is_trusted(file, data):
        raise ImageError(untrusted(file))
    return file


def register(region: str, uri: str, *, project: bool = False) -> Path:
    """Register `uri` as your image in `region`; return the changed file.

    Raises
    ------
    ImageError
        If the URI is invalid, or the image is in another region's registry.
    UnknownRegionError
        If the region is unknown.
    OutputError
        If the file cannot be written.
    """
    image = parse_uri(uri)
    require_fit(image, region)
    if not is_ecr(image):
        reason = f"SageMaker accepts rule images from ECR only, but {uri!r} is in another registry."
        _log.warning("image_outside_ecr", reason=reason)
    file = place(project=project)
    return _write(file, _images_in(file) | {region: uri}, project)


def unregister(region: str, *, project: bool = False) -> Path:
    """Remove the registration of your image in `region`; return the changed file.

    Raises
    ------
    ImageError
        If the file has none.
    OutputError
        If the file cannot be written.
    """
    file = place(project=project)
    images = _images_in(file)
    if images.pop(region, None) is None:
        raise ImageError(
            f"Image file {str(file)!r} has no image for region {region!r}. "
            "'rule-runner images list' shows which file has one."
        )
    return _write(file, images, project)


def _images_in(file: Path) -> dict[str, str]:
    return config_files.parse(file, config_files.read_bytes(file) or b"")


def _write(file: Path, images: dict[str, str], project: bool) -> Path:
    text = config_files.text_of(images)
    config_files.replace(file, text)
    if project:
        _trust(file, text.encode())  # the user asked for this content
    return file


def trust_project(file: Path | None = None) -> tuple[Path, dict[str, str]]:
    """Trust the current content of a project's file; return the file and its images.

    Parameters
    ----------
    file
        By default the nearest one from the working folder.

    Raises
    ------
    ImageError
        If it is missing or invalid.
    """
    file = file or config_files.project_file(Path.cwd())
    data = config_files.read_bytes(file) if file is not None else None
    if file is None or data is None:
        raise ImageError(
            f"No image file to trust, got {str(file or Path.cwd())!r}. "
            f"Give the path of one, or change to a project with an {config_files.NAME}."
        )
    images = config_files.parse(file, data)
    _trust(file, data)
    return file, images


def _is_trusted(path: Path, data: bytes) -> bool:
    """Return whether the file `path` is trusted with this content."""
    return _recorded().get(str(path.resolve())) == _digest(data)


def _trust(path: Path, data: bytes) -> None:
    """Trust the file `path` while it has this content."""
    trusted = _recorded() | {str(path.resolve()): _digest(data)}
    text = msgspec.json.format(msgspec.json.encode(trusted, order="sorted"), indent=2)
    config_files.replace(config_files.trust_file(), text.decode() + "\n")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _recorded() -> dict[str, str]:
    """Return the SHA-256 of the content of each trusted file, by path; empty without any."""
    file = config_files.trust_file()
    data = config_files.read_bytes(file)
    if data is None:
        return {}
    problem, remedy = f"{str(file)!r} is damaged: ", ". Remove it, and trust your files again."
    with translated(ImageError, msgspec.DecodeError, before=problem, after=remedy):
        return msgspec.json.decode(data, type=dict[str, str])
