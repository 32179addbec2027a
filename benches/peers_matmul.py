"""Times cuBLAS (through torch) and Triton on products of matrices, as `peers.py` does it and with its protocol.

    prepare matmul TYPE M N K A B         {"tensors": {"a": {..}, "b": {..}, "y": {..}}, "bytes": .., "seed": .., "configs": {..}, "failed": {..}}
    time                                  {"cublas": us, "triton pointers": us, "triton descriptors": us, "triton persistent": us}
    warm SECONDS                          {"sm_mhz": .., "watts": .., ..}, the clocks at the end of so many seconds of products
    check                                 {} if `y` holds the right product, else {"error": ..}

`a` is `[M, K]`, or `[K, M]` if A is 1; `b` is `[K, N]`, or `[N, K]` if B is 1; `y` is `[M, N]`. TYPE is that of the operands and of `y`: `f16`, `bf16`, or `f32`, which is
rounded to tf32. For `f8e4m3`, `y` is of `bf16`, and B is 1.

- "cublas" is `torch.mm` into `y`, by cuBLAS or by cuBLASLt, whichever is faster. Products of `f8e4m3` are those of cuBLASLt with fast accumulation.
- "triton pointers" is the kernel of Triton's tutorial on matrix products.
- "triton descriptors" loads and stores by TMA, one tile in a program.
- "triton persistent" does so in as many programs as the GPU has multiprocessors, as in the tutorial on persistent products. Triton 3.6 has no warp
  specialisation on Hopper: its pass fails for four warps, and does nothing for eight.

`configs` has the best configuration of each version, and the library of cuBLAS. A version that is far behind another version has a configuration, but no time.
`failed` names peers that cannot compute the product, with the reason. The request fails if one of them breaks the CUDA context, or if all fail.

An element of a result is compared with f64 if its row or its column is a sample. The samples are a random row of each block of 128 rows, and a random
column of each block of 128 columns, so that a tile that is wrong as a whole cannot pass.

    python3 peers_matmul.py self-test     # tests the choice of configurations and the check of results; needs torch and triton, and no GPU
"""

import math
import sys
from time import perf_counter

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import peers

MULTIPROCESSORS, SHARED_BYTES = 132, 227 << 10
# The most configurations of a version, and the seconds that a version may time them. The first ones are the most promising.
MOST_CONFIGS, TUNING_SECONDS = 12, 1.5
# A version is not timed again if its best configuration takes so much longer than that of the best version.
FAR_BEHIND = 1.15
# Half a unit in the last place, of a number's magnitude.
ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-23}
# What a sum of products may be off by, as a share of the root of their number: factors of tf32 are rounded, and sums of 8-bit floats have about 14 bits.
OF_SUM = {torch.float32: 2.0**-7, torch.float8_e4m3fn: 2.0**-4}
VERSIONS = ("pointers", "descriptors", "persistent")
LIBRARIES = ("cublas", "cublaslt")


