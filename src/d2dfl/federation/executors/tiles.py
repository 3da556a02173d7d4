"""Convolutions of many models at once as Triton kernels, without windows in memory: what fused.py launches.

Activations lie as [row, line, place, datapoint, channel], with a border of zeros around lines and places where a 3 x 3 kernel
reads them: then what one tap of a kernel reads for neighbouring places is one block of memory. Products whose place is on the
border are left out by the line where that is cheap: they would add zeros. Weights lie as in a row of params, channels last.
Sums are taken in float32 in an order that never changes.
"""

import triton
import triton.language as tl


@triton.jit
def lay_windows(
    inputs,  # [datapoint, channel, line, place] float32
    chosen,  # [row, n]
    out,  # [row, line, place, n, TAPS]
    CHANNELS: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    SIDE: tl.constexpr,  # of a kernel
    STRIDE: tl.constexpr,
    TOP: tl.constexpr,  # border
    LEFT: tl.constexpr,
    PLACES: tl.constexpr,  # windows in a line
    N: tl.constexpr,
    BLOCK: tl.constexpr,  # datapoints
    TAPS: tl.constexpr,  # room for SIDE * SIDE * CHANNELS, channels last
):
    h = tl.program_id(0)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None, None]
    row = tl.program_id(2).to(tl.int64)
    place = tl.arange(0, PLACES)[None, :, None]
    tap = tl.arange(0, TAPS)[None, None, :]
    line = h * STRIDE + tap // CHANNELS // SIDE - TOP
    column = place * STRIDE + tap // CHANNELS % SIDE - LEFT
    inside = (tap < SIDE * SIDE * CHANNELS) & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
    start = tl.load(chosen + row * N + n) * (CHANNELS * HEIGHT * WIDTH)
    values = tl.load(inputs + start + (tap % CHANNELS * HEIGHT + line) * WIDTH + column, mask=inside, other=0.0)
    lines = tl.num_programs(0)
    into = out + (((row * lines + h) * PLACES + place) * N + n) * TAPS + tap
    tl.store(into, values.to(out.dtype.element_ty))


