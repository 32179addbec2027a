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


@triton.jit
def pixel_shuffle_kernel(x_ptr, y_ptr, n, h, w, scale, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % (w * scale)
    row = offsets // (w * scale) % (h * scale)
    channel = offsets // (w * scale * h * scale)
    from_channel = (channel * scale + row % scale) * scale + column % scale
    at = (from_channel * h + row // scale) * w + column // scale
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def pixel_shuffle(dtype, channels, h, w, scale):
    x, y = normal(dtype, channels * scale * scale, h, w), empty(dtype, channels, h * scale, w * scale)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: torch.nn.functional.pixel_shuffle(x.double(), scale)},
        flat(pixel_shuffle_kernel, n, x, y, n, h, w, scale), FLAT,
    )


@triton.jit
def im2col_kernel(x_ptr, y_ptr, n, h, w, window, padding, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % w
    row = offsets // w % h
    j = offsets // (w * h) % window
    i = offsets // (w * h * window) % window
    plane = offsets // (w * h * window * window)
    from_row, from_column = row + i - padding, column + j - padding
    inside = mask & (from_row >= 0) & (from_row < h) & (from_column >= 0) & (from_column < w)
    v = tl.load(x_ptr + (plane * h + from_row) * w + from_column, mask=inside, other=0.0, eviction_policy=LOAD)
    tl.store(y_ptr + offsets, v, mask=mask)


def im2col(dtype, planes, h, w):
    x, y = normal(dtype, planes, h, w), empty(dtype, planes, 9, h * w)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: torch.nn.functional.unfold(x.double()[:, None], 3, padding=1)},
        flat(im2col_kernel, n, x, y, n, h, w, 3, 1), FLAT,
    )


@triton.jit
def nchw_to_nhwc_kernel(x_ptr, y_ptr, n, channels, h, w, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    channel = offsets % channels
    column = offsets // channels % w
    row = offsets // (channels * w) % h
    image = offsets // (channels * w * h)
    at = ((image * channels + channel) * h + row) * w + column
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def nchw_to_nhwc(dtype, images, channels, h, w):
    x, y = normal(dtype, images, channels, h, w), empty(dtype, images, h, w, channels)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: x.double().permute(0, 2, 3, 1)}, flat(nchw_to_nhwc_kernel, n, x, y, n, channels, h, w), FLAT
    )


@triton.jit
def nhwc_to_nchw_kernel(x_ptr, y_ptr, n, channels, h, w, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % w
    row = offsets // w % h
    channel = offsets // (w * h) % channels
    image = offsets // (w * h * channels)
    at = ((image * h + row) * w + column) * channels + channel
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def nhwc_to_nchw(dtype, images, channels, h, w):
    x, y = normal(dtype, images, h, w, channels), empty(dtype, images, channels, h, w)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: x.double().permute(0, 3, 1, 2)}, flat(nhwc_to_nchw_kernel, n, x, y, n, channels, h, w), FLAT
    )


@triton.jit
def repeat_kv_kernel(x_ptr, y_ptr, n, heads, sequence, depth, repeats, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    d = offsets % depth
    s = offsets // depth % sequence
    h = offsets // (depth * sequence) % (heads * repeats)
    b = offsets // (depth * sequence * heads * repeats)
    at = ((b * heads + h // repeats) * sequence + s) * depth + d
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def repeat_kv(dtype, batch, heads, sequence, depth, repeats):
    x, y = normal(dtype, batch, heads, sequence, depth), empty(dtype, batch, heads * repeats, sequence, depth)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: x.double().repeat_interleave(repeats, 1)},
        flat(repeat_kv_kernel, n, x, y, n, heads, sequence, depth, repeats), FLAT,
    )
