"""Runs every kernel of kernels.cubin on the inputs of in.bin; results go to the folder of the first argument."""
import ctypes as C, json, sys, os
here = os.path.dirname(os.path.abspath(__file__))
cu = C.CDLL("libcuda.so.1")
def ok(r, what):
    if r: raise SystemExit(f"{what}: CUDA error {r}")
ok(cu.cuInit(0), "init")
dev = C.c_int(); ok(cu.cuDeviceGet(C.byref(dev), 0), "device")
ctx = C.c_void_p(); ok(cu.cuDevicePrimaryCtxRetain(C.byref(ctx), dev), "ctx"); ok(cu.cuCtxSetCurrent(ctx), "cur")
name = C.create_string_buffer(99); cu.cuDeviceGetName(name, 99, dev); print(name.value.decode())
mod = C.c_void_p(); ok(cu.cuModuleLoadData(C.byref(mod), open(here + "/kernels.cubin", "rb").read()), "module")
blob = open(here + "/in.bin", "rb").read()
table = json.load(open(here + "/table.json"))
def alloc(n, data=None):
    p = C.c_uint64(); ok(cu.cuMemAlloc_v2(C.byref(p), C.c_size_t(max(n, 16))), "alloc")
    ok(cu.cuMemsetD8_v2(p, C.c_ubyte(0xcc), C.c_size_t(n)), "memset")
    if data is not None: ok(cu.cuMemcpyHtoD_v2(p, data, C.c_size_t(n)), "htod")
    return p
out = open(sys.argv[1] + "/out.bin", "wb"); pos = 0; index = []
for t in table:
    f = C.c_void_p(); ok(cu.cuModuleGetFunction(C.byref(f), mod, t["name"].encode()), t["name"])
    part = lambda k: alloc(t[k][1], blob[t[k][0]:t[k][0] + t[k][1]])
    if t["name"] == "move": n = 64 * 1024 * 4; args = [part("a"), alloc(n)]; args = args; grid = t["warps"]
    elif t["name"] == "convert": n = t["warps"] * 64; args = [part("a"), alloc(n), C.c_uint32(t["warps"])]; grid = (t["warps"] + 127) // 128
    else: n = 2 * t["c"][1]; args = [part("a"), part("b"), part("c"), alloc(n)]; grid = t["warps"]
    d = args[1] if t["name"] in ("move", "convert") else args[3]
    ptrs = (C.c_void_p * len(args))(*[C.cast(C.pointer(a), C.c_void_p) for a in args])
    ok(cu.cuLaunchKernel(f, grid, 1, 1, t["threads"], 1, 1, 0, None, ptrs, None), "launch " + t["name"])
    ok(cu.cuCtxSynchronize(), "run " + t["name"])
    b = C.create_string_buffer(n); ok(cu.cuMemcpyDtoH_v2(b, d, C.c_size_t(n)), "dtoh")
    out.write(b.raw[:n]); index.append([t["name"], pos, n]); pos += n
    for a in args:
        if isinstance(a, C.c_uint64): cu.cuMemFree_v2(a)
json.dump(index, open(sys.argv[1] + "/out.json", "w")); print(len(index), "kernels,", pos, "bytes")
