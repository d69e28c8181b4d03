"""ECR: what it gives over HTTP, and which of it is taken."""

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError  # noqa: TID251 - what AWS answers is made here

from rule_core.storage import aws
from rule_core.storage.retry import LONGEST_PAUSE_S
from rule_runner.containers.ecr import Ecr, Login
from rule_runner.images import ImageError, UnknownRegionError

HOST = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
TOKEN = base64.b64encode(b"AWS:a:secret").decode()
pytestmark = pytest.mark.usefixtures("aws_endpoint")


class Answers:
    """Stands in for the client of ECR: answers what AWS over HTTP here does not."""

    def __init__(self, *answers: Any) -> None:
        self._answers = iter(answers)
        self.asked: list[dict[str, Any]] = []

    def __getattr__(self, _operation: str) -> Callable[..., Any]:
        return self._answer

    def _answer(self, **request: Any) -> Any:
        self.asked.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(code: str, status: int = 400) -> ClientError:
    metadata = {"HTTPStatusCode": status}
    answer = {"Error": {"Code": code, "Message": "Said so."}, "ResponseMetadata": metadata}
    return ClientError(answer, "Something")


def login(endpoint: str, token: str = TOKEN) -> dict[str, Any]:
    return {"authorizationData": [{"proxyEndpoint": endpoint, "authorizationToken": token}]}


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, clock: Any) -> Callable[..., tuple[Ecr, Answers]]:
    """Return what makes the ECR of Ireland with prepared answers."""

    def make(*answers: Any) -> tuple[Ecr, Answers]:
        client = Answers(*answers)
        monkeypatch.setattr(aws, "client", lambda _service, region: client if region else None)
        return Ecr("eu-west-1", clock), client

    return make


# -- over HTTP ---------------------------------------------------------------------------------


def test_the_login_is_for_the_regions_own_registry() -> None:
    assert Ecr("eu-west-1").log_in() == Login(HOST, "AWS", "123456789012-auth-token")


def test_a_repository_is_made_only_when_asked_for() -> None:
    ecr = Ecr("eu-west-1")
    with pytest.raises(
        ImageError,
        match=r"^ECR in region 'eu-west-1' has no repository 'team/rules'\. Create it with "
        r"--create, or choose another with --repository\.$",
    ):
        ecr.require_repository("team/rules", create=False)
    ecr.require_repository("team/rules", create=True)
    ecr.require_repository("team/rules", create=True)
    ecr.require_repository("team/rules", create=False)
    found = aws.client("ecr", region="eu-west-1").describe_repositories()["repositories"]
    assert [one["repositoryName"] for one in found] == ["team/rules"]
    elsewhere = aws.client("ecr", region="us-east-1").describe_repositories()["repositories"]
    assert elsewhere == []


def test_a_login_for_a_host_with_another_ending_is_refused() -> None:
    # The server names amazonaws.com in China too, where registries end in amazonaws.com.cn.
    with pytest.raises(
        ImageError,
        match=r"^ECR in region 'cn-north-1' returned a login for a foreign host, got "
        r"'https://123456789012\.dkr\.ecr\.cn-north-1\.amazonaws\.com'\. The login is not used",
    ):
        Ecr("cn-north-1").log_in()


def test_a_region_that_is_none_is_not_asked() -> None:
    with pytest.raises(UnknownRegionError, match=r"^Region must be one of AWS's, got 'eu'\."):
        Ecr("eu")


def test_without_credentials_the_remedy_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    with pytest.raises(
        ImageError,
        match=r"^Cannot log in to ECR in region 'eu-west-1': no AWS credentials were found\. Set ",
    ):
        Ecr("eu-west-1").log_in()


# -- what the server here does not answer ------------------------------------------------------


