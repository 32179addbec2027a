//! A second executor, as naive as can be: every value is a list of elements, every op a loop over [`scalar`], memory a model.

use std::collections::{HashMap, VecDeque};

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, Function, Inst, Op, Precision, Region, Value};
use kernel_lang::scalar::{self, Scalar};

use crate::support::Buffer;

/// An argument of the kernel.
pub(crate) enum Arg<'a> {
    Tensor(&'a mut Buffer),
    Scalar(u64),
}

/// The first access outside its tensor: `(op, index, lane)`.
pub(crate) type Outside = (&'static str, i64, usize);

/// An access of one element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Touch {
    /// The number of the op among all that access memory, in the order of the text.
    pub(crate) access: usize,
    /// Which argument, and which of its elements.
    pub(crate) element: (usize, i64),
    pub(crate) op: &'static str,
}

struct Naive<'a, 'b> {
    func: &'a Function,
    args: Vec<Arg<'b>>,
    grid: [u32; 3],
    program: [u32; 3],
    values: HashMap<Value, Vec<Scalar>>,
    outside: Option<Outside>,
    touched: Vec<Touch>,
    /// The ops that access memory, numbered, and the one that runs.
    numbers: HashMap<Inst, usize>,
    access: usize,
    /// Did it wait for the launch before, and did it touch memory in front of that?
    waited: bool,
    touched_early: bool,
    /// How many wide accesses there were.
    wide: usize,
    /// The tiles that have arrived in the slots of async buffers.
    slots: HashMap<Value, Vec<Option<Vec<Scalar>>>>,
    /// The async copies since the last commit, and the committed groups in flight.
    open: Vec<Arriving>,
    groups: VecDeque<Vec<Arriving>>,
}

/// A slot of an async buffer, and what it gets.
type Arriving = (Value, usize, Vec<Scalar>);

/// Runs one program; returns the first access outside its tensor, which goes on as an unchecked run does.
pub(crate) fn run(func: &Function, args: Vec<Arg<'_>>, grid: [u32; 3], program: [u32; 3]) -> Option<Outside> {
    run_counting(func, args, grid, program).0
}

/// As [`run`]; also gives what it accessed.
pub(crate) fn run_tracing(func: &Function, args: Vec<Arg<'_>>, grid: [u32; 3], program: [u32; 3]) -> (Option<Outside>, Vec<Touch>) {
    let naive = finished(func, args, grid, program);
    (naive.outside, naive.touched)
}

/// Does a program touch memory before it waits for the launch before, or end without having waited?
pub(crate) fn is_early(func: &Function, args: Vec<Arg<'_>>, grid: [u32; 3], program: [u32; 3]) -> bool {
    let naive = finished(func, args, grid, program);
    naive.touched_early || !naive.waited
}

/// As [`run`]; also says how many accesses were wide. Panics where an access is not as aligned as it claims.
pub(crate) fn run_counting(func: &Function, args: Vec<Arg<'_>>, grid: [u32; 3], program: [u32; 3]) -> (Option<Outside>, usize) {
    let naive = finished(func, args, grid, program);
    (naive.outside, naive.wide)
}

fn finished<'a, 'b>(func: &'a Function, args: Vec<Arg<'b>>, grid: [u32; 3], program: [u32; 3]) -> Naive<'a, 'b> {
    let (values, slots, open, groups) = (HashMap::new(), HashMap::new(), Vec::new(), VecDeque::new());
    let (outside, waited, touched_early) = (None, false, false);
    let accesses = func.all_insts().into_iter().filter(|inst| func.inst(*inst).op.access().is_some());
    let numbers = accesses.enumerate().map(|(number, inst)| (inst, number)).collect();
    let (touched, access) = (Vec::new(), usize::MAX);
    let mut naive =
        Naive { func, args, grid, program, values, outside, touched, numbers, access, waited, touched_early, wide: 0, slots, open, groups };
    for (index, param) in func.params.iter().enumerate() {
        if let Arg::Scalar(bits) = naive.args[index] {
            naive.values.insert(param.value, vec![Scalar::from_bits(func.ty(param.value).dtype(), bits)]);
        }
    }
    naive.region(func.body);
    naive
}

fn index(value: Scalar) -> i64 {
    assert_eq!(value.dtype(), Dtype::I64);
    value.bits() as i64
}

impl Naive<'_, '_> {
    fn get(&self, value: Value) -> Vec<Scalar> {
        self.values[&value].clone()
    }

