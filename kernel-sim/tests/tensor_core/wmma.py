"""The same for `wmma`: writes wmma.ptx and in.bin; `python3 wmma.py record FOLDER` writes wmma.bin from what run.py left there.

wmma.bin: a line of text for each case, `kernel warps`, then bytes of A, B, C and D of a warp; an empty line; for each case and warp A, B, C, D.
"""
import json, sys
import numpy as np
import cases as K
from gen import floats, ints
class W:
    def __init__(s, m, n, k, a, d, c): s.m, s.n, s.k, s.a, s.b, s.d, s.cc = m, n, k, a, a, d, c; s.warps = 60; s.name = f"wmma_m{m}n{n}k{k}_{a}_{d}_{c}"
WC = [W(m, n, k, "f16", d, c) for m, n, k in ((16,16,16),(32,8,16),(8,32,16)) for d, c in (("f32","f32"),("f16","f16"))]
WC += [W(16,16,16,"f16","f32","f16"), W(16,16,16,"f16","f16","f32")]
WC += [W(m, n, k, "bf16", "f32", "f32") for m, n, k in ((16,16,16),(32,8,16),(8,32,16))]
WC += [W(16,16,8,"tf32","f32","f32"), W(8,8,4,"f64","f64","f64"), W(16,16,16,"s8","s32","s32"), W(32,8,16,"u8","s32","s32")]
REGS = {"f16": lambda m,k: 8, "bf16": lambda m,k: m*k//64, "tf32": lambda m,k: m*k//32, "f64": lambda m,k: 1, "s8": lambda m,k: max(m*k//128,1), "u8": lambda m,k: max(m*k//128,1)}
def np_t(t): return {64: np.uint64, 32: np.uint32, 16: np.uint16, 8: np.uint8}[K.bits(t)]
def entry(c):
    na, nb = REGS[c.a](c.m, c.k), REGS[c.a](c.n, c.k)
    nd, nc = [c.m*c.n//32//(2 if t == "f16" else 1) for t in (c.d, c.cc)]
    rt = lambda t: {"f64": "f64", "f32": "f32"}.get(t, "b32")
    V = lambda l, n: "{" + ", ".join(f"%{l}{i}" for i in range(n)) + "}"
    o = [f".visible .entry {c.name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n.maxntid 32, 1, 1\n{{"]
    o.append(f" .reg .u64 %p<4>, %x; .reg .u32 %cta; .reg .{rt(c.a)} %a<{na}>, %b<{nb}>; .reg .{rt(c.cc)} %c<{nc}>; .reg .{rt(c.d)} %d<{nd}>; mov.u32 %cta, %ctaid.x;")
    for i, (p, sz) in enumerate((("pa", c.m*c.k*K.bits(c.a)//8), ("pb", c.n*c.k*K.bits(c.a)//8), ("pc", c.m*c.n*K.bits(c.cc)//8), ("pd", c.m*c.n*K.bits(c.d)//8))):
        o.append(f" ld.param.u64 %p{i}, [{p}]; cvta.to.global.u64 %p{i}, %p{i}; mul.wide.u32 %x, %cta, {sz}; add.u64 %p{i}, %p{i}, %x;")
    sh = f"m{c.m}n{c.n}k{c.k}"
    o.append(f" wmma.load.a.sync.aligned.row.{sh}.global.{c.a} {V('a',na)}, [%p0], {c.k};")
    o.append(f" wmma.load.b.sync.aligned.col.{sh}.global.{c.a} {V('b',nb)}, [%p1];")
    o.append(f" wmma.load.c.sync.aligned.row.{sh}.global.{c.cc} {V('c',nc)}, [%p2];")
    ty = f"{c.d}.{c.cc}" if c.a == "f16" else f"{c.d}.{c.a}.{c.a}.{c.cc}"
    o.append(f" wmma.mma.sync.aligned.row.col.{sh}.{ty} {V('d',nd)}, {V('a',na)}, {V('b',nb)}, {V('c',nc)};")
    o.append(f" wmma.store.d.sync.aligned.row.{sh}.global.{c.d} [%p3], {V('d',nd)};\n ret;\n}}\n")
    return "\n".join(o)

def record(folder):
    table = {t["name"]: t for t in json.load(open("table.json"))}
    index = {name: at for name, at, n in json.load(open(folder + "/out.json"))}
    inputs, outputs = open("in.bin", "rb").read(), open(folder + "/out.bin", "rb").read()
    head, body = [], []
    for c in WC:
        t = table[c.name]; sizes = [t[x][1] // c.warps for x in "abc"] + [c.m * c.n * K.bits(c.d) // 8]
        results = [outputs[index[c.name] + w * sizes[3]:][:sizes[3]] for w in range(c.warps)]
        w = int(np.argmax([len(np.unique(np.frombuffer(r, np_t(c.d)))) for r in results]))
        head.append(f"{c.name} 1 " + " ".join(map(str, sizes)))
        body += [inputs[t[x][0] + w * n:][:n] for x, n in zip("abc", sizes)] + [results[w]]
    open("wmma.bin", "wb").write(("\n".join(head) + "\n\n").encode() + b"".join(body))

if __name__ == "__main__" and sys.argv[1:2] == ["record"]: record(sys.argv[2])
elif __name__ == "__main__":
    open("wmma.ptx", "w").write(K.HEADER + "".join(map(entry, WC)))
    blob, table, at = [], [], 0
    def add(x):
        global at
        b = np.ascontiguousarray(x).tobytes(); o = at; blob.append(b); at += len(b); return [o, len(b)]
    for i, c in enumerate(WC):
        rng = np.random.Generator(np.random.PCG64(500 + i)); d, c.d = c.d, c.cc
        A, B, C = (floats if c.a in K.FLOATS else ints)(rng, c); c.d = d
        t = dict(name=c.name, warps=c.warps, threads=32, a=add(A.astype(np_t(c.a))), b=add(B.transpose(0,2,1).astype(np_t(c.a))), c=add(C.astype(np_t(c.cc))))
        table.append(t)
    open("in.bin", "wb").write(b"".join(blob)); json.dump(table, open("table.json", "w")); print(at)
