"""Writes kernels.ptx and in.npz-like binaries: inputs of every case."""
import json, sys
import numpy as np
from cases import *

def compose(t, sign, exponent, mantissa):
    """exponent unbiased (of the value); clipped to subnormals and to the highest finite binade"""
    e, m, w = FLOATS[t]
    bias = (1 << (e - 1)) - 1
    top = (1 << e) - (1 if t == "e4m3" else 2)
    stored = np.clip(exponent + bias, 0, top).astype(np.int64)
    bits = (sign.astype(np.uint64) << np.uint64(e + m)) | (stored.astype(np.uint64) << np.uint64(m)) | (mantissa.astype(np.uint64) & np.uint64((1 << m) - 1))
    if t == "e4m3":  # no NaN here
        bits = np.where((bits & np.uint64(0x7f)) == np.uint64(0x7f), bits - np.uint64(1), bits)
    return bits

def to_float(t, bits):
    e, m, w = FLOATS[t]
    bits = bits.astype(np.uint64)
    if t == "f64": return bits.view(np.float64)
    bias = (1 << (e - 1)) - 1
    if t == "tf32": bits = bits >> np.uint64(13)
    s = np.where(bits >> np.uint64(e + m) & np.uint64(1), -1.0, 1.0)
    x = (bits >> np.uint64(m) & np.uint64((1 << e) - 1)).astype(np.int64)
    f = (bits & np.uint64((1 << m) - 1)).astype(np.float64) / (1 << m)
    v = np.where(x == 0, f * 2.0 ** (1 - bias), (1 + f) * np.exp2((x - bias).astype(np.float64)))
    if t == "e4m3": v = np.where((bits & np.uint64(0x7f)) == np.uint64(0x7f), np.nan, v)
    else: v = np.where(x == (1 << e) - 1, np.where(f == 0, np.inf, np.nan), v)
    return s * v

def from_float(t, x):
    if t == "f32": return x.astype(np.float32).view(np.uint32).astype(np.uint64)
    if t == "f16": return x.astype(np.float16).view(np.uint16).astype(np.uint64)
    if t == "f64": return x.view(np.uint64)

SPECIAL = {
    "f16": [0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x7bff, 0xfbff, 0x0400, 0x3c00],
    "bf16": [0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0, 0x8000, 1, 0x8001, 0x7f, 0x7f7f, 0xff7f, 0x80, 0x3f80],
    "tf32": [0x7f800000, 0xff800000, 0x7fc00000, 0xffc02000, 0x7f802000, 0x7f800001, 0x7f801fff, 0, 0x80000000, 0x00002000, 0x80002000, 0x1fff, 0x7f7fe000, 0xff7fffff, 0x00800000, 0x3f800000],
    "e4m3": [0x7f, 0xff, 0x7e, 0xfe, 0, 0x80, 1, 0x81, 7, 8, 0x38],
    "e5m2": [0x7c, 0xfc, 0x7d, 0xfe, 0x7f, 0, 0x80, 1, 0x81, 3, 0x7b, 0xfb, 4, 0x3c],
    "f32": [0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x7f7fffff, 0xff7fffff, 0x800000, 0x3f800000],
    "f64": [0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48, (0xfff8 << 48) | 1, (0x7ff0 << 48) | 1, 0, 1 << 63, 1, (1 << 63) | 1, (1 << 52) - 1, (0x7ff0 << 48) - 1, (0xfff0 << 48) - 1, 1 << 52, 0x3ff0 << 48],
}

def operand(rng, t, shape, center, spread, pzero, style):
    e, m, w = FLOATS[t]
    sign = rng.integers(0, 2, shape)
    ex = center + rng.integers(-spread, spread + 1, shape)
    man = rng.integers(0, 1 << m, shape)
    if style == 1: man &= -(1 << max(m - 2, 0))
    if style == 2: man[:] = (1 << m) - 1
    if style == 3: man[:] = 0
    if style == 4: sign[:] = 0
    bits = compose(t, sign, ex, man)
    bits[rng.random(shape) < pzero] = 0
    return bits

