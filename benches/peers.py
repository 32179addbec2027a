"""Times Triton's and torch's versions of what the Rust benchmark times, on the same tensors, and checks all results.

A benchmark starts this program as a child and talks to it by lines, so that ours and the peers run alternately in one run
and see the same clocks. Each request is one line on standard input, each answer one line of JSON on standard output;
everything else goes to standard error.

    versions                              {"torch": .., "triton": .., "gpu": .., "driver": ..}
    clocks                                {"sm_mhz": .., "memory_mhz": .., "celsius": .., "watts": ..}
    works                                 {"works": ["silu bf16", "vector_add f32", ..]}
    prepare softmax bf16 8192 4096        {"tensors": {"x": {"handle": .., "offset": .., "len": ..}, ..}, "bytes": .., "seed": .., "triton_config": {..}}
    clear                                 {}, after the outputs were filled with NaN
    check                                 {} if the outputs hold the right results, else {"error": ..}
    time                                  {"torch": us, "torch compiled": us, "triton": us, "copy": us}
    enqueue                               {"triton_us": .., "triton_autotuned_us": .., "triton_nineteen_us": .., "torch_us": ..}
    quit

`prepare` makes the tensors of a work and shape, and gives CUDA's IPC handles of them (64 bytes in hexadecimal), by which our
side uses the same memory: one kernel takes up to 1.4% longer at other addresses. It checks every result of every peer against
f64, and picks Triton's configuration by a sweep. `check` compares the outputs, which our side has written, with the same
references. `time` times the work that was prepared last. A request that cannot be answered gives {"error": ".."} and the
program goes on.

Every peer runs as a CUDA graph, as ours does, so that no time includes what the host takes to launch. Times are means of the middle half in
microseconds, taken as `galatea::bench::do_bench` takes them (see `middle_us`).

Triton's kernels have the means of ours: the same algorithms, cache hints, several rows in a program, several CTAs in a
program, loads ahead of their use. `sweep` first varies the shape of a kernel, then the hints of the fastest shapes.

By hand: `printf 'prepare /tmp silu bf16 1048576\ntime\n' | python3 peers.py`.

To add a work: write a function that returns a `Work`, and name it in `WORKS`.
"""

import ctypes
import functools
import itertools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Callable

import torch
import triton
import triton.language as tl

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
# The share of the largest reference value that a result may be off by: the last place of f16 and bf16, which are
# rounded once, and some digits of f32 and f64, in which the functions themselves are computed. Integers are exact.
TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-6, torch.float64: 1e-13,
             torch.int8: 0, torch.uint8: 0, torch.int32: 0, torch.int64: 0}
# Checking in f64 needs several times the data: a piece at a time.
PIECE = 1 << 24
SEED = 0
# Where a load's lines go when the L2 is full: what the hints are swept over.
LOADS = ("", "evict_first", "evict_last")


@dataclass
class Launch:
    """One launch of a Triton kernel."""

    kernel: object
    grid: tuple
    args: tuple
    options: dict

    def run(self):
        self.kernel[self.grid](*self.args, **self.options)

    def compile(self):
        self.kernel.warmup(*self.args, grid=self.grid, **self.options)


@dataclass
class Work:
    """One piece of work on one shape, with its data already on the GPU."""

    bytes: int  # read and written, each byte counted once
    inputs: dict[str, torch.Tensor]  # what our side reads
    outputs: dict[str, torch.Tensor]  # what a peer fills
    references: dict[str, Callable[[slice], torch.Tensor]]  # the values `outputs[name][slice]` should have, in f64
    torch: Callable[[], object] | None  # fills the outputs, or gives the results in their order
    compiled: Callable[[], object] | None  # what torch.compile compiles; gives the results in the order of the outputs
    triton: Callable[[dict], list[Launch]]  # the launches in a given configuration
    shapes: list[dict]  # what Triton's kernel is swept over first
    variants: dict[str, tuple] = field(default_factory=dict)  # what the best of the shapes are swept over; the first of each is the default
    torch_is_rounded: bool = False  # torch rounds in between, as often as it likes
    relative: dict[str, float] = field(default_factory=dict)  # tolerances of single outputs, in place of TOLERANCE
    joined: dict[str, torch.Tensor] = field(default_factory=dict)  # several outputs that are one tensor of ours
    absolute: dict[str, float] = field(default_factory=dict)  # how far elements of single outputs may be off, in place of the tolerances
    initial: dict[str, torch.Tensor] = field(default_factory=dict)  # what outputs that are changed in place hold before a run


DEVICE = "cuda"


def normal(dtype, *shape):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def empty(dtype, *shape):
    return torch.empty(*shape, device=DEVICE, dtype=dtype)


def reference_of(compute):
    """The whole result, flattened, computed when it is first asked for."""
    whole = functools.cache(lambda: compute().reshape(-1))
    return lambda piece: whole()[piece]


# What an elementwise kernel is tuned over.
BLOCKS = [{"BLOCK_SIZE": block, "num_warps": warps} for block, warps in
          ((512, 4), (1024, 2), (1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 4), (4096, 8), (8192, 8))]


