"""Guard: which requests are let in, and what protects browsers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluating import WoundClock
from starlette.datastructures import URL
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from rule_runner.commands.serve import networks_of
from rule_runner.index.commands import Commands
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.states import WatchState
from rule_runner.service.access.guard import POLICY
from rule_runner.service.access.tokens import Role, TokenFile
from rule_runner.service.application import build_application
from rule_runner.service.service import Service
from rule_runner.service.settings import ServiceSettings

ACTION = "/api/v1/trials/1:reevaluate"
Open = Callable[..., TestClient]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Return what makes a client of a service with a judged trial."""
    database = tmp_path / "watch.sqlite"
    with WatchDatabase(database) as index:
        index.add([NewTrial("/r/a", "/r", True, False, "/o/a")], 10.0)
        index.update(1, state=WatchState.JUDGED)

    def open_client(peer: str = "127.0.0.1", host: str = "localhost", **fields: Any) -> TestClient:
        service = Service(
            settings=ServiceSettings(**fields),
            database=database,
            clock=WoundClock(),
            commands=Commands(),
        )
        application = build_application(service)
        scheme = "https" if service.settings.is_encrypted else "http"
        return TestClient(application, f"{scheme}://{host}", client=(peer, 1234))

    return open_client


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost", 200), ("127.0.0.1:8420", 200), ("[::1]:8420", 200), ("[::1]", 200)),
        *(("evil.example", 421), ("localhost.evil.example", 421), ("mine.example:80", 200)),
        *(("", 421), ("MINE.example", 200)),
    ],
)
def test_a_service_without_tokens_answers_to_its_own_names(
    host: str, status: int, opened: Open
) -> None:
    client = opened(allowed_hosts=("mine.example",))
    assert client.get("/api/v1/trials", headers={"Host": host}).status_code == status


def test_headers_protect_each_answer(opened: Open) -> None:
    client = opened()
    for address in ("/trials", "/api/v1/trials", "/none", "/healthz"):
        headers = client.get(address).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert "unsafe" not in POLICY
    refused = client.get("/", headers={"Host": "evil.example"})
    assert refused.headers["content-security-policy"] == POLICY


