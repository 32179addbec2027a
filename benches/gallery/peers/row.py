"""A work of the gallery on Triton's side: a `Work` of `../../peers.py` without torch's versions, and what its kernels are tuned over."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import peers
import torch
import triton
from peers import LOADS, Launch, empty, normal, reference_of

# The configurations of our flat kernels.
FLAT = [{"BLOCK_SIZE": block, "num_warps": warps} for block in (512, 1024, 2048, 4096) for warps in (4, 8) if block >= 128 * warps]


@dataclass
class Zeros:
    """Fills a tensor with zeros before a launch that adds to it, by a memset, as our side does."""

    tensor: torch.Tensor

    def run(self):
        if self.tensor.is_cuda:
            peers.zero(self.tensor)
        else:
            self.tensor.zero_()

    def compile(self):
        pass


def work(inputs, outputs, references, triton, configs, bytes=None, variants=None, **more):
    """The work with these tensors: `references` compute the outputs in f64, `triton` gives the launches of a configuration.

    `bytes` is what must be read and written, each byte once: all tensors, if it is not given. An output that is an input, too, is changed in place.
    """
    in_place = {name: inputs.pop(name) for name in list(inputs) if name in outputs}
    if bytes is None:
        bytes = sum(tensor.numel() * tensor.element_size() for tensor in [*inputs.values(), *outputs.values(), *in_place.values()])
    return peers.Work(
        bytes=bytes,
        inputs=inputs,
        outputs=outputs,
        references={name: reference_of(compute) for name, compute in references.items()},
        torch=None,
        compiled=None,
        triton=triton,
        shapes=configs,
        variants={**(variants or {}), "LOAD": LOADS},
        initial={name: tensor.clone() for name, tensor in in_place.items()},
        **more,
    )


# How many iterations ahead the loads of a loop run, as `tl.range` takes it. Triton's default is none in loops without a product of matrices.
STAGES = {"STAGES": (None, 2, 3, 4, 5)}
# Those of our kernels with tiles of rows and columns.
TILES = [{"ROWS": rows, "COLUMNS": columns, "num_warps": warps} for rows in (16, 32) for columns in (32, 64, 128) for warps in (4, 8)]


def flat(kernel, n, *args):
    """The launches of a kernel with a flat index of `n` elements."""
    return lambda config: [Launch(kernel, (triton.cdiv(n, config["BLOCK_SIZE"]),), args, config)]


def rows_of(kernel, rows, *args):
    """The launches of a kernel with a program a row."""
    return lambda config: [Launch(kernel, (rows,), args, config)]


def tiles_of(kernel, outer, columns, *args):
    """The launches of a kernel with a program for `COLUMNS` columns of an outer index."""
    return lambda config: [Launch(kernel, (triton.cdiv(columns, config["COLUMNS"]), outer), args, config)]


def uneven_lengths(count, longest):
    """Lengths of sequences or tensors, as on our side."""
    return [1 + i * 7919 % longest for i in range(count)]


def indices(limit, *shape):
    """Random whole numbers below a limit."""
    return torch.randint(0, limit, shape, device=peers.DEVICE)


def blocks_of(columns, blocks=(1024, 2048, 4096, 8192), warps=(4, 8)):
    """The configurations of our kernels that hold a row in one block: the least block that does, with several numbers of warps."""
    least = next((block for block in blocks if block >= columns), None)
    return [{"BLOCK_SIZE": least, "num_warps": count} for count in warps] if least else []
