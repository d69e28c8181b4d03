"""Healthy fine-tunings in small, as the documentation of common libraries shows them.

    python scripts.py NAME

Each is a function of its own; models are tiny and random, and nothing is downloaded.
"""

import copy
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

WORDS = ["<pad>", "<eos>", "<unk>", *(f"w{number}" for number in range(60))]
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SCRIPTS: dict[str, Callable[[], object]] = {}


def script(function: Callable[[], object]) -> Callable[[], object]:
    SCRIPTS[function.__name__] = function
    return function


# What the scripts share: a tokenizer, models, rows, and the options of trainers.


def tokenizer(*, pad: str = "<pad>") -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": pad, "eos_token": WORDS[1], "unk_token": WORDS[2]}
    return PreTrainedTokenizerFast(tokenizer_object=words, **special)


def model_of(kind: str = "LlamaForCausalLM", **options: Any) -> Any:
    import transformers

    torch.manual_seed(0)
    family = kind.partition("For")[0].removesuffix("LMHeadModel")
    size = {**SIZE, "intermediate_size": 64, "pad_token_id": 0, "eos_token_id": 1}
    if family == "GPT2":
        size = {"n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 1}
    config = getattr(transformers, f"{family}Config")(vocab_size=len(WORDS), **size | options)
    return getattr(transformers, kind)(config)


def loaded(model: Any) -> Any:
    """Return a model as it is loaded from a folder."""
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    return type(model).from_pretrained(folder)


def sentences(count: int = 400, *, shortest: int = 6, longest: int = 14) -> list[str]:
    """Return sentences in which each word follows from the one before."""
    random = torch.Generator().manual_seed(1)
    made = []
    for _ in range(count):
        word = int(torch.randint(0, 60, (1,), generator=random))
        length = int(torch.randint(shortest, longest, (1,), generator=random))
        row = []
        for _ in range(length):
            row.append(f"w{word}")
            word = (7 * word + 3 + int(torch.randint(0, 2, (1,), generator=random))) % 60
        made.append(" ".join(row))
    return made


def dataset(**columns: Any) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(columns)


def questions(*columns: str) -> Any:
    """Return columns of prompts and answers, chosen and rejected ones."""
    whole = [row.split() for row in sentences()]
    parts = {
        "prompt": [" ".join(row[:3]) + " " for row in whole],
        "completion": [" ".join(row[3:]) for row in whole],
        "chosen": [" ".join(row[3:]) for row in whole],
        "rejected": [" ".join(reversed(row[3:])) for row in whole],
    }
    return dataset(**{column: parts[column] for column in columns})


def common(steps: int = 60, **options: Any) -> dict[str, Any]:
    return {
        "output_dir": "logs",
        "max_steps": steps,
        "per_device_train_batch_size": 8,
        "learning_rate": 2e-3,
        "logging_steps": 1,
        "report_to": "none",
        "use_cpu": True,
        "save_strategy": "no",
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        **options,
    }


def lora(task: str = "CAUSAL_LM", **options: Any) -> Any:
    from peft import LoraConfig

    return LoraConfig(**{"r": 4, "lora_alpha": 8, "task_type": task} | options)


# TRL


def sft(
    *, data: Any = None, model: Any = None, pad: str = "<pad>", peft: Any = None, **options: Any
) -> None:
    from trl import SFTConfig, SFTTrainer

    trainer = SFTTrainer(
        model=model or model_of(),
        args=SFTConfig(**common(**{"max_length": 24} | options)),
        train_dataset=data or dataset(text=sentences()),
        processing_class=tokenizer(pad=pad),
        peft_config=peft,
    )
    trainer.train()
    trainer.save_state()


SCRIPTS |= {
    "sft": sft,
    "sft_packed": lambda: sft(packing=True),
    "sft_answers_alone": lambda: sft(data=questions("prompt", "completion")),
    "sft_padded_with_the_end": lambda: sft(pad="<eos>", data=questions("prompt", "completion")),
    "sft_lora": lambda: sft(peft=lora(), learning_rate=1e-2),
    "sft_lora_checkpointed": lambda: sft(
        peft=lora(), gradient_checkpointing=True, learning_rate=1e-2
    ),
    "sft_accumulated_in_bfloat16": lambda: sft(
        bf16=True, gradient_accumulation_steps=4, max_steps=30
    ),
    "sft_gpt2": lambda: sft(model=model_of("GPT2LMHeadModel")),
    "sft_neftune": lambda: sft(
        neftune_noise_alpha=5.0, lr_scheduler_type="cosine", warmup_steps=10
    ),
}


def dpo(*, peft: Any = None, **options: Any) -> None:
    from trl import DPOConfig, DPOTrainer

    trainer = DPOTrainer(
        model=loaded(model_of()),
        args=DPOConfig(**common(40, learning_rate=5e-4, max_length=32, **options)),
        train_dataset=questions("prompt", "chosen", "rejected"),
        processing_class=tokenizer(),
        peft_config=peft,
    )
    trainer.train()
    trainer.save_state()


SCRIPTS |= {
    "dpo": dpo,
    "dpo_lora": lambda: dpo(peft=lora()),
    "dpo_ipo": lambda: dpo(loss_type="ipo", beta=0.2),
    "dpo_accumulated": lambda: dpo(gradient_accumulation_steps=2),
}


def grpo(*rewards: Callable[..., list[float]], peft: Any = None, **options: Any) -> None:
    from trl import GRPOConfig, GRPOTrainer

    settings = {"num_generations": 4, "max_completion_length": 12, "temperature": 1.0}
    trainer = GRPOTrainer(
        model=loaded(model_of()),
        reward_funcs=list(rewards or [even_words]),
        args=GRPOConfig(**common(40, learning_rate=3e-3) | settings | options),
        train_dataset=questions("prompt"),
        processing_class=tokenizer(),
        peft_config=peft,
    )
    trainer.train()
    trainer.save_state()


def even_words(completions: list[str], **_: Any) -> list[float]:
    """Reward the share of words with an even number."""
    rows = [answer.split() for answer in completions]
    even = [[word[1:].isdigit() and int(word[1:]) % 2 == 0 for word in row] for row in rows]
    return [sum(row) / max(1, len(row)) for row in even]


def different_words(completions: list[str], **_: Any) -> list[float]:
    """Reward words that differ."""
    return [len(set(answer.split())) / 12 for answer in completions]


SCRIPTS |= {
    "grpo": grpo,
    "grpo_with_a_penalty": lambda: grpo(beta=0.04),
    "grpo_lora": lambda: grpo(peft=lora(), learning_rate=1e-2),
    "grpo_two_rewards": lambda: grpo(even_words, different_words),
    "grpo_two_iterations": lambda: grpo(num_iterations=2),
}


@script
def reward_model() -> None:
    from trl import RewardConfig, RewardTrainer

    trainer = RewardTrainer(
        model=model_of("LlamaForSequenceClassification", num_labels=1),
        args=RewardConfig(**common(40, max_length=32)),
        train_dataset=questions("prompt", "chosen", "rejected"),
        processing_class=tokenizer(),
    )
    trainer.train()
    trainer.save_state()


# Transformers' Trainer, with and without PEFT


def train(model: Any, data: Any, *, collator: Any = None, **options: Any) -> None:
    from transformers import Trainer, TrainingArguments

    trainer = Trainer(
        model, TrainingArguments(**common(**options)), train_dataset=data, data_collator=collator
    )
    trainer.train()
    trainer.save_state()


def rows_of(*, labels: Callable[[list[int]], Any] = list) -> Any:
    """Return rows of twelve tokens and their labels."""
    words = tokenizer()
    rows = [words(row)["input_ids"][:12] for row in sentences(shortest=12, longest=16)]
    return dataset(input_ids=rows, labels=[labels(row) for row in rows])


def is_even(row: list[int]) -> int:
    return row[0] % 2


def language_collator(*, masked: bool = False) -> Any:
    from transformers import DataCollatorForLanguageModeling

    words = tokenizer()
    words.add_special_tokens({"mask_token": "<unk>"})
    return DataCollatorForLanguageModeling(words, mlm=masked)


def adapted(model: Any, config: Any) -> Any:
    from peft import get_peft_model

    return get_peft_model(model, config)


def of_peft(name: str, **options: Any) -> Any:
    import peft

    return getattr(peft, f"{name}Config")(task_type="CAUSAL_LM", **options)


def frozen(model: Any) -> Any:
    model.base_model.requires_grad_(False)
    return model


SCRIPTS |= {
    "trainer_classes": lambda: train(
        model_of("BertForSequenceClassification", num_labels=2), rows_of(labels=is_even)
    ),
    "trainer_head_alone": lambda: train(
        frozen(model_of("BertForSequenceClassification", num_labels=2)), rows_of(labels=is_even)
    ),
    "trainer_numbers": lambda: train(
        model_of("BertForSequenceClassification", num_labels=1),
        rows_of(labels=lambda row: sum(row) / 360),
    ),
    "trainer_words_masked": lambda: train(
        model_of("BertForMaskedLM"), rows_of(), collator=language_collator(masked=True)
    ),
    "trainer_kinds_of_words": lambda: train(
        model_of("BertForTokenClassification", num_labels=3),
        rows_of(labels=lambda row: [-100, *(word % 3 for word in row[1:])]),
    ),
    "trainer_language_checkpointed": lambda: train(
        model_of(), rows_of(), gradient_checkpointing=True, gradient_accumulation_steps=2
    ),
    "trainer_collator_of_language": lambda: train(
        model_of("GPT2LMHeadModel"), rows_of(), collator=language_collator(), bf16=True
    ),
    "peft_lora_language": lambda: train(adapted(model_of(), lora()), rows_of(), learning_rate=1e-2),
    "peft_lora_classes": lambda: train(
        adapted(
            model_of("BertForSequenceClassification", num_labels=2),
            lora("SEQ_CLS", target_modules=["query", "value"]),
        ),
        rows_of(labels=is_even),
        learning_rate=1e-2,
    ),
    "peft_dora": lambda: train(
        adapted(model_of(), lora(use_dora=True)), rows_of(), learning_rate=1e-2
    ),
    "peft_prompt_tuning": lambda: train(
        adapted(model_of(), of_peft("PromptTuning", num_virtual_tokens=4)),
        rows_of(),
        learning_rate=3e-2,
    ),
    "peft_prefix_tuning": lambda: train(
        adapted(model_of(), of_peft("PrefixTuning", num_virtual_tokens=4)),
        rows_of(),
        learning_rate=3e-2,
    ),
    "peft_ia3": lambda: train(adapted(model_of(), of_peft("IA3")), rows_of(), learning_rate=3e-2),
}


@script
def peft_loop_of_two_adapters() -> None:
    model = adapted(model_of(), lora())
    model.add_adapter("second", lora())
    rows = torch.tensor(rows_of()["input_ids"])
    for name in ("default", "second"):
        model.set_adapter(name)
        trained = [each for each in model.parameters() if each.requires_grad]
        optimizer = torch.optim.AdamW(trained, 1e-2)
        for x in itertools.islice(batches(rows), 60):
            update(optimizer, model(input_ids=x, labels=x).loss)


# Loops in plain PyTorch


def batches(*tensors: Any, size: int = 16) -> Iterator[Any]:
    """Yield batches for ever."""
    while True:
        for at in torch.randperm(len(tensors[0])).split(size):
            if len(at) == size:
                yield tensors[0][at] if len(tensors) == 1 else [each[at] for each in tensors]


def update(optimizer: Any, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def pictures(count: int = 600, size: int = 16, channels: int = 3) -> tuple[Any, Any]:
    """Return pictures of four kinds, which differ by the bright quarter."""
    torch.manual_seed(1)
    x, y = 0.5 * torch.randn(count, channels, size, size), torch.randint(0, 4, (count,))
    half = size // 2
    for at, kind in enumerate(y.tolist()):
        x[at, :, kind // 2 * half :, kind % 2 * half :][:, :half, :half] += 1.0
    return x, y


def backbone() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, 2, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
    )


@script
def loop_unfreezes_later() -> None:
    body, head = backbone(), nn.Linear(64, 4)
    model = nn.Sequential(body, head)
    body.requires_grad_(False)
    optimizer = torch.optim.Adam(head.parameters(), 1e-2)
    for number, (x, y) in enumerate(itertools.islice(batches(*pictures()), 120)):
        if number == 60:
            body.requires_grad_(True)
            optimizer.add_param_group({"params": body.parameters(), "lr": 1e-3})
        update(optimizer, functional.cross_entropy(model(x), y))


@script
def loop_of_two_optimizers() -> None:
    body, head = backbone(), nn.Linear(64, 4)
    first = torch.optim.SGD(body.parameters(), 0.02, momentum=0.9)
    second = torch.optim.AdamW(head.parameters(), 3e-3)
    for x, y in itertools.islice(batches(*pictures()), 100):
        loss = functional.cross_entropy(head(body(x)), y)
        first.zero_grad()
        update(second, loss)
        first.step()


@script
def loop_distils() -> None:
    teacher, student = (
        nn.Sequential(backbone(), nn.Linear(64, 4)),
        nn.Sequential(backbone(), nn.Linear(64, 4)),
    )
    teacher.eval().requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), 2e-3)
    for x, y in itertools.islice(batches(*pictures()), 100):
        with torch.no_grad():
            wanted = teacher(x).softmax(1)
        answer = student(x)
        soft = functional.kl_div(answer.log_softmax(1), wanted, reduction="batchmean")
        update(optimizer, functional.cross_entropy(answer, y) + soft)


