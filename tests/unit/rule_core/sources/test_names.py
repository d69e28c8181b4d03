import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.exceptions import SMDebugValueError
from rule_core.model import patterns
from rule_core.modes import ModeKeys
from rule_core.reading.source_record import SourceRecord, TensorName
from rule_core.sources import names
from rule_core.sources.names import NameTable, title_of, titled
from rule_core.sources.options import NameRule, SourceOptions

# By writer: names as they leave them.
TRAINING_LOSSES = """
    loss; train/loss; train_loss; lm loss; train_loss_step; batch_loss; epoch_loss; train/box_loss
    Train/Samples/train_loss; nll_loss; train loss; loss_cls; total_loss; train/CrossEntropyLoss
    lm-loss-training/lm loss; metrics/train/LanguageCrossEntropy; loss/train/total; trainLoss
    training's binary_logloss; train_loss_epoch; trainloss; TrainLosses; objective; deviance
    tl; v_loss
"""
EVALUATION_LOSSES = """
    eval_loss; val_loss; validation/loss; eval/loss; test_loss; val/box_loss; eval_squad_loss
    valid_loss; valid_nll_loss; lm loss validation; val loss; lm-loss-validation/lm loss validation
    validation_0-mlogloss; evaluation_loss_vs_iterations; Loss/test; loss/val; loss_val; valLoss
    valid_0's binary_logloss; test_loss_ce; eval_loss/dataloader_idx_0; loss/dev_clean
    valloss; ValidLosses; testloss2; avg_val_loss; average test loss; epoch/val/loss; mean dev loss
    cv_loss; running_cv_loss; vl
"""
GRADIENT_NORMS = """
    grad_norm; train/grad_norm; grad norm; gnorm; grad-norm/grad-norm; grad_2.0_norm_total
    l2_norm/grad/global; optim/total_grad_norm; train_grad_norm; gradNorm; grad_2.0_norm/fc.bias.0
    global_grad_norm; gradient_norm_before_clip
"""
LEARNING_RATES = """
    lr; learning_rate; lr-Adam; x/lr0; lr/pg0; train/learning_rate; lr-AdamW/pg1; train_lr
    learning-rate/learning-rate; Train/Samples/lr; loss_fn_lr; epoch_learning_rate; train_min_lr
    optim/learning_rate_group0; lr-DecoupledAdamW/group0; learning rate
"""
LOSS_SCALES = (
    "loss scale; loss_scale; loss-scale/loss-scale; Train/Samples/loss_scale; amp/lossScale"
)
TRAINING_METRICS = """
    accuracy; train_acc; bleu; perplexity; reward; rewards/chosen; train-rmse; ppl; train_class_acc
    trainacc; elbo; episode_return; returns; train_objective
    sparse_categorical_accuracy; rollout/ep_rew_mean; bbox/AP; bbox_mAP_50; mean_squared_error
"""
EVALUATION_METRICS = """
    eval_accuracy; eval_f1; val_auc; metrics/mAP50(B); metrics/mAP50-95(B); metrics/precision(B)
    metrics/recall(B); metrics/mAP_0.5:0.95; metrics/accuracy_top1; test_acc1; eval_top5; valid_ppl
    lm loss validation ppl; eval_rouge1; eval/rougeL; eval_bleu; acc/test; acc_val; valid_0's auc
    testacc; valid_objective; final_test_acc; VAcc; vacc; VF1
"""
THROUGHPUTS = """
    tokens/s; train_samples_per_second; train_steps_per_second; mfu; mfu(%); throughput(tps); wps
    throughput per GPU (TFLOP/s/GPU); throughput/device/tokens_per_second; time/fps; ups
"""
TRAINING_OTHERS = """
    epoch; step; total_flos; auxiliary_loss_weight; step time; train_runtime; lr-SGD-momentum
    lr-AdamW-weight_decay; best_loss; loss_std; max_grad_norm; grad_norm_clip; num_valid_tokens
    clip_val; fc.weight; value_max; train/policy_gradient_loss; train/entropy_loss; num zeros
    glossary; global batch size; number of nan iterations; gradient/fc.weight; slurm; loss_time
    mean_val; valley; return code
    n_parameters; consumed samples; train/rewards/std; device/memory; color; ; /; 0; \u00e9
"""
EVALUATION_OTHERS = "eval_runtime; valid_best_loss; valid_num_updates; val_runtime; test/time"


