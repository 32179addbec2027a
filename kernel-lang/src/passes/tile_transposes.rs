//! Tiles of transposes: a kernel over flat indices that reads along one axis of a tensor and writes along another gets square tiles.
//!
//! ```text
//! ; before
//! ; then cse, dce
//! kernel @transpose(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %m: i64) {
//!     %0 = program_id : i64
//!     %1 = const {value = 4096} : i64
//!     %2 = mul %0, %1 : i64
//!     %3 = arange {start = 0, end = 4096} : tile<i64, [4096]>
//!     %4 = broadcast %2 : tile<i64, [4096]>
//!     %5 = add %4, %3 : tile<i64, [4096]>
//!     %6 = broadcast %n : tile<i64, [4096]>
//!     %7 = div %5, %6 : tile<i64, [4096]>
//!     %8 = rem %5, %6 : tile<i64, [4096]>
//!     %9 = broadcast %m : tile<i64, [4096]>
//!     %10 = mul %8, %9 : tile<i64, [4096]>
//!     %11 = add %10, %7 : tile<i64, [4096]>
//!     %12 = load %x, %11 : tile<f32, [4096]>
//!     store %y, %5, %12
//!     return
//! }
//! ; after
//! kernel @transpose(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %m: i64) {
//!     %0 = program_id : i64
//!     %1 = const {value = 4096} : i64
//!     %2 = const {value = 1} : i64
//!     %3 = sub %n, %2 : i64
//!     %4 = const {value = 63} : i64
//!     %5 = and %n, %4 : i64
//!     %6 = or %3, %3 : i64
//!     %7 = bitcast %6 : u64
//!     %8 = const {value = 2147483648} : u64
//!     %9 = lt %7, %8 : bool
//!     %10 = const {value = 0} : i64
//!     %11 = eq %5, %10 : bool
//!     %12 = and %9, %11 : bool
//!     %32, %33, %34 = if %12 () {
//!         %13 = const {value = 6} : i64
//!         %14 = shr %n, %13 : i64
//!         %15 = cast %0 : u32
//!         %16 = cast %14 : u32
//!         %17 = div %15, %16 : u32
//!         %18 = cast %17 : i64
//!         %19 = mul %18, %14 : i64
//!         %20 = sub %0, %19 : i64
//!         %21 = add %19, %14 : i64
//!         %22 = const {value = 64} : i64
//!         %23 = mul %18, %22 : i64
//!         %24 = mul %20, %22 : i64
//!         %25 = add %23, %22 : i64
//!         %26 = num_programs : i64
//!         %27 = bitcast %25 : u64
//!         %28 = lt %27, %8 : bool
//!         %29 = le %21, %26 : bool
//!         %30 = and %28, %29 : bool
//!         yield %30, %23, %24
//!     } () {
//!         %31 = const {value = false} : bool
//!         yield %31, %10, %10
//!     } : bool, i64, i64
//!     if %32 () {
//!         %35 = mul %34, %m : i64
//!         %36 = add %35, %33 : i64
//!         %37 = broadcast %36 : tile<i64, [64, 64]>
//!         %38 = arange {start = 0, end = 64} : tile<i64, [64]>
//!         %39 = expand_dims %38 {axis = 1} : tile<i64, [64, 1]>
//!         %40 = broadcast %39 : tile<i64, [64, 64]>
//!         %41 = expand_dims %38 : tile<i64, [1, 64]>
//!         %42 = broadcast %41 : tile<i64, [64, 64]>
//!         %43 = broadcast %m : tile<i64, [64, 64]>
//!         %44 = mul %42, %43 : tile<i64, [64, 64]>
//!         %45 = add %40, %44 : tile<i64, [64, 64]>
//!         %46 = add %37, %45 : tile<i64, [64, 64]>
//!         %47 = load %x, %46 : tile<f32, [64, 64]>
//!         %48 = mul %33, %n : i64
//!         %49 = add %48, %34 : i64
//!         %50 = broadcast %49 : tile<i64, [64, 64]>
//!         %51 = broadcast %n : tile<i64, [64, 64]>
//!         %52 = mul %40, %51 : tile<i64, [64, 64]>
//!         %53 = add %52, %42 : tile<i64, [64, 64]>
//!         %54 = add %50, %53 : tile<i64, [64, 64]>
//!         store %y, %54, %47
//!         yield
//!     } () {
//!         %55 = mul %0, %1 : i64
//!         %56 = arange {start = 0, end = 4096} : tile<i64, [4096]>
//!         %57 = broadcast %55 : tile<i64, [4096]>
//!         %58 = add %57, %56 : tile<i64, [4096]>
//!         %59 = broadcast %n : tile<i64, [4096]>
//!         %60 = div %58, %59 : tile<i64, [4096]>
//!         %61 = rem %58, %59 : tile<i64, [4096]>
//!         %62 = broadcast %m : tile<i64, [4096]>
//!         %63 = mul %61, %62 : tile<i64, [4096]>
//!         %64 = add %63, %60 : tile<i64, [4096]>
//!         %65 = load %x, %64 : tile<f32, [4096]>
//!         store %y, %58, %65
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Neighbours of the store are a whole row apart in the load, which moves a sector for each element.
//!
//! Each element is computed by itself, so it does not matter which program computes which elements. The pass writes a copy of the kernel whose
//! program has 64 x 64 elements instead of 4096 in a row: with the flat index as `row * period + column`, 64 rows and 64 columns. Rows are
//! neighbours in one access, columns in the other, and [`super::assign_layouts`] moves the elements through shared memory between them.
//!
//! - **Period.** The access that is to be wide shows it: in the load above, the coefficient of `%5 / %n` is 1, so elements that are `%n`
//!   apart are neighbours in memory.
//! - **Indices.** The tile is cut so that all digits of the flat index (`tile_transposes/digits.rs`) have one value in it, or steps of 1 along one of its
//!   axes. So the indices of the copy are affine: a start and two strides.
//! - **Condition.** The same for all programs of a row of tiles: extents are multiples of the tile's, the tile's rows are in the grid and hold
//!   for the masks, and all products fit in 32 bits. A program of other rows runs the kernel as it was. So each element is computed once,
//!   whatever the extents are.

