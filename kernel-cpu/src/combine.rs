//! Reductions and scans: translates `reduce` and `scan` to instructions.
//!
//! Elements are combined in pairs, all pairs at once, so that the region's scalar ops become loops over tiles. Each step halves the number
//! of elements, until one is left in each run:
//!
//! ```text
//! reduce [a b c d]:   [a c] with [b d] gives [ab cd];  [ab] with [cd] gives [abcd]
//! scan [a b c d]:     the scan of the pairs, [ab abcd], gives the second element of each pair; [ab] with [c] gives [abc]; a is unchanged
//! ```
//!
//! Sums of floats are therefore pairwise sums, and the order of operands is preserved.

use crate::code::{CHUNK, Instr, Slot, Walk};
use crate::translate::{Storage, Translator};
use kernel_lang::ir::{Region, SideTable, Value};

/// The parameters of a reduction or a scan: the region, the widths of the elements, and the axis.
struct Combine {
    region: Region,
    widths: Vec<usize>,
    /// The number of elements before the axis and after it.
    outer: usize,
    inner: usize,
    reverse: bool,
}

/// Every `step`-th element along an axis, from `first` on.
#[derive(Clone, Copy)]
struct Every {
    first: usize,
    step: usize,
}

const ALL: Every = Every { first: 0, step: 1 };

