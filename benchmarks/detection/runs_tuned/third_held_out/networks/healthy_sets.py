"""Healthy trainings of points and molecules, and of pretexts that nobody labelled."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, batches, fit, sgd, watched
from training_runs import healthy

from runs_tuned.third_held_out.networks.shared.pictures import Herbarium, divided, leaves
from runs_tuned.third_held_out.networks.shared.series import tides
from runs_tuned.third_held_out.networks.shared.sets import (
    ATOMS,
    Chemist,
    Edges,
    Gathering,
    molecules,
    solids,
)


@healthy("solids by edges between neighbours, batch norm and dropout, momentum, a falling rate")
def solids_by_edges(root: Path) -> int:
    return fit(
        root,
        Edges,
        solids(),
        optimizer=sgd(0.015, momentum=0.9, nesterov=True),
        steps=100,
        batch=20,
        schedule=lambda step: 0.98**step,
    )


@healthy("solids by points that attend to each other, AdamW with warm-up, every fourth step saved")
def solids_by_attention(root: Path) -> int:
    optimizer = adam(1.5e-3, torch.optim.AdamW, weight_decay=0.1)
    return fit(
        root,
        Gathering,
        solids(1400, seed=333),
        optimizer=optimizer,
        steps=240,
        batch=24,
        clip=1.0,
        schedule=lambda step: min(1.0, (step + 1) / 15),
        save_every=4,
    )


class Distances(nn.Module):
    """The mean distance of points to the nearest of the other set, both ways (Chamfer)."""

    def forward(self, output: Any, target: Any) -> Any:
        apart = torch.cdist(output, target) ** 2
        return apart.amin(1).mean() + apart.amin(2).mean()


class Sculptor(nn.Module):
    """Returns points of a solid from a code of sixteen numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.code = nn.Linear(32, 16)
        self.back = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 96))

    def forward(self, x: Any) -> Any:
        return self.back(self.code(self.point(x).amax(1))).view(-1, 32, 3)


@healthy("points of solids returned from a code, nearest distances, Adam", kind="autoencoder")
def solids_returned(root: Path) -> int:
    x = torch.cat([solids().x, solids().test_x])
    return fit(
        root,
        Sculptor,
        divided(x, x),
        loss=Distances(),
        optimizer=adam(4e-3),
        steps=160,
        batch=24,
        save_every=5,
    )


@healthy("how molecules hold together, messages along bonds, Adam, rates halved in stairs")
def molecules_by_messages(root: Path) -> int:
    return fit(
        root,
        Chemist,
        molecules(),
        loss=nn.MSELoss(),
        optimizer=adam(6e-3),
        steps=300,
        batch=16,
        save_every=3,
        schedule=lambda step: 0.5 ** (step // 100),
    )


@healthy("molecules that hold strongly, one of five, dropout, RMSprop, every tenth step saved")
def molecules_that_hold(root: Path) -> int:
    data = molecules(1400, 334).relabelled(lambda held: (held > 0.85).float())
    return fit(
        root,
        lambda: Chemist(drop=0.2, rounds=3),
        data,
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(1.5e-3, torch.optim.RMSprop),
        steps=250,
        save_every=10,
        validate_every=50,
    )


class Links(nn.Module):
    """Two rounds over one graph; whether two nodes are linked is their product."""

    def __init__(self, links: Any) -> None:
        super().__init__()
        self.mean = links / links.sum(1, keepdim=True).clamp(min=1)
        self.first, self.second = nn.Linear(24, 24), nn.Linear(24, 12)
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, x: Any) -> Any:
        nodes, pairs = x
        hidden = functional.relu(self.first(nodes + self.mean @ nodes))
        found = self.second(hidden + self.mean @ hidden)
        return (found[pairs[0]] * found[pairs[1]]).sum(1) + self.shift


