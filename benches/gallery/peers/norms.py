"""Norms and their gradients: a program for each group or row."""

import functools

import torch
import triton
import triton.language as tl
from row import STAGES, TILES, Launch, blocks_of, empty, normal, peers, work

EPS = 1e-5


@triton.jit
def group_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, channels, pixels, groups, eps, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr
):
    first_channel = tl.program_id(0) % groups * (channels // groups)
    n = channels // groups * pixels
    start = tl.program_id(0) * n
    total = tl.zeros([BLOCK_SIZE], tl.float32)
    squares = tl.zeros([BLOCK_SIZE], tl.float32)
    for first in tl.range(0, n, BLOCK_SIZE, num_stages=STAGES):
        at = first + tl.arange(0, BLOCK_SIZE)
        v = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy=LOAD).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total) / n
    rstd = tl.rsqrt(tl.sum(squares) / n - mean * mean + eps)
    for first in tl.range(0, n, BLOCK_SIZE, num_stages=STAGES):
        at = first + tl.arange(0, BLOCK_SIZE)
        mask = at < n
        channel = first_channel + at // pixels
        w = tl.load(weight_ptr + channel, mask=mask).to(tl.float32)
        b = tl.load(bias_ptr + channel, mask=mask).to(tl.float32)
        v = tl.load(x_ptr + start + at, mask=mask, eviction_policy=LOAD).to(tl.float32)
        tl.store(y_ptr + start + at, (v - mean) * rstd * w + b, mask=mask)


def group_norm(dtype, images, channels, pixels, groups):
    x, y = normal(dtype, images, channels, pixels), empty(dtype, images, channels, pixels)
    weight, bias = normal(dtype, channels), normal(dtype, channels)
    args = (x, weight, bias, y, channels, pixels, groups, EPS)
    return work(
        {"x": x, "weight": weight, "bias": bias}, {"y": y},
        {"y": lambda: torch.nn.functional.group_norm(x.double(), groups, weight.double(), bias.double(), EPS)},
        lambda config: [Launch(group_norm_kernel, (images * groups,), args, config)],
        [{"BLOCK_SIZE": block, "num_warps": warps} for block in (1024, 2048, 4096, 8192) for warps in (4, 8)],
        variants=STAGES,
    )


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, rstd_ptr, dx_ptr, parts_ptr, rows, columns,
    BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr,
):
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    w = tl.load(weight_ptr + column, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK_SIZE], tl.float32)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        g = tl.load(dy_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
        scale = tl.load(rstd_ptr + row)
        normal = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32) * scale
        mean = tl.sum(g * w * normal) / columns
        tl.store(dx_ptr + row * columns + column, (g * w - normal * mean) * scale, mask=mask)
        dw += g * normal
    tl.store(parts_ptr + tl.program_id(0) * columns + column, dw, mask=mask)


@triton.jit
def column_sum_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        total += tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + column, tl.sum(total, axis=0), mask=column < columns)


GROUPS = 256


def rms_norm_backward(dtype, rows, columns):
    x, dy, dx = normal(dtype, rows, columns), normal(dtype, rows, columns), empty(dtype, rows, columns)
    weight, dweight = normal(dtype, columns), empty(dtype, columns)
    rstd = 0.5 + torch.rand(rows, device=peers.DEVICE)
    parts = empty(torch.float32, GROUPS, columns)

    def launches(config):
        config = dict(config)
        last = config.pop("LAST")
        return [
            Launch(rms_norm_backward_kernel, (GROUPS,), (dy, x, weight, rstd, dx, parts, rows, columns), config),
            Launch(column_sum_kernel, (triton.cdiv(columns, last["COLUMNS"]),), (parts, dweight, GROUPS, columns), last),
        ]

    @functools.cache
    def gradients():
        scale, g = rstd.double()[:, None], dy.double() * weight.double()
        normal = x.double() * scale
        return (g - normal * (g * normal).mean(1, keepdim=True)) * scale, (dy.double() * normal).sum(0)

    return work(
        {"dy": dy, "x": x, "weight": weight, "rstd": rstd}, {"dx": dx, "dweight": dweight},
        {"dx": lambda: gradients()[0], "dweight": lambda: gradients()[1]},
        launches, blocks_of(columns), variants={"LAST": tuple(TILES), **STAGES},
    )