mod copy;
mod digits;

use rustc_hash::FxHashSet;

use crate::analysis::factors::Factors;
use crate::ir::rewrite::Changed;
use crate::ir::{AccessKind, Builder, Function, Inst, Op, Value, may_alias};
use crate::location::Loc;
use crate::target::SECTOR;

use super::SIMPLIFY;
use super::flat_indices::{common_extent, is_index_tile};
use copy::Copy;
use digits::Digits;

/// Tiles of more elements have one shape.
const MOST_SHAPED: usize = 1024;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let Some(flat) = Flat::find(func) else { return false };
    let Some(period) = flat.period(func) else { return false };
    let copies: Vec<Copy> = flat.extents(func).into_iter().filter_map(|extents| copy::write(func, &flat, &period, extents)).collect();
    if copies.is_empty() {
        return false;
    }
    flat.install(func, copies);
    // The copies, too, must be simple.
    super::run(func, SIMPLIFY, &mut |_, _, _| {});
    true
}

/// A kernel that computes each element by itself, from its flat index.
struct Flat {
    /// The ops whose results are the same for all programs, in order.
    front: Vec<Inst>,
    /// The other ops, in order, without the terminator.
    ops: Vec<Inst>,
    /// The number of the program.
    program: Value,
    /// The values that depend on it.
    varying: FxHashSet<Value>,
    /// The extent of all tiles.
    extent: usize,
}

impl Flat {
    /// The kernel, if each of its ops allows to compute elements in other programs.
    fn find(func: &Function) -> Option<Flat> {
        // The CTAs of a program share tiles along the last axis. A report names the program as the user wrote it.
        if func.is_cluster || func.reports {
            return None;
        }
        let (_, ops) = func.region(func.body).insts.split_last()?;
        let extent = common_extent(func, ops).filter(|extent| extent.is_power_of_two())?;
        let is_program = |inst: &&Inst| matches!(func.inst(**inst).op, Op::ProgramId { axis: 0 });
        let program = func.result(*ops.iter().find(is_program)?);
        let mut varying = FxHashSet::from_iter([program]);
        let (mut front, mut rest) = (Vec::new(), Vec::new());
        for inst in ops {
            let data = func.inst(*inst);
            if data.op.has_regions() || matches!(data.op, Op::Atomic { .. }) {
                return None;
            }
            let mut is_varying = matches!(data.op, Op::ProgramId { axis: 0 });
            data.op.for_each_operand(&mut |operand| is_varying |= varying.contains(&operand));
            if is_varying {
                varying.extend(&data.results);
            }
            let is_scalar = data.results.iter().all(|result| !func.ty(*result).is_tile());
            let is_store = matches!(data.op, Op::Store { .. });
            if data.results.first() == Some(&program) || is_scalar && !is_varying && !is_store {
                front.push(*inst)
            } else {
                rest.push(*inst)
            }
        }
        let flat = Flat { front, ops: rest, program, varying, extent };
        flat.has_separate_accesses(func).then_some(flat)
    }

