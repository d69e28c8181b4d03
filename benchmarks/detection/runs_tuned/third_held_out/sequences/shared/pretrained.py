"""Models of transformers, made from small configurations."""

from typing import Any

import torch
from torch import nn

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
FEW_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}


class Small(nn.Module):
    """A small model of transformers, a class of which is named; it returns ``(n, words, length)``.

    Parameters
    ----------
    kind, task
        The names of the model and its task in the class: Mistral and ForCausalLM.
    """

    def __init__(self, kind: str, task: str, words: int, **config: Any) -> None:
        super().__init__()
        import transformers

        ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        configuration = getattr(transformers, f"{kind}Config")(vocab_size=words, **ids | config)
        self.model = getattr(transformers, f"{kind}{task}")(configuration)

    def forward(self, x: Any, target: Any = None) -> Any:
        more = {} if target is None else {"decoder_input_ids": target}
        mask = {"attention_mask": (x != 0).long()} if bool((x == 0).any()) else {}
        return self.model(input_ids=x, **mask, **more).logits.transpose(1, 2)


def hidden_words(rows: Any, share: float, mask: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows some of whose words are hidden, and the hidden words as targets."""
    random = torch.Generator().manual_seed(seed)
    is_hidden = (torch.rand(rows.shape, generator=random) < share) & (rows != 0)
    return rows.masked_fill(is_hidden, mask), rows.masked_fill(~is_hidden, -100)