def row_shapes(columns, elements=1 << 14):
    """Whole rows in a program: rows at a time, warps and CTAs, with 2 to 64 elements a thread."""
    block = triton.next_power_of_2(columns)
    shapes = []
    for rows, warps, ctas in itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16)):
        threads = 32 * warps * ctas
        a_thread = rows * block / threads
        if not 4 <= a_thread <= 64 or (rows > 1 and (ctas > 1 or rows * block > elements)):
            continue
        if ctas > 1 and (block < 16384 or warps not in (4, 8)):
            continue
        shapes.append({"BLOCK_SIZE": block, "ROWS": rows, "num_warps": warps, "num_ctas": ctas})
    return shapes


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr = ""):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD)
    y = tl.load(y_ptr + offsets, mask=mask, eviction_policy=LOAD)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(dtype, n):
    x, y, out = normal(dtype, n), normal(dtype, n), empty(dtype, n)
    return Work(
        bytes=3 * n * x.element_size(),
        inputs={"x": x, "y": y},
        outputs={"out": out},
        references={"out": lambda piece: x[piece].double() + y[piece].double()},
        torch=lambda: torch.add(x, y, out=out),
        compiled=lambda: x + y,
        triton=lambda config: [Launch(add_kernel, (triton.cdiv(n, config["BLOCK_SIZE"]),), (x, y, out, n), config)],
        shapes=BLOCKS,
        variants={"LOAD": LOADS},
    )


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(out_ptr + offsets, x * tl.sigmoid(x), mask=mask)  # rounded once, by the store


