"""Softmax and what is computed with it: a program a row, which is one tile."""

import torch
import triton
import triton.language as tl
from row import blocks_of, empty, normal, peers, rows_of, work


def log_probabilities(dtype, *shape):
    return (-8 * torch.rand(*shape, device=peers.DEVICE)).to(dtype)


@triton.jit
def causal_softmax_kernel(x_ptr, y_ptr, sequence, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    is_seen = column <= row % sequence
    v = tl.load(x_ptr + row * sequence + column, mask=is_seen, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y_ptr + row * sequence + column, e / tl.sum(e, axis=0), mask=column < sequence)


def causal_softmax(dtype, heads, sequence):
    x, y = normal(dtype, heads, sequence, sequence), empty(dtype, heads, sequence, sequence)

    def whole():
        is_hidden = torch.ones(sequence, sequence, device=peers.DEVICE, dtype=torch.bool).triu(1)
        return torch.softmax(x.double().masked_fill(is_hidden, -float("inf")), -1)

    read = heads * sequence * (sequence + 1) // 2
    return work(
        {"x": x}, {"y": y}, {"y": whole}, rows_of(causal_softmax_kernel, heads * sequence, x, y, sequence), blocks_of(sequence),
        bytes=(read + y.numel()) * y.element_size(),
    )


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    v = tl.load(x_ptr + row * columns + column, mask=mask, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
    shifted = v - tl.max(v, axis=0)
    tl.store(y_ptr + row * columns + column, shifted - tl.log(tl.sum(tl.exp(shifted), axis=0)), mask=mask)


def log_softmax(dtype, rows, columns):
    x, y = normal(dtype, rows, columns), empty(dtype, rows, columns)
    return work(
        {"x": x}, {"y": y}, {"y": lambda: torch.log_softmax(x.double(), -1)},
        rows_of(log_softmax_kernel, rows, x, y, columns), blocks_of(columns),
    )


@triton.jit
def log_softmax_backward_kernel(dy_ptr, y_ptr, dx_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    g = tl.load(dy_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    p = tl.exp(tl.load(y_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32))
    tl.store(dx_ptr + row * columns + column, g - p * tl.sum(g, axis=0), mask=mask)


def log_softmax_backward(dtype, rows, columns):
    dy, y, dx = normal(dtype, rows, columns), log_probabilities(dtype, rows, columns), empty(dtype, rows, columns)
    return work(
        {"dy": dy, "y": y}, {"dx": dx}, {"dx": lambda: dy.double() - y.double().exp() * dy.double().sum(1, keepdim=True)},
        rows_of(log_softmax_backward_kernel, rows, dy, y, dx, columns), blocks_of(columns),
    )


@triton.jit
def kl_divergence_kernel(p_ptr, q_ptr, losses_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    log_p = tl.load(p_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    log_q = tl.load(q_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    tl.store(losses_ptr + row, tl.sum(tl.exp(log_p) * (log_p - log_q), axis=0))


def kl_divergence(dtype, rows, columns):
    p, q = log_probabilities(dtype, rows, columns), log_probabilities(dtype, rows, columns)
    losses = empty(torch.float32, rows)
    return work(
        {"p": p, "q": q}, {"losses": losses}, {"losses": lambda: (p.double().exp() * (p.double() - q.double())).sum(1)},
        rows_of(kl_divergence_kernel, rows, p, q, losses, columns), blocks_of(columns),
    )
