"""What can be done with the gallery's Triton kernels without a GPU: compile them, or run them in Triton's interpreter against the references.

    cargo run -p galatea-gallery > table.json
    python3 peers/without_gpu.py compile table.json [WORK..]      # a row a kernel: registers, spills, shared memory and machine instructions
    TRITON_INTERPRET=1 python3 peers/without_gpu.py check table.json [WORK..]

`compile` compiles for sm_90 the configuration with blocks of 1024 elements, or `--all` configurations. The works named are those whose name contains one of
the words.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gallery  # noqa: F401, which names its works to `peers`
import numpy
import torch
import triton
from row import peers
from triton.language.extra import libdevice

TARGET = ("cuda", 90, 32)
TYPES = {
    torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64", torch.int8: "i8", torch.uint8: "u8",
    torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "i1",
}  # fmt: skip


def compiled(launch):
    """The machine code of a launch, with the facts about its arguments that a launch on a GPU would find."""
    values = dict(zip(launch.kernel.arg_names, launch.args)) | launch.options
    signature, constants, attributes = {}, {}, {}
    for at, parameter in enumerate(launch.kernel.params):
        value = values.pop(parameter.name, parameter.default)
        if parameter.is_constexpr or (isinstance(value, int) and value == 1):
            signature[parameter.name], constants[(at,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name], attributes[(at,)] = "*" + TYPES[value.dtype], [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[parameter.name] = "fp32"
        else:
            signature[parameter.name] = "i32" if -(1 << 31) <= value < 1 << 31 else "i64"
            if value % 16 == 0:
                attributes[(at,)] = [["tt.divisibility", 16]]
    source = triton.compiler.ASTSource(launch.kernel, signature, constants, attributes)
    return triton.compile(source, target=triton.backends.compiler.GPUTarget(*TARGET), options=values)


def tool(name):
    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name)


def resources(kernel):
    """Registers, bytes of spills and stack, bytes of shared memory, and machine instructions without the padding behind the last one."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        run = lambda *words: subprocess.run([tool("cuobjdump"), *words, file.name], capture_output=True, text=True, check=True).stdout
        usage, sass = run("-res-usage"), run("-sass")
    number = lambda name: int(re.search(rf"{name}:(\d+)", usage)[1])
    instructions = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", sass, re.MULTILINE)
    while instructions and instructions[-1].split()[0] in ("NOP", "BRA"):
        instructions.pop()
    return number("REG"), number("STACK") + number("LOCAL"), kernel.metadata.shared, len(instructions)


def first(work):
    """The defaults of what the kernels are tuned over behind their shapes."""
    return {name: values[0] for name, values in work.variants.items()}


def works(path, words):
    for line in Path(path).read_text().splitlines():
        row = json.loads(line)
        if not words or any(word in row["name"] for word in words):
            yield row


def compile_all(path, words):
    is_whole = "--all" in words
    peers.DEVICE = "meta"
    print(f"{'kernel':<34} {'type':<5} {'configuration':<44} {'registers':>9} {'spills':>6} {'shared':>6} {'SASS':>6}")
    for row in works(path, [word for word in words if word != "--all"]):
        for dtype in row["dtypes"]:
            work = peers.make(row["name"], dtype, tuple(row["sizes"][0]))
            configs = [{**first(work), **config} for config in work.shapes]
            if not is_whole:
                configs = [config for config in configs if config.get("BLOCK_SIZE") == 1024][:1] or configs[:1]
            for config in configs:
                for launch in (launch for launch in work.triton(config) if hasattr(launch, "kernel")):
                    shown = ", ".join(f"{name}: {value}" for name, value in launch.options.items() if name != "LOAD")
                    registers, spills, shared, instructions = resources(compiled(launch))
                    print(f"{launch.kernel.__name__:<34} {dtype:<5} {shown:<44} {registers:>9} {spills:>6} {shared:>6} {instructions:>6}", flush=True)


def interpreted(compute):
    """A function of libdevice for the interpreter, which has none of them."""
    from triton.runtime.interpreter import TensorHandle

    return lambda x: triton.language.tensor(TensorHandle(compute(x.handle.data), x.handle.dtype), x.type)


def check_all(path, words):
    peers.DEVICE = "cpu"
    libdevice.rint, libdevice.tanh = interpreted(numpy.rint), interpreted(numpy.tanh)
    failed = 0
    for row in works(path, words):
        for dtype in row["dtypes"]:
            for sizes in row["test_sizes"]:
                if 0 in sizes:
                    continue
                try:
                    work = peers.make(row["name"], dtype, tuple(sizes))
                    peers.clear_outputs(work)
                    for launch in work.triton({**first(work), **work.shapes[0]}):
                        launch.run()
                    for name, out in work.outputs.items():
                        peers.compare(work, name, out, "triton")
                except Exception as error:
                    failed += 1
                    print(f"{row['name']} {dtype} {sizes}: {type(error).__name__}: {error}", flush=True)
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    mode, path, *words = sys.argv[1:]
    sys.exit(min({"compile": compile_all, "check": check_all}[mode](path, words) or 0, 1))
