"""The trials that the tests of the documents ask."""

from pathlib import Path

import documented_trial as documented
import pytest

from smdebug.trials import Trial, create_trial


@pytest.fixture(scope="session")
def documented_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documented") / "resnet"
    documented.write(path)
    return path


@pytest.fixture(scope="session")
def ended(documented_path: Path) -> Trial:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
        trial = create_trial(path=str(documented_path), name="resnet_training_run")
        trial.steps()
    return trial


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Return a running trial of two workers."""
    path = tmp_path_factory.mktemp("workers")
    documented.write_workers(path, ended=False)
    return create_trial(str(path))
