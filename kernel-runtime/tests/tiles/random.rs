//! Random kernels of everything that moves tiles, evaluated element by element while they are written.

use std::fmt::Write;

use crate::harness::{Arg, Random, compiled, run};

/// A tile of the kernel and what it holds.
#[derive(Clone)]
struct Tile {
    name: String,
    shape: Vec<usize>,
    values: Vec<u32>,
}

impl Tile {
    fn ty(&self) -> String {
        if self.shape.is_empty() { "u32".to_string() } else { format!("tile<u32, {:?}>", self.shape) }
    }
}

fn unflatten(shape: &[usize], mut at: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (value, extent) in index.iter_mut().zip(shape).rev() {
        *value = at % extent;
        at /= extent;
    }
    index
}

fn flatten(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |at, (extent, index)| at * extent + index)
}

struct Generator {
    random: Random,
    text: String,
    tiles: Vec<Tile>,
    next: usize,
    /// The arguments so far: inputs and outputs with what they must become.
    params: Vec<String>,
    args: Vec<(Vec<u32>, Option<Vec<u32>>)>,
}

impl Generator {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn any(&mut self) -> Tile {
        let at = self.random.below(self.tiles.len());
        self.tiles[at].clone()
    }

    fn define(&mut self, op: &str, shape: Vec<usize>, values: Vec<u32>) {
        assert_eq!(shape.iter().product::<usize>(), values.len());
        let tile = Tile { name: self.name(), shape, values };
        let _ = writeln!(self.text, "{} = {op} : {}", tile.name, tile.ty());
        self.tiles.push(tile);
    }

    /// Row-major offsets in that shape, or with two axes exchanged.
    fn offsets(&mut self, shape: &[usize], order: &[usize]) -> String {
        let memory: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        let mut sum: Option<String> = None;
        for (position, axis) in order.iter().enumerate() {
            let stride: usize = memory[position + 1..].iter().product();
            let extent = shape[*axis];
            let [at, scaled, factor, shaped, spread] = [(); 5].map(|()| self.name());
            let ones: Vec<usize> = (0..shape.len()).map(|other| if other == *axis { extent } else { 1 }).collect();
            let _ = writeln!(
                self.text,
                "{at} = arange {{start = 0, end = {extent}}} : tile<i64, [{extent}]>\n{factor} = const {{value = {stride}}} : tile<i64, [{extent}]>\n\
                 {scaled} = mul {at}, {factor} : tile<i64, [{extent}]>\n{shaped} = reshape {scaled} : tile<i64, {ones:?}>\n\
                 {spread} = broadcast {shaped} : tile<i64, {shape:?}>"
            );
            sum = Some(match sum {
                None => spread,
                Some(sum) => {
                    let both = self.name();
                    let _ = writeln!(self.text, "{both} = add {sum}, {spread} : tile<i64, {shape:?}>");
                    both
                }
            });
        }
        sum.expect("a tile has an axis")
    }

