//! `wgmma.mma_async`: decoding, issue and completion (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async").

use std::sync::Arc;

use super::super::async_access::{self, SharedLocation};
use super::super::{Convergence, Form, Instruction, Progress, Register, Unsupported, Value};
use super::descriptor::{Descriptor, Major};
use super::fragment;
use super::group::{Joint, Operands, Own, WARPS};
use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::lanes::{Lanes, WARP};
use crate::machine::{Cluster, Cx};
use crate::memory::{Operation, Proxy, Queue, Touch};
use crate::numerics::matrix::{self, Kind};
use crate::ptx::{Operand, Type};

/// The number of rows of A and D in each warp.
const ROWS: usize = 16;

/// The shape and the types of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Type,
    pub(super) b: Type,
    pub(super) result: Type,
    pub(super) a_major: Major,
    pub(super) b_major: Major,
    pub(super) negates_a: bool,
    pub(super) negates_b: bool,
    pub(super) kind: Kind,
}

enum Left {
    Descriptor(Value),
    Registers(Vec<Register>),
}

struct Multiply {
    shape: Shape,
    accumulators: Vec<Register>,
    left: Left,
    right: Value,
    adds: Value,
}

/// Decodes the rest of `wgmma.mma_async.sync.aligned`.
pub(super) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let text = form.next_modifier().unwrap_or_default();
    let (n, k) = extents(text).ok_or_else(|| form.error(format!("`.{text}` is no shape of `wgmma`, such as `.m64n128k16`")))?;
    let saturate = form.flag("satfinite");
    let (result, a, b) = (form.ty()?, form.ty()?, form.ty()?);
    check_types(form, result, a, b, n, k)?;
    if saturate && result != Type::S32 {
        return Err(form.error("`.satfinite` is for integers"));
    }
    let kind =
        Kind::wgmma(a, b, result, saturate).ok_or_else(|| form.error(format!("`wgmma` can not make `{result}` of `{a}` and `{b}`")))?;
    let accumulators = registers(form, n * result.bits() as usize / 64)?;
    let left = match form.peek() {
        Some(Operand::Vector(_)) => Left::Registers(registers(form, 4)?),
        _ => Left::Descriptor(form.source(Type::B64)?),
    };
    let right = form.source(Type::B64)?;
    let adds = form.source(Type::Pred)?;
    let mut shape = Shape { n, k, a, b, result, a_major: Major::K, b_major: Major::K, negates_a: false, negates_b: false, kind };
    if result != Type::S32 {
        shape.negates_a = sign(form)?;
        shape.negates_b = sign(form)?;
    }
    if a.bits() == 16 {
        if matches!(left, Left::Descriptor(_)) {
            shape.a_major = major(form)?;
        }
        shape.b_major = major(form)?;
    }
    Ok(Box::new(Multiply { shape, accumulators, left, right, adds }))
}

/// Parses `n` and `k` of a shape such as `m64n128k16`.
fn extents(text: &str) -> Option<(usize, usize)> {
    let (n, k) = text.strip_prefix("m64n")?.split_once('k')?;
    Some((n.parse().ok()?, k.parse().ok()?))
}

fn check_types(form: &Form<'_>, result: Type, a: Type, b: Type, n: usize, k: usize) -> Result<(), Unsupported> {
    use Type::*;
    let is_legal = match (a, b) {
        (F16, F16) | (E4m3 | E5m2, E4m3 | E5m2) => matches!(result, F16 | F32),
        (Bf16, Bf16) | (Tf32, Tf32) => result == F32,
        (S8 | U8, S8 | U8) => result == S32,
        _ => false,
    };
    if !is_legal {
        return Err(form.error(format!("`wgmma` can not make `{result}` of `{a}` and `{b}`")));
    }
    if k * a.bits() as usize != 256 {
        return Err(form.error(format!("k of `wgmma` is {} for `{a}`, not {k}", 256 / a.bits())));
    }
    let is_extent = if result == S32 { n == 8 || n == 24 || n.is_multiple_of(16) } else { n.is_multiple_of(8) };
    if !(8..=256).contains(&n) || !is_extent {
        return Err(form.error(format!("n of `wgmma` can not be {n}")));
    }
    Ok(())
}