def silu(dtype, n):
    x, out = normal(dtype, n), empty(dtype, n)
    return Work(
        bytes=2 * n * x.element_size(),
        inputs={"x": x},
        outputs={"y": out},
        references={"y": lambda piece: x[piece].double() * torch.sigmoid(x[piece].double())},
        torch=lambda: torch.ops.aten.silu.out(x, out=out),
        compiled=lambda: torch.nn.functional.silu(x),
        triton=lambda config: [Launch(silu_kernel, (triton.cdiv(n, config["BLOCK_SIZE"]),), (x, out, n), config)],
        shapes=BLOCKS,
        variants={"LOAD": LOADS},
    )


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, columns, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr, LOAD: tl.constexpr):
    # As the fused softmax of Triton's tutorials: a program takes one block of rows after the other.
    offsets = tl.arange(0, BLOCK_SIZE)[None, :]
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)[:, None]
        mask = (row < rows) & (offsets < columns)
        at = row.to(tl.int64) * columns + offsets
        x = tl.load(x_ptr + at, mask=mask, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
        tl.store(y_ptr + at, e * (1 / tl.sum(e, axis=1, keep_dims=True)), mask=mask)


@triton.jit
def softmax_row_kernel(x_ptr, y_ptr, rows, columns, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, LOAD: tl.constexpr):
    # A program for each block of rows, without a loop.
    offsets = tl.arange(0, BLOCK_SIZE)[None, :]
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    mask = (row < rows) & (offsets < columns)
    at = row.to(tl.int64) * columns + offsets
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(y_ptr + at, e * (1 / tl.sum(e, axis=1, keep_dims=True)), mask=mask)


@triton.jit
def softmax_wide_kernel(x_ptr, y_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr, AGAIN: tl.constexpr, SHARE: tl.constexpr):
    # Reads a row twice. SHARE neighbouring elements have one largest element and one sum.
    start = tl.program_id(0).to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK_SIZE)
    largest = tl.full([BLOCK_SIZE // SHARE], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_SIZE // SHARE], tl.float32)
    for first in range(0, columns, BLOCK_SIZE):
        mask = first + offsets < columns
        x = tl.load(x_ptr + start + first + offsets, mask=mask, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
        x = tl.reshape(x, [BLOCK_SIZE // SHARE, SHARE])
        above = tl.maximum(largest, tl.max(x, axis=1))
        base = tl.where(above == -float("inf"), 0.0, above)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base[:, None]), axis=1)
        largest = above
    row = tl.max(largest, axis=0)
    scale = 1 / tl.sum(total * tl.exp(largest - row), axis=0)
    for first in range(0, columns, BLOCK_SIZE):
        mask = first + offsets < columns
        x = tl.load(x_ptr + start + first + offsets, mask=mask, eviction_policy=AGAIN).to(tl.float32)
        tl.store(y_ptr + start + first + offsets, tl.exp(x - row) * scale, mask=mask, eviction_policy=AGAIN)


@triton.jit
def softmax_cluster_kernel(x_ptr, y_ptr, columns, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    # A row in the CTAs of a cluster: Triton splits only tiles of one axis so.
    offsets = tl.arange(0, BLOCK_SIZE)
    start = tl.program_id(0).to(tl.int64) * columns
    x = tl.load(x_ptr + start + offsets, mask=offsets < columns, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + start + offsets, e * (1 / tl.sum(e, axis=0)), mask=offsets < columns)


def softmax(dtype, rows, columns):
    x, out = normal(dtype, rows, columns), empty(dtype, rows, columns)
    shapes = row_shapes(columns) if columns <= 1 << 18 else []
    looped = [{**shape, "STAGES": stages, "PROGRAMS": programs}
              for shape in shapes if shape["num_ctas"] == 1 and shape["ROWS"] * columns >= 512
              for stages, programs in ((2, 132 * 8), (4, 132 * 4)) if shape["num_warps"] in (4, 8, 16)]
    wide = [{"BLOCK_SIZE": block, "SHARE": share, "num_warps": warps}
            for block, warps in ((4096, 8), (4096, 16), (8192, 16), (8192, 32), (16384, 32)) for share in (1, 4)]

    def launches(config):
        config = dict(config)
        if "SHARE" in config:
            return [Launch(softmax_wide_kernel, (rows,), (x, out, columns), {**config, "AGAIN": "evict_first"})]
        blocks = triton.cdiv(rows, config["ROWS"])
        if config["num_ctas"] > 1:
            config.pop("ROWS")
            return [Launch(softmax_cluster_kernel, (rows,), (x, out, columns), config)]
        if "PROGRAMS" in config:
            return [Launch(softmax_kernel, (min(config.pop("PROGRAMS"), blocks),), (x, out, rows, columns), config)]
        return [Launch(softmax_row_kernel, (blocks,), (x, out, rows, columns), config)]

    return Work(
        bytes=2 * x.numel() * x.element_size(),
        inputs={"x": x},
        outputs={"y": out},
        references={"y": reference_of(lambda: torch.softmax(x.double(), -1))},
        torch=lambda: torch.ops.aten._softmax.out(x, -1, False, out=out),
        compiled=lambda: torch.softmax(x, -1),
        triton=launches,
        shapes=shapes + looped + (wide if columns > 1 << 14 else []),
        variants={"LOAD": LOADS},
    )


@triton.jit
def layer_norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, rows, columns, eps, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, LOAD: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    offsets = tl.arange(0, BLOCK_SIZE)[None, :]
    inside = offsets < columns
    mask = (row < rows) & inside
    at = row.to(tl.int64) * columns + offsets
    x = tl.load(x_ptr + at, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=inside).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / columns
    difference = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(difference * difference, axis=1, keep_dims=True) / columns + eps)
    tl.store(mean_ptr + row, mean, mask=row < rows)
    tl.store(rstd_ptr + row, rstd, mask=row < rows)
    tl.store(y_ptr + at, difference * rstd * w + b, mask=mask)


def statistics_of(x):
    wide = x.double()
    return wide.mean(-1), 1 / torch.sqrt(wide.var(-1, unbiased=False) + 1e-5)


def layer_norm(dtype, rows, columns):
    x, w, b = normal(dtype, rows, columns), normal(dtype, columns), normal(dtype, columns)
    out, mean, rstd = empty(dtype, rows, columns), empty(torch.float32, rows), empty(torch.float32, rows)
    whole = lambda: torch.nn.functional.layer_norm(x.double(), (columns,), w.double(), b.double(), 1e-5)
    blocks = lambda config: (triton.cdiv(rows, config["ROWS"]),)
    return Work(
        bytes=2 * x.numel() * x.element_size(),
        inputs={"x": x, "weight": w, "bias": b},
        outputs={"y": out, "mean": mean, "rstd": rstd},
        references={"y": reference_of(whole), "mean": reference_of(lambda: statistics_of(x)[0]), "rstd": reference_of(lambda: statistics_of(x)[1])},
        torch=lambda: torch.ops.aten.native_layer_norm(x, (columns,), w, b, 1e-5),
        compiled=lambda: torch.ops.aten.native_layer_norm(x, (columns,), w, b, 1e-5),
        triton=lambda config: [Launch(layer_norm_kernel, blocks(config), (x, w, b, out, mean, rstd, rows, columns, 1e-5), config)],
        shapes=row_shapes(columns),
        variants={"LOAD": LOADS},
    )


@triton.jit
def rms_norm_kernel(
    x_ptr, w_ptr, y_ptr, rstd_ptr, rows, columns, eps, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, LOAD: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    offsets = tl.arange(0, BLOCK_SIZE)[None, :]
    inside = offsets < columns
    mask = (row < rows) & inside
    at = row.to(tl.int64) * columns + offsets
    x = tl.load(x_ptr + at, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=inside).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / columns + eps)
    tl.store(rstd_ptr + row, rstd, mask=row < rows)
    tl.store(y_ptr + at, x * rstd * w, mask=mask)


def rms_norm(dtype, rows, columns):
    x, w = normal(dtype, rows, columns), normal(dtype, columns)
    out, rstd = empty(dtype, rows, columns), empty(torch.float32, rows)
    whole = lambda: torch.nn.functional.rms_norm(x.double(), (columns,), w.double(), 1e-5)

    def compiled():
        scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5)
        return (x.float() * scale * w.float()).to(dtype), scale.reshape(-1)

    return Work(
        bytes=2 * x.numel() * x.element_size(),
        inputs={"x": x, "weight": w},
        outputs={"y": out, "rstd": rstd},
        references={"y": reference_of(whole), "rstd": reference_of(lambda: torch.rsqrt(x.double().square().mean(-1) + 1e-5))},
        torch=lambda: torch.nn.functional.rms_norm(x, (columns,), w, 1e-5),
        compiled=compiled,
        triton=lambda config: [
            Launch(rms_norm_kernel, (triton.cdiv(rows, config["ROWS"]),), (x, w, out, rstd, rows, columns, 1e-5), config)
        ],
        shapes=row_shapes(columns),
        variants={"LOAD": LOADS},
    )


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, rows, columns, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    total = tl.zeros([ROWS, BLOCK_SIZE], tl.float32)
    for first in range(0, columns, BLOCK_SIZE):
        offsets = first + tl.arange(0, BLOCK_SIZE)[None, :]
        at = row.to(tl.int64) * columns + offsets
        total += tl.load(x_ptr + at, mask=(row < rows) & (offsets < columns), other=0.0, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(total, axis=1, keep_dims=True), mask=row < rows)


def row_sum(dtype, rows, columns):
    x, out = normal(dtype, rows, columns), empty(dtype, rows)
    whole = row_shapes(columns)
    loops = [{"BLOCK_SIZE": block, "ROWS": 1, "num_warps": warps} for block, warps in ((1024, 1), (1024, 4), (2048, 4), (4096, 4), (4096, 8))]
    return Work(
        bytes=x.numel() * x.element_size() + out.numel() * out.element_size(),
        inputs={"x": x},
        outputs={"y": out},
        references={"y": reference_of(lambda: x.double().sum(dim=1))},
        torch=lambda: torch.sum(x, dim=1, out=out),
        compiled=lambda: torch.sum(x, dim=1),
        triton=lambda config: [Launch(row_sum_kernel, (triton.cdiv(rows, config["ROWS"]),), (x, out, rows, columns), config)],
        shapes=whole + loops,
        variants={"LOAD": LOADS},
    )


@triton.jit
def layer_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, rows, columns,
    BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr, LOAD: tl.constexpr,
):  # fmt: skip
    # A program takes every so many rows and keeps its part of the weights' gradients in registers.
    offsets = tl.arange(0, BLOCK_SIZE)[None, :]
    inside = offsets < columns
    w = tl.load(w_ptr + offsets, mask=inside).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK_SIZE], tl.float32)
    db = tl.zeros([ROWS, BLOCK_SIZE], tl.float32)
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)[:, None]
        mask = (row < rows) & inside
        at = row.to(tl.int64) * columns + offsets
        dy = tl.load(dy_ptr + at, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
        x = tl.load(x_ptr + at, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)
        normal = (x - tl.load(mean_ptr + row, mask=row < rows, other=0.0)) * rstd
        g = w * dy
        along = tl.sum(normal * g, axis=1, keep_dims=True) / columns
        constant = tl.sum(g, axis=1, keep_dims=True) / columns
        tl.store(dx_ptr + at, (g - (normal * along + constant)) * rstd, mask=mask)
        dw += dy * normal
        db += dy
    part = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK_SIZE)
    tl.store(dw_ptr + part + column, tl.sum(dw, axis=0), mask=column < columns)
    tl.store(db_ptr + part + column, tl.sum(db, axis=0), mask=column < columns)


