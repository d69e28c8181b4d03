from pathlib import Path

import served
from starlette.testclient import TestClient

from rule_runner.fleet.watch.database import WatchDatabase
from rule_runner.service.application import build_application


def test_curves_are_data(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log.csv").write_text("step,loss\n1,0.5\n2,0.25\n")
    with WatchDatabase.empty(tmp_path / "index.sqlite") as database:
        trial = served.add(database, str(tmp_path / "a"))
    service = served.service(tmp_path / "index.sqlite")
    client = TestClient(build_application(service), "http://127.0.0.1")
    address = f"/api/v1/trials/{trial.id}/series"
    page = client.get(f"{address}?after=1&points=10&names=loss,other").json()
    assert [(item["name"], item["steps"]) for item in page["series"]] == [("loss", [2])]
    for query in ("points=1", "points=x", "after=now", "nmaes=a"):
        assert client.get(f"{address}?{query}").status_code == 400, query
    assert client.get("/api/v1/trials/77/series").status_code == 404
