//! The invariants of kernels with layouts, [`Stage::Gpu`](super::Stage::Gpu), on which the GPU backend relies.

use crate::dtype::Dtype;
use crate::ir::arena::{Inst, SideTable, Value};
use crate::ir::atomic::AtomicOp;
use crate::ir::fragments::{fragments, warpgroup_accumulator, warpgroup_operand};
use crate::ir::function::Function;
use crate::ir::ops::{BinaryOp, Op, UnaryOp};
use crate::ir::renaming::register_sources;
use crate::layout::{Conversion, Fragments, Layout, Level, XorTable, known_conversion};
use crate::location::Loc;
use crate::schedule::Schedule;

use super::{Verifier, Violation};

/// Data about the whole kernel for invariants 8 to 10.
pub(super) struct Gpu {
    schedule: Schedule,
    /// Is the tile computed from the indices of its elements?
    is_index: SideTable<Value, bool>,
    /// Is the value an operand of some op?
    is_used: SideTable<Value, bool>,
    /// Layouts already known to fit the schedule and to hold every element; a kernel has few different ones.
    known: Vec<Layout>,
}

impl Gpu {
    pub(super) fn of(func: &Function, schedule: Schedule) -> Gpu {
        let (mut is_index, mut is_used): (SideTable<Value, bool>, SideTable<Value, bool>) = (SideTable::new(), SideTable::new());
        for inst in func.all_insts() {
            let data = func.inst(inst);
            let mut from_index = matches!(data.op, Op::Arange { .. });
            data.op.for_each_operand(&mut |value| {
                from_index |= is_index[value];
                is_used[value] = true;
            });
            let is_index_tile = |value: &&Value| func.ty(**value).is_tile() && func.ty(**value).elem().dtype() == Some(Dtype::I64);
            for result in data.results.iter().filter(is_index_tile).filter(|_| data.op.is_pure()) {
                is_index[*result] = from_index;
            }
        }
        Gpu { schedule, is_index, is_used, known: Vec::new() }
    }
}