    fn order(&mut self, rank: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..rank).collect();
        for end in (1..rank).rev() {
            if self.random.below(3) == 0 {
                order.swap(end, self.random.below(end + 1));
            }
        }
        order
    }

    fn load(&mut self) {
        let bits = 2 + self.random.below(8);
        let shape: Vec<usize> = self.random.shape(bits).into_iter().map(|extent| extent as usize).collect();
        let order = self.order(shape.len());
        let memory: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        let data: Vec<u32> = (0..1 << bits).map(|_| self.random.next() as u32).collect();
        let values = (0..1 << bits)
            .map(|at| unflatten(&shape, at))
            .map(|index| data[flatten(&memory, &order.iter().map(|axis| index[*axis]).collect::<Vec<_>>())])
            .collect();
        let offsets = self.offsets(&shape, &order);
        let base = format!("%x{}", self.params.len());
        self.params.push(format!("{base}: ptr<u32>"));
        self.args.push((data, None));
        self.define(&format!("load {base}, {offsets}"), shape, values);
    }

    fn store(&mut self, tile: &Tile) {
        let base = format!("%y{}", self.params.len());
        self.params.push(format!("{base}: ptr_mut<u32>"));
        let mut data = tile.values.clone();
        let offsets = if tile.shape.is_empty() {
            let zero = self.name();
            let _ = writeln!(self.text, "{zero} = const {{value = 0}} : i64");
            zero
        } else {
            let order = self.order(tile.shape.len());
            let memory: Vec<usize> = order.iter().map(|axis| tile.shape[*axis]).collect();
            for (at, value) in tile.values.iter().enumerate() {
                let index = unflatten(&tile.shape, at);
                data[flatten(&memory, &order.iter().map(|axis| index[*axis]).collect::<Vec<_>>())] = *value;
            }
            self.offsets(&tile.shape, &order)
        };
        let _ = writeln!(self.text, "store {base}, {offsets}, {}", tile.name);
        self.args.push((vec![0xeeee_eeee; data.len()], Some(data)));
    }

    fn step(&mut self) {
        let x = self.any();
        let rank = x.shape.len();
        match self.random.below(13) {
            0 => self.load(),
            1 if rank > 0 => {
                let order = self.order(rank);
                let shape: Vec<usize> = order.iter().map(|axis| x.shape[*axis]).collect();
                let values = (0..x.values.len())
                    .map(|at| {
                        let index = unflatten(&shape, at);
                        let mut from = vec![0; rank];
                        order.iter().zip(index).for_each(|(axis, at)| from[*axis] = at);
                        x.values[flatten(&x.shape, &from)]
                    })
                    .collect();
                self.define(&format!("permute {} {{order = {order:?}}}", x.name), shape, values);
            }
            2 if rank > 0 => {
                let shape: Vec<usize> =
                    self.random.shape(x.values.len().trailing_zeros() as usize).into_iter().map(|extent| extent as usize).collect();
                self.define(&format!("reshape {}", x.name), shape, x.values.clone());
            }
            3 if rank > 0 && rank < 4 => {
                let axis = self.random.below(rank + 1);
                let mut shape = x.shape.clone();
                shape.insert(axis, 1);
                let attribute = if axis == 0 { String::new() } else { format!(" {{axis = {axis}}}") };
                self.define(&format!("expand_dims {}{attribute}", x.name), shape, x.values.clone());
            }
            4 if x.values.len() < 512 && rank > 0 => {
                let shape: Vec<usize> =
                    x.shape.iter().map(|extent| if *extent == 1 { 1 << self.random.below(4) } else { *extent }).collect();
                let count = shape.iter().product();
                let values = (0..count)
                    .map(|at| {
                        let index: Vec<usize> =
                            unflatten(&shape, at).iter().zip(&x.shape).map(|(at, extent)| if *extent == 1 { 0 } else { *at }).collect();
                        x.values[flatten(&x.shape, &index)]
                    })
                    .collect();
                self.define(&format!("broadcast {}", x.name), shape, values);
            }
            5 | 6 if rank > 0 => self.combine(&x),
            7 if x.shape.iter().any(|extent| *extent > 1) => {
                let axes: Vec<usize> = (0..rank).filter(|axis| x.shape[*axis] > 1).collect();
                let axis = axes[self.random.below(axes.len())];
                let bit = self.random.below(x.shape[axis].trailing_zeros() as usize);
                let inner: usize = x.shape[axis + 1..].iter().product();
                let values = (0..x.values.len()).map(|at| x.values[at ^ (inner << bit)]).collect();
                self.define(&format!("butterfly {} {{{}}}", x.name, attributes(&[("axis", axis), ("bit", bit)])), x.shape, values);
            }
            8 if rank > 0 => self.gather(&x),
            9 if rank > 0 => {
                let (low, bins) = (self.masked(&x, 31), 16);
                let counts = (0..bins).map(|bin| low.values.iter().filter(|value| **value == bin).count() as u32).collect();
                let name = self.name();
                let _ = writeln!(self.text, "{name} = histogram {} {{bins = {bins}}} : tile<i32, [{bins}]>", low.name);
                self.define(&format!("bitcast {name}"), vec![bins as usize], counts);
            }
            10 => self.atomic(&x),
            11 if rank > 0 => {
                let descending = self.random.below(2) == 0;
                let mut values = x.values.clone();
                for row in values.chunks_mut(x.shape[rank - 1]) {
                    row.sort_unstable();
                    if descending {
                        row.reverse();
                    }
                }
                let direction = if descending { " {descending = true}" } else { "" };
                self.define(&format!("sort {}{direction}", x.name), x.shape, values);
            }
            _ => {
                let alike: Vec<Tile> = self.tiles.iter().filter(|tile| tile.shape == x.shape).cloned().collect();
                let y = alike[self.random.below(alike.len())].clone();
                let values = x.values.iter().zip(&y.values).map(|(x, y)| x.wrapping_add(*y)).collect();
                self.define(&format!("add {}, {}", x.name, y.name), x.shape, values);
            }
        }
    }

    /// The low bits of each element.
    fn masked(&mut self, x: &Tile, mask: u32) -> Tile {
        let constant = self.name();
        let _ = writeln!(self.text, "{constant} = const {{value = {mask}}} : {}", x.ty());
        let values = x.values.iter().map(|value| value & mask).collect();
        self.define(&format!("and {}, {constant}", x.name), x.shape.clone(), values);
        self.tiles[self.tiles.len() - 1].clone()
    }

    /// By indices of which some are outside.
    fn gather(&mut self, x: &Tile) {
        let axis = self.random.below(x.shape.len());
        let alike: Vec<Tile> = self.tiles.iter().filter(|tile| tile.shape == x.shape).cloned().collect();
        let index = alike[self.random.below(alike.len())].clone();
        let index = self.masked(&index, 2 * x.shape[axis] as u32 - 1);
        let element = |(at, index): (usize, &u32)| {
            let mut source = unflatten(&x.shape, at);
            source[axis] = *index as usize;
            if source[axis] < x.shape[axis] { x.values[flatten(&x.shape, &source)] } else { 0 }
        };
        let values = index.values.iter().enumerate().map(element).collect();
        let wide = self.name();
        let _ = writeln!(self.text, "{wide} = cast {} : tile<i64, {:?}>", index.name, x.shape);
        self.define(&format!("gather {}, {wide} {{{}}}", x.name, attributes(&[("axis", axis)])), x.shape.clone(), values);
    }

    /// Adds to a tensor of its own; the old values are known, for no two lanes meet.
    fn atomic(&mut self, x: &Tile) {
        let base = format!("%y{}", self.params.len());
        self.params.push(format!("{base}: ptr_mut<u32>"));
        let data: Vec<u32> = x.values.iter().map(|_| self.random.next() as u32).collect();
        let offsets = if x.shape.is_empty() {
            let zero = self.name();
            let _ = writeln!(self.text, "{zero} = const {{value = 0}} : i64");
            zero
        } else {
            self.offsets(&x.shape, &(0..x.shape.len()).collect::<Vec<_>>())
        };
        let sums = data.iter().zip(&x.values).map(|(old, value)| old.wrapping_add(*value)).collect();
        self.args.push((data.clone(), Some(sums)));
        let sem = ["acq_rel", "acquire", "release", "relaxed"][self.random.below(4)];
        self.define(&format!("atomic {base}, {offsets}, {} {{op = \"add\", sem = \"{sem}\"}}", x.name), x.shape.clone(), data);
    }

    /// A reduction or a scan, by a sum or by keeping the last.
    fn combine(&mut self, x: &Tile) {
        let axis = self.random.below(x.shape.len());
        let keeps_last = self.random.below(2) == 0;
        let (is_scan, reverse) = (self.random.below(2) == 0, self.random.below(2) == 0);
        let combine = |a: u32, b: u32| if keeps_last { b ^ (a & 1) } else { a.wrapping_add(b) };
        // The last of a run, with its lowest bit xored over all: associative, and not commutative.
        let [a, b, c, d, e] = [(); 5].map(|()| self.name());
        let body = if keeps_last {
            format!(
                "({a}: u32, {b}: u32) {{\n{c} = const {{value = 1}} : u32\n{d} = and {a}, {c} : u32\n{e} = xor {b}, {d} : u32\nyield {e}\n}}"
            )
        } else {
            format!("({a}: u32, {b}: u32) {{\n{c} = add {a}, {b} : u32\nyield {c}\n}}")
        };
        let mut values = x.values.clone();
        let extent = x.shape[axis];
        let inner: usize = x.shape[axis + 1..].iter().product();
        let mut last = Vec::new();
        for start in (0..values.len()).filter(|at| (at / inner).is_multiple_of(extent)) {
            let mut run: Vec<usize> = (0..extent).map(|k| start + k * inner).collect();
            if is_scan && reverse {
                run.reverse();
            }
            for pair in run.windows(2) {
                values[pair[1]] = combine(values[pair[0]], values[pair[1]]);
            }
            last.push(values[run[extent - 1]]);
        }
        let mut attributes = Vec::new();
        if axis > 0 || !is_scan {
            attributes.push(format!("axis = {axis}"));
        }
        if is_scan && axis == 0 {
            attributes.push("axis = 0".to_string());
        }
        if is_scan && reverse {
            attributes.push("reverse = true".to_string());
        }
        let name = if is_scan { "scan" } else { "reduce" };
        let op = format!("{name} {} {{{}}} {body}", x.name, attributes.join(", "));
        let mut shape = x.shape.clone();
        if is_scan {
            self.define(&op, shape, values);
        } else {
            shape.remove(axis);
            self.define(&op, shape, last);
        }
    }
}

