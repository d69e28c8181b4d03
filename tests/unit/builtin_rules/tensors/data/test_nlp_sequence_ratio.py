"""NLPSequenceRatio: which tokens have too large a share, at which steps."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save
from members import save_members
from numpy.typing import NDArray

from builtin_rules import NLPSequenceRatio
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAME = "embedding0_input_0"
NOT_TOKENS = "no values that are tokens at this step"
NO_TOKENS = "no sequences of tokens at this step"
Array = NDArray[Any]


def tokens(zeros: int, size: int = 10, dtype: Any = np.int64) -> Array:
    """Return two sequences with so many zeros of all tokens."""
    values = np.arange(1, size + 1)
    values[:zeros] = 0
    return values.astype(dtype).reshape(2, -1)


def judged(root: Path, values: list[Any], name: str = NAME, **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"fc.weight": np.ones(2)} if value is None else {name: value}
        for at, value in enumerate(values)
    }
    return judge(NLPSequenceRatio, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([tokens(0), tokens(4), tokens(6)], [2], id="too-much-padding"),
        pytest.param([tokens(9), tokens(1), tokens(9)], [0, 2], id="each-step-by-itself"),
        pytest.param([tokens(5)], [], id="half-is-not-more-than-half"),
        pytest.param([tokens(6)], [0], id="one-step"),
        pytest.param([tokens(6), None, tokens(6)], [0, 2], id="missing-at-a-step"),
        pytest.param([tokens(6), tokens(30, 40)], [0, 1], id="another-shape"),
        pytest.param([tokens(6)[0], np.int64(0), np.int64(1)], [0, 1], id="any-dimensions"),
        pytest.param([tokens(6)[:, :, np.newaxis]], [0], id="three-dimensions"),
    ],
)
def test_it_is_met_where_a_token_has_too_large_a_share(
    values: list[Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, values, literal=True).met == met


@pytest.mark.parametrize(
    ("zeros", "params", "severity"),
    [
        pytest.param(51, {}, Severity.NOTE, id="half"),
        pytest.param(66, {}, Severity.NOTE, id="less-than-two-thirds"),
        pytest.param(67, {}, Severity.WARNING, id="more-than-two-thirds"),
        pytest.param(51, {"literal": True}, Severity.WARNING, id="literal"),
        pytest.param(51, {"token_thresholds_percent": 49}, Severity.WARNING, id="a-users-limit"),
    ],
)
def test_padding_up_to_two_thirds_is_a_note(
    zeros: int, params: dict[str, Any], severity: Severity, tmp_path: Path
) -> None:
    found = judged(tmp_path, [tokens(zeros, 100)], **params)
    assert [finding.severity for finding in found.findings] == [severity]
    assert found.met == ([] if severity is Severity.NOTE else [0])


def test_evidence_names_tensor_share_limit_and_token(tmp_path: Path) -> None:
    found = judged(tmp_path, [tokens(7)])
    assert found.findings == [
        Finding(0, NAME, None, 70.0, 50.0, "Token 0: 7 of 10.", Severity.WARNING)
    ]


@pytest.mark.parametrize(
    ("values", "limits", "found"),
    [
        ("0, 3", "50, 50", {}),
        ("0, 3", "49.9, 33.4", {0: 50.0}),
        ("0,3", "20 , 33.3", {0: 50.0, 3: 100 / 3}),
        ("7", "0", {7: 100 / 6}),
        ("8", "0", {}),
        ([3.0, 0], [10, "10"], {3: 100 / 3, 0: 50.0}),
        (3, 10.5, {3: 100 / 3}),
    ],
)
def test_each_token_has_its_limit(
    values: Any, limits: Any, found: dict[int, float], tmp_path: Path
) -> None:
    params = {"token_values": values, "token_thresholds_percent": limits}
    findings = judged(tmp_path, [np.array([[0, 0, 0, 3, 3, 7]])], **params).findings
    shares = {int(str(one.note)[len("Token ")]): one.measured for one in findings}
    assert shares == found


def test_the_tokens_of_all_workers_are_counted_together(tmp_path: Path) -> None:
    for worker, zeros in (("worker_0", 9), ("worker_1", 0)):
        save(tmp_path, {0: {NAME: tokens(zeros)}}, num_workers=2, worker=worker)
    assert judge(NLPSequenceRatio, tmp_path).met == []
    (finding,) = judge(NLPSequenceRatio, tmp_path, token_thresholds_percent=40).findings
    assert (finding.measured, finding.worker, finding.note) == (45.0, None, "Token 0: 9 of 20.")


def test_tensors_are_judged_apart(tmp_path: Path) -> None:
    names = {
        "embedding0_input_0": tokens(6),
        "embedding1_input_0": tokens(0),
        "wte_input_0": tokens(7),
    }
    found = judge(NLPSequenceRatio, save(tmp_path, {0: names}))
    assert [one.tensor for one in found.findings] == ["embedding0_input_0", "wte_input_0"]


def test_no_later_step_is_read(tmp_path: Path) -> None:
    values = [tokens(zeros) for zeros in (8, 0, 9, 5, 7)]
    for end in range(1, 6):
        part = judged(tmp_path / str(end), values[:end])
        assert part.met == [step for step in (0, 2, 4) if step < end]


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.int8, np.uint8, np.uint64]
)
def test_all_types_of_numbers_are_judged(dtype: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, [tokens(5, dtype=dtype), tokens(7, dtype=dtype)]).met == [1]


def test_a_token_that_the_type_does_not_hold_is_missing(tmp_path: Path) -> None:
    found = judged(tmp_path, [tokens(6, dtype=np.float16)], token_values=70000)
    assert (found.met, found.skipped) == ([], {})


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3), np.int64),
        np.array(["text"]),
        np.zeros((2, 2), np.complex64),
        np.full((2, 2), np.nan),
        np.array([[0.0, 0.0, 0.5]]),
        np.array([[0.0, 0.0, np.inf], [0.0, 0.0, np.nan]]),
        np.zeros((2, 2), np.bool_),
    ],
    ids=["empty", "text", "complex", "nan", "no-whole-numbers", "infinity", "flags"],
)
def test_what_holds_no_tokens_is_not_judged(value: Array, tmp_path: Path) -> None:
    assert judged(tmp_path, [value]).skipped == {0: NOT_TOKENS}


def test_an_explicit_pattern_takes_all_numbers_for_tokens(tmp_path: Path) -> None:
    values = [np.array([0.0, 0.0, np.nan]), np.array([0.0, np.nan]), np.array([False])]
    assert judged(tmp_path, values, "x", tensor_regex="x", literal=True).met == [0, 2]


def test_reductions_do_not_tell_tokens_apart(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={4: {NAME: {("mean", False): 0.0}}})
    assert judge(NLPSequenceRatio, tmp_path).skipped == {4: NOT_TOKENS}


def test_a_trial_without_tokens_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, [None]).skipped == {0: NO_TOKENS}


# -- names of frameworks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *(
            "embedding0_input_0",
            "rnnmodel0_embedding0_input_0",
            "embedding_input_0",
            "embed_input_0",
        ),
        *("Embedding_input_0", "encoder.embedding_input_0", "embed_tokens_input_0"),
        *("transformer.wte_input_0", "bert.embeddings.word_embeddings_input_0"),
        *(
            "token_embedding_input_0",
            "embedding_1_input_0",
            "embedding_input_1",
            "emb.embed_input_input",
        ),
        *("model.shared_input_0", "BertModel_input_input_ids", "composer.embedding_input_0"),
        *("embedding/inputs", "embedding_1/inputs", "token_embedding/inputs", "embedding/inputs_1"),
        "token_and_position_embedding/inputs",
    ],
)
def test_tokens_are_found_in_every_framework(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [tokens(9)], name).met == [0]


@pytest.mark.parametrize(
    "name",
    [
        *("embedding_output_0", "embedding/outputs", "embedding.weight", "fc_input_0", "labels"),
        *("gradient/embedding.weight", "position_embeddings_input_0", "pos_embed_input_0"),
        *("transformer.wpe_input_0", "embeddings.token_type_embeddings_input_0"),
        *("segment_embedding_input_0", "patch_embed_input_0", "time_embed_input_0"),
        *("embeddings.LayerNorm_input_0", "position_embedding/inputs", "unshared_input_0"),
        *("BertModel_input_attention_mask", "patch_embedding/inputs"),
    ],
)
def test_other_tensors_are_not_taken_for_tokens(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [tokens(9)], name).skipped == {0: NO_TOKENS}


def test_the_collection_of_the_hooks_belongs_to_the_default(tmp_path: Path) -> None:
    steps = {0: {"Net_input_0": tokens(9), "Other_input_0": tokens(9)}}
    save_members(tmp_path, steps, {"Net_input_0": "input_sequence"})
    assert [one.tensor for one in judge(NLPSequenceRatio, tmp_path).findings] == ["Net_input_0"]
    explicit = judge(NLPSequenceRatio, tmp_path, tensor_regex=["^Other"])
    assert [one.tensor for one in explicit.findings] == ["Other_input_0"]


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"token_values": "0, x"}, r"'token_values' must be finite numbers .*, got '0, x'\.$"),
        ({"token_values": "nan"}, r"'token_values' must be finite numbers .*, got 'nan'\.$"),
        ({"token_values": [True]}, r"'token_values' must be finite numbers .*, got \[True\]\.$"),
        ({"token_values": " , "}, r"'token_values' must be finite numbers .*, got ' , '\.$"),
        ({"token_values": {"0": 1}}, r"'token_values' must be finite numbers "),
        (
            {"token_thresholds_percent": "101"},
            r"'token_thresholds_percent' must be numbers in \[0, 100\] .*, got '101'\.$",
        ),
        ({"token_thresholds_percent": [-1]}, r"'token_thresholds_percent' must be .*\[-1\]\.$"),
        (
            {"tensor_regex": "("},
            r"'tensor_regex' must be comma-separated regular expressions, got '\('",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=f"^Parameter {message}"):
        judged(tmp_path, [], **params)


def test_as_many_limits_as_tokens_are_needed(tmp_path: Path) -> None:
    message = (
        r"^Parameters 'token_values' and 'token_thresholds_percent' must have the same number of "
        r"entries, got 2 and 1\.$"
    )
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [], token_values=["0", 1])


def test_nothing_given_is_the_default(tmp_path: Path) -> None:
    params = {"tensor_regex": "", "token_values": "None", "token_thresholds_percent": ""}
    assert judged(tmp_path, [tokens(5), tokens(7)], **params).met == [1]
