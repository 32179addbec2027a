//! Pairs of neighbours: two accesses of every other element become one access of elements that are twice as wide.
//!
//! ```text
//! ; before
//! ; then cse, dce
//! kernel @swap(%x: ptr<bf16>, %y: ptr_mut<bf16>) {
//!     %0 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %1 = const {value = 2} : tile<i64, [512]>
//!     %2 = mul %0, %1 : tile<i64, [512]>
//!     %3 = const {value = 1} : tile<i64, [512]>
//!     %4 = add %2, %3 : tile<i64, [512]>
//!     %5 = load %x, %2 : tile<bf16, [512]>
//!     %6 = load %x, %4 : tile<bf16, [512]>
//!     store %y, %2, %6
//!     store %y, %4, %5
//!     return
//! }
//! ; after
//! kernel @swap(%x: ptr<bf16>, %y: ptr_mut<bf16>) {
//!     %0 = view %x : ptr<u32>
//!     %1 = view %y : ptr_mut<u32>
//!     %2 = address %x : i64
//!     %3 = length %x : i64
//!     %4 = const {value = 3} : i64
//!     %5 = and %2, %4 : i64
//!     %6 = const {value = 1} : i64
//!     %7 = and %3, %6 : i64
//!     %8 = address %y : i64
//!     %9 = length %y : i64
//!     %10 = and %8, %4 : i64
//!     %11 = and %9, %6 : i64
//!     %12 = const {value = 0} : i64
//!     %13 = or %5, %7 : i64
//!     %14 = or %13, %10 : i64
//!     %15 = or %14, %11 : i64
//!     %16 = eq %15, %12 : bool
//!     if %16 {rare = true} () {
//!         %17 = arange {start = 0, end = 512} : tile<i64, [512]>
//!         %18 = load %0, %17 : tile<u32, [512]>
//!         %19 = const {value = 16} : tile<u32, [512]>
//!         %20 = shr %18, %19 : tile<u32, [512]>
//!         %21 = cast %18 : tile<u16, [512]>
//!         %22 = bitcast %21 : tile<bf16, [512]>
//!         %23 = cast %20 : tile<u16, [512]>
//!         %24 = bitcast %23 : tile<bf16, [512]>
//!         %25 = bitcast %24 : tile<u16, [512]>
//!         %26 = cast %25 : tile<u32, [512]>
//!         %27 = bitcast %22 : tile<u16, [512]>
//!         %28 = cast %27 : tile<u32, [512]>
//!         %29 = shl %28, %19 : tile<u32, [512]>
//!         %30 = or %26, %29 : tile<u32, [512]>
//!         store %1, %17, %30
//!         yield
//!     } () {
//!         %31 = arange {start = 0, end = 512} : tile<i64, [512]>
//!         %32 = const {value = 2} : tile<i64, [512]>
//!         %33 = mul %31, %32 : tile<i64, [512]>
//!         %34 = const {value = 1} : tile<i64, [512]>
//!         %35 = add %33, %34 : tile<i64, [512]>
//!         %36 = load %x, %33 : tile<bf16, [512]>
//!         %37 = load %x, %35 : tile<bf16, [512]>
//!         store %y, %33, %37
//!         store %y, %35, %36
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Complex numbers, rotary embeddings of neighbours and pixels of several channels are accessed like this. Each instruction of the kernel as written moves
//! whole sectors and uses half of each. The pass finds accesses of one tensor whose indices are even, and one more. Both become one access of
//! a [view](Op::View) of the tensor, and shifts take its integers apart. All other passes see an access of neighbours in a tile that is as
//! large as before. Pairs of pairs are four neighbours, so the pass runs again on its result.
//!
//! - **Condition.** The host knows whether a launch meets it: each tensor begins at a multiple of the wider elements, and its length fills the last one;
//!   factors that the kernel does not know to be even are even. The kernel as it was runs in other launches.
//! - **Indices** (`pair_accesses/halves.rs`). An index of the view is half of the lower index. That is so unless a product overflows. So the
//!   condition bounds products of arguments, and what else is in the index has bounds of its own.
//! - **Order.** A pair of loads is where the first one was, a pair of stores where the second one was. No access in between may meet
//!   the one that moves.

