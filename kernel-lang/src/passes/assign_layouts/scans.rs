//! Scans of tiles that are accessed element by element: a scan gets a layout of its own, in which each thread holds neighbours along the axis.
//!
//! Neighbours in a thread take an op each, and neighbours in lanes about three for each of five steps. Rows that are not aligned are loaded and stored element
//! by element, by neighbouring lanes. Then two converts through shared memory cost less than a scan of such a tile:
//!
//! ```text
//! %v = load %x ..                      : neighbours in lanes
//! %1 = convert %v                      : neighbours in a thread
//! %2 = cast %1
//! %3 = scan %2 ..
//! %4 = add %3, (broadcast %before)
//! %5 = cast %4
//! %6 = convert %5                      : neighbours in lanes
//! store %y .. %6
//! ```
//!
//! The converts move the narrowest elements: they stand in front of casts to wider types, and behind elementwise ops and casts to narrower ones.

use rustc_hash::FxHashMap;

use crate::ir::rewrite::use_counts;
use crate::ir::{Def, Function, Handle, Inst, Op, Region, Value};
use crate::layout::{Layout, Level};
use crate::passes::dce;

use super::access_cost::of_convert;
use super::accesses::Wish;
use super::clusters::is_convertible;

/// The bytes that a thread writes to shared memory, or reads from it, by one instruction.
const WIDEST: u32 = 16;
/// The instructions of a step between lanes: a shuffle, the op, and the choice of lanes.
const STEP: u32 = 3;

/// Inserts the converts. All tiles have layouts. `own` is the layout that an access of a given shape would choose itself.
pub(super) fn convert(func: &mut Function, own: &dyn Fn(&[u32], &Wish) -> Layout) {
    let (uses, mut changed) = (use_counts(func), false);
    for region in func.regions_under(func.body) {
        // By op: the layout to which it moves, and whether it is the last one of a chain.
        let mut chains: FxHashMap<Inst, (Layout, bool)> = FxHashMap::default();
        for inst in &func.region(region).insts {
            if !matches!(func.inst(*inst).op, Op::Scan { .. }) {
                continue;
            }
            let chain = behind(func, region, *inst, &uses);
            let last = chain[chain.len() - 1];
            if let Some(layout) = better(func, *inst, func.result(last), &chains, own) {
                chains.extend(chain.into_iter().map(|inst| (inst, (layout.clone(), inst == last))));
            }
        }
        if chains.is_empty() {
            continue;
        }
        changed = true;
        let (mut moved, mut out) = (FxHashMap::default(), Vec::new());
        for inst in std::mem::take(func.insts_mut(region)) {
            match chains.get(&inst) {
                Some((layout, is_last)) => move_op(func, inst, (layout, *is_last), &mut moved, &mut out),
                None => out.push(inst),
            }
        }
        *func.insts_mut(region) = out;
    }
    if changed {
        // The cast whose operand is converted may have no other use.
        dce::run(func);
    }
}

/// The layout that a scan should have instead, if any. `moved_back` is the tile that moves back to the given layout.
fn better(
    func: &Function,
    inst: Inst,
    moved_back: Value,
    chains: &FxHashMap<Inst, (Layout, bool)>,
    own: &dyn Fn(&[u32], &Wish) -> Layout,
) -> Option<Layout> {
    let Op::Scan { inputs, axis, .. } = &func.inst(inst).op else { return None };
    let (&[input], axis) = (&inputs[..], *axis as usize) else { return None };
    let given = func.layouts[input].as_ref()?;
    let [bytes, bytes_back] = [narrowest(func, input), moved_back].map(|tile| func.ty(tile).dtype().bytes() as u32);
    let wish = Wish::new(Vec::new(), Some(axis), WIDEST / bytes.clamp(1, WIDEST));
    let layout = own(given.shape(), &wish);
    // A scan of what another one gives takes its layout, so that nothing is converted between them.
    if let Def::Result(before, _) = func.def(input)
        && let Some((known, true)) = chains.get(&before)
        && of_scan(known, axis) <= of_scan(&layout, axis)
    {
        return Some(known.clone());
    }
    let with_converts = of_scan(&layout, axis) + of_convert(given, &layout, bytes) + of_convert(&layout, given, bytes_back);
    let is_possible = is_convertible(given, &layout, bytes as usize) && is_convertible(&layout, given, bytes_back as usize);
    (with_converts < of_scan(given, axis) && is_possible).then_some(layout)
}

/// The instructions of a scan: an op for each element, and the steps between lanes for each run of neighbours in a thread.
fn of_scan(layout: &Layout, axis: usize) -> u32 {
    let registers = layout.registers_per_thread();
    let lanes = (0..layout.bits(Level::Lane)).filter(|bit| layout.basis_along(Level::Lane, *bit, axis) != 0);
    registers + registers / layout.contiguous_per_thread(axis).elements() * STEP * lanes.count() as u32
}

/// What a tile is cast from, if that is narrower.
fn narrowest(func: &Function, value: Value) -> Value {
    match func.def_op(value) {
        Some(Op::Cast { x }) if func.ty(*x).dtype().bytes() < func.ty(value).dtype().bytes() => *x,
        _ => value,
    }
}

/// The scan and the elementwise ops behind it that move with it: each is the only use of the result of the one before, and takes no other tile but copies of
/// a scalar. The last one has the narrowest result.
fn behind(func: &Function, region: Region, scan: Inst, uses: &[u32]) -> Vec<Inst> {
    let bytes = |inst: Inst| func.ty(func.result(inst)).dtype().bytes();
    let mut chain = vec![scan];
    let mut last = func.result(scan);
    for inst in func.region(region).insts.iter().skip_while(|inst| **inst != scan).skip(1) {
        let op = &func.inst(*inst).op;
        let (mut is_user, mut is_alone) = (false, true);
        op.for_each_operand(&mut |operand| match operand == last {
            true => is_user = true,
            false => is_alone &= func.ty(operand).is_scalar() || func.is_splat(operand),
        });
        if is_user {
            if uses[last.index()] != 1 || !is_alone || !op.is_elementwise() || bytes(*inst) > bytes(chain[chain.len() - 1]) {
                break;
            }
            chain.push(*inst);
            last = func.result(*inst);
        }
    }
    chain
}

/// Moves an op to a layout. The last one of a chain becomes a convert of its result. `moved` has the values of that layout.
fn move_op(func: &mut Function, inst: Inst, (layout, is_last): (&Layout, bool), moved: &mut FxHashMap<Value, Value>, out: &mut Vec<Inst>) {
    let (mut op, loc, result) = (func.inst(inst).op.clone(), func.inst(inst).loc, func.result(inst));
    let mut add = |func: &mut Function, op: Op, like: Value| {
        let ty = func.ty(like).clone();
        let added = func.make_inst(op, [ty], loc);
        out.push(added);
        let value = func.result(added);
        func.layouts[value] = Some(layout.clone());
        value
    };
    op.map_operands(&mut |x| {
        if !func.ty(x).is_tile() {
            return x;
        }
        if let Some(known) = moved.get(&x).filter(|known| func.layouts[**known].as_ref() == Some(layout)) {
            return *known;
        }
        let narrow = narrowest(func, x);
        let converted = add(func, Op::Convert { x: narrow }, narrow);
        if narrow == x { converted } else { add(func, Op::Cast { x: converted }, x) }
    });
    let fresh = add(func, op, result);
    moved.insert(result, fresh);
    if is_last {
        func.redefine(inst, Op::Convert { x: fresh }, result);
        out.push(inst);
    }
}
