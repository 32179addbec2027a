//! Data-dependent ops of the CPU executor: `gather`, `histogram` and `sort`, and the exchange `butterfly`.

use crate::code::{Instr, Slot, Walk};
use crate::execute::Machine;
use crate::memory;
use crate::translate::Translator;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::Value;

/// A data-dependent op and its sizes.
#[derive(Clone, Debug)]
pub(super) enum Lookup {
    /// Along the axis between `outer` and `inner`: `count` elements at the `i64` indices, out of `extent`.
    Gather { index: Slot, width: usize, outer: usize, extent: usize, count: usize, inner: usize },
    /// For each bin, the number of the `count` integers that are equal to its index.
    Histogram { mask: Option<Slot>, dtype: Dtype, count: usize, bins: usize },
    /// Sorts each of `rows` runs of `extent` elements, and keeps the first `count` of each.
    Sort { dtype: Dtype, rows: usize, extent: usize, count: usize, descending: bool },
}

impl Translator<'_> {
    pub(super) fn gather(&mut self, src: Value, index: Value, axis: usize, result: Value) {
        let (from, extents) = (self.func.ty(src).extents(), self.func.ty(index).extents());
        let lookup = Lookup::Gather {
            index: self.full(index),
            width: self.func.ty(src).dtype().bytes(),
            outer: extents[..axis].iter().product(),
            extent: from[axis],
            count: extents[axis],
            inner: extents[axis + 1..].iter().product(),
        };
        self.lookup(src, lookup, result);
    }

    pub(super) fn histogram(&mut self, x: Value, mask: Option<Value>, result: Value) {
        let mask = mask.map(|mask| self.full(mask));
        let ty = self.func.ty(x);
        let lookup = Lookup::Histogram { mask, dtype: ty.dtype(), count: ty.numel(), bins: self.func.ty(result).numel() };
        self.lookup(x, lookup, result);
    }

    pub(super) fn sort(&mut self, x: Value, descending: bool, result: Value) {
        let ty = self.func.ty(x);
        let [extent, count] = [x, result].map(|tile| self.func.ty(tile).extents().last().copied().unwrap_or(1));
        self.lookup(x, Lookup::Sort { dtype: ty.dtype(), rows: ty.numel() / extent, extent, count, descending }, result);
    }

    /// Swaps the runs of elements whose index has the bit 0 with those whose index has the bit 1.
    pub(super) fn butterfly(&mut self, x: Value, axis: usize, bit: u32, result: Value) {
        let ty = self.func.ty(x);
        let (width, count) = (ty.dtype().bytes(), ty.numel());
        let run = ty.extents()[axis + 1..].iter().product::<usize>() << bit;
        let from = self.full(x);
        let to = self.allocate_for(result);
        let walk = |first: usize| Walk { first, strides: vec![2 * run as isize, 1] };
        for (to_walk, from_walk) in [(walk(0), walk(run)), (walk(run), walk(0))] {
            self.instrs.push(Instr::Rearrange { to, to_walk, from, from_walk, width, extents: vec![count / (2 * run), run] });
        }
    }

    fn lookup(&mut self, from: Value, lookup: Lookup, result: Value) {
        let from = self.full(from);
        let to = self.allocate_for(result);
        self.instrs.push(Instr::Lookup { to, from, lookup: Box::new(lookup) });
    }
}

impl Lookup {
    pub(super) fn visit(&mut self, f: &mut dyn FnMut(&mut Slot)) {
        match self {
            Lookup::Gather { index, .. } => f(index),
            Lookup::Histogram { mask, .. } => mask.iter_mut().for_each(f),
            Lookup::Sort { .. } => {}
        }
    }
}

impl Machine<'_> {
    /// # Safety
    /// The slots hold tiles of those sizes.
    pub(super) unsafe fn lookup(&self, to: Slot, from: Slot, lookup: &Lookup) {
        let (to, from) = (self.at(to), self.at(from).cast_const());
        match *lookup {
            Lookup::Gather { index, width, outer, extent, count, inner } => {
                let index = self.at(index).cast::<i64>();
                // SAFETY: the tiles have these extents, and the index is checked before use.
                memory::by_bytes!(width, T => unsafe {
                    for at in 0..outer * count * inner {
                        let (run, column) = (at / (count * inner), at % inner);
                        let index = index.add(at).read();
                        let is_inside = (index as u64) < extent as u64;
                        let element = is_inside.then(|| from.cast::<T>().add((run * extent + index as usize) * inner + column).read());
                        to.cast::<T>().add(at).write(element.unwrap_or(0));
                    }
                });
            }
            Lookup::Histogram { mask, dtype, count, bins } => {
                // SAFETY: the tiles have these sizes; a bin is checked before use.
                unsafe {
                    let to = std::slice::from_raw_parts_mut(to.cast::<i32>(), bins);
                    to.fill(0);
                    for at in 0..count {
                        let bin = integer(from, at, dtype);
                        if (0..bins as i128).contains(&bin) && mask.is_none_or(|mask| self.at(mask).add(at).read() != 0) {
                            to[bin as usize] += 1;
                        }
                    }
                }
            }
            Lookup::Sort { dtype, rows, extent, count, descending } => {
                let shift = 64 - 8 * dtype.bytes() as u32;
                // Integers with the same order as the elements.
                let key = |bits: u64| {
                    let signed = (bits << shift) as i64;
                    match dtype {
                        _ if dtype.is_float() && signed < 0 => i128::from(signed ^ i64::MAX),
                        _ if dtype.is_float() || dtype.is_signed_int() => signed.into(),
                        _ => bits.into(),
                    }
                };
                // SAFETY: the tiles have these sizes.
                memory::by_bytes!(dtype.bytes(), T => unsafe {
                    let elements = std::slice::from_raw_parts(from.cast::<T>(), rows * extent);
                    let sorted = std::slice::from_raw_parts_mut(to.cast::<T>(), rows * count);
                    let mut row = Vec::with_capacity(extent);
                    for (elements, sorted) in elements.chunks(extent).zip(sorted.chunks_mut(count)) {
                        row.clear();
                        row.extend_from_slice(elements);
                        row.sort_unstable_by_key(|bits| key(Into::<u64>::into(*bits)));
                        if descending {
                            row.reverse();
                        }
                        sorted.copy_from_slice(&row[..count]);
                    }
                });
            }
        }
    }
}

/// An element of a tile of integers.
unsafe fn integer(tile: *const u8, at: usize, dtype: Dtype) -> i128 {
    let unused = 64 - dtype.bits();
    // SAFETY: the caller guarantees that the tile has this element.
    let bits = memory::by_bytes!(dtype.bytes(), T => unsafe { Into::<u64>::into(tile.cast::<T>().add(at).read()) });
    if dtype.is_signed_int() { ((bits << unused) as i64 >> unused).into() } else { bits.into() }
}
