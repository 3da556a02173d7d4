"""Compiled training of small dense networks, for dense.py."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, part

# Sums may be taken in any order; a loss that is no number must stay one that is none.
FAST = {"reassoc", "contract", "nsz", "arcp"}
# Always inside of `train_devices`: a function of its own would be there twice, with sums in two orders, and a process that
# compiled it would round otherwise than one that loads kept code.
_inlined = partial(part, nogil=True, fastmath=FAST, forceinline=True)


@_inlined
def _forward(inputs: Any, outputs: Any, row: Any, base: Any, wide: Any, number: Any, hidden: Any) -> None:
    """outputs[n, o] = bias[o] + sum over i of inputs[n, i] * weight[o, i], for `wide` inputs i; ReLU if hidden.

    Four datapoints and two outputs at a time: every number that is loaded serves several products.
    """
    outs = outputs.shape[1]
    bias = base + wide * outs
    nothing = np.float32(0)
    for one in range(0, outs, 2):
        two = min(one + 1, outs - 1)
        first, second = row[base + one * wide :][:wide], row[base + two * wide :][:wide]
        for a in range(0, number, 4):
            b, c, d = min(a + 1, number - 1), min(a + 2, number - 1), min(a + 3, number - 1)
            at_a, at_b, at_c, at_d = inputs[a], inputs[b], inputs[c], inputs[d]
            a1 = b1 = c1 = d1 = row[bias + one] * np.float32(1)
            a2 = b2 = c2 = d2 = row[bias + two] * np.float32(1)
            for i in range(wide):
                x, y = first[i], second[i]
                p, q, r, s = at_a[i], at_b[i], at_c[i], at_d[i]
                a1 += p * x
                b1 += q * x
                c1 += r * x
                d1 += s * x
                a2 += p * y
                b2 += q * y
                c2 += r * y
                d2 += s * y
            outputs[a, one], outputs[b, one], outputs[c, one], outputs[d, one] = a1, b1, c1, d1
            outputs[a, two], outputs[b, two], outputs[c, two], outputs[d, two] = a2, b2, c2, d2
    if hidden:
        for n in range(number):
            for o in range(outs):
                if outputs[n, o] < nothing:
                    outputs[n, o] = nothing


@_inlined
def _combine(into: Any, wide: Any, factors: Any, number: Any, flat: Any, places: Any) -> None:
    """into[:wide] += sum over k < number of factors[k] * flat[places[k] :][:wide], four at a time."""
    whole = number - number % 4
    for k in range(0, whole, 4):
        u, v, w, x = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        a, b = flat[places[k] :][:wide], flat[places[k + 1] :][:wide]
        c, d = flat[places[k + 2] :][:wide], flat[places[k + 3] :][:wide]
        for i in range(wide):
            into[i] += u * a[i] + v * b[i] + w * c[i] + x * d[i]
    for k in range(whole, number):
        u, a = factors[k], flat[places[k] :][:wide]
        for i in range(wide):
            into[i] += u * a[i]


@_inlined
def _cross_entropy(outputs: Any, labels: Any, chosen: Any, number: Any, gradient: Any) -> Any:
    """The mean loss of the first `number` datapoints, and its gradient by the outputs."""
    total = 0.0
    share = np.float32(1.0 / number)
    for n in range(number):
        own, slope, label = outputs[n], gradient[n], labels[chosen[n]]
        top, mass = own[0], np.float32(0)
        for k in range(1, len(own)):
            top = max(top, own[k])
        for k in range(len(own)):
            slope[k] = np.exp(own[k] - top)
            mass += slope[k]
        total += np.log(mass) - (own[label] - top)
        for k in range(len(own)):
            slope[k] *= share / mass
        slope[label] -= share
    return total / number


@_inlined
def _squared(outputs: Any, values: Any, chosen: Any, number: Any, gradient: Any) -> Any:
    """The same of the squared error."""
    total = 0.0
    parts = outputs.shape[1]
    share = np.float32(1.0 / (number * parts))
    for n in range(number):
        for k in range(parts):
            error = outputs[n, k] - values[chosen[n], k]
            total += error * error
            gradient[n, k] = np.float32(2) * share * error
    return total * share


@_inlined
def _descend(row: Any, held: Any, slope: Any, anchor: Any, rates: Any) -> None:
    """A step of SGD on a piece of a row (see optimisers.py)."""
    rate, momentum, decay, pull = rates
    for i in range(len(slope)):
        push = slope[i] + decay * row[i]
        if pull != 0:
            push += pull * (row[i] - anchor[i])
        held[i] = momentum * held[i] + push
        row[i] -= rate * held[i]


@_inlined
def _backward(model: Any, base: Any, inputs: Any, number: Any, slope: Any, back: Any, rates: Any, last: Any) -> None:
    """A layer's step, from the gradient by its outputs `slope`; `back` becomes that by its inputs, unless it is the last.

    `model` is its row, what momentum it holds, and where it began.
    """
    row, held, anchor = model
    wide, outs = inputs.shape[1], slope.shape[1]
    bias = base + wide * outs
    room = max(number, outs)
    factors, places = np.empty(room, dtype=np.float32), np.empty(room, dtype=np.int64)
    if not last:
        for n in range(number):
            found = 0
            for o in range(outs):
                if slope[n, o] != 0:
                    factors[found], places[found] = slope[n, o], base + o * wide
                    found += 1
            own = back[n]
            own[:] = 0
            _combine(own, wide, factors, found, row, places)
            for i in range(wide):
                if inputs[n, i] <= 0:  # where the ReLU before has cut off
                    own[i] = 0
    flat = inputs.reshape(-1)
    gradient, single = np.empty(wide, dtype=np.float32), np.empty(1, dtype=np.float32)
    for o in range(outs):
        gradient[:] = 0
        single[0] = 0
        found = 0
        for n in range(number):
            if slope[n, o] != 0:
                factors[found], places[found] = slope[n, o], n * wide
                single[0] += slope[n, o]
                found += 1
        _combine(gradient, wide, factors, found, flat, places)
        at = base + o * wide
        _descend(row[at:][:wide], held[at:][:wide], gradient, anchor[at:][:wide], rates)
        at = bias + o
        _descend(row[at:][:1], held[at:][:1], single, anchor[at:][:1], rates)


@_inlined
def _copy(one: Any, other: Any) -> None:
    """other[:] = one, which takes the compiler a second, for the sentence about a wrong shape."""
    for i in range(len(one)):
        other[i] = one[i]


class Datapoints(NamedTuple):
    """What minibatches are drawn from."""

    inputs: NDArray[np.float32]  # [datapoint, value]
    labels: NDArray[np.int64]  # [datapoint], or empty
    values: NDArray[np.float32]  # [datapoint, target] where there are no labels


class Steps(NamedTuple):
    """What active devices train on (batches.Plan), and where their losses go."""

    rows: NDArray[np.int64]  # [active] its row of the models
    indices: NDArray[np.int64]  # [step, active, place] datapoints
    counts: NDArray[np.int64]  # [active] datapoints in a minibatch
    losses: NDArray[np.float32]  # [step, active]


@kernel(nogil=True)
def train_devices(params: Any, momentum: Any, datapoints: Any, work: Any, widths: Any, rates: Any, part: Any) -> None:
    """All steps of the active devices in `part`. Without momentum that lasts, it starts anew."""
    inputs, labels, values = datapoints
    rows, indices, counts, losses = work
    steps, most = indices.shape[0], indices.shape[2]
    layers = len(widths) - 1
    bases = np.zeros(layers + 1, dtype=np.int64)
    for layer in range(layers):
        bases[layer + 1] = bases[layer] + widths[layer + 1] * (widths[layer] + 1)
    starts = np.zeros(layers + 2, dtype=np.int64)
    for layer in range(layers + 1):
        starts[layer + 1] = starts[layer] + most * widths[layer]
    activity, slopes = np.empty(starts[-1], dtype=np.float32), np.empty(starts[-1], dtype=np.float32)
    # Copies: each view of an array that threads share would make them wait for each other to count it.
    row, held = np.empty(params.shape[1], dtype=np.float32), np.zeros(params.shape[1], dtype=np.float32)
    anchor, chosen = np.empty_like(row), np.empty(most, dtype=np.int64)
    for place in part:
        device, number = rows[place], counts[place]
        _copy(params[device], row)
        _copy(row, anchor)
        if len(momentum):
            _copy(momentum[device], held)
        else:
            held[:] = 0
        for step in range(steps):
            first = activity[: starts[1]].reshape(most, widths[0])
            for n in range(number):
                chosen[n] = indices[step, place, n]
                for i in range(widths[0]):
                    first[n, i] = inputs[chosen[n], i]
            for layer in range(layers):
                ins = activity[starts[layer] : starts[layer + 1]].reshape(most, widths[layer])
                outs = activity[starts[layer + 1] : starts[layer + 2]].reshape(most, widths[layer + 1])
                _forward(ins, outs, row, bases[layer], widths[layer], number, layer < layers - 1)
            outs = activity[starts[layers] : starts[layers + 1]].reshape(most, widths[layers])
            slope = slopes[starts[layers] : starts[layers + 1]].reshape(most, widths[layers])
            if len(labels):
                losses[step, place] = _cross_entropy(outs, labels, chosen, number, slope)
            else:
                losses[step, place] = _squared(outs, values, chosen, number, slope)
            for layer in range(layers - 1, -1, -1):
                ins = activity[starts[layer] : starts[layer + 1]].reshape(most, widths[layer])
                slope = slopes[starts[layer + 1] : starts[layer + 2]].reshape(most, widths[layer + 1])
                back = slopes[starts[layer] : starts[layer + 1]].reshape(most, widths[layer])
                _backward((row, held, anchor), bases[layer], ins, number, slope, back, rates, layer == 0)
        _copy(row, params[device])
        if len(momentum):
            _copy(held, momentum[device])