impl Verifier<'_> {
    /// Invariants 8 to 10 for one op.
    pub(super) fn gpu_invariants(&mut self, inst: Inst, gpu: &mut Gpu) {
        let (func, data) = (self.func, self.func.inst(inst));
        if data.op.access().is_some_and(|access| !access.in_bounds) {
            self.broken(inst, "is not guarded");
        }
        if !func.files.is_empty() && data.loc.is_some() && usize::from(data.loc.file) >= func.files.len() {
            self.broken(inst, format!("names file {} of {}", data.loc.file, func.files.len()));
        }
        let mut params = Vec::new();
        data.op.for_each_region(&mut |region| params.extend(&func.region(region).params));
        for value in data.results.iter().chain(&params) {
            if let Some(message) = wrong_layout(func, *value, gpu) {
                self.broken(inst, format!("{value} {message}"));
            }
        }
        self.same_layouts(inst);
        self.carried_layouts(inst);
        self.moves_nothing(inst);
        self.bitwise_layouts(inst, gpu);
        self.fragments(inst, gpu);
        if gpu.schedule.num_ctas > 1
            && let Some(what) = crosses_ctas(func, inst, gpu)
        {
            self.broken(inst, format!("{what} between the CTAs of a program"));
        }
        if !has_instruction(func, &data.op) {
            self.broken(inst, "has no instruction for that element type: it is written out before");
        }
    }

    /// The parameters of a kernel with layouts are scalars and pointers.
    pub(super) fn gpu_params(&mut self) {
        for param in self.func.params.iter().filter(|param| self.func.ty(param.value).is_tile()) {
            let message = format!("takes a tile: {}", param.value);
            self.violations.push(Violation { loc: Loc::NONE, op: "kernel", message });
        }
    }

    /// Invariant 8: tiles of one elementwise op have one layout.
    fn same_layouts(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        let changes_shape = matches!(
            data.op,
            Op::Broadcast { .. }
                | Op::ExpandDims { .. }
                | Op::Reshape { .. }
                | Op::Permute { .. }
                | Op::Reduce { .. }
                | Op::Gather { .. }
                | Op::Dot { .. }
                | Op::WarpgroupDot { .. }
                | Op::WarpgroupWait { .. }
                | Op::Histogram { .. }
                | Op::Convert { .. }
                | Op::IssueLoads { .. }
                | Op::LocalLoad { first: Some(_), .. }
                | Op::AnyInWarp { .. }
                | Op::If { .. }
                | Op::For { .. }
                | Op::While { .. }
        );
        let mut first = data.results.iter().copied().find(|value| func.ty(*value).is_tile());
        let mut differ = false;
        data.op.for_each_operand(&mut |value| {
            if func.ty(value).is_tile() {
                differ |= func.layouts[*first.get_or_insert(value)] != func.layouts[value];
            }
        });
        if differ && !changes_shape && !data.op.is_terminator() {
            self.broken(inst, "has operands of different layouts");
        }
    }

    /// Invariant 8: the results of a branch and the carried values of a loop stay in their registers.
    fn carried_layouts(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        let yielded = |region| if func.region(region).insts.is_empty() { &[][..] } else { func.yielded(region) };
        let lists: Vec<&[Value]> = match &data.op {
            Op::If { then_region, else_region, .. } => vec![yielded(*then_region), yielded(*else_region)],
            Op::IfAny { body, .. } => vec![yielded(*body)],
            Op::WarpgroupWait { sums, .. } => vec![sums],
            Op::For { init, body, .. } => vec![init, func.region(*body).params.get(1..).unwrap_or_default(), yielded(*body)],
            Op::While { init, test, body } => {
                vec![init, &func.region(*test).params, &func.region(*body).params, yielded(*test), yielded(*body)]
            }
            _ => return,
        };
        let differs = lists.into_iter().find_map(|list| {
            let mut pairs = data.results.iter().zip(list);
            pairs.find(|(result, value)| {
                let layouts = func.layouts[**result].as_ref().zip(func.layouts[**value].as_ref());
                layouts.is_some_and(|(result, value)| result != value)
            })
        });
        if let Some((result, value)) = differs {
            self.broken(inst, format!("gives {result} another layout than {value}, which it comes from"));
        }
    }

    /// Invariant 8: only a `convert` moves elements between threads.
    fn moves_nothing(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        let x = match &data.op {
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } if func.ty(*x).numel() > 1 => *x,
            Op::Convert { x } => {
                let bits = 8 * func.ty(*x).dtype().bytes() as u32;
                let layouts = func.layouts[*x].as_ref().zip(func.layouts[data.results[0]].as_ref());
                if layouts.is_none_or(|(from, to)| known_conversion(from, to, bits).is_err()) {
                    self.broken(inst, "converts to a layout that needs what no thread of the program holds");
                }
                return;
            }
            Op::Sort { .. } => return self.broken(inst, "stands only in kernels without layouts"),
            Op::Gather { index, .. } if func.layouts[*index] != func.layouts[data.results[0]] => {
                return self.broken(inst, "has an index in another layout than its result");
            }
            Op::Histogram { x, mask: Some(mask), .. } if func.layouts[*x] != func.layouts[*mask] => {
                return self.broken(inst, "has a mask in another layout than what it counts");
            }
            Op::Butterfly { x, .. } if !is_bitwise(func, *x) => {
                return self.broken(inst, "turns over a bit of an index in a layout that is not bitwise");
            }
            Op::Reduce { inputs, .. } | Op::Scan { inputs, .. } => {
                if inputs.iter().any(|input| !is_bitwise(func, *input) || func.layouts[*input] != func.layouts[inputs[0]]) {
                    return self.broken(inst, "combines tiles whose layouts are not bitwise and the same");
                }
                inputs[0]
            }
            _ => return,
        };
        let is_scan = matches!(data.op, Op::Scan { .. });
        if matches!(data.op, Op::Reduce { .. }) && data.results.iter().any(|result| func.layouts[*result] != func.layouts[data.results[0]])
        {
            return self.broken(inst, "has results in several layouts");
        }
        for result in data.results.iter().filter(|result| !is_scan && func.ty(**result).is_tile()) {
            if register_sources(func, &data.op, x, *result).is_none() {
                self.broken(inst, format!("{result} has a layout that needs elements of other threads"));
            }
        }
    }

    /// Invariant 11: a `dot` has the layouts of a matrix instruction.
    fn fragments(&mut self, inst: Inst, gpu: &Gpu) {
        let func = self.func;
        let data = func.inst(inst);
        if let Op::WarpgroupDot { a, b, acc, swapped, .. } = data.op {
            let is_fragment = |tile: &&Value| {
                let wanted = warpgroup_operand(func, **tile, swapped, gpu.schedule);
                wanted.is_some() && func.layouts[**tile] == wanted
            };
            if ![a, b].iter().filter(|operand| func.ty(**operand).is_tile()).all(|tile| is_fragment(&tile)) {
                self.broken(inst, "has an operand in registers that is no fragment of the instruction");
            }
            let wanted = warpgroup_accumulator(func, acc, swapped, gpu.schedule);
            if wanted.is_none() || [acc, data.results[0]].iter().any(|value| func.layouts[*value] != wanted) {
                self.broken(inst, "has accumulators that are not those of the instruction");
            }
            return;
        }
        if let Op::StoreBlock { value, swapped, .. } = data.op {
            let wanted = warpgroup_accumulator(func, value, swapped, gpu.schedule);
            if wanted.is_none() || func.layouts[value] != wanted {
                self.broken(inst, "stores what has not the layout of accumulators");
            }
            return;
        }
        let Op::Dot { a, b, acc, .. } = data.op else { return };
        let wanted = fragments(func, &data.op, gpu.schedule);
        let has = |value: Value, layout: &Layout| func.layouts[value].as_ref() == Some(layout);
        let is_right = wanted.is_some_and(|Fragments { a: left, b: right, accumulator }| {
            has(a, &left) && has(b, &right) && has(acc, &accumulator) && has(data.results[0], &accumulator)
        });
        if !is_right {
            self.broken(inst, "has operands that are no fragments of a matrix instruction");
        }
    }

    /// Invariant 9. An index consists of bits of the thread number and of the register number, without carries.
    fn bitwise_layouts(&mut self, inst: Inst, gpu: &Gpu) {
        let func = self.func;
        let data = func.inst(inst);
        let mut indices: Vec<Value> = data.results.iter().copied().filter(|result| gpu.is_index[*result]).collect();
        match &data.op {
            Op::Load { offset, .. }
            | Op::Store { offset, .. }
            | Op::Atomic { offset, .. }
            | Op::AsyncCopy { offset, .. }
            | Op::Report { offset, .. } => indices.push(*offset),
            Op::Gather { src, .. } => indices.extend([*src, data.results[0]]),
            Op::Histogram { x, .. } => indices.extend([*x, data.results[0]]),
            _ => {}
        }
        if let Some(value) = indices.into_iter().find(|value| func.ty(*value).is_tile() && !is_bitwise(func, *value)) {
            self.broken(inst, format!("finds elements by their index in the layout of {value}, which is not bitwise"));
        }
    }
}

