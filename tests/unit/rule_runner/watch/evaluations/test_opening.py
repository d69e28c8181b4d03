from pathlib import Path
from unittest import mock

from rule_runner.watch.config import WatchConfig
from rule_runner.watch.evaluations import open_evaluations, opening
from rule_runner.watch.evaluations.local import LocalEvaluations
from rule_runner.watch.options import Intervals


def test_evaluations_run_here_unless_an_executor_is_named(tmp_path: Path) -> None:
    config = WatchConfig(output=str(tmp_path / "out" / "{trial}"))
    assert isinstance(open_evaluations(config, tmp_path / "state", Intervals()), LocalEvaluations)


def test_workers_must_see_local_outputs_and_calls_have_one_attempt(tmp_path: Path) -> None:
    places = {str(tmp_path / "out" / "{trial}"): tmp_path / "out", "s3://bucket/{trial}": None}
    for output, shared in places.items():
        config = WatchConfig(output=output, executor="ray://h:1")
        with (
            mock.patch.object(opening, "opener") as opener,
            mock.patch.object(opening, "ClusterConnection") as connection,
        ):
            open_evaluations(config, tmp_path / "state", Intervals())
        opener.assert_called_once_with("ray://h:1", attempts=1)
        assert connection.call_args.args[:3] == ("ray://h:1", opener.return_value, shared)