def _listed(text: str) -> list[str]:
    return [name.strip() for line in text.strip("\n").splitlines() for name in line.split(";")]


CASES = {
    (ModeKeys.TRAIN, "losses"): TRAINING_LOSSES,
    (ModeKeys.EVAL, "losses"): EVALUATION_LOSSES,
    (ModeKeys.TRAIN, "gradient_norms"): GRADIENT_NORMS,
    (ModeKeys.TRAIN, "learning_rates"): LEARNING_RATES,
    (ModeKeys.TRAIN, "loss_scales"): LOSS_SCALES,
    (ModeKeys.TRAIN, "metrics"): TRAINING_METRICS,
    (ModeKeys.EVAL, "metrics"): EVALUATION_METRICS,
    (ModeKeys.TRAIN, "throughputs"): THROUGHPUTS,
    (ModeKeys.EVAL, "throughputs"): "eval_samples_per_second; eval_steps_per_second",
    (ModeKeys.TRAIN, ""): TRAINING_OTHERS,
    (ModeKeys.EVAL, ""): EVALUATION_OTHERS,
}


@pytest.mark.parametrize(
    ("name", "meaning"),
    [(name, TensorName(*meaning)) for meaning, text in CASES.items() for name in _listed(text)],
)
def test_names_of_writers_have_a_mode_and_a_collection(name: str, meaning: TensorName) -> None:
    assert NameTable()(name)[:2] == meaning[:2]


@pytest.mark.parametrize(
    ("options", "name", "meaning"),
    [
        (NameRule("critic.*", "EVAL", "losses"), "critic_1", (ModeKeys.EVAL, "losses")),
        (NameRule("critic", "EVAL", "losses"), "critic_1", (ModeKeys.TRAIN, "")),  # whole names
        (NameRule("a|loss", collection=""), "loss", (ModeKeys.TRAIN, "")),
        (NameRule("a|loss", collection=""), "loss2", (ModeKeys.TRAIN, "losses")),
        (NameRule("val/.*", mode="TRAIN"), "val/loss", (ModeKeys.TRAIN, "losses")),
        (NameRule("val/.*", collection="x"), "val/loss", (ModeKeys.EVAL, "x")),
        (NameRule("(?i)LOSS", mode="GLOBAL"), "Loss", (ModeKeys.GLOBAL, "losses")),
        (NameRule("loss"), "loss", (ModeKeys.TRAIN, "losses")),
    ],
)
def test_rules_of_users_come_first(
    options: NameRule, name: str, meaning: tuple[ModeKeys, str]
) -> None:
    later = NameRule(".*", "PREDICT", "late")
    assert NameTable(SourceOptions((options,)))(name)[:2] == meaning
    both = NameTable(SourceOptions((options, later)))
    matches = patterns.search(names.whole(options.pattern), name)
    assert both(name)[:2] == (meaning if matches else (ModeKeys.PREDICT, "late"))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (NameRule("("), "not a regular expression: missing"),
        (NameRule("a)|(b"), "not a regular expression: unbalanced"),
        (NameRule("a{999999}b{999999}"), "repeats too much"),
        (NameRule("a", mode="train"), "must be one of TRAIN, EVAL, PREDICT, GLOBAL, got 'train'"),
    ],
)
def test_wrong_rules_are_rejected(rule: NameRule, problem: str) -> None:
    with pytest.raises(SMDebugValueError, match=problem):
        NameTable(SourceOptions((rule,)))


def test_a_pattern_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT_S", 0.01)
    table = NameTable(SourceOptions((NameRule(r"(a|aa)+$"),)))
    with pytest.raises(SMDebugValueError, match="takes more than"):
        table("a" * 80 + "b")


@pytest.mark.parametrize(
    ("name", "collection"),
    [
        ("fc.weight", "weights"),
        ("fc.bias", "biases"),
        ("embeddings", "weights"),
        ("loss_head.precision.weight", "weights"),
        ("dense/kernel", "weights"),
        ("dense/bias", "biases"),
        ("attention.bias_gate.weight", "weights"),
        ("bn.running_var", ""),
        ("rotary.inv_freq", ""),
    ],
)
def test_tensors_of_checkpoints_are_parameters(name: str, collection: str) -> None:
    assert NameTable().parameter(name) == collection


