"""images.toml: which image you have in which region; read, and replaced in one step."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rule_runner.durable import output_errors, sync_folder, write_durably
from rule_runner.images.errors import ImageError
from rule_runner.images.uris import parse_uri, require_fit
from rule_runner.user_folders import CONFIGURATION, STATE, user_folder

NAME: Final = "images.toml"
LARGEST: Final = 1 << 20  # bytes
TABLE: Final = "images"

_ROOTS: Final = (".git", ".hg")  # what the root of a project has
_HEAD: Final = f"""\
# Your rule images by region. 'rule-runner images register' writes this file; it keeps no comments.
[{TABLE}]
"""


def user_file() -> Path:
    """Return where the user's own registrations are."""
    return user_folder(CONFIGURATION) / NAME


def trust_file() -> Path:
    """Return where it is noted which project files the user trusts."""
    return user_folder(STATE) / "trusted_images.json"


def project_file(folder: Path) -> Path | None:
    """Return the nearest images.toml from `folder` up to its project's root, if there is one.

    A folder in no project is searched alone.
    """
    folder = folder.resolve()
    chain = [folder, *folder.parents]
    roots = (at for at, one in enumerate(chain) if any((one / name).exists() for name in _ROOTS))
    searched = chain[: next(roots, 0) + 1]
    found = next((one / NAME for one in searched if (one / NAME).is_file()), None)
    return None if found is None or found.resolve() == user_file().resolve() else found


def read_bytes(path: Path) -> bytes | None:
    """Return what is in a file, or None if it is not there.

    Raises
    ------
    ImageError
        If it cannot be read, or is too large to be one of ours.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as err:
        msg = f"Cannot read {str(path)!r}: {err.strerror}."
        raise ImageError(msg) from err
    if len(data) > LARGEST:
        msg = f"Image file {str(path)!r} must have at most {LARGEST} bytes, got more."
        raise ImageError(msg)
    return data


def parse(path: Path, data: bytes) -> dict[str, str]:
    """Return the image of each region out of the content of the file `path`.

    Raises
    ------
    ImageError
        If that is no TOML of ours, or a URI is none or does not fit its region.
    """
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except ValueError as err:
        msg = f"Image file {str(path)!r} is no TOML: {err}."
        raise ImageError(msg) from err
    images = content.pop(TABLE, {})
    if content or not isinstance(images, dict):
        msg = f"Image file {str(path)!r} must have one table, [{TABLE}], got {[*content]!r}."
        raise ImageError(msg)
    for region, uri in images.items():
        try:
            _check(region, uri)
        except ImageError as err:
            msg = f"Image file {str(path)!r}: {err}"
            raise ImageError(msg) from err
    return images


def _check(region: str, uri: object) -> None:
    if not isinstance(uri, str):
        msg = f"Image of region {region!r} must be a string, got {uri!r}."
        raise ImageError(msg)
    require_fit(parse_uri(uri), region)


def text_of(images: Mapping[str, str]) -> str:
    """Return the content of a file; neither regions nor URIs have anything to escape."""
    return _HEAD + "".join(f'{region} = "{uri}"\n' for region, uri in sorted(images.items()))


def replace(path: Path, text: str) -> None:
    """Replace a file, or make it, in one step; a link stays one.

    Raises
    ------
    OutputError
        If it cannot be written; then it is as it was.
    """
    with output_errors(path):
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            write_durably(temporary, text.encode())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
