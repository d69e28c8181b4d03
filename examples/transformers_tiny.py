"""A tiny Llama learns to count with Hugging Face's Trainer; the callback saves it to OUT_DIR."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

import smdebug.transformers as smd

set_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=32, num_attention_heads=4, **sizes))
counting = [(torch.arange(16) + start) % 32 for start in range(256)]
callback = smd.DebuggerCallback(
    out_dir=sys.argv[1],
    save_config=smd.SaveConfig(save_interval=5),
    include_collections=["weights", "gradients", "losses"],
)
arguments = TrainingArguments(
    f"{sys.argv[1]}-checkpoints",
    max_steps=40,
    learning_rate=1e-2,
    use_cpu=True,
    save_strategy="no",
    report_to="none",
)
data = [{"input_ids": ids, "labels": ids} for ids in counting]
Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