mod halves;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_insts, substitute};
use crate::ir::{Access, AccessKind, BinaryOp, Builder, Cache, ConstExpr, Evict, Function, Inst, Op, Region, Type, Value, may_alias};
use crate::location::Loc;
use crate::scalar::Scalar;

use halves::{Halves, Sum, Sums};

/// Longer kernels are not copied.
const MOST_OPS: usize = 2000;
/// Pairs of pairs of pairs of bytes fill the widest integer.
const MOST_ROUNDS: usize = 3;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut halves = Halves::default();
    if !may_have_pairs(func) || found(func, func.body, &mut halves).is_empty() {
        return false;
    }
    let (end, ops) = func.region(func.body).insts.split_last().map(|(end, ops)| (*end, ops.to_vec())).expect("there are accesses");
    let [head, paired, plain] = [0; 3].map(|_| func.add_region());
    *func.insts_mut(paired) = ops;
    copy_insts(func, paired, plain, &mut Substitution::new());
    for region in [paired, plain] {
        Builder::new(func, region, Loc::NONE).yield_values(Vec::new());
    }
    let mut views = Views { head, of: FxHashMap::default() };
    for _ in 0..MOST_ROUNDS {
        let pairs = found(func, paired, &mut halves);
        if pairs.is_empty() {
            break;
        }
        halves.choose();
        rewrite(func, paired, &pairs, &halves, &mut views);
    }
    let cond = views.test(func, &halves);
    let branch = func.make_inst(Op::If { cond, then_region: paired, else_region: plain, rare: !halves.often_fail() }, [], Loc::NONE);
    let mut all = std::mem::take(func.insts_mut(head));
    all.extend([branch, end]);
    *func.insts_mut(func.body) = all;
    true
}

/// The pairs of accesses that the pass joins, each in program order.
pub(crate) fn pairs(func: &Function) -> Vec<[Inst; 2]> {
    let pairs = if may_have_pairs(func) { found(func, func.body, &mut Halves::default()) } else { Vec::new() };
    pairs.into_iter().map(|pair| pair.accesses).collect()
}

/// Are there two loads from one tensor, or two stores to one?
fn may_have_pairs(func: &Function) -> bool {
    // A report names an access as the user wrote it.
    if func.reports || func.all_insts().len() > MOST_OPS {
        return false;
    }
    let mut seen = FxHashSet::default();
    let accesses = func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access());
    accesses.map(|access| (access.base, access.kind == AccessKind::Store)).any(|kin| !seen.insert(kin))
}

/// Two accesses of neighbours.
struct Pair {
    region: Region,
    /// The first one in the program, and the second one.
    accesses: [Inst; 2],
    /// Does the second one have the lower index?
    is_reversed: bool,
    /// The lower index.
    index: Sum,
}

impl Pair {
    /// The access of the lower index, and that of the higher one.
    fn by_index(&self) -> [Inst; 2] {
        let [first, second] = self.accesses;
        if self.is_reversed { [second, first] } else { [first, second] }
    }
}

/// The properties that the accesses of a pair share.
#[derive(PartialEq, Eq, Hash)]
struct Kin {
    is_store: bool,
    base: Value,
    mask: Option<Value>,
    cache: Cache,
    evict: Evict,
    /// The index without its constant.
    rest: Sum,
}

/// The pairs of a region and of the regions in it.
fn found(func: &Function, region: Region, halves: &mut Halves) -> Vec<Pair> {
    let (mut sums, mut pairs) = (Sums::new(), Vec::new());
    for region in func.regions_under(region) {
        // The accesses that wait for a neighbour, with their indices.
        let mut open: FxHashMap<Kin, Vec<(Inst, Sum)>> = FxHashMap::default();
        for inst in func.region(region).insts.iter().copied() {
            let op = &func.inst(inst).op;
            let access = op.access().filter(|access| !matches!(access.kind, AccessKind::Atomic(_)));
            let Some(Access { kind, base, offset, .. }) = access else {
                if op.has_effects() {
                    open.clear();
                }
                continue;
            };
            let described = described(func, &mut sums, op);
            let extents = func.ty(offset).extents();
            let pair = described.as_ref().and_then(|(kin, index)| {
                let others = open.get_mut(kin)?;
                let at = others.iter().position(|(_, other)| other.is_beside(index) && halves.admit(func, other.lower(index), &extents))?;
                let (first, other) = others.swap_remove(at);
                let lower = other.lower(index);
                Some(Pair { region, accesses: [first, inst], is_reversed: lower == index, index: lower.clone() })
            });
            // A store that waits would move over this access, and a load that waits would have its neighbour moved over this store.
            open.retain(|kin, _| match kind {
                AccessKind::Load => !kin.is_store || !may_alias(func, base, kin.base),
                _ => !may_alias(func, kin.base, base),
            });
            match (described, pair) {
                (_, Some(pair)) => pairs.push(pair),
                (Some((kin, index)), None) => open.entry(kin).or_default().push((inst, index)),
                (None, None) => {}
            }
        }
    }
    pairs
}

