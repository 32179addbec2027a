//! PTX backend: translates IR whose tiles have layouts to PTX text.
//!
//! # Model
//!
//! A program is one CTA of `32 * num_warps` threads, or a cluster of `num_ctas` such CTAs. Every thread computes every scalar. Of a tile,
//! each thread holds the elements that the tile's layout assigns to it, in one virtual register per element. `bool` is a predicate.
//! Integers narrower than 32 bits are extended in 32-bit registers. `f16` and `bf16` are only loaded, stored and converted, because earlier
//! passes expand their arithmetic to `f32`. Float instructions state their rounding (`.rn`), so that the assembler fuses none of them.
//!
//! Indices are not computed element by element. An [`index`](self) is a sum `uniform + thread part + register part`. The uniform part is
//! computed once, in 64 bits; the thread part once per thread; and the register part is the constant in `[address+constant]`. A tile of
//! indices that only addresses memory needs no registers.

mod allocate_shared;
mod arithmetic;
mod carried;
mod control;
mod exchange;
mod if_any;
mod index;
mod memory;
mod module;
mod needed;
mod roles;
mod text;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Function, Handle, Inst, InstData, Op, Region, SideTable, Stage, Type, Value, Verified};
use crate::launch_value;
use crate::launch_value::persistent_entry::{MAP_ALIGNMENT, MAP_BYTES};
use crate::layout::Layout;
use crate::location::Loc;
use crate::passes::{Pass, ScheduledPass};
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

/// The passes that prepare a kernel for this backend, in order. They follow [`SCHEDULE`](crate::passes::SCHEDULE).
pub const PASSES: &[ScheduledPass] =
    &[Pass { name: "allocate_shared", run: |func, target, schedule| Ok(allocate_shared::run(func, target, schedule)) }];

pub(crate) use exchange::budget::{check as check_shared, check_params};
pub use memory::checked_report::{REPORT_BYTES, Site};
pub(crate) use memory::width::access_bytes;
pub use module::Module;

use arithmetic::compare::{PositionTest, Tests};
use roles::Tensor;
use text::registers::{Assembly, Class, Reg, asm};

/// The registers of a value in one thread.
#[derive(Clone, Debug)]
enum Lanes {
    /// One register for all elements: scalars, and tiles whose elements are all equal.
    Splat(Reg),
    /// One register for each element that the thread holds.
    Each(Vec<Reg>),
}

/// The source of the elements of a value.
#[derive(Clone, Debug)]
enum Source {
    Registers(Lanes),
    /// Comparisons that are recomputed at each use, because a thread has only seven predicate registers.
    Tests(Tests),
    /// Products of two values, which a sum can contract into fused multiply-adds.
    Product(Value, Value),
}

impl Lanes {
    fn get(&self, register: usize) -> Reg {
        match self {
            Lanes::Splat(reg) => *reg,
            Lanes::Each(regs) => regs[register],
        }
    }
}