@triton.jit
def tile_at(program, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    # GROUP_M rows of tiles at a time, so that the tiles of one moment share operands in the L2.
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * across
    first = program // in_group * GROUP_M
    height = min(down - first, GROUP_M)
    return first + program % in_group % height, program % in_group // height


@triton.jit
def pointers_kernel(
    a_ptr, b_ptr, y_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_at(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row, column = tile_m * BLOCK_M + tl.arange(0, BLOCK_M), tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the last wrap around, so that only K needs a mask.
    a = a_ptr + (row % M)[:, None] * stride_am + k[None, :] * stride_ak
    b = b_ptr + k[:, None] * stride_bk + (column % N)[None, :] * stride_bn
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for first in range(0, K, BLOCK_K):
        if EVEN_K:
            total = tl.dot(tl.load(a), tl.load(b), total)
        else:
            left = tl.load(a, mask=k[None, :] < K - first, other=0.0)
            total = tl.dot(left, tl.load(b, mask=k[:, None] < K - first, other=0.0), total)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(y_ptr + row[:, None] * N + column[None, :], total.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def product_of(
    a_desc, b_desc, row, column, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr,
):  # fmt: skip
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for at in range(tl.cdiv(K, BLOCK_K)):
        k = at * BLOCK_K
        if TRANSPOSED_A:
            a = a_desc.load([k, row]).T
        else:
            a = a_desc.load([row, k])
        if TRANSPOSED_B:
            b = b_desc.load([column, k]).T
        else:
            b = b_desc.load([k, column])
        total = tl.dot(a, b, total)
    return total


@triton.jit
def descriptors_kernel(
    a_desc, b_desc, y_desc, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_at(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
    total = product_of(a_desc, b_desc, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K, TRANSPOSED_A, TRANSPOSED_B)
    y_desc.store([row, column], total.to(y_desc.dtype))


@triton.jit
def persistent_kernel(
    a_desc, b_desc, y_desc, M, N, K, PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, SUBTILES: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    # The tile that is stored has a counter of its own, so that a flattened loop keeps no tile across the loads of the next one.
    stored = tl.program_id(0) - PROGRAMS
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=FLATTEN):
        tile_m, tile_n = tile_at(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        total = product_of(a_desc, b_desc, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K, TRANSPOSED_A, TRANSPOSED_B)
        stored += PROGRAMS
        tile_m, tile_n = tile_at(stored, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        if SUBTILES == 2:
            # In two halves, which need half the shared memory and leave it to a stage more.
            halves = tl.permute(tl.reshape(total, [BLOCK_M, 2, BLOCK_N // 2]), [0, 2, 1])
            left, right = tl.split(halves)
            y_desc.store([row, column], left.to(y_desc.dtype))
            y_desc.store([row, column + BLOCK_N // 2], right.to(y_desc.dtype))
        else:
            y_desc.store([row, column], total.to(y_desc.dtype))


# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages: what the versions choose from.
TILES = [
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (256, 128, 64, 8, 4), (128, 128, 64, 8, 4), (128, 128, 64, 4, 3),
    (128, 128, 64, 4, 4), (128, 128, 128, 8, 3), (256, 64, 64, 4, 4), (64, 256, 64, 4, 4), (128, 64, 64, 4, 4), (128, 64, 128, 4, 3),
    (64, 128, 64, 4, 4), (64, 128, 128, 4, 3), (64, 128, 64, 4, 5), (64, 64, 64, 4, 5), (64, 64, 128, 4, 4), (128, 32, 64, 4, 5),
    (64, 32, 128, 4, 5), (32, 64, 128, 4, 5), (32, 128, 64, 4, 5), (32, 32, 128, 4, 5), (16, 128, 128, 4, 4), (16, 64, 128, 4, 5),
    (16, 64, 256, 4, 4), (16, 32, 256, 4, 5), (16, 32, 256, 2, 5),
]  # fmt: skip


def estimate(tile, m, n, k, bytes=2):
    """The cycles that a product may take, to order the tiles by: the slowest of the tensor cores, shared memory, the L2 and memory."""
    block_m, block_n, _, _, _ = tile
    waves = math.ceil(math.ceil(m / block_m) * math.ceil(n / block_n) / MULTIPROCESSORS)
    # `mma.sync`, which a tile of fewer than 64 rows needs, has less than two thirds of the rate.
    tensor = block_m * block_n * k * 2 / (4096 if block_m >= 64 else 2500)
    shared = k * bytes * 2 * (block_m + block_n) / 128
    cache = k * bytes * (block_m + block_n) / 48
    epilogue = block_m * block_n * bytes / 64 + 800
    by_tiles = waves * (max(tensor, shared, cache) + epilogue)
    by_memory = bytes * (m * k + k * n + m * n) / 2500
    return max(by_tiles, by_memory) + 0.1 * min(by_tiles, by_memory)


def configs_of(version, m, n, k, bytes=2):
    """At most MOST_CONFIGS configurations of a version, the most promising first. A block of K has as many bytes for elements of each type."""
    k = k * bytes // 2
    fits = lambda tile: (tile[0] + tile[1]) * tile[2] * 2 * tile[4] <= SHARED_BYTES
    tiles = sorted(filter(fits, TILES), key=lambda tile: estimate(tile, m, n, k))
    least = estimate(tiles[0], m, n, k)
    # With the fewest blocks down a group, the order of the tiles is the same for all groups.
    groups = (8,) if math.ceil(m / 128) <= 8 else (8, 16)
    found = []
    for tile in tiles:
        if estimate(tile, m, n, k) > 2 * least:
            break
        block_m, block_n, block_k, warps, stages = tile
        # The store of the persistent kernel overlaps with the loads of the next tile, and has shared memory of its own.
        spare = SHARED_BYTES - (block_m + block_n) * block_k * 2 * stages
        for group in groups if tile is tiles[0] or tile is tiles[1] else groups[:1]:
            config = {"version": version, "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k * 2 // bytes, "GROUP_M": group, "num_warps": warps,
                      "num_stages": stages}  # fmt: skip
            if version == "persistent":
                config |= {"SUBTILES": 2 if block_n >= 128 and spare < block_m * block_n * 2 else 1, "FLATTEN": True}
                found.append(config)
                config = {**config, "FLATTEN": False} if tile is tiles[0] and group == groups[0] else None
            if config:
                found.append(config)
    return found[:MOST_CONFIGS]


def why_not(version, tensors):
    """The reason why a version cannot compute this product, or None."""
    if version == "pointers":
        return None
    for name, tensor in tensors.items():
        if tensor.shape[1] * tensor.element_size() % 16 != 0:
            return f"TMA needs rows of a multiple of 16 bytes, and those of `{name}` have {tensor.shape[1] * tensor.element_size()}"
    return None


def operand(dtype, *shape):
    return peers.normal(torch.float32, *shape).to(dtype) if dtype.itemsize == 1 else peers.normal(dtype, *shape)


def matmul(dtype, m, n, k, transposed_a, transposed_b):
    a = operand(dtype, *((k, m) if transposed_a else (m, k)))
    b = operand(dtype, *((n, k) if transposed_b else (k, n)))
    y = peers.empty(torch.bfloat16 if dtype.itemsize == 1 else dtype, m, n)
    # Both sides round `f32` to tf32.
    torch.backends.cuda.matmul.allow_tf32 = True
    one = torch.ones((), device=peers.DEVICE)
    left, right = a.t() if transposed_a else a, b.t() if transposed_b else b

    def launches(config):
        config = dict(config)
        version, block_m, block_n, block_k = config.pop("version"), config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
        tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        if version == "pointers":
            args = (a, b, y, m, n, k, *left.stride(), *right.stride())
            return [peers.Launch(pointers_kernel, (tiles,), args, {**config, "EVEN_K": k % block_k == 0})]
        config |= {"TRANSPOSED_A": bool(transposed_a), "TRANSPOSED_B": bool(transposed_b)}
        blocks = (
            (a, [block_k, block_m] if transposed_a else [block_m, block_k]),
            (b, [block_n, block_k] if transposed_b else [block_k, block_n]),
            (y, [block_m, block_n // config.get("SUBTILES", 1)]),
        )
        args = (*(TensorDescriptor.from_tensor(tensor, block) for tensor, block in blocks), m, n, k)
        if version == "descriptors":
            return [peers.Launch(descriptors_kernel, (tiles,), args, config)]
        # The grid may be shorter than PROGRAMS, which is the step from tile to tile.
        return [peers.Launch(persistent_kernel, (min(tiles, MULTIPROCESSORS),), args, {**config, "PROGRAMS": MULTIPROCESSORS})]

    return peers.Work(
        bytes=(m * k + k * n) * a.element_size() + m * n * y.element_size(),
        inputs={"a": a, "b": b},
        outputs={"y": y},
        references={},  # see `check_result`
        torch=lambda: torch._scaled_mm(left, right, one, one, out_dtype=y.dtype, use_fast_accum=True, out=y)
        if dtype.itemsize == 1
        else torch.mm(left, right, out=y),
        compiled=None,
        triton=launches,
        shapes=[],
        joined={},
    )


peers.WORKS.clear()
peers.DTYPES["f8e4m3"] = torch.float8_e4m3fn
peers.WORKS["matmul"] = (matmul, ["f16", "bf16", "f32", "f8e4m3"])


def samples(extent, block=128):
    """A random index in each block, and the last index, which is in the last tile of any size."""
    starts = torch.arange(0, extent, block)
    ends = (starts + block).clamp(max=extent)
    at = starts + (torch.rand(len(starts)) * (ends - starts)).long()
    return torch.cat([at, torch.tensor([extent - 1])]).unique()


def check_result(work, sizes, who, is_rounded_often=False):
    """Raises unless the sampled rows and columns of `y` are right: rounded once from sums in f32, or, if so told, several times."""
    m, n, k, transposed_a, transposed_b = sizes
    a, b, y = work.inputs["a"], work.inputs["b"], work.outputs["y"]
    a, b = a.t() if transposed_a else a, b.t() if transposed_b else b
    rounding = ROUNDING[y.dtype]
    # The sums of products of normally distributed numbers are of the magnitude of the root of their number.
    sums = 2.0**-20 * k + OF_SUM.get(a.dtype, 0) * math.sqrt(k)
    for what, got, left, right in (
        ("row", lambda at: y[at], lambda at: a[at], lambda at: b),
        ("column", lambda at: y[:, at], lambda at: a, lambda at: b[:, at]),
    ):
        at = samples(m if what == "row" else n).to(y.device)
        # In pieces, since a whole operand in f64 has four times the bytes, and products of f64 need as much for themselves.
        for piece in at.split(64):
            want = left(piece).double() @ right(piece).double()
            error = (got(piece).double() - want).abs()
            allowed = rounding * want.abs() * 1.01 + sums
            if is_rounded_often:
                allowed = 4 * rounding * (want.abs() + math.sqrt(k)) + sums
            # NaN is wrong, too.
            wrong = ~(error <= allowed)
            if wrong.any():
                first = wrong.nonzero()[0].tolist()
                index = (piece[first[0]].item(), first[1]) if what == "row" else (first[0], piece[first[1]].item())
                raise ValueError(
                    f"{who}'s y{list(index)} is {got(piece)[tuple(first)].item():g} in place of {want[tuple(first)].item():g}; "
                    f"{wrong.sum().item()} of {wrong.numel()} elements of {len(piece)} {what}s are wrong"
                )


def is_fatal(error):
    """Whether the process cannot use its GPU any more."""
    return any(word in str(error) for word in ("illegal", "misaligned", "unspecified launch failure", "device-side assert"))


def fastest_library(work):
    """The graph of cuBLAS or cuBLASLt, whichever is faster, its time, and its name."""
    found = []
    try:
        for library in LIBRARIES:
            torch.backends.cuda.preferred_blas_library(library)
            try:
                graph, _ = peers.graph_of(work.torch)
                found.append((peers.middle_us(graph.replay, rep=12), library, graph))
            except RuntimeError as error:
                if is_fatal(error):
                    raise
                print(f"  {library}: {str(error).splitlines()[0]}", file=sys.stderr)
    finally:
        torch.backends.cuda.preferred_blas_library("default")
    if not found:
        raise RuntimeError("neither cuBLAS nor cuBLASLt computes this product")
    us, library, graph = min(found, key=lambda each: each[0])
    print("  " + ", ".join(f"{name} {us:.1f} us" for us, name, _ in found), file=sys.stderr)
    return graph, us, library


def fastest_config(work, key, version, configs):
    """The best configuration that was timed before the time was up, with its graph and its time."""
    best, begun, timed = None, perf_counter(), 0
    for config in configs:
        if best and perf_counter() - begun > TUNING_SECONDS:
            break
        for pair in peers.timed(work, [config]):
            timed += 1
            best = min(best or pair, pair, key=lambda pair: pair[0])
    if best is None:
        raise RuntimeError(f"none of {len(configs)} configurations runs")
    print(f"  triton {version}: {best[0]:.1f} us, {best[1]}, the best of {timed}", file=sys.stderr)
    return best


# The sizes of the prepared product, for `check`.
SIZES = ()


def prepare(name, dtype, *sizes):
    global SIZES
    begun = perf_counter()
    said = lambda what: print(f"  {perf_counter() - begun:.1f} s: {what}", file=sys.stderr)
    work, key = peers.begin(name, dtype, sizes)
    SIZES = key[2]
    m, n, k, *_ = SIZES
    failed, times, graphs, configs = {}, {}, {}, {}
    tensors = work.inputs | work.outputs
    wanted = {}
    for version in VERSIONS:
        if reason := why_not(version, tensors):
            failed[f"triton {version}"] = reason
        else:
            wanted[version] = configs_of(version, m, n, k, work.inputs["a"].element_size())
    peers.compile_all(key, [config for configs in wanted.values() for config in configs])
    said("triton compiled")

    def attempt(who, find, is_rounded_often=False):
        try:
            graphs[who], times[who], configs[who] = find()
            peers.clear_outputs(work)
            graphs[who].replay()
            torch.cuda.synchronize()
            check_result(work, SIZES, who, is_rounded_often)
        except Exception as error:
            if is_fatal(error):
                raise
            for found in (graphs, times, configs):
                found.pop(who, None)
            failed[who] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            print(f"  {who}: {failed[who]}", file=sys.stderr)

    # cuBLAS may add partial sums of bf16.
    attempt("cublas", lambda: fastest_library(work), is_rounded_often=True)
    said("cublas tuned")

    def of_version(version):
        us, config = fastest_config(work, key, version, wanted[version])
        return peers.graph_of(peers.triton_run(work, config))[0], us, config

    for version in wanted:
        attempt(f"triton {version}", lambda version=version: of_version(version))
    said("triton tuned")
    if not graphs:
        raise RuntimeError(f"no peer computes this product: {failed}")
    least = min((us for who, us in times.items() if who != "cublas"), default=0)
    timed = {who: graph for who, graph in graphs.items() if who == "cublas" or times[who] <= FAR_BEHIND * least}
    peers.CURRENT = peers.Prepared(work, timed)
    return peers.described(work, configs=configs, tuned_us=times, failed=failed)


def check():
    torch.cuda.synchronize()
    check_result(peers.CURRENT.work, SIZES, "ours")
    return {}


def warm(seconds):
    """Computes products for so long, and answers the clocks at the end, while products still run."""
    graph = next(iter(peers.CURRENT.graphs.values()))
    graph.replay()
    torch.cuda.synchronize()
    begun = perf_counter()
    graph.replay()
    torch.cuda.synchronize()
    once = max(perf_counter() - begun, 1e-5)
    queue = lambda span: [graph.replay() for _ in range(min(max(int(span / once), 1), 20_000))]
    while perf_counter() - begun < float(seconds):
        queue(0.1)
        torch.cuda.synchronize()
    queue(0.3)
    clocks = peers.clocks()
    torch.cuda.synchronize()
    return clocks


# As `REST` of the benchmark in Rust: longer than what Python needs between two runs.
REST = 50e-6


def time():
    """The times of the peers in microseconds."""
    return {who: peers.middle_us(graph.replay, rest=REST) for who, graph in peers.CURRENT.graphs.items()}


peers.REQUESTS |= {"prepare": prepare, "check": check, "warm": warm, "time": time}


def self_test():
    """What needs no GPU: the configurations, and the check of results on the CPU."""
    shapes = [(1, 4096, 4096), (16, 8192, 8192), (64, 64, 64), (1000, 1003, 1017), (1024,) * 3, (4096,) * 3, (16384,) * 3, (16384, 128, 4096)]
    for m, n, k in shapes:
        for version in VERSIONS:
            configs = configs_of(version, m, n, k)
            assert 2 <= len(configs) <= MOST_CONFIGS, (version, m, n, k, len(configs))
            assert all(configs.count(config) == 1 for config in configs), (version, m, n, k)
            assert all(config["version"] == version for config in configs)
    tile = lambda m, n, k: tuple(configs_of("pointers", m, n, k)[0][name] for name in ("BLOCK_M", "BLOCK_N"))
    assert tile(4096, 4096, 4096) in ((128, 256), (256, 128)), tile(4096, 4096, 4096)
    assert tile(1024, 1024, 1024) in ((64, 128), (128, 64)), tile(1024, 1024, 1024)
    assert tile(16, 8192, 8192)[0] == 16, tile(16, 8192, 8192)
    for extent in (1, 127, 128, 129, 1000):
        at = samples(extent).tolist()
        assert {each // 128 for each in at} == set(range(math.ceil(extent / 128))) and at[-1] == extent - 1, (extent, at)

    peers.DEVICE = "cpu"
    for transposed in ((0, 0), (0, 1), (1, 0), (1, 1)):
        sizes = (200, 136, 72, *transposed)
        work = peers.make("matmul", "bf16", sizes)
        a, b, y = work.inputs["a"], work.inputs["b"], work.outputs["y"]
        right = (a.t() if transposed[0] else a).double() @ (b.t() if transposed[1] else b).double()
        y.copy_(right)
        check_result(work, sizes, "the test")
        # A tile that is not written, one element of the last row, and a sum without its last products.
        wrong = {"tile": (slice(64, 192), slice(0, 128), float("nan")), "element": (199, 5, 1e3)}
        for what, (rows, columns, value) in wrong.items():
            y.copy_(right)
            y[rows, columns] = value
            expect_wrong(work, sizes, what)
        y.copy_((a.t() if transposed[0] else a)[:, :64].double() @ (b.t() if transposed[1] else b)[:64].double())
        expect_wrong(work, sizes, "sum")
        assert why_not("persistent", {"a": a, "b": b, "y": y}) is None
    assert why_not("descriptors", {"y": torch.empty(8, 1003, dtype=torch.bfloat16)}) and not why_not("pointers", {"y": y})
    print("the self-test passed")


def expect_wrong(work, sizes, what):
    try:
        check_result(work, sizes, what)
    except ValueError:
        return
    raise AssertionError(f"a wrong {what} is not noticed")


if __name__ == "__main__":
    if sys.argv[1:] == ["self-test"]:
        self_test()
    else:
        peers.main()
