//! Shifted tiles: if each iteration of a loop holds a row in one tile, the tile begins at the last multiple of 16 bytes at or before the row.
//!
//! ```text
//! ; before
//! ; then canonicalize, cse, dce
//! kernel @k(%x: ptr<f16>, %y: ptr_mut<f16>, %rows: i64, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = num_programs : i64
//!     %2 = arange {start = 0, end = 256} : tile<i64, [256]>
//!     %3 = broadcast %n : tile<i64, [256]>
//!     %4 = lt %2, %3 : tile<bool, [256]>
//!     for %0, %rows, %1 (%5: i64) {
//!         %6 = mul %5, %n : i64
//!         %7 = broadcast %6 : tile<i64, [256]>
//!         %8 = add %7, %2 : tile<i64, [256]>
//!         %9 = load %x, %8 {mask = %4} : tile<f16, [256]>
//!         store %y, %8, %9 {mask = %4}
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f16>, %y: ptr_mut<f16>, %rows: i64, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = num_programs : i64
//!     %2 = const {value = 15} : i64
//!     %3 = mul %n, %0 : i64
//!     %4 = address %x : i64
//!     %5 = const {value = 2} : i64
//!     %6 = mul %3, %5 : i64
//!     %7 = add %4, %6 : i64
//!     %8 = and %7, %2 : i64
//!     %9 = const {value = 1} : i64
//!     %10 = shr %8, %9 : i64
//!     %11 = ge %3, %10 : bool
//!     %12 = mul %10, %5 : i64
//!     %13 = sub %7, %12 : i64
//!     %14 = mul %n, %1 : i64
//!     %15 = mul %14, %5 : i64
//!     %16 = address %y : i64
//!     %17 = add %16, %6 : i64
//!     %18 = sub %17, %12 : i64
//!     %19 = const {value = 0} : i64
//!     %20 = or %13, %15 : i64
//!     %21 = or %20, %18 : i64
//!     %22 = or %21, %15 : i64
//!     %23 = and %22, %2 : i64
//!     %24 = eq %23, %19 : bool
//!     %25 = or %10, %n : i64
//!     %26 = const {value = 7} : i64
//!     %27 = and %25, %26 : i64
//!     %28 = ne %27, %19 : bool
//!     %29 = const {value = 8} : i64
//!     %30 = const {value = 256} : i64
//!     %31 = ge %n, %29 : bool
//!     %32 = sub %30, %10 : i64
//!     %33 = le %n, %32 : bool
//!     %34 = and %11, %11 : bool
//!     %35 = and %34, %24 : bool
//!     %36 = and %35, %28 : bool
//!     %37 = and %36, %31 : bool
//!     %38 = and %37, %33 : bool
//!     %39 = not %38 : bool
//!     if %39 () {
//!         %40 = arange {start = 0, end = 256} : tile<i64, [256]>
//!         %41 = broadcast %n : tile<i64, [256]>
//!         %42 = lt %40, %41 : tile<bool, [256]>
//!         for %0, %rows, %1 (%43: i64) {
//!             %44 = mul %43, %n : i64
//!             %45 = broadcast %44 : tile<i64, [256]>
//!             %46 = add %45, %40 : tile<i64, [256]>
//!             %47 = load %x, %46 {mask = %42} : tile<f16, [256]>
//!             store %y, %46, %47 {mask = %42}
//!             yield
//!         }
//!         yield
//!     } () {
//!         %48 = arange {start = 0, end = 256} : tile<i64, [256]>
//!         %49 = broadcast %10 : tile<i64, [256]>
//!         %50 = sub %48, %49 : tile<i64, [256]>
//!         %51 = add %n, %10 : i64
//!         %52 = ge %48, %49 : tile<bool, [256]>
//!         %53 = broadcast %51 : tile<i64, [256]>
//!         %54 = lt %48, %53 : tile<bool, [256]>
//!         %55 = and %52, %54 : tile<bool, [256]>
//!         for %0, %rows, %1 (%56: i64) {
//!             %57 = mul %56, %n : i64
//!             %58 = broadcast %57 : tile<i64, [256]>
//!             %59 = add %58, %50 : tile<i64, [256]>
//!             %60 = load %x, %59 {mask = %55, shifted = true} : tile<f16, [256]>
//!             store %y, %59, %60 {mask = %55, shifted = true}
//!             yield
//!         }
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Rows whose length is no multiple of 16 bytes begin anywhere, and a thread then moves one element by an instruction. But if the rows between two iterations together
//! are a multiple of 16 bytes, all rows of a program begin at one distance from such a multiple. A tile that begins there is aligned, and only the runs at both ends
//! of a row are partial. With a shift of 3, position `p` holds column `p - 3`:
//!
//! ```text
//! tile of 16, row of 11        shifted by 3
//! 0 1 2 3 4 5 6 7              . . . 0 1 2 3 4
//! 8 9 10 . . . . .             5 6 7 8 9 10 . .
//! ```
//!
//! All tiles of the kernel shift by the same distance: carried tiles, and tiles that are accessed outside of the loop, too. A column keeps its value, because columns are
//! used only as offsets of accesses and in comparisons with the end of the row. The positions without a column all hold one value, and their number does not change.
//! So a reduction combines the same elements in another order, and must be symmetric.
//!
//! A test before the branch selects the shifted version: the distance between rows is a multiple of 16 bytes, and a row fits in the shifted tile.
//! [`super::split_loops`] then makes the accesses wide, as for any loop, and leaves the rows at both ends of a tensor, whose runs it may not read as a whole, in a
//! remainder loop.

