"""Reductions and scans over rows, over the middle axis and over the first axis, and selections."""

import torch
import triton
import triton.language as tl
from row import STAGES, TILES, blocks_of, empty, flat, normal, peers, rows_of, tiles_of, uneven_lengths, work


@triton.jit
def row_max_index_kernel(x_ptr, values_ptr, indices_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    v = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
    tl.store(values_ptr + row, tl.max(v, axis=0))
    tl.store(indices_ptr + row, tl.argmax(v, axis=0))


def first_largest(x, axis):
    """The index of the first of the largest elements, which torch's argmax need not give on a GPU."""
    x = x.double()
    is_largest = x == x.amax(axis, keepdim=True)
    shape = [-1 if i == axis else 1 for i in range(x.dim())]
    at = torch.arange(x.shape[axis], device=peers.DEVICE).reshape(shape)
    return torch.where(is_largest, at, x.shape[axis]).amin(axis)


def row_max_index(dtype, rows, columns):
    x, values, index = normal(dtype, rows, columns), empty(dtype, rows), empty(torch.int64, rows)
    return work(
        {"x": x}, {"values": values, "indices": index}, {"values": lambda: x.double().amax(1), "indices": lambda: first_largest(x, 1).double()},
        rows_of(row_max_index_kernel, rows, x, values, index, columns), blocks_of(columns),
    )


@triton.jit
def row_topk_kernel(x_ptr, values_ptr, columns, K: tl.constexpr, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    v = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
    tl.store(values_ptr + row * K + tl.arange(0, K), tl.topk(v, K))


TOP = 16


def row_topk(dtype, rows, columns):
    x, values = normal(dtype, rows, columns), empty(dtype, rows, TOP)
    return work(
        {"x": x}, {"values": values}, {"values": lambda: x.double().topk(TOP, 1).values},
        rows_of(row_topk_kernel, rows, x, values, columns, TOP), [{"BLOCK_SIZE": 1024, "num_warps": warps} for warps in (1, 2, 4, 8)],
    )


@triton.jit
def row_cumsum_kernel(x_ptr, y_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr):
    start = tl.program_id(0) * columns
    before = 0.0
    for first in tl.range(0, columns, BLOCK_SIZE, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK_SIZE)
        v = tl.load(x_ptr + start + column, mask=column < columns, other=0.0, eviction_policy=LOAD).to(tl.float32)
        tl.store(y_ptr + start + column, tl.cumsum(v, axis=0) + before, mask=column < columns)
        before += tl.sum(v, axis=0)


def row_cumsum(dtype, rows, columns):
    x, y = normal(dtype, rows, columns), empty(dtype, rows, columns)
    return work(
        {"x": x}, {"y": y}, {"y": lambda: x.double().cumsum(1)}, rows_of(row_cumsum_kernel, rows, x, y, columns),
        [{"BLOCK_SIZE": block, "num_warps": warps} for block in (1024, 2048, 4096, 8192) for warps in (4, 8)],
        relative={"y": 4e-6} if dtype == torch.float32 else {}, variants=STAGES,
    )


@triton.jit
def middle_moments_kernel(
    x_ptr, means_ptr, variances_ptr, middle, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr
):
    outer = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    squares = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in tl.range(0, middle, ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        mask = (row < middle)[:, None] & (column < columns)[None, :]
        at = (outer * middle + row)[:, None] * columns + column[None, :]
        v = tl.load(x_ptr + at, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total, axis=0) / middle
    variance = tl.sum(squares, axis=0) / middle - mean * mean
    tl.store(means_ptr + outer * columns + column, mean, mask=column < columns)
    tl.store(variances_ptr + outer * columns + column, variance, mask=column < columns)


def middle_moments(dtype, outer, middle, columns):
    x = normal(dtype, outer, middle, columns)
    means, variances = empty(torch.float32, outer, columns), empty(torch.float32, outer, columns)
    return work(
        {"x": x}, {"means": means, "variances": variances},
        {"means": lambda: x.double().mean(1), "variances": lambda: x.double().var(1, unbiased=False)},
        tiles_of(middle_moments_kernel, outer, columns, x, means, variances, middle, columns), TILES, variants=STAGES,
    )


@triton.jit
def first_axis_argmax_kernel(x_ptr, y_ptr, rows, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr):
    column = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    best = tl.full([BLOCK_SIZE], -float("inf"), tl.float32)
    best_row = tl.zeros([BLOCK_SIZE], tl.int32)
    for row in tl.range(rows, num_stages=STAGES):
        v = tl.load(x_ptr + row * columns + column, mask=mask, eviction_policy=LOAD).to(tl.float32)
        best_row = tl.where(v > best, row, best_row)
        best = tl.maximum(best, v)
    tl.store(y_ptr + column, best_row, mask=mask)


def first_axis_argmax(dtype, rows, columns):
    x, y = normal(dtype, rows, columns), empty(torch.int64, columns)
    return work(
        {"x": x}, {"y": y}, {"y": lambda: first_largest(x, 0).double()}, flat(first_axis_argmax_kernel, columns, x, y, rows, columns),
        [{"BLOCK_SIZE": block, "num_warps": warps} for block in (128, 256, 512, 1024) for warps in (4, 8)], variants=STAGES,
    )


@triton.jit
def ragged_mean_kernel(x_ptr, starts_ptr, y_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr):
    sequence = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    start = tl.load(starts_ptr + sequence)
    end = tl.load(starts_ptr + sequence + 1)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in tl.range(start, end, ROWS, num_stages=STAGES):
        token = first + tl.arange(0, ROWS)
        mask = (token < end)[:, None] & (column < columns)[None, :]
        total += tl.load(x_ptr + token[:, None] * columns + column[None, :], mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    mean = tl.sum(total, axis=0) / (end - start)
    tl.store(y_ptr + sequence * columns + column, mean, mask=column < columns)


def ragged_mean(dtype, sequences, longest, columns):
    lengths = uneven_lengths(sequences, longest)
    starts = torch.tensor([0, *lengths], device=peers.DEVICE).cumsum(0)
    x, y = normal(dtype, sum(lengths), columns), empty(dtype, sequences, columns)
    return work(
        {"x": x, "starts": starts}, {"y": y}, {"y": lambda: torch.stack([part.double().mean(0) for part in x.split(lengths)])},
        tiles_of(ragged_mean_kernel, sequences, columns, x, starts, y, columns), TILES, variants=STAGES,
    )
