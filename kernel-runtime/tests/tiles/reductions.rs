//! Reductions and scans over random layouts, with operations that mind the order.

use std::fmt::Write;

use crate::harness::{Arg, Random, compiled, emitted, run, with_room};
use kernel_lang::layout::Layout;

/// A combining operation: the types of its inputs, its region in IR, and the same function on plain words.
struct Operation {
    name: &'static str,
    elems: &'static [(&'static str, usize)],
    body: &'static str,
    combine: fn(&[u64], &[u64]) -> Vec<u64>,
}

const OPERATIONS: [Operation; 7] = [
    Operation {
        name: "sum of u32",
        elems: &[("u32", 4)],
        body: "(%a: u32, %b: u32) {\n%s = add %a, %b : u32\nyield %s\n}",
        combine: |a, b| vec![(a[0] + b[0]) & 0xffff_ffff],
    },
    Operation {
        name: "f(x) = a x + b, one after the other",
        elems: &[("u32", 4), ("u32", 4)],
        body: "(%a: u32, %b: u32, %c: u32, %d: u32) {\n%m = mul %a, %c : u32\n%n = mul %b, %c : u32\n%s = add %n, %d : u32\nyield %m, %s\n}",
        combine: |l, r| vec![(l[0] * r[0]) & 0xffff_ffff, (l[1] * r[0] + r[1]) & 0xffff_ffff],
    },
    Operation { name: "the last", elems: &[("u8", 1)], body: "(%a: u8, %b: u8) {\nyield %b\n}", combine: |_, b| b.to_vec() },
    Operation { name: "the first", elems: &[("i64", 8)], body: "(%a: i64, %b: i64) {\nyield %a\n}", combine: |a, _| a.to_vec() },
    Operation {
        name: "parity",
        elems: &[("bool", 1)],
        body: "(%a: bool, %b: bool) {\n%s = xor %a, %b : bool\nyield %s\n}",
        combine: |a, b| vec![a[0] ^ b[0]],
    },
    Operation {
        name: "the larger and its index, the first of equal ones",
        elems: &[("u16", 2), ("i64", 8)],
        body: "(%a: u16, %i: i64, %b: u16, %j: i64) {\n%p = ge %a, %b : bool\n%v = select %p, %a, %b : u16\n%k = select %p, %i, %j : i64\nyield %v, %k\n}",
        combine: |l, r| if l[0] >= r[0] { l.to_vec() } else { r.to_vec() },
    },
    Operation {
        name: "the largest f32, small ones",
        elems: &[("f32", 4)],
        body: "(%a: f32, %b: f32) {\n%s = max %a, %b : f32\nyield %s\n}",
        combine: |a, b| vec![a[0].max(b[0])],
    },
];

struct Case {
    shape: Vec<u32>,
    axis: usize,
    layout: Layout,
    is_scan: bool,
    reverse: bool,
}

/// Twice, in a loop, so that shared memory is used again.
fn kernel(operation: &Operation, case: &Case) -> String {
    let count: u32 = case.shape.iter().product();
    let inputs = operation.elems.len();
    let mut out_shape = case.shape.clone();
    let mut out = case.layout.clone();
    if !case.is_scan {
        out_shape.remove(case.axis);
        out = case.layout.slice(case.axis).unwrap().without_register_copies().0;
    }
    let out_count: u32 = out_shape.iter().product();
    let params: Vec<String> = (0..inputs).map(|i| format!("%x{i}: ptr<{0}>, %y{i}: ptr_mut<{0}>", operation.elems[i].0)).collect();
    let mut text = format!("kernel @combines({}) {{\n", params.join(", "));
    let ty = |elem: &str, layout: &Layout| {
        if layout.rank() == 0 { elem.to_string() } else { format!("tile<{elem}, {:?}> {layout}", layout.shape()) }
    };
    let _ = writeln!(text, "%zero = const {{value = 0}} : i64\n%two = const {{value = 2}} : i64\n%one = const {{value = 1}} : i64");
    let _ = writeln!(text, "for %zero, %two, %one (%round: i64) {{");
    let _ = writeln!(text, "%flat = arange {{start = 0, end = {count}}} : {}", ty("i64", &case.layout.reshape(&[count]).unwrap()));
    let _ = writeln!(text, "%at = reshape %flat : {}", ty("i64", &case.layout));
    for (i, (elem, _)) in operation.elems.iter().enumerate() {
        let _ = writeln!(text, "%t{i} = load %x{i}, %at {{in_bounds = true}} : {}", ty(elem, &case.layout));
    }
    let names = |prefix: &str| (0..inputs).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ");
    let types: Vec<String> = operation.elems.iter().map(|(elem, _)| ty(elem, &out)).collect();
    let attributes =
        if case.is_scan { format!("axis = {}, reverse = {}", case.axis, case.reverse) } else { format!("axis = {}", case.axis) };
    let attributes = attributes.replace(", reverse = false", "");
    let op = if case.is_scan { "scan" } else { "reduce" };
    let _ = writeln!(text, "{} = {op} {} {{{attributes}}} {} : {}", names("r"), names("t"), operation.body, types.join(", "));
    if out.rank() == 0 {
        let _ = writeln!(text, "%to = const {{value = 0}} : i64");
    } else {
        let _ = writeln!(text, "%out = arange {{start = 0, end = {out_count}}} : {}", ty("i64", &out.reshape(&[out_count]).unwrap()));
        let _ = writeln!(text, "%to = reshape %out : {}", ty("i64", &out));
    }
    for i in 0..inputs {
        let _ = writeln!(text, "store %y{i}, %to, %r{i} {{in_bounds = true}}");
    }
    text + "yield\n}\nreturn\n}"
}

