"""ECR: the login to a registry, and repositories in it."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rule_core.clock import Clock, SystemClock
from rule_core.storage import aws
from rule_runner.errors import ImageError
from rule_runner.images.aws_images import require_region

DEADLINE_S: Final = 30.0
PUSH_PERMISSIONS: Final = (
    "ecr:BatchCheckLayerAvailability, ecr:InitiateLayerUpload, ecr:UploadLayerPart, "
    "ecr:CompleteLayerUpload and ecr:PutImage"
)

_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials for one registry, valid for some hours."""

    host: str
    username: str
    password: str = field(repr=False)


class Ecr:
    """The ECR of one region, used with the caller's credentials.

    Raises
    ------
    UnknownRegionError
        If the region is unknown.
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
            If ECR returns none, or one for a host outside of ECR in this region.
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
            raise ImageError(
                f"ECR in region {self.region!r} returned a login without user and password."
            )
        return Login(host, username, password)

    def _checked(self, endpoint: str) -> str:
        """Return the host of the login, which must be ECR's in this region."""
        own = (
            rf"https://([0-9]{{12}}\.dkr\.ecr\.{re.escape(self.region)}\.{re.escape(self._suffix)})"
        )
        match = re.fullmatch(own, endpoint)
        if match is None:
            raise ImageError(
                f"ECR in region {self.region!r} returned a login for a foreign host, "
                f"got {endpoint!r}. The login is not used."
            )
        return match[1]

    def require_repository(self, name: str, *, create: bool) -> None:
        """Check that the repository `name` exists; create it if `create`.

        Raises
        ------
        ImageError
            If it does not exist, or cannot be examined or created.
        """
        description = self._ask(
            lambda: self._client.describe_repositories(repositoryNames=[name]),
            f"find the repository {name!r}",
            "ecr:DescribeRepositories",
            fine="RepositoryNotFoundException",
        )
        if description is not None:
            return
        if not create:
            raise ImageError(
                f"ECR in region {self.region!r} has no repository {name!r}. "
                "Create it with --create, or choose another with --repository."
            )
        self._ask(
            lambda: self._client.create_repository(repositoryName=name),
            f"create the repository {name!r}",
            "ecr:CreateRepository",
            fine="RepositoryAlreadyExistsException",  # another process was faster
        )

    def _ask(self, call: Callable[[], Any], purpose: str, permission: str, fine: str = "") -> Any:
        """Return the answer to a call, or None if it fails with the code `fine`."""
        try:
            return aws.call(call, deadline_s=DEADLINE_S, clock=self._clock)
        except aws.AwsCallError as err:
            fault = err.fault
            if fault.code == fine:
                return None
            msg = f"Cannot {purpose} in region {self.region!r}: {fault.reason}."
            if fault.code in _DENIED:
                msg += f" The caller needs {permission}."
            raise ImageError(msg) from err