struct Emitter<'a> {
    func: &'a Function,
    asm: Assembly,
    sources: SideTable<Value, Option<Source>>,
    /// Whether some instruction needs the value in registers, by value.
    needed: Vec<bool>,
    /// Whether only a sum uses the product, in a kernel that permits contraction, by value.
    summed: Vec<bool>,
    /// Whether a quotient is only rounded to `bf16`, by value.
    rounded_quotients: Vec<bool>,
    /// The products of which both halves are computed: the other half of each.
    other_halves: FxHashMap<Value, Value>,
    /// The halves that were computed with their other halves, until their ops are emitted.
    halves: FxHashMap<Value, Lanes>,
    facts: AffineFacts,
    /// The values that depend only on the thread, computed once at the top.
    threads: index::ThreadParts,
    /// Byte offsets of the thread's part, by the region in which they are valid.
    addresses: Vec<FxHashMap<index::AddressKey, Reg>>,
    /// The slack between a thread's indices and a limit, by the region in which it is valid.
    slacks: Vec<FxHashMap<arithmetic::compare::SlackKey, Reg>>,
    /// The divisors that are prepared in front of the divisions that share them, by the region in which they are valid.
    divisors: Vec<FxHashMap<(Reg, bool), arithmetic::shared_divisor::Divisor>>,
    /// The comparisons of blocks that are computed once.
    kept: FxHashSet<Value>,
    /// The index and the upper bound of each counted loop around this region.
    loops: Vec<(Value, Value)>,
    /// In an `if_any`, which is emitted for a group of each thread's elements at a time: their number.
    group: Option<usize>,
    /// For the masks of vectorised accesses in this region: the number of adjacent registers in which the mask is equal.
    runs: FxHashMap<Value, usize>,
    /// The narrow integers that are clamped, by their registers: the type, and the register of the 32-bit integer.
    clamped: FxHashMap<Reg, (Dtype, Reg)>,
    /// The words that were loaded and taken apart, by the first of their elements.
    unpacked: FxHashMap<Reg, (Reg, Vec<Reg>)>,
    /// The address and the length of each pointer.
    pointers: SideTable<Value, Option<(Reg, Reg)>>,
    /// The parameters of each launch value.
    launch_values: FxHashMap<Value, launch_value::Parameters>,
    /// The parameters of launch values that are loaded at the start of each region that uses them, see [`Emitter::load_later`].
    later: FxHashMap<Value, usize>,
    /// The address of the report, in a checked kernel.
    report_buffer: Option<Reg>,
    /// The L2 cache policies for these eviction priorities.
    policies: Vec<memory::policies::Policy>,
    sites: Vec<Site>,
    /// The PTX ISA version, major and minor: the lowest that supports the target and every instruction, so that old drivers accept the
    /// module.
    ptx_version: (u32, u32),
    /// Whether the module needs the bits of 2/pi.
    uses_two_over_pi: bool,
    /// Whether the kernel may begin while the previous launch still writes.
    begins_early: bool,
    /// The shared memory of the op that is being emitted.
    placed: exchange::shared::Placed,
    /// The exchange of scalars between the CTAs of a program.
    exchange: Option<exchange::cluster::Exchange>,
    buffers: FxHashMap<Value, memory::async_buffer::AsyncBuffer>,
    common_buffers: FxHashMap<Value, memory::common_buffer::CommonBuffer>,
    /// By common buffer: a part that is read from it.
    parts: FxHashMap<Value, Value>,
    rings: roles::Rings,
    loc: Loc,
    target: &'a Asked,
    schedule: Schedule,
}

/// Emits a kernel, or a version of it.
///
/// # Panics
/// If `func` is verified at a stage other than [`Stage::Ptx`].
pub fn emit(func: Verified<'_>, target: &Asked) -> Module {
    let Stage::Ptx(schedule) = func.stage() else { panic!("only a kernel that is verified for this backend is emitted") };
    let func = func.func();
    let mut facts = AffineFacts::new();
    let kept = arithmetic::compare::of_several_blocks(func, &mut facts);
    let needed = needed::needed(func, &mut facts, &kept);
    let launch_values = launch_value::parameters(func);
    let launch_types = launch_value::parameter_types(&launch_values);
    let in_order: Vec<Value> = launch_values.iter().map(|(value, _)| *value).collect();
    let param_bytes = exchange::budget::param_bytes(func, &launch_types);
    let mut emitter = Emitter {
        func,
        asm: Assembly::default(),
        sources: SideTable::new(),
        other_halves: arithmetic::wide_product::other_halves(func, &needed),
        halves: FxHashMap::default(),
        needed,
        kept,
        summed: exchange::reduce::summed_products(func),
        rounded_quotients: arithmetic::bf16_quotient::rounded_quotients(func),
        facts,
        threads: index::ThreadParts::default(),
        addresses: vec![FxHashMap::default()],
        slacks: vec![FxHashMap::default()],
        divisors: vec![FxHashMap::default()],
        loops: Vec::new(),
        group: None,
        runs: FxHashMap::default(),
        clamped: FxHashMap::default(),
        unpacked: FxHashMap::default(),
        pointers: SideTable::new(),
        launch_values: launch_values.into_iter().collect(),
        later: FxHashMap::default(),
        report_buffer: None,
        policies: Vec::new(),
        sites: Vec::new(),
        ptx_version: target.name().ptx_version().max(exchange::budget::version_for_params(param_bytes)),
        uses_two_over_pi: false,
        begins_early: func.overlaps() && target.ask(Target::has_dependent_launches),
        placed: exchange::shared::Placed::default(),
        exchange: None,
        buffers: FxHashMap::default(),
        common_buffers: FxHashMap::default(),
        parts: memory::common_buffer::parts_of(func),
        rings: roles::Rings::of(func),
        loc: Loc::NONE,
        target,
        schedule,
    };
    emitter.params();
    emitter.policies();
    emitter.thread_parts();
    emitter.prepare_exchange();
    emitter.region(func.body);
    let body = std::mem::take(&mut emitter.asm).finish();

    let shared_ends = exchange::budget::ends(func, schedule);
    let shared_bytes = shared_ends.values().copied().max().unwrap_or_default();
    let param_bytes = match emitter.rings.maps().count() {
        0 => param_bytes,
        maps => param_bytes.next_multiple_of(MAP_ALIGNMENT) + maps * MAP_BYTES,
    };
    emitter.ptx_version = emitter.ptx_version.max(exchange::budget::version_for_params(param_bytes));
    let version = emitter.version(body, &shared_ends, &in_order, &launch_types);
    let workers = if emitter.rings.maps().next().is_some() { emitter.workers() } else { 0 };
    Module { version, sites: emitter.sites, shared_bytes, param_bytes, workers }
}

