import json
import re
from typing import Any

import pytest

from rule_core.exceptions import (
    CorruptFileError,
    SMDebugTypeError,
    SMDebugValueError,
    TruncatedFileError,
)
from rule_core.model.collection import (
    Collection,
    CollectionKeys,
    CollectionsFile,
    parse_collections,
)
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys

KEY = "collections/000000000/worker_0_collections.json"


def parse(content: object) -> CollectionsFile:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return parse_collections(memoryview(data), KEY)


def file(workers: Any = 1, **collections: Any) -> dict[str, Any]:
    return {"collections": collections, "_meta": {"num_workers": workers}}


def test_members_are_named_or_match() -> None:
    collection = Collection("losses", ["^loss"], {"named"})
    collection.include(["output$", ["x"]], "y")
    collection.add_tensor_name("added")
    collection.remove_tensor_name("never there")
    names = ["z", "loss/1", "named", "added", "my_output", "by", "output_not"]
    assert collection.members(names) == ["loss/1", "named", "added", "my_output", "by"]
    collection.remove_tensor_name("named")
    assert collection.members(names) == ["loss/1", "added", "my_output", "by"]
    assert collection.include_regex == ["^loss", "output$", "x", "y"]


# What smdebug 1.0.34 writes.
OLD_JSON = (
    '{"name": "c", "include_regex": ["x"], "tensor_names": ["t"], "reduction_config": '
    '{"save_raw_tensor": false, "reductions": "min,abs_l2_norm", "save_shape": false}, '
    '"save_config": {"TRAIN": {"save_interval": 3, "save_steps": [], "start_step": 0, '
    '"end_step": null}, "EVAL": null, "PREDICT": null, "GLOBAL": null}, "save_histogram": true}'
)


def test_json_makes_a_round_trip_and_is_that_of_old() -> None:
    reductions = ReductionConfig(reductions=["min"], abs_norms=["l2"])
    saving = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(3)})
    given = Collection("c", ["x"], ["t"], reductions, saving)
    assert given.to_json() == OLD_JSON
    assert Collection.from_json(OLD_JSON) == given
    assert Collection.from_json(Collection("d").to_json()) == Collection("d")
    assert Collection.from_dict({"name": "e", "tensor_names": ["w"]}).has_tensor_name("w")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 3}', '{"name": "c", "save_config": 3}'])
def test_json_of_anything_else_is_rejected(text: str) -> None:
    with pytest.raises((SMDebugValueError, SMDebugTypeError)):
        Collection.from_json(text)


def test_names_may_be_replaced() -> None:
    collection = Collection("c", tensor_names=["a"])
    collection.tensor_names = ["b", "b"]
    assert collection.tensor_names == {"b"}
    with pytest.raises(
        SMDebugTypeError, match=r"^Tensor names must be a list or a set, got 'b'\.$"
    ):
        collection.tensor_names = "b"


def test_only_strings_are_patterns() -> None:
    with pytest.raises(SMDebugTypeError, match=r"^A pattern must be a string or .*, got 3\.$"):
        Collection("c").include(["a", 3])
    with pytest.raises(re.error, match="unterminated"):
        Collection("c", "(").members(["a"])


def test_collections_are_equal_by_content_and_hashed_by_name() -> None:
    one, two = Collection("c", ["a"], ["b"]), Collection("c", "a", {"b"})
    assert one == two
    assert hash(one) == hash(two) == hash("c")
    two.add_tensor_name("x")
    assert one != two
    assert one != "c"
    assert repr(one) == "Collection('c', include_regex=['a'], tensor_names=['b'])"


def test_a_copy_is_its_own() -> None:
    one = Collection("c", ["a"], ["b"])
    other = one.copy()
    other.include("x")
    other.add_tensor_name("y")
    assert one == Collection("c", ["a"], ["b"])


def test_one_absorbs_another() -> None:
    one = Collection("c", ["a"], ["b"])
    one.absorb(Collection("c", ["a", "x"], ["y"]))
    assert one == Collection("c", ["a", "x"], ["b", "y"])