    /// Is no element stored that another one loads or stores?
    fn has_separate_accesses(&self, func: &Function) -> bool {
        let all = self.front.iter().chain(&self.ops);
        let accesses: Vec<_> = all.filter_map(|inst| func.inst(*inst).op.access()).collect();
        let is_store = |at: usize| accesses[at].kind == AccessKind::Store;
        (0..accesses.len())
            .filter(|at| is_store(*at))
            .all(|store| (0..accesses.len()).all(|other| other == store || !may_alias(func, accesses[other].base, accesses[store].base)))
    }

    fn digits<'a>(&'a self, func: &'a Function) -> Digits<'a> {
        Digits::new(func, self.program, &self.varying, self.extent as i64)
    }

    /// The distance of elements that are neighbours for an access, if some access has neighbours that are not neighbours of the flat index.
    fn period(&self, func: &Function) -> Option<Factors> {
        let mut digits = self.digits(func);
        for inst in &self.ops {
            let data = func.inst(*inst);
            data.results.iter().filter(|result| is_index_tile(func, **result)).for_each(|result| _ = digits.form(*result));
            let Some(form) = data.op.access().and_then(|access| digits.form(access.offset)) else { continue };
            // An access without the lowest digit is the same for all neighbours of the flat index, such as that to a bias. If the lowest digit has
            // the coefficient 1, these neighbours are neighbours in memory, too.
            let lowest = form.digits.iter().find(|(digit, _)| digit.low.is_one());
            if lowest.is_none_or(|(_, coefficient)| coefficient.is(1)) {
                continue;
            }
            let is_far = |low: &Factors| !low.scalars().is_empty() || low.constant() >= SECTOR.into();
            let unit = form.digits.iter().find(|(digit, coefficient)| coefficient.is(1) && is_far(&digit.low));
            if let Some((digit, _)) = unit {
                return Some(digit.low.clone());
            }
        }
        None
    }

    /// The rows and the columns of tiles, both whole sectors of each tensor: squares first, then tiles that divide more extents. More copies of large
    /// tiles would need more registers.
    fn extents(&self, func: &Function) -> Vec<[usize; 2]> {
        let accesses = self.ops.iter().filter_map(|inst| func.inst(*inst).op.access());
        let Some(smallest) = accesses.map(|access| func.ty(access.base).dtype().bytes()).min() else { return Vec::new() };
        let (short, square) = (SECTOR as usize / smallest, 1 << (self.extent.trailing_zeros() / 2));
        let mut shapes: Vec<[usize; 2]> = [square, short, self.extent / short].map(|rows| [rows, self.extent / rows]).to_vec();
        shapes.retain(|shape| shape.iter().all(|extent| *extent >= short));
        shapes.dedup();
        shapes.truncate(if self.extent > MOST_SHAPED { 1 } else { shapes.len() });
        shapes
    }

    /// Replaces the kernel by the ops in front, and a branch for each copy. If no condition holds, the kernel runs as it was.
    fn install(self, func: &mut Function, copies: Vec<Copy>) {
        let (mut rest, loc) = (self.ops, Loc::NONE);
        for Copy { head, cond, body } in copies.into_iter().rev() {
            let other = func.add_region();
            *func.insts_mut(other) = rest;
            Builder::new(func, other, loc).yield_values(Vec::new());
            let branch = func.make_inst(Op::If { cond, then_region: body, else_region: other, rare: false }, [], loc);
            rest = std::mem::take(func.insts_mut(head));
            rest.push(branch);
        }
        let end = func.terminator(func.body);
        *func.insts_mut(func.body) = self.front.into_iter().chain(rest).chain([end]).collect();
    }
}
