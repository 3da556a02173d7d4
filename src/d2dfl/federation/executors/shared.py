"""FedSGD (R41): the mean of the gradients that devices send, for every executor.

All devices hold the same model, so this mean is the gradient of one weighted loss: datapoints of all devices go through
the model together, in blocks that bound the memory, and no device's gradient need be kept.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import vmap

from d2dfl.federation.batches import BatchPlan
from d2dfl.federation.executors.loop import PIECE, Desk, Job, channels_last, draws_nothing, generator, prepared
from d2dfl.federation.sums import Node, TreeSum

POINTS = {"cpu": PIECE, "cuda": 1 << 12}  # datapoints in a block, however many devices and whatever they hold


@dataclass(frozen=True)
class Block:
    """Pieces of minibatches that go through the model at once; short ones are filled up with weight 0."""

    places: NDArray[np.int64]  # [piece] whose it is, as a place in the plan
    starts: NDArray[np.int64]  # [piece] where it begins in the minibatch
    counts: NDArray[np.int64]  # [piece] datapoints that are real


def blocks_of(plan: BatchPlan, points: int) -> Iterator[Block]:
    """All pieces of a plan's one minibatch, whole ones and short ones apart: little is filled up."""
    pieces = np.array(
        [(place, start) for place, count in enumerate(plan.counts) for start in range(0, int(count), PIECE)],
        dtype=np.int64,
    ).reshape(-1, 2)
    counts = np.minimum(plan.counts[pieces[:, 0]] - pieces[:, 1], PIECE)
    for chosen in (np.nonzero(counts == PIECE)[0], np.nonzero(counts < PIECE)[0]):
        width = max(1, points // PIECE)
        for first in range(0, len(chosen), width):
            own = chosen[first : first + width]
            yield Block(pieces[own, 0], pieces[own, 1], counts[own])


def mean_gradient(
    job: Job,
    model: Tensor,
    plan: BatchPlan,
    shares: NDArray[np.float64],
    pieces: NDArray[np.int64],
    bounds: tuple[int, int],
) -> tuple[list[Node], Tensor]:
    """The mean [parameter] of the gradients at `model` [parameter], by shares [active], and losses [active].

    The mean comes as a tree over the pieces [active] of devices that are within bounds (sums.py).
    On a CPU a thread takes a block, with one thread: the sum is the same whatever their number. A GPU takes several devices in a
    block, so it adds up all that it has as one piece.
    """
    place, plain = model.device, draws_nothing(job.model)
    places, losses = [], []
    together = plain and POINTS[place.type] > PIECE
    if together:
        pieces = np.full(len(plan.rows), bounds[0])
    gradient = TreeSum(*bounds)
    # Random layers draw for each device from its own key: one piece at a time, in order.
    blocks = list(blocks_of(plan, POINTS[place.type])) if together else _in_order(plan)
    threads = torch.get_num_threads() if plain and not model.is_cuda else 1
    desks = [Desk.of(job, model[None], copied=number > 0) for number in range(min(threads, len(blocks)))]

    def work(desk: Desk, block: Block) -> tuple[Tensor, Tensor]:
        if not plain and block.starts[0] == 0:
            torch.manual_seed(int(plan.keys[0, block.places[0]]))
        parameters = job.layout.bind(desk.model.train(), model)
        found, weights = _losses(job, desk.model, plan, block)
        by_share = torch.from_numpy(shares[block.places]).to(weights).unsqueeze(1)
        parts = torch.autograd.grad((found * weights * by_share).sum(), parameters, allow_unused=True)
        job.layout.flatten(parts, desk.gradient)
        return desk.gradient, (found.detach() * weights).sum(dim=1)

    with ExitStack() as opened:
        if model.is_cuda:  # its fastest sums come in any order: a run that goes on would not end in the same bits
            opened.callback(setattr, torch.backends.cudnn, "deterministic", torch.backends.cudnn.deterministic)
            torch.backends.cudnn.deterministic = True
        spread: Callable[..., Iterable[tuple[Tensor, Tensor]]] = map
        if threads > 1:  # for one block alone, too: threads that share its work round otherwise
            pool = ThreadPoolExecutor(len(desks), initializer=torch.set_num_threads, initargs=(1,))
            opened.callback(torch.set_num_threads, threads)  # threads that begin later look at what was said last
            spread = opened.enter_context(pool).map
        if not plain:
            opened.enter_context(torch.random.fork_rng(devices=[place] if place.type == "cuda" else []))
        for first in range(0, len(blocks), len(desks)):
            now = blocks[first : first + len(desks)]
            for block, (part, found) in zip(now, spread(work, desks, now), strict=True):
                piece = int(pieces[block.places[0]])
                if not gradient.nodes or gradient.nodes[-1][0] != piece:
                    gradient.add(piece, torch.zeros_like(model))
                gradient.nodes[-1][1].add_(part)
                places.append(block.places)
                losses.append(found)
    sums = np.bincount(np.concatenate(places), torch.cat(losses).double().cpu().numpy(), len(plan.rows))
    return gradient.finish(), torch.from_numpy(sums).to(model)


def _in_order(plan: BatchPlan) -> list[Block]:
    return sorted(blocks_of(plan, 1), key=lambda block: (block.places[0], block.starts[0]))


def _losses(job: Job, model: nn.Module, plan: BatchPlan, block: Block) -> tuple[Tensor, Tensor]:
    """Losses [piece, n] of a block, and the weight of each in the mean loss of its device."""
    place, wide = job.inputs.device, int(block.counts.max())
    real = np.arange(wide) < block.counts[:, None]
    columns = block.starts[:, None] + np.where(real, np.arange(wide), 0)  # filled up with the first of the piece
    chosen = torch.from_numpy(plan.indices[0, block.places[:, None], columns]).to(place)
    counted = real & (block.counts >= job.loss.least)[:, None]
    weights = torch.from_numpy((counted / plan.counts[block.places][:, None]).astype(np.float32)).to(place)
    half = place.type == "cuda" and job.settings.precision != "float32"
    with torch.autocast(place.type, dtype=torch.bfloat16, enabled=half):
        if job.loss.prepare is None:
            outputs = _through(model, job.inputs[chosen], 2)
        else:
            outputs = _through(model, _views(job, plan, block, chosen), 3)
    return vmap(job.loss.per_sample)(outputs.float(), job.targets[chosen]), weights


def _through(model: nn.Module, inputs: Tensor, leading: int) -> Tensor:
    outputs: Tensor = model(channels_last(inputs.flatten(0, leading - 1)))
    return outputs.view(*inputs.shape[:leading], *outputs.shape[1:])


def _views(job: Job, plan: BatchPlan, block: Block, chosen: Tensor) -> Tensor:
    """Views [piece, view, n, ...], those of a piece drawn as the executors of local steps draw them."""
    keys = plan.keys[0, block.places].tolist()
    inputs = job.inputs[chosen]
    if job.loss.prepare_rows is not None and len(keys) > 1 and (block.counts == block.counts[0]).all():
        draws = [generator(key, start) for key, start in zip(keys, block.starts.tolist(), strict=True)]
        return job.loss.prepare_rows(inputs, draws)
    rows = []
    for own, key, start, count in zip(inputs, keys, block.starts.tolist(), block.counts.tolist(), strict=True):
        views = prepared(job.loss, own[:count], key, start)
        rows.append(torch.cat([views, views[:, :1].expand(-1, len(own) - count, *views.shape[2:])], dim=1))
    return torch.stack(rows)