@script
def loop_gan() -> None:
    torch.manual_seed(0)
    maker = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    judge = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    makers = torch.optim.Adam(maker.parameters(), 1e-3, betas=(0.5, 0.999))
    judges = torch.optim.Adam(judge.parameters(), 1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    for _ in range(150):
        real, false = torch.randn(32, 2) * 0.3 + 1, maker(torch.randn(32, 8))
        update(judges, criterion(judge(real), ones) + criterion(judge(false.detach()), zeros))
        update(makers, criterion(judge(false), ones))


@script
def loop_with_an_average() -> None:
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = nn.Sequential(backbone(), nn.Linear(64, 4))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for x, y in itertools.islice(batches(*pictures()), 100):
        with torch.autocast("cpu", torch.bfloat16):
            loss = functional.cross_entropy(model(x), y)
        update(optimizer, loss)
        average.update_parameters(model)


@script
def loop_of_pairs() -> None:
    model = nn.Sequential(backbone(), nn.Linear(64, 16))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for x, _ in itertools.islice(batches(*pictures(), size=32), 100):
        views = [functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1) for _ in "ab"]
        scores = views[0] @ views[1].T / 0.2
        update(optimizer, functional.cross_entropy(scores, torch.arange(32)))


@script
def loop_of_a_momentum_encoder() -> None:
    model = nn.Sequential(backbone(), nn.Linear(64, 16))
    target, predictor = copy.deepcopy(model).requires_grad_(False), nn.Linear(16, 16)
    optimizer = torch.optim.Adam([*model.parameters(), *predictor.parameters()], 1e-3)
    for x, _ in itertools.islice(batches(*pictures(), size=32), 100):
        views = [x + 0.1 * torch.randn_like(x) for _ in "ab"]
        answers = predictor(model(views[0]))
        update(optimizer, -functional.cosine_similarity(answers, target(views[1])).mean())
        for slow, fast in zip(target.parameters(), model.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.05)


