"""Moves of elements between layouts: the flat index of the output is taken apart by // and % with sizes known at run time."""

import torch
import triton
import triton.language as tl
from row import FLAT, empty, flat, normal, work


@triton.jit
def nearest_upsample_kernel(x_ptr, y_ptr, n, h, w, scale, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % (w * scale)
    row = offsets // (w * scale) % (h * scale)
    plane = offsets // (w * scale * h * scale)
    at = (plane * h + row // scale) * w + column // scale
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def nearest_upsample(dtype, planes, h, w, scale):
    x, y = normal(dtype, planes, h, w), empty(dtype, planes, h * scale, w * scale)
    n = y.numel()
    whole = lambda: x.double().repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    return work({"x": x}, {"y": y}, {"y": whole}, flat(nearest_upsample_kernel, n, x, y, n, h, w, scale), FLAT)


@triton.jit
def heads_transposed_kernel(x_ptr, y_ptr, n, sequence, heads, depth, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    d = offsets % depth
    s = offsets // depth % sequence
    h = offsets // (depth * sequence) % heads
    b = offsets // (depth * sequence * heads)
    at = ((b * sequence + s) * heads + h) * depth + d
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def heads_transposed(dtype, batch, sequence, heads, depth):
    x, y = normal(dtype, batch, sequence, heads, depth), empty(dtype, batch, heads, sequence, depth)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: x.double().transpose(1, 2)},
        flat(heads_transposed_kernel, n, x, y, n, sequence, heads, depth), FLAT,
    )
