from pathlib import Path

import profiler_writer
import served
from starlette.testclient import TestClient

from rule_runner.index.database import WatchDatabase
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


def test_a_profile_is_curves_over_time(tmp_path: Path) -> None:
    profiler_writer.write(tmp_path / "a", profiler_writer.minute(0, cpu0=50.0))
    with WatchDatabase.empty(tmp_path / "index.sqlite") as database:
        trial = served.add(database, str(tmp_path / "a"))
        gone = served.add(database, str(tmp_path / "gone"))
    service = served.service(tmp_path / "index.sqlite")
    client = TestClient(build_application(service), "http://127.0.0.1")
    page = client.get(f"/api/v1/trials/{trial.id}/profile").json()
    [cpu] = page["series"]
    begin = profiler_writer.BEGIN_S * 1000
    assert (cpu["kind"], cpu["name"], cpu["unit"], cpu["steps"][0]) == ("cpu", "algo-1", "%", begin)
    assert (page["complete"], page["last_step"]) == (True, begin + 50_000)
    later = client.get(f"/api/v1/trials/{trial.id}/profile?after={begin + 40_000}").json()
    assert later["series"][0]["steps"] == [begin + 50_000]
    problem = client.get(f"/api/v1/trials/{gone.id}/profile").json()["problem"]
    assert "gone' does not exist." in problem