mod columns;

use rustc_hash::FxHashSet;

use crate::analysis::affine;
use crate::analysis::bounds;
use crate::analysis::loops::Loop;
use crate::analysis::polynomial::Polynomial;
use crate::ir::rewrite::{Changed, Substitution, copy_regions};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, SideTable, Type, UnaryOp, Value};

use super::split_full_tiles::{WIDEST, takes_partial_runs};
use columns::Columns;

/// Longer kernels are not copied.
const MOST_OPS: usize = 128;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    // A launch that reports accesses reports them at their original positions. A launch without lengths may not read past the ends of a row.
    if func.reports || func.unchecked || func.is_cluster {
        return false;
    }
    let Some(plan) = Plan::of(func) else { return false };
    plan.apply(func);
    true
}

/// A kernel whose tiles may begin elsewhere.
struct Plan {
    around: Loop,
    /// The rows that the loop accesses. The elements of the first are the shortest.
    rows: Vec<Row>,
    /// The elements of a run of 16 bytes, of the shortest elements that the kernel accesses.
    run: i64,
    /// The comparisons of columns with the end of a row.
    masks: Vec<Value>,
    /// The number of columns of a row.
    end: Polynomial,
    /// The elements of a tile.
    elements: i64,
    /// The ops of the kernel that compute scalars, and the others.
    front: Vec<Inst>,
    rest: Vec<Inst>,
}

/// The elements that an access of the loop has in each iteration.
struct Row {
    base: Value,
    /// The index of the first element.
    start: Polynomial,
    /// The distance between the rows of two iterations, in elements.
    distance: Polynomial,
    /// The bytes of an element.
    bytes: i64,
}