fn is_bitwise(func: &Function, value: Value) -> bool {
    func.layouts[value].as_ref().is_some_and(Layout::is_bitwise)
}

/// The error in the layout of a value, if there is one.
fn wrong_layout(func: &Function, value: Value, gpu: &mut Gpu) -> Option<String> {
    let (ty, layout) = (func.ty(value), func.layouts[value].as_ref());
    if !ty.is_tile() {
        return layout.map(|_| "has a layout and is no tile".to_string());
    }
    let shape = ty.shape();
    let fits = |layout: &&Layout| {
        let mut extents = shape.iter().zip(layout.shape());
        shape.len() == layout.rank() && extents.all(|(dim, extent)| dim.as_int() == Some((*extent).into()))
    };
    let Some(layout) = layout.filter(fits) else { return Some("has no layout of its extents".to_string()) };
    if gpu.known.contains(layout) {
        return None;
    }
    let Schedule { num_warps, num_ctas, .. } = gpu.schedule;
    for (level, count) in [(Level::Lane, 32), (Level::Warp, num_warps), (Level::Block, num_ctas)] {
        if 1 << layout.bits(level) != count {
            return Some(format!("has a layout of {} {level}s, and there are {count}", 1 << layout.bits(level)));
        }
    }
    if !layout.is_surjective() {
        return Some("has a layout that does not hold every element".to_string());
    }
    gpu.known.push(layout.clone());
    None
}

