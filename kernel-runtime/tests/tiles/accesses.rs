//! Random accesses, behind random masks and in random loops: a simulated GPU leaves in memory what the CPU does.
//!
//! Numbers are often those at which an index, a mask or an iteration ends, and sometimes those at which 64 bits do.

use std::fmt::Write;

use kernel_cpu::{Conflicts, Scratch};
use kernel_lang::Bindings;
use kernel_lang::ir::parse;

use crate::harness::{Arg, Random, compiled, run};

const ELEMENTS: [(&str, usize); 3] = [("i8", 1), ("i32", 4), ("i64", 8)];
const SHAPES: [&[usize]; 10] = [&[64], &[512], &[1], &[4, 64], &[1, 64], &[64, 1], &[96], &[3, 32], &[2, 1, 64], &[2048]];
const CONSTANTS: [i64; 14] = [0, 1, -1, 2, 3, 7, 16, 63, 64, 100, 300, -5, -64, 128];
const FAR: [i64; 7] = [i64::MAX, i64::MIN, i64::MAX - 63, 1 << 40, 1 << 62, 1 << 31, -(1 << 62)];
/// Elements of the tensor of sums: as many as the largest tile has.
const SUMS: usize = 2048;

struct Generator {
    random: Random,
    text: String,
    next: usize,
    element: &'static str,
    /// The `i64` scalars that may be used here.
    scalars: Vec<String>,
}

fn tile(shape: &[usize], element: &str) -> String {
    format!("tile<{element}, {shape:?}>")
}

