"""Times Triton's versions of the gallery's kernels, as ../../peers.py does it and with its protocol.

    prepare bias_relu bf16 8192 4096      {"tensors": {..}, "bytes": .., "seed": .., "triton_config": {..}, "hinted_config": {..}}
    time                                  {"triton": us, "triton hinted": us, "copy": us}
    move                                  as `prepare`
    floor                                 {"us": us}
    open bias_relu bf16 8192 4096 {..}    {"tensors": {..}, "bytes": .., "seed": .., "process": .., "kernels": ["bias_relu_kernel"]}
    launch                                {}

`open` makes the tensors of a work, and launches its kernels once in the configuration, which is JSON without spaces. `launch` launches them once more,
between `cuProfilerStart` and `cuProfilerStop`, so that `ncu --profile-from-start off` counts only this launch.

`move` makes the tensors of the prepared work anew, at other addresses, and keeps its configurations. Our side has closed the tensors before.

`floor` times a kernel that reads and writes as many bytes as the prepared work, each in its share: a copy reads half of them.

"triton" is the kernel as it is written, with the best of the configurations that ours has. "triton hinted" is the same kernel with the best eviction hint
for its loads, and with the best number of stages for its loops, too.

To add a kernel: write it in the file of its theme, with a function that makes its work and has the name of the Rust work. Each function of the modules
`THEMES` whose first parameter is `dtype` is one.
"""

import inspect
import json
import os

import elementwise
import layout_moves
import norms
import pooling
import quantise
import reductions
import scatter
import sequences
import shifts
import softmaxes
import torch
import triton
import triton.language as tl
from row import peers

THEMES = (elementwise, layout_moves, norms, pooling, quantise, reductions, scatter, sequences, shifts, softmaxes)
WORKS = {
    name: (create, list(peers.DTYPES))
    for theme in THEMES
    for name, create in vars(theme).items()
    if inspect.isfunction(create) and create.__module__ == theme.__name__ and next(iter(inspect.signature(create).parameters), "") == "dtype"
}
# In this process, and in those that compile.
peers.WORKS.clear()
peers.WORKS.update(WORKS)


def sweep(work, key):
    """The configurations by their times: all shapes with the first of each variant, then one variant after the other for the three fastest."""
    times = peers.fastest(work, [{**{name: values[0] for name, values in work.variants.items()}, **shape} for shape in work.shapes], key)
    for name, values in work.variants.items():
        more = peers.fastest(work, [{**config, name: value} for _, config in times[:3] for value in values[1:]], key)
        times = sorted(times + more, key=lambda pair: pair[0])
    return times


def prepare(name, dtype, *sizes):
    global PREPARED
    MOVED.clear()
    work, key = peers.begin(name, dtype, sizes)
    times = sweep(work, key)
    best = times[0][1]
    plain = next(config for _, config in times if not config["LOAD"] and not config.get("STAGES"))
    PREPARED = (name, dtype, sizes, plain, best)
    return finish(work, plain, best)


def finish(work, plain, best):
    runs = {"triton": (peers.triton_run(work, plain), None), "triton hinted": (peers.triton_run(work, best), None)}
    return peers.finish(work, runs, triton_config=plain, hinted_config=best)


# The words of the last `prepare`, and its configurations.
PREPARED = None
# The works before each `move`, whose tensors keep their addresses from being used again.
MOVED = []


def tensors_of(work):
    return (work.inputs | work.outputs | work.joined).values()


def move():
    name, dtype, sizes, plain, best = PREPARED
    MOVED.append(peers.CURRENT.work)
    work, _ = peers.begin(name, dtype, sizes)
    places = {tensor.data_ptr() for before in MOVED for tensor in tensors_of(before) if tensor.numel()}
    if places & {tensor.data_ptr() for tensor in tensors_of(work)}:
        raise RuntimeError("a tensor was not moved")
    return finish(work, plain, best)


# The words that a program of `floor_kernel` reads or writes at once, a vector for each thread, and how often it does that.
FLOOR_BLOCK, FLOOR_BLOCKS = 512, 4


@triton.jit
def floor_kernel(x_ptr, y_ptr, reads, writes, MOST_READS: tl.constexpr, MOST_WRITES: tl.constexpr, BLOCK: tl.constexpr, LOAD: tl.constexpr):
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    first, end = program * reads // programs, (program + 1) * reads // programs
    all = tl.zeros([BLOCK], tl.int32)
    for block in tl.static_range(MOST_READS):
        all ^= tl.load(x_ptr + (first + block) * BLOCK + at, mask=(first + block < end) & (at < BLOCK), other=0, eviction_policy=LOAD)
    first, end = program * writes // programs, (program + 1) * writes // programs
    for block in tl.static_range(MOST_WRITES):
        tl.store(y_ptr + (first + block) * BLOCK + at, all, mask=(first + block < end) & (at < BLOCK))


def floor():
    """The time of the fastest kernel that only reads and writes, over the eviction hints of its loads."""
    work = peers.CURRENT.work
    written = sum(tensor.numel() * tensor.element_size() for tensor in work.outputs.values())
    reads, writes = (triton.cdiv(bytes, 4 * FLOOR_BLOCK) for bytes in (work.bytes - written, written))
    source, target = (torch.empty(max(blocks, 1) * FLOOR_BLOCK, device="cuda", dtype=torch.int32).random_() for blocks in (reads, writes))
    programs = triton.cdiv(reads + writes, FLOOR_BLOCKS)
    most = {"MOST_READS": triton.cdiv(reads, programs), "MOST_WRITES": triton.cdiv(writes, programs)}
    run = lambda hint: lambda: floor_kernel[(programs,)](source, target, reads, writes, **most, BLOCK=FLOOR_BLOCK, LOAD=hint, num_warps=4)
    return {"us": min(peers.middle_us(peers.graph_of(run(hint))[0].replay, rep=50) for hint in peers.LOADS)}


def open_work(name, dtype, *words):
    *sizes, config = words
    work, _ = peers.begin(name, dtype, sizes)
    config = json.loads(config)
    run = peers.triton_run(work, config)
    # The launch that is counted must compile and load nothing.
    run()
    torch.cuda.synchronize()
    peers.CURRENT = peers.Prepared(work, {}, run)
    kernels = [launch.kernel.__name__ for launch in work.triton(config) if isinstance(launch, peers.Launch)]
    return peers.described(work, process=os.getpid(), kernels=kernels)


def launch():
    driver = peers.cuda_driver()
    torch.cuda.synchronize()
    if (code := driver.cuProfilerStart()) != 0:
        raise RuntimeError(f"the CUDA driver starts no profile: error {code}")
    peers.CURRENT.run()
    torch.cuda.synchronize()
    driver.cuProfilerStop()
    return {}


peers.REQUESTS |= {"prepare": prepare, "move": move, "floor": floor, "open": open_work, "launch": launch}

if __name__ == "__main__":
    peers.main()
