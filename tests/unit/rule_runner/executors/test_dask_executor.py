import pytest

dask = pytest.importorskip("dask", reason="dask is not installed.")
distributed = pytest.importorskip("distributed", reason="distributed is not installed.")

from executed_calls import doubled

from rule_runner.executors.dask_executor import DaskExecutor


def test_lost_worker_that_restarts_slowly_on_a_busy_machine_is_not_given_up() -> None:
    with DaskExecutor(workers=1) as executor:
        patience = dask.config.get("distributed.deploy.lost-worker-timeout")
        assert dask.utils.parse_timedelta(patience) >= 3600
        assert executor.submit(doubled, 2).result() == 4


def test_two_executors_on_one_machine_listen_on_ports_of_their_own() -> None:
    with DaskExecutor(workers=1) as one, DaskExecutor(workers=1) as other:
        assert (one.submit(doubled, 1).result(), other.submit(doubled, 2).result()) == (2, 4)
