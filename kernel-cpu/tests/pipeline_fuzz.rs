//! The passes of [`PIPELINE`] preserve the results of a kernel bit for bit: on random kernels, and on kernels of the usual form
//! with odd offsets, strides, limits and masks. No access of the result leaves its tensor, and wide ones are aligned.

#[allow(dead_code, reason = "the kernels of another test, of which only some compute what can be compared")]
#[path = "../../kernel-lang/tests/compile_bounds/kernels.rs"]
mod kernels;
mod support;

use std::fmt::Write;

use kernel_lang::Schedule;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Function, Op, Stage, UnaryOp, parse, verify};
use kernel_lang::passes::{self, PIPELINE, Pass, SIMPLIFY, prefetch_loads};
use kernel_lang::target::{Asked, Target};
use proptest::prelude::*;
use support::naive::{self, Arg};
use support::{Buffer, Random, compile_function, matrix_kernels, random_kernels, run_grid, same, samples};

const GRID: [u32; 3] = [3, 1, 1];

/// Runs a kernel before and after the passes; returns how many wide accesses ran.
fn compare(func: &Function, mut tensors: Vec<Option<Buffer>>, scalars: &[u64]) -> usize {
    let mut ready = func.clone();
    passes::run(&mut ready, SIMPLIFY, &mut verified);
    passes::run(&mut ready, PIPELINE, &mut verified);
    let ready = parse(&ready.to_string()).unwrap_or_else(|error| panic!("{error}\n{ready}"));
    // The kernel with prefetched loads, too. The CPU does not prefetch, so only the naive executor runs it.
    let mut ahead = ready.clone();
    let changed = prefetch_loads::run(&mut ahead, &Asked::new(Target::SM_80), Schedule { num_warps: 1, ..Schedule::DEFAULT })
        .unwrap_or_else(|error| panic!("{}", error.render(&[])));
    verify(&ahead, Stage::Tile).unwrap_or_else(|violations| panic!("{violations:?}\n{ahead}"));
    let ahead = if changed { parse(&ahead.to_string()).unwrap_or_else(|error| panic!("{error}\n{ahead}")) } else { ahead };

    let mut naively = tensors.clone();
    let mut wide = 0;
    let mut expected = tensors.clone();
    if func.unchecked
        && (0..GRID[0]).any(|index| naive::run(func, naive_args(&mut tensors.clone(), scalars), GRID, [index, 0, 0]).is_some())
    {
        // Such a kernel promises to stay inside.
        return 0;
    }
    // A word in a branch that is never taken is gone.
    if ahead.overlaps() && !func.unchecked {
        let early = (0..GRID[0]).find(|&index| naive::is_early(&ahead, naive_args(&mut tensors.clone(), scalars), GRID, [index, 0, 0]));
        assert_eq!(early, None, "it does not wait for the launch before\n{func}\n{ahead}");
    }
    let mut naively_ahead = tensors.clone();
    for index in 0..GRID[0] {
        let outside = naive::run(&ahead, naive_args(&mut naively_ahead, scalars), GRID, [index, 0, 0]);
        assert_eq!(outside, None, "an access that runs ahead is not guarded\n{func}\n{ahead}");
        let (outside, count) = naive::run_counting(&ready, naive_args(&mut naively, scalars), GRID, [index, 0, 0]);
        assert_eq!(outside, None, "an access that should be guarded is not\n{func}\n{ready}");
        wide += count;
        naive::run(func, naive_args(&mut expected, scalars), GRID, [index, 0, 0]);
    }
    let mut words = Vec::new();
    let mut rest = scalars.iter();
    for tensor in &mut tensors {
        match tensor {
            Some(tensor) => words.extend(tensor.args()),
            None => words.push(*rest.next().expect("a value for each scalar")),
        }
    }
    let outcome = run_grid(&compile_function(&ready), &words, GRID, true);
    assert!(outcome.is_ok(), "{outcome:?}\n{ready}");
    for (executor, found) in [("naive", &naively), ("ahead", &naively_ahead), ("cpu", &tensors)] {
        for (expected, found) in expected.iter().zip(found).filter_map(|(expected, found)| expected.as_ref().zip(found.as_ref())) {
            found.check_guards();
            for at in 0..found.len {
                let (wanted, got) = (expected.get(at), found.get(at));
                assert!(
                    same(expected.dtype, wanted, got),
                    "{executor}: {}[{at}] is {got:#x}, not {wanted:#x}, scalars {scalars:?}\n{func}\n{ahead}",
                    expected.dtype
                );
            }
        }
    }
    wide
}

