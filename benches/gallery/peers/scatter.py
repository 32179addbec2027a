"""Indices that are read from memory: scatter by atomics, selections of rows, bags of embeddings, histograms."""

import torch
import triton
import triton.language as tl
from row import FLAT, STAGES, Launch, Zeros, empty, flat, indices, normal, peers, work


@triton.jit
def scatter_add_kernel(x_ptr, index_ptr, y_ptr, n, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    row = tl.load(index_ptr + offsets // columns, mask=mask, eviction_policy=LOAD)
    v = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.atomic_add(y_ptr + row * columns + offsets % columns, v, mask=mask)


def scatter_add(dtype, rows_of_x, rows_of_y, columns):
    x, index = normal(dtype, rows_of_x, columns), indices(rows_of_y, rows_of_x)
    y, n = empty(torch.float32, rows_of_y, columns), x.numel()
    launches = flat(scatter_add_kernel, n, x, index, y, n, columns)
    whole = lambda: torch.zeros(rows_of_y, columns, device=peers.DEVICE, dtype=torch.float64).index_add(0, index, x.double())
    return work({"x": x, "index": index}, {"y": y}, {"y": whole}, lambda config: [Zeros(y), *launches(config)], FLAT, relative={"y": 4e-6})


@triton.jit
def index_select_kernel(x_ptr, index_ptr, y_ptr, n, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    row = tl.load(index_ptr + offsets // columns, mask=mask, eviction_policy=LOAD)
    v = tl.load(x_ptr + row * columns + offsets % columns, mask=mask, eviction_policy=LOAD)
    tl.store(y_ptr + offsets, v, mask=mask)


def index_select(dtype, rows_of_y, rows_of_x, columns):
    x, index, y = normal(dtype, rows_of_x, columns), indices(rows_of_x, rows_of_y), empty(dtype, rows_of_y, columns)
    n = y.numel()
    return work(
        {"x": x, "index": index}, {"y": y}, {"y": lambda: x.double()[index]},
        flat(index_select_kernel, n, x, index, y, n, columns), FLAT,
    )


@triton.jit
def embedding_bag_kernel(table_ptr, index_ptr, y_ptr, in_bag, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr, STAGES: tl.constexpr):
    bag = tl.program_id(1)
    column = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    total = tl.zeros([BLOCK_SIZE], tl.float32)
    for i in tl.range(in_bag, num_stages=STAGES):
        row = tl.load(index_ptr + bag * in_bag + i)
        total += tl.load(table_ptr + row * columns + column, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + bag * columns + column, total, mask=mask)


def embedding_bag(dtype, bags, in_bag, rows, columns):
    table, index, y = normal(dtype, rows, columns), indices(rows, bags * in_bag), empty(dtype, bags, columns)
    # The table of most sizes is larger than the L2 cache, so that a row that several bags name is read several times.
    read = index.numel() * (8 + columns * table.element_size())
    return work(
        {"table": table, "index": index}, {"y": y},
        {"y": lambda: torch.stack([part.double().sum(0) for part in table[index].reshape(bags, in_bag, columns)])},
        lambda config: [
            Launch(embedding_bag_kernel, (triton.cdiv(columns, config["BLOCK_SIZE"]), bags), (table, index, y, in_bag, columns), config)
        ],
        [{"BLOCK_SIZE": block, "num_warps": warps} for block in (128, 256, 512, 1024) for warps in (1, 4)],
        bytes=read + y.numel() * y.element_size(), variants=STAGES,
    )


@triton.jit
def bin_counts_kernel(x_ptr, counts_ptr, n, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    v = tl.load(x_ptr + offsets, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    counts = tl.histogram((v * 256.0).to(tl.int32), 256, mask=mask)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), counts)


def bin_counts(dtype, n):
    x = (0.99 * torch.rand(n, device=peers.DEVICE)).to(dtype)
    counts = empty(torch.int32, 256)
    launches = flat(bin_counts_kernel, n, x, counts, n)
    whole = lambda: torch.bincount((x.float() * 256).long(), minlength=256).double()
    return work({"x": x}, {"counts": counts}, {"counts": whole}, lambda config: [Zeros(counts), *launches(config)], FLAT)