def test_nobody_is_let_in_without_a_valid_token(opened: Open, tokens: TokenFile) -> None:
    tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path, host="service.example")
    answer = client.get("/api/v1/trials")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert client.get("/metrics").status_code == 401
    assert client.get("/api/v1/events").status_code == 401
    assert client.post(ACTION).status_code == 401
    assert client.get("/api/v1/trials", headers=bearer("wrong")).status_code == 401
    assert client.get("/healthz").status_code == 200
    page = client.get("/trials?page=2", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=/trials%3Fpage%3D2")


def test_roles_and_revocation(opened: Open, tokens: TokenFile) -> None:
    reads, acts = tokens.add("reader", Role.READ), tokens.add("actor", Role.ACT)
    client = opened(tokens=tokens.path)
    assert client.get("/api/v1/trials", headers=bearer(reads)).status_code == 200
    refused = client.post(ACTION, headers=bearer(reads))
    assert (refused.status_code, "may read only" in refused.json()["error"]) == (403, True)
    assert client.post(ACTION, headers=bearer(acts)).status_code == 202
    tokens.revoke("actor")
    assert client.post(ACTION, headers=bearer(acts)).status_code == 401


def test_tokens_that_become_readable_for_others_let_nobody_in(
    opened: Open, tokens: TokenFile
) -> None:
    secret = tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    assert client.get("/api/v1/trials", headers=bearer(secret)).status_code == 200
    tokens.path.chmod(0o644)
    with capture_logs() as logs:
        refused = [client.get("/api/v1/trials", headers=bearer(secret)) for _ in range(3)]
        assert client.get("/healthz").status_code == 200
        assert log_in(client, secret).status_code == 503
    assert {answer.status_code for answer in refused} == {503}
    assert str(tokens.path) not in refused[0].text
    (problem,) = [entry for entry in logs if entry["event"] == "tokens_unusable"]
    assert "chmod 600" in problem["reason"]
    tokens.path.chmod(0o600)
    assert client.get("/api/v1/trials", headers=bearer(secret)).status_code == 200


def log_in(client: TestClient, secret: str, **fields: str) -> Any:
    return client.post("/login", data={"token": secret, **fields}, follow_redirects=False)


def csrf_of(client: TestClient) -> str:
    """Return the CSRF token of a page."""
    page = client.get("/trials", headers={"Accept": "text/html"}).text
    return page.split('name="csrf-token" content="')[1].split('"')[0]


def test_a_session_acts_with_the_token_of_its_pages_only(opened: Open, tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    answer = log_in(client, secret, next="/trials?page=2")
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/trials?page=2")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.post(ACTION).status_code == 403
    assert client.post(ACTION, headers={"X-CSRF-Token": "0" * 64}).status_code == 403
    own = {"X-CSRF-Token": csrf_of(client)}
    foreign = {"Origin": "https://evil.example"}
    assert client.post(ACTION, headers=own | foreign).status_code == 403
    assert client.post(ACTION, headers=own | {"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post(ACTION, headers=own | {"Origin": "http://localhost"}).status_code == 202
    assert client.post("/logout", follow_redirects=False).status_code == 303
    assert client.post(ACTION, headers=own).status_code == 401


def test_a_session_ends_with_its_token(opened: Open, tokens: TokenFile) -> None:
    client = opened(tokens=tokens.path)
    log_in(client, tokens.add("ann", Role.ACT))
    assert client.get("/api/v1/trials").status_code == 200
    tokens.revoke("ann")
    assert client.get("/api/v1/trials").status_code == 401


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_a_login_leads_to_the_service_only(place: str, opened: Open, tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.READ)
    assert log_in(opened(tokens=tokens.path), secret, next=place).headers["location"] == "/"


def test_a_wrong_token_cannot_be_tried_for_long(opened: Open, tokens: TokenFile) -> None:
    tokens.add("ann", Role.READ)
    client = opened(tokens=tokens.path)
    answers = [log_in(client, f"guess {number}") for number in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert client.get("/api/v1/trials", headers=bearer("guess")).status_code == 429
    assert client.get("/api/v1/trials", headers=bearer("other")).status_code == 401


def test_wrong_tokens_lock_out_nobody_behind_the_same_proxy(
    opened: Open, tokens: TokenFile
) -> None:
    secret = tokens.add("ann", Role.READ)
    client = opened(tokens=tokens.path)
    for _ in range(12):
        client.get("/api/v1/trials", headers=bearer(secret[:-1]))
        log_in(client, secret[:-1])
    assert client.get("/api/v1/trials", headers=bearer(secret[:-1])).status_code == 429
    assert client.get("/api/v1/trials", headers=bearer(secret)).status_code == 200
    assert log_in(client, secret).status_code == 303


def test_failures_are_counted_by_the_client_that_a_trusted_proxy_names(
    opened: Open, tokens: TokenFile
) -> None:
    tokens.add("ann", Role.READ)
    behind = opened("10.0.0.1", tokens=tokens.path, trusted_proxies=networks_of(["10.0.0.0/8"]))
    direct = opened("192.168.0.1", tokens=tokens.path)

    def last_of(client: TestClient, *chains: str) -> int:
        """Return the status of the last of eleven wrong tokens, sent through chains in turn."""
        turns = [chains[number % len(chains)] for number in range(11)]
        headers = [bearer("wrong") | {"X-Forwarded-For": chain} for chain in turns]
        return [client.get("/trials", headers=one).status_code for one in headers][-1]

    assert last_of(behind, "192.0.2.1", "192.0.2.2") == 401
    assert last_of(behind, "198.51.100.1, 192.0.2.3", "192.0.2.3, 10.0.0.2") == 429
    assert last_of(direct, "192.0.2.4", "192.0.2.5") == 429


@pytest.mark.parametrize("host", ["x/static/", "x/healthz?", "x/login#", "[", "x:y", "\xe9["])
def test_no_host_lets_a_request_in_without_a_token(
    host: str, opened: Open, tokens: TokenFile
) -> None:
    tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    for method, address in (("GET", "/api/v1/trials"), ("POST", ACTION), ("GET", "/metrics")):
        answer = client.request(method, address, headers={"Host": host.encode("latin-1")})
        assert answer.status_code == 401
    page = {"Host": host.encode("latin-1"), "Accept": "text/html"}
    answer = client.get("/trials?page=2", headers=page, follow_redirects=False)
    assert answer.headers["location"] == "/login?next=/trials%3Fpage%3D2"


def test_the_url_that_starlette_makes_of_the_host_decides_nothing(
    opened: Open, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    monkeypatch.setattr(HTTPConnection, "url", URL("http://x/static/"))
    assert client.get("/api/v1/trials").status_code == 401
    assert client.post(ACTION).status_code == 401


@pytest.mark.parametrize(
    "address",
    [
        *("//static/x", "/static", "/STATIC/x", "/healthz/", "/login/..", "/trials/"),
        *("/%2e%2e/static/x", "/api/v1/trials/1%2ffiles%2freport.html", "/;/static/"),
    ],
)
def test_no_spelling_of_an_address_lets_a_request_in(
    address: str, opened: Open, tokens: TokenFile
) -> None:
    tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    for method in ("GET", "HEAD", "OPTIONS", "POST", "TRACE"):
        answer = client.request(method, f"http://localhost{address}", follow_redirects=False)
        assert answer.status_code == 401


def test_no_redirect_is_made_from_the_host(opened: Open, tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    headers = bearer(secret) | {"Host": "evil.example"}
    assert client.get("/trials/", headers=headers, follow_redirects=False).status_code == 404


def test_a_cookie_of_tls_is_secure(opened: Open, tokens: TokenFile) -> None:
    pem = Path("cert.pem")
    client = opened(tokens=tokens.path, tls_cert=pem, tls_key=pem)
    answer = log_in(client, tokens.add("ann", Role.READ))
    assert answer.headers["set-cookie"].startswith("__Host-rule-runner=")
    assert "Secure" in answer.headers["set-cookie"]
    assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        ("10.1.2.3", {"X-User": "ann"}, 200),
        ("10.1.2.3", {}, 401),
        ("10.1.2.3", {"X-User": "a\tb"}, 401),
        ("10.1.2.3", {"X-User": "a" * 201}, 401),
        ("192.168.0.1", {"X-User": "ann"}, 401),
        ("192.168.0.1", {"X-User": "ann", "X-Forwarded-For": "10.1.2.3"}, 401),
        ("testclient", {"X-User": "ann"}, 401),
    ],
)
def test_only_trusted_proxies_name_users(
    peer: str, headers: dict[str, str], status: int, opened: Open
) -> None:
    proxies = networks_of(["10.0.0.0/8"])
    client = opened(peer, "service.example", trusted_proxies=proxies, user_header="X-User")
    assert client.get("/api/v1/trials", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        ("10.1.2.3", {"X-Forwarded-Host": "service.example"}, 202),
        ("10.1.2.3", {"X-Forwarded-Host": "SERVICE.example:443"}, 202),
        ("10.1.2.3", {"X-Forwarded-Host": "evil.example, service.example"}, 202),
        ("10.1.2.3", {"X-Forwarded-Host": "service.example, evil.example"}, 403),
        ("10.1.2.3", {"Host": "service.example"}, 202),
        ("10.1.2.3", {}, 403),
        ("10.1.2.3", {"X-Forwarded-Host": "["}, 403),
        ("192.168.0.1", {"X-Forwarded-Host": "service.example"}, 403),
        ("192.168.0.1", {"Host": "service.example"}, 202),
    ],
)
def test_a_page_may_act_through_a_proxy_that_sets_host_to_its_upstream(
    peer: str, headers: dict[str, str], status: int, opened: Open, tokens: TokenFile
) -> None:
    secret = tokens.add("ann", Role.ACT)
    proxies = networks_of(["10.0.0.0/8"])
    client = opened(peer, "upstream:8420", tokens=tokens.path, trusted_proxies=proxies)
    page = bearer(secret) | {"Origin": "https://service.example"} | headers
    assert client.post(ACTION, headers=page).status_code == status


@pytest.mark.parametrize("origin", ["null", "http://[", "http://", "localhost", "ftp://localhost"])
def test_an_origin_that_is_none_may_not_act(origin: str, opened: Open) -> None:
    client = opened()
    headers = {"Origin": origin, "X-CSRF-Token": csrf_of(client)}
    assert client.post(ACTION, headers=headers).status_code == 403


def test_a_session_over_tls_that_ends_at_a_trusted_proxy_is_secure(
    opened: Open, tokens: TokenFile
) -> None:
    secret = tokens.add("ann", Role.READ)
    proxies = networks_of(["10.0.0.0/8"])
    client = opened("10.1.2.3", tokens=tokens.path, trusted_proxies=proxies)
    forwarded = {"X-Forwarded-Proto": "https", "Origin": "http://localhost"}
    refused = client.post("/login", data={"token": secret}, headers=forwarded)
    assert refused.status_code == 403
    forwarded["Origin"] = "https://localhost"
    answer = client.post(
        "/login", data={"token": secret}, headers=forwarded, follow_redirects=False
    )
    name, _, session = answer.headers["set-cookie"].partition(";")[0].partition("=")
    assert (name, "Secure" in answer.headers["set-cookie"]) == ("__Host-rule-runner", True)
    assert "max-age" in answer.headers["strict-transport-security"]
    headers = {"X-Forwarded-Proto": "https", "Cookie": f"{name}={session}"}
    assert client.get("/api/v1/trials", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        *("X-User", "Authorization", "Host", "Origin", "Sec-Fetch-Site", "X-CSRF-Token"),
        *("X-Forwarded-Host", "X-Forwarded-Proto"),
    ],
)
def test_a_header_that_decides_may_be_given_once(name: str, opened: Open) -> None:
    proxies = networks_of(["10.0.0.0/8"])
    client = opened("10.1.2.3", trusted_proxies=proxies, user_header="X-User")
    others = [] if name == "X-User" else [("X-User", "ann")]
    answer = client.get("/api/v1/trials", headers=[*others, (name, "a"), (name, "a")])
    assert (answer.status_code, "more than once" in answer.json()["error"]) == (400, True)


def test_a_new_login_ends_the_session_before(opened: Open, tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.READ)
    client = opened(tokens=tokens.path)
    before = log_in(client, secret).headers["set-cookie"].partition(";")[0]
    log_in(client, secret)
    assert client.get("/api/v1/trials").status_code == 200
    client.cookies.clear()
    assert client.get("/api/v1/trials", headers={"Cookie": before}).status_code == 401


def test_programs_on_this_machine_need_no_token_and_pages_of_others_cannot_act(
    opened: Open,
) -> None:
    client = opened()
    assert client.post(ACTION).status_code == 202
    assert client.post(ACTION, headers={"Origin": "http://localhost"}).status_code == 403
    assert client.post(ACTION, headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    own = {"Origin": "http://localhost", "X-CSRF-Token": csrf_of(client)}
    assert client.post(ACTION, headers=own).status_code == 202


def test_long_bodies_are_rejected(opened: Open) -> None:
    client = opened()
    assert client.post(ACTION, content=b"{}" + b" " * 65_536).status_code == 413
    assert client.post(ACTION, content=iter([b" " * 65_536, b"{}"])).status_code == 413
    assert client.post(ACTION, headers={"Content-Length": "many"}).status_code == 413


def test_actions_are_logged_with_their_authors(opened: Open, tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.ACT)
    client = opened(tokens=tokens.path)
    with capture_logs() as logs:
        client.post(ACTION, headers=bearer(secret))
        client.get("/api/v1/trials", headers=bearer(secret))
    (entry,) = [entry for entry in logs if entry["event"] == "request"]
    assert (entry["who"], entry["path"], entry["status"]) == ("ann", ACTION, 202)
    assert secret not in str(logs)


def test_too_many_actions_must_wait(opened: Open) -> None:
    client = opened()
    statuses = [client.post(ACTION).status_code for _ in range(70)]
    assert statuses[:60] == [202] * 60
    assert 429 in statuses
