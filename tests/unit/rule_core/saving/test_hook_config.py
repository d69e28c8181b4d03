import json
from functools import partial
from pathlib import Path

import answers
import pytest
from hook_answers import RAW, Json, answer, brief, modes, of, reduce
from recorded import MISSING, SHARED, classes

EVERY = "all biases default gradients losses weights"
RECORDED = SHARED / "l_json_config" / "expected.json"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_JOB_NAME", "SMDEBUG_CONFIG_FILE_PATH", "TENSORBOARD_CONFIG_FILE_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param({}, {}, id="empty"),
        pytest.param(
            {"HookParameters": None, "CollectionConfigurations": None}, {}, id="null-params"
        ),
        pytest.param(
            of({"save_interval": "7"}), {"save": (7, [], 0, None)}, id="save-interval-str"
        ),
        pytest.param(
            of(
                {
                    "save_interval": "10",
                    "save_steps": "1, 2,3",
                    "start_step": "5",
                    "end_step": "100",
                }
            ),
            {"save": (10, [1, 2, 3], 5, 100)},
            id="all-save-keys",
        ),
        pytest.param(
            of(
                {
                    "save_interval": 100,
                    "train.save_interval": "3",
                    "eval.save_steps": "1,2",
                    "predict.end_step": 0,
                    "global.start_step": 9,
                }
            ),
            {
                "save": modes(
                    (3, [], 0, None), (100, [1, 2], 0, None), (100, [], 0, 0), (100, [], 9, None)
                )
            },
            id="modes",
        ),
        pytest.param(
            of({"reductions": "min,abs_mean,l1_norm,abs_l2_norm"}),
            {"reduce": reduce("min,l1_norm,abs_mean,abs_l2_norm"), "losses.reduce": RAW},
            id="reductions",
        ),
        pytest.param(
            of({"reductions": "min", "save_raw_tensor": True}),
            {"reduce": reduce("min", raw=True), "losses.reduce": RAW},
            id="reductions-raw-bool",
        ),
        pytest.param(
            of({"save_raw_tensor": True, "save_shape": True}), {}, id="raw-without-reductions"
        ),
        pytest.param(
            of({"reductions": "", "save_shape": True}),
            {"reduce": reduce("", shape=True), "losses.reduce": RAW},
            id="empty-reductions-shape",
        ),
        pytest.param(
            of({"save_all": "true"}),
            {
                "saved": EVERY,
                "save_all": True,
                "all.regex": [".*"],
            },
            id="save-all-true",
        ),
        pytest.param(
            of({"save_all": 1}),
            {
                "saved": EVERY,
                "save_all": True,
                "all.regex": [".*"],
            },
            id="save-all-1",
        ),
        pytest.param(
            of({"include_regex": "a, b.*,c{1,2}"}),
            {
                "regex": ["a", "b.*", "c{1", "2}"],
                "saved": "default losses",
                "default.regex": ["a", "b.*", "c{1", "2}"],
            },
            id="include-regex",
        ),
        pytest.param(
            of({"include_workers": "all"}), {"all_workers": True}, id="include-workers-all"
        ),
        pytest.param(of({"include_workers": "ALL"}), {}, id="include-workers-any"),
        pytest.param(of({"dry_run": True}), {}, id="dry-run"),
        pytest.param(
            {"HookParameters": {"foo": 1}, "S3OutputPath": "s3://x/y", "Other": []},
            {},
            id="unknown-keys",
        ),
        pytest.param(
            of({"export_tensorboard": "true", "tensorboard_dir": "OUT/.tb"}),
            {"tensorboard": "OUT/.tb"},
            id="tensorboard",
        ),
        pytest.param(
            of({}, ("weights", {})), {"saved": "losses weights"}, id="one-builtin-collection"
        ),
        pytest.param(
            {
                "CollectionConfigurations": [
                    {"CollectionName": "weights", "CollectionParameters": None}
                ]
            },
            {"saved": "losses weights"},
            id="builtin-null-params",
        ),
        pytest.param(
            of(
                {"save_interval": 50, "eval.save_interval": 5, "reductions": "max"},
                ("weights", {"start_step": 3}),
                (
                    "mine",
                    {
                        "include_regex": "re1,re2",
                        "train.save_interval": 2,
                        "save_histogram": "False",
                    },
                ),
            ),
            {
                "save": modes(
                    (50, [], 0, None), (5, [], 0, None), (50, [], 0, None), (50, [], 0, None)
                ),
                "reduce": reduce("max"),
                "saved": "losses mine weights",
                "weights.save": modes(
                    (50, [], 3, None), (5, [], 3, None), (50, [], 3, None), (50, [], 3, None)
                ),
                "losses.reduce": RAW,
                "mine.regex": ["re1", "re2"],
                "mine.histogram": False,
                "mine.save": modes(
                    (2, [], 0, None), (5, [], 0, None), (50, [], 0, None), (50, [], 0, None)
                ),
            },
            id="collection-inherits",
        ),
        pytest.param(
            of({}, ("mine", {"include_regex": "x", "reductions": "std,abs_max"})),
            {"saved": "losses mine", "mine.regex": ["x"], "mine.reduce": reduce("std,abs_max")},
            id="collection-reductions",
        ),
        pytest.param(
            of({}, ("mine", {"include_regex": "x", "save_shape": True})),
            {"saved": "losses mine", "mine.regex": ["x"]},
            id="collection-save-shape-only",
        ),
        pytest.param(of({}, ("losses", {"reductions": "min"})), {}, id="losses-reductions-ignored"),
        pytest.param(
            of({}, ("losses", {"end_step": "0"})), {"losses.save": (500, [], 0, 0)}, id="losses-off"
        ),
        pytest.param(
            of({}, ("all", {})),
            {"saved": EVERY},
            id="collection-all",
        ),
        pytest.param({"CollectionConfigurations": []}, {}, id="empty-collections"),
        pytest.param(
            of({"include_regex": "relu"}, ("default", {"save_interval": 2})),
            {
                "regex": ["relu"],
                "saved": "default losses",
                "default.regex": ["relu"],
                "default.save": (2, [], 0, None),
            },
            id="default-collection",
        ),
        pytest.param(
            of({}, ("m", {"include_regex": "a"}), ("m", {"include_regex": "b"})),
            {"saved": "losses m", "m.regex": ["a", "b"]},
            id="duplicate-collection",
        ),
        # Beyond what was recorded.
        pytest.param("", {}, id="empty-file"),
        pytest.param(
            of(
                {
                    "save_raw_tensor": None,
                    "save_all": None,
                    "end_step": None,
                    "save_steps": None,
                    "include_regex": None,
                }
            ),
            {},
            id="null-values",
        ),
        pytest.param(
            of({"save_steps": [2, 1]}), {"save": (None, [2, 1], 0, None)}, id="list-of-steps"
        ),
        pytest.param(
            of({"reductions": ["min", "abs_l1_norm"], "save_raw_tensor": "True"}),
            {"reduce": reduce("min,abs_l1_norm", raw=True), "losses.reduce": RAW},
            id="text-is-true",
        ),
        pytest.param(
            of({"save_all": "TRUE"}),
            {
                "saved": EVERY,
                "save_all": True,
                "all.regex": [".*"],
            },
            id="any-case",
        ),
        pytest.param(
            of({"export_tensorboard": 1}),
            {"tensorboard": "/opt/ml/output/tensors/tensorboard"},
            id="tensorboard-by-default",
        ),
        pytest.param(
            of(
                {"train.save_interval": 5, "save_interval": 50},
                ("m", {"include_regex": "a", "save_interval": 7}),
            ),
            {
                "save": modes(
                    (5, [], 0, None), (50, [], 0, None), (50, [], 0, None), (50, [], 0, None)
                ),
                "saved": "losses m",
                "m.regex": ["a"],
                "m.save": (7, [], 0, None),
            },
            id="plain-of-a-collection-over-mode-of-the-hook",
        ),
        pytest.param(
            of({}, ("weights", {"include_regex": "a,b"})),
            {"saved": "losses weights", "weights.regex": ["^(?!gradient).*kernel", "a", "b"]},
            id="patterns-join",
        ),
        pytest.param(
            of({"include_regex": "a"}, ("default", {"include_regex": "zz"})),
            {"regex": ["a"], "saved": "default losses", "default.regex": ["a", "zz"]},
            id="patterns-of-default-join",
        ),
        pytest.param(
            of(
                {},
                ("m", {"include_regex": "a", "reductions": "min", "save_histogram": False}),
                ("m", {"include_regex": "b", "save_interval": 3}),
            ),
            {
                "saved": "losses m",
                "m.regex": ["a", "b"],
                "m.reduce": reduce("min"),
                "m.save": (3, [], 0, None),
            },
            id="listed-twice",
        ),
        pytest.param(
            of({"include_regex": "a,,"}, ("losses", {"save_histogram": "true"})),
            {"regex": ["a"], "saved": "default losses", "default.regex": ["a"]},
            id="blanks-match-nothing",
        ),
    ],
)
def test_a_file_says_what_is_saved(tmp_path: Path, content: object, expected: Json) -> None:
    assert brief(answer(tmp_path, content)) == expected


