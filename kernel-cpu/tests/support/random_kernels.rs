//! Random kernels, made from a list of choices, and tensors for them.

use std::cell::Cell;

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{AtomicOp, BinaryOp, Builder, CompareOp, ConstExpr, Domain, Function, Op, Precision, Region, Type, UnaryOp, Value};
use kernel_lang::location::Loc;
use kernel_lang::scalar::Scalar;

use super::{Buffer, Random, samples};

/// Elements of each tensor: fewer than a tile has, so that most accesses are ragged.
const LEN: usize = 300;

/// The decisions that make a kernel; 0 when they have run out, which ends it soon.
struct Choices<'a> {
    list: &'a [u16],
    at: Cell<usize>,
}

impl Choices<'_> {
    fn pick(&self, bound: usize) -> usize {
        let choice = self.list.get(self.at.get()).copied().unwrap_or(0);
        self.at.set(self.at.get() + 1);
        choice as usize % bound
    }

    fn of<T: Clone>(&self, list: &[T]) -> T {
        list[self.pick(list.len())].clone()
    }

    fn are_left(&self) -> bool {
        self.at.get() < self.list.len()
    }
}

/// The shapes in use: some larger than the chunk of a uniform tile, some with axes of extent 1, some kept with padding.
const SHAPES: [&[usize]; 11] = [&[256], &[16, 32], &[], &[16, 1], &[1, 32], &[1], &[2, 4, 64], &[32], &[96], &[3, 32], &[5, 4, 7]];

fn shape(extents: &[usize]) -> Vec<ConstExpr> {
    extents.iter().map(|extent| ConstExpr::Int(*extent as i128)).collect()
}

struct Maker<'a> {
    choices: &'a Choices<'a>,
    func: Function,
    region: Region,
    /// The values in scope, those of the outermost region first.
    scope: Vec<Value>,
    line: u32,
    /// Elements of each dtype to make constants of.
    samples: Vec<Vec<u64>>,
}

