"""What rules declare is resolved once for each list of names, and anew for other collections."""

import numpy as np
from steps_saved import record, step_files

from rule_core.format.index_file import IndexFile, IndexParser
from rule_core.format.paths import StepFile
from rule_core.model.collection import Collection
from rule_core.model.reductions import Reduction
from rule_core.rules.requirements import TensorInput
from rule_core.rules.wants import DeclaredWants, WantedMeasure

L2, MEAN = Reduction("l2"), Reduction("mean")
NAMES = ("gradient/a", "gradient/b", "weight/a")
GRADIENTS = {"gradients": Collection("gradients", include_regex=["^gradient/"])}


def index_file(step: int) -> IndexFile:
    records = {name: record(np.ones(2, np.float32), step, name) for name in NAMES}
    (key, content) = [*step_files(step, records).items()][1]
    return IndexParser().parse(content, key, StepFile(step, "worker_0"))


def test_collections_and_patterns_select_names() -> None:
    declared = DeclaredWants(
        [
            WantedMeasure(L2, TensorInput("", ("gradients", "unknown"))),
            WantedMeasure(L2, TensorInput("", (), ("^weight",))),
            WantedMeasure(MEAN, TensorInput("", (), ("a$",), excluding="^weight")),
            WantedMeasure(MEAN, TensorInput("", (), ("nothing",)), 2),
        ]
    )
    assert declared.wants == [(L2, 0), (MEAN, 0), (MEAN, 2)]
    assert declared.of(index_file(1), GRADIENTS, 1) == {
        (L2, 0): frozenset(NAMES),
        (MEAN, 0): {"gradient/a"},
    }


def test_files_with_the_same_names_share_one_object() -> None:
    declared = DeclaredWants([WantedMeasure(L2, TensorInput("", ("gradients",)))])
    first = declared.of(index_file(1), GRADIENTS, 1)
    assert declared.of(index_file(2), GRADIENTS, 1) is first
    assert declared.of(index_file(2), {}, 2) == {}