/// The properties that a load or a store shares with its neighbour, and its index; `None` if it cannot be one of a pair.
fn described(func: &Function, sums: &mut Sums, op: &Op) -> Option<(Kin, Sum)> {
    let Access { base, offset, mask, .. } = op.access()?;
    let (is_store, cache, evict) = match *op {
        Op::Load { cache, evict, other, volatile: false, align: 0, partial: false, .. }
            if other.is_none_or(|other| bits(func, other).is_some()) =>
        {
            (false, cache, evict)
        }
        Op::Store { cache, evict, align: 0, partial: false, .. } => (true, cache, evict),
        _ => return None,
    };
    let is_tensor = func.param_index(func.viewed(base)).is_some();
    if !is_tensor || !func.ty(offset).is_tile() || Widths::of(func.ty(base).dtype()).is_none() {
        return None;
    }
    let index = sums.get(func, offset);
    Some((Kin { is_store, base, mask, cache, evict, rest: index.without_constant() }, index))
}

/// The unsigned integers as wide as an element, and as two.
struct Widths {
    one: Dtype,
    two: Dtype,
}

impl Widths {
    fn of(dtype: Dtype) -> Option<Widths> {
        let [one, two] = match dtype.bits() {
            8 => [Dtype::U8, Dtype::U16],
            16 => [Dtype::U16, Dtype::U32],
            32 => [Dtype::U32, Dtype::U64],
            _ => return None,
        };
        Some(Widths { one, two })
    }

    fn of_pair(dtype: Dtype) -> Widths {
        Widths::of(dtype).expect("elements of a pair are not wider than 32 bits")
    }
}

/// The views of tensors, and the region in front of the branch.
struct Views {
    head: Region,
    of: FxHashMap<Value, Value>,
}

impl Views {
    fn of(&mut self, func: &mut Function, base: Value) -> Value {
        *self.of.entry(base).or_insert_with(|| {
            let Type::Pointer { mutable, .. } = *func.ty(base) else { unreachable!("an access has a pointer") };
            let Widths { two, .. } = Widths::of_pair(func.ty(base).dtype());
            let ty = Type::Pointer { elem: two.into(), mutable };
            Builder::new(func, self.head, Loc::NONE).op(Op::View { base }, &[ty])
        })
    }

    /// Appends the condition: the widest views are whole, and so are the halves of the indices.
    fn test(&self, func: &mut Function, halves: &Halves) -> Value {
        let mut widest: FxHashMap<Value, usize> = FxHashMap::default();
        for view in self.of.values() {
            let bytes = widest.entry(func.viewed(*view)).or_default();
            *bytes = func.ty(*view).dtype().bytes().max(*bytes);
        }
        let mut widest: Vec<(Value, usize)> = widest.into_iter().collect();
        widest.sort_unstable();
        let b = &mut Builder::new(func, self.head, Loc::NONE);
        let mut rests = Vec::new();
        for (base, bytes) in widest {
            let elements = bytes / b.func.ty(base).dtype().bytes();
            for (number, of) in [(b.address(base), bytes), (b.length(base), elements)] {
                let low_bits = b.index(of as i128 - 1);
                rests.push(b.binary(BinaryOp::And, number, low_bits));
            }
        }
        halves.test(b, rests)
    }
}