@pytest.mark.parametrize(
    "endpoint",
    [
        f"http://{HOST}",
        f"https://{HOST}.evil.example",
        f"https://{HOST}:8443",
        f"https://{HOST}/",
        f"https://{HOST}\n",
        f"https://user@{HOST}",
        f"https://{HOST.replace('eu-west-1', 'eu-west-2')}",
        f"https://{HOST.replace('123456789012', 'evil')}",
        f"https://{HOST.replace('.', 'x')}",
        "https://evil.example",
    ],
)
def test_a_login_for_any_other_host_is_refused(
    endpoint: str, answering: Callable[..., tuple[Ecr, Answers]]
) -> None:
    ecr, _ = answering(login(endpoint))
    with pytest.raises(ImageError, match=re.escape(f"foreign host, got {endpoint!r}.")):
        ecr.log_in()


def test_a_password_may_hold_colons_and_is_never_shown(
    answering: Callable[..., tuple[Ecr, Answers]],
) -> None:
    ecr, _ = answering(login(f"https://{HOST}"))
    given = ecr.log_in()
    assert given == Login(HOST, "AWS", "a:secret")
    assert repr(given) == f"Login(host='{HOST}', username='AWS')"


@pytest.mark.parametrize("token", ["QVdT", "%%%", "/w==", ""])
def test_a_login_without_user_and_password_is_refused_without_showing_it(
    token: str, answering: Callable[..., tuple[Ecr, Answers]]
) -> None:
    ecr, _ = answering(login(f"https://{HOST}", token))
    with pytest.raises(
        ImageError,
        match=r"^ECR in region 'eu-west-1' returned a login without user and password\.$",
    ):
        ecr.log_in()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            [refusal("AccessDeniedException")],
            r"^Cannot find the repository 'a' .* The caller needs ecr:DescribeRepositories\.$",
        ),
        (
            [refusal("RepositoryNotFoundException"), refusal("AccessDeniedException")],
            r"^Cannot create the repository 'a' .* The caller needs ecr:CreateRepository\.$",
        ),
        (
            [refusal("RepositoryNotFoundException"), refusal("LimitReachedException")],
            r"^Cannot create the repository 'a' in region .*: LimitReachedException: Said so\.$",
        ),
    ],
)
def test_what_ecr_refuses_is_reported_with_the_permission(
    answers: list[ClientError], message: str, answering: Callable[..., tuple[Ecr, Answers]]
) -> None:
    ecr, _ = answering(*answers)
    with pytest.raises(ImageError, match=message):
        ecr.require_repository("a", create=True)


def test_a_login_that_is_denied_names_its_permission(
    answering: Callable[..., tuple[Ecr, Answers]],
) -> None:
    ecr, _ = answering(refusal("AccessDeniedException"))
    with pytest.raises(ImageError, match=r"The caller needs ecr:GetAuthorizationToken\.$"):
        ecr.log_in()


def test_a_repository_that_somebody_else_just_made_is_fine(
    answering: Callable[..., tuple[Ecr, Answers]],
) -> None:
    exists = refusal("RepositoryAlreadyExistsException")
    ecr, client = answering(refusal("RepositoryNotFoundException"), exists)
    ecr.require_repository("a", create=True)
    assert client.asked == [{"repositoryNames": ["a"]}, {"repositoryName": "a"}]


def test_what_passes_is_tried_again(
    answering: Callable[..., tuple[Ecr, Answers]], clock: Any
) -> None:
    ecr, client = answering(
        refusal("ThrottlingException"), refusal("Odd", 503), login(f"https://{HOST}")
    )
    assert ecr.log_in().host == HOST
    assert len(client.asked) == 3
    assert 0 < max(clock.sleeps) <= LONGEST_PAUSE_S


def test_what_never_passes_ends_at_the_deadline(
    answering: Callable[..., tuple[Ecr, Answers]], clock: Any
) -> None:
    ecr, _ = answering(*[refusal("ThrottlingException")] * 100)
    began = clock.now
    with pytest.raises(ImageError, match=r"^Cannot log in to ECR .*: ThrottlingException: Said"):
        ecr.log_in()
    assert clock.now == pytest.approx(began + 30.0)