impl Maker<'_> {
    fn builder(&mut self) -> Builder<'_> {
        self.line += 1;
        Builder::new(&mut self.func, self.region, Loc::new(self.line, 1))
    }

    fn push(&mut self, op: Op, given: &[Type]) -> Value {
        let value = self.builder().op(op, given);
        self.scope.push(value);
        value
    }

    fn of_type(&mut self, ty: &Type) -> Value {
        let fits: Vec<Value> = self.scope.iter().copied().filter(|value| self.func.ty(*value) == ty).collect();
        // Sometimes a fresh one, so that values meet constants too.
        if fits.is_empty() || self.choices.pick(8) == 1 { self.fresh(ty) } else { self.choices.of(&fits) }
    }

    /// A new value of a type.
    fn fresh(&mut self, ty: &Type) -> Value {
        let dtype = ty.dtype();
        if dtype == Dtype::I64 && ty.is_tile() && self.choices.pick(3) != 0 {
            return self.index_tile(ty);
        }
        if ty.is_tile() && self.choices.pick(2) == 0 {
            let x = self.of_type(&Type::scalar(dtype));
            return self.push(Op::Broadcast { x }, std::slice::from_ref(ty));
        }
        let value = if dtype == Dtype::I64 && self.choices.pick(4) != 0 {
            ConstExpr::Int(self.choices.pick(70) as i128 - 20)
        } else {
            Scalar::from_bits(dtype, self.choices.of(&self.samples[dtype.code() as usize])).to_const()
        };
        self.push(Op::Const { value }, std::slice::from_ref(ty))
    }

    /// Offsets that run along the axes.
    fn index_tile(&mut self, ty: &Type) -> Value {
        let extents = ty.extents();
        let mut sum: Option<Value> = None;
        for axis in 0..extents.len() {
            if extents[axis] == 1 && extents.len() > 1 {
                continue;
            }
            let start = self.choices.of(&[0, 0, 0, 5, -7]);
            let end = start + extents[axis] as i128;
            let mut tile = self.push(Op::Arange { start: start.into(), end: end.into() }, &[]);
            for other in 0..extents.len() {
                if other != axis {
                    tile = self.push(Op::ExpandDims { x: tile, axis: other as u32 }, &[]);
                }
            }
            tile = self.broadcast(tile, ty);
            if axis + 1 < extents.len() || self.choices.pick(4) == 1 {
                let stride = self.choices.of(&[extents[axis + 1..].iter().product::<usize>() as i128, 1, 3, -1, 0]);
                let stride = self.push(Op::Const { value: stride.into() }, &[Type::scalar(Dtype::I64)]);
                let stride = self.broadcast(stride, ty);
                tile = self.push(Op::Binary { op: BinaryOp::Mul, lhs: tile, rhs: stride }, &[]);
            }
            sum = Some(match sum {
                Some(sum) => self.push(Op::Binary { op: BinaryOp::Add, lhs: sum, rhs: tile }, &[]),
                None => tile,
            });
        }
        let base = self.of_type(&Type::scalar(Dtype::I64));
        let base = self.broadcast(base, ty);
        match sum {
            Some(sum) => self.push(Op::Binary { op: BinaryOp::Add, lhs: sum, rhs: base }, &[]),
            None => base,
        }
    }

    fn broadcast(&mut self, x: Value, ty: &Type) -> Value {
        if self.func.ty(x) == ty { x } else { self.push(Op::Broadcast { x }, std::slice::from_ref(ty)) }
    }

    fn any_type(&self) -> Type {
        // Offsets, masks and one float type are common, so that ops find operands.
        let dtype = self.choices.of(&[Dtype::I64, Dtype::F32, Dtype::Bool, self.choices.of(&Dtype::ALL)]);
        Type::tile(dtype, shape(self.choices.of(&SHAPES)))
    }

    fn pointer(&mut self, dtype: Dtype, to_store: bool) -> Value {
        let fits = |value: &Value| matches!(self.func.ty(*value), Type::Pointer { elem, mutable } if elem.dtype() == Some(dtype) && (*mutable || !to_store));
        let pointers: Vec<Value> = self.func.params.iter().map(|param| param.value).filter(fits).collect();
        self.choices.of(&pointers)
    }

    fn mask(&mut self, ty: &Type) -> Option<Value> {
        (self.choices.pick(3) != 0).then(|| {
            let bools = ty.with_elem(Dtype::Bool);
            let first = self.condition(ty);
            if self.choices.pick(3) != 0 {
                return first;
            }
            let second = if self.choices.pick(2) == 0 { self.condition(ty) } else { self.of_type(&bools) };
            self.push(Op::Binary { op: BinaryOp::And, lhs: first, rhs: second }, &[])
        })
    }

    fn condition(&mut self, ty: &Type) -> Value {
        let indices = ty.with_elem(Dtype::I64);
        let (lhs, rhs) = (self.of_type(&indices), self.of_type(&indices));
        self.push(Op::Compare { op: self.choices.of(CompareOp::ALL), lhs, rhs }, &[])
    }

    fn step(&mut self, depth: usize) {
        let ty = self.any_type();
        let is_even = ty.is_tile() && ty.extents().iter().all(|extent| extent.is_power_of_two());
        match self.choices.pick(29) {
            0..=2 => {
                let op = self.choices.of(BinaryOp::ALL);
                if op.domain().contains(ty.dtype()) {
                    let (lhs, rhs) = (self.of_type(&ty), self.of_type(&ty));
                    self.push(Op::Binary { op, lhs, rhs }, &[]);
                }
            }
            3 => {
                let op = self.choices.of(UnaryOp::ALL);
                if op.domain().contains(ty.dtype()) {
                    let x = self.of_type(&ty);
                    self.push(Op::Unary { op, x }, &[]);
                }
            }
            4 => {
                let (lhs, rhs) = (self.of_type(&ty), self.of_type(&ty));
                self.push(Op::Compare { op: self.choices.of(CompareOp::ALL), lhs, rhs }, &[]);
            }
            5 => {
                let (cond, on_true, on_false) = (self.of_type(&ty.with_elem(Dtype::Bool)), self.of_type(&ty), self.of_type(&ty));
                self.push(Op::Select { cond, on_true, on_false }, &[]);
            }
            6 => {
                let x = self.of_type(&ty);
                self.push(Op::Cast { x }, &[ty.with_elem(self.choices.of(&Dtype::ALL))]);
            }
            7 => {
                // Not from floats: the bits of a NaN are nobody's promise.
                let to = self.choices.of(&Dtype::ALL);
                if !ty.dtype().is_float() && ty.dtype() != Dtype::Bool && to.bits() == ty.dtype().bits() {
                    let x = self.of_type(&ty);
                    self.push(Op::Bitcast { x }, &[ty.with_elem(to)]);
                }
            }
            8 if Domain::Float.contains(ty.dtype()) => {
                let (a, b, c) = (self.of_type(&ty), self.of_type(&ty), self.of_type(&ty));
                self.push(Op::Fma { a, b, c }, &[]);
            }
            9 => {
                let x = self.of_type(&Type::tile(ty.dtype(), shape(self.choices.of(&[&[16, 1][..], &[1, 32]]))));
                self.push(Op::Broadcast { x }, &[Type::tile(ty.dtype(), shape(&[16, 32]))]);
            }
            10..=12 => {
                let base = self.pointer(ty.dtype(), false);
                let offset = self.of_type(&ty.with_elem(Dtype::I64));
                let mask = self.mask(&ty);
                let other = (self.choices.pick(2) == 0).then(|| self.of_type(&ty));
                let plain = Op::Load {
                    base,
                    offset,
                    mask,
                    other,
                    cache: Default::default(),
                    evict: Default::default(),
                    volatile: false,
                    in_bounds: false,
                    align: 0,
                    partial: false,
                    shifted: false,
                    reader: Default::default(),
                };
                self.push(plain, &[]);
            }
            13 | 14 => {
                let value = self.of_type(&ty);
                let offset = self.of_type(&ty.with_elem(Dtype::I64));
                self.store(offset, value);
            }
            15 if depth < 2 => self.branch(depth),
            16 if depth < 2 => self.count(depth),
            17 if depth < 2 => self.repeat(depth),
            18 => {
                let x = self.of_type(&ty);
                let to = self.choices.of(&SHAPES);
                if to.iter().product::<usize>() == ty.numel() {
                    self.push(Op::Reshape { x }, &[Type::tile(ty.dtype(), shape(to))]);
                }
            }
            19 => {
                let x = self.of_type(&ty);
                let mut order: Vec<u32> = (0..ty.shape().len() as u32).collect();
                let by = self.choices.pick(3) % order.len().max(1);
                order.rotate_left(by);
                self.push(Op::Permute { x, order }, &[]);
            }
            20 if ty.is_tile() => self.combine(&ty),
            21 if ty.is_tile() => {
                let axis = self.choices.pick(ty.shape().len());
                let x = self.of_type(&ty);
                if ty.extents()[axis].is_power_of_two() {
                    self.push(Op::Flip { x, axis: axis as u32 }, &[]);
                }
            }
            22 => self.atomic(&ty),
            // Ops that move elements need extents that are powers of two.
            23 if is_even => {
                let axis = self.choices.pick(ty.shape().len());
                let mut to = ty.clone();
                if let Type::Tile { shape, .. } = &mut to {
                    shape[axis] = self.choices.of(&[1, 8, 32]).into();
                }
                let (src, index) = (self.of_type(&ty), self.of_type(&to.with_elem(Dtype::I64)));
                self.push(Op::Gather { src, index, axis: axis as u32 }, &[]);
            }
            24 if is_even && ty.dtype().is_int() => {
                let x = self.of_type(&ty);
                let mask = self.mask(&ty);
                self.push(Op::Histogram { x, mask, bins: self.choices.of(&[1, 16, 64]).into() }, &[]);
            }
            // Not of floats: sorting orders NaNs by their bits.
            25 if is_even && !ty.dtype().is_float() => {
                let x = self.of_type(&ty);
                self.push(Op::Sort { x, descending: self.choices.pick(2) == 1, count: None }, &[]);
            }
            27 => self.dot(),
            26 => {
                let word = self.choices.of(&[Op::GdcWait {}, Op::GdcLaunchDependents {}]);
                self.builder().try_op(word, &[]).unwrap();
            }
            _ => {
                let axis = self.choices.pick(3) as u32;
                self.push(self.choices.of(&[Op::ProgramId { axis }, Op::NumPrograms { axis }]), &[]);
            }
        }
    }

    /// A product of matrices of small integers, of which every order of additions gives the same sums.
    fn dot(&mut self) {
        let (left, right, sum, precision) = self.choices.of(&[
            (Dtype::F16, Dtype::F16, Dtype::F32, Precision::Ieee),
            (Dtype::F16, Dtype::F16, Dtype::F16, Precision::Ieee),
            (Dtype::Bf16, Dtype::Bf16, Dtype::F32, Precision::Ieee),
            (Dtype::F32, Dtype::F32, Dtype::F32, Precision::Ieee),
            (Dtype::F32, Dtype::F32, Dtype::F32, Precision::Tf32),
            (Dtype::F32, Dtype::F32, Dtype::F32, Precision::Tf32x3),
            (Dtype::F64, Dtype::F64, Dtype::F64, Precision::Ieee),
            (Dtype::I8, Dtype::U8, Dtype::I32, Precision::Ieee),
            (Dtype::U8, Dtype::I8, Dtype::I32, Precision::Ieee),
            (Dtype::F8E4M3, Dtype::F8E5M2, Dtype::F32, Precision::Ieee),
        ]);
        let least = if left.bytes() == 1 { &[20, 32][..] } else { &[16, 20, 32] };
        let [m, n, k] = [&[16, 24, 32][..], &[8, 12, 16], least].map(|extents| self.choices.of(extents));
        let batch: Option<i128> = self.choices.of(&[None, None, Some(1), Some(2), Some(3)]);
        let mut small = |rows: i128, columns: i128, from: Dtype, to: Dtype| {
            let shape = batch.into_iter().chain([rows, columns]).map(ConstExpr::from).collect();
            let ty = Type::tile(from, shape);
            let x = self.of_type(&ty);
            if from == to { x } else { self.push(Op::Cast { x }, &[ty.with_elem(to)]) }
        };
        // 8-bit floats do not hold every `i8`, nor does `f16` hold sums of many of them.
        let start = if left.is_float8() || sum == Dtype::F16 { Dtype::Bool } else { Dtype::I8 };
        let (a, b, acc) = (small(m, k, start, left), small(k, n, Dtype::Bool, right), small(m, n, Dtype::I8, sum));
        self.push(Op::Dot { a, b, acc, precision }, &[]);
    }

    /// A reduction or a scan by something that is exactly associative, so that every order gives the same.
    fn combine(&mut self, ty: &Type) {
        let is_int = ty.dtype().is_int();
        let inputs: Vec<Value> = (0..1 + usize::from(is_int)).map(|_| self.of_type(ty)).collect();
        let axis = self.choices.pick(ty.shape().len()) as u32;
        let reverse = self.choices.pick(2) == 1;
        let (is_scan, way) = (self.choices.pick(2) == 1, self.choices.pick(6));
        let scale = self.scope.iter().copied().find(|value| *self.func.ty(*value) == Type::scalar(ty.dtype()));
        let combine = |b: &mut Builder<'_>, x: &[Value], y: &[Value]| match way {
            0 => x.to_vec(),
            1 => y.to_vec(),
            // The other one, by way of a scalar from outside that is not used after all.
            2 => match scale {
                Some(scale) => {
                    let same = b.compare(CompareOp::Eq, scale, scale);
                    let never = b.unary(UnaryOp::Not, same);
                    let always = b.binary(BinaryOp::Or, same, never);
                    x.iter().zip(y).map(|(x, y)| b.select(always, *y, *x)).collect()
                }
                None => x.to_vec(),
            },
            3 if is_int => {
                let op = [BinaryOp::Add, BinaryOp::Xor, BinaryOp::Max][reverse as usize + is_scan as usize];
                x.iter().zip(y).map(|(x, y)| b.binary(op, *x, *y)).collect()
            }
            // Linear functions one after the other: associative, not commutative.
            _ if is_int => {
                let (slope, product) = (b.binary(BinaryOp::Mul, x[0], y[0]), b.binary(BinaryOp::Mul, x[1], y[0]));
                vec![slope, b.binary(BinaryOp::Add, product, y[1])]
            }
            _ => y.to_vec(),
        };
        let mut b = self.builder();
        let results = if is_scan { b.scan(inputs, axis, reverse, combine) } else { b.reduce(inputs, axis, combine) };
        self.scope.extend(results);
    }

    /// Not on floats: which NaN a sum is, is nobody's promise.
    fn atomic(&mut self, ty: &Type) {
        let op = self.choices.of(AtomicOp::ALL);
        if ty.dtype().is_float() || !op.dtypes().contains(&ty.dtype()) {
            return;
        }
        let base = self.pointer(ty.dtype(), op.writes());
        let offset = self.of_type(&ty.with_elem(Dtype::I64));
        let values = (0..op.operands()).map(|_| self.of_type(ty)).collect();
        let mask = self.mask(ty);
        let sem = self.choices.of(op.semantics());
        let atomic = Op::Atomic { base, offset, values, op, mask, sem, scope: Default::default(), in_bounds: false, align: 0 };
        let inst = self.builder().try_op(atomic, &[]).unwrap();
        self.scope.extend(self.func.inst(inst).results.clone());
        if self.choices.pick(4) == 0 {
            self.builder().try_op(Op::Barrier {}, &[]).unwrap();
        }
    }

    fn store(&mut self, offset: Value, value: Value) {
        let ty = self.func.ty(value).clone();
        let base = self.pointer(ty.dtype(), true);
        let mask = self.mask(&ty);
        let op = Op::Store {
            base,
            offset,
            value,
            mask,
            cache: Default::default(),
            evict: Default::default(),
            in_bounds: false,
            align: 0,
            partial: false,
            shifted: false,
        };
        self.builder().try_op(op, &[]).unwrap();
    }

    /// A region of a few steps that yields values of those types.
    fn inner(&mut self, region: Region, types: &[Type], depth: usize, end: impl FnOnce(&mut Self, Vec<Value>)) {
        let outer = std::mem::replace(&mut self.region, region);
        let scope = self.scope.len();
        let params = self.func.region(region).params.clone();
        self.scope.extend(params);
        (0..self.choices.pick(6)).for_each(|_| self.step(depth + 1));
        let values = types.iter().map(|ty| self.of_type(ty)).collect();
        end(self, values);
        self.scope.truncate(scope);
        self.region = outer;
    }

    fn yields(&mut self, values: Vec<Value>) {
        self.builder().yield_values(values);
    }

    fn types(&self) -> Vec<Type> {
        (0..self.choices.pick(4)).map(|_| self.any_type()).collect()
    }

    fn branch(&mut self, depth: usize) {
        let types = self.types();
        let cond = self.of_type(&Type::scalar(Dtype::Bool));
        let [then_region, else_region] = [self.func.add_region(), self.func.add_region()];
        for region in [then_region, else_region] {
            self.inner(region, &types, depth, Self::yields);
        }
        self.finish(Op::If { cond, then_region, else_region, rare: false }, &types);
    }

    fn finish(&mut self, op: Op, types: &[Type]) {
        let inst = self.builder().try_op(op, types).unwrap();
        self.scope.extend(self.func.inst(inst).results.clone());
    }

    fn count(&mut self, depth: usize) {
        let types = self.types();
        let init: Vec<Value> = types.iter().map(|ty| self.of_type(ty)).collect();
        let dtype = self.choices.of(&[Dtype::I64, Dtype::I32, Dtype::U8, Dtype::I8]);
        // A few rounds, none, and to the end of the type.
        let (lower, upper, step) = self.choices.of(&[(0, 3, 1), (1, 8, 3), (2, 2, 1), (100, 127, 20), (0, 3, 0), (5, 1, 1)]);
        let [lower, upper, step] =
            [lower, upper, step].map(|bound: i128| self.push(Op::Const { value: bound.into() }, &[Type::scalar(dtype)]));
        let body = self.func.add_region();
        self.func.add_region_param(body, Type::scalar(dtype));
        types.iter().for_each(|ty| _ = self.func.add_region_param(body, ty.clone()));
        self.inner(body, &types, depth, Self::yields);
        self.finish(Op::For { lower, upper, step, init, body, num_stages: None, unroll: None, remainder: false, guarded: false }, &types);
    }

    fn repeat(&mut self, depth: usize) {
        let mut types = self.types();
        types.push(Type::scalar(Dtype::I32));
        let mut init: Vec<Value> = types.iter().map(|ty| self.of_type(ty)).collect();
        *init.last_mut().unwrap() = self.push(Op::Const { value: 0.into() }, &[Type::scalar(Dtype::I32)]);
        let [test, body] = [self.func.add_region(), self.func.add_region()];
        for region in [test, body] {
            types.iter().for_each(|ty| _ = self.func.add_region_param(region, ty.clone()));
        }
        let rounds = self.choices.pick(4) as i128;
        self.inner(test, &types, depth, |maker, mut values| {
            let count = *maker.func.region(test).params.last().unwrap();
            *values.last_mut().unwrap() = count;
            let bound = maker.builder().int_like(rounds, count);
            let cond = maker.builder().compare(CompareOp::Lt, count, bound);
            maker.builder().try_op(Op::Condition { cond, values }, &[]).unwrap();
        });
        self.inner(body, &types, depth, |maker, mut values| {
            let count = *maker.func.region(body).params.last().unwrap();
            let one = maker.builder().int_like(1, count);
            *values.last_mut().unwrap() = maker.builder().binary(BinaryOp::Add, count, one);
            maker.yields(values);
        });
        self.finish(Op::While { init, test, body }, &types);
    }
}

