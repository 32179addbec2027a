#!/usr/bin/env python3
"""Runs the instruction suite on a GPU, and writes its answers to a file.

    cargo run -p kernel-sim --example suite -- FOLDER
    python3 kernel-sim/tests/suite/record.py FOLDER kernel-sim/tests/suite/h200.bin

Needs the driver only. The file begins with the digest of the kernels and inputs that the answers belong to.
"""

import ctypes
import pathlib
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def check(status, what):
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(status, ctypes.byref(text))
        sys.exit(f"{what}: {(text.value or b'?').decode()}")


def main(folder, answers):
    folder = pathlib.Path(folder)
    digest, *rows = (folder / "manifest.txt").read_text().splitlines()
    rows = [(name, *map(int, numbers)) for name, *numbers in map(str.split, rows)]
    inputs = (folder / "inputs.bin").read_bytes()
    size = sum(length for _, _, _, length, _ in rows)

    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    name = ctypes.create_string_buffer(100)
    check(cuda.cuDeviceGetName(name, 100, device), "cuDeviceGetName")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    check(cuda.cuModuleLoadData(ctypes.byref(module), (folder / "suite.ptx").read_bytes() + b"\0"), "cuModuleLoadData")

    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(source), ctypes.c_size_t(len(inputs))), "cuMemAlloc")
    check(cuda.cuMemAlloc_v2(ctypes.byref(target), ctypes.c_size_t(size)), "cuMemAlloc")
    check(cuda.cuMemcpyHtoD_v2(source, inputs, ctypes.c_size_t(len(inputs))), "cuMemcpyHtoD")
    check(cuda.cuMemsetD8_v2(target, ctypes.c_ubyte(0), ctypes.c_size_t(size)), "cuMemsetD8")

    for row, input_offset, answer_offset, _, blocks in rows:
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, row.encode()), row)
        values = [ctypes.c_uint64(source.value + input_offset), ctypes.c_uint64(target.value + answer_offset)]
        params = (ctypes.c_void_p * 2)(*[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values])
        check(cuda.cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, None, params, None), row)
        check(cuda.cuCtxSynchronize(), row)

    result = ctypes.create_string_buffer(size)
    check(cuda.cuMemcpyDtoH_v2(result, target, ctypes.c_size_t(size)), "cuMemcpyDtoH")
    pathlib.Path(answers).write_bytes(int(digest, 16).to_bytes(8, "little") + result.raw)
    print(f"{len(rows)} rows on one {name.value.decode()}: {size} bytes of answers, digest {digest}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
