"""Discovery: the trials below a root that are not known yet."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from rule_core.sources.address import address_of
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.uri import is_s3
from rule_runner.index.database import NewTrial
from rule_runner.index.outputs import base_of, output_of
from rule_runner.loading.profile_paths import FOLDERS
from rule_runner.loading.trial_search import find_new_trials

_WILDCARD: Final = re.compile(r"[*?\[]")
SEARCH_S: Final = 20.0  # how long a search may wait for storage


@dataclass(frozen=True, slots=True)
class WatchRoot:
    """A place to look for trials in.

    Attributes
    ----------
    text
        As in the configuration.
    base
        The folder or address before the first part with a wildcard.
    patterns
        The parts from there on.
    sources
        How to read outputs of other writers.
    """

    text: str
    base: str
    patterns: tuple[str, ...] = ()
    sources: SourceOptions = field(default=DEFAULT, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return not is_s3(self.base)

    def fits(self, relative: str) -> bool:
        """Return whether a path below the base fits the patterns, as far as both go."""
        return all(map(fnmatchcase, filter(None, relative.split("/")), self.patterns))

    def holds(self, relative: str) -> bool:
        """Return whether a trial at a path below the base belongs to the root."""
        depth = sum(map(bool, relative.split("/")))
        return depth >= len(self.patterns) and self.fits(relative)


def parse_root(text: str) -> WatchRoot:
    """Return the root that a text names; a local path that exists has no wildcards.

    >>> parse_root("s3://bucket/runs/*")
    WatchRoot(text='s3://bucket/runs/*', base='s3://bucket/runs', patterns=('*',))
    """
    scheme, separator, place = text.strip().rpartition("://")
    parts = place.rstrip("/").split("/")
    wild = [i for i, part in enumerate(parts) if _WILDCARD.search(part)]
    plain = wild[0] if wild and (scheme or not Path(text).exists()) else len(parts)
    base = "/".join(parts[:plain]) or ("/" if place.startswith("/") else ".")
    if scheme:
        return WatchRoot(text, scheme + separator + base, tuple(parts[plain:]))
    return WatchRoot(text, str(Path(base).expanduser().absolute()), tuple(parts[plain:]))


def new_trials(root: WatchRoot, known: Container[str], output: str) -> Iterator[NewTrial]:
    """Yield the trials below a root that are not known, and are no outputs.

    Parameters
    ----------
    known
        Canonical paths of trials. Of local ones, only new profiles in them are looked for.
    output
        The template of the outputs.

    Raises
    ------
    TrialError
        If the root does not exist, or cannot be listed.
    """
    base = address_of(root.base).canonical
    outputs = base_of(output)
    outputs = outputs if is_s3(outputs) else address_of(outputs).canonical

    def passes_over(relative: str) -> bool:
        path = f"{base.rstrip('/')}/{relative.strip('/')}".rstrip("/")
        if path == outputs or not root.fits(relative):
            return True
        return path in known and not (root.is_local and _has_new_profile(path, known))

    for folder in find_new_trials(root.base, passes_over, SEARCH_S, root.sources):
        path = address_of(folder.path).canonical
        place = address_of(path).path
        if path not in known and root.holds(place.removeprefix(base)):
            yield NewTrial(
                path, root.text, folder.tensors, folder.profiler, output_of(path, output)
            )


def _has_new_profile(path: str, known: Container[str]) -> bool:
    """Return whether a known trial has a folder for a profile that is not known."""
    inner = (f"{path}/{name}" for name in FOLDERS)
    return any(folder not in known and Path(folder).is_dir() for folder in inner)