    fn gets(&self, values: &[Value]) -> Vec<Vec<Scalar>> {
        values.iter().map(|value| self.get(*value)).collect()
    }

    fn sets(&mut self, values: &[Value], to: Vec<Vec<Scalar>>) {
        self.values.extend(values.iter().copied().zip(to));
    }

    fn region(&mut self, region: Region) {
        let func = self.func;
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            self.access = self.numbers.get(inst).copied().unwrap_or(usize::MAX);
            let results = self.op(&data.op, &data.results);
            for (value, result) in data.results.iter().zip(&results) {
                assert_eq!(result.len(), func.ty(*value).numel(), "{}", data.op.name());
                assert!(result.iter().all(|scalar| scalar.dtype() == func.ty(*value).dtype()), "{}", data.op.name());
            }
            self.sets(&data.results, results);
        }
    }

    fn op(&mut self, op: &Op, results: &[Value]) -> Vec<Vec<Scalar>> {
        let func = self.func;
        let map2 = |a: Vec<Scalar>, b: Vec<Scalar>, f: &dyn Fn(Scalar, Scalar) -> Option<Scalar>| {
            vec![a.into_iter().zip(b).map(|(a, b)| f(a, b).unwrap()).collect()]
        };
        let i64s = |values: Vec<i64>| vec![values.into_iter().map(|value| Scalar::from_bits(Dtype::I64, value as u64)).collect()];
        match op {
            Op::Unary { op, x } => vec![self.get(*x).into_iter().map(|x| scalar::unary(*op, x).unwrap()).collect()],
            Op::Binary { op, lhs, rhs } => map2(self.get(*lhs), self.get(*rhs), &|a, b| scalar::binary(*op, a, b)),
            Op::Compare { op, lhs, rhs } => map2(self.get(*lhs), self.get(*rhs), &|a, b| scalar::compare(*op, a, b)),
            Op::Fma { a, b, c } => {
                let (a, b, c) = (self.get(*a), self.get(*b), self.get(*c));
                vec![(0..a.len()).map(|i| scalar::fma(a[i], b[i], c[i]).unwrap()).collect()]
            }
            Op::Select { cond, on_true, on_false } => {
                let (c, a, b) = (self.get(*cond), self.get(*on_true), self.get(*on_false));
                vec![(0..a.len()).map(|i| scalar::select(c[i], a[i], b[i]).unwrap()).collect()]
            }
            Op::Cast { x } => vec![self.get(*x).into_iter().map(|x| scalar::cast(x, func.ty(results[0]).dtype())).collect()],
            Op::Bitcast { x } => vec![self.get(*x).into_iter().map(|x| scalar::bitcast(x, func.ty(results[0]).dtype()).unwrap()).collect()],
            Op::ReducePio2 { x } => {
                self.get(*x).into_iter().map(|x| scalar::reduce_pio2(x).unwrap()).unzip::<_, _, Vec<_>, Vec<_>>().into_vec()
            }
            Op::Const { value } => {
                let ty = func.ty(results[0]);
                vec![vec![Scalar::from_const(value, ty.dtype()).unwrap(); ty.numel()]]
            }
            Op::ProgramId { axis } => i64s(vec![self.program[*axis as usize].into()]),
            Op::NumPrograms { axis } => i64s(vec![self.grid[*axis as usize].into()]),
            Op::Arange { start, end } => i64s((start.as_int().unwrap() as i64..end.as_int().unwrap() as i64).collect()),
            Op::ExpandDims { x, .. } => vec![self.get(*x)],
            Op::Reshape { x } => vec![self.get(*x)],
            Op::Permute { x, order } => {
                let from = self.get(*x);
                let extents = func.ty(*x).extents();
                let to = func.ty(results[0]).extents();
                let source = |lane: usize| {
                    let (mut rest, mut index) = (lane, vec![0; to.len()]);
                    for axis in (0..to.len()).rev() {
                        index[order[axis] as usize] = rest % to[axis];
                        rest /= to[axis];
                    }
                    index.iter().zip(&extents).fold(0, |at, (index, extent)| at * extent + index)
                };
                vec![(0..from.len()).map(|lane| from[source(lane)]).collect()]
            }
            Op::Flip { x, axis } => {
                let from = self.get(*x);
                let (_, extent, inner) = around(&func.ty(*x).extents(), *axis);
                let source = |lane: usize| {
                    let at = lane / inner % extent;
                    lane - at * inner + (extent - 1 - at) * inner
                };
                vec![(0..from.len()).map(|lane| from[source(lane)]).collect()]
            }
            Op::Reduce { inputs, axis, combine } => {
                let runs = self.scan(inputs, *axis, false, *combine);
                let (outer, extent, inner) = around(&func.ty(inputs[0]).extents(), *axis);
                let lasts =
                    |run: Vec<Scalar>| (0..outer * inner).map(|at| run[(at / inner * extent + extent - 1) * inner + at % inner]).collect();
                runs.into_iter().map(lasts).collect()
            }
            Op::Scan { inputs, axis, reverse, combine } => self.scan(inputs, *axis, *reverse, *combine),
            Op::Convert { .. } | Op::IssueLoads { .. } | Op::IfAny { .. } | Op::AnyInWarp { .. } | Op::SyncThreads { .. } => {
                panic!("the CPU has no layouts")
            }
            Op::Worker {}
            | Op::NumWorkers {}
            | Op::RunsIf { .. }
            | Op::Roles { .. }
            | Op::Ring { .. }
            | Op::RingAcquire { .. }
            | Op::CopyBlock { .. }
            | Op::StoreBlock { .. }
            | Op::RingWait { .. }
            | Op::ReadBlock { .. }
            | Op::RingRelease { .. }
            | Op::RingReleasePrevious { .. }
            | Op::WarpgroupWait { .. }
            | Op::WarpgroupDot { .. } => panic!("the CPU has no roles"),
            Op::Broadcast { x } => vec![self.broadcast(*x, results[0])],
            Op::Length { base } => i64s(vec![self.length(*base)]),
            Op::Address { base } => i64s(vec![self.tensor(*base).args()[0] as i64]),
            Op::Load { base, offset, mask, other, align, .. } => vec![self.load(*base, *offset, *mask, *other, *align)],
            Op::AsyncBuffer { slots, .. } => {
                let ty = func.ty(results[0]);
                let nothing = Scalar::from_bits(ty.dtype(), 0);
                self.slots.insert(results[0], vec![None; *slots as usize]);
                vec![vec![nothing; ty.numel()]]
            }
            Op::AsyncCopy { buffer, slot, on, base, offset, mask, align, partial, .. } => {
                if self.get(*on)[0].bits() != 0 {
                    let (slot, mut elements) = (self.get(*slot)[0].bits() as usize, self.load(*base, *offset, *mask, None, *align));
                    if *partial {
                        // A copy of whole runs leaves anything where the mask does not hold.
                        let dtype = func.ty(*base).dtype();
                        self.replace_masked(*mask, Scalar::from_bits(dtype, 0x55), &mut elements);
                    }
                    // Until it arrives nobody may look.
                    self.slots.get_mut(buffer).unwrap()[slot] = None;
                    self.open.push((*buffer, slot, elements));
                }
                Vec::new()
            }
            Op::AsyncCommitGroup {} => {
                let group = std::mem::take(&mut self.open);
                self.groups.push_back(group);
                Vec::new()
            }
            Op::AsyncWait { pending } => {
                while self.groups.len() > *pending as usize {
                    for (buffer, slot, elements) in self.groups.pop_front().unwrap() {
                        self.slots.get_mut(&buffer).unwrap()[slot] = Some(elements);
                    }
                }
                Vec::new()
            }
            Op::LocalLoad { buffer, slot, mask, first, .. } => {
                let slot = self.get(*slot)[0].bits() as usize;
                let mut elements = self.slots[buffer][slot].clone().expect("what was local_load has arrived");
                if let Some(first) = first {
                    elements = part(&elements, &func.ty(*buffer).extents(), first, &func.ty(results[0]).extents());
                }
                self.replace_masked(*mask, Scalar::from_bits(func.ty(results[0]).dtype(), 0), &mut elements);
                vec![elements]
            }
            Op::Store { base, offset, value, mask, align, .. } => {
                self.check_alignment(*base, *offset, *mask, *align);
                let (offsets, values) = (self.get(*offset), self.get(*value));
                let mask = mask.map(|mask| self.get(mask));
                for (lane, (offset, value)) in offsets.into_iter().zip(values).enumerate() {
                    if mask.as_ref().is_none_or(|mask| mask[lane].bits() != 0) && self.inside("store", *base, offset, lane) {
                        self.tensor(*base).set(index(offset) as usize, value.bits());
                    }
                }
                Vec::new()
            }
            Op::Atomic { base, offset, values, op, mask, .. } => {
                let (offsets, values) = (self.get(*offset), self.gets(values));
                let mask = mask.map(|mask| self.get(mask));
                let dtype = func.ty(*base).dtype();
                let mut olds = vec![Scalar::from_bits(dtype, 0); offsets.len()];
                for (lane, offset) in offsets.into_iter().enumerate() {
                    if mask.as_ref().is_none_or(|mask| mask[lane].bits() != 0) && self.inside(op.builtin(), *base, offset, lane) {
                        let at = index(offset) as usize;
                        let bits = self.tensor(*base).get(at);
                        let old = Scalar::from_bits(dtype, if dtype == Dtype::Bool { u64::from(bits != 0) } else { bits });
                        let operands: Vec<Scalar> = values.iter().map(|value| value[lane]).collect();
                        if op.writes() {
                            self.tensor(*base).set(at, scalar::atomic(*op, old, &operands).unwrap().bits());
                        }
                        olds[lane] = old;
                    }
                }
                if op.has_result() { vec![olds] } else { Vec::new() }
            }
            Op::GdcWait {} => {
                self.waited = true;
                Vec::new()
            }
            Op::Barrier {} | Op::GdcLaunchDependents {} => Vec::new(),
            Op::Gather { src, index: at, axis } => {
                let (elements, at) = (self.get(*src), self.get(*at));
                let (_, from, inner) = around(&func.ty(*src).extents(), *axis);
                let (_, count, _) = around(&func.ty(results[0]).extents(), *axis);
                let element = |(lane, at): (usize, &Scalar)| match usize::try_from(index(*at)) {
                    Ok(at) if at < from => elements[(lane / (count * inner) * from + at) * inner + lane % inner],
                    _ => Scalar::from_bits(func.ty(*src).dtype(), 0),
                };
                vec![at.iter().enumerate().map(element).collect()]
            }
            Op::Dot { a, b, acc, precision } => {
                let (left, right, sums) = (self.get(*a), self.get(*b), self.get(*acc));
                let [.., m, k] = func.ty(*a).extents()[..] else { unreachable!("a matrix has two axes") };
                let n = *func.ty(*b).extents().last().unwrap();
                let own = sums[0].dtype();
                let wide = if own == Dtype::F16 { Dtype::F32 } else { own };
                let factor = |x: Scalar| match *precision {
                    Precision::Tf32 => {
                        let rounded = scalar::tf32(f32::from_bits(x.bits() as u32));
                        Scalar::from_bits(Dtype::F32, rounded.to_bits().into())
                    }
                    _ => scalar::cast(x, wide),
                };
                let sum = |lane: usize| {
                    let (batch, row, column) = (lane / (m * n), lane / n, lane % n);
                    let mut sum = scalar::cast(sums[lane], wide);
                    for at in 0..k {
                        let (x, y) = (factor(left[row * k + at]), factor(right[(batch * k + at) * n + column]));
                        sum = scalar::fma(x, y, sum).unwrap_or_else(|| {
                            let product = scalar::binary(BinaryOp::Mul, x, y).unwrap();
                            scalar::binary(BinaryOp::Add, sum, product).unwrap()
                        });
                    }
                    scalar::cast(sum, own)
                };
                vec![(0..sums.len()).map(sum).collect()]
            }
            Op::Histogram { x, mask, .. } => {
                let (elements, mask) = (self.get(*x), mask.map(|mask| self.get(mask)));
                let counted = |bin: usize| {
                    let is_it = |lane: &usize| super::int(elements[*lane].dtype(), elements[*lane].bits()) == bin as i128;
                    let lanes = (0..elements.len()).filter(|lane| mask.as_ref().is_none_or(|mask| mask[*lane].bits() != 0));
                    Scalar::from_bits(Dtype::I32, lanes.filter(is_it).count() as u64)
                };
                vec![(0..func.ty(results[0]).numel()).map(counted).collect()]
            }
            Op::Sort { x, descending, .. } => {
                // Taking the next one each time.
                let extent = *func.ty(*x).extents().last().unwrap();
                let key = |x: &Scalar| if x.dtype() == Dtype::Bool { x.bits().into() } else { super::int(x.dtype(), x.bits()) };
                let mut sorted = Vec::new();
                for row in self.get(*x).chunks(extent) {
                    let mut left = row.to_vec();
                    while let Some(first) = left.iter().map(key).reduce(|a, b| if *descending { a.max(b) } else { a.min(b) }) {
                        sorted.push(left.swap_remove(left.iter().position(|x| key(x) == first).unwrap()));
                    }
                }
                vec![sorted]
            }
            Op::Butterfly { x, axis, bit } => {
                let elements = self.get(*x);
                let (_, _, inner) = around(&func.ty(*x).extents(), *axis);
                vec![(0..elements.len()).map(|lane| elements[lane ^ (inner << bit)]).collect()]
            }
            Op::LaunchValue { compute } => {
                self.region(*compute);
                self.gets(func.yielded(*compute))
            }
            Op::If { cond, then_region, else_region, .. } => {
                let region = if self.get(*cond)[0].bits() != 0 { *then_region } else { *else_region };
                self.region(region);
                self.gets(func.yielded(region))
            }
            Op::For { lower, upper, step, init, body, .. } => {
                let dtype = func.ty(*lower).dtype();
                let bound = |value: Value| super::int(dtype, self.get(value)[0].bits());
                let (mut at, upper, step) = (bound(*lower), bound(*upper), bound(*step));
                let mut carried = self.gets(init);
                while step > 0 && at < upper {
                    let (first, rest) = func.region(*body).params.split_first().unwrap();
                    self.values.insert(*first, vec![Scalar::from_bits(dtype, super::int_bits(dtype, at))]);
                    self.sets(rest, carried);
                    self.region(*body);
                    carried = self.gets(func.yielded(*body));
                    at += step;
                }
                carried
            }
            Op::While { init, test, body } => {
                let mut carried = self.gets(init);
                loop {
                    self.sets(&func.region(*test).params, carried);
                    self.region(*test);
                    carried = self.gets(func.yielded(*test));
                    let Op::Condition { cond, .. } = &func.inst(func.terminator(*test)).op else { panic!("no condition") };
                    if self.get(*cond)[0].bits() == 0 {
                        return carried;
                    }
                    self.sets(&func.region(*body).params, carried);
                    self.region(*body);
                    carried = self.gets(func.yielded(*body));
                }
            }
            Op::Yield { .. } | Op::Condition { .. } | Op::Return {} => Vec::new(),
            Op::Assert { .. } => Vec::new(),
            Op::InlinePtx { .. } | Op::Pointer { .. } | Op::View { .. } => panic!("no kernel here has one"),
            Op::Report { .. }
            | Op::StaticIf { .. }
            | Op::StaticFor { .. }
            | Op::StaticAssert { .. }
            | Op::StaticPrint { .. }
            | Op::Print { .. } => panic!("not specialised"),
        }
    }

    fn load(&mut self, base: Value, offset: Value, mask: Option<Value>, other: Option<Value>, align: u32) -> Vec<Scalar> {
        self.check_alignment(base, offset, mask, align);
        let offsets = self.get(offset);
        let mask = mask.map(|mask| self.get(mask));
        let other = other.map(|other| self.get(other));
        let dtype = self.func.ty(base).dtype();
        let lanes = offsets.into_iter().enumerate().map(|(lane, offset)| {
            let rest = other.as_ref().map_or(Scalar::from_bits(dtype, 0), |other| other[lane]);
            if mask.as_ref().is_some_and(|mask| mask[lane].bits() == 0) || !self.inside("load", base, offset, lane) {
                return rest;
            }
            let bits = self.tensor(base).get(index(offset) as usize);
            Scalar::from_bits(dtype, if dtype == Dtype::Bool { u64::from(bits != 0) } else { bits })
        });
        lanes.collect()
    }

    /// Replaces the elements that a mask excludes.
    fn replace_masked(&self, mask: Option<Value>, by: Scalar, elements: &mut [Scalar]) {
        let Some(mask) = mask.map(|mask| self.get(mask)) else { return };
        elements.iter_mut().zip(mask).filter(|(_, kept)| kept.bits() == 0).for_each(|(element, _)| *element = by);
    }

    /// One element after the other.
    fn scan(&mut self, inputs: &[Value], axis: u32, reverse: bool, combine: Region) -> Vec<Vec<Scalar>> {
        let func = self.func;
        let mut runs = self.gets(inputs);
        let (outer, extent, inner) = around(&func.ty(inputs[0]).extents(), axis);
        for at in 0..outer * inner {
            let index = |step: usize| (at / inner * extent + if reverse { extent - 1 - step } else { step }) * inner + at % inner;
            for step in 1..extent {
                let element = |runs: &[Vec<Scalar>], step: usize| runs.iter().map(|run| vec![run[index(step)]]).collect::<Vec<_>>();
                let both = [element(&runs, step - 1), element(&runs, step)].concat();
                self.sets(&func.region(combine).params, both);
                self.region(combine);
                let next = self.gets(func.yielded(combine));
                runs.iter_mut().zip(next).for_each(|(run, next)| run[index(step)] = next[0]);
            }
        }
        runs
    }

    fn broadcast(&self, x: Value, result: Value) -> Vec<Scalar> {
        let from = self.get(x);
        let to = self.func.ty(result).extents();
        let mut small = self.func.ty(x).extents();
        small.resize(to.len(), 1);
        let lanes: usize = to.iter().product();
        let source = |lane: usize| {
            let (mut rest, mut at, mut stride) = (lane, 0, 1);
            for axis in (0..to.len()).rev() {
                at += (rest % to[axis]).min(small[axis] - 1) * stride;
                rest /= to[axis];
                stride *= small[axis];
            }
            at
        };
        (0..lanes).map(|lane| from[source(lane)]).collect()
    }

    fn length(&mut self, base: Value) -> i64 {
        self.tensor(base).len as i64
    }

    fn tensor(&mut self, base: Value) -> &mut Buffer {
        match &mut self.args[self.func.param_index(base).unwrap()] {
            Arg::Tensor(buffer) => buffer,
            Arg::Scalar(_) => panic!("a pointer is a tensor"),
        }
    }

    /// Along one of the axes, the first element of each run lies as aligned as the access says, and the others follow it.
    fn check_alignment(&mut self, base: Value, offset: Value, mask: Option<Value>, align: u32) {
        // Where nothing moves, nothing is claimed.
        if align == 0 || mask.is_some_and(|mask| self.get(mask).iter().all(|lane| lane.bits() == 0)) {
            return;
        }
        self.wide += 1;
        let (extents, offsets) = (self.func.ty(offset).extents(), self.get(offset));
        let (bytes, address) = (self.func.ty(base).dtype().bytes() as u64, self.tensor(base).args()[0]);
        let runs_along = |axis: usize| {
            let step: usize = extents[axis + 1..].iter().product();
            (0..offsets.len()).all(|at| match at / step % extents[axis] {
                0 => address.wrapping_add(offsets[at].bits().wrapping_mul(bytes)).is_multiple_of(align.into()),
                _ => offsets[at - step].bits().wrapping_add(1) == offsets[at].bits(),
            })
        };
        assert!((0..extents.len()).any(runs_along), "no runs aligned to {align}\n{}", self.func);
    }

    fn inside(&mut self, op: &'static str, base: Value, offset: Scalar, lane: usize) -> bool {
        let inside = (0..self.length(base)).contains(&index(offset));
        self.touched_early |= inside && !self.waited;
        if inside {
            let argument = self.func.param_index(base).expect("a pointer is a parameter");
            self.touched.push(Touch { access: self.access, element: (argument, index(offset)), op });
        } else {
            self.outside.get_or_insert((op, index(offset), lane));
        }
        inside
    }
}

/// How many elements stand in front of an axis, along it and behind it.
fn around(extents: &[usize], axis: u32) -> (usize, usize, usize) {
    let (outer, rest) = extents.split_at(axis as usize);
    (outer.iter().product(), rest[0], rest[1..].iter().product())
}

trait IntoVec<T> {
    fn into_vec(self) -> Vec<T>;
}

impl<T> IntoVec<T> for (T, T) {
    fn into_vec(self) -> Vec<T> {
        vec![self.0, self.1]
    }
}

/// The elements of a part of a tile, which begins at the index `first`.
fn part(tile: &[Scalar], extents: &[usize], first: &[u32], of_part: &[usize]) -> Vec<Scalar> {
    let element = |mut at: usize| {
        let (mut index, mut stride) = (0, 1);
        for axis in (0..extents.len()).rev() {
            index += (first[axis] as usize + at % of_part[axis]) * stride;
            (at, stride) = (at / of_part[axis], stride * extents[axis]);
        }
        tile[index]
    };
    (0..of_part.iter().product()).map(element).collect()
}