def test_the_documented_names_are_there() -> None:
    names = {name: value for name, value in vars(CollectionKeys).items() if name.isupper()}
    assert all(name.lower() == value for name, value in names.items())
    assert {"losses", "gradients", "weights", "biases", "default", "all"} <= set(names.values())


def test_a_file_is_read() -> None:
    config = {"save_raw_tensor": True, "reductions": "min", "save_shape": False}
    losses = {
        "name": "losses",
        "include_regex": ["loss"],
        "tensor_names": ["x"],
        "reduction_config": config,
        "save_config": {"TRAIN": None},
        "save_histogram": False,
    }
    result = parse(file("2", losses=losses, key={"name": "other", "include_regex": "a"}))
    assert result.num_workers == 2
    # The name inside counts, not the key.
    assert result.collections == {
        "losses": Collection("losses", ["loss"], ["x"], config, {"TRAIN": None}, False),
        "other": Collection("other", ["a"]),
    }


def test_configurations_may_be_dictionaries() -> None:
    reductions = {"reductions": "min", "save_raw_tensor": True}
    one = Collection("c", reduction_config=reductions, save_config={"TRAIN": {"save_interval": 2}})
    assert one.reduction_config == ReductionConfig(["min"], save_raw_tensor=True)
    assert one.save_config == SaveConfig({ModeKeys.TRAIN: SaveConfigMode(2)})
    one.reduction_config, one.save_config = None, {ModeKeys.EVAL: SaveConfigMode(3)}
    assert one.reduction_config is None
    assert one.save_config == SaveConfig({ModeKeys.EVAL: SaveConfigMode(3)})
    wrong: Any = 5
    with pytest.raises(SMDebugTypeError, match=r"^A save configuration must be .*, got 5\.$"):
        one.save_config = wrong
    with pytest.raises(SMDebugTypeError, match=r"^A reduction configuration must .*, got 5\.$"):
        one.reduction_config = wrong


def test_a_collection_becomes_the_object_of_a_file() -> None:
    assert Collection("c").to_json_dict() == {
        "name": "c",
        "include_regex": [],
        "tensor_names": [],
        "reduction_config": None,
        "save_config": None,
        "save_histogram": True,
    }
    mode = {"save_interval": 2, "save_steps": [1], "start_step": 0, "end_step": None}
    content = {
        "name": "d",
        "include_regex": ["x", "y"],
        "tensor_names": ["a", "b"],
        "reduction_config": {"save_raw_tensor": True, "reductions": "min", "save_shape": False},
        "save_config": {"TRAIN": mode, "EVAL": None, "PREDICT": mode, "GLOBAL": None},
        "save_histogram": False,
    }
    found = parse(file(d=content)).collections["d"]
    assert found.to_json_dict() == content
    assert list(found.to_json_dict()) == list(content)
    one = Collection("d", ["x", "y"], ["b", "a"], None, None, False)
    one.reduction_config, one.save_config = found.reduction_config, found.save_config
    assert one == found
    one.save_config = None
    assert one != found


