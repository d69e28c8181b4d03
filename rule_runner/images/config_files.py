"""images.toml: your images by region, read and atomically replaced."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rule_runner.errors import ImageError, translated
from rule_runner.images.uri import parse_uri, require_fit
from rule_runner.results.durable_files import output_errors, replace_durably
from rule_runner.user_folders import user_folder

NAME: Final = "images.toml"
LARGEST: Final = 1 << 20  # bytes
TABLE: Final = "images"

_ROOTS: Final = (".git", ".hg")  # mark the root of a project
_HEAD: Final = f"""\
# Your rule images by region. 'rule-runner images register' rewrites this file, without comments.
[{TABLE}]
"""


def user_file() -> Path:
    """Return the path of the user's own registrations."""
    return user_folder("config") / NAME


def trust_file() -> Path:
    """Return the path of the list of trusted project files."""
    return user_folder("state") / "trusted_images.json"


def project_file(folder: Path) -> Path | None:
    """Return the nearest images.toml from `folder` up to the root of its project, if any.

    Outside of a project only `folder` is searched.
    """
    folder = folder.resolve()
    chain = [folder, *folder.parents]
    is_root = [any((parent / name).exists() for name in _ROOTS) for parent in chain]
    depth = is_root.index(True) if True in is_root else 0
    files = (parent / NAME for parent in chain[: depth + 1])
    file = next((path for path in files if path.is_file()), None)
    return None if file is None or file.resolve() == user_file().resolve() else file


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist.

    Raises
    ------
    ImageError
        If it cannot be read, or is too large.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise ImageError(f"Cannot read {str(path)!r}: {err.strerror}.") from err
    if len(data) > LARGEST:
        raise ImageError(f"Image file {str(path)!r} must have at most {LARGEST} bytes, got more.")
    return data


def parse(path: Path, data: bytes) -> dict[str, str]:
    """Return the image of each region from the content of the file `path`.

    Raises
    ------
    ImageError
        If the content or a URI is invalid, or an image is in another region.
    """
    problem = f"Image file {str(path)!r} is not valid TOML: "
    with translated(ImageError, ValueError, before=problem, after="."):
        content = tomllib.loads(data.decode("utf-8"))
    images = content.pop(TABLE, {})
    if content or not isinstance(images, dict):
        raise ImageError(
            f"Image file {str(path)!r} must have one table, [{TABLE}], got {[*content]!r}."
        )
    for region, uri in images.items():
        with translated(ImageError, ImageError, before=f"Image file {str(path)!r}: "):
            _check(region, uri)
    return images


def _check(region: str, uri: object) -> None:
    if not isinstance(uri, str):
        raise ImageError(f"Image of region {region!r} must be a string, got {uri!r}.")
    require_fit(parse_uri(uri), region)


def text_of(images: Mapping[str, str]) -> str:
    """Return the content of a file; regions and URIs need no escapes."""
    return _HEAD + "".join(f'{region} = "{uri}"\n' for region, uri in sorted(images.items()))


def replace(path: Path, text: str) -> None:
    """Create or replace a file atomically; follow links.

    Raises
    ------
    OutputError
        If it cannot be written; it is unchanged then.
    """
    with output_errors(path):
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        replace_durably(path, text, temporary)