/// The type of an element in `ld`, `st` and `.param`, which is its width in memory.
fn memory_type(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => "u8",
        Dtype::I8 => "s8",
        Dtype::U16 => "u16",
        Dtype::I16 => "s16",
        Dtype::F16 | Dtype::Bf16 => "b16",
        Dtype::U32 => "u32",
        Dtype::I32 => "s32",
        Dtype::U64 => "u64",
        Dtype::I64 => "s64",
        Dtype::F32 => "f32",
        Dtype::F64 => "f64",
    }
}

/// The type of an element in arithmetic, where narrow integers are 32 bits wide. 8-bit floats are cast first.
fn arithmetic_type(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "pred",
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::F8E4M3 | Dtype::F8E5M2 => "u32",
        Dtype::I8 | Dtype::I16 | Dtype::I32 => "s32",
        Dtype::U64 => "u64",
        Dtype::I64 => "s64",
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
        Dtype::F32 => "f32",
        Dtype::F64 => "f64",
    }
}

impl Emitter<'_> {
    fn reg(&mut self, class: Class) -> Reg {
        self.asm.reg(class)
    }

    /// The prefix of special registers for a program, as in `%ctaid`.
    fn program(&self) -> &'static str {
        if self.schedule.num_ctas == 1 { "cta" } else { "cluster" }
    }

    fn layout(&self, value: Value) -> Option<&Layout> {
        self.func.layouts[value].as_ref()
    }

    /// The number of elements of a value that one thread holds.
    fn lane_count(&self, value: Value) -> usize {
        let all = |layout: &Layout| self.group.unwrap_or(layout.registers_per_thread() as usize);
        self.layout(value).map_or(1, all)
    }

    /// The registers of a value.
    fn lanes(&mut self, value: Value) -> Lanes {
        match self.source(value) {
            Source::Registers(lanes) => lanes,
            source => Lanes::Each((0..self.lane_count(value)).map(|register| self.at(&source, register)).collect()),
        }
    }

    /// The source of the elements of a value, for [`Emitter::at`].
    fn source(&self, value: Value) -> Source {
        let source = self.sources[value].clone().unwrap_or_else(|| panic!("{value} is used before it is emitted"));
        match source {
            Source::Tests(tests) => Source::Tests(match self.runs.get(&value) {
                Some(run) => tests.of_runs(*run),
                None => tests,
            }),
            source => source,
        }
    }

    /// The register of an element.
    fn at(&mut self, source: &Source, register: usize) -> Reg {
        match source {
            Source::Registers(lanes) => lanes.get(register),
            Source::Tests(tests) => self.test(tests, register),
            Source::Product(x, y) => {
                let dtype = self.func.ty(*x).dtype();
                let (x, y) = (self.lanes(*x).get(register), self.lanes(*y).get(register));
                self.binary(BinaryOp::Mul, dtype, x, y)
            }
        }
    }

    /// The register of a scalar.
    fn scalar(&self, value: Value) -> Reg {
        match self.source(value) {
            Source::Registers(lanes) => lanes.get(0),
            Source::Tests(_) | Source::Product(..) => unreachable!("these are of tiles"),
        }
    }

    fn define(&mut self, value: Value, lanes: Lanes) {
        self.sources[value] = Some(Source::Registers(lanes));
    }

    fn params(&mut self) {
        for (index, param) in self.func.params.iter().enumerate() {
            match self.func.ty(param.value) {
                Type::Pointer { .. } => {
                    let [generic, address, length] = [0; 3].map(|_| self.reg(Class::B64));
                    asm!(self, "ld.param.u64 {generic}, [param_{index}]");
                    asm!(self, "cvta.to.global.u64 {address}, {generic}");
                    asm!(self, "ld.param.u64 {length}, [param_{index}_len]");
                    self.pointers[param.value] = Some((address, length));
                }
                ty if ty.dtype() == Dtype::Bool => {
                    let (byte, pred) = (self.reg(Class::B32), self.reg(Class::Pred));
                    asm!(self, "ld.param.u8 {byte}, [param_{index}]");
                    asm!(self, "setp.ne.s32 {pred}, {byte}, 0");
                    self.define(param.value, Lanes::Splat(pred));
                }
                ty => {
                    let reg = self.reg(Class::of(ty.dtype()));
                    asm!(self, "ld.param.{} {reg}, [param_{index}]", memory_type(ty.dtype()));
                    self.define(param.value, Lanes::Splat(reg));
                }
            }
        }
        if self.func.reports {
            let [generic, address] = [0; 2].map(|_| self.reg(Class::B64));
            asm!(self, "ld.param.u64 {generic}, [report]");
            asm!(self, "cvta.to.global.u64 {address}, {generic}");
            self.report_buffer = Some(address);
        }
    }

    /// Emits the ops of a region, except its terminator.
    fn region(&mut self, region: Region) {
        let func = self.func;
        let mut outside = Vec::new();
        for inst in &func.region(region).insts {
            self.note_run(&func.inst(*inst).op, &mut outside);
        }
        self.load_later(region);
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            let is_used = data.results.iter().any(|result| self.needed[result.index()]);
            if is_used || data.op.has_effects() {
                self.emit_loc(data.loc);
                // An op may contain others, as a reduction does.
                let around = std::mem::replace(&mut self.placed, exchange::shared::Placed::of(func.scratch[*inst].as_ref()));
                self.inst(*inst);
                debug_assert!(self.placed.is_used_up(), "`{}` leaves shared memory that it was given", data.op.name());
                self.placed = around;
            }
        }
        // Restore in reverse order.
        for (mask, run) in outside.into_iter().rev() {
            match run {
                Some(run) => self.runs.insert(mask, run),
                None => self.runs.remove(&mask),
            };
        }
    }

    /// Emits the user's line, for profilers and sanitizers.
    fn emit_loc(&mut self, loc: Loc) {
        if loc.is_some() && loc != self.loc && !self.func.files.is_empty() {
            self.asm.directive(format_args!(".loc {} {} {}", loc.file + 1, loc.line, loc.column));
            self.loc = loc;
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        if self.define_by_facts(data) {
            return;
        }
        match &data.op {
            Op::Const { .. }
            | Op::ProgramId { .. }
            | Op::NumPrograms { .. }
            | Op::Length { .. }
            | Op::Address { .. }
            | Op::Arange { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Fma { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. } => self.pure(&data.op, data.results[0]),
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => {
                self.reshape(&data.op, *x, data.results[0])
            }
            Op::Flip { x, axis } => self.flip(*x, *axis as usize, data.results[0]),
            Op::Convert { x } => self.convert(*x, data.results[0]),
            Op::Gather { src, index, axis } => self.gather(*src, *index, *axis as usize, data.results[0]),
            Op::Dot { a, b, acc, precision } => self.dot([*a, *b, *acc], *precision, data.results[0]),
            Op::Histogram { x, mask, .. } => self.histogram(*x, *mask, data.results[0]),
            Op::Butterfly { x, axis, bit } => self.butterfly(*x, *axis as usize, *bit, data.results[0]),
            Op::Sort { .. } => unreachable!("a verified kernel with layouts sorts by butterflies"),
            Op::Reduce { .. } | Op::Scan { .. } => self.reduce(&data.op, &data.results),
            Op::ReducePio2 { x } => self.reduce_pio2(*x, data.results[0], data.results[1]),
            Op::Pointer { address } => self.pointer(*address, data.results[0]),
            Op::View { base } => self.view(*base, data.results[0]),
            Op::InlinePtx { .. } => self.inline_ptx(&data.op, &data.results),
            Op::Load { .. } => self.load(&data.op, data.results[0]),
            Op::Store { .. } => self.store(&data.op),
            Op::Assert { cond, message, .. } => self.assertion(*cond, message, data.loc),
            Op::Atomic { .. } => self.atomic(&data.op, data.results.first().copied()),
            Op::Barrier {} => self.program_barrier(),
            Op::SyncThreads { threads, .. } if *threads == self.schedule.threads() => self.barrier(),
            Op::SyncThreads { .. } => self.program_barrier(),
            Op::GdcWait {} if self.target.ask(Target::has_dependent_launches) => asm!(self, "griddepcontrol.wait"),
            Op::GdcLaunchDependents {} if self.target.ask(Target::has_dependent_launches) => asm!(self, "griddepcontrol.launch_dependents"),
            // On such a target launches never overlap.
            Op::GdcWait {} | Op::GdcLaunchDependents {} => {}
            Op::AsyncBuffer { .. } => self.buffer(data.results[0]),
            Op::AsyncCopy { .. } => self.async_copy(&data.op),
            Op::AsyncCommitGroup {} => asm!(self, "cp.async.commit_group"),
            Op::AsyncWait { pending } => asm!(self, "cp.async.wait_group {pending}"),
            Op::LocalLoad { .. } => self.local_load(&data.op, data.results[0]),
            Op::IssueLoads { loads } => self.issue_loads(loads),
            Op::Report { base, offset, outside, kind } => self.report(*base, *offset, *outside, *kind, data.loc),
            Op::Worker {} => self.special("%ctaid.x", data.results[0]),
            Op::NumWorkers {} => self.special("%nctaid.x", data.results[0]),
            // The host decides which version runs.
            Op::RunsIf { .. } => {}
            Op::Roles { producer, consumer } => self.roles(*producer, *consumer),
            Op::Ring { slots } => self.ring(inst, *slots),
            Op::RingAcquire { ring } => self.ring_acquire(*ring),
            Op::CopyBlock { block, base, address, place, once, evict, tf32 } => {
                self.copy_block(*block, Tensor { base: *base, address: *address, place, tf32: *tf32 }, *once, *evict);
            }
            Op::StoreBlock { base, value, address, place, swapped } => {
                self.store_block(Tensor { base: *base, address: *address, place, tf32: false }, *value, *swapped);
            }
            Op::RingWait { ring } => self.ring_wait(*ring, &data.results),
            Op::ReadBlock { block } => self.read_block(*block, data.results[0]),
            Op::RingRelease { block } => self.ring_release(*block),
            Op::RingReleasePrevious { block, products } => self.ring_release_previous(*block, *products),
            Op::WarpgroupDot { a, b, acc, swapped, in_flight } => self.warpgroup_dot([*a, *b, *acc], *swapped, *in_flight, data.results[0]),
            Op::WarpgroupWait { ring, sums } => self.warpgroup_wait(*ring, sums, &data.results),
            Op::IfAny { mask, group, body } => self.if_any(*mask, *group as usize, *body, &data.results),
            Op::AnyInWarp { mask } => self.any_in_warp(*mask, data.results[0]),
            Op::If { .. } | Op::For { .. } | Op::While { .. } => self.control(&data.op, &data.results),
            Op::LaunchValue { compute } => self.launch_value(*compute, &data.results),
            Op::Return {} => {
                self.await_cluster();
                asm!(self, "ret");
            }
            Op::Yield { .. } | Op::Condition { .. } => {}
            Op::StaticIf { .. } | Op::StaticFor { .. } | Op::StaticAssert { .. } | Op::StaticPrint { .. } | Op::Print { .. } => {
                unreachable!("a verified kernel is specialised")
            }
        }
    }

    /// Defines a result from known facts rather than its op: affine indices, comparisons of indices, products of a sum.
    fn define_by_facts(&mut self, data: &InstData) -> bool {
        let func = self.func;
        let &[result] = &data.results[..] else { return false };
        if func.ty(result).is_tile()
            && data.op.is_pure()
            && let Some(affine) = self.facts.get(func, result)
        {
            self.index_tile(result, &affine);
            return true;
        }
        if let Some(test) = PositionTest::of(func, &mut self.facts, &data.op, result, &self.kept) {
            self.test_positions(&test, result);
            return true;
        }
        if let Some(test) = arithmetic::compare::bounds_test(func, &mut self.facts, &data.op) {
            self.test_bounds(test, result);
            return true;
        }
        let source = match data.op {
            Op::Binary { op: BinaryOp::And, lhs, rhs } => match (self.source(lhs), self.source(rhs)) {
                (Source::Tests(lhs), Source::Tests(rhs)) => match self.conjunction(lhs, rhs) {
                    Some(both) => Source::Tests(both),
                    None => return false,
                },
                _ => return false,
            },
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } if self.summed[result.index()] => Source::Product(lhs, rhs),
            _ => return false,
        };
        self.sources[result] = Some(source);
        true
    }
}