# Ours takes what the old library refused: truth as text, which SageMaker sends, in any case; steps
# as a list; a collection without a pattern, which `save_tensor` fills.
TAKEN = {
    "custom_without_regex": {"saved": "losses mine", "mine.regex": []},
    "doc_reduction_names": {"reduce": reduce("l1_norm"), "losses.reduce": RAW},
    "reductions_raw_str": {"reduce": reduce("min", raw=True), "losses.reduce": RAW},
    "save_all_TRUE": {
        "saved": EVERY,
        "save_all": True,
        "all.regex": [".*"],
    },
    "save_steps_list": {"save": (None, [1, 2], 0, None)},
}


def test_all_files_are_answered_as_recorded(tmp_path: Path) -> None:
    if not RECORDED.exists():
        pytest.skip(MISSING)
    cases = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert len(cases) == 36
    for case in cases:
        expected = case["out"]
        if case["case"] in TAKEN:
            assert "$exc" in expected
            assert brief(answer(tmp_path, case["config"])) == TAKEN[case["case"]]
        elif "$exc" in expected:
            error = answers.within(partial(answer, tmp_path, case["config"]), 20)
            assert expected["$exc"]["type"].rpartition(".")[2] in classes(error)
        else:
            assert answer(tmp_path, case["config"]) == expected
