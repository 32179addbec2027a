"""Quantisation to 8-bit integers with a scale for each row or group, and back."""

import functools

import torch
import triton
import triton.language as tl
from row import FLAT, blocks_of, empty, flat, normal, peers, rows_of, work
from triton.language.extra import libdevice


@triton.jit
def row_quantise_kernel(x_ptr, q_ptr, scales_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    v = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(v)), 1e-8), 127.0)
    tl.store(q_ptr + row * columns + column, libdevice.rint(tl.div_rn(v, scale)).to(tl.int8), mask=mask)
    tl.store(scales_ptr + row, scale)


def quantised(x):
    """Quotients, which are not rounded, and scales of the rows of a matrix."""
    x = x.double()
    scales = x.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
    return x / scales, scales


def row_quantise(dtype, rows, columns):
    x, q, scales = normal(dtype, rows, columns), empty(torch.int8, rows, columns), empty(torch.float32, rows)
    whole = functools.cache(lambda: quantised(x))
    return work(
        {"x": x}, {"q": q, "scales": scales}, {"q": lambda: whole()[0], "scales": lambda: whole()[1]},
        rows_of(row_quantise_kernel, rows, x, q, scales, columns), blocks_of(columns), absolute={"q": 0.5001},
    )


@triton.jit
def group_quantise_kernel(x_ptr, q_ptr, scales_ptr, n, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    v = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0, eviction_policy=LOAD).to(tl.float32)
    groups = tl.reshape(v, [BLOCK_SIZE // 64, 64])
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(groups), axis=1), 1e-8), 127.0)
    q = libdevice.rint(tl.div_rn(groups, scale[:, None]))
    tl.store(q_ptr + offsets, tl.reshape(q, [BLOCK_SIZE]).to(tl.int8), mask=offsets < n)
    group = tl.program_id(0) * (BLOCK_SIZE // 64) + tl.arange(0, BLOCK_SIZE // 64)
    tl.store(scales_ptr + group, scale, mask=group < tl.cdiv(n, 64))


def group_quantise(dtype, n):
    groups = triton.cdiv(n, 64)
    x, q, scales = normal(dtype, n), empty(torch.int8, n), empty(torch.float32, groups)

    @functools.cache
    def whole():
        quotients, scales = quantised(torch.nn.functional.pad(x, (0, groups * 64 - n)).reshape(groups, 64))
        return quotients.reshape(-1)[:n], scales

    return work(
        {"x": x}, {"q": q, "scales": scales}, {"q": lambda: whole()[0], "scales": lambda: whole()[1]},
        flat(group_quantise_kernel, n, x, q, scales, n), FLAT, absolute={"q": 0.5001},
    )


@triton.jit
def group_dequantise_kernel(q_ptr, scales_ptr, y_ptr, n, group, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    scale = tl.load(scales_ptr + offsets // group, mask=mask, eviction_policy=LOAD)
    tl.store(y_ptr + offsets, tl.load(q_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32) * scale, mask=mask)


def group_dequantise(dtype, n):
    q = torch.randint(-127, 128, (n,), device=peers.DEVICE, dtype=torch.int8)
    scales, y = normal(torch.float32, triton.cdiv(n, 64)), empty(dtype, n)
    return work(
        {"q": q, "scales": scales}, {"y": y}, {"y": lambda: q.double() * scales.double().repeat_interleave(64)[:n]},
        flat(group_dequantise_kernel, n, q, scales, y, n, 64), FLAT,
    )
