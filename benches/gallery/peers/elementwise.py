"""Elementwise functions of flattened tensors: activations, masks, dropout, rotary positions and random numbers."""

import torch
import triton
import triton.language as tl
from philox import uniform
from row import FLAT, empty, flat, normal, work


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