/// The results in row-major order, a list for each input.
fn expected(operation: &Operation, case: &Case, inputs: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let extent = case.shape[case.axis] as usize;
    let inner: usize = case.shape[case.axis + 1..].iter().product::<u32>() as usize;
    let outer = inputs[0].len() / extent / inner;
    let mut results = vec![vec![0; if case.is_scan { inputs[0].len() } else { outer * inner }]; inputs.len()];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let mut order: Vec<usize> = (0..extent).map(|k| (o * extent + k) * inner + i).collect();
        if case.reverse {
            order.reverse();
        }
        let mut acc: Option<Vec<u64>> = None;
        for index in order {
            let next: Vec<u64> = inputs.iter().map(|input| input[index]).collect();
            let now = acc.map_or(next.clone(), |acc| (operation.combine)(&acc, &next));
            if case.is_scan {
                results.iter_mut().zip(&now).for_each(|(result, value)| result[index] = *value);
            }
            acc = Some(now);
        }
        if let Some(acc) = acc.filter(|_| !case.is_scan) {
            results.iter_mut().zip(&acc).for_each(|(result, value)| result[o * inner + i] = *value);
        }
    }
    results
}

fn to_bytes(value: u64, elem: &str, bytes: usize) -> Vec<u8> {
    // Whole numbers, as floats.
    let bits = if elem == "f32" { u64::from((value as f32).to_bits()) } else { value };
    bits.to_le_bytes()[..bytes].to_vec()
}

/// Counts barriers. With `is_tight` shared memory is left for one element of each thread, of the widest input.
fn check(seed: u64, is_tight: bool) -> usize {
    let mut random = Random::new(seed);
    let operation = &OPERATIONS[random.below(OPERATIONS.len())];
    let num_warps = [1, 2, 4, 8][random.below(4)];
    let bits = random.below(12);
    let shape = random.shape(bits);
    let layout = random.layout(&shape, num_warps, 0);
    let axis = random.below(shape.len());
    let is_scan = random.below(2) == 0;
    let case = Case { axis, layout, is_scan, reverse: is_scan && random.below(2) == 0, shape };
    let mut text = kernel(operation, &case);
    if is_tight {
        let (elem, bytes) = operation.elems[0];
        let widest = operation.elems.iter().map(|(_, bytes)| *bytes).max().unwrap_or(bytes);
        text = with_room(&text, num_warps, ("%x0", elem, bytes), 32 * num_warps * widest as u32);
    }
    let module = emitted(&text, num_warps);
    let count = 1usize << bits;
    let mut inputs = Vec::new();
    let mut args = Vec::new();
    for (index, (elem, bytes)) in operation.elems.iter().enumerate() {
        let most = if *elem == "bool" { 2 } else { 200 };
        let is_index = operation.name.contains("index") && index == 1;
        let values: Vec<u64> = (0..count).map(|at| if is_index { at as u64 } else { random.below(most) as u64 }).collect();
        args.push(Arg::Tensor(values.iter().flat_map(|value| to_bytes(*value, elem, *bytes)).collect(), *bytes));
        let results = if is_scan { count } else { count / case.shape[axis] as usize };
        args.push(Arg::Tensor(vec![0xee; results * bytes], *bytes));
        inputs.push(values);
    }
    run(&module, num_warps, [1; 3], &mut args, seed % 5);
    for (index, result) in expected(operation, &case, &inputs).into_iter().enumerate() {
        let (elem, bytes) = operation.elems[index];
        let wanted: Vec<u8> = result.iter().flat_map(|value| to_bytes(*value, elem, bytes)).collect();
        let Arg::Tensor(found, _) = &args[2 * index + 1] else { unreachable!() };
        assert!(*found == wanted, "seed {seed}, {}:\n{wanted:?}\n{found:?}\n{text}\n{}", operation.name, module.text);
    }
    module.text.matches("bar.sync").count()
}