/// The values of the scalars of such a kernel.
pub(crate) const SCALARS: [u64; 4] = [17, 0x4020_0000, 1, 0x3C00];

/// A kernel with a tensor to store to of every dtype, four to load from only, and some scalars.
pub(crate) fn make(list: &[u16]) -> Function {
    let choices = &Choices { list, at: Cell::new(0) };
    let mut func = Function::new("fuzz");
    let mut scope = Vec::new();
    for dtype in Dtype::ALL {
        func.add_param(format!("{dtype}s"), Type::Pointer { elem: dtype.into(), mutable: true });
    }
    for dtype in [Dtype::F32, Dtype::I64, Dtype::Bool, Dtype::Bf16] {
        func.add_param(format!("{dtype}_in"), Type::Pointer { elem: dtype.into(), mutable: false });
    }
    for dtype in [Dtype::I64, Dtype::F32, Dtype::Bool, Dtype::F16] {
        scope.push(func.add_param(format!("{dtype}_scalar"), Type::scalar(dtype)));
    }
    let region = func.body;
    let mut maker = Maker { choices, func, region, scope, line: 0, samples: Dtype::ALL.iter().map(|dtype| samples(*dtype, 8)).collect() };
    while choices.are_left() {
        maker.step(0);
    }
    // The values computed last are stored, so that the comparison sees them.
    for value in maker.scope.clone().into_iter().rev().take(12) {
        let ty = maker.func.ty(value).with_elem(Dtype::I64);
        let offset = if ty.is_tile() { maker.index_tile(&ty) } else { maker.of_type(&ty) };
        maker.store(offset, value);
    }
    maker.builder().try_op(Op::Return {}, &[]).unwrap();
    maker.func
}

/// Tensors of random elements, small integers among them, in the order of the parameters.
pub(crate) fn tensors(func: &Function, seed: u64) -> Vec<Option<Buffer>> {
    let mut random = Random(seed);
    let tensor = |dtype: Dtype, random: &mut Random| {
        let samples = samples(dtype, 30);
        let mut element = || match dtype {
            Dtype::I64 if random.below(4) != 0 => random.below(LEN + 20) as u64,
            _ => samples[random.below(samples.len())],
        };
        let elements: Vec<u64> = (0..LEN).map(|_| element()).collect();
        Buffer::new(dtype, &elements)
    };
    func.params.iter().map(|param| func.ty(param.value)).map(|ty| ty.is_pointer().then(|| tensor(ty.dtype(), &mut random))).collect()
}
