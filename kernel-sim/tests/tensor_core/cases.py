"""Cases of the matrix-instruction experiment: shapes, formats, fragment layouts, PTX."""
import numpy as np

# name: (exponent bits, mantissa bits, storage bits)
FLOATS = {"f16": (5, 10, 16), "bf16": (8, 7, 16), "tf32": (8, 10, 32), "e4m3": (4, 3, 8), "e5m2": (5, 2, 8), "f32": (8, 23, 32), "f64": (11, 52, 64)}
INTS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}

def bits(t):
    return FLOATS[t][2] if t in FLOATS else INTS[t]

class Case:
    def __init__(s, name, m, n, k, d, a, b, ptx, warps, wgmma=False):
        s.name, s.m, s.n, s.k, s.d, s.a, s.b, s.ptx, s.warps, s.wgmma = name, m, n, k, d, a, b, ptx, warps, wgmma
        s.reg = 64 if a == "f64" else 32
        s.threads = 128 if wgmma else 32
        ea, ed = s.reg // bits(a), (64 if d == "f64" else 32) // bits(d)
        s.ea, s.ed = ea, ed
        s.na = m * k // ea // s.threads
        s.nb = n * k // ea // 32
        s.nc = m * n // ed // s.threads
    # (lane, register, element) -> indices
    def a_index(s):
        T, r, e = np.meshgrid(np.arange(s.threads), np.arange(s.na), np.arange(s.ea), indexing="ij")
        w, l = T // 32, T % 32
        if s.m == 8:
            return l // 4, (l % 4 + 4 * r) * s.ea + e
        return 16 * w + l // 4 + 8 * (r % 2), (l % 4 + 4 * (r // 2)) * s.ea + e
    def b_index(s):
        l, r, e = np.meshgrid(np.arange(32), np.arange(s.nb), np.arange(s.ea), indexing="ij")
        return (l % 4 + 4 * r) * s.ea + e, l // 4
    def c_index(s):
        T, r, e = np.meshgrid(np.arange(s.threads), np.arange(s.nc), np.arange(s.ed), indexing="ij")
        w, l = T // 32, T % 32
        i = r * s.ed + e
        return 16 * w + l // 4 + 8 * (i // 2), l % 4 * 2 + i % 2

def pack(x, index, width, reg):
    """x[W, rows, cols] -> words[W, register, lane]"""
    v = x[:, index[0], index[1]].astype(np.uint64)  # W, lane, reg, elem
    out = np.zeros(v.shape[:3], np.uint64)
    for e in range(v.shape[3]):
        out |= (v[..., e] & np.uint64((1 << width) - 1 if width < 64 else 2**64 - 1)) << np.uint64(e * width)
    out = out.transpose(0, 2, 1)
    return np.ascontiguousarray(out.astype(np.uint64 if reg == 64 else np.uint32))

def unpack(words, index, width, shape):
    """words[W, register, lane] -> x[W, rows, cols]"""
    w = words.astype(np.uint64).transpose(0, 2, 1)
    x = np.zeros((words.shape[0],) + shape, np.uint64)
    for e in range(index[0].shape[2]):
        x[:, index[0][..., e], index[1][..., e]] = (w >> np.uint64(e * width)) & np.uint64((1 << width) - 1 if width < 64 else 2**64 - 1)
    return x