impl Translator<'_> {
    /// `reduce`
    pub(super) fn reduce(&mut self, inputs: &[Value], axis: u32, region: Region, results: &[Value]) {
        let (cx, mut extent, mut at) = self.begin(inputs, axis, false, region);
        while extent > 1 {
            let [earlier, later] = self.halves(&cx, &at, extent);
            extent /= 2;
            at = self.combine(&cx, &earlier, &later, extent);
        }
        self.finish(&cx, &at, results);
    }

    /// `scan`
    pub(super) fn scan(&mut self, inputs: &[Value], (axis, reverse): (u32, bool), region: Region, results: &[Value]) {
        let (cx, extent, at) = self.begin(inputs, axis, reverse, region);
        let all = self.scan_runs(&cx, &at, extent);
        self.finish(&cx, &all, results);
    }

    fn begin(&mut self, inputs: &[Value], axis: u32, reverse: bool, region: Region) -> (Combine, usize, Vec<Slot>) {
        let extents = self.func.ty(inputs[0]).extents();
        let axis = axis as usize;
        let widths = inputs.iter().map(|value| self.func.ty(*value).dtype().bytes()).collect();
        let (outer, inner) = (extents[..axis].iter().product(), extents[axis + 1..].iter().product());
        let at = inputs.iter().map(|value| self.full(*value)).collect();
        (Combine { region, widths, outer, inner, reverse }, extents[axis], at)
    }

    /// Copies the combined tiles to their own slots, because two results may be the same value of the region.
    fn finish(&mut self, cx: &Combine, at: &[Slot], results: &[Value]) {
        for ((result, from), width) in results.iter().zip(at).zip(&cx.widths) {
            let bytes = self.func.ty(*result).numel() * width;
            let to = self.allocate_for(*result);
            self.instrs.push(Instr::Copy { to, from: *from, bytes });
        }
    }

    fn scan_runs(&mut self, cx: &Combine, at: &[Slot], extent: usize) -> Vec<Slot> {
        if extent == 1 {
            return at.to_vec();
        }
        let half = extent / 2;
        let [earlier, later] = self.halves(cx, at, extent);
        let pairs = self.combine(cx, &earlier, &later, half);
        let ends = self.scan_runs(cx, &pairs, half);
        let results: Vec<Slot> = cx.widths.iter().map(|width| self.new_tile(cx.outer * extent * cx.inner * width)).collect();
        let [first, second] = alternate(cx.reverse);
        self.copy_along(cx, (&results, extent, second), (&ends, half, ALL), half);
        // The first element of the first pair is unchanged; with `reverse`, the second element of the last pair.
        let (begin, rest, before) = if cx.reverse { (half - 1, 0, 1) } else { (0, 1, 0) };
        let from = |pair: usize| Every { first: first.first + 2 * pair, step: 2 };
        self.copy_along(cx, (&results, extent, from(begin)), (&earlier, half, Every { first: begin, step: 1 }), 1);
        if half > 1 {
            let known = self.pick(cx, &ends, half, Every { first: before, step: 1 }, half - 1);
            let own = self.pick(cx, &earlier, half, Every { first: rest, step: 1 }, half - 1);
            let both = self.combine(cx, &known, &own, half - 1);
            self.copy_along(cx, (&results, extent, from(rest)), (&both, half - 1, ALL), half - 1);
        }
        results
    }

    /// The earlier and the later element of each pair.
    fn halves(&mut self, cx: &Combine, at: &[Slot], extent: usize) -> [Vec<Slot>; 2] {
        alternate(cx.reverse).map(|every| self.pick(cx, at, extent, every, extent / 2))
    }

    /// Copies `count` elements along the axis into new tiles.
    fn pick(&mut self, cx: &Combine, at: &[Slot], extent: usize, every: Every, count: usize) -> Vec<Slot> {
        let to: Vec<Slot> = cx.widths.iter().map(|width| self.new_tile(cx.outer * count * cx.inner * width)).collect();
        self.copy_along(cx, (&to, count, ALL), (at, extent, every), count);
        to
    }

    /// Copies `count` elements along the axis between tiles of these extents.
    fn copy_along(&mut self, cx: &Combine, to: (&[Slot], usize, Every), from: (&[Slot], usize, Every), count: usize) {
        let walk = |extent: usize, every: Every| {
            let strides = if cx.inner == 1 { vec![extent, every.step] } else { vec![extent * cx.inner, every.step * cx.inner, 1] };
            Walk { first: every.first * cx.inner, strides: strides.into_iter().map(|stride| stride as isize).collect() }
        };
        let extents = if cx.inner == 1 { vec![cx.outer, count] } else { vec![cx.outer, count, cx.inner] };
        for ((to_slot, from_slot), width) in to.0.iter().zip(from.0).zip(&cx.widths) {
            self.instrs.push(Instr::Rearrange {
                to: *to_slot,
                to_walk: walk(to.1, to.2),
                from: *from_slot,
                from_walk: walk(from.1, from.2),
                width: *width,
                extents: extents.clone(),
            });
        }
    }

    /// Applies the region to all pairs of two lists of tiles with `extent` elements along the axis.
    fn combine(&mut self, cx: &Combine, earlier: &[Slot], later: &[Slot], extent: usize) -> Vec<Slot> {
        let func = self.func;
        let count = cx.outer * extent * cx.inner;
        let captured = self.captured(cx.region);
        let outside: Vec<Storage> = captured.iter().map(|value| self.storage(*value)).collect();
        self.lane_count = Some(count);
        for (value, stored) in captured.iter().zip(&outside) {
            self.uniform(*value, stored.slot);
        }
        for (param, slot) in func.region(cx.region).params.iter().zip(earlier.iter().chain(later)) {
            self.set_storage(*param, *slot, false);
        }
        self.region(cx.region);
        let yielded: Vec<Storage> = func.yielded(cx.region).iter().map(|value| self.storage(*value)).collect();
        self.lane_count = None;
        for (value, Storage { slot, uniform }) in captured.iter().zip(outside) {
            self.set_storage(*value, slot, uniform);
        }
        let spread = |(stored, width): (&Storage, &usize)| match *stored {
            Storage { slot, uniform: true } if count > CHUNK => {
                let to = self.new_tile(count * width);
                self.instrs.push(Instr::Fill { to, from: slot, width: *width, count });
                to
            }
            Storage { slot, .. } => slot,
        };
        yielded.iter().zip(&cx.widths).map(spread).collect()
    }

    /// The scalars from outside the region that the region uses.
    fn captured(&self, region: Region) -> Vec<Value> {
        let func = self.func;
        let mut known: SideTable<Value, bool> = SideTable::new();
        func.region(region).params.iter().for_each(|param| known[*param] = true);
        let mut captured = Vec::new();
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            data.op.for_each_operand(&mut |value| {
                if !known[value] && !func.ty(value).is_pointer() {
                    known[value] = true;
                    captured.push(value);
                }
            });
            data.results.iter().for_each(|result| known[*result] = true);
        }
        captured
    }
}

/// The earlier and the later element of each pair.
fn alternate(reverse: bool) -> [Every; 2] {
    let [even, odd] = [0, 1].map(|first| Every { first, step: 2 });
    if reverse { [odd, even] } else { [even, odd] }
}