/// Takes `{..}` of this number of 32-bit registers.
fn registers(form: &mut Form<'_>, count: usize) -> Result<Vec<Register>, Unsupported> {
    let parts = form.parts(count)?;
    let register = |part| form.as_destination(part, Type::B32, false)?.ok_or_else(|| form.error("a register is wanted, not `_`"));
    parts.into_iter().map(register).collect()
}

/// Takes 1 or -1; returns true for -1.
fn sign(form: &mut Form<'_>) -> Result<bool, Unsupported> {
    match form.immediate()? as i64 {
        1 => Ok(false),
        -1 => Ok(true),
        other => Err(form.error(format!("an operand of `wgmma` is scaled by 1 or -1, not {other}"))),
    }
}

/// Takes 0 or 1, where 1 transposes the operand.
fn major(form: &mut Form<'_>) -> Result<Major, Unsupported> {
    match form.immediate()? {
        0 => Ok(Major::K),
        1 => Ok(Major::Outer),
        other => Err(form.error(format!("an operand of `wgmma` is transposed by 0 or 1, not {other}"))),
    }
}

impl Instruction for Multiply {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let group = super::warpgroup(cx)?;
        let descriptor = |cx: &Cx<'_>, value: Value, what: &str| {
            let bits = cx.read_uniform(value, what)?;
            Descriptor::decode(bits).map_err(|reason| cx.illegal(0, reason))
        };
        let (a, a_registers) = match &self.left {
            Left::Descriptor(value) => (Some(descriptor(cx, *value, "the descriptor of A")?), Vec::new()),
            Left::Registers(registers) => (None, registers.clone()),
        };
        let b = descriptor(cx, self.right, "the descriptor of B")?;
        let adds = cx.read_uniform(self.adds, "the predicate that says whether to add")? == 1;
        self.check_registers(cx, &a_registers, adds)?;
        // The warp executes the instruction as one: the earlier operations of all lanes happen before the product.
        let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
        cx.cluster.clocks.barrier(&[(warp, Lanes::ALL)]);
        let operation = async_access::issue(cx, 0, Proxy::Async, Queue::Matrix);
        let matrices = &mut cx.warp.matrices;
        let ordinal = matrices.issued;
        matrices.issued += 1;
        let own = Own {
            ordinal,
            group: matrices.committed,
            accumulators: self.accumulators.clone(),
            a: a_registers,
            adds,
            began: matrices.now(),
        };
        for &register in own.accumulators.iter().chain(&own.a) {
            cx.warp.pending.insert(register, Lanes::ALL);
        }
        cx.warp.matrices.products.push_back(own);
        self.join(cx, group, ordinal, a, b, operation)?;
        let flops = 2 * ROWS * self.shape.n * self.shape.k;
        cx.cluster.counters.matrix(cx.line, flops as u64);
        cx.cluster.happened();
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> Class {
        Class::Matrix
    }
}

impl Multiply {
    fn check_registers(&self, cx: &Cx<'_>, a: &[Register], adds: bool) -> Result<(), Trap> {
        let matrices = &cx.warp.matrices;
        if !matrices.has_fenced() {
            return Err(cx.illegal(0, "there is no `wgmma.fence` before the first `wgmma.mma_async`"));
        }
        for &register in self.accumulators.iter().chain(a) {
            if !matrices.is_fenced(register) {
                let name = cx.register_name(register);
                return Err(cx.illegal(0, format!("register `{name}` was written after the last `wgmma.fence`")));
            }
        }
        for own in &matrices.products {
            // A product may use exactly the same accumulators as the product before it.
            let is_used = |register: &Register| own.accumulators.contains(register);
            let conflict =
                if own.accumulators == self.accumulators { None } else { self.accumulators.iter().find(|register| is_used(register)) };
            let conflict = conflict.or_else(|| a.iter().find(|register| is_used(register)));
            let conflict = conflict.or_else(|| self.accumulators.iter().find(|register| own.a.contains(register)));
            if let Some(&register) = conflict {
                return Err(Trap::new(0, FaultKind::PendingRegister { register: cx.register_name(register) }));
            }
        }
        let in_flight = matrices.products.iter().any(|own| own.accumulators == self.accumulators);
        let read = if adds && !in_flight { self.accumulators.as_slice() } else { &[] };
        for &register in read.iter().chain(a) {
            if let Some(lane) = Lanes::ALL.without(cx.warp.defined[register.0 as usize]).lowest() {
                return Err(Trap::new(lane, FaultKind::UninitialisedRegister { register: cx.register_name(register) }));
            }
        }
        Ok(())
    }