impl Plan {
    fn of(func: &Function) -> Option<Plan> {
        let (_, insts) = func.region(func.body).insts.split_last()?;
        let mut loops = insts.iter().filter_map(|inst| Loop::of(func, *inst));
        let (around, None) = (loops.next()?, loops.next()) else { return None };
        let (_, inner) = func.region(around.body).insts.split_last()?;
        let mut columns = Columns::new(func, inner)?;
        let is_short = insts.len() + inner.len() <= MOST_OPS;
        if !is_short || !insts.iter().chain(inner).all(|inst| columns.allow(*inst, &around)) {
            return None;
        }
        let Columns { mut facts, masks, end, elements, shortest, .. } = columns;
        let (front, rest) = scalars_first(func, insts);
        let mut rows = Vec::new();
        for inst in inner {
            let Some(access) = func.inst(*inst).op.access().filter(|access| func.ty(access.offset).is_tile()) else { continue };
            let form = facts.get(func, access.offset)?;
            let bytes = func.ty(access.base).dtype().bytes() as i64;
            let scale = form.start.coefficient(around.index(func))?;
            let is_row =
                form.strides.len() == 1 && form.strides[0].is(1) && bytes <= WIDEST && takes_partial_runs(func, &func.inst(*inst).op);
            if !is_row {
                return None;
            }
            rows.push(Row { base: access.base, start: form.start.clone(), distance: scale.times(&around.step_form(func))?, bytes });
        }
        rows.sort_by_key(|row| row.bytes);
        let first = rows.first()?;
        let (run, end) = (WIDEST / shortest, end?);
        let known: FxHashSet<Value> = front.iter().flat_map(|inst| &func.inst(*inst).results).copied().collect();
        let index = around.index(func);
        let is_known = |value: Value| known.contains(&value) || func.params.iter().any(|param| param.value == value);
        // Of the loop's values, only its index may appear, and only in the starts of rows: the test takes the first index for it.
        let starts = rows.iter().flat_map(|row| row.start.scalars()).filter(|value| *value != index);
        let scalars: Vec<Value> = starts.chain(rows.iter().flat_map(|row| row.distance.scalars())).chain(end.scalars()).collect();
        let gains = run > 1 && !(first.start.is_multiple_of(run) && end.is_multiple_of(run));
        let is_fine = gains && scalars.into_iter().chain([around.lower, around.step]).all(is_known);
        is_fine.then_some(Plan { around, rows, run, masks, end, elements: elements as i64, front, rest })
    }

    /// Replaces the kernel's body by a branch with both versions.
    fn apply(self, func: &mut Function) {
        let loc = func.inst(self.around.inst).loc;
        let [test, given, shifted] = [0; 3].map(|_| func.add_region());
        let last = func.terminator(func.body);
        let b = &mut Builder::new(func, test, loc);
        let (fits, shift) = self.test(b);
        // Rows are aligned in most launches, so their version comes first: the driver's compiler keeps the order, and a jump waits for instructions.
        let cond = b.unary(UnaryOp::Not, fits);
        *func.insts_mut(given) = self.rest.clone();
        let mut map = Substitution::new();
        self.copy(func, &self.rest, shifted, &mut map, shift);
        [given, shifted].into_iter().for_each(|region| Builder::new(func, region, loc).yield_values(Vec::new()));
        let branch = func.make_inst(Op::If { cond, then_region: given, else_region: shifted, rare: false }, [], loc);
        let tests = std::mem::take(func.insts_mut(test));
        *func.insts_mut(func.body) = self.front.into_iter().chain(tests).chain([branch, last]).collect();
    }

    /// Appends the test that selects the shifted version. Also returns the shift in elements.
    fn test(&self, b: &mut Builder<'_>) -> (Value, Value) {
        let (index, lower) = (self.around.index(b.func), self.around.lower);
        let low_bits = b.index((WIDEST - 1).into());
        let (mut shift, mut parts, mut numbers) = (None, Vec::new(), Vec::new());
        for row in &self.rows {
            let start = row.start.map(&|value| if value == index { lower } else { value }).value(b);
            let (base, bytes) = (b.address(row.base), b.index(row.bytes.into()));
            let offset = b.binary(BinaryOp::Mul, start, bytes);
            let address = b.binary(BinaryOp::Add, base, offset);
            // The first row has the shortest elements.
            let shift = *shift.get_or_insert_with(|| {
                let (shift, log) = (b.binary(BinaryOp::And, address, low_bits), b.index(row.bytes.trailing_zeros().into()));
                b.binary(BinaryOp::Shr, shift, log)
            });
            // Elements in front of the tensor would be read.
            parts.push(b.compare(CompareOp::Ge, start, shift));
            let shift = b.binary(BinaryOp::Mul, shift, bytes);
            numbers.extend([b.binary(BinaryOp::Sub, address, shift), row.distance.scaled(row.bytes).value(b)]);
        }
        let shift = shift.expect("a plan has rows");
        let (zero, end) = (b.index(0), self.end.value(b));
        // Tiles begin at multiples of 16 bytes in all iterations.
        let bits = bounds::any_bit(b, numbers).expect("a plan has rows");
        let bits = b.binary(BinaryOp::And, bits, low_bits);
        parts.push(b.compare(CompareOp::Eq, bits, zero));
        // An aligned row of whole runs has a faster version.
        let (ends, in_run) = (b.binary(BinaryOp::Or, shift, end), b.index((self.run - 1).into()));
        let ends = b.binary(BinaryOp::And, ends, in_run);
        parts.push(b.compare(CompareOp::Ne, ends, zero));
        // The row fits in the tile, and no run is partial at both ends.
        let (run, elements) = (b.index(self.run.into()), b.index(self.elements.into()));
        parts.push(b.compare(CompareOp::Ge, end, run));
        let most = b.binary(BinaryOp::Sub, elements, shift);
        parts.push(b.compare(CompareOp::Le, end, most));
        let all = parts.into_iter().reduce(|all, part| b.binary(BinaryOp::And, all, part));
        (all.expect("there are parts"), shift)
    }

