"""Copies with shifted, mirrored or strided indices, over the flat index of the output."""

import torch
import triton
import triton.language as tl
from row import FLAT, empty, flat, normal, work


@triton.jit
def roll_kernel(x_ptr, y_ptr, n, columns, shift, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % columns
    row = offsets // columns
    at = row * columns + (column + columns - shift) % columns
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def roll(dtype, rows, columns, shift):
    x, y, n = normal(dtype, rows, columns), empty(dtype, rows, columns), rows * columns
    return work({"x": x}, {"y": y}, {"y": lambda: x.double().roll(shift, 1)}, flat(roll_kernel, n, x, y, n, columns, shift), FLAT)


@triton.jit
def reflect_pad_kernel(x_ptr, y_ptr, n, h, w, padding, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    oh, ow = h + 2 * padding, w + 2 * padding
    column = tl.abs(offsets % ow - padding)
    row = tl.abs(offsets // ow % oh - padding)
    plane = offsets // (ow * oh)
    from_column = tl.where(column >= w, 2 * (w - 1) - column, column)
    from_row = tl.where(row >= h, 2 * (h - 1) - row, row)
    v = tl.load(x_ptr + (plane * h + from_row) * w + from_column, mask=mask, eviction_policy=LOAD)
    tl.store(y_ptr + offsets, v, mask=mask)


def reflect_pad(dtype, planes, h, w, padding):
    x, y = normal(dtype, planes, h, w), empty(dtype, planes, h + 2 * padding, w + 2 * padding)
    n = y.numel()
    whole = lambda: torch.nn.functional.pad(x.double(), [padding] * 4, mode="reflect")
    return work({"x": x}, {"y": y}, {"y": whole}, flat(reflect_pad_kernel, n, x, y, n, h, w, padding), FLAT)


@triton.jit
def strided_copy_kernel(
    x_ptr, y_ptr, n, size1, size2, size3, stride0, stride1, stride2, stride3, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    i3 = offsets % size3
    i2 = offsets // size3 % size2
    i1 = offsets // (size3 * size2) % size1
    i0 = offsets // (size3 * size2 * size1)
    at = i0 * stride0 + i1 * stride1 + i2 * stride2 + i3 * stride3
    tl.store(y_ptr + offsets, tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD), mask=mask)


def strided_copy(dtype, a, b, c, d, padding):
    x, y = normal(dtype, b, a, c, d + padding), empty(dtype, a, b, c, d)
    view, n = x[..., :d].transpose(0, 1), y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: view.double().contiguous()},
        flat(strided_copy_kernel, n, x, y, n, b, c, d, *view.stride()), FLAT, bytes=2 * n * x.element_size(),
    )


@triton.jit
def broadcast_add_kernel(
    a_ptr, b_ptr, y_ptr, n, size1, size2, size3, a0, a1, a2, a3, b0, b1, b2, b3, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    i3 = offsets % size3
    i2 = offsets // size3 % size2
    i1 = offsets // (size3 * size2) % size1
    i0 = offsets // (size3 * size2 * size1)
    left = tl.load(a_ptr + i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3, mask=mask, eviction_policy=LOAD).to(tl.float32)
    right = tl.load(b_ptr + i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + offsets, left + right, mask=mask)


def broadcast_add(dtype, s0, s1, s2, s3):
    a, b, y = normal(dtype, s0, s1, s2, s3), normal(dtype, s0, 1, s2, 1), empty(dtype, s0, s1, s2, s3)
    n = y.numel()
    strides = (*a.stride(), *b.expand(s0, s1, s2, s3).stride())
    return work(
        {"a": a, "b": b}, {"y": y}, {"y": lambda: a.double() + b.double()},
        flat(broadcast_add_kernel, n, a, b, y, n, s1, s2, s3, *strides), FLAT,
    )