/// Invariant 10: the data that an op would have to move or broadcast from one CTA to another.
fn crosses_ctas(func: &Function, inst: Inst, gpu: &Gpu) -> Option<&'static str> {
    let data = func.inst(inst);
    let layout = |value: Value| func.layouts[value].as_ref();
    let is_spread = |layout: &Layout, axis: Option<u32>| {
        (0..layout.bits(Level::Block)).any(|bit| match axis {
            None => layout.flat_bases(Level::Block)[bit] != 0,
            Some(axis) => layout.basis_along(Level::Block, bit, axis as usize) != 0,
        })
    };
    // Every thread holds a scalar.
    let is_shared = |value: Value| layout(value).is_none_or(|layout| layout.free_bits().block != 0);
    let crosses = match &data.op {
        Op::Gather { src: x, .. } | Op::Histogram { x, .. } => is_spread(layout(*x)?, None),
        Op::Flip { x, axis } | Op::Butterfly { x, axis, .. } => is_spread(layout(*x)?, Some(*axis)),
        Op::Scan { inputs, axis, .. } => is_spread(layout(inputs[0])?, Some(*axis)),
        Op::Atomic { op, offset, .. } if *op != AtomicOp::Store && gpu.is_used[data.results[0]] => {
            return is_shared(*offset).then_some("tells what it found");
        }
        Op::Load { offset, volatile: true, .. } => return is_shared(*offset).then_some("tells what it found"),
        Op::Convert { x } => {
            let (from, to) = (layout(*x)?, layout(data.results[0])?);
            let uses_block = |tables: &[&XorTable]| tables.iter().any(|table| table.block.iter().any(|value| *value != 0));
            match known_conversion(from, to, 8 * func.ty(*x).dtype().bytes() as u32).as_ref() {
                Ok(Conversion::Shuffle(plan)) => uses_block(&[&plan.source_lane, &plan.send, &plan.receive]),
                Ok(Conversion::Shared(plan)) => uses_block(&[&plan.store.thread, &plan.load.thread]),
                _ => false,
            }
        }
        _ => false,
    };
    crosses.then_some("moves elements")
}

/// Invariant 11: does an elementwise op on these elements have an instruction, or a few? Earlier passes expand all others into formulas.
fn has_instruction(func: &Function, op: &Op) -> bool {
    let of = |value: Value| func.ty(value).elem().dtype();
    let is_wide_float = |dtype: Dtype| matches!(dtype, Dtype::F32 | Dtype::F64);
    match *op {
        Op::Unary { op, x } => of(x).is_none_or(|dtype| match op {
            UnaryOp::Neg | UnaryOp::Abs => dtype.is_int() || is_wide_float(dtype),
            UnaryOp::Not => !dtype.is_float(),
            UnaryOp::Popc | UnaryOp::Clz | UnaryOp::Brev => dtype.is_int(),
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Rint | UnaryOp::Trunc => is_wide_float(dtype),
            UnaryOp::ExpApprox2
            | UnaryOp::ExpApproxFtz2
            | UnaryOp::LogApprox2
            | UnaryOp::RecipApprox
            | UnaryOp::RsqrtApprox
            | UnaryOp::SqrtApprox
            | UnaryOp::SinApprox
            | UnaryOp::CosApprox
            | UnaryOp::TanhApprox => dtype == Dtype::F32,
            _ => false,
        }),
        Op::Binary { op, lhs, .. } => of(lhs).is_none_or(|dtype| match op {
            BinaryOp::Rem | BinaryOp::CopySign => is_wide_float(dtype),
            BinaryOp::DivApprox => dtype == Dtype::F32,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !dtype.is_float(),
            _ => dtype.is_int() || is_wide_float(dtype),
        }),
        Op::Compare { lhs, .. } => of(lhs).is_none_or(|dtype| !dtype.is_float() || is_wide_float(dtype)),
        Op::Fma { a, .. } => of(a).is_none_or(|dtype| !dtype.is_float8()),
        _ => true,
    }
}
