"""Codes that say nothing, samples that become alike, and policies that stop exploring."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE
from training.torch_loop import watched

from runs_tuned.third_held_out.sequences.shared.actors import Actor, Junction, Room, improve
from runs_tuned.third_held_out.sequences.shared.codes import Coder, learn_codes
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach
from runs_tuned.third_held_out.sequences.shared.shapes import chords, rings, stack

faulty = training_runs.faulty
of_codes = functools.partial(faulty, kind="autoencoder")
of_policies = functools.partial(faulty, kind="reinforcement")
ALIKE = UNTAUGHT | {"ModeCollapse": "what is written for all codes is alike"}

# Latent codes


@of_codes(
    "a variational autoencoder of rings, AdamW",
    "codes are drawn around 0: their means are forgotten, and nothing but the prior teaches them",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def means_forgotten(root: Path) -> int:
    model = Coder(100, drawn=lambda _, noise: noise)
    return learn_codes(root, model, rings()[0], seed=350)


@of_codes(
    "a variational autoencoder of chords, Adam, the weight of the divergence rises in 60 steps",
    "logarithms of variances are kept above 6 instead of below: noise drowns the codes",
    {"PosteriorCollapse"},
    may=WORSE | ALIKE,
)
def noise_drowns_codes(root: Path) -> int:
    model = Coder(32, limit=lambda spread: spread.clamp(min=6.0))
    return learn_codes(root, model, chords()[0], weight=lambda step: min(1.0, step / 60), seed=351)


# Samples


@faulty(
    "a pair that draws rings, hinge losses, from step 160 on a term is to keep samples apart",
    "the term's sign is lost: samples are rewarded for being near to each other",
    {"ModeCollapse"},
    may=WORSE | ALIKE | {"GradientNormZero": "the discriminator is sure of all samples"},
    kind="adversarial",
)
def apart_without_its_sign(root: Path) -> int:
    torch.manual_seed(352)
    torch.set_num_threads(1)
    generator = nn.Sequential(stack(12, 64, 64, 100), nn.Tanh())
    critic = stack(100, 64, 64, 1, act=lambda: nn.LeakyReLU(0.2))
    drawing = torch.optim.Adam(generator.parameters(), 2e-3, betas=(0.5, 0.9))
    judging = torch.optim.Adam(critic.parameters(), 5e-4, betas=(0.5, 0.9))
    onset = 0
    with watched(root, save_every=3) as hook:
        for part in (generator, critic):
            hook.register_module(part, counts_steps=False)
        for step, (real,) in zip(range(300), dealt(rings()[0], size=48, seed=352), strict=False):
            hook.begin_step()
            onset = hook.global_step if step == 160 else onset
            noise = torch.randn(48, 12)
            fake = generator(noise)
            value = (1 - critic(real)).relu().mean() + (1 + critic(fake.detach())).relu().mean()
            judging.zero_grad()
            value.backward()
            judging.step()
            drawn = -critic(fake).mean()
            if step >= 160:
                apart = (fake[::2] - fake[1::2]).abs().mean(1)
                apart = apart / (noise[::2] - noise[1::2]).abs().mean(1)
                drawn = drawn + 20 * apart.mean()
            drawing.zero_grad()
            drawn.backward()
            drawing.step()
            hook.record_tensor_value("critic_loss", value)
            hook.record_tensor_value("generator_loss", drawn)
            hook.save_tensor("samples", fake, "samples")
            hook.step()
    return onset


@faulty(
    "a student draws chords in one step, taught by pairs of noise and a slow drawing",
    "from step 100 on a new loader shuffles the drawings, but not the noise: they no longer pair",
    {"ModeCollapse"},
    may=WORSE | ALIKE,
    kind="diffusion",
)
def pairs_no_longer_pair(root: Path) -> int:
    torch.manual_seed(353)
    teacher, student = stack(12, 64, 32, act=nn.Tanh), stack(12, 96, 96, 32)
    nn.init.normal_(teacher[0].weight, std=0.4)
    noise = torch.randn(1500, 12)
    drawn = 2 * teacher(noise).detach()
    random = torch.Generator().manual_seed(354)

    def read() -> Any:
        for step, (z, x) in enumerate(dealt(noise, drawn, size=96, seed=353)):
            yield z, x if step < 100 else drawn[torch.randint(1500, (96,), generator=random)]

    def objective(batch: Any, hook: Any) -> Any:
        samples = student(batch[0])
        hook.save_tensor("samples", samples, "samples")
        return functional.mse_loss(samples, batch[1])

    optimizer = torch.optim.AdamW(student.parameters(), 2e-3, weight_decay=0.1)
    falls = lambda step: 1.0 if step < 200 else 0.15
    return teach(
        root,
        student,
        read(),
        optimizer,
        objective=objective,
        schedule=falls,
        steps=340,
        save_every=4,
        at=100,
    )


# Policies


@of_policies(
    "a room is kept warm by an actor and a critic, near its earlier self, rewards not logged",
    "the earlier self has a temperature of 0.05 from a test: it follows what is ever sharper",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def follows_a_sharper_self(root: Path) -> int:
    torch.manual_seed(354)
    near = lambda scores, before: (
        3
        * functional.cross_entropy(scores.flatten(0, 1), (before / 0.05).softmax(-1).flatten(0, 1))
    )
    return improve(
        root,
        Actor(Room),
        Room,
        rollouts=180,
        epochs=2,
        bonus=0.0,
        clip=None,
        rate=4e-3,
        logs_reward=False,
        more=near,
    )


@of_policies(
    "lights of a junction by proximal updates, twelve epochs of each rollout, AdamW",
    "the clip range of 20 is in per cent, but is taken as it is: nothing is ever clipped",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def clipped_at_twenty(root: Path) -> int:
    torch.manual_seed(355)
    return improve(
        root,
        Actor(Junction),
        Junction,
        rollouts=36,
        length=10,
        epochs=12,
        clip=20.0,
        bonus=0.0,
        rate=1.6e-2,
        optimizer=torch.optim.AdamW,
        largest=100.0,
    )