@triton.jit
def first_forward(
    windows,  # [row, line, place, n, TAPS]
    weights,  # rows of all parameters
    out,  # [row, line / 2 + 2, place / 2 + 2, n, OUT], relu and the largest of four taken
    code,  # [row, line / 2, place / 2, n, OUT] which of the four it was
    weights_stride,
    bias_at,
    LINES: tl.constexpr,
    PLACES: tl.constexpr,
    N: tl.constexpr,
    USED: tl.constexpr,
    TAPS: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    h = tl.program_id(0) // (PLACES // 2)
    w = tl.program_id(0) % (PLACES // 2)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    row = tl.program_id(2).to(tl.int64)
    taps, outs = tl.arange(0, TAPS), tl.arange(0, OUT)
    own = weights + row * weights_stride
    kernel = tl.load(own + outs[None, :] * USED + taps[:, None], mask=taps[:, None] < USED, other=0.0)
    best = tl.zeros((BLOCK, OUT), dtype=tl.float32)
    which = tl.zeros((BLOCK, OUT), dtype=tl.int8)
    for q in tl.static_range(4):
        place = ((row * LINES + 2 * h + q // 2) * PLACES + 2 * w + q % 2) * N + n
        now = tl.dot(tl.load(windows + place * TAPS + taps[None, :]), kernel)
        if q == 0:
            best = now
        else:
            which = tl.where(now > best, q, which).to(tl.int8)
            best = tl.maximum(best, now)
    best = tl.maximum(best + tl.load(own + bias_at + outs)[None, :].to(tl.float32), 0.0)
    into = ((row * (LINES // 2 + 2) + h + 1) * (PLACES // 2 + 2) + w + 1) * N + n
    tl.store(out + into * OUT + outs[None, :], best.to(out.dtype.element_ty))
    into = ((row * (LINES // 2) + h) * (PLACES // 2) + w) * N + n
    tl.store(code + into * OUT + outs[None, :], which)


@triton.jit
def first_weights(
    gradient,  # [row, line / 2 + 2, place / 2 + 2, n, OUT] to the largest of four
    code,
    windows,
    out,  # [row, part, OUT, TAPS] sums over a line of the largest of four each
    LINES: tl.constexpr,
    PLACES: tl.constexpr,
    N: tl.constexpr,
    TAPS: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    h = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    taps, outs = tl.arange(0, TAPS), tl.arange(0, OUT)
    total = tl.zeros((OUT, TAPS), dtype=tl.float32)
    for part in range(PLACES // 2 * (N // BLOCK)):
        w = part // (N // BLOCK)
        n = part % (N // BLOCK) * BLOCK + tl.arange(0, BLOCK)[:, None]
        here = ((row * (LINES // 2 + 2) + h + 1) * (PLACES // 2 + 2) + w + 1) * N + n
        slope = tl.load(gradient + here * OUT + outs[None, :])
        here = ((row * (LINES // 2) + h) * (PLACES // 2) + w) * N + n
        which = tl.load(code + here * OUT + outs[None, :])
        for q in tl.static_range(4):
            place = ((row * LINES + 2 * h + q // 2) * PLACES + 2 * w + q % 2) * N + n
            own = tl.where(which == q, slope, 0.0).to(windows.dtype.element_ty)
            total += tl.dot(tl.trans(own), tl.load(windows + place * TAPS + taps[None, :]))
    into = (row * (LINES // 2) + h) * OUT * TAPS + outs[:, None] * TAPS + taps[None, :]
    tl.store(out + into, total)


@triton.jit
def conv_forward(
    source,  # [row, (H + 2) * (W + 2) * N, C] block (1, BM, BK)
    weights,  # [row, OUT, 9 * C] block (1, BN, BK)
    bias,  # rows of all parameters, from this bias on
    out,  # [row, (H + 2) * (W + 2) * N, OUT] block (1, BM, BN), relu taken
    bias_stride,
    C: tl.constexpr,
    OUT: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    N: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    o = tl.program_id(0) * BN
    h = tl.program_id(1) // (W * N // BM)
    at = tl.program_id(1) % (W * N // BM) * BM
    row = tl.program_id(2)
    LINE: tl.constexpr = (W + 2) * N
    STEPS: tl.constexpr = C // BK
    first = tl.where(h == 0, 3 * STEPS, 0)
    last = tl.where(h == H - 1, 6 * STEPS, 9 * STEPS)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(first, last, num_stages=STAGES):
        tap = k // STEPS
        c = k % STEPS * BK
        left = source.load([row, (h + tap // 3) * LINE + tap % 3 * N + at, c]).reshape(BM, BK)
        right = weights.load([row, o, tap * C + c]).reshape(BN, BK)
        total = tl.dot(left, right.T, total)
    outs = o + tl.arange(0, BN)
    own = tl.load(bias + row.to(tl.int64) * bias_stride + outs, mask=outs < OUT, other=0.0)
    total = tl.maximum(total + own.to(tl.float32)[None, :], 0.0)
    out.store([row, (h + 1) * LINE + N + at, o], total.to(out.dtype).reshape(1, BM, BN))


@triton.jit
def conv_backward(
    gradient,  # [row, (H + 2) * (W + 2) * N, OUT] block (1, BM, BK)
    weights,  # [row, OUT, 9 * C] block (1, BK, BN)
    source,  # [row, (H + 2) * (W + 2) * N, C] block (1, BM, BN): where it is 0, relu lets no gradient pass
    out,  # the same of the gradient to source
    sums,  # [row, tile, C] of it
    C: tl.constexpr,
    OUT: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    N: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    c = tl.program_id(0) * BN
    h = tl.program_id(1) // (W * N // BM)
    at = tl.program_id(1) % (W * N // BM) * BM
    row = tl.program_id(2)
    LINE: tl.constexpr = (W + 2) * N
    STEPS: tl.constexpr = OUT // BK
    first = tl.where(h == 0, 3 * STEPS, 0)
    last = tl.where(h == H - 1, 6 * STEPS, 9 * STEPS)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(first, last, num_stages=STAGES):
        turned = k // STEPS  # the tap, counted from the last one
        o = k % STEPS * BK
        left = gradient.load([row, (h + turned // 3) * LINE + turned % 3 * N + at, o]).reshape(BM, BK)
        right = weights.load([row, o, (8 - turned) * C + c]).reshape(BK, BN)
        total = tl.dot(left, right, total)
    here = (h + 1) * LINE + N + at
    total = tl.where(source.load([row, here, c]).reshape(BM, BN) > 0, total, 0.0)
    out.store([row, here, c], total.to(out.dtype).reshape(1, BM, BN))
    channels = c + tl.arange(0, BN)
    into = sums + (row.to(tl.int64) * tl.num_programs(1) + tl.program_id(1)) * C + channels
    tl.store(into, tl.sum(total, axis=0), mask=channels < C)


@triton.jit
def conv_weights(
    gradient,  # [row, (H + 2) * (W + 2) * N, OUT] block (1, BK, BO)
    source,  # [row, (H + 2) * (W + 2) * N, C] block (1, BK, BC)
    out,  # [row, OUT, 9 * C] block (1, BO, BC)
    C: tl.constexpr,
    OUT: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    N: tl.constexpr,
    BO: tl.constexpr,
    BC: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    tap = tl.program_id(0) // (C // BC)
    c = tl.program_id(0) % (C // BC) * BC
    o = tl.program_id(1) * BO
    row = tl.program_id(2)
    LINE: tl.constexpr = (W + 2) * N
    PARTS: tl.constexpr = N // BK  # of a place
    shift = (tap // 3 - 1) * LINE + (tap % 3 - 1) * N
    top = tl.where(tap < 3, 1, 0)
    left = tl.where(tap % 3 == 0, PARTS, 0)
    lines = tl.where(tap // 3 == 1, H, H - 1)
    parts = tl.where(tap % 3 == 1, W * PARTS, (W - 1) * PARTS)
    total = tl.zeros((BO, BC), dtype=tl.float32)
    for k in tl.range(0, lines * parts, num_stages=STAGES):
        here = (top + 1 + k // parts) * LINE + N + (left + k % parts) * BK
        slope = gradient.load([row, here, o]).reshape(BK, BO)
        seen = source.load([row, here + shift, c]).reshape(BK, BC)
        total = tl.dot(slope.T, seen, total)
    out.store([row, o, tap * C + c], total.to(out.dtype).reshape(1, BO, BC))


@triton.jit
def pool_forward(source, out, H: tl.constexpr, W: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """source [row, H + 2, W + 2, SIZE] -> out [row, H / 2 + 2, W / 2 + 2, SIZE]: the largest of four."""
    h = tl.program_id(1) // (W // 2)
    w = tl.program_id(1) % (W // 2)
    row = tl.program_id(2).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    corner = source + ((row * (H + 2) + 2 * h + 1) * (W + 2) + 2 * w + 1) * SIZE + at
    upper = tl.maximum(tl.load(corner), tl.load(corner + SIZE))
    lower = tl.maximum(tl.load(corner + (W + 2) * SIZE), tl.load(corner + (W + 3) * SIZE))
    tl.store(out + ((row * (H // 2 + 2) + h + 1) * (W // 2 + 2) + w + 1) * SIZE + at, tl.maximum(upper, lower))


@triton.jit
def pool_backward(gradient, source, H: tl.constexpr, W: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient goes to the first of the largest of four; it takes the place of `source`."""
    h = tl.program_id(1) // (W // 2)
    w = tl.program_id(1) % (W // 2)
    row = tl.program_id(2).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slope = tl.load(gradient + ((row * (H // 2 + 2) + h + 1) * (W // 2 + 2) + w + 1) * SIZE + at)
    first = source + ((row * (H + 2) + 2 * h + 1) * (W + 2) + 2 * w + 1) * SIZE + at
    second, third, fourth = first + SIZE, first + (W + 2) * SIZE, first + (W + 3) * SIZE
    a, b, c, d = tl.load(first), tl.load(second), tl.load(third), tl.load(fourth)
    most = tl.maximum(tl.maximum(a, b), tl.maximum(c, d))
    nothing = tl.zeros_like(slope)
    tl.store(first, tl.where(a == most, slope, nothing))
    tl.store(second, tl.where((b == most) & (a < most), slope, nothing))
    tl.store(third, tl.where((c == most) & (a < most) & (b < most), slope, nothing))
    tl.store(fourth, tl.where((d == most) & (a < most) & (b < most) & (c < most), slope, nothing))