def test_rules_of_users_apply_to_checkpoints() -> None:
    table = NameTable(SourceOptions((NameRule(r".*\.lora_A\..*", collection="adapters"),)))
    assert table.parameter("q.lora_A.weight") == "adapters"
    assert table.parameter("q.weight") == "weights"


@given(st.text())
def test_any_text_is_a_name(name: str) -> None:
    table = NameTable()
    assert table(name) is table(name)


@pytest.mark.parametrize(
    ("key", "name", "series"),
    [
        ("runs/loss.csv", "value", "loss"),
        ("price.csv", "Value", "price"),
        ("loss.csv", "0", "loss"),
        ("loss/val.tsv", "val", "loss/val"),
        ("val.tsv", "val", "val"),
        ("test_error.tsv", "MultiClass", "test_error/MultiClass"),
        ("loss.csv", "accuracy", "accuracy"),
        ("price.csv", "x", "x"),
        ("run-a-tag-loss.csv.gz", "value", "a/loss"),
    ],
)
def test_a_file_names_its_series_if_the_column_says_less(key: str, name: str, series: str) -> None:
    assert titled(name, title_of(key)) == series


def test_a_map_changes_the_name_and_what_it_says() -> None:
    table = NameTable(SourceOptions(map=("val_loss=q=1",)))
    assert table("q=1") == TensorName(ModeKeys.EVAL, "losses", "val_loss", says_mode=True)
    assert table("val_loss") == TensorName(ModeKeys.EVAL, "losses", says_mode=True)


def test_modes_of_globs_precede_rules_and_match_written_names() -> None:
    rules = (NameRule("val_.*", "PREDICT", "x"),)
    table = NameTable(SourceOptions(rules, map=("train_loss=val_a",), modes=("Eval=*_a",)))
    assert table("val_a")[:5] == (ModeKeys.EVAL, "x", "train_loss", "--mode", "Names")
    assert table("val_b")[:5] == (ModeKeys.PREDICT, "x", "", "Names", "Names")
    assert table("a") == TensorName(ModeKeys.TRAIN, "")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"map": ("loss",)}, "'loss' must have the form OURS=THEIRS, such as loss=my_loss."),
        ({"map": ("=a",)}, "'=a' must have the form OURS=THEIRS, such as loss=my_loss."),
        ({"map": ("a=x", "b=x")}, "'x' is given both 'a' and 'b'. Choose one."),
        ({"modes": ("eval",)}, "'eval' must have the form MODE=GLOB, such as eval=val_*."),
        ({"modes": ("eval=a*", "train=a*")}, "'a*' is given both 'eval' and 'train'. Choose one."),
        (
            {"modes": ("evl=a*",)},
            (
                "The mode of series 'a*' must be one of train, eval, predict, global, got 'evl'. "
                "Did you mean 'eval=a*'?"
            ),
        ),
    ],
)
def test_wrong_options_are_rejected_with_the_right_spelling(
    options: dict[str, tuple[str, ...]], problem: str
) -> None:
    with pytest.raises(SMDebugValueError) as failure:
        NameTable(SourceOptions(**options))  # type: ignore[arg-type] # only some fields
    assert str(failure.value) == problem


def test_options_that_fit_nothing_are_listed_with_what_exists() -> None:
    table = NameTable(SourceOptions(step_column="whn", map=("loss=my_lss", "lr=rate")))
    record = SourceRecord("log", "", table, print)
    assert [*table.unused([record])] == [
        "No file has a series 'my_lss' to map.",
        "No file has a series 'rate' to map.",
        "No file counts its steps by a column 'whn'.",
    ]
    record.row(1, {"my_loss": 1.0, "rate": 1.0})
    record.steps_from = "when"
    assert [*table.unused([record])] == [
        (
            "No file has a series 'my_lss' to map. Did you mean 'my_loss'? "
            "There are 'my_loss', 'rate'."
        ),
        (
            "No file counts its steps by a column 'whn'. Did you mean 'when'? "
            "There are 'my_loss', 'rate', 'when'."
        ),
    ]
    record.steps_from = "whn"
    assert len([*table.unused([record])]) == 1


def test_few_of_many_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MAX_MEANINGS", 10)
    table = NameTable()
    meanings = [table(f"loss_{position}") for position in range(100)]
    assert {meaning.collection for meaning in meanings} == {"losses"}
    assert len(table._meanings) <= 10
