#!/usr/bin/env python3
"""Writes torch.txt: tensors, and the texts that PyTorch prints for them.

    python3 kernel-runtime/tests/display/record.py

A case is a line with a name, a dtype, a shape and elements, and the text after it. The elements are repeated until the shape is full; with `..` at the end
they are an arithmetic progression. PyTorch makes the whole text. Only the suffix of the dtype is replaced before PyTorch arranges the suffixes in lines.
"""

import math
import pathlib

import torch
from torch import _tensor_str

DTYPES = {
    "bool": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}

MIXED = "0.1 -2.5 31.25 4.0625 -0.75 100.5 7.125 -63.0 0.5 12.34375 -9.875"
RANDOM = "0.4963 0.7682 0.0885 0.132 0.3074 0.6341 0.4901 0.8964 0.4556 0.6323 0.3489 0.4017 0.0223"

CASES = [
    ("fixed", "f32", [3], "0.1234 1 2.5"),
    ("fixed with signs", "f32", [4], "0.1234 -1 2.5 -30"),
    ("ties are rounded to even", "f32", [4], "0.03125 0.09375 0.15625 0.21875"),
    ("digits are rounded up", "f32", [3], "0.99996 9.99996 1.5"),
    ("integers", "f32", [4], "1 2 -3 400"),
    ("zeros", "f32", [3], "0"),
    ("negative zero", "f32", [3], "0 -0 1"),
    ("negative zero among fractions", "f32", [3], "0 -0 1.5"),
    ("only negative zero", "f64", [2], "-0"),
    ("not finite", "f32", [3], "nan inf -inf"),
    ("not finite among integers", "f32", [4], "nan inf -inf 1"),
    ("not finite among fractions", "f32", [4], "nan inf -inf 0.5"),
    ("not finite in scientific notation", "f32", [4], "nan inf -inf 1e10"),
    ("not finite among zeros", "f32", [4], "0 nan 0 -inf"),
    ("large range", "f32", [3], "0.001 1.001 5"),
    ("range of 1000", "f32", [3], "0.5 500 7"),
    ("range above 1000", "f32", [3], "0.5 500.5 7"),
    ("integers of a large range", "f32", [4], "1 2 1001 0"),
    ("integers of a range of 1000", "f32", [3], "1 2 1000"),
    ("largest without scientific notation", "f32", [2], "1e8 123456"),
    ("just above it", "f32", [2], "100000008 123456"),
    ("small", "f32", [2], "0.00009 0.0001"),
    ("0.0001 as f32 is below 1e-4", "f32", [1], "0.0001"),
    ("0.0001 as f64 is not", "f64", [2], "0.0001 0.0002"),
    ("tie in scientific notation", "f64", [3], "100005 1.00015e9 100025e3"),
    ("exponents of three digits", "f64", [3], "1e-200 -1e200 3"),
    ("subnormal", "f32", [2], "1e-45 1e-40"),
    ("extremes of f64", "f64", [3], "1.7976931348623157e308 5e-324 -1"),
    ("f64", "f64", [2, 2], "3.141592653589793 2.718281828459045 -1 0"),
    ("f16", "f16", [4], "0.1 65504 0.00006 1"),
    ("f16 fractions", "f16", [4], "0.1 0.2 0.3 -1"),
    ("bf16", "bf16", [4], "0.1 0.2 0.3 -1"),
    ("bf16 large", "bf16", [3], "3e38 1e-38 1"),
    ("bf16 integers", "bf16", [2, 3], "1 2 3 4 5 256"),
    ("f8e4m3", "f8e4m3", [5], "0.125 448 -1.75 nan 0.001953125"),
    ("f8e4m3 fractions", "f8e4m3", [2, 2], "0.125 -1.75 nan 2"),
    ("f8e5m2", "f8e5m2", [5], "0.125 57344 -1.75 nan inf"),
    ("f8e5m2 integers", "f8e5m2", [3], "1 -96 inf"),
    ("bool", "bool", [3], "1 0 1"),
    ("bool matrix", "bool", [2, 3], "1 0 1 0"),
    ("i8", "i8", [3], "-128 0 127"),
    ("i16", "i16", [3], "-32768 0 5"),
    ("i32", "i32", [2, 3], "1 -20 300 4 5 6"),
    ("i64", "i64", [3], "-9223372036854775808 9223372036854775807 0"),
    ("u8", "u8", [3], "255 1 20"),
    ("u16", "u16", [2], "65535 3"),
    ("u32", "u32", [2], "4294967295 3"),
    ("u64", "u64", [2], "18446744073709551615 3"),
    ("scalar", "f32", [], "3"),
    ("scalar fraction", "f32", [], "-3.14159"),
    ("scalar zero", "f32", [], "0"),
    ("scalar nan", "f64", [], "nan"),
    ("scalar small", "f32", [], "1e-7"),
    ("scalar integer", "i64", [], "-7"),
    ("scalar bool", "bool", [], "1"),
    ("scalar bf16", "bf16", [], "0.1"),
    ("empty", "f32", [0], "0"),
    ("empty of two axes", "f32", [2, 0], "0"),
    ("empty of three axes", "i64", [0, 3, 1], "0"),
    ("empty integers", "i64", [0], "0"),
    ("empty bool", "bool", [0], "0"),
    ("empty bf16", "bf16", [0, 2], "0"),
    ("matrix", "f32", [3, 4], MIXED),
    ("matrix of one element", "f32", [1, 1], "0.5"),
    ("column", "f32", [5, 1], MIXED),
    ("three axes", "f32", [2, 3, 2], MIXED),
    ("three axes of one", "i64", [1, 1, 1], "7"),
    ("four axes", "i32", [2, 2, 2, 3], "0 1 .."),
    ("eight axes", "i64", [2, 1, 2, 1, 1, 1, 2, 2], "0 1 .."),
    ("vector that wraps", "f32", [40], RANDOM),
    ("integers that wrap", "i64", [100], "0 1 .."),
    ("rows that wrap", "f32", [2, 20], MIXED),
    ("rows of three axes that wrap", "f32", [2, 2, 17], RANDOM),
    ("wide integers that wrap", "i64", [6], "9223372036854775807"),
    ("bool that wraps", "bool", [30], "1 0 0"),
    ("zeros that wrap", "f32", [50], "0"),
    ("suffix on the last line", "f64", [8], "1234.5"),
    ("suffix on a line of its own", "f64", [6], "12345.5"),
    ("suffix that just fits", "i16", [10], "1000"),
    ("suffix that is one character too long", "bf16", [10], "256"),
    ("suffix of an axis that wraps", "i16", [3, 12], "10000 1000"),
    ("1000 elements", "i64", [1000], "0 1 .."),
    ("1001 elements", "i64", [1001], "0 1 .."),
    ("1001 floats", "f32", [1001], "0 0.25 .."),
    ("long vector in scientific notation", "f32", [5000], "1e-7 3.0001 .."),
    ("long vector of bool", "bool", [2000], "1 0 0"),
    ("long vector of bf16", "bf16", [1500], RANDOM),
    ("a large element that is not shown", "f32", [7, 1000], "1.5 2.5 3.5 4.5 1e9 5.5 6.5 7.5 8.5 9.5"),
    ("large matrix", "f32", [100, 100], "-500 0.5 .."),
    ("large matrix with few rows", "i32", [4, 500], "0 1 .."),
    ("large matrix with few columns", "f32", [500, 6], RANDOM),
    ("large matrix with seven columns", "f32", [500, 7], RANDOM),
    ("large, of three axes", "f32", [10, 20, 30], "0 0.125 .."),
    ("large, of four axes", "f16", [7, 1, 8, 20], "1.5 2 .."),
    ("large, of five axes", "i64", [7, 2, 1, 2, 40], "0 1 .."),
    ("large, with a long axis inside", "i64", [2, 3000], "0 1 .."),
    ("large u64", "u64", [40, 40], "0 1 .."),
    ("large f8e5m2", "f8e5m2", [2, 800], "0.25 1 -2"),
    ("large i64 with wide elements", "i64", [1001], "1000000000000000 1 .."),
]


def suffix(text):
    """The suffix with the dtype's name in Galatea."""
    names = {f"dtype={dtype}": f"dtype={name}" for name, dtype in DTYPES.items()}
    return names.get(text, text)


def elements(dtype, count, text):
    number = float if DTYPES[dtype].is_floating_point else int
    if text.endswith(" .."):
        first, second = map(number, text.split()[:2])
        return [first + (second - first) * i for i in range(count)]
    numbers = list(map(number, text.split()))
    return [numbers[i % len(numbers)] for i in range(count)]


def main():
    arrange = _tensor_str._add_suffixes
    _tensor_str._add_suffixes = lambda text, suffixes, *rest, **named: arrange(text, list(map(suffix, suffixes)), *rest, **named)
    lines = [f"# Written by record.py with PyTorch {torch.__version__.split('+')[0]}.\n"]
    for name, dtype, shape, text in CASES:
        tensor = torch.tensor(elements(dtype, math.prod(shape), text), dtype=DTYPES[dtype]).reshape(shape)
        lines.append(f"\n## {name} | {dtype} | {shape} | {text}\n{tensor!r}\n")
    pathlib.Path(__file__).with_name("torch.txt").write_text("".join(lines))


main()
