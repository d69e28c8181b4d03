"""What training scripts share: small models of Transformers, rows of words, and their loops."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from training.language import corpus

IGNORED = -100
END = 50
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def llama() -> Any:
    """Return a small Llama of Transformers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    size = {**SMALL, "intermediate_size": 64, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, max_position_embeddings=64, **size))


def gpt2() -> Any:
    """Return a small GPT-2 of Transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    )


def bert(kind: str, **options: Any) -> Any:
    """Return a small BERT of Transformers, with the head of a kind."""
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=64, intermediate_size=64, **SMALL, **options)
    return getattr(transformers, f"BertFor{kind}")(config)


def rows(size: int = 16, steps: int = 100) -> Iterator[Any]:
    """Yield windows of seventeen words, 1 to 47."""
    data = corpus()
    whole = torch.cat([data.x, data.y[:, -1:]], 1)
    for step in range(steps):
        yield whole[torch.arange(step * size, step * size + size) % len(whole)]


def padded(x: Any, pad: int, *, left: bool = False) -> tuple[Any, Any]:
    """Return rows of unequal lengths that end with `END`, and their attention mask."""
    lengths = torch.randint(8, x.shape[1], (len(x), 1))
    at = torch.arange(x.shape[1])[None]
    inside = at <= lengths
    x = torch.where(inside, torch.where(at == lengths, END, x), pad)
    order = inside.long().argsort(dim=1, stable=True) if left else at.expand_as(x)
    return x.gather(1, order), inside.long().gather(1, order)


def update(optimizer: Any, loss: Any) -> None:
    """Update once by a loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def learn(model: Any, losses: Iterator[Any], rate: float = 3e-3) -> None:
    """Update a model by each of the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for loss in losses:
        update(optimizer, loss)


def chosen(data: Any, size: int = 32, steps: int = 120) -> Iterator[tuple[Any, Any]]:
    """Yield batches of a split in the order of its rows."""
    for step in range(steps):
        at = torch.arange(step * size, step * size + size) % len(data.x)
        yield data.x[at], data.y[at]


def by_lightning(net: Any, data: Any, loss_of: Callable[[Any, Any, Any], Any], epochs: int) -> None:
    """Train a network by a module of Lightning, whose loss is made of (network, x, y)."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch: Any, _: int) -> Any:
            return loss_of(self.net, *batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), 4e-3)

    lightning.seed_everything(0)
    loader = DataLoader(TensorDataset(data.x, data.y), batch_size=32, shuffle=True)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", enable_checkpointing=False, **quiet
    )
    trainer.fit(Module(), loader)
