"""What can be done with the gallery's Triton kernels without a GPU: compile them, or run them in Triton's interpreter against the references.

    touch src/lib.rs && GALATEA_PTX_DIR=ptx cargo build -p galatea-gallery    # our PTX; give it an absolute path
    cargo run -p galatea-gallery > table.json
    python3 peers/without_gpu.py compile table.json [--ours ptx] [--all] [WORK..]
    TRITON_INTERPRET=1 python3 peers/without_gpu.py check table.json [WORK..]

`check` runs the kernels in Triton's interpreter on small sizes, and compares the tensors of both sides for all sizes.
`compile` compiles for sm_90, and prints a row a kernel: registers, bytes of spills and stack, bytes of shared memory, and machine instructions, of Triton's
kernel and of ours. It takes the configuration with blocks of 1024 elements, or the first one; with `--all`, every configuration. Both modes take all works,
or those whose name contains one of the words.
"""

import argparse
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
# As they stand in the names of our PTX files.
CODES = {"f16": 9, "bf16": 10, "f32": 11}
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


def resources(cubin):
    """Registers, bytes of spills and stack, bytes of shared memory, and machine instructions without the padding behind the last one."""
    run = lambda *words: subprocess.run([tool("cuobjdump"), *words, cubin], capture_output=True, text=True, check=True).stdout
    usage, sass = run("-res-usage"), run("-sass")
    number = lambda name: int(re.search(rf"{name}:(\d+)", usage)[1])
    instructions = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", sass, re.MULTILINE)
    while instructions and instructions[-1].split()[0] in ("NOP", "BRA"):
        instructions.pop()
    return number("REG"), number("STACK") + number("LOCAL"), number("SHARED"), len(instructions)


def of_triton(launch):
    kernel = compiled(launch)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        registers, spills, _, instructions = resources(file.name)
    # Triton's shared memory is dynamic.
    return registers, spills, kernel.metadata.shared, instructions


def of_ours(folder, launch, dtype):
    """The same of our PTX for the configuration of a launch, if there is such a file."""
    constants = "-".join(str(launch.options[name]) for name in ("BLOCK_SIZE", "ROWS", "COLUMNS") if name in launch.options)
    name = launch.kernel.__name__.removesuffix("_kernel")
    warps = f"-w{launch.options['num_warps']}"
    found = sorted(Path(folder).glob(f"{name}-{CODES[dtype]}-*{constants}{warps}-sm_*.ptx"))
    if not found:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        # The last one is of the newest target.
        subprocess.run([tool("ptxas"), "-arch=sm_90a", found[-1], "-o", file.name], check=True)
        return resources(file.name)


def first(work):
    """The defaults of what the kernels are tuned over behind their shapes."""
    return {name: values[0] for name, values in work.variants.items()}


def works(options):
    for line in Path(options.table).read_text().splitlines():
        row = json.loads(line)
        if not options.works or any(word in row["name"] for word in options.works):
            yield row


def compile_all(options):
    peers.DEVICE = "meta"
    head = f"{'registers':>9} {'spills':>6} {'shared':>6} {'SASS':>6}"
    print(f"{'kernel':<30} {'type':<5} {'configuration':<40} {head}" + (f" | {head}" if options.ours else ""))
    shown = lambda found: "{:>9} {:>6} {:>6} {:>6}".format(*found) if found else "there is no PTX"
    for row in works(options):
        for dtype in row["dtypes"]:
            work = peers.make(row["name"], dtype, tuple(row["sizes"][0]["sizes"]))
            configs = [{**first(work), **config} for config in work.shapes]
            if not options.all:
                configs = [config for config in configs if config.get("BLOCK_SIZE") == 1024][:1] or configs[:1]
            for config in configs:
                for launch in work.triton(config):
                    if not isinstance(launch, peers.Launch):
                        continue
                    text = ", ".join(f"{name}: {value}" for name, value in launch.options.items() if name != "LOAD")
                    line = f"{launch.kernel.__name__.removesuffix('_kernel'):<30} {dtype:<5} {text:<40} {shown(of_triton(launch))}"
                    print(line + (f" | {shown(of_ours(options.ours, launch, dtype))}" if options.ours else ""), flush=True)


def interpreted(compute):
    """A function of libdevice for the interpreter, which has none of them."""
    from triton.runtime.interpreter import TensorHandle

    return lambda x: triton.language.tensor(TensorHandle(compute(x.handle.data), x.handle.dtype), x.type)


def check_tensors(row, dtype, shape):
    """Raises unless both sides have the same tensors."""
    work = peers.make(row["name"], dtype, tuple(shape["sizes"]))
    described = lambda tensor: [str(tensor.dtype), tensor.numel()]
    theirs = {name: described(tensor) for name, tensor in (work.inputs | work.outputs).items()}
    types = peers.DTYPES | {"i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
    ours = {name: [str(types[own or dtype]), len] for name, own, len in shape["tensors"]}
    if ours != theirs:
        raise ValueError(f"our tensors are {ours}, Triton's are {theirs}")
    return work


def check(row, dtype, shape):
    """Runs the kernels with the first configuration, and compares all that they give."""
    work = check_tensors(row, dtype, shape)
    peers.clear_outputs(work)
    for launch in work.triton({**first(work), **work.shapes[0]}):
        launch.run()
    for name, out in work.outputs.items():
        peers.compare(work, name, out, "triton")


def check_all(options):
    libdevice.rint, libdevice.tanh = interpreted(numpy.rint), interpreted(numpy.tanh)
    failed = checked = 0
    for row in works(options):
        for dtype in row["dtypes"]:
            small = [("cpu", check, shape) for shape in row["test_sizes"] if 0 not in shape["sizes"]]
            for peers.DEVICE, test, shape in small + [("meta", check_tensors, shape) for shape in row["sizes"]]:
                try:
                    test(row, dtype, shape)
                    checked += 1
                except Exception as error:
                    failed += 1
                    print(f"{row['name']} {dtype} {shape['sizes']}: {type(error).__name__}: {error}", flush=True)
    print(f"{checked} passed, {failed} failed")
    return failed


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("compile", "check"))
    parser.add_argument("table", help="what `cargo run -p galatea-gallery` prints")
    parser.add_argument("works", nargs="*", help="parts of names of works")
    parser.add_argument("--ours", help="the folder of our PTX")
    parser.add_argument("--all", action="store_true", help="compile every configuration")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    OPTIONS = options()
    sys.exit(min({"compile": compile_all, "check": check_all}[OPTIONS.mode](OPTIONS) or 0, 1))
