//! Stores of reduced tiles: if several warps would write parts of a sector, the store gets a layout of its own, and its operands are converted.
//!
//! The lanes that held a row hold its sum, and few lanes store. If a warp takes four rows of 64 elements, then another warp the next four, each
//! of them writes half a sector, at another time. A convert through shared memory makes one access of the sums. Tiles of less than a cache line
//! are few bytes of what a program accesses.

use crate::ir::{Function, Inst, Op, SideTable};
use crate::layout::Layout;
use crate::target::LINE;

use super::access_cost::splits_sectors;
use super::accesses::{Access, Width, Wish};
use super::clusters::is_convertible;

/// Inserts the converts. All tiles have layouts. `own` is the layout that an access of a given shape would choose itself.
pub(super) fn convert(func: &mut Function, accesses: &[Access], own: &dyn Fn(&[u32], &Wish) -> Layout) {
    let mut layouts: SideTable<Inst, Option<Layout>> = SideTable::new();
    for access in accesses {
        if let Op::Store { .. } = func.inst(access.inst).op
            && let Some(given) = &func.layouts[access.offset]
            && let Some(layout) = better(given, access.width, own)
        {
            layouts[access.inst] = Some(layout);
        }
    }
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Some(layout) = &layouts[inst] {
                let (mut op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
                op.map_operands(&mut |x| {
                    if !func.ty(x).is_tile() {
                        return x;
                    }
                    let ty = func.ty(x).clone();
                    let convert = func.make_inst(Op::Convert { x }, [ty], loc);
                    let converted = func.result(convert);
                    func.layouts[converted] = Some(layout.clone());
                    out.push(convert);
                    converted
                });
                func.inst_mut(inst).op = op;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
}

/// The layout that the store should have instead, if any.
fn better(given: &Layout, width: Width, own: &dyn Fn(&[u32], &Wish) -> Layout) -> Option<Layout> {
    let is_reduced = given.free_bits().lane != 0;
    let bytes = given.elements() * u64::from(width.bytes);
    if !is_reduced || bytes < u64::from(LINE) || !splits_sectors(&width, given) {
        return None;
    }
    let wish = Wish::new(vec![width], width.axis, width.vector);
    let is_possible = |layout: &Layout| !splits_sectors(&width, layout) && is_convertible(given, layout, width.bytes as usize);
    Some(own(given.shape(), &wish)).filter(is_possible)
}