@triton.jit
def layer_norm_backward_locked_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, locks_ptr, columns,
    GROUPS: tl.constexpr, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr,
):  # fmt: skip
    # As the layer norm of Triton's tutorials: a program a row, which adds to the parts of its group under a lock.
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < columns
    start = row.to(tl.int64) * columns
    dy = tl.load(dy_ptr + start + offsets, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0, eviction_policy=LOAD).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
    g = tl.where(mask, w * dy, 0.0)
    along = tl.sum(normal * g, axis=0) / columns
    constant = tl.sum(g, axis=0) / columns
    tl.store(dx_ptr + start + offsets, (g - (normal * along + constant)) * rstd, mask=mask)
    group = row % GROUPS
    lock, seen = locks_ptr + group, locks_ptr + GROUPS + group
    dw, db = dy * normal, dy
    dw_part, db_part = dw_ptr + group * columns + offsets, db_ptr + group * columns + offsets
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(seen) == 0:
        tl.atomic_xchg(seen, 1)
    else:
        dw += tl.load(dw_part, mask=mask)
        db += tl.load(db_part, mask=mask)
    tl.store(dw_part, dw, mask=mask)
    tl.store(db_part, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def column_sums_kernel(dw_ptr, db_ptr, dw_out_ptr, db_out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    dw = tl.zeros([ROWS, COLUMNS], tl.float32)
    db = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        at = row[:, None] * columns + column[None, :]
        dw += tl.load(dw_ptr + at, mask=mask, other=0.0)
        db += tl.load(db_ptr + at, mask=mask, other=0.0)
    tl.store(dw_out_ptr + column, tl.sum(dw, axis=0), mask=column < columns)
    tl.store(db_out_ptr + column, tl.sum(db, axis=0), mask=column < columns)


def layer_norm_backward(dtype, rows, columns):
    x, dy, out = normal(dtype, rows, columns), normal(dtype, rows, columns), empty(dtype, rows, columns)
    w, b = normal(dtype, columns), normal(dtype, columns)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, (columns,), w, b, 1e-5)
    mean, rstd = mean.float().reshape(-1), rstd.float().reshape(-1)
    most = 132 * 8
    dw_parts, db_parts = empty(torch.float32, most, columns), empty(torch.float32, most, columns)
    both, locks = empty(dtype, 2 * columns), torch.zeros(2 * most, device=DEVICE, dtype=torch.int32)
    dw, db = both[:columns], both[columns:]

    def launches(config):
        config = dict(config)
        groups, is_locked, last = config.pop("GROUPS"), config.pop("LOCKED"), config.pop("LAST")
        if is_locked:
            locks.zero_()
            args = (dy, x, w, mean, rstd, out, dw_parts, db_parts, locks, columns)
            first = Launch(layer_norm_backward_locked_kernel, (rows,), args, {**config, "GROUPS": groups})
        else:
            args = (dy, x, w, mean, rstd, out, dw_parts, db_parts, rows, columns)
            first = Launch(layer_norm_backward_kernel, (groups,), args, config)
        at_once, width, warps = last
        options = {"ROWS": at_once, "COLUMNS": width, "num_warps": warps}
        return [first, Launch(column_sums_kernel, (triton.cdiv(columns, width),), (dw_parts, db_parts, dw, db, groups, columns), options)]

    @functools.cache
    def gradients():
        leaf, weight, bias = (each.double().requires_grad_() for each in (x, w, b))
        torch.nn.functional.layer_norm(leaf, (columns,), weight, bias, 1e-5).backward(dy.double())
        return leaf.grad, weight.grad, bias.grad

    aten = lambda: torch.ops.aten.native_layer_norm_backward(
        dy, x, (columns,), mean.reshape(rows, 1), rstd.reshape(rows, 1), w, b, [True, True, True])
    block = triton.next_power_of_2(columns)
    staged = [{"BLOCK_SIZE": block, "ROWS": at_once, "num_warps": warps, "LOCKED": False, "GROUPS": groups, "STAGES": stages}
              for at_once in (1, 2, 4, 8) for warps in (4, 8, 16) if 8 <= at_once * block / (32 * warps) <= 32
              for groups in (132, 264) for stages in (1, 3)]
    locked = [{"BLOCK_SIZE": block, "num_warps": warps, "LOCKED": True, "GROUPS": groups}
              for warps in (4, 8, 16) if 8 <= block / (32 * warps) <= 64 for groups in (64, 256)]
    return Work(
        bytes=3 * x.numel() * x.element_size(),
        inputs={"dy": dy, "x": x, "weight": w, "mean": mean, "rstd": rstd},
        outputs={"dx": out, "dweight": dw, "dbias": db},
        joined={"dweight and dbias": both},
        references={name: reference_of(lambda at=at: gradients()[at]) for at, name in enumerate(("dx", "dweight", "dbias"))},
        torch=aten,
        compiled=aten,
        triton=launches,
        shapes=staged + locked,
        variants={"LAST": ((64, 32, 8), (32, 32, 4), (128, 32, 8), (32, 128, 8), (16, 128, 4)), "LOAD": LOADS},
        # Sums of as many halves as there are rows, from statistics that were rounded to f32.
        relative={"dweight": 2e-3, "dbias": 2e-3},
    )


@triton.jit
def cross_entropy_kernel(
    x_ptr, target_ptr, loss_ptr, lse_ptr, columns, ignored, BLOCK_SIZE: tl.constexpr, SHARE: tl.constexpr, LOAD: tl.constexpr
):
    # SHARE neighbouring elements have one largest element and one sum; all of a row are joined at its end.
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    chosen = tl.load(x_ptr + row * columns + target, mask=target != ignored, other=0.0).to(tl.float32)
    offsets = tl.arange(0, BLOCK_SIZE)
    largest = tl.full([BLOCK_SIZE // SHARE], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_SIZE // SHARE], tl.float32)
    for first in range(0, columns, BLOCK_SIZE):
        mask = first + offsets < columns
        x = tl.load(x_ptr + row * columns + first + offsets, mask=mask, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
        x = tl.reshape(x, [BLOCK_SIZE // SHARE, SHARE])
        above = tl.maximum(largest, tl.max(x, axis=1))
        base = tl.where(above == -float("inf"), 0.0, above)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base[:, None]), axis=1)
        largest = above
    top = tl.max(largest, axis=0)
    lse = top + tl.log(tl.sum(total * tl.exp(largest - top), axis=0))
    tl.store(loss_ptr + row, tl.where(target == ignored, 0.0, lse - chosen))
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_backward_kernel(
    x_ptr, target_ptr, lse_ptr, dloss_ptr, dx_ptr, columns, ignored, scale, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr
):
    blocks = tl.cdiv(columns, BLOCK_SIZE)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    offsets = tl.program_id(0) % blocks * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, eviction_policy=LOAD).to(tl.float32)
    target = tl.load(target_ptr + row)
    p = tl.exp(x - tl.load(lse_ptr + row)) - tl.where(offsets == target, 1.0, 0.0)
    dx = tl.where(target == ignored, 0.0, p * (tl.load(dloss_ptr + row) * scale))
    tl.store(dx_ptr + row * columns + offsets, dx, mask=offsets < columns)


def targets(rows, columns):
    return torch.randint(0, columns, (rows,), device=DEVICE)


def cross_entropy(dtype, rows, columns):
    x, target = normal(dtype, rows, columns), targets(rows, columns)
    out, lse = empty(torch.float32, rows), empty(torch.float32, rows)

    def compiled():
        whole = torch.logsumexp(x.float(), -1)
        return whole - x.gather(1, target[:, None])[:, 0].float(), whole

    shapes = [{"BLOCK_SIZE": block, "num_warps": warps, "SHARE": share} for share in (1, 8)
              for block, warps in ((1024, 2), (2048, 4), (4096, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16), (16384, 32))]
    return Work(
        bytes=x.numel() * x.element_size(),
        inputs={"logits": x, "targets": target},
        outputs={"losses": out, "lse": lse},
        references={
            "losses": reference_of(lambda: torch.nn.functional.cross_entropy(x.double(), target, reduction="none")),
            "lse": reference_of(lambda: torch.logsumexp(x.double(), -1)),
        },
        torch=lambda: torch.nn.functional.cross_entropy(x, target, reduction="none").float(),
        compiled=compiled,
        triton=lambda config: [Launch(cross_entropy_kernel, (rows,), (x, target, out, lse, columns, -100), config)],
        shapes=shapes,
        variants={"LOAD": LOADS},
        torch_is_rounded=dtype != torch.float32,
    )


def cross_entropy_backward(dtype, rows, columns):
    x, target = normal(dtype, rows, columns), targets(rows, columns)
    out, lse, dloss = empty(dtype, rows, columns), torch.logsumexp(x.float(), -1), normal(torch.float32, rows)
    log_softmax = torch.log_softmax(x, -1)

    def with_torch():
        grad = torch.ops.aten.nll_loss_backward(
            dloss.to(dtype), log_softmax, target, None, 0, -100, torch.empty((), device=DEVICE, dtype=dtype))
        return torch.ops.aten._log_softmax_backward_data(grad, log_softmax, -1, dtype)

    def compiled():
        is_target = torch.arange(columns, device=DEVICE)[None, :] == target[:, None]
        return ((torch.exp(x.float() - lse[:, None]) - is_target.float()) * dloss[:, None]).to(dtype)

    def whole():
        leaf = x.double().requires_grad_()
        torch.nn.functional.cross_entropy(leaf, target, reduction="none").backward(dloss.double())
        return leaf.grad

    grid = lambda config: (rows * triton.cdiv(columns, config["BLOCK_SIZE"]),)
    return Work(
        bytes=2 * x.numel() * x.element_size(),
        inputs={"logits": x, "targets": target, "lse": lse, "dlosses": dloss},
        outputs={"dlogits": out},
        references={"dlogits": reference_of(whole)},
        torch=with_torch,
        compiled=compiled,
        triton=lambda config: [
            Launch(cross_entropy_backward_kernel, grid(config), (x, target, lse, dloss, out, columns, -100, 1.0), config)
        ],
        shapes=[{"BLOCK_SIZE": block, "num_warps": warps} for block, warps in
                ((1024, 1), (1024, 2), (1024, 4), (2048, 2), (2048, 4), (4096, 4), (4096, 8), (8192, 8), (8192, 16))],
        variants={"LOAD": LOADS},
        torch_is_rounded=dtype != torch.float32,
    )


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, columns, TILE_M: tl.constexpr, TILE_N: tl.constexpr, LOAD: tl.constexpr):
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None].to(tl.int64) * columns + column[None, :], mask=mask, eviction_policy=LOAD)
    tl.store(y_ptr + column[:, None].to(tl.int64) * rows + row[None, :], tl.trans(x), mask=tl.trans(mask))