/// Replaces each pair in `within` by one access.
fn rewrite(func: &mut Function, within: Region, pairs: &[Pair], halves: &Halves, views: &mut Views) {
    let (mut replaced, mut with) = (FxHashMap::default(), Substitution::new());
    for pair in pairs {
        let [first, second] = pair.accesses;
        let [lower, upper] = pair.by_index().map(|inst| func.inst(inst).clone());
        let (scratch, loc) = (func.add_region(), func.inst(first).loc);
        let (at, gone) = match (&lower.op, &upper.op) {
            (Op::Load { base, .. }, Op::Load { .. }) => {
                let view = views.of(func, *base);
                let [low, high] = load(&mut Builder::new(func, scratch, loc), [&lower.op, &upper.op], view, &pair.index, halves);
                with.insert(lower.results[0], low);
                with.insert(upper.results[0], high);
                (first, second)
            }
            (Op::Store { base, value: low, .. }, Op::Store { value: high, .. }) => {
                let view = views.of(func, *base);
                store(&mut Builder::new(func, scratch, loc), [&lower.op, &upper.op], [*low, *high], view, &pair.index, halves);
                (second, first)
            }
            _ => unreachable!("a pair is two loads or two stores"),
        };
        replaced.extend([(at, std::mem::take(func.insts_mut(scratch))), (gone, Vec::new())]);
    }
    let regions: FxHashSet<Region> = pairs.iter().map(|pair| pair.region).collect();
    for region in regions {
        let insts = std::mem::take(func.insts_mut(region));
        *func.insts_mut(region) = insts.into_iter().flat_map(|inst| replaced.remove(&inst).unwrap_or_else(|| vec![inst])).collect();
    }
    substitute(func, within, &with);
}

/// Appends one load of a pair at an index of the view. Returns the elements of the lower index and of the upper one.
fn load(b: &mut Builder<'_>, [lower, upper]: [&Op; 2], view: Value, index: &Sum, halves: &Halves) -> [Value; 2] {
    let (access, shape) = shared(b.func, [lower, upper]);
    let dtype = b.func.ty(access.base).dtype();
    let Widths { one, two } = Widths::of_pair(dtype);
    let others = [lower, upper].map(|op| if let Op::Load { other, .. } = op { *other } else { None });
    let other = others.iter().any(Option::is_some).then(|| {
        let [low, high] = others.map(|other| other.and_then(|other| bits(b.func, other)).unwrap_or(0));
        b.constant(ConstExpr::Int((low | high << one.bits()).into()), Type::tile(two, shape.clone()))
    });
    let mut op = lower.clone();
    op.set_lanes(access.mask, access.in_bounds);
    if let Op::Load { base, offset, other: instead, .. } = &mut op {
        (*base, *offset, *instead) = (view, halves.value(b, index, &shape), other);
    }
    let low = b.op(op, &[]);
    let by = b.int_like(one.bits().into(), low);
    let high = b.binary(BinaryOp::Shr, low, by);
    [low, high].map(|word| {
        let part = b.cast(word, one);
        if dtype == one { part } else { b.bitcast(part, dtype) }
    })
}

/// Appends one store of a pair at an index of the view.
fn store(b: &mut Builder<'_>, ops: [&Op; 2], values: [Value; 2], view: Value, index: &Sum, halves: &Halves) {
    let (access, shape) = shared(b.func, ops);
    let dtype = b.func.ty(access.base).dtype();
    let Widths { one, two } = Widths::of_pair(dtype);
    let [low, high] = values.map(|value| {
        let bits = if dtype == one { value } else { b.bitcast(value, one) };
        b.cast(bits, two)
    });
    let by = b.int_like(one.bits().into(), high);
    let high = b.binary(BinaryOp::Shl, high, by);
    let word = b.binary(BinaryOp::Or, low, high);
    let mut op = ops[0].clone();
    op.set_lanes(access.mask, access.in_bounds);
    if let Op::Store { base, offset, value, .. } = &mut op {
        (*base, *offset, *value) = (view, halves.value(b, index, &shape), word);
    }
    b.func.append(b.region, op, [], b.loc);
}

/// The access of the lower index, in bounds if both are, and the shape of the tiles.
fn shared(func: &Function, ops: [&Op; 2]) -> (Access, Vec<ConstExpr>) {
    let [lower, upper] = ops.map(|op| op.access().expect("a pair accesses memory"));
    let shape = func.ty(lower.offset).shape().to_vec();
    (Access { in_bounds: lower.in_bounds && upper.in_bounds, ..lower }, shape)
}

/// The bits of the elements of a tile of one constant.
fn bits(func: &Function, tile: Value) -> Option<u64> {
    Scalar::from_const(func.splat(tile)?, func.ty(tile).dtype()).map(Scalar::bits)
}