impl Generator {
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.random.below(list.len())]
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.random.below(many) == 0
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn put(&mut self, op: &str, ty: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.text, "{name} = {op} : {ty}");
        name
    }

    fn constant(&mut self, value: i64, ty: &str) -> String {
        self.put(&format!("const {{value = {value}}}"), ty)
    }

    fn scalar(&mut self) -> String {
        let known = self.scalars[self.random.below(self.scalars.len())].clone();
        match self.random.below(16) {
            0..3 => {
                let value = if self.one_in(16) { self.of(&FAR) } else { self.of(&CONSTANTS) };
                self.constant(value, "i64")
            }
            3..5 => {
                let (op, other) = (self.of(&["add", "sub", "mul", "min", "max", "rem"]), self.scalar());
                self.put(&format!("{op} {known}, {other}"), "i64")
            }
            5 => {
                let narrow = self.of(&["i8", "u8", "i32", "u32", "u64"]);
                let cast = self.put(&format!("cast {known}"), narrow);
                self.put(&format!("cast {cast}"), "i64")
            }
            _ => known,
        }
    }

    fn splat(&mut self, scalar: &str, shape: &[usize]) -> String {
        self.put(&format!("broadcast {scalar}"), &tile(shape, "i64"))
    }

    fn binary(&mut self, op: &str, lhs: &str, rhs: &str, shape: &[usize]) -> String {
        self.put(&format!("{op} {lhs}, {rhs}"), &tile(shape, "i64"))
    }

    /// The index of each element along an axis. Some indices have an offset, are reversed or are negated.
    fn axis_index(&mut self, shape: &[usize], axis: usize) -> String {
        let (start, extent) = (self.of(&[0, 0, 0, 1, -3]), shape[axis] as i64);
        let mut index = self.put(&format!("arange {{start = {start}, end = {}}}", start + extent), &tile(&[shape[axis]], "i64"));
        let change = self.random.below(7);
        if change == 0 {
            index = self.put(&format!("flip {index} {{axis = 0}}"), &tile(&[shape[axis]], "i64"));
        } else if change == 1 {
            index = self.put(&format!("neg {index}"), &tile(&[shape[axis]], "i64"));
        }
        let mut column = vec![shape[axis]];
        for other in (0..shape.len()).filter(|other| *other != axis) {
            column.insert(other, 1);
            index = self.put(&format!("expand_dims {index} {{axis = {other}}}"), &tile(&column, "i64"));
        }
        if column == shape { index } else { self.put(&format!("broadcast {index}"), &tile(shape, "i64")) }
    }

    /// Row-major indices, sometimes with other strides, plus a scalar offset.
    fn index(&mut self, shape: &[usize]) -> String {
        let first = self.scalar();
        let mut sum = self.splat(&first, shape);
        for axis in 0..shape.len() {
            let index = self.axis_index(shape, axis);
            let row = shape[axis + 1..].iter().product::<usize>() as i64;
            let step = if self.one_in(8) { self.scalar() } else { self.constant(row, "i64") };
            let step = self.splat(&step, shape);
            let index = self.binary("mul", &index, &step, shape);
            sum = self.binary("add", &sum, &index, shape);
        }
        sum
    }

    /// A comparison of indices, or a combination of two masks. Some masks have fewer elements and are broadcast.
    fn mask(&mut self, shape: &[usize], depth: usize) -> String {
        let mask_type = tile(shape, "bool");
        if depth < 1 && self.one_in(3) {
            let [one, other] = [0; 2].map(|_| self.mask(shape, depth + 1));
            let op = self.of(&["and", "and", "or"]);
            return self.put(&format!("{op} {one}, {other}"), &mask_type);
        }
        let repeats = self.one_in(4);
        let small: Vec<usize> = shape.iter().map(|extent| if repeats && self.one_in(2) { 1 } else { *extent }).collect();
        let axis = self.random.below(small.len());
        let (mut index, first, end) = (self.axis_index(&small, axis), self.scalar(), self.scalar());
        if !self.one_in(3) {
            let first = self.splat(&first, &small);
            index = self.binary("add", &index, &first, &small);
        }
        let (end, op) = (self.splat(&end, &small), self.of(&["lt", "lt", "lt", "le", "gt", "ge", "ne"]));
        let mask = self.put(&format!("{op} {index}, {end}"), &tile(&small, "bool"));
        if small == shape { mask } else { self.put(&format!("broadcast {mask}"), &mask_type) }
    }

    /// Adds the values of a load to the sum, or stores to each index a number that is computed from the index.
    fn access(&mut self, shape: &[usize], sum: String) -> String {
        let (ty, at) = (tile(shape, self.element), self.index(shape));
        let mask = if self.one_in(5) { String::new() } else { format!("mask = {}", self.mask(shape, 0)) };
        if self.one_in(3) {
            let value = self.put(&format!("cast {at}"), &ty);
            let _ = writeln!(self.text, "store %y, {at}, {value} {{{mask}}}");
            return sum;
        }
        let other = if mask.is_empty() || !self.one_in(3) { String::new() } else { format!(", other = {}", self.constant(9, &ty)) };
        let value = self.put(&format!("load %x, {at} {{{mask}{other}}}"), &ty);
        self.put(&format!("add {sum}, {value}"), &ty)
    }

    fn steps(&mut self, shape: &[usize], mut sum: String, depth: usize) -> String {
        for _ in 0..1 + self.random.below(2) {
            sum = if depth == 0 || depth == 1 && self.one_in(4) { self.nested_loop(shape, sum, depth) } else { self.access(shape, sum) };
        }
        sum
    }

    /// A loop between arguments, or one that ends where its type does.
    fn nested_loop(&mut self, shape: &[usize], sum: String, depth: usize) -> String {
        let ty = tile(shape, self.element);
        let (counter, bounds) = if self.one_in(3) {
            let (counter, lower, step) =
                self.of(&[("u64", (1i128 << 63) - 70, 35), ("u8", 100, 60), ("i32", (1 << 31) - 101, 50), ("i64", -64, 64)]);
            let bounds = [lower, lower + 100, step].map(|bound| self.put(&format!("const {{value = {bound}}}"), counter));
            (counter, bounds.join(", "))
        } else {
            ("i64", "%lower, %upper, %step".to_owned())
        };
        let (stages, unroll) = (1 + self.random.below(4), 1 + self.random.below(3));
        let [result, index, carried] = [(); 3].map(|()| self.name());
        let options = format!("{{num_stages = {stages}, unroll = {unroll}}}");
        let _ = writeln!(self.text, "{result} = for {bounds}, {sum} {options} ({index}: {counter}, {carried}: {ty}) {{");
        let known = self.scalars.len();
        let at = if counter == "i64" { index } else { self.put(&format!("cast {index}"), "i64") };
        self.scalars.extend([at.clone(), at]);
        let next = self.steps(shape, carried, depth + 1);
        self.scalars.truncate(known);
        let _ = writeln!(self.text, "yield {next}\n}} : {ty}");
        result
    }
}

