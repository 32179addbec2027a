//! Test of every matrix instruction against results that were recorded on an H200, in `tests/tensor_core`.
//!
//! To record the file again, copy its four scripts into an empty folder on a machine with a Hopper GPU, and run:
//!
//! ```text
//! python3 gen.py && ptxas -arch=sm_90a kernels.ptx -o kernels.cubin && mkdir out && python3 run.py out && python3 record.py out
//! ```
//!
//! `record.py out all` writes every result (20 MB). The environment variable `GALATEA_TENSOR_CORE_RESULTS` selects such a file for the
//! test.

use crate::instructions::harness::Harness;
use crate::instructions::matrix::fragment;
use crate::lanes::WARP;
use crate::numerics::matrix::{Kind, Shape};
use crate::ptx::Type;

/// The recorded runs of one instruction.
struct Case {
    instruction: String,
    threads: usize,
    /// The numbers of registers of A, B and C.
    registers: [usize; 3],
    /// For each warp or warpgroup: the words of A, B, C and D, in the order of the registers.
    runs: Vec<[Vec<u64>; 4]>,
}

fn read(data: &[u8]) -> Vec<Case> {
    let end = data.windows(2).position(|pair| pair == b"\n\n").expect("a header");
    let header = std::str::from_utf8(&data[..end]).expect("text");
    let mut body = &data[end + 2..];
    let mut words = |count: usize, bytes: usize| -> Vec<u64> {
        let (words, rest) = body.split_at(count * bytes);
        body = rest;
        words.chunks(bytes).map(|chunk| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))).collect()
    };
    let cases = header.lines().map(|line| {
        let mut parts = line.split(' ');
        let instruction = parts.next().expect("an instruction").to_owned();
        let [threads, runs, a, b, c, bytes] = std::array::from_fn(|_| parts.next().and_then(|part| part.parse().ok()).expect("a number"));
        let run = |_| [words(a * threads, bytes), words(b * WARP, bytes), words(c * threads, bytes), words(c * threads, bytes)];
        Case { instruction, threads, registers: [a, b, c], runs: (0..runs).map(run).collect() }
    });
    let cases = cases.collect();
    assert!(body.is_empty(), "{} bytes are left", body.len());
    cases
}

/// The words of D that the simulated `mma` computes.
fn by_instruction(case: &Case, [a, b, c, _]: &[Vec<u64>; 4]) -> Vec<u64> {
    let mut harness = Harness::new();
    let ty = if case.instruction.contains("f64") { Type::B64 } else { Type::B32 };
    let vector = |letter: char, count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("%{letter}{number}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    for (letter, words) in [('a', a), ('b', b), ('c', c)] {
        for (number, row) in words.chunks(WARP).enumerate() {
            harness.define(&format!("%{letter}{number}"), ty, |lane| row[lane]);
        }
    }
    let [of_a, of_b, of_c] = case.registers;
    let d: Vec<String> = (0..of_c).map(|number| format!("%d{number}")).collect();
    d.iter().for_each(|name| {
        harness.declare(name, ty);
    });
    let operands = [vector('d', of_c), vector('a', of_a), vector('b', of_b), vector('c', of_c)].join(", ");
    harness.run(&format!("{} {operands};", case.instruction)).unwrap_or_else(|failure| panic!("{}: {failure:?}", case.instruction));
    d.iter().flat_map(|name| harness.value(name)).collect()
}

/// The words of D for `wgmma`. Only its arithmetic is tested here: a warpgroup of four warps, 64 rows.
fn by_arithmetic(case: &Case, [a, b, c, _]: &[Vec<u64>; 4]) -> Vec<u64> {
    let words: Vec<&str> = case.instruction.split('.').collect();
    let saturate = words.contains(&"satfinite");
    let types: Vec<Type> = words[4..].iter().filter_map(|word| Type::parse(word)).collect();
    let [result, of_a, of_b] = types[..] else { panic!("{}", case.instruction) };
    let kind = if of_a == Type::B1 { Some(Kind::Bits { xor: false }) } else { Kind::wgmma(of_a, of_b, result, saturate) };
    let kind = kind.expect("an instruction that exists");
    let per_factor = (32 / of_a.bits()) as usize;
    let per_result = (32 / result.bits()) as usize;
    let shape = Shape { m: 64, n: 8, k: case.registers[1] * 4 * per_factor };
    let element = |word: u64, element: usize, ty: Type| word >> (element as u32 * ty.bits()) & u64::MAX >> (64 - ty.bits());
    let mut matrices = [vec![0; shape.m * shape.k], vec![0; shape.n * shape.k], vec![0; shape.m * shape.n]];
    let row_of = |thread: usize, row: usize| thread / WARP * 16 + row;
    for (index, &word) in a.iter().enumerate() {
        let (register, thread) = (index / case.threads, index % case.threads);
        for part in 0..per_factor {
            let (row, k) = fragment::a16(thread % WARP, register, part, per_factor);
            matrices[0][row_of(thread, row) * shape.k + k] = element(word, part, of_a);
        }
    }
    for (index, &word) in b.iter().enumerate() {
        for part in 0..per_factor {
            let (k, column) = fragment::b(index % WARP, index / WARP, part, per_factor);
            matrices[1][column * shape.k + k] = element(word, part, of_b);
        }
    }
    let of_d = |index: usize, part: usize| {
        let (register, thread) = (index / case.threads, index % case.threads);
        let (row, column) = fragment::accumulator(thread % WARP, register * per_result + part);
        row_of(thread, row) * shape.n + column
    };
    for (index, &word) in c.iter().enumerate() {
        (0..per_result).for_each(|part| matrices[2][of_d(index, part)] = element(word, part, result));
    }
    let [a, b, mut d] = matrices;
    kind.multiply(shape, &a, &b, &mut d);
    (0..c.len()).map(|index| (0..per_result).fold(0, |word, part| word | d[of_d(index, part)] << (part as u32 * result.bits()))).collect()
}

#[test]
fn as_an_h200_does() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tensor_core/results.bin");
    let path = std::env::var("GALATEA_TENSOR_CORE_RESULTS").unwrap_or_else(|_| own.to_owned());
    let cases = read(&std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    let mut elements = 0;
    let mut wrong = Vec::new();
    for case in &cases {
        for run in &case.runs {
            let results = if case.instruction.starts_with("wgmma") { by_arithmetic(case, run) } else { by_instruction(case, run) };
            elements += results.len();
            let different = results.iter().zip(&run[3]).filter(|(got, expected)| got != expected).count();
            if different > 0 {
                wrong.push(format!("{}: {different} of {}", case.instruction, results.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 80 && elements > 15_000, "{} instructions, {elements} registers", cases.len());
}