def floats(rng, c):
    W = c.warps
    ax, bx, cx = [], [], []
    ea, ma, _ = FLOATS[c.a]; eb, mb, _ = FLOATS[c.b]; ed, md, _ = FLOATS[c.d]
    ba, bb, bd = (1 << (ea - 1)) - 1, (1 << (eb - 1)) - 1, (1 << (ed - 1)) - 1
    for w in range(W):
        spread = int(rng.choice([0, 1, 2, 3, 6, 12, 20, 60]))
        sa, sb = min(spread, ba), min(spread, bb)
        kind = rng.integers(0, 8)
        ca, cb = 0, 0
        if kind == 1:  # small: towards subnormals of the result
            ca = int(rng.integers(max(-ba - ma, -bd), 1)); cb = int(np.clip(-bd - ca + rng.integers(-6, 7), -bb - mb, bb))
        elif kind == 2:  # large: towards overflow
            ca = int(rng.integers(0, min(ba, bd) + 1)); cb = int(np.clip(bd - ca - rng.integers(0, 6), -bb, bb))
        elif kind == 3:
            ca, cb = int(rng.integers(-ba, ba + 1)), int(rng.integers(-bb, bb + 1))
        style = int(rng.integers(0, 6))
        pz = float(rng.choice([0, 0, 0, .3, .7, .9]))
        A = operand(rng, c.a, (c.m, c.k), ca, sa, pz, style)
        B = operand(rng, c.b, (c.k, c.n), cb, sb, pz if rng.integers(0, 2) else 0, style)
        fa, fb = A, B
        if c.a == "tf32": fa, fb = A << np.uint64(13), B << np.uint64(13)
        with np.errstate(all="ignore"):
            S = to_float(c.a, fa) @ to_float(c.b, fb)
        # C, element by element one of several ways
        ways = rng.integers(0, 6, (c.m, c.n)) if rng.integers(0, 2) else np.full((c.m, c.n), rng.integers(0, 6))
        dspread = int(rng.choice([2, 8, 14, 28]))
        C = operand(rng, c.d, (c.m, c.n), ca + cb, min(dspread, bd), 0.02, int(rng.integers(0, 4)))
        wide = operand(rng, c.d, (c.m, c.n), 0, bd + md, 0.1, 0)
        with np.errstate(all="ignore"):
            cancel = from_float(c.d, np.ascontiguousarray(-S))
            near = from_float(c.d, np.ascontiguousarray(-S * (1 + rng.standard_normal(S.shape) * 2.0 ** -float(rng.integers(2, 24)))))
        C = np.where(ways == 0, np.uint64(0), C)
        C = np.where(ways == 1, cancel, C)
        C = np.where(ways == 2, near, C)
        C = np.where(ways == 3, wide, C)
        A, B = fa, fb
        if c.a == "tf32" and rng.integers(0, 3) == 0:
            A = A | rng.integers(0, 1 << 13, A.shape).astype(np.uint64); B = B | rng.integers(0, 1 << 13, B.shape).astype(np.uint64)
        ps = float(rng.choice([0, 0, 0, 0, 0.01, 0.04]))
        for X, t in ((A, c.a), (B, c.b), (C, c.d)):
            if rng.integers(0, 4) == 0: continue
            where = rng.random(X.shape) < ps
            X[where] = rng.choice(np.array(SPECIAL[t], np.uint64), where.sum())
        ax.append(A); bx.append(B); cx.append(C)
    return np.array(ax), np.array(bx), np.array(cx)

def ints(rng, c):
    def x(t, shape):
        v = rng.integers(0, 1 << INTS[t], shape).astype(np.uint64)
        lo = rng.random((shape[0], 1, 1)) < .3  # extremes
        ext = rng.choice(np.array([0, (1 << INTS[t]) - 1, 1 << (INTS[t] - 1), (1 << (INTS[t] - 1)) - 1], np.uint64), shape)
        return np.where(lo, ext, v)
    A, B = x(c.a, (c.warps, c.m, c.k)), x(c.b, (c.warps, c.k, c.n))
    C = rng.integers(0, 1 << 32, (c.warps, c.m, c.n)).astype(np.uint64)
    near = np.where(rng.random(C.shape) < .5, 0x7fffffff - rng.integers(0, 1 << 16, C.shape), 0x80000000 + rng.integers(0, 1 << 16, C.shape)).astype(np.uint64)
    return A, B, np.where(rng.random((c.warps, 1, 1)) < .5, near, C)