@pytest.mark.parametrize(
    "field",
    [
        {"save_config": 5},
        {"save_config": [1]},
        {"save_config": {"TRAIN": {"save_interval": 0}}},
        {"save_config": {"train": None}},
        {"reduction_config": "min"},
        {"reduction_config": {"reductions": "mode"}},
        {"reduction_config": {"save_shape": []}},
    ],
)
def test_a_configuration_that_is_not_understood_hides_no_collection(field: dict[str, Any]) -> None:
    found = parse(file(c={"name": "c", "tensor_names": ["x"], **field})).collections
    assert found == {"c": Collection("c", tensor_names=["x"])}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "Expected `object`, got `array`"),
        (b"nonsense", "collections and their _meta, got "),
        ({"collections": {}}, "missing required field `_meta`"),
        ({"_meta": {"num_workers": 1}}, "missing required field `collections`"),
        ({**file(), "more": 1}, "unknown field `more`"),
        (file(0), "at least 1 worker, got 0"),
        (file("-1"), "at least 1 worker, got -1"),
        (file("two"), "invalid literal for int"),
        (file(1.5), "Expected `int"),
        (file("9" * 5000), "Exceeds the limit"),
        (file(c={"include_regex": ["a"]}), "missing required field `name`"),
        (file(c={"name": "c", "include_regex": [1]}), "Expected `str`, got `int`"),
        (b"[" * 200_000, "collections and their _meta"),
        (b"\xff", "collections and their _meta"),
    ],
)
def test_a_wrong_file_is_corrupt(content: object, message: str) -> None:
    with pytest.raises((CorruptFileError, TruncatedFileError), match=re.escape(message)) as raised:
        parse(content)
    assert str(raised.value).startswith(f"File '{KEY}' is c")
    assert str(raised.value).endswith(".")


def test_every_prefix_of_a_file_is_cut_off() -> None:
    content = json.dumps(file(1, losses={"name": "losses"})).encode()
    assert parse(content).num_workers == 1
    for size in range(len(content)):
        with pytest.raises(TruncatedFileError, match=rf"^File '{KEY}' is cut off: expected "):
            parse(content[:size])


WEIGHTS = "^(?!gradient).*weight"
BIASES = "^(?!gradient).*bias"


@pytest.mark.parametrize(
    ("collection", "pattern", "name", "is_member"),
    [
        pytest.param("weights", WEIGHTS, "fc.weight", True, id="weight"),
        pytest.param("weights", WEIGHTS, "feature_importance/weight/f0", False, id="importance"),
        pytest.param("weights", WEIGHTS, "hyperparameters/scale_pos_weight", False, id="setting"),
        pytest.param("weights", WEIGHTS, "average_shap/weight", False, id="feature"),
        pytest.param("weights", WEIGHTS, "Net_weight_norm_output_0", False, id="output"),
        pytest.param("weights", "weight|output", "Net_weight_norm_output_0", True, id="asked-for"),
        pytest.param("weights", "fc", "gradient/fc.weight", False, id="gradient"),
        pytest.param("weights", WEIGHTS, "trees_weight", True, id="no-slash"),
        pytest.param("biases", BIASES, "fc.bias", True, id="bias"),
        pytest.param("biases", BIASES, "full_shap/bias", False, id="shap-bias"),
        pytest.param("biases", BIASES, "attention_bias_input_1", False, id="input"),
        pytest.param("losses", "[Ll]oss", "gradient/loss_head.weight", False, id="loss-gradient"),
        pytest.param("losses", "[Ll]oss", "hyperparameters/loss", False, id="loss-setting"),
        pytest.param("losses", "[Ll]oss", "CrossEntropyLoss_output_0", True, id="loss"),
        pytest.param("gradients", ".*", "gradient/fc.weight", True, id="own"),
        pytest.param("metrics", ".*", "trees/Gain", False, id="metrics"),
        pytest.param("trees", ".*", "trees/Gain", True, id="trees"),
        pytest.param("weights", "^feature_importance/weight", "feature_importance/weight/f", True),
        pytest.param("mine", "weight", "feature_importance/weight/f0", True, id="custom"),
        pytest.param("all", ".*", "feature_importance/weight/f0", True, id="all"),
        pytest.param("default", "weight", "gradient/fc.weight", True, id="default"),
    ],
)
def test_pattern_does_not_catch_the_names_of_another_collection(
    collection: str, pattern: str, name: str, is_member: bool
) -> None:
    members = Collection(collection, include_regex=[pattern]).members([name])
    assert members == [name] * is_member


def test_name_that_was_added_belongs_to_a_collection_whatever_it_is_called() -> None:
    name = "feature_importance/weight/f0"
    assert Collection("weights", WEIGHTS, tensor_names=[name]).members([name]) == [name]
