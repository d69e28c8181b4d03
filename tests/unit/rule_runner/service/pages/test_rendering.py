from pathlib import Path

import pytest
import served
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from rule_runner.index.database import WatchDatabase
from rule_runner.service.application import build_application

BROWSER = {"accept": "text/html,application/xhtml+xml"}


def failing(request: Request) -> Response:
    raise HTTPException(request.path_params["status"], "Because of <b>this</b>.")


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    WatchDatabase.empty(tmp_path / "index.sqlite").close()
    application = build_application(served.service(tmp_path / "index.sqlite"))
    application.router.routes.insert(0, Route("/failing/{status:int}", failing))
    return TestClient(application, base_url="http://127.0.0.1")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 503, 418])
def test_browsers_get_a_page_that_says_why(client: TestClient, status: int) -> None:
    response = client.get(f"/failing/{status}", headers=BROWSER)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("text/html")
    assert "Because of &lt;b&gt;this&lt;/b&gt;." in response.text
    assert "<h1>" in response.text


def test_the_page_of_401_leads_to_the_login_and_back(client: TestClient) -> None:
    assert "/login?next=/failing/401" in client.get("/failing/401", headers=BROWSER).text


def test_other_clients_get_a_sentence(client: TestClient) -> None:
    assert client.get("/failing/404").text == "Because of <b>this</b>.\n"


def test_an_index_that_is_gone_is_a_page_too(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").unlink()
    response = client.get("/trials", headers=BROWSER)
    assert response.status_code == 503
    assert "Not available now" in response.text