def transpose(dtype, rows, columns):
    x, out = normal(dtype, rows, columns), empty(dtype, columns, rows)
    tiles = [(32, 32), (32, 64), (64, 32), (32, 128), (64, 64), (64, 128), (128, 64)]
    grid = lambda config: (triton.cdiv(rows, config["TILE_M"]), triton.cdiv(columns, config["TILE_N"]))
    return Work(
        bytes=2 * x.numel() * x.element_size(),
        inputs={"x": x},
        outputs={"y": out},
        references={"y": reference_of(lambda: x.t().double())},
        torch=lambda: out.copy_(x.t()),
        compiled=lambda: x.t().contiguous(),
        triton=lambda config: [Launch(transpose_kernel, grid(config), (x, out, rows, columns), config)],
        shapes=[{"TILE_M": m, "TILE_N": n, "num_warps": warps} for m, n in tiles for warps in (2, 4, 8)],
        variants={"LOAD": LOADS},
    )


HALVES = ["f16", "bf16", "f32"]
WORKS = {
    "vector_add": (vector_add, ["f32"]),
    "silu": (silu, HALVES),
    "softmax": (softmax, HALVES),
    "layer_norm": (layer_norm, HALVES),
    "rms_norm": (rms_norm, HALVES),
    "row_sum": (row_sum, HALVES),
    "layer_norm_backward": (layer_norm_backward, HALVES),
    "cross_entropy": (cross_entropy, HALVES),
    "cross_entropy_backward": (cross_entropy_backward, HALVES),
    "transpose": (transpose, HALVES),
}