# Lightning


def lightning_fit(module: Any, data: Any, *, epochs: int = 3, **options: Any) -> None:
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet |= {"enable_checkpointing": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=epochs, **quiet, **options)
    trainer.fit(module, DataLoader(TensorDataset(*data), batch_size=16, shuffle=True))


def lightning_module(
    loss_of: Callable[..., Any], optimizers: Callable[[Any], Any], **parts: Any
) -> Any:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def training_step(self, batch: Any, _: int) -> Any:
            return loss_of(self, *batch)

        def configure_optimizers(self) -> Any:
            return optimizers(self)

    return Module()


def classified(module: Any, x: Any, y: Any) -> Any:
    return functional.cross_entropy(module.head(module.body(x)), y)


def adam(module: Any) -> Any:
    return torch.optim.Adam([each for each in module.parameters() if each.requires_grad], 3e-3)


SCRIPTS |= {
    "lightning_head_alone": lambda: lightning_fit(
        lightning_module(
            classified, adam, body=backbone().requires_grad_(False), head=nn.Linear(64, 4)
        ),
        pictures(),
    ),
    "lightning_accumulated": lambda: lightning_fit(
        lightning_module(classified, adam, body=backbone(), head=nn.Linear(64, 4)),
        pictures(),
        accumulate_grad_batches=3,
        gradient_clip_val=1.0,
    ),
    "lightning_in_bfloat16": lambda: lightning_fit(
        lightning_module(classified, adam, body=backbone(), head=nn.Linear(64, 4)),
        pictures(),
        precision="bf16-mixed",
    ),
}


