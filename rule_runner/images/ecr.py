"""ECR: the login that it gives for one registry, and the repository there."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rule_runner.images.errors import ImageError
from rule_runner.images.regions import require_region
from smdebug.core.clock import Clock, SystemClock
from smdebug.storage import aws
from smdebug.storage.retry import retry

DEADLINE_S: Final = 30.0
PUSH_PERMISSIONS: Final = (
    "ecr:BatchCheckLayerAvailability, ecr:InitiateLayerUpload, ecr:UploadLayerPart, "
    "ecr:CompleteLayerUpload and ecr:PutImage"
)

_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


@dataclass(frozen=True, slots=True)
class Login:
    """What one registry takes, for some hours."""

    host: str
    username: str
    password: str = field(repr=False)


class Ecr:
    """The ECR of one region, as the caller's credentials see it.

    Raises
    ------
    UnknownRegionError
        If no region is called so.
    """

    def __init__(self, region: str, clock: Clock | None = None) -> None:
        self.region = region
        self._suffix = require_region(region)
        self._client = aws.client("ecr", region=region)
        self._clock = clock or SystemClock()

    def log_in(self) -> Login:
        """Return the login to the caller's own registry in this region.

        Raises
        ------
        ImageError
            If ECR gives none, or one for a host that is not ECR's in this region.
        """
        call = self._client.get_authorization_token
        answer = self._ask(call, "log in to ECR", "ecr:GetAuthorizationToken")
        data = answer["authorizationData"][0]
        host = self._checked(str(data["proxyEndpoint"]))
        try:
            token = base64.b64decode(data["authorizationToken"], validate=True).decode()
        except ValueError:
            token = ""
        username, colon, password = token.partition(":")
        if not colon:
            msg = f"ECR in region {self.region!r} gave no user and password in its login."
            raise ImageError(msg)
        return Login(host, username, password)

    def _checked(self, endpoint: str) -> str:
        """Return the host that the login is for: ECR's own in this region, and no other."""
        own = (
            rf"https://([0-9]{{12}}\.dkr\.ecr\.{re.escape(self.region)}\.{re.escape(self._suffix)})"
        )
        found = re.fullmatch(own, endpoint)
        if found is None:
            msg = (
                f"ECR in region {self.region!r} gave a login for a host that is not its own, "
                f"got {endpoint!r}. The login is sent nowhere."
            )
            raise ImageError(msg)
        return found[1]

    def require_repository(self, name: str, *, create: bool) -> None:
        """See to it that there is a repository called `name`; make it only if `create`.

        Raises
        ------
        ImageError
            If there is none, or it cannot be seen or made.
        """
        if self._has(name):
            return
        if not create:
            msg = (
                f"ECR in region {self.region!r} has no repository {name!r}. "
                "Let it be made with --create, or name another with --repository."
            )
            raise ImageError(msg)
        self._ask(
            lambda: self._client.create_repository(repositoryName=name),
            f"make the repository {name!r}",
            "ecr:CreateRepository",
            fine="RepositoryAlreadyExistsException",  # somebody else was faster
        )

    def _has(self, name: str) -> bool:
        found = self._ask(
            lambda: self._client.describe_repositories(repositoryNames=[name]),
            f"look for the repository {name!r}",
            "ecr:DescribeRepositories",
            fine="RepositoryNotFoundException",
        )
        return found is not None

    def _ask(self, call: Callable[[], Any], purpose: str, permission: str, fine: str = "") -> Any:
        """Return the answer to a call, or None if it is refused with the code `fine`."""
        try:
            return retry(
                call,
                passes=lambda err: isinstance(err, aws.errors()) and aws.fault(err).transient,
                deadline_s=DEADLINE_S,
                clock=self._clock,
            )
        except aws.errors() as err:
            fault = aws.fault(err)
            if fault.code == fine:
                return None
            msg = f"Cannot {purpose} in region {self.region!r}: {fault.reason}."
            if fault.code in _DENIED:
                msg += f" The caller needs {permission}."
            raise ImageError(msg) from err
