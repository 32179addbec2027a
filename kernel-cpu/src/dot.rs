//! Matrix products.

use std::ops::{Add, Mul};

use crate::code::{Instr, Slot};
use crate::execute::Machine;
use crate::translate::Translator;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Precision, Value};
use kernel_lang::scalar::lanes::{self, Lanes};

/// How products are added to sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sums {
    /// `f32`, of products that are exact.
    F32,
    /// `f32`, with one rounding for each product and its addition.
    FusedF32,
    /// `f64`, with one rounding for each product and its addition.
    FusedF64,
    /// `i32`, which wraps.
    I32,
}

impl Sums {
    fn of(factor: Dtype, precision: Precision) -> Sums {
        match factor {
            Dtype::I8 | Dtype::U8 => Sums::I32,
            Dtype::F64 => Sums::FusedF64,
            // Three products of `tf32` give what one of `f32` gives, to some bits; this has all of them.
            Dtype::F32 if precision != Precision::Tf32 => Sums::FusedF32,
            _ => Sums::F32,
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Sums::F32 | Sums::FusedF32 => Dtype::F32,
            Sums::FusedF64 => Dtype::F64,
            Sums::I32 => Dtype::I32,
        }
    }
}

impl Translator<'_> {
    pub(super) fn dot(&mut self, [a, b, acc]: [Value; 3], precision: Precision, result: Value) {
        let func = self.func;
        let (left, right) = (func.ty(a).extents(), func.ty(b).extents());
        let sums = Sums::of(func.ty(a).dtype(), precision);
        let [a, b] = [a, b].map(|x| {
            let (ty, from) = (func.ty(x), self.full(x));
            let wide = self.mapped(lanes::cast(ty.dtype(), sums.dtype()), from, [ty.dtype(), sums.dtype()], ty.numel());
            if precision == Precision::Tf32 { self.mapped(lanes::tf32(), wide, [Dtype::F32; 2], ty.numel()) } else { wide }
        });
        let (ty, from) = (func.ty(result), self.full(acc));
        let (own, numel) = (ty.dtype(), ty.numel());
        let [m, k] = left[left.len() - 2..] else { unreachable!("a verified `dot` multiplies matrices") };
        let extents = [left[..left.len() - 2].iter().product(), m, right[right.len() - 1], k];
        if own == sums.dtype() {
            let to = self.allocate_for(result);
            self.instrs.push(Instr::Copy { to, from, bytes: numel * own.bytes() });
            self.instrs.push(Instr::Dot { to, a, b, extents, sums });
        } else {
            let wide = self.mapped(lanes::cast(own, sums.dtype()), from, [own, sums.dtype()], numel);
            self.instrs.push(Instr::Dot { to: wide, a, b, extents, sums });
            let to = self.allocate_for(result);
            self.instrs.push(map(lanes::cast(sums.dtype(), own), wide, to, [sums.dtype(), own], numel));
        }
    }

    /// A new tile of a function of each element.
    fn mapped(&mut self, lanes: Lanes, from: Slot, dtypes: [Dtype; 2], count: usize) -> Slot {
        let result = self.new_tile(count * dtypes[1].bytes());
        self.instrs.push(map(lanes, from, result, dtypes, count));
        result
    }
}

fn map(lanes: Lanes, from: Slot, result: Slot, [old, new]: [Dtype; 2], count: usize) -> Instr {
    let strides = [new, old, old, old].map(|dtype| dtype.bytes() as u32);
    Instr::Lanes { lanes, count, result, operands: [from; 3], strides, chunked: false }
}

impl Machine<'_> {
    /// Adds the products of matrices `[m, k]` and `[k, n]` to the sums at `to`, in the order of `k`; as many products as `batch` says.
    ///
    /// # Safety
    /// The slots hold tiles of these extents, `[batch, m, n, k]`, whose elements have the type of the sums.
    pub(super) unsafe fn dot(&self, to: Slot, a: Slot, b: Slot, [batch, m, n, k]: [usize; 4], sums: Sums) {
        let (result, operands) = (self.at(to), [self.at(a).cast_const(), self.at(b).cast_const()]);
        let extents = [batch, m, n, k];
        // SAFETY: the caller's promise, for each type.
        unsafe {
            match sums {
                Sums::F32 => products(result, operands, extents, multiply_add::<f32>),
                Sums::FusedF32 => products(result, operands, extents, f32::mul_add),
                Sums::FusedF64 => products(result, operands, extents, f64::mul_add),
                Sums::I32 => products(result, operands, extents, |a: i32, b, sum| sum.wrapping_add(a.wrapping_mul(b))),
            }
        }
    }
}

fn multiply_add<T: Mul<Output = T> + Add<Output = T>>(a: T, b: T, sum: T) -> T {
    a * b + sum
}

/// Runs [`products_in_order`], on machines with vector units of x86-64-v3 compiled for these.
///
/// # Safety
/// As [`Machine::dot`], for elements of this type.
unsafe fn products<T: Copy>(to: *mut u8, operands: [*const u8; 2], extents: [usize; 4], add: impl Fn(T, T, T) -> T + Copy) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        /// # Safety
        /// As [`products`], on a machine that has these features.
        #[target_feature(enable = "avx2,fma")]
        unsafe fn products_v3<T: Copy>(to: *mut u8, operands: [*const u8; 2], extents: [usize; 4], add: impl Fn(T, T, T) -> T + Copy) {
            // SAFETY: the caller's promise.
            unsafe { products_in_order(to, operands, extents, add) }
        }
        // SAFETY: the caller's promise, and the machine has the features.
        return unsafe { products_v3(to, operands, extents, add) };
    }
    // SAFETY: the caller's promise.
    unsafe { products_in_order(to, operands, extents, add) }
}

/// # Safety
/// As [`Machine::dot`], for elements of this type.
#[inline(always)]
unsafe fn products_in_order<T: Copy>(to: *mut u8, [a, b]: [*const u8; 2], [batch, m, n, k]: [usize; 4], add: impl Fn(T, T, T) -> T + Copy) {
    let [a, b] = [(a, m * k), (b, k * n)].map(|(tile, count)| {
        // SAFETY: the tiles have these extents, and no other instruction runs.
        unsafe { std::slice::from_raw_parts(tile.cast::<T>(), batch * count) }
    });
    // SAFETY: as above, and the result has memory of its own.
    let sums = unsafe { std::slice::from_raw_parts_mut(to.cast::<T>(), batch * m * n) };
    for (index, (sums, a)) in sums.chunks_exact_mut(n).zip(a.chunks_exact(k)).enumerate() {
        let b = &b[index / m * (k * n)..][..k * n];
        for (a, b) in a.iter().zip(b.chunks_exact(n)) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = add(*a, *b, *sum);
            }
        }
    }
}