MISC = r"""
.visible .entry move(.param .u64 pi, .param .u64 po)
.maxntid 32, 1, 1
{
  .reg .u64 %i, %o, %x; .reg .u32 %lane, %s, %t, %u, %row, %cta; .reg .b32 %r<8>; .reg .pred %p;
  .shared .align 128 .b8 tile[512];
  ld.param.u64 %i, [pi]; ld.param.u64 %o, [po]; cvta.to.global.u64 %i, %i; cvta.to.global.u64 %o, %o;
  mov.u32 %lane, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %s, tile;
  // input: 128 words of shared memory, 32 row numbers a CTA
  mad.lo.u32 %t, %cta, 160, %lane; mul.wide.u32 %x, %t, 4; add.u64 %i, %i, %x;
  shl.b32 %t, %lane, 2; add.u32 %t, %t, %s;
  ld.global.b32 %r0, [%i]; ld.global.b32 %r1, [%i+128]; ld.global.b32 %r2, [%i+256]; ld.global.b32 %r3, [%i+384]; ld.global.u32 %row, [%i+512];
  st.shared.b32 [%t], %r0; st.shared.b32 [%t+128], %r1; st.shared.b32 [%t+256], %r2; st.shared.b32 [%t+384], %r3;
  bar.sync 0;
  mad.lo.u32 %u, %row, 16, %s;
  mad.lo.u32 %t, %cta, 1024, %lane; mul.wide.u32 %x, %t, 4; add.u64 %o, %o, %x;
  LOADS
  // stores: rows of 16 bytes, a permutation
  STORES
  ret;
}
.visible .entry convert(.param .u64 pi, .param .u64 po, .param .u32 n)
.maxntid 128, 1, 1
{
  .reg .u64 %i, %o, %x; .reg .u32 %t, %c, %n; .reg .f32 %f, %g; .reg .b32 %r, %h; .reg .b16 %w, %z; .reg .pred %p;
  ld.param.u64 %i, [pi]; ld.param.u64 %o, [po]; ld.param.u32 %n, [n]; cvta.to.global.u64 %i, %i; cvta.to.global.u64 %o, %o;
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %t, %c, 128, %t; setp.ge.u32 %p, %t, %n; @%p ret;
  mul.wide.u32 %x, %t, 4; add.u64 %i, %i, %x; mul.wide.u32 %x, %t, 64; add.u64 %o, %o, %x;
  ld.global.f32 %f, [%i]; ld.global.b32 %r, [%i]; neg.f32 %g, %f; cvt.u16.u32 %z, %r;
  CONVERTS
  ret;
}
"""
CONVERTS = ["cvt.rn.satfinite.e4m3x2.f32 %w, %f, %g", "cvt.rn.satfinite.relu.e4m3x2.f32 %w, %f, %g", "cvt.rn.satfinite.e5m2x2.f32 %w, %f, %g", "cvt.rn.satfinite.relu.e5m2x2.f32 %w, %f, %g",
  "cvt.rn.satfinite.e4m3x2.f16x2 %w, %r", "cvt.rn.satfinite.relu.e4m3x2.f16x2 %w, %r", "cvt.rn.satfinite.e5m2x2.f16x2 %w, %r", "cvt.rn.satfinite.relu.e5m2x2.f16x2 %w, %r",
  "cvt.rn.f16x2.e4m3x2 %h, %z", "cvt.rn.relu.f16x2.e4m3x2 %h, %z", "cvt.rn.f16x2.e5m2x2 %h, %z", "cvt.rn.relu.f16x2.e5m2x2 %h, %z",
  "cvt.rna.tf32.f32 %h, %f", "cvt.rn.tf32.f32 %h, %f", "cvt.rz.tf32.f32 %h, %f", "cvt.rn.relu.tf32.f32 %h, %f"]

