"""Times Triton's and torch's versions of what the Rust benchmarks time.

A benchmark starts this program as a child and talks to it by lines, so that ours and the peers run in turns
within one run and see the same clocks. Each request is one line on standard input, each answer one line of JSON
on standard output; everything else goes to standard error.

    versions                            {"torch": .., "triton": .., "gpu": .., "driver": ..}
    works                               {"works": ["silu bf16", "vector_add f32", ..]}
    time vector_add f32 134217728       {"torch_us": .., "triton_us": .., "bytes": .., "triton_config": {..}}
    quit

A request that cannot be answered gives {"error": ".."} and the program goes on. The first request for a work and
shape makes its data, checks every peer against f64 and picks Triton's best configuration by a small sweep;
the following ones only time. Data is kept for one work and shape at a time, so do all rounds of one before the
next. Times are medians in microseconds of triton.testing.do_bench, which flushes
the L2 cache before each run. By hand: `echo "time silu bf16 1048576" | python3 peers.py`.

To add a work: write a function that returns a `Work`, and name it in `WORKS`.
"""

import functools
import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Callable

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

# What a row-by-row or elementwise kernel is usually tuned over.
CONFIGS = [{"BLOCK_SIZE": block, "num_warps": warps} for block in (1024, 2048, 4096, 8192) for warps in (4, 8)]
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
# The share of the largest reference value that a result may be off by: the last place of f16 and bf16, which are
# rounded once, and some places of f32 and f64, in which the functions themselves are computed.
TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-6, torch.float64: 1e-13}
# Checking in f64 needs several times the data: a piece at a time.
PIECE = 1 << 24


@dataclass
class Work:
    """One piece of work on one shape, with its data already on the GPU."""

    bytes: int  # read and written, each byte counted once
    out: torch.Tensor
    torch: Callable[[], object]  # fills `out`
    triton: Callable[[dict], object]  # fills `out`, in a given configuration
    reference: Callable[[slice], torch.Tensor]  # the values `out[slice]` should have, in f64
    configs: list[dict] = field(default_factory=lambda: CONFIGS)  # what Triton's kernel is swept over
    config: dict | None = None  # Triton's best, once the sweep has found it


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(dtype, n):
    x, y = torch.randn(n, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype)
    out = torch.empty_like(x)
    return Work(
        bytes=3 * n * x.element_size(),
        out=out,
        torch=lambda: torch.add(x, y, out=out),
        triton=lambda config: add_kernel[(triton.cdiv(n, config["BLOCK_SIZE"]),)](x, y, out, n, **config),
        reference=lambda piece: x[piece].double() + y[piece].double(),
    )


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, EVICT: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, eviction_policy=EVICT).to(tl.float32)
    tl.store(out_ptr + offsets, x * tl.sigmoid(x), mask=mask)  # rounded once, by the store


def silu(dtype, n):
    x = torch.randn(n, device="cuda", dtype=dtype)
    out = torch.empty_like(x)
    return Work(
        bytes=2 * n * x.element_size(),
        out=out,
        torch=lambda: torch.ops.aten.silu.out(x, out=out),
        triton=lambda config: silu_kernel[(triton.cdiv(n, config["BLOCK_SIZE"]),)](x, out, n, **config),
        reference=lambda piece: x[piece].double() * torch.sigmoid(x[piece].double()),
        # Our kernel asks the L2 to keep its input; Triton's may ask the same.
        configs=[{**config, "EVICT": evict} for config in CONFIGS for evict in ("", "evict_last")],
    )


WORKS = {"vector_add": (vector_add, ["f32"]), "silu": (silu, ["bf16", "f16", "f32"])}


def median_us(run, rep=100):
    return 1e3 * do_bench(run, warmup=25, rep=rep, return_mode="median")


def check(work, peer, run):
    """Raises unless a peer's result is right: a fast wrong peer would make a meaningless ratio."""
    work.out.fill_(float("nan"))  # what a peer fails to write is not right by luck
    run()
    out = work.out.reshape(-1)
    for start in range(0, out.numel(), PIECE):
        piece = slice(start, min(start + PIECE, out.numel()))
        want, got = work.reference(piece), out[piece].double()
        error = (got - want).abs().max().item()
        limit = TOLERANCE[out.dtype] * max(1.0, want.abs().max().item())
        if not error <= limit:
            raise ValueError(f"{peer} is wrong by {error:g} in elements {start}..{piece.stop}, allowed is {limit:g}")


def best_config(work):
    times = [(median_us(lambda: work.triton(config), rep=40), config) for config in work.configs]
    for us, config in sorted(times, key=lambda pair: pair[0]):
        print(f"  triton {config}: {us:.1f} us", file=sys.stderr)
    return min(times, key=lambda pair: pair[0])[1]


@functools.lru_cache(maxsize=1)  # the data of one shape at a time: a shape can take gigabytes
def prepared(name, dtype, shape):
    make, dtypes = WORKS[name]
    if dtype not in dtypes:
        raise ValueError(f"{name} is not measured in {dtype}; {', '.join(dtypes)} are")
    torch.manual_seed(0)
    print(f"{name} {dtype} {shape}", file=sys.stderr)
    work = make(DTYPES[dtype], *shape)
    check(work, "torch", work.torch)
    work.config = best_config(work)
    check(work, "triton", lambda: work.triton(work.config))
    return work


def time(name, dtype, *shape):
    work = prepared(name, dtype, tuple(int(size) for size in shape))
    return {
        "torch_us": median_us(work.torch),
        "triton_us": median_us(lambda: work.triton(work.config)),
        "bytes": work.bytes,
        "triton_config": work.config,
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


def works():
    return {"works": sorted(f"{name} {dtype}" for name, (_, dtypes) in WORKS.items() for dtype in dtypes)}


REQUESTS = {"time": time, "versions": versions, "works": works}


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
