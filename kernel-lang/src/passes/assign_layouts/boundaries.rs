//! Converts at the boundaries of regions with guarded loops: such a region has layouts of its own.
//!
//! ```text
//! } else {                                              } else {
//!                                                           %c = convert %init
//!     %g = for %lower .. %upper, %init {guarded} { .. }     %g = for %lower .. %upper, %c {guarded} { .. }
//!                                                           %h = convert %g
//!     yield %g                                              yield %h
//! }                                                     }
//! ```
//!
//! The tiles that a guarded loop carries would otherwise have the layout of the main loop, in which each thread has neighbours ([`crate::passes::split_loops`]).
//! If the layouts turn out to be equal, a convert costs nothing.

use crate::analysis::loops::{captured, defined_in};
use crate::ir::rewrite::{Substitution, substitute};
use crate::ir::{Function, Inst, Op, Region, SideTable, Value};
use crate::location::Loc;

/// Inserts the converts, before layouts are chosen, and returns which they are.
pub(super) fn insert(func: &mut Function) -> SideTable<Inst, bool> {
    let is_guarded = |inst: &Inst| matches!(func.inst(*inst).op, Op::For { guarded: true, .. });
    let has_guarded = |region: &Region| func.region(*region).insts.iter().any(is_guarded);
    let own: Vec<Region> = func.regions_under(func.body).into_iter().filter(|region| *region != func.body && has_guarded(region)).collect();
    let mut converts = SideTable::new();
    own.into_iter().flat_map(|region| isolate(func, region)).for_each(|convert| converts[convert] = true);
    converts
}

/// Separates the tiles of a region from those outside, by converts, which it returns.
fn isolate(func: &mut Function, region: Region) -> Vec<Inst> {
    // A tile that the region only hands on keeps its layout.
    let Some(last) = func.insts_mut(region).pop() else { return Vec::new() };
    let (mut out, mut with) = (Vec::new(), Substitution::new());
    let tiles: Vec<Value> = captured(func, &[region]).into_iter().filter(|value| func.ty(*value).is_tile()).collect();
    for x in tiles {
        with.insert(x, convert(func, x, &mut out));
    }
    substitute(func, region, &with);
    let mut converts = out.clone();
    let inside = defined_in(func, &[region]);
    out.append(func.insts_mut(region));
    let mut behind = Vec::new();
    let mut op = func.inst(last).op.clone();
    op.map_operands(&mut |x| if func.ty(x).is_tile() && inside[x] { convert(func, x, &mut behind) } else { x });
    func.inst_mut(last).op = op;
    converts.extend(&behind);
    out.append(&mut behind);
    out.push(last);
    *func.insts_mut(region) = out;
    converts
}

fn convert(func: &mut Function, x: Value, out: &mut Vec<Inst>) -> Value {
    let ty = func.ty(x).clone();
    let convert = func.make_inst(Op::Convert { x }, [ty], Loc::NONE);
    out.push(convert);
    func.result(convert)
}