/// After each pass the kernel keeps the invariants.
fn verified(pass: &Pass, func: &Function, _: bool) {
    verify(func, Stage::Tile).unwrap_or_else(|violations| panic!("`{}`: {violations:?}\n{func}", pass.name));
}

fn naive_args<'a>(tensors: &'a mut [Option<Buffer>], scalars: &[u64]) -> Vec<Arg<'a>> {
    let mut rest = scalars.iter();
    tensors.iter_mut().map(|tensor| tensor.as_mut().map_or_else(|| Arg::Scalar(*rest.next().unwrap()), Arg::Tensor)).collect()
}

/// Math functions become formulas, which are as good but not the same: an exact op replaces them.
fn without_approximations(func: &mut Function) {
    use UnaryOp::{Abs, Ceil, Floor, Neg, Not, Rint, Round, Sqrt, Trunc};
    for inst in func.all_insts() {
        if let Op::Unary { op, .. } = &mut func.inst_mut(inst).op
            && !matches!(op, Neg | Not | Abs | Sqrt | Floor | Ceil | Round | Rint | Trunc)
        {
            *op = Abs;
        }
    }
}

/// A kernel as users write them: indices of lanes, masks, loads, stores, in a loop or not; some decisions are odd.
fn usual_kernel(random: &mut Random, extent: i64) -> String {
    let mut of = |list: &[&str]| list[random.below(list.len())].to_string();
    let dtype = of(&["f32", "f32", "f64", "bf16", "u8", "i16", "i64"]);
    let (tile, indices, bools) =
        (format!("tile<{dtype}, [{extent}]>"), format!("tile<i64, [{extent}]>"), format!("tile<bool, [{extent}]>"));
    let mut text = format!(
        "kernel @usual(%x: ptr<{dtype}>, %y: ptr_mut<{dtype}>, %z: ptr_mut<{dtype}>, %flags: ptr<bool>, %n: i64, %m: i64, %on: bool){} {{\n\
         %pid = program_id : i64\n%zero = const {{value = 0}} : i64\n%one = const {{value = 1}} : i64\n",
        of(&["", "", " unchecked"])
    );
    let mut line = |op: String| writeln!(text, "{op}").expect("a string takes everything");
    let around = [extent - 2, extent - 1, extent].map(|limit| limit.to_string());
    let program_step = of(&[&around[2], &around[2], &around[2], "32", "7", "0", "4611686018427387904"]);
    let start = of(&["0", "0", "0", "0", "0", "16", "1", "-3", "-64", "100", "9223372036854775800"]);
    line(format!("%c = const {{value = {program_step}}} : i64\n%s = mul %pid, %c : i64\n%k = const {{value = {start}}} : i64"));
    line(format!("%t = add %s, %{} : i64", of(&["k", "k", "k", "k", "k", "m", "n"])));
    line(format!("%lanes0 = arange {{start = 0, end = {extent}}} : {indices}"));
    line(format!(
        "%stride = const {{value = {}}} : {indices}",
        of(&["1", "1", "1", "1", "1", "1", "1", "2", "3", "0", "-1", "100000000000"])
    ));
    line(format!("%lanes = mul %lanes0, %stride : {indices}\n%wide = broadcast %t : {indices}\n%at0 = add %wide, %lanes : {indices}"));
    line(format!(
        "%step = broadcast %{} : {indices}\n%limit = broadcast %n : {indices}\n%low = broadcast %m : {indices}",
        of(&["c", "k", "n"])
    ));
    line(format!("%acc0 = const {{value = {}}} : {tile}", of(&["0", "1"])));
    let is_loop = of(&["", "", "walk", "count"]);
    match &*is_loop {
        "walk" => line(format!(
            "%three = const {{value = 3}} : i64\n%last, %sum = for %zero, %three, %one, %at0, %acc0 (%i: i64, %at: {indices}, %acc: {tile}) {{"
        )),
        "count" => {
            // A few iterations: up to the limit, from behind or from 0; an index that counts lanes or tiles, by steps of every kind.
            let short = of(&[
                "%t300 = const {value = 300} : i64\n%end = min %n, %t300 : i64\n%from = max %zero, %zero : i64\n",
                "%t300 = const {value = 300} : i64\n%end = min %n, %t300 : i64\n%from = const {value = -7} : i64\n",
                "%t300 = const {value = 300} : i64\n%end = max %n, %n : i64\n%from = sub %n, %t300 : i64\n",
                "%end = const {value = 200} : i64\n%from = const {value = 0} : i64\n",
            ]);
            let (by, scale) = (of(&[&around[2], &around[2], "1", "48", "7"]), of(&["1", "1", "1", "3", "32", "-1"]));
            // Rows, too, of a length that is an argument.
            let times = of(&["scale", "scale", "scale", "n", "m"]);
            let start = of(&["%at0", "%at0", "%lanes"]);
            let options = of(&["", "{num_stages = 2}", "{num_stages = 4}", "{unroll = 2}", "{unroll = 3, num_stages = 3}"]);
            line(format!(
                "{short}%by = const {{value = {by}}} : i64\n%scale = const {{value = {scale}}} : i64\n\
                 %sum = for %from, %end, %by, %acc0 {options} (%i: i64, %acc: {tile}) {{\n\
                 %scaled = mul %i, %{times} : i64\n%wi = broadcast %scaled : {indices}\n%at = add {start}, %wi : {indices}"
            ));
        }
        _ => line(format!("%none = const {{value = 0}} : {indices}\n%at = add %at0, %none : {indices}\n%acc = add %acc0, %acc0 : {tile}")),
    }
    // Masks: comparisons with limits on either side, booleans of the program, bits of memory, and both.
    for name in ["a", "b"] {
        match &*of(&["cmp", "cmp", "cmp", "cmp", "on", "flags", "swapped", "constant", "constant"]) {
            "cmp" => line(format!(
                "%{name} = {} %at, %{} : {bools}",
                of(&["lt", "lt", "lt", "lt", "le", "ge", "gt", "eq", "ne"]),
                of(&["limit", "limit", "low"])
            )),
            "swapped" => line(format!("%{name} = {} %limit, %at : {bools}", of(&["gt", "ge", "lt", "le"]))),
            "on" => line(format!("%{name} = broadcast %on : {bools}")),
            "flags" => line(format!("%{name} = load %flags, %at : {bools}")),
            _ => {
                let limit = of(&[&around[0], &around[1], &around[2], "0", "9223372036854775807", "-9223372036854775808", "-1"]);
                line(format!("%limit_{name} = const {{value = {limit}}} : {indices}"));
                line(format!("%{name} = {} %at, %limit_{name} : {bools}", of(&["lt", "le", "le", "ge", "gt"])));
            }
        }
    }
    line(format!("%both = and %a, %b : {bools}"));
    let options = [
        "",
        "{mask = %a}",
        "{mask = %a}",
        "{mask = %both}",
        "{mask = %a, other = %acc0}",
        "{mask = %both, other = %acc0}",
        "{other = %acc0}",
    ];
    line(format!("%v = load %x, %at {} : {tile}", of(&options)));
    line(format!("%w = load %y, %{} {} : {tile}", of(&["at", "at", "lanes0"]), of(&options)));
    line(format!("%sum0 = add %v, %w : {tile}\n%sum1 = add %sum0, %acc : {tile}"));
    line(format!("store %{}, %at, %sum1 {}", of(&["y", "z"]), of(&options[..4])));
    line(format!("%one_element = load %y, %{} : {dtype}\nstore %z, %{}, %one_element", of(&["t", "m", "pid"]), of(&["t", "m", "pid"])));
    match &*is_loop {
        "walk" => line(format!("%next = {} %at, %step : {indices}\nyield %next, %sum1\n}} : {indices}, {tile}", of(&["add", "sub"]))),
        "count" => line(format!("yield %sum1\n}} : {tile}")),
        _ => line(format!("%sum = add %sum1, %sum1 : {tile}")),
    }
    let out = if is_loop == "walk" { of(&["last", "lanes0"]) } else { of(&["lanes0", "at0"]) };
    line(format!("store %z, %{out}, %sum\nreturn\n}}"));
    text
}