/// Attributes; those that are 0 are not written.
fn attributes(list: &[(&str, usize)]) -> String {
    let written = list.iter().filter(|(_, value)| *value != 0).map(|(name, value)| format!("{name} = {value}"));
    written.collect::<Vec<_>>().join(", ")
}

fn check(seed: u64) {
    let mut cx =
        Generator { random: Random::new(seed), text: String::new(), tiles: Vec::new(), next: 0, params: Vec::new(), args: Vec::new() };
    cx.load();
    for _ in 0..4 + cx.random.below(12) {
        cx.step();
    }
    for tile in cx.tiles.clone().iter().rev().take(3) {
        cx.store(tile);
    }
    let num_warps = [1, 2, 4, 8][cx.random.below(4)];
    let text = format!("kernel @random({}) {{\n{}return\n}}", cx.params.join(", "), cx.text);
    let module = compiled(&text, num_warps);
    let words = |values: &[u32]| Arg::tensor(values.iter().map(|value| value.to_le_bytes()));
    let mut args: Vec<Arg> = cx.args.iter().map(|(data, _)| words(data)).collect();
    run(&module, num_warps, [1; 3], &mut args, seed % 4);
    for (index, (arg, (_, expected))) in args.iter().zip(&cx.args).enumerate() {
        if let Some(expected) = expected {
            let found: Vec<u32> = arg.elements().into_iter().map(u32::from_le_bytes).collect();
            assert!(found == *expected, "seed {seed}, argument {index}: {expected:x?}\n{found:x?}\n{text}\n{}", module.text);
        }
    }
}

#[test]
fn random_kernels_compute_what_they_say() {
    (0..300).for_each(check);
}
