"""The `stack` executor: all devices at once, as one batch of models."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from d2dfl.federation.batches import BatchPlan
from d2dfl.federation.executors.design import Design, design_for, filled
from d2dfl.federation.executors.loop import PIECE, TEST_PIECE, Job, generator, prepared
from d2dfl.federation.executors.stacked import shares_weights, stacked_forward
from d2dfl.federation.losses import Loss
from d2dfl.federation.optimisers import Memory, blank_memory, descend

if TYPE_CHECKING:
    from d2dfl.federation.executors.fused import Fused

# Stacked parameters [row, *shape] in the layout's order, inputs [row, n, ...] -> outputs [row, n, ...].
Forward = Callable[[Sequence[Tensor], Tensor], Tensor]
# The same, targets [row, n] and shares [row, n] of each datapoint in its row's mean -> mean losses [row].
Losses = Callable[[Sequence[Tensor], Tensor, Tensor, Tensor], Tensor]

COMPILED = 1 << 18  # parameters from which compiling pays: smaller models wait for their kernels to be started anyhow
KEPT = 4  # kinds of models and shapes whose compiled code stays
WIDTH = 50  # devices at once in compiled code: more are hardly faster (dev/LOG.md)
TESTED = 8192  # datapoints times models in one pass of a test on a GPU, where each pass waits for its start
_kept: dict[tuple[object, ...], "Losses"] = {}


def vmapped(job: Job) -> Forward:
    """Any model that torch.func.vmap can take."""

    def one(weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
        outputs: Tensor = functional_call(job.model, dict(zip(job.layout.names, weights, strict=True)), (inputs,))
        return outputs

    return vmap(one)


def fastest(job: Job) -> Forward:
    """Batched products where the model allows it, on a GPU in bfloat16; else vmap.

    On a CPU vmap stays for convolutions, where products were no faster, and bfloat16 can end in an illegal instruction.
    """
    plain = stacked_forward(job.model) if job.inputs.is_cuda or not job.layout.convolutional else None
    if plain is None:
        return vmapped(job)
    if not job.inputs.is_cuda:
        return plain
    half = job.settings.precision != "float32"

    def forward(weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
            return plain(weights, inputs).float()

    return forward


def head_forward(design: Design) -> Forward:
    """The dense layers behind convolutions, from weights and inputs in bfloat16."""
    plain = stacked_forward(design.head)
    assert plain is not None

    def forward(weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
        return plain(weights, inputs).float()

    return forward


def stacked_outputs(loss: Loss, forward: Forward, weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
    """Outputs [row, n, ...], or [row, view, n, ...] where the loss makes views."""
    if loss.prepare is None:
        return forward(weights, inputs)
    outputs = forward(weights, inputs.flatten(1, 2))
    return outputs.view(*inputs.shape[:3], *outputs.shape[2:])


def losses_of(loss: Loss, forward: Forward) -> Losses:
    """Each row's mean loss. It holds on to no data: compiled, it outlives a training."""
    per_sample = vmap(loss.per_sample)

    def losses(weights: Sequence[Tensor], inputs: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        return (per_sample(stacked_outputs(loss, forward, weights, inputs), targets) * shares).sum(dim=1)

    return losses


def compiled_losses(kind: tuple[object, ...], losses: Losses, mode: str = "reduce-overhead") -> Losses:
    """The same, compiled once for all trainings of this kind in this process: it takes half a minute.

    PyTorch gives up compiling code that it has compiled for too many models and shapes, without a word and for good; so
    all is forgotten when there are many.
    """
    if kind not in _kept:
        if len(_kept) >= KEPT:
            torch.compiler.reset()
            _kept.clear()
        _kept[kind] = torch.compile(losses, mode=mode, dynamic=False)
    return _kept[kind]


class Stack:
    """All devices at once. `forward` may be replaced by a faster one for a kind of model or processor."""

    name = "stack"
    width: int | None = None  # devices at once; None: all

    def __init__(self, job: Job, forward: Forward | None = None, compiled: bool = True) -> None:
        self.job = job
        self.forward = forward or fastest(job)
        self.per_sample = vmap(job.loss.per_sample)
        self.score = vmap(job.loss.score)
        self.gradient = torch.empty(0)
        # Compiled, window gathering, pooling, loss and optimiser become a few kernels each: 9 ms a step become 4.
        # Shapes are fixed for a whole training; code for shapes that may vary took minutes to compile.
        plain = job.layout.parameters >= COMPILED and stacked_forward(job.model) is not None
        self.compiles = compiled and job.inputs.is_cuda and plain
        self.plain = losses_of(job.loss, self.forward)
        self.losses = self.plain
        self.width = WIDTH if self.compiles else self.width
        self.descend = torch.compile(descend, dynamic=False) if self.compiles else descend
        # A sequence of plain layers is fully described by its text.
        self.kind = (str(job.model), job.loss, job.settings.precision, forward)
        self.design = design_for(job) if self.compiles and forward is None else None
        self.fused: Fused | None = None

    def train(self, params: Tensor, memory: Memory, plan: BatchPlan) -> Tensor:
        if self.width is None:
            return self._train(params, memory, plan)
        # Always as many rows, whatever the number of devices, runs and absent ones: one compilation serves them all.
        width = min(self.width, len(params))
        losses = [self._train(params, memory, part) for part in plan.parts(width)]
        return torch.cat(losses, dim=1)[:, : len(plan.rows)]

    def _train(self, params: Tensor, memory: Memory, plan: BatchPlan) -> Tensor:
        job, place = self.job, params.device
        chosen = plan.chosen
        active = torch.from_numpy(chosen).to(place) if isinstance(chosen, np.ndarray) else chosen
        rows = params[active]  # a view of neighbours, else a copy
        own = {name: held[active] for name, held in memory.items()} or blank_memory(job.settings, rows)
        anchor = rows.clone() if job.proximal else None
        indices = torch.from_numpy(plan.indices).to(place)
        counts = torch.from_numpy(plan.counts).to(place)[:, None]
        shares = (torch.arange(indices.shape[2], device=place) < counts) / counts
        room = filled(indices.shape[2])
        if self.design is not None and room is not None:
            fused = self._fused(self.design, len(rows), room)
            losses = fused.steps(rows, own, anchor, indices, shares)
        else:
            losses = self._steps(rows, own, anchor, indices, shares, plan)
        if isinstance(active, Tensor):
            real = plan.real
            params[active[:real]] = rows[:real]
            for name, held in memory.items():
                held[active[:real]] = own[name][:real]
        return losses

    def _fused(self, design: Design, rows: int, batch: int) -> "Fused":
        """Steps of as many rows and datapoints, made once for a training where they do not change."""
        from d2dfl.federation.executors.fused import Fused  # Triton is where a card is

        if self.fused is None or (self.fused.rows, self.fused.batch) != (rows, batch):
            self.fused = None  # its memory is needed
            losses = losses_of(self.job.loss, head_forward(design))
            head = compiled_losses(("head", *self.kind, rows, batch), losses, "default")
            self.fused = Fused(self.job, design, head, rows, batch)
        return self.fused

    def _steps(
        self, rows: Tensor, own: Memory, anchor: Tensor | None, indices: Tensor, shares: Tensor, plan: BatchPlan
    ) -> Tensor:
        """The steps of a plan; losses [step, row] before each."""
        job = self.job
        if self.gradient.shape != rows.shape:
            self.gradient = torch.empty_like(rows)
        leaves = [view.detach().requires_grad_() for view in job.layout.views(rows)]
        losses = torch.empty(indices.shape[:2], device=rows.device)
        job.model.train()
        if self.compiles:
            self.losses = compiled_losses((*self.kind, tuple(indices.shape[1:])), self.plain)
        for step in range(len(indices)):
            losses[step] = self._gradient(leaves, indices[step], shares, plan, step)
            self.descend(rows, self.gradient, own, anchor, job.settings)
        return losses

    def _gradient(self, leaves: list[Tensor], chosen: Tensor, shares: Tensor, plan: BatchPlan, step: int) -> Tensor:
        """Fill self.gradient with each row's gradient of its mean loss, and return these losses [row]."""
        job = self.job
        whole = torch.zeros(len(chosen), device=chosen.device)
        for start in range(0, chosen.shape[1], PIECE):
            piece = chosen[:, start : start + PIECE]
            inputs = self._inputs(piece, plan, step, start)
            part = shares[:, start : start + PIECE]
            if job.loss.least > 1:
                part = part * ((part > 0).sum(dim=1, keepdim=True) >= job.loss.least)
            losses = self.losses(leaves, inputs, job.targets[piece], part)
            gradients = torch.autograd.grad(losses.sum(), leaves, allow_unused=True)
            if start == 0:
                job.layout.flatten(gradients, self.gradient)
            else:
                job.layout.add(gradients, self.gradient)
            whole += losses.detach()
        return whole

    def _inputs(self, piece: Tensor, plan: BatchPlan, step: int, start: int) -> Tensor:
        """Inputs [row, n, ...], or [row, view, n, ...] where the loss makes views (of the real datapoints only)."""
        inputs = self.job.inputs[piece]
        if self.job.loss.prepare is None:
            return inputs
        if inputs.is_cuda and self.job.loss.prepare_rows is not None and plan.counts.min() >= start + piece.shape[1]:
            return self.job.loss.prepare_rows(inputs, [generator(key, start) for key in plan.keys[step].tolist()])
        rows = []
        for number, key in enumerate(plan.keys[step].tolist()):
            real = int(np.clip(plan.counts[number] - start, 0, piece.shape[1]))
            views = prepared(self.job.loss, inputs[number, : real or 1], key, start)
            rows.append(
                torch.cat([views, views[:, :1].expand(-1, piece.shape[1] - (real or 1), *views.shape[2:])], dim=1)
            )
        return torch.stack(rows)

    @torch.no_grad()
    def evaluate(self, params: Tensor, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        self.job.model.eval()
        weights = self.job.layout.views(params)
        losses = torch.zeros(len(params), device=params.device)
        scores = torch.zeros(len(params), device=params.device)
        # Views are drawn anew for each pass: for them its size is part of the result.
        grows = inputs.is_cuda and self.job.loss.prepare is None
        size = max(TEST_PIECE, TESTED // len(params)) if grows else TEST_PIECE
        for start in range(0, len(inputs), size):
            wanted = targets[start : start + size].expand(len(params), *[-1] * targets.ndim)
            views = prepared(self.job.loss, inputs[start : start + size], 0, start)
            outputs = stacked_outputs(
                self.job.loss, self.forward, weights, views.expand(len(params), *[-1] * views.ndim)
            )
            losses += self.per_sample(outputs, wanted).sum(dim=1)
            scores += self.score(outputs, wanted).sum(dim=1)
        return losses / len(inputs), scores / len(inputs)


def obstacle(job: Job) -> str | None:
    """Why a model cannot be stacked, or None: it is tried on two devices with one datapoint each."""
    if shares_weights(job.model):  # PyTorch's functional_call leaves vmap's tensors in such a model
        return "layers share weights"
    row = job.layout.row_of(job.model).to(job.inputs.device)
    plan = BatchPlan(
        np.arange(2), np.zeros((1, 2, 1), dtype=np.int64), np.ones(2, dtype=np.int64), np.zeros((1, 2), dtype=np.uint64)
    )
    try:
        with warnings.catch_warnings():
            # An operation that vmap can only loop over would make the stack slower than the loop.
            warnings.filterwarnings("error", message=".*performance drop.*")
            stack = Stack(job, compiled=False)
            leaves = [view.detach().requires_grad_() for view in job.layout.views(row.repeat(2, 1))]
            stack.gradient = torch.empty(2, job.layout.parameters, device=row.device)
            shares = torch.ones(2, 1, device=row.device)
            stack._gradient(leaves, torch.zeros(2, 1, dtype=torch.int64, device=row.device), shares, plan, 0)
    except Exception as error:  # whatever a user's model does inside vmap
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return None