    /// Adds this warp's part to the product of the warpgroup.
    fn join(
        &self,
        cx: &mut Cx<'_>,
        group: usize,
        ordinal: u64,
        a: Option<Descriptor>,
        b: Descriptor,
        operation: Operation,
    ) -> Result<(), Trap> {
        let step = cx.step;
        let line = cx.line.line;
        let shape = self.shape;
        let member = cx.warp.index % WARPS;
        let products = &mut cx.cluster.ctas[cx.rank].warpgroups.entry(group).or_default().products;
        let joint = products.entry(ordinal).or_insert_with(|| Joint {
            step,
            line,
            a,
            b,
            shape,
            operations: [None, None, None, None],
            operands: None,
            delivered: 0,
        });
        if (joint.step, joint.a, joint.b) != (step, a, b) {
            return Err(cx.illegal(0, "the warps of the warpgroup do not execute the same `wgmma` with the same descriptors"));
        }
        joint.operations[member] = Some(operation);
        Ok(())
    }
}

/// Completes the oldest product of the warp. Returns false if not all four warps have issued it.
pub(super) fn finish_oldest(cx: &mut Cx<'_>, group: usize) -> Result<bool, Trap> {
    let Some(ordinal) = cx.warp.matrices.products.front().map(|own| own.ordinal) else { return Ok(true) };
    let Some(mut joint) = cx.cluster.ctas[cx.rank].warpgroups.entry(group).or_default().products.remove(&ordinal) else { return Ok(true) };
    let operations: Vec<Operation> = joint.operations.iter().flatten().cloned().collect();
    let is_complete = operations.len() == WARPS;
    if is_complete {
        let operands = match &joint.operands {
            Some(operands) => operands.clone(),
            None => {
                let operands = Arc::new(read(cx.cluster, cx.rank, &joint, &operations).map_err(|kind| Trap::new(0, kind))?);
                joint.operands = Some(operands.clone());
                operands
            }
        };
        if let Some(own) = cx.warp.matrices.products.pop_front() {
            multiply(cx, &joint.shape, &own, &operands)?;
        }
        for lane in cx.lanes {
            operations.iter().for_each(|operation| async_access::acquire(cx, lane, &operation.done()));
        }
        joint.delivered += 1;
    }
    if joint.delivered < WARPS {
        cx.cluster.ctas[cx.rank].warpgroups.entry(group).or_default().products.insert(ordinal, joint);
    }
    Ok(is_complete)
}

/// Reads the operands of all four warps from shared memory. Each warp reads its own rows of A and the whole of B.
fn read(cluster: &mut Cluster, rank: usize, joint: &Joint, operations: &[Operation]) -> Result<Operands, FaultKind> {
    let shape = &joint.shape;
    let touch = Touch::plain("wgmma's load", joint.line);
    let mut a = Vec::new();
    let mut b = Vec::new();
    for (warp, operation) in operations.iter().enumerate() {
        let mut units = Units { cluster, rank, operation, touch, last: None };
        if let Some(descriptor) = joint.a {
            for row in warp * ROWS..(warp + 1) * ROWS {
                units.row(descriptor, shape.a_major, shape.a, row, shape.k, &mut a)?;
            }
        }
        b.clear();
        for column in 0..shape.n {
            units.row(joint.b, shape.b_major, shape.b, column, shape.k, &mut b)?;
        }
    }
    Ok(Operands { a, b })
}

/// Reads shared memory in units of 16 bytes. Consecutive reads of the same unit access memory once.
struct Units<'a> {
    cluster: &'a mut Cluster,
    rank: usize,
    operation: &'a Operation,
    touch: Touch,
    last: Option<(u32, u128)>,
}