/// Tensors of fewer, as many and more elements than a tile, and limits of every kind.
fn usual_arguments(func: &Function, random: &mut Random, extent: i64) -> (Vec<Option<Buffer>>, Vec<u64>) {
    let tensors = func.params.iter().map(|param| {
        let ty = func.ty(param.value);
        ty.is_pointer().then(|| {
            let samples = samples(ty.dtype(), 10);
            let length = [400, 400, 400, 400, 400, 400, 400, 400, 0, 5, 64, 200][random.below(12)];
            Buffer::new(ty.dtype(), &(0..length).map(|_| samples[random.below(samples.len())]).collect::<Vec<_>>())
        })
    });
    let tensors = tensors.collect();
    let mut limit = || {
        let odd = [0, 5, 65, 200, 399, 400, 1000, -1, i64::MIN, i64::MAX, i64::MAX - 64];
        match random.below(2) {
            0 => (extent * (1 + random.below(3) as i64) + [-2, -1, 0, 1][random.below(4)]) as u64,
            _ => odd[random.below(odd.len())] as u64,
        }
    };
    (tensors, vec![limit(), limit(), random.bits() & 1])
}

/// Random kernels of one kind, fresh in each run; a failure prints the kernel. `one` makes a kernel and answers how many wide accesses it ran.
fn many(mut one: impl FnMut(&mut Random) -> usize) {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
    println!("SEED={seed}");
    let mut random = Random(seed << 32);
    let start = std::time::Instant::now();
    let (mut runs, mut wide) = (0, 0);
    while runs < 200 || start.elapsed().as_secs() < 4 {
        wide += usize::from(one(&mut random) > 0);
        runs += 1;
    }
    println!("{wide} of {runs} kernels ran wide accesses");
    assert!(wide * 20 > runs, "the branch for full tiles hardly runs: {wide} of {runs}");
}