def pack_b_shared(x, width):
    """x[W, k, n] -> bytes of core matrices: 8 rows (n) of 16 bytes, one after the other along k"""
    W, k, n = x.shape
    per = 16 * 8 // width
    y = x.transpose(0, 2, 1).reshape(W, n, k // per, per).transpose(0, 2, 1, 3).reshape(W, -1, 32 // width).astype(np.uint64)
    out = np.zeros(y.shape[:2], np.uint64)
    for e in range(y.shape[2]):
        out |= (y[..., e] & np.uint64((1 << width) - 1)) << np.uint64(e * width)
    return np.ascontiguousarray(out.astype(np.uint32))

CASES = []
def mma(m, n, k, d, a, b, warps=400, extra="", op="", tag=""):
    name = f"mma_m{m}n{n}k{k}_{d}_{a}_{b}" + tag
    CASES.append(Case(name, m, n, k, d, a, b, f"mma.sync.aligned.m{m}n{n}k{k}.row.col{extra}.{d}.{a}.{b}.{d}{op}", warps))
def wg(k, d, a, b, warps=100, extra="", tag="", op=""):
    name = f"wgmma_k{k}_{d}_{a}_{b}" + tag
    CASES.append(Case(name, 64, 8, k, d, a, b, f"wgmma.mma_async.sync.aligned.m64n8k{k}.{d}.{a}.{b}{op}{extra}", warps, True))

for k in (8, 16):
    mma(16, 8, k, "f32", "f16", "f16"); mma(16, 8, k, "f16", "f16", "f16"); mma(16, 8, k, "f32", "bf16", "bf16")
mma(16, 8, 4, "f32", "tf32", "tf32"); mma(16, 8, 8, "f32", "tf32", "tf32")
for k in (16, 32):
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for d in ("f32", "f16"):
                mma(16, 8, k, d, a, b, 300)
for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
    mma(m, 8, k, "f64", "f64", "f64", 150)
for m, k in ((8, 16), (16, 16), (16, 32)):
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            for sat in ("", ".satfinite"):
                mma(m, 8, k, "s32", a, b, 16, extra=sat, tag=sat.replace(".", "_"))
for m, k in ((8, 32), (16, 32), (16, 64)):
    for a, b, sat in (("s4", "s4", ""), ("u4", "s4", ".satfinite"), ("s4", "u4", ""), ("u4", "u4", ".satfinite")):
        mma(m, 8, k, "s32", a, b, 8, extra=sat, tag=sat.replace(".", "_"))
for m, k in ((8, 128), (16, 128), (16, 256)):
    for op in (".xor.popc", ".and.popc"):
        mma(m, 8, k, "s32", "b1", "b1", 8, op=op, tag=op.replace(".", "_"))
for d in ("f32", "f16"):
    wg(16, d, "f16", "f16")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            wg(32, d, a, b)
wg(16, "f32", "bf16", "bf16"); wg(8, "f32", "tf32", "tf32")
for a in ("s8", "u8"):
    for b in ("s8", "u8"):
        for sat in ("", ".satfinite"):
            wg(32, "s32", a, b, 8, extra=sat, tag=sat.replace(".", "_"))
wg(256, "s32", "b1", "b1", 8, op=".and.popc")

HEADER = ".version 8.8\n.target sm_90a\n.address_size 64\n"

def entry(c):
    w = c.reg // 8
    rt = "b64" if c.reg == 64 else "b32"
    o = [f".visible .entry {c.name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n.maxntid {c.threads}, 1, 1\n{{"]
    o.append("  .reg .u64 %p<5>; .reg .u64 %x, %desc; .reg .u32 %cta, %lane, %i, %s; .reg .pred %t;")
    if c.wgmma: o.append("  .shared .align 1024 .b8 tile[1024];")
    ct = {"f32": "f32", "f64": "f64", "s32": "b32", "f16": "b32"}[c.d]
    at = "f64" if c.a == "f64" else "b32"
    o.append(f"  .reg .{at} %a<{c.na}>; .reg .{at} %b<{c.nb}>; .reg .{ct} %c<{c.nc}>;")
    o.append("  mov.u32 %cta, %ctaid.x; mov.u32 %lane, %tid.x;")
    for i, p in enumerate(("pa", "pb", "pc", "pd")): o.append(f"  ld.param.u64 %p{i}, [{p}]; cvta.to.global.u64 %p{i}, %p{i};")
    def base(i, n, threads, wb):
        o.append(f"  mad.lo.u32 %i, %cta, {n * threads}, %lane; mul.wide.u32 %x, %i, {wb}; add.u64 %p{i}, %p{i}, %x;")
    base(0, c.na, c.threads, w); base(2, c.nc, c.threads, w); base(3, c.nc, c.threads, w)
    for r in range(c.na): o.append(f"  ld.global.{at} %a{r}, [%p0+{r * c.threads * w}];")
    for r in range(c.nc): o.append(f"  ld.global.{ct} %c{r}, [%p2+{r * c.threads * w}];")
    A = "{" + ", ".join(f"%a{i}" for i in range(c.na)) + "}"
    C = "{" + ", ".join(f"%c{i}" for i in range(c.nc)) + "}"
    if c.wgmma:
        # 64 words of B: threads 0..63
        o.append("  setp.lt.u32 %t, %lane, 64; mad.lo.u32 %i, %cta, 64, %lane; mul.wide.u32 %x, %i, 4; add.u64 %p1, %p1, %x;")
        o.append("  @%t ld.global.b32 %b0, [%p1]; mov.u32 %s, tile; shl.b32 %i, %lane, 2; add.u32 %i, %i, %s; @%t st.shared.b32 [%i], %b0;")
        o.append("  fence.proxy.async.shared::cta; bar.sync 0;")
        lbo = (128 >> 4) << 16 | (128 >> 4) << 32
        o.append(f"  cvt.u64.u32 %desc, %s; and.b64 %desc, %desc, 0x3ffff; shr.u64 %desc, %desc, 4; or.b64 %desc, %desc, {lbo};")
        imm = {"f16": ", 1, 1, 0", "bf16": ", 1, 1, 0", "tf32": ", 1, 1", "e4m3": ", 1, 1", "e5m2": ", 1, 1"}.get(c.a, "")
        o.append("  setp.eq.u32 %t, %lane, %lane; wgmma.fence.sync.aligned;")
        o.append(f"  {c.ptx} {C}, {A}, %desc, %t{imm};")
        o.append("  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
    else:
        base(1, c.nb, 32, w)
        for r in range(c.nb): o.append(f"  ld.global.{at} %b{r}, [%p1+{r * 32 * w}];")
        B = "{" + ", ".join(f"%b{i}" for i in range(c.nb)) + "}"
        o.append(f"  {c.ptx} {C}, {A}, {B}, {C};")
    for r in range(c.nc): o.append(f"  st.global.{ct} [%p3+{r * c.threads * w}], %c{r};")
    o.append("  ret;\n}\n")
    return "\n".join(o)