    /// Appends copies of ops to a region, with shifted columns. `map` has the copies of values.
    fn copy(&self, func: &mut Function, insts: &[Inst], to: Region, map: &mut Substitution, shift: Value) {
        for inst in insts {
            let data = func.inst(*inst).clone();
            if let [mask] = data.results[..]
                && self.masks.contains(&mask)
            {
                map.insert(mask, self.mask(&mut Builder::new(func, to, data.loc), shift));
                continue;
            }
            let mut op = data.op;
            op.map_operands(&mut |value| map.get(value));
            match &mut op {
                Op::For { body, .. } => {
                    let (original, copy) = (func.region(*body).clone(), func.add_region());
                    for param in original.params {
                        let ty = func.ty(param).clone();
                        map.insert(param, func.add_region_param(copy, ty));
                    }
                    self.copy(func, &original.insts, copy, map, shift);
                    *body = copy;
                }
                Op::Load { offset, shifted, .. } | Op::Store { offset, shifted, .. } => *shifted = func.ty(*offset).is_tile(),
                op => copy_regions(func, op, map),
            }
            let is_columns = matches!(op, Op::Arange { .. });
            let types: Vec<Type> = data.results.iter().map(|value| func.ty(*value).clone()).collect();
            let copy = func.append(to, op, types, data.loc);
            for (value, copy) in data.results.into_iter().zip(func.inst(copy).results.clone()) {
                let b = &mut Builder::new(func, to, data.loc);
                map.insert(value, if is_columns { shifted_columns(b, copy, shift) } else { copy });
            }
        }
    }

    /// Appends the positions of a shifted tile that hold a column of the row.
    fn mask(&self, b: &mut Builder<'_>, shift: Value) -> Value {
        let shape = [ConstExpr::Int(self.elements.into())];
        let end = self.end.value(b);
        let end = b.binary(BinaryOp::Add, end, shift);
        let positions = affine::positions(b, &shape, 0);
        let [begins, ends] = [(CompareOp::Ge, shift), (CompareOp::Lt, end)].map(|(op, limit)| {
            let limit = b.broadcast(limit, &shape);
            b.compare(op, positions, limit)
        });
        b.binary(BinaryOp::And, begins, ends)
    }
}

/// Appends the columns of a shifted tile.
fn shifted_columns(b: &mut Builder<'_>, columns: Value, shift: Value) -> Value {
    let shape = b.func.ty(columns).shape().to_vec();
    let shift = b.broadcast(shift, &shape);
    b.binary(BinaryOp::Sub, columns, shift)
}

/// Splits the ops of a kernel into those that compute scalars from arguments and the grid, and the others.
fn scalars_first(func: &Function, insts: &[Inst]) -> (Vec<Inst>, Vec<Inst>) {
    let mut stays: SideTable<Value, bool> = SideTable::new();
    insts.iter().partition(|inst| {
        let data = func.inst(**inst);
        let mut is_scalar = data.op.is_pure() && !data.op.has_regions() && data.results.iter().all(|result| func.ty(*result).is_scalar());
        data.op.for_each_operand(&mut |value| is_scalar &= !stays[value]);
        data.results.iter().for_each(|result| stays[*result] = !is_scalar);
        is_scalar
    })
}