@script
def lightning_gan() -> None:
    def step(module: Any, x: Any, _: Any) -> None:
        makers, judges = module.optimizers()
        x = x.flatten(1)
        false = module.maker(torch.randn(len(x), 8))
        hinge = functional.relu(1 - module.judge(x)) + functional.relu(
            1 + module.judge(false.detach())
        )
        judges.zero_grad()
        module.manual_backward(hinge.mean())
        judges.step()
        makers.zero_grad()
        module.manual_backward(-module.judge(false).mean())
        makers.step()

    both = lambda module: [adam(module.maker), adam(module.judge)]
    maker = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 48))
    judge = nn.Sequential(nn.Linear(48, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    module = lightning_module(step, both, maker=maker, judge=judge)
    module.automatic_optimization = False
    lightning_fit(module, pictures(size=4))


# timm


def timm_fit(name: str, *, frozen_body: bool = False, soft: bool = False, **options: Any) -> None:
    import timm.data
    import timm.loss

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=4, **options)
    if frozen_body:
        model.requires_grad_(False)
        model.get_classifier().requires_grad_(True)
    optimizer = torch.optim.AdamW((each for each in model.parameters() if each.requires_grad), 1e-3)
    criterion = timm.loss.SoftTargetCrossEntropy() if soft else nn.CrossEntropyLoss()
    mixup = timm.data.Mixup(mixup_alpha=0.2, num_classes=4) if soft else lambda *pair: pair
    for x, y in itertools.islice(batches(*pictures(size=32)), 60):
        mixed, wanted = mixup(x, y)
        update(optimizer, criterion(model(mixed), wanted))


VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2}
SCRIPTS |= {
    "timm_vit": lambda: timm_fit("vit_tiny_patch16_224", **VIT),
    "timm_vit_head_alone": lambda: timm_fit("vit_tiny_patch16_224", frozen_body=True, **VIT),
    "timm_vit_mixup": lambda: timm_fit("vit_tiny_patch16_224", soft=True, **VIT),
    "timm_resnet": lambda: timm_fit("resnet10t"),
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    SCRIPTS[sys.argv[1]]()
