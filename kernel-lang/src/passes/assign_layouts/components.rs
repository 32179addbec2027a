//! Components: sets of tiles that must have one layout, because elementwise ops, branches and loops connect them.

use crate::ir::{Function, Handle, Inst, Op, Value};

/// A partition of the values, as a union-find structure.
pub(super) struct Components {
    parent: Vec<usize>,
}

impl Components {
    /// The components of a kernel.
    pub(super) fn of(func: &Function) -> Components {
        let mut components = Components { parent: (0..func.value_count()).collect() };
        for inst in func.all_insts() {
            components.connect(func, inst);
        }
        components
    }

    /// The component of a value, as the index of one of the component's values.
    pub(super) fn find(&mut self, value: Value) -> usize {
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

    fn connect(&mut self, func: &Function, inst: Inst) {
        let data = func.inst(inst);
        let results = &data.results[..];
        match &data.op {
            Op::If { then_region, else_region, .. } => {
                self.join_each(func, results, func.yielded(*then_region));
                self.join_each(func, results, func.yielded(*else_region));
            }
            Op::For { init, body, .. } => {
                for values in [init, &func.region(*body).params[1..], func.yielded(*body)] {
                    self.join_each(func, results, values);
                }
            }
            Op::While { init, test, body } => {
                for values in [init, &func.region(*test).params, &func.region(*body).params, func.yielded(*test), func.yielded(*body)] {
                    self.join_each(func, results, values);
                }
            }
            Op::Broadcast { .. } | Op::ExpandDims { .. } | Op::Reshape { .. } | Op::Permute { .. } | Op::Convert { .. } => {}
            Op::Reduce { inputs, .. } => {
                for list in [inputs, results] {
                    let tiles: Vec<Value> = list.iter().copied().filter(|value| func.ty(*value).is_tile()).collect();
                    tiles.windows(2).for_each(|pair| self.join(pair[0], pair[1]));
                }
            }
            Op::Gather { index, .. } => self.join(*index, results[0]),
            Op::Dot { acc, .. } | Op::WarpgroupDot { acc, .. } => self.join(*acc, results[0]),
            Op::WarpgroupWait { sums, .. } => self.join_each(func, results, sums),
            Op::Histogram { x, mask, .. } => mask.iter().for_each(|mask| self.join(*x, *mask)),
            // A part of common slots has a layout of its own.
            Op::LocalLoad { first: Some(_), .. } => {}
            // Tiles of one op that have equal shapes share a layout.
            _ => {
                let tiles = tiles_of(func, inst);
                for (index, value) in tiles.iter().enumerate() {
                    let alike = tiles[..index].iter().rev().find(|other| func.ty(**other).shape() == func.ty(*value).shape());
                    if let Some(other) = alike {
                        self.join(*other, *value);
                    }
                }
            }
        }
    }
}

/// Every tile of the kernel, in the order of the regions.
pub(super) fn tiles(func: &Function) -> Vec<Value> {
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

fn tiles_of(func: &Function, inst: Inst) -> Vec<Value> {
    let data = func.inst(inst);
    let mut tiles = data.results.to_vec();
    data.op.for_each_operand(&mut |value| tiles.push(value));
    tiles.retain(|value| func.ty(*value).is_tile());
    tiles
}