impl Units<'_> {
    /// Appends the elements of one row along K.
    fn row(&mut self, matrix: Descriptor, major: Major, ty: Type, row: usize, k: usize, elements: &mut Vec<u64>) -> Result<(), FaultKind> {
        let bytes = ty.bytes();
        for index in 0..k {
            let offset = matrix.offset(major, bytes, row as u32, index as u32);
            let unit = self.unit(offset / 16 * 16)?;
            elements.push((unit >> (offset % 16 * 8)) as u64 & u64::MAX >> (64 - 8 * bytes));
        }
        Ok(())
    }

    fn unit(&mut self, offset: u32) -> Result<u128, FaultKind> {
        if let Some((last, unit)) = self.last
            && last == offset
        {
            return Ok(unit);
        }
        let mut bytes = [0; 16];
        async_access::load_shared(self.cluster, self.operation, SharedLocation { rank: self.rank, offset }, &mut bytes, self.touch)?;
        let unit = u128::from_le_bytes(bytes);
        self.last = Some((offset, unit));
        Ok(unit)
    }
}

/// Computes the warp's rows of the product and writes them to its registers.
fn multiply(cx: &mut Cx<'_>, shape: &Shape, own: &Own, operands: &Operands) -> Result<(), Trap> {
    let Shape { n, k, .. } = *shape;
    for &register in own.accumulators.iter().chain(&own.a) {
        // A later product in flight may have written the accumulators; any other write is a fault.
        if cx.warp.matrices.is_written_since(register, own.began) {
            return Err(Trap::new(0, FaultKind::PendingRegister { register: cx.register_name(register) }));
        }
    }
    let mut a = if own.a.is_empty() {
        let first = cx.warp.index % WARPS * ROWS * k;
        operands.a[first..first + ROWS * k].to_vec()
    } else {
        let packed = 32 / shape.a.bits() as usize;
        let mut a = vec![0; ROWS * k];
        each_element(&own.a, packed, |register, shift, lane, element| {
            let (row, column) = fragment::of_input(lane, element, packed);
            a[row * k + column] = cx.warp.registers[register.0 as usize][lane] >> shift & element_mask(shape.a);
        });
        a
    };
    let mut b = operands.b.clone();
    if shape.negates_a {
        a.iter_mut().for_each(|bits| *bits ^= sign_bit(shape.a));
    }
    if shape.negates_b {
        b.iter_mut().for_each(|bits| *bits ^= sign_bit(shape.b));
    }
    let packed = 32 / shape.result.bits() as usize;
    let mut d = vec![0; ROWS * n];
    if own.adds {
        each_element(&own.accumulators, packed, |register, shift, lane, element| {
            let (row, column) = fragment::of_result(lane, element);
            d[row * n + column] = cx.warp.registers[register.0 as usize][lane] >> shift & element_mask(shape.result);
        });
    }
    shape.kind.multiply(matrix::Shape { m: ROWS, n, k }, &a, &b, &mut d);
    for &register in &own.accumulators {
        cx.warp.registers[register.0 as usize] = [0; WARP];
        cx.warp.defined[register.0 as usize] = Lanes::ALL;
    }
    each_element(&own.accumulators, packed, |register, shift, lane, element| {
        let (row, column) = fragment::of_result(lane, element);
        cx.warp.registers[register.0 as usize][lane] |= d[row * n + column] << shift;
    });
    let products = &cx.warp.matrices.products;
    for &register in own.accumulators.iter().chain(&own.a) {
        if !products.iter().any(|later| later.accumulators.contains(&register) || later.a.contains(&register)) {
            cx.warp.pending.remove(&register);
        }
    }
    Ok(())
}

/// Visits the elements of a fragment: the register, the shift inside it, the lane, and the index of the element in the lane.
fn each_element(registers: &[Register], packed: usize, mut visit: impl FnMut(Register, usize, usize, usize)) {
    for (index, &register) in registers.iter().enumerate() {
        for part in 0..packed {
            (0..WARP).for_each(|lane| visit(register, part * 32 / packed, lane, index * packed + part));
        }
    }
}

fn element_mask(ty: Type) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

fn sign_bit(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}
