"""OtherProfiles: knows when the training script uses torch.profiler itself."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

from torch.autograd import profiler

from rule_core.frameworks.pytorch.patches import Patch


class OtherProfiles:
    """Follows the profiles of PyTorch that others make, as PyTorch has one session for all.

    A second session takes the events of the first, and PyTorch crashes on the profile without
    them, even if the first was only warmed up.

    Parameters
    ----------
    give_way
        Called before another profile begins.
    """

    def __init__(self, give_way: Callable[[], None]) -> None:
        self._give_way = give_way
        self._profiles: weakref.WeakSet[Any] = weakref.WeakSet()
        self._own: Any = None
        self._patch: Patch | None = None

    def open(self) -> None:
        """Follow the profiles that exist and those to come."""
        if self._patch is not None:
            return
        self._profiles.update(each for each in gc.get_objects() if type(each) is profiler.profile)
        self._patch = Patch(profiler.profile, "_prepare_trace", self._giving_way)

    def _giving_way(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        def prepare(profile: Any) -> None:
            if self._own is None:
                self._give_way()
                self._profiles.add(profile)
            original(profile)

        return prepare

    def prepare(self, profile: Any) -> None:
        """Prepare an own profile."""
        self._own = profile
        try:
            profile.prepare_trace()
        finally:
            self._own = None

    def is_any_active(self) -> bool:
        """Return whether another profile is active or warmed up."""
        return any(
            getattr(each, "entered", False) and getattr(each, "kineto_results", None) is None
            for each in self._profiles
        )

    def close(self) -> None:
        """Restore PyTorch's method."""
        if self._patch is not None:
            self._patch.restore()
            self._patch = None
