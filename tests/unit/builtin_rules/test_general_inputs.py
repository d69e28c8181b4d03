"""general_inputs: which of the inputs that most rules need a trial holds."""

from pathlib import Path

import pytest

from builtin_rules.general_inputs import general_inputs
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.trials import create_trial


@pytest.mark.parametrize(("mode", "evaluated"), [(ModeKeys.TRAIN, False), (ModeKeys.EVAL, True)])
def test_losses_count_for_the_mode_that_saved_them(
    tmp_path: Path, mode: ModeKeys, evaluated: bool
) -> None:
    patterns = {"losses": "loss", "weights": "^weight"}
    with TrialWriter(str(tmp_path / "trial"), collections=patterns) as trial:
        trial.step(0, {"loss": 1.0, "weight": [1.0, 2.0]}, mode=mode)
    assert general_inputs(create_trial(str(tmp_path / "trial"))) == {
        "losses": True,
        "learning rates": False,
        "gradients": False,
        "weights": True,
        "evaluation losses": evaluated,
    }