fn kernel(text: &str) -> Function {
    let func = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&func, Stage::Generic).unwrap_or_else(|violations| panic!("{violations:?}\n{text}"));
    func
}

#[test]
fn usual_kernels() {
    many(|random| {
        let extent = [64, 128, 8, 96, 50][random.below(5)];
        let func = kernel(&usual_kernel(random, extent));
        let (tensors, scalars) = usual_arguments(&func, random, extent);
        compare(&func, tensors, &scalars)
    });
}

#[test]
fn matrices() {
    many(|random| {
        let shape = [[8, 32], [4, 16], [16, 16], [1, 64], [6, 20]][random.below(5)];
        let func = kernel(&matrix_kernels::text(random, shape));
        let (tensors, scalars) = matrix_kernels::arguments(&func, random, shape);
        compare(&func, tensors, &scalars)
    });
}

/// Every mask of rows that numbers near the ends of `i64` make.
#[test]
fn rows_that_are_counted_from_afar() {
    const FAR: [i64; 10] = [0, 1, -1, 2, 1 << 62, (1 << 62) - 3, i64::MAX, i64::MAX - 2, i64::MIN, i64::MIN + 3];
    let func = kernel(matrix_kernels::COUNTED);
    let sides = FAR.iter().flat_map(|start| FAR.map(|end| (*start, end)));
    for (index, (start, end)) in sides.enumerate() {
        for (first, stride) in [(0, 16), (i64::MIN, 20), (start, 1 << 40), (FAR[index % 9], 0)] {
            let [x, y] = [3, 5].map(|element| Some(Buffer::new(Dtype::U8, &[element; 80])));
            let tensors = vec![x, y, None, None, None, None];
            compare(&func, tensors, &[start, first, end, stride].map(|scalar| scalar as u64));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_kernels(choices in prop::collection::vec(any::<u16>(), 10..300), seed in any::<u64>()) {
        let mut func = random_kernels::make(&choices);
        without_approximations(&mut func);
        let func = parse(&func.to_string()).unwrap();
        compare(&func, random_kernels::tensors(&func, seed), &random_kernels::SCALARS);
    }
}

/// Sizes at which passes and the CPU's translation stop following masks, sums and chains: what they leave whole computes the same.
#[test]
fn what_is_too_long_to_be_followed_computes_what_it_did() {
    /// A kernel whose size is given.
    type Source = fn(usize) -> String;
    let cases: &[(Source, usize)] = &[
        (kernels::shared_masks, 20),
        (kernels::shared_boxes, 40),
        (kernels::shared_positions, 20),
        (kernels::shared_prefetch, 10),
        (kernels::chain_of_masks, 400),
        (kernels::chain_of_scalars, 100),
        (kernels::chain_of_offsets, 300),
        (kernels::chain_of_gathers, 100),
        (kernels::chain_of_divisions, 120),
        (kernels::many_divisions, 100),
        (kernels::many_loops, 30),
        (kernels::many_branches, 60),
        (kernels::carried_scalars, 12),
        (kernels::carried_indices, 12),
        (kernels::carried_shift, 12),
        (kernels::nested_loops, 3),
    ];
    for (text, size) in cases {
        let func = parse(&text(*size)).expect("it is well formed");
        for [n, m] in [[50, 3], [64, 2], [200, 1], [-5, 3]] {
            let mut numbers = [n, m].into_iter().chain(std::iter::repeat(1));
            let (mut tensors, mut scalars) = (Vec::new(), Vec::new());
            for param in &func.params {
                let ty = func.ty(param.value);
                if ty.is_pointer() {
                    let bits: Vec<u64> =
                        (0..1000u64).map(|at| if ty.dtype() == Dtype::F32 { u64::from((at as f32).to_bits()) } else { at % 300 }).collect();
                    tensors.push(Some(Buffer::new(ty.dtype(), &bits)));
                } else {
                    tensors.push(None);
                    scalars.push(numbers.next().map_or(0, |number: i64| number as u64));
                }
            }
            compare(&func, tensors, &scalars);
        }
    }
}
