//! Launch values of the version with roles: whether a launch can take it, and the address, extents and strides of each block.

use rustc_hash::FxHashMap;

use crate::analysis::blocks::{Block, Blocks, Extent, MOST_EXTENT};
use crate::analysis::loops::{self, Loop};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Type, Value, computation};
use crate::launch_value::Copies;
use crate::location::Loc;

use super::plan::Plan;
use super::programs;

/// The bytes to which a tensor copy's address and strides are aligned.
const ALIGNMENT: i128 = 16;

/// The values of one load or store that are the same in all programs.
pub(super) struct Place {
    pub(super) address: Value,
    pub(super) extents: Vec<Value>,
    pub(super) strides: Vec<Value>,
    /// Can the hardware copy blocks of the tensor in this launch?
    pub(super) cond: Option<Value>,
    /// Are the indices of all programs in range?
    bounds: Option<Value>,
    /// Of a load: does one program read the block? `None` if the program reads it again.
    pub(super) once: Option<Value>,
}

/// Appends the launch values to the head of the kernel, with the statement of which launches it runs: those whose loads can be copied.
pub(super) fn append(func: &mut Function, original: &Function, plan: &Plan, head: Region) -> FxHashMap<Inst, Place> {
    let compute = func.add_region();
    let mut copies = Copies::new(compute);
    let host = Host { original, loops: loops::by_index(original) };
    let mut copied: Vec<(Inst, &Block, bool)> = plan.loads.iter().map(|(load, copied)| (*load, &copied.block, false)).collect();
    copied.extend(plan.stores.iter().map(|(store, stored)| (*store, &stored.block, true)));
    copied.sort_unstable_by_key(|(inst, ..)| *inst);
    let mut places: Vec<Place> =
        copied.iter().map(|(_, block, is_store)| host.place(func, &mut copies, compute, block, *is_store)).collect();
    let mut b = Builder::new(func, compute, Loc::NONE);
    for (place, (load, block, _)) in places.iter_mut().zip(&copied).filter(|(_, (.., is_store))| !is_store) {
        place.once = host.once(&mut b, *load, block);
    }
    // A tensor that is only stored is written otherwise if it cannot be copied.
    let of_loads = copied.iter().zip(&places).filter(|((.., is_store), _)| !is_store).filter_map(|(_, place)| place.cond);
    let of_loads = of_loads.chain(places.iter().filter_map(|place| place.bounds));
    let are_few = programs::are_few(&mut b);
    let cond = of_loads.fold(are_few, |all, test| b.binary(BinaryOp::And, all, test));
    // A launch has all tensor maps, also of a tensor that it does not copy: that one is any tensor.
    let stand_in = copied.iter().zip(&places).find(|((.., is_store), _)| !is_store).map(|(_, place)| place.address);
    let (stand_in, one, stride) = (stand_in.expect("a plan has loads"), b.index(1), b.index(ALIGNMENT));
    // First the condition of this version.
    let mut yielded = vec![cond];
    for (place, (_, block, is_store)) in places.iter().zip(&copied) {
        let mut numbers = vec![(place.address, stand_in)];
        numbers.extend(place.extents.iter().map(|extent| (*extent, one)));
        numbers.extend(strides(place, block).map(|own| (own, stride)));
        match place.cond.filter(|_| *is_store) {
            None => yielded.extend(numbers.into_iter().map(|(own, _)| own).chain(place.once)),
            Some(cond) => {
                yielded.push(cond);
                yielded.extend(numbers.into_iter().map(|(own, other)| b.select(cond, own, other)));
            }
        }
    }
    b.yield_values(yielded.clone());
    let types: Vec<Type> = yielded.iter().map(|value| func.ty(*value).clone()).collect();
    let launch_value = func.append(head, Op::LaunchValue { compute }, types, Loc::NONE);
    let results = func.inst(launch_value).results.to_vec();
    func.append(head, Op::RunsIf { cond: results[0] }, [], Loc::NONE);
    let one = Builder::new(func, head, Loc::NONE).index(1);
    let mut results = results.into_iter().skip(1);
    let mut next = |count: usize| results.by_ref().take(count).collect::<Vec<Value>>();
    let of_results = |(place, (inst, block, is_store)): (&Place, &(Inst, &Block, bool))| {
        let cond = if *is_store { next(1).pop() } else { None };
        let (address, extents) = (next(1)[0], next(place.extents.len()));
        let mut strides = next(place.strides.len() - 1);
        strides.insert(block.contiguous, one);
        let once = place.once.map(|_| next(1)[0]);
        (*inst, Place { address, extents, strides, cond, bounds: None, once })
    };
    places.iter().zip(&copied).map(of_results).collect()
}

