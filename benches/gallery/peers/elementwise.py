"""Elementwise functions of flattened tensors: activations, masks, dropout, rotary positions and random numbers."""

import torch
import triton
import triton.language as tl
from philox import uniform
from row import FLAT, empty, flat, indices, normal, work
from triton.language.extra import libdevice


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, y_ptr, n, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    b = tl.load(bias_ptr + offsets % columns, mask=mask, eviction_policy=LOAD).to(tl.float32)
    v = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32) + b
    tl.store(y_ptr + offsets, tl.maximum(v, 0.0), mask=mask)


def bias_relu(dtype, rows, columns):
    x, bias, y = normal(dtype, rows, columns), normal(dtype, columns), empty(dtype, rows, columns)
    n = rows * columns
    return work(
        {"x": x, "bias": bias}, {"y": y}, {"y": lambda: torch.relu(x.double() + bias.double())},
        flat(bias_relu_kernel, n, x, bias, y, n, columns), FLAT,
    )


@triton.jit
def dropout_residual_kernel(x_ptr, branch_ptr, n, p, seed, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    v = tl.load(branch_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    dropped = tl.where(tl.rand(seed, offsets) > p, v / (1.0 - p), 0.0)
    residual = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(x_ptr + offsets, residual + dropped, mask=mask)


P, SEED = 0.25, 1234


def dropout_residual(dtype, n):
    x, branch = normal(dtype, n), normal(dtype, n)
    first = x.clone()
    return work(
        {"x": x, "branch": branch}, {"x": x},
        {"x": lambda: first.double() + torch.where(uniform(SEED, n) > P, branch.double() / (1 - P), 0.0)},
        flat(dropout_residual_kernel, n, x, branch, n, P, SEED), FLAT,
    )


@triton.jit
def gelu_gate_kernel(x_ptr, gate_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    v = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    g = tl.load(gate_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    gelu = 0.5 * v * (1.0 + libdevice.tanh(0.79788456 * (v + 0.044715 * v * v * v)))
    tl.store(y_ptr + offsets, gelu * g, mask=mask)


def gelu_gate(dtype, n):
    x, gate, y = normal(dtype, n), normal(dtype, n), empty(dtype, n)
    return work(
        {"x": x, "gate": gate}, {"y": y}, {"y": lambda: torch.nn.functional.gelu(x.double(), approximate="tanh") * gate.double()},
        flat(gelu_gate_kernel, n, x, gate, y, n), FLAT,
    )


@triton.jit
def masked_fill_kernel(x_ptr, is_filled_ptr, y_ptr, n, columns, value, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    filled = tl.load(is_filled_ptr + offsets % columns, mask=mask, eviction_policy=LOAD) != 0
    v = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + offsets, tl.where(filled, value, v), mask=mask)


def masked_fill(dtype, rows, columns):
    x, y, n = normal(dtype, rows, columns), empty(dtype, rows, columns), rows * columns
    is_filled = indices(2, columns).to(torch.uint8)
    return work(
        {"x": x, "is_filled": is_filled}, {"y": y}, {"y": lambda: x.double().masked_fill(is_filled != 0, -10_000.0)},
        flat(masked_fill_kernel, n, x, is_filled, y, n, columns, -10_000.0), FLAT,
    )


@triton.jit
def rope_interleaved_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, n, sequence, heads, half, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    pair = offsets % half
    position = offsets // (half * heads) % sequence
    c = tl.load(cos_ptr + position * half + pair, mask=mask)
    s = tl.load(sin_ptr + position * half + pair, mask=mask)
    even = tl.load(x_ptr + 2 * offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    odd = tl.load(x_ptr + 2 * offsets + 1, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + 2 * offsets, even * c - odd * s, mask=mask)
    tl.store(y_ptr + 2 * offsets + 1, even * s + odd * c, mask=mask)


def rope_interleaved(dtype, batch, sequence, heads, half):
    x, y = normal(dtype, batch, sequence, heads, half, 2), empty(dtype, batch, sequence, heads, half, 2)
    cos, sin = normal(torch.float32, sequence, half), normal(torch.float32, sequence, half)
    n = x.numel() // 2

    def whole():
        c, s = cos.double()[None, :, None, :], sin.double()[None, :, None, :]
        even, odd = x.double().unbind(-1)
        return torch.stack((even * c - odd * s, even * s + odd * c), -1)

    return work(
        {"x": x, "cos": cos, "sin": sin}, {"y": y}, {"y": whole},
        flat(rope_interleaved_kernel, n, x, cos, sin, y, n, sequence, heads, half), FLAT,
    )


@triton.jit
def random_init_kernel(y_ptr, n, low, high, seed, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offsets, low + (high - low) * tl.rand(seed, offsets), mask=offsets < n)


def random_init(dtype, n):
    y = empty(dtype, n)
    return work({}, {"y": y}, {"y": lambda: uniform(SEED, n) - 0.5}, flat(random_init_kernel, n, y, n, -0.5, 0.5, SEED), FLAT)
