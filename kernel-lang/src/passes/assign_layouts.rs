//! Decides who holds which element: gives every tile a layout.
//!
//! Tiles that meet in an elementwise op have one layout, and so have all tiles connected through such ops, branches and loops: a
//! component. Its memory accesses choose: the widest that an access can use, so that each thread moves up to 16 bytes at once and the
//! lanes of a warp lie side by side; without one that can be wide, neighbouring lanes hold neighbouring elements.
//!
//! ```text
//! ; before
//! ; num_warps 4
//! kernel @k(%x: ptr<f32>) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [1024]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]> layout<[1024], register = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256], block = []>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [1024]> layout<[1024], register = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256], block = []>
//!     return
//! }
//! ```

use crate::analysis::affine::AffineFacts;
use crate::ir::{Function, Handle, Inst, Op, SideTable, Type, Value};
use crate::layout::Layout;
use crate::target::Target;

/// Runs the pass. Every tile of the kernel then has a layout in [`Function::layouts`].
pub fn run(func: &mut Function, target: &Target, num_warps: u32) {
    let mut components = Components { parent: (0..func.value_count()).collect() };
    connect(func, &mut components);
    let vectors = vectors(func, &mut components);
    let mut layouts = SideTable::new();
    for value in tiles(func) {
        let vector = vectors.get(components.find(value)).copied().unwrap_or(1);
        layouts[value] = Some(layout_of(func.ty(value), vector, target, num_warps));
    }
    func.layouts = layouts;
}

fn layout_of(ty: &Type, vector: u32, target: &Target, num_warps: u32) -> Layout {
    let shape: Vec<u32> = ty.extents().iter().map(|extent| *extent as u32).collect();
    let threads = target.warp_size() * num_warps;
    let share = (shape.iter().product::<u32>() / threads).max(1);
    let rank = shape.len();
    let mut size_per_thread = vec![1; rank];
    size_per_thread[rank - 1] = vector.min(share).min(shape[rank - 1]);
    // Lanes, then warps, fill the last axis first.
    let (mut lanes, mut warps) = (vec![1; rank], vec![1; rank]);
    let (mut lanes_left, mut warps_left) = (target.warp_size(), num_warps);
    for axis in (0..rank).rev() {
        let room = (shape[axis] / size_per_thread[axis]).max(1);
        lanes[axis] = if axis == 0 { lanes_left } else { room.min(lanes_left) };
        lanes_left /= lanes[axis];
        let room = (room / lanes[axis]).max(1);
        warps[axis] = if axis == 0 { warps_left } else { room.min(warps_left) };
        warps_left /= warps[axis];
    }
    let order: Vec<usize> = (0..rank).rev().collect();
    Layout::blocked(&shape, &size_per_thread, &lanes, &warps, &order).expect("extents of verified tiles are powers of two")
}

fn tiles(func: &Function) -> Vec<Value> {
    let mut tiles = Vec::new();
    for region in func.regions_under(func.body) {
        tiles.extend(func.region(region).params.iter().copied());
        for inst in &func.region(region).insts {
            tiles.extend(&func.inst(*inst).results);
        }
    }
    tiles.retain(|value| func.ty(*value).is_tile());
    tiles
}

struct Components {
    parent: Vec<usize>,
}

impl Components {
    fn find(&mut self, value: Value) -> usize {
        let mut at = value.index();
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join_each(&mut self, func: &Function, values: &[Value], with: &[Value]) {
        let pairs = values.iter().zip(with).filter(|(value, _)| func.ty(**value).is_tile());
        pairs.for_each(|(value, with)| self.join(*value, *with));
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a] = b;
    }
}

fn connect(func: &Function, components: &mut Components) {
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let results = &data.results;
        match &data.op {
            Op::If { then_region, else_region, .. } => {
                components.join_each(func, results, func.yielded(*then_region));
                components.join_each(func, results, func.yielded(*else_region));
            }
            Op::For { init, body, .. } => {
                for values in [init, &func.region(*body).params[1..], func.yielded(*body)] {
                    components.join_each(func, results, values);
                }
            }
            Op::While { init, test, body } => {
                for values in [init, &func.region(*test).params, &func.region(*body).params, func.yielded(*test), func.yielded(*body)] {
                    components.join_each(func, results, values);
                }
            }
            Op::Broadcast { .. } | Op::ExpandDims { .. } => {}
            _ => tiles_of(func, inst).windows(2).for_each(|pair| components.join(pair[0], pair[1])),
        }
    }
}

fn tiles_of(func: &Function, inst: Inst) -> Vec<Value> {
    let data = func.inst(inst);
    let mut tiles = data.results.clone();
    data.op.for_each_operand(&mut |value| tiles.push(value));
    tiles.retain(|value| func.ty(*value).is_tile());
    tiles
}

/// How many neighbouring elements a thread should hold, by component.
fn vectors(func: &Function, components: &mut Components) -> Vec<u32> {
    let mut facts = AffineFacts::new();
    let mut vectors = vec![1; func.value_count()];
    for inst in func.all_insts() {
        let (Op::Load { base, offset, align, .. } | Op::Store { base, offset, align, .. }) = func.inst(inst).op else { continue };
        let is_contiguous = facts.get(func, offset).is_some_and(|affine| affine.lanes.last() == Some(&1));
        if align > 0 && is_contiguous {
            let vector = align / func.ty(base).dtype().bytes() as u32;
            let component = &mut vectors[components.find(offset)];
            *component = vector.max(*component);
        }
    }
    vectors
}
