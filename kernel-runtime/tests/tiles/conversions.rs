//! A tile goes through random layouts and comes out as it was.

use std::fmt::Write;

use kernel_lang::layout::Layout;

use crate::harness::{Arg, Random, emitted, run, with_room};

const TYPES: [(&str, usize); 9] =
    [("bool", 1), ("i8", 1), ("u8", 1), ("i16", 2), ("bf16", 2), ("u32", 4), ("f32", 4), ("i64", 8), ("f64", 8)];

/// Loads in the first layout, converts to each of the others, stores in the last; twice, in a loop.
fn kernel(elem: &str, shape: &[u32], layouts: &[Layout]) -> String {
    let count: u32 = shape.iter().product();
    let mut text = format!("kernel @moves(%x: ptr<{elem}>, %y: ptr_mut<{elem}>) {{\n");
    let ty = |elem: &str, layout: &Layout| format!("tile<{elem}, {:?}> {layout}", layout.shape());
    let _ = writeln!(
        text,
        "%a = const {{value = 0}} : i64\n%b = const {{value = 2}} : i64\n%c = const {{value = 1}} : i64\nfor %a, %b, %c (%i: i64) {{"
    );
    let (first, last) = (&layouts[0], layouts.last().unwrap());
    for (name, layout) in [("from", first), ("to", last)] {
        let flat = layout.reshape(&[count]).unwrap();
        let _ = writeln!(text, "%{name}_flat = arange {{start = 0, end = {count}}} : {}", ty("i64", &flat));
        let _ = writeln!(text, "%{name} = reshape %{name}_flat : {}", ty("i64", layout));
    }
    let _ = writeln!(text, "%t0 = load %x, %from {{in_bounds = true}} : {}", ty(elem, first));
    for (index, layout) in layouts.iter().enumerate().skip(1) {
        let _ = writeln!(text, "%t{index} = convert %t{} : {}", index - 1, ty(elem, layout));
    }
    let _ = writeln!(text, "store %y, %to, %t{} {{in_bounds = true}}\nyield\n}}\nreturn\n}}", layouts.len() - 1);
    text
}

/// Counts shuffles, loads from shared memory and branches. With `is_tight` little shared memory is left.
fn check(seed: u64, is_tight: bool) -> [usize; 3] {
    let mut random = Random::new(seed);
    let (elem, bytes) = TYPES[random.below(TYPES.len())];
    let num_warps = [1, 2, 4][random.below(3)];
    let bits = random.below(12);
    let shape = random.shape(bits);
    let mut layouts = vec![random.layout(&shape, num_warps, 0)];
    for _ in 0..1 + random.below(3) {
        let mixing = [0, 0, 6][random.below(3)];
        layouts.push(random.layout(&shape, num_warps, mixing));
    }
    layouts.push(random.layout(&shape, num_warps, 0));
    let mut text = kernel(elem, &shape, &layouts);
    if is_tight {
        let room = (32 * num_warps as usize * bytes) << random.below(2);
        text = with_room(&text, num_warps, ("%x", elem, bytes), room as u32);
    }
    let module = emitted(&text, num_warps);
    let count = 1 << bits;
    let values: Vec<u8> = (0..count * bytes).map(|_| random.next() as u8 >> if elem == "bool" { 7 } else { 0 }).collect();
    let mut args = [Arg::Tensor(values.clone(), bytes), Arg::Tensor(vec![0xee; count * bytes], bytes)];
    run(&module, num_warps, [1; 3], &mut args, seed % 5);
    let Arg::Tensor(found, _) = &args[1] else { unreachable!() };
    assert!(*found == values, "seed {seed}\n{text}\n{}", module.text);
    ["shfl.sync", "ld.shared", "bra.uni"].map(|word| module.text.matches(word).count())
}

#[test]
fn any_layout_becomes_any_other() {
    let found: Vec<[usize; 3]> = (0..160).map(|seed| check(seed, false)).collect();
    let [shuffles, shared] = [0, 1].map(|way| found.iter().filter(|found| found[way] > 0).count());
    assert!(shuffles > 15 && shared > 60, "every way is taken: {shuffles} {shared}");
}

/// As much of a tile as fits goes through shared memory at once.
#[test]
fn any_layout_becomes_any_other_in_parts() {
    let found: Vec<[usize; 3]> = (1000..1120).map(|seed| check(seed, true)).collect();
    // The kernel's own loop has three branches.
    let in_parts = found.iter().filter(|found| found[2] > 3).count();
    assert!(in_parts >= 30, "{in_parts} go in parts");
}
