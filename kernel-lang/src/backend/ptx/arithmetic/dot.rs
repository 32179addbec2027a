//! Matrix products, by `mma.sync.m16n8k*` (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
//!
//! [`Fragments`](crate::layout::Fragments) numbers the registers of a thread. An instruction takes four registers of `a` and two of `b`, each with the elements of 32
//! bits along `k`, or one of 64 bits. A run of neighbours has the registers of one instruction or of two. Of `a`, it is followed by the run that is 8 rows down. Then
//! registers are numbered along `k`, along rows or columns, and along the batch.

use crate::dtype::Dtype;
use crate::ir::{Precision, Value, product};
use crate::layout::Multiplier;
use crate::target::Target;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// The PTX ISA version with matrix instructions of 8-bit floats.
const FLOAT8_VERSION: (u32, u32) = (8, 4);

/// The matrix instruction of a `dot`.
struct Instruction {
    /// The terms of a sum that one instruction adds.
    depth: u32,
    factors: [Dtype; 2],
    sum: Dtype,
}

/// An operand in registers of the instruction.
pub(super) struct Operand {
    pub(super) registers: Vec<Reg>,
    /// For three products of `tf32`: what the registers leave of each element.
    rest: Vec<Reg>,
}

impl Emitter<'_> {
    /// `acc + a * b`.
    pub(crate) fn dot(&mut self, [a, b, acc]: [Value; 3], precision: Precision, result: Value) {
        let factors = [a, b].map(|x| self.func.ty(x).dtype());
        let multiplier = product::multiplier(factors[0], precision);
        if multiplier == Multiplier::Fma {
            return self.outer_products([a, b, acc], result);
        }
        let [_, _, depth] = multiplier.least();
        let instruction = Instruction { depth, factors, sum: self.func.ty(acc).dtype() };
        let k = self.func.ty(a).extents().last().map_or(0, |k| *k as u32);
        let steps = (k / depth) as usize;
        // Registers of a run.
        let run = (8 * multiplier.run(k) / depth) as usize;
        let (left, right) = (self.operand(a, precision), self.operand(b, precision));
        let (rows, columns) = (left.registers.len() / (4 * steps), right.registers.len() / (2 * steps));
        // Both numbers count each matrix of the batch.
        let batch = rows * columns / (self.lane_count(acc) / 4);
        let sums = self.lanes(acc);
        let zero = (precision == Precision::Tf32x3).then(|| {
            let zero = self.reg(Class::F32);
            asm!(self, "mov.f32 {zero}, 0f00000000");
            zero
        });
        let mut results = Vec::with_capacity(self.lane_count(acc));
        let (rows, columns) = (rows / batch, columns / batch);
        for number in 0..self.lane_count(acc) / 4 {
            let (matrix, row, column) = (number / (rows * columns), number / columns % rows, number % columns);
            let of_row = |registers: &[Reg], step: usize| -> [Reg; 4] {
                let (begin, at) = (2 * run * ((matrix * rows + row) * steps / (run / 2) + step / (run / 2)), 2 * step % run);
                [at, at + run, at + 1, at + run + 1].map(|at| registers[begin + at])
            };
            let of_column = |registers: &[Reg], step: usize| -> [Reg; 2] {
                std::array::from_fn(|at| registers[2 * ((matrix * columns + column) * steps + step) + at])
            };
            // Products of what is left of an element are added up by themselves: see [`Emitter::plus_finite`].
            let small = zero.map(|zero| {
                (0..steps).fold([zero; 4], |sum, step| {
                    let sum = self.multiply(&instruction, of_row(&left.registers, step), of_column(&right.rest, step), sum);
                    self.multiply(&instruction, of_row(&left.rest, step), of_column(&right.registers, step), sum)
                })
            });
            let mut sum: [Reg; 4] = std::array::from_fn(|register| sums.get(4 * number + register));
            for step in 0..steps {
                sum = self.multiply(&instruction, of_row(&left.registers, step), of_column(&right.registers, step), sum);
            }
            if let Some(small) = small {
                sum = std::array::from_fn(|at| self.plus_finite(sum[at], small[at]));
            }
            results.extend(sum);
        }
        self.define(result, Lanes::Each(results));
    }

    /// The registers of an operand.
    pub(super) fn operand(&mut self, x: Value, precision: Precision) -> Operand {
        let (dtype, lanes) = (self.func.ty(x).dtype(), self.lanes(x));
        let elements: Vec<Reg> = (0..self.lane_count(x)).map(|register| lanes.get(register)).collect();
        match dtype {
            Dtype::F64 => Operand { registers: elements, rest: Vec::new() },
            Dtype::F32 => {
                let registers: Vec<Reg> = elements.iter().map(|element| self.round_to_tf32(*element)).collect();
                let rest = match precision {
                    Precision::Tf32x3 => elements.iter().zip(&registers).map(|(element, big)| self.rest_of_tf32(*element, *big)).collect(),
                    _ => Vec::new(),
                };
                Operand { registers, rest }
            }
            _ => {
                let words = elements.chunks(4 / dtype.bytes()).map(|part| match self.unpacked.get(&part[0]) {
                    // A word that was loaded holds them as they are.
                    Some((word, elements)) if elements == part => *word,
                    _ => self.words_of(dtype, part)[0],
                });
                Operand { registers: words.collect(), rest: Vec::new() }
            }
        }
    }

    /// The nearest `tf32`, ties away from zero.
    fn round_to_tf32(&mut self, x: Reg) -> Reg {
        let d = self.reg(Class::B32);
        asm!(self, "cvt.rna.tf32.f32 {d}, {x}");
        d
    }

    /// The `tf32` that is nearest to what `big` leaves of an element.
    fn rest_of_tf32(&mut self, x: Reg, big: Reg) -> Reg {
        let [single, rest] = [0; 2].map(|_| self.reg(Class::F32));
        asm!(self, "mov.b32 {single}, {big}");
        asm!(self, "sub.rn.f32 {rest}, {x}, {single}");
        self.round_to_tf32(rest)
    }

    /// `sum + small`, or `sum` where `small` is infinite or NaN. The rest of an infinite element is NaN, and so are all products of it; the products of the elements
    /// themselves are right.
    fn plus_finite(&mut self, sum: Reg, small: Reg) -> Reg {
        let [magnitude, term, total] = [0; 3].map(|_| self.reg(Class::F32));
        let is_finite = self.reg(Class::Pred);
        asm!(self, "abs.f32 {magnitude}, {small}");
        asm!(self, "setp.lt.f32 {is_finite}, {magnitude}, 0f7F800000");
        asm!(self, "selp.f32 {term}, {small}, 0f00000000, {is_finite}");
        asm!(self, "add.rn.f32 {total}, {sum}, {term}");
        total
    }

    /// One instruction: the sums of a fragment, in the registers of their elements.
    fn multiply(&mut self, instruction: &Instruction, a: [Reg; 4], b: [Reg; 2], sums: [Reg; 4]) -> [Reg; 4] {
        let Instruction { depth, factors, sum } = *instruction;
        if sum == Dtype::F64 && !self.target.ask(Target::has_f64_products_of_16_rows) {
            // The upper rows, then the lower ones; the first half of the terms, then the second.
            let halves = [[a[0], a[2]], [a[1], a[3]]].into_iter().zip(sums.chunks(2));
            let results = halves.flat_map(|(a, sums)| {
                a.into_iter().zip(b).fold(sums.to_vec(), |sums, (a, b)| {
                    let next = [0; 2].map(|_| self.reg(Class::F64));
                    asm!(self, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {}, {{{a}}}, {{{b}}}, {}", list(&next), list(&sums));
                    next.to_vec()
                })
            });
            let results: Vec<Reg> = results.collect();
            return std::array::from_fn(|at| results[at]);
        }
        if factors[0].is_float8() {
            self.ptx_version = self.ptx_version.max(FLOAT8_VERSION);
        }
        let (a, b) = (list(&a), list(&b));
        let names = factors.map(|factor| if factor == Dtype::F32 { "tf32" } else { name(factor) });
        if sum == Dtype::F16 {
            let words: Vec<Reg> = sums.chunks(2).map(|pair| self.words_of(sum, pair)[0]).collect();
            let next = [0; 2].map(|_| self.reg(Class::B32));
            asm!(
                self,
                "mma.sync.aligned.m16n8k{depth}.row.col.f16.{}.{}.f16 {}, {a}, {b}, {}",
                names[0],
                names[1],
                list(&next),
                list(&words)
            );
            let elements: Vec<Reg> = next.iter().flat_map(|word| self.elements_of(sum, &[*word], 2)).collect();
            return std::array::from_fn(|at| elements[at]);
        }
        let (next, ty) = ([0; 4].map(|_| self.reg(Class::of(sum))), name(sum));
        asm!(self, "mma.sync.aligned.m16n8k{depth}.row.col.{ty}.{}.{}.{ty} {}, {a}, {b}, {}", names[0], names[1], list(&next), list(&sums));
        next
    }
}

/// The name of an element type in a matrix instruction.
fn name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::I8 => "s8",
        Dtype::U8 => "u8",
        Dtype::I32 => "s32",
        Dtype::F8E4M3 => "e4m3",
        Dtype::F8E5M2 => "e5m2",
        _ => dtype.name(),
    }
}

/// Registers as a vector operand.
pub(super) fn list(registers: &[Reg]) -> String {
    let names: Vec<String> = registers.iter().map(Reg::to_string).collect();
    format!("{{{}}}", names.join(", "))
}