def misc():
    conv = []
    for i, text in enumerate(CONVERTS):
        conv.append(f"  {text}; " + ("cvt.u32.u16 %h, %w; " if "%w," in text else "") + f"st.global.b32 [%o+{4 * i}], %h;")
    loads, slot = [], 0
    for n in (1, 2, 4):
        for trans in ("", ".trans"):
            regs = "{" + ", ".join(f"%r{j}" for j in range(n)) + "}"
            loads.append(f"  ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {regs}, [%u];")
            for j in range(n): loads.append(f"  st.global.b32 [%o+{128 * (slot + j)}], %r{j};")
            slot += n
    # 14 slots; movmatrix: 1
    loads.append(f"  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r0, %r1, %r2, %r3}}, [%u]; movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r0; st.global.b32 [%o+{128 * 14}], %r4;")
    stores = []
    slot = 15
    for n in (1, 2, 4):
        for trans in ("", ".trans"):
            if slot + 4 > 32: break
            regs = "{" + ", ".join(f"%r{j}" for j in range(n)) + "}"
            stores.append(f"  bar.sync 0; st.shared.b32 [%t], 0; st.shared.b32 [%t+128], 0; st.shared.b32 [%t+256], 0; st.shared.b32 [%t+384], 0; bar.sync 0;")
            stores.append(f"  stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [%u], {regs}; bar.sync 0;")
            for j in range(4): stores.append(f"  ld.shared.b32 %r5, [%t+{128 * j}]; st.global.b32 [%o+{128 * (slot + j)}], %r5;")
            slot += 4
    stores.insert(0, "  shl.b32 %t, %lane, 2; add.u32 %t, %t, %s;")
    return MISC.replace("CONVERTS", "\n".join(conv)).replace("LOADS", "\n".join(loads)).replace("STORES", "\n".join(stores))

if __name__ == "__main__":
    ptx = HEADER + "".join(entry(c) for c in CASES) + misc()
    open("kernels.ptx", "w").write(ptx)
    blob, table, at = [], [], 0
    def add(x):
        global at
        b = x.tobytes(); o = at; blob.append(b); at += len(b); return o
    for i, c in enumerate(CASES):
        rng = np.random.Generator(np.random.PCG64(1000 + i))
        A, B, C = (floats if c.a in FLOATS else ints)(rng, c)
        pa = pack(A, c.a_index(), bits(c.a), c.reg); pc = pack(C, c.c_index(), bits(c.d), c.reg)
        pb = pack_b_shared(B, bits(c.b)) if c.wgmma else pack(B, c.b_index(), bits(c.b), c.reg)
        table.append(dict(name=c.name, warps=c.warps, threads=c.threads, a=[add(pa), pa.nbytes], b=[add(pb), pb.nbytes], c=[add(pc), pc.nbytes]))
    rng = np.random.Generator(np.random.PCG64(7))
    mv = []
    for cta in range(64):
        mv.append(np.concatenate([rng.integers(0, 1 << 32, 128), rng.permutation(32)]).astype(np.uint32))
    mv = np.array(mv); table.append(dict(name="move", warps=64, threads=32, a=[add(mv), mv.nbytes]))
    halves = rng.permutation(1 << 16).astype(np.uint32)
    cv = np.concatenate([rng.integers(0, 1 << 32, 20000).astype(np.uint32), halves[:20000] | halves[20000:40000] << np.uint32(16),
        ((rng.integers(100, 145, 20000) << 23) | (rng.integers(0, 2, 20000) << 31) | (rng.integers(0, 64, 20000) << 17)).astype(np.uint32) + rng.integers(-1, 2, 20000).astype(np.uint32),
        np.array(SPECIAL["f32"] + SPECIAL["tf32"], np.uint32), np.arange(0x7c00, 0x8000, 7, dtype=np.uint32) * np.uint32(0x10001), np.arange(256, dtype=np.uint32) * np.uint32(257)])
    table.append(dict(name="convert", warps=len(cv), threads=128, a=[add(cv), cv.nbytes]))
    open("in.bin", "wb").write(b"".join(blob)); json.dump(table, open("table.json", "w"))
    print(at / 2**20, "MiB")