@functools.cache
def flush_buffer():
    """Zeroed before each run to empty the L2 cache: as large as that of triton.testing.do_bench."""
    return torch.empty(256 << 20, device="cuda", dtype=torch.int8)


@functools.cache
def cuda_driver():
    return ctypes.CDLL("libcuda.so.1")


def zero(tensor):
    """Zeroes a tensor by the driver's memset, on the current stream."""
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    count = ctypes.c_size_t(tensor.numel() * tensor.element_size())
    code = cuda_driver().cuMemsetD8Async(ctypes.c_uint64(tensor.data_ptr()), ctypes.c_ubyte(0), count, stream)
    if code != 0:
        raise RuntimeError(f"a tensor was not zeroed: error {code} of the CUDA driver")


def middle_us(run, rep=100, rest=0.0):
    """Runs for `rep` ms, each with an empty L2 cache: triton.testing.do_bench with two changes, as in `galatea::bench::do_bench`.

    The GPU is idle for `rest` seconds before each run, as in `do_bench_with_rests`.

    Lines that an `evict_last` kept do not outlive a run. Zeroes do not drive them out, so the GPU is idle when they lose their rank; short
    kernels then take 0.3 to 0.5 us less than in a long queue. And the driver's memset zeroes the buffer, on both sides: torch's kernel
    leaves the L2 cache in another state, in which a sum of rows (36 us) takes 0.2 us less.
    """
    driver, buffer = cuda_driver(), flush_buffer()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    idle_since = 0.0

    def once():
        nonlocal idle_since
        driver.cuCtxResetPersistingL2Cache()
        while perf_counter() - idle_since < rest:
            pass
        zero(buffer)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        idle_since = perf_counter()
        return 1e3 * start.elapsed_time(end)

    run()
    torch.cuda.synchronize()
    begin = perf_counter()
    for _ in range(5):
        once()
    once_ms = 1e3 * (perf_counter() - begin) / 5
    runs = lambda ms: min(max(int(ms / once_ms), 1), 10_000)
    for _ in range(runs(rep / 4)):
        once()
    times = [once() for _ in range(runs(rep))]
    driver.cuCtxResetPersistingL2Cache()
    # As `galatea::bench::Stats::middle_us`.
    times.sort()
    return statistics.fmean(times[len(times) // 4 : len(times) - len(times) // 4])


def graph_of(run):
    """What `run` queues, as a CUDA graph, and what it gave."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    return graph, result


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def copies_of(bytes):
    """Two copies that move as many bytes: the driver's and a kernel's. A memcpy node of a graph is slow for some sizes."""
    elements = triton.cdiv(bytes, 8)
    source, target = (torch.empty(elements, device="cuda", dtype=torch.int32).random_() for _ in range(2))
    by_kernel = lambda: copy_kernel[(triton.cdiv(elements, 2048),)](source, target, elements, BLOCK_SIZE=2048, num_warps=4)
    return [lambda: target.copy_(source), by_kernel]


def compare(work, name, got, who, limit=None):
    """Raises unless a result is right: a fast wrong peer would make a meaningless ratio."""
    got = got.reshape(-1)
    limit = limit or work.relative.get(name, TOLERANCE[got.dtype])
    if got.numel() != work.outputs[name].numel():
        raise ValueError(f"{who}'s {name} has {got.numel()} elements, not {work.outputs[name].numel()}")
    for start in range(0, got.numel(), PIECE):
        piece = slice(start, min(start + PIECE, got.numel()))
        want = work.references[name](piece)
        # Infinities are equal to themselves.
        difference = torch.where(got[piece].double() == want, 0.0, got[piece].double() - want)
        largest = torch.where(want.isinf(), 0.0, want).abs().max().item()
        error, allowed = difference.abs().max().item(), work.absolute.get(name, limit * max(1.0, largest))
        if not error <= allowed:
            raise ValueError(f"{who}'s {name} is wrong by {error:g} in elements {start}..{piece.stop}, allowed is {allowed:g}")


def clear_outputs(work):
    """Fills the outputs with NaN, so that an element that a kernel fails to write is wrong. Those that are changed in place get their first values."""
    for name, out in work.outputs.items():
        if name in work.initial:
            out.copy_(work.initial[name])
        else:
            out.fill_(float("nan") if out.is_floating_point() else 101)
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def check_peer(work, who, graph, results, limit=None):
    """Runs a peer's graph once more and compares all that it gives."""
    clear_outputs(work)
    graph.replay()
    torch.cuda.synchronize()
    results = results if isinstance(results, (tuple, list)) else [results] if isinstance(results, torch.Tensor) else []
    for at, (name, out) in enumerate(work.outputs.items()):
        # torch's own may give less than ours: its cross entropy keeps no logarithm, its norm no scale.
        given = results[at] if at < len(results) else out if not results else None
        if given is not None:
            compare(work, name, given, who, limit)


def triton_run(work, config):
    def run():
        for launch in work.triton(config):
            launch.run()

    return run


def timed(work, configs):
    """The configurations with their times. One that does not fit or does not compile is left out, and said."""
    for config in configs:
        try:
            us = middle_us(graph_of(triton_run(work, config))[0].replay, rep=12)
        except (triton.runtime.errors.OutOfResources, triton.compiler.errors.CompilationError, RuntimeError) as error:
            print(f"  triton {config}: {str(error).splitlines()[0]}", file=sys.stderr)
            if "illegal" in str(error) or "misaligned" in str(error):
                raise
        else:
            yield us, config


def fastest(work, configs, key):
    """The configurations by their times, fastest first."""
    compile_all(key, configs)
    return sorted(timed(work, configs), key=lambda pair: pair[0])


def sweep(work, key):
    """Triton's best configuration: all shapes with the first of each variant, then each variant of the three fastest shapes."""
    first = {name: values[0] for name, values in work.variants.items()}
    shapes = fastest(work, [{**first, **shape} for shape in work.shapes], key)
    variants = [{**shape, name: value} for _, shape in shapes[:3] for name, values in work.variants.items() for value in values[1:]]
    times = sorted(shapes + fastest(work, variants, key), key=lambda pair: pair[0])
    for us, config in times[:5]:
        print(f"  triton {config}: {us:.1f} us", file=sys.stderr)
    print(f"  of {len(times)} configurations", file=sys.stderr)
    return times[0][1]


def compile_one(key, config):
    """In a child process: compiles a configuration, so that the parent finds it in Triton's cache on disk."""
    global DEVICE
    DEVICE = "meta"
    try:
        for launch in make(*key).triton(config):
            launch.compile()
    except Exception as error:  # the parent compiles it once more, and says why it cannot
        return f"{type(error).__name__}: {error}"
    return None


@functools.cache
def compilers():
    return ProcessPoolExecutor(min(os.cpu_count() or 1, 14), mp_context=multiprocessing.get_context("forkserver"))


def compile_all(key, configs):
    try:
        errors = [error for error in compilers().map(compile_one, [key] * len(configs), configs, chunksize=1) if error]
    except Exception as error:  # a compiler that crashes: the sweep then compiles one by one
        errors = [repr(error)]
        compilers.cache_clear()
    if errors:
        print(f"  {len(errors)} of {len(configs)} configurations were not compiled ahead; the first: {errors[0][:300]}", file=sys.stderr)


@functools.lru_cache(maxsize=1)  # the data of one shape at a time: a shape can take gigabytes
def make(name, dtype, shape):
    create, dtypes = WORKS[name]
    if dtype not in dtypes:
        raise ValueError(f"{name} is not measured in {dtype}; {', '.join(dtypes)} are")
    torch.manual_seed(SEED)
    return create(DTYPES[dtype], *shape)


@dataclass
class Prepared:
    work: Work
    graphs: dict[str, torch.cuda.CUDAGraph]
    run: Callable[[], None] | None = None  # a launch of Triton's kernels without a graph


CURRENT: Prepared | None = None


def begin(name, dtype, sizes):
    """The work of a `prepare`, with its tensors, and the key by which other processes make it."""
    global CURRENT
    CURRENT = None
    make.cache_clear()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    key = (name, dtype, tuple(int(size) for size in sizes))
    print(" ".join([name, dtype, *sizes]), file=sys.stderr)
    return make(*key), key


def finish(work, runs, **more):
    """Checks the peers' runs, makes graphs of them and of a copy, and answers a `prepare`."""
    global CURRENT
    graphs = {}
    for who, (run, limit) in runs.items():
        graphs[who], results = graph_of(run)
        check_peer(work, who, graphs[who], results, limit)
    copies = [graph_of(copy)[0] for copy in copies_of(work.bytes)]
    graphs["copy"] = min(copies, key=lambda graph: middle_us(graph.replay, rep=12))
    CURRENT = Prepared(work, graphs)
    return described(work, **more)


def described(work, **more):
    """What our side needs to run a work on the same tensors."""
    tensors = {name: handle_of(tensor) for name, tensor in (work.inputs | work.outputs | work.joined).items()}
    return {"tensors": tensors, "bytes": work.bytes, "seed": SEED, **more}


def prepare(name, dtype, *sizes):
    begun = perf_counter()
    said = lambda what: print(f"  {perf_counter() - begun:.1f} s: {what}", file=sys.stderr)
    work, key = begin(name, dtype, sizes)
    said("tensors made")
    loose = 0.05 if work.torch_is_rounded else None
    runs = {"torch": (work.torch, loose)}
    try:
        compiled = torch.compile(work.compiled, mode="max-autotune-no-cudagraphs", dynamic=False)
        compiled()
        runs["torch compiled"] = (compiled, None)
    except Exception as error:
        print(f"  torch.compile: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
    said("torch compiled")
    config = sweep(work, key)
    said("triton tuned")
    runs["triton"] = (triton_run(work, config), None)
    answer = finish(work, runs, triton_config=config)
    said("peers checked")
    return answer


def handle_of(tensor):
    """CUDA's IPC handle of the allocation that a tensor lies in, and where it lies there."""
    driver, handle, base = cuda_driver(), ctypes.create_string_buffer(64), ctypes.c_uint64()
    address = ctypes.c_uint64(tensor.data_ptr())
    for code in (driver.cuMemGetAddressRange_v2(ctypes.byref(base), None, address), driver.cuIpcGetMemHandle(handle, address)):
        if code != 0:
            raise RuntimeError(f"the CUDA driver cannot share a tensor: error {code}")
    return {"handle": handle.raw.hex(), "offset": address.value - base.value, "len": tensor.numel()}


def clear():
    clear_outputs(CURRENT.work)
    return {}


def check():
    torch.cuda.synchronize()
    for name, out in CURRENT.work.outputs.items():
        compare(CURRENT.work, name, out, "ours")
    return {}


def time():
    return {who: middle_us(graph.replay) for who, graph in CURRENT.graphs.items()}


@triton.jit
def plain_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.autotune([triton.Config({"BLOCK_SIZE": block}) for block in (256, 512, 1024)], key=["n"])
@triton.jit
def strided_add_kernel(x_ptr, y_ptr, out_ptr, n, stride, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * stride, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def nineteen_kernel(
    t1, t2, t3, t4, t5, i1, i2, i3, i4, i5, i6, i7, i8, i9,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    loaded = tl.load(t1) + tl.load(t2) + tl.load(t3) + tl.load(t4)
    tl.store(t5, loaded + i1 + i2 + i3 + i4 + i5 + i6 + i7 + i8 + i9 + A + B + C + D + E)


def enqueue():
    """What the host needs to queue small launches: medians of 200 rounds of 200 launches each, in microseconds."""

    def median(launch, rounds=200, launches=200):
        launch()
        times = []
        for _ in range(rounds):
            torch.cuda.synchronize()
            start = perf_counter()
            for _ in range(launches):
                launch()
            times.append((perf_counter() - start) / launches * 1e6)
        return sorted(times)[rounds // 2]

    n = 1024
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    ones = [torch.ones(1, device="cuda", dtype=torch.int64) for _ in range(5)]
    by_config = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    return {
        "triton_us": median(lambda: plain_add_kernel[(1,)](x, y, out, n, BLOCK_SIZE=1024)),
        "triton_autotuned_us": median(lambda: strided_add_kernel[by_config](x, y, out, n, 1)),
        "triton_nineteen_us": median(lambda: nineteen_kernel[(1,)](*ones, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5)),
        "torch_us": median(lambda: torch.add(x, y, out=out)),
    }


def versions():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    return {
        "torch": torch.__version__,
        "triton": triton.__version__,
        "gpu": torch.cuda.get_device_name(),
        "driver": driver,
    }


def clocks():
    """The clocks and the temperature of the GPU, as they are now."""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw", "--format=csv,noheader,nounits"]
    words = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    return dict(zip(("sm_mhz", "memory_mhz", "celsius", "watts"), map(float, words)))


def works():
    return {"works": sorted(f"{name} {dtype}" for name, (_, dtypes) in WORKS.items() for dtype in dtypes)}


REQUESTS = {
    "check": check, "clear": clear, "clocks": clocks, "enqueue": enqueue, "prepare": prepare, "time": time, "versions": versions, "works": works,
}  # fmt: skip


def answer(line):
    request, *words = line.split()
    if request not in REQUESTS:
        return {"error": f"unknown request `{request}`; known are {', '.join(REQUESTS)} and quit"}
    try:
        return REQUESTS[request](*words)
    except Exception as error:  # whatever went wrong, the benchmark must hear it instead of waiting
        return {"error": f"{line.strip()}: {type(error).__name__}: {error}"}


def main():
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        if line.strip():
            print(json.dumps(answer(line)), flush=True)


if __name__ == "__main__":
    main()
