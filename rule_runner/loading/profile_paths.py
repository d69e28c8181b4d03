"""Profiles: where the profile of a training lies, and where the training of a profile does."""

from collections.abc import Iterator
from typing import Final

from rule_core.sources.address import address_of

FOLDERS: Final = ("profile", "profiler-output")  # in the folder of a trial, or beside it
_TRIALS: Final = ("tensors", "debug-output")  # beside which such a folder is
_ENDING: Final = "-profile"


def profile_paths(trial: str) -> Iterator[str]:
    """Yield the paths at which the profile of a trial may be, the nearest first.

    >>> list(profile_paths("/runs/mnist"))
    ['/runs/mnist/profile', '/runs/mnist/profiler-output', '/runs/mnist-profile']
    >>> list(profile_paths("s3://bucket/job/debug-output"))[2:4]
    ['s3://bucket/job/profile', 's3://bucket/job/profiler-output']
    """
    path = address_of(trial).path
    parent, _, name = path.rpartition("/")
    yield from (f"{path}/{folder}" for folder in FOLDERS)
    if name in _TRIALS:
        yield from (f"{parent}/{folder}" for folder in FOLDERS)
    yield path + _ENDING


def trial_paths(profile: str) -> Iterator[str]:
    """Yield the paths at which the trial of a profile may be, the nearest first.

    >>> list(trial_paths("/runs/mnist/profile"))
    ['/runs/mnist', '/runs/mnist/tensors', '/runs/mnist/debug-output']
    >>> list(trial_paths("/runs/mnist-profile"))
    ['/runs/mnist']
    """
    parent, _, name = profile.rpartition("/")
    if name in FOLDERS:
        yield parent
        yield from (f"{parent}/{folder}" for folder in _TRIALS)
    elif profile.endswith(_ENDING):
        yield profile.removesuffix(_ENDING)