@healthy("links of one graph, as many pairs without one are drawn in each step, Adam, no modes")
def links_of_a_graph(root: Path) -> int:
    torch.manual_seed(53)
    torch.set_num_threads(1)
    group = torch.randint(5, (240,))
    chance = torch.where(group[:, None] == group, 0.12, 0.01)
    links = (torch.rand(240, 240) < chance).float().triu(1)
    nodes = torch.randn(5, 24)[group] + 1.5 * torch.randn(240, 24)
    model, loss, ends = Links(links + links.T), nn.BCEWithLogitsLoss(), links.nonzero().T
    optimizer = torch.optim.Adam(model.parameters(), 5e-3, weight_decay=1e-4)
    with watched(root, model, losses=[loss], save_every=2, modes=False) as watching:
        del watching
        for _ in range(150):
            pairs = torch.cat([ends, torch.randint(240, ends.shape)], 1)
            target = (torch.arange(pairs.shape[1]) < ends.shape[1]).float()
            optimizer.zero_grad()
            loss(model((nodes, pairs)), target).backward()
            optimizer.step()
    return 0


@healthy("pretext: by how many quarters a leaf was turned, three or five lobes, Adam")
def leaves_turned_by(root: Path) -> int:
    whole = leaves(noise=0.2, seed=335)
    x = torch.cat([whole.x, whole.test_x])
    shade = torch.linspace(-0.8, 0.8, 14)[:, None]
    quarter = torch.arange(len(x)) % 4
    lit = torch.stack(
        [torch.rot90(row + shade, int(k), (1, 2)) for row, k in zip(x, quarter, strict=True)]
    )
    make = lambda: Herbarium(outs=4, width=8)
    return fit(root, make, divided(lit, quarter), optimizer=adam(2e-3), steps=100, batch=40)


class Hidden(nn.Module):
    """Absolute errors of the moments that were hidden, and of no other."""

    def forward(self, output: Any, target: Any) -> Any:
        values, hidden = target.unbind(2)
        return ((output - values).abs() * hidden).sum() / hidden.sum()


@healthy("pretext: a quarter of the levels of the sea is hidden, and only these count, NAdam")
def tides_hidden(root: Path) -> int:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(2, 20, batch_first=True, bidirectional=True)
            self.head = nn.Linear(40, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0])[:, :, 0]

    levels = torch.cat([tides().x, tides().test_x])[:, :, 0]
    hidden = (torch.rand(levels.shape, generator=torch.Generator().manual_seed(54)) < 0.25).float()
    x = torch.stack([levels * (1 - hidden), hidden], 2)
    data = divided(x, torch.stack([levels, hidden], 2))
    optimizer = adam(6e-3, torch.optim.NAdam)
    return fit(root, Reader, data, loss=Hidden(), optimizer=optimizer, steps=120, clip=1.0)


class Agreement(nn.Module):
    """How well rows find their counterparts among all other rows of the batch."""

    def forward(self, output: Any, target: Any) -> Any:
        scores = functional.normalize(output) @ functional.normalize(target).T / 0.3
        return functional.cross_entropy(scores, torch.arange(len(scores)))


@healthy(
    "pretext: two halves of the atoms of a molecule find each other, AdamW, batches of 64",
    kind="contrastive",
)
def molecules_in_halves(root: Path) -> int:
    torch.manual_seed(55)
    torch.set_num_threads(1)
    model, loss, data = Chemist(outs=16), Agreement(), molecules()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    first = (torch.arange(ATOMS) % 2 == 0).float()[:, None]

    def embedded(x: Any) -> Any:
        seen = [
            torch.cat([x[:, :, :ATOMS], x[:, :, ATOMS:] * part], 2) for part in (first, 1 - first)
        ]
        return model(torch.cat(seen)).chunk(2)

    with watched(root, model, losses=[loss], save_every=4) as watching:
        for _, (x, _) in zip(range(160), batches(data, 64, 55), strict=False):
            one, other = embedded(x)
            watching.save_tensor("embeddings", one.detach(), "embeddings")
            optimizer.zero_grad()
            loss(one, other).backward()
            optimizer.step()
    return 0