/// A kernel, and how many bytes its elements have.
fn kernel(random: Random) -> (Generator, usize) {
    let scalars = ["%n", "%m", "%s", "%lower"].map(str::to_owned).to_vec();
    let mut cx = Generator { random, text: String::new(), next: 0, element: "", scalars };
    let (element, bytes) = cx.of(&ELEMENTS);
    let shape = cx.of(&SHAPES);
    cx.element = element;
    let tensors = format!("%x: ptr<{element}>, %y: ptr_mut<{element}>, %sums: ptr_mut<{element}>");
    let _ = writeln!(cx.text, "kernel @random({tensors}, %n: i64, %m: i64, %s: i64, %lower: i64, %upper: i64, %step: i64) {{");
    let zero = cx.constant(0, &tile(shape, element));
    let sum = cx.steps(shape, zero, 0);
    let numel = shape.iter().product::<usize>();
    let flat = cx.put(&format!("reshape {sum}"), &tile(&[numel], element));
    let at = cx.put(&format!("arange {{start = 0, end = {numel}}}"), &tile(&[numel], "i64"));
    let _ = writeln!(cx.text, "store %sums, {at}, {flat}\nreturn\n}}");
    (cx, bytes)
}

/// Tensors of noise, and loop bounds that give a few iterations.
fn arguments(cx: &mut Generator, bytes: usize) -> Vec<Arg> {
    let len = cx.of(&[1, 64, 257, 300, 512, 2500]);
    let noise = [len, len, SUMS].map(|len| Arg::Tensor((0..len * bytes).map(|_| cx.random.next() as u8).collect(), bytes));
    let mut number = |usual: &[i64]| if cx.one_in(8) { cx.of(&FAR) } else { cx.of(usual) };
    let lower = number(&[0, 0, 0, 1, -3, 64]);
    let numbers = [number(&[0, 1, 5, 64, 100, 300, -7, 299]), number(&[0, 1, 3, 16, 64, -2]), number(&[1, 2, 16, 64, -1]), lower];
    let bounds = [lower.saturating_add(number(&[0, 1, 64, 200, 256]).min(256)), cx.of(&[7, 16, 64, 0, -1, 1 << 62])];
    noise.into_iter().chain(numbers.into_iter().chain(bounds).map(|number| Arg::Scalar(number.to_le_bytes().to_vec()))).collect()
}

/// Runs a kernel on the CPU; tensors are changed in place.
fn run_on_cpu(text: &str, args: &mut [Arg]) {
    let func = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let program = kernel_cpu::compile(&func, &Bindings::new()).unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&[])));
    let mut words = Vec::new();
    for arg in args.iter_mut() {
        match arg {
            Arg::Tensor(bytes, size) => words.extend([bytes.as_mut_ptr().expose_provenance() as u64, (bytes.len() / *size) as u64]),
            Arg::Scalar(bytes) => words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))),
        }
    }
    // SAFETY: the words are the parameters', and the tensors that they point to are alive and nobody else's.
    unsafe { program.run(&words, [1; 3], [0; 3], &mut Scratch::new(), false, &Conflicts::none()) }
        .unwrap_or_else(|_| panic!("nothing is checked\n{text}"));
}

fn check(seed: u64) {
    let (mut cx, bytes) = kernel(Random::new(seed));
    let num_warps = cx.of(&[1, 2, 4]);
    let module = compiled(&cx.text, num_warps);
    for launch in 0..3 {
        let mut found = arguments(&mut cx, bytes);
        let mut expected = found.clone();
        run(&module, num_warps, [1; 3], &mut found, seed % 4);
        run_on_cpu(&cx.text, &mut expected);
        for (number, pair) in found.iter().zip(&expected).enumerate() {
            let (Arg::Tensor(found, _), Arg::Tensor(expected, _)) = pair else { continue };
            let at = found.iter().zip(expected).position(|(found, expected)| found != expected);
            assert!(at.is_none(), "seed {seed}, launch {launch}, argument {number} differs at byte {at:?}\n{}", cx.text);
        }
    }
}

#[test]
fn a_gpu_leaves_in_memory_what_the_cpu_does() {
    (0..200).for_each(check);
}