/// The strides of the axes but the one with neighbours, whose stride is 1.
fn strides<'a>(place: &'a Place, block: &'a Block) -> impl Iterator<Item = Value> + 'a {
    place.strides.iter().enumerate().filter(|(axis, _)| *axis != block.contiguous).map(|(_, stride)| *stride)
}

/// Copies what the host computes from the kernel.
struct Host<'a> {
    original: &'a Function,
    loops: FxHashMap<Value, Loop>,
}

impl Host<'_> {
    /// Appends what is the same in all programs of a block, and the test that the hardware can copy it and that all elements within the extents lie in the tensor.
    fn place(&self, func: &mut Function, copies: &mut Copies, compute: Region, block: &Block, is_store: bool) -> Place {
        let extents: Vec<Value> = block.axes.iter().map(|axis| self.extent(func, copies, compute, &axis.corner, &axis.extent)).collect();
        let strides: Vec<Value> = block.axes.iter().map(|axis| self.number(func, copies, compute, &axis.stride)).collect();
        let offset = self.number(func, copies, compute, &block.offset);
        let bounded: Vec<Value> = block.bounded.iter().map(|scalar| self.scalar(func, copies, *scalar)).collect();
        let bytes = func.ty(block.base).dtype().bytes() as i128;
        let mut b = Builder::new(func, compute, Loc::NONE);
        let bounded: Vec<Value> = bounded.into_iter().map(|scalar| b.cast(scalar, Dtype::I64)).collect();
        let width = b.index(bytes);
        let behind = b.binary(BinaryOp::Mul, offset, width);
        let base = b.address(block.base);
        let address = b.binary(BinaryOp::Add, base, behind);

        let mut tests = Tests(Vec::new());
        let (zero, one, most) = (b.index(0), b.index(1), b.index(MOST_EXTENT));
        tests.aligned(&mut b, address, ALIGNMENT);
        let mut bounds = Tests(Vec::new());
        bounded.iter().for_each(|scalar| bounds.between(&mut b, *scalar, zero, most));
        let length = b.length(block.base);
        tests.between(&mut b, offset, zero, length);
        let mut end = b.binary(BinaryOp::Add, offset, extents[block.contiguous]);
        for (axis, (extent, stride)) in extents.iter().zip(&strides).enumerate() {
            tests.between(&mut b, *extent, one, most);
            if axis == block.contiguous {
                continue;
            }
            tests.between(&mut b, *stride, one, most);
            tests.aligned(&mut b, *stride, ALIGNMENT / bytes);
            // No product overflows, because each number has at most 31 bits, and no sum of numbers that are no greater than a length.
            let last = b.binary(BinaryOp::Sub, *extent, one);
            let last = b.binary(BinaryOp::Mul, last, *stride);
            tests.0.push(b.compare(CompareOp::Le, last, length));
            end = b.binary(BinaryOp::Add, end, last);
        }
        tests.0.push(b.compare(CompareOp::Le, end, length));
        if is_store {
            // A store writes whole chunks at the end of a row.
            tests.aligned(&mut b, extents[block.contiguous], ALIGNMENT / bytes);
        }
        let [cond, bounds] = [tests, bounds].map(|tests| tests.0.into_iter().reduce(|all, test| b.binary(BinaryOp::And, all, test)));
        Place { address, extents, strides, cond, bounds, once: None }
    }

    /// Appends a test: is there one program along each axis of the grid that does not say where the block is? `None` if programs read blocks several times.
    fn once(&self, b: &mut Builder<'_>, load: Inst, block: &Block) -> Option<Value> {
        let scalars: Vec<Value> = block.axes.iter().flat_map(|axis| axis.corner.scalars()).collect();
        let mut tells = [false; 3];
        for scalar in &scalars {
            match self.original.def_op(*scalar) {
                Some(Op::ProgramId { axis }) => tells[*axis as usize] = true,
                _ if self.loops.contains_key(scalar) => {}
                // Different numbers may be one block.
                _ => return None,
            }
        }
        let is_around = |region: Region| {
            self.original.regions_under(region).into_iter().any(|region| self.original.region(region).insts.contains(&load))
        };
        for inst in self.original.all_insts() {
            let repeats = match &self.original.inst(inst).op {
                Op::For { body, .. } => is_around(*body) && !scalars.contains(&self.original.region(*body).params[0]),
                Op::While { test, body, .. } => is_around(*test) || is_around(*body),
                _ => false,
            };
            if repeats {
                return None;
            }
        }
        let one = b.index(1);
        let others = (0..3u32).filter(|axis| !tells[*axis as usize]);
        let tests: Vec<Value> = others
            .map(|axis| {
                let programs = b.op(Op::NumPrograms { axis }, &[]);
                b.compare(CompareOp::Eq, programs, one)
            })
            .collect();
        tests.into_iter().reduce(|all, test| b.binary(BinaryOp::And, all, test))
    }

    /// The copy of a scalar that the host can compute.
    fn scalar(&self, func: &mut Function, copies: &mut Copies, scalar: Value) -> Value {
        let ops = computation(self.original, scalar, &Op::is_known_at_launch).expect("the analysis of blocks has found the ops");
        copies.add_all(func, &ops);
        copies.copy(scalar)
    }

    fn number(&self, func: &mut Function, copies: &mut Copies, compute: Region, number: &Polynomial) -> Value {
        let scalars: FxHashMap<Value, Value> = number.scalars().map(|scalar| (scalar, self.scalar(func, copies, scalar))).collect();
        number.map(&|scalar| scalars[&scalar]).value(&mut Builder::new(func, compute, Loc::NONE))
    }

    fn extent(&self, func: &mut Function, copies: &mut Copies, compute: Region, corner: &Polynomial, extent: &Extent) -> Value {
        let elements = match extent {
            Extent::Limit(limit) => return self.number(func, copies, compute, limit),
            Extent::LastBlock(elements) => *elements,
        };
        // The last index of each loop is computed from copies of its bounds.
        let mut copied: FxHashMap<Value, Loop> = FxHashMap::default();
        let mut scalars: FxHashMap<Value, Value> = FxHashMap::default();
        for scalar in corner.scalars() {
            if let Some(around) = self.loops.get(&scalar) {
                let [lower, upper, step] = [around.lower, around.upper, around.step].map(|bound| self.scalar(func, copies, bound));
                copied.insert(scalar, Loop { inst: around.inst, lower, upper, step, body: around.body });
            } else if !matches!(self.original.def_op(scalar), Some(Op::ProgramId { .. })) {
                scalars.insert(scalar, self.scalar(func, copies, scalar));
            }
        }
        let corner = corner.map(&|scalar| scalars.get(&scalar).copied().unwrap_or(scalar));
        Blocks::last_block(&copied, &mut Builder::new(func, compute, Loc::NONE), &corner, elements)
    }
}

/// Tests of a launch.
struct Tests(Vec<Value>);

impl Tests {
    fn aligned(&mut self, b: &mut Builder<'_>, number: Value, to: i128) {
        let (mask, zero) = (b.index(to - 1), b.index(0));
        let rest = b.binary(BinaryOp::And, number, mask);
        self.0.push(b.compare(CompareOp::Eq, rest, zero));
    }

    fn between(&mut self, b: &mut Builder<'_>, number: Value, least: Value, most: Value) {
        self.0.push(b.compare(CompareOp::Ge, number, least));
        self.0.push(b.compare(CompareOp::Le, number, most));
    }
}