#[test]
fn runs_combine_in_order_in_any_layout() {
    (0..400).for_each(|seed| {
        check(seed, false);
    });
}

/// Where the runs, or the inputs of one run, do not fit into shared memory together, they go through it one after the other.
#[test]
fn runs_combine_in_parts() {
    let in_parts = (1000..1200).filter(|seed| check(*seed, true) > check(*seed, false) + 2).count();
    assert!(in_parts >= 20, "{in_parts} go in parts");
}

/// `a * p + b * q`, where p and q are 0 or 1: the sum, the first element or the last. Nothing but the axes tells both numbers apart.
#[test]
fn the_order_of_a_reduction_may_depend_on_an_axis() {
    let text = "kernel @choose(%x: ptr<i64>, %y: ptr_mut<i64>) {
        %i = arange {start = 0, end = 512} : tile<i64, [512]>
        %v = load %x, %i : tile<i64, [512]>
        %r = reduce %v (%a: i64, %b: i64) {
            %one = const {value = 1} : i64
            %columns = num_programs : i64
            %rows = num_programs {axis = 1} : i64
            %p = sub %columns, %one : i64
            %q = sub %rows, %one : i64
            %ap = mul %a, %p : i64
            %bq = mul %b, %q : i64
            %sum = add %ap, %bq : i64
            yield %sum
        } : i64
        %all = broadcast %r : tile<i64, [512]>
        %column = program_id : i64
        %row = program_id {axis = 1} : i64
        %width = num_programs : i64
        %before = mul %row, %width : i64
        %program = add %before, %column : i64
        %extent = const {value = 512} : i64
        %start = mul %program, %extent : i64
        %starts = broadcast %start : tile<i64, [512]>
        %at = add %starts, %i : tile<i64, [512]>
        store %y, %at, %all
        return
    }";
    let x: Vec<i64> = (0..512).map(|i| 1000 + i).collect();
    let words = |values: &[i64]| Arg::tensor(values.iter().map(|value| value.to_le_bytes()));
    for (grid, expected) in [([1, 1, 1], 0), ([2, 1, 1], x[0]), ([1, 2, 1], x[511]), ([2, 2, 1], x.iter().sum())] {
        for num_warps in [1, 4] {
            let len = 512 * grid.iter().product::<u32>() as usize;
            let mut args = [words(&x), words(&vec![-1; len])];
            run(&compiled(text, num_warps), num_warps, grid, &mut args, 1);
            let found: Vec<i64> = args[1].elements().into_iter().map(i64::from_le_bytes).collect();
            // As every thread of every program has it.
            assert_eq!(found, vec![expected; len], "{num_warps} warps, {grid:?}");
        }
    }
}

/// A value that is used twice is visited once. As an expression without sharing, this formula would have 2^60 factors.
#[test]
fn long_formulas_are_combined() {
    let squares: String = (0..60).map(|k| format!("%s{} = mul %s{k}, %s{k} : f32\n", k + 1)).collect();
    let text = format!(
        "kernel @squares(%x: ptr<f32>, %y: ptr_mut<f32>) {{
        %i = arange {{start = 0, end = 64}} : tile<i64, [64]>
        %v = load %x, %i : tile<f32, [64]>
        %r = reduce %v (%a: f32, %b: f32) {{\n%s0 = mul %a, %b : f32\n{squares}yield %s60\n}} : f32
        %zero = const {{value = 0}} : i64
        store %y, %zero, %r
        return\n}}"
    );
    let ones = [1.0f32; 64].map(f32::to_le_bytes);
    let mut args = [Arg::tensor(ones), Arg::tensor([0.0f32.to_le_bytes()])];
    run(&compiled(&text, 4), 4, [1; 3], &mut args, 1);
    assert_eq!(args[1].elements(), [1.0f32.to_le_bytes()]);
}
