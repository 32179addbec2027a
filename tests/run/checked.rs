//! Launches with `.checked()`: a planted mistake is reported with its position, and a kernel without one passes.

use galatea::OutOfBounds;
use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;

tests![
    a_load_beyond_the_end,
    a_store_before_the_start,
    the_right_access_of_several,
    scalars_and_indices,
    masked_lanes_are_no_mistake,
    what_was_right_was_done,
    on_a_grid_of_three_axes,
    constants_compiled_here,
    assertions,
    an_access_that_a_full_tile_does_not_make,
    a_kernel_without_mistakes<u8, f16, f32, i64>,
];

/// Where this file says `// planted <what>`: the line, and the column of the access in it.
fn planted(what: &str, access: &str) -> (u32, u32) {
    let mark = format!("// planted {what}");
    let found =
        include_str!("checked.rs").lines().enumerate().find(|(_, line)| line.ends_with(&mark)).map(|(i, line)| (i, line.find(access)));
    let Some((line, Some(column))) = found else { panic!("nothing is planted as `{what}`") };
    (line as u32 + 1, column as u32 + 1)
}

#[track_caller]
fn out_of_bounds(result: galatea::Result<()>) -> OutOfBounds {
    match result {
        Err(Error::OutOfBounds(found)) => {
            let text = found.to_string();
            assert!(text.contains(&found.parameter) && text.contains(&format!("{}:{}:{}", found.file, found.line, found.column)), "{text}");
            *found
        }
        Err(error) => panic!("{error}"),
        Ok(()) => panic!("the mistake was not seen"),
    }
}

#[track_caller]
fn check_position(found: &OutOfBounds, what: &str, op: &str, parameter: &str) {
    assert!(found.file.ends_with("tests/run/checked.rs"), "{found}");
    assert_eq!((found.line, found.column), planted(what, &format!("{op}(")), "{found}");
    assert_eq!((found.op, found.parameter.as_str()), (op, parameter), "{found}");
}

#[kernel(B = 64)]
fn too_far<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, shift: isize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let first = load(x + at, mask = mask);
    let v = load(x + at + shift, mask = mask); // planted load
    store(y + at, first + v, mask = mask);
}

fn a_load_beyond_the_end(lab: &mut Lab) {
    let n = 300;
    let host = lab.numbers::<f32>(n, -1.0, 1.0);
    let x = lab.input(&host);
    for shift in [1, 5, 1000, 1 << 40, -1, -300, i64::MIN >> 1] {
        let mut y = lab.output::<f32>(n);
        let found = out_of_bounds(too_far::<64>(x.slice(), &mut y.slice(), n, shift as isize).grid(5).checked().launch());
        check_position(&found, "load", "load", "x");
        assert_eq!((found.kernel, found.length), ("too_far", n as u64));
        let lane = found.index - shift;
        assert!((0..n as i64).contains(&lane) && !(0..n as i64).contains(&found.index), "{found}");
        assert_eq!(found.program_id, [lane as u32 / 64, 0, 0], "{found}");
        y.read();
    }
    let mut y = lab.output::<f32>(n);
    too_far::<64>(x.slice(), &mut y.slice(), n, 0).grid(5).checked().launch().unwrap();
    check_bits(&y.read(), |i| host[i] + host[i]);
}

#[kernel(B = 32)]
fn before_the_start<const B: usize>(y: PtrMut<u16>, start: isize) {
    let at = start + arange(0, B);
    store(y + at, 7); // planted store
}

fn a_store_before_the_start(lab: &mut Lab) {
    let mut y = lab.output::<u16>(100);
    let found = out_of_bounds(before_the_start::<32>(&mut y.slice(), -1).grid(1).checked().launch());
    check_position(&found, "store", "store", "y");
    assert_eq!((found.index, found.length, found.program_id), (-1, 100, [0, 0, 0]));
    y.read();
    let found = out_of_bounds(before_the_start::<32>(&mut y.slice(), 69).grid(1).checked().launch());
    assert_eq!(found.index, 100);
    y.read();
    before_the_start::<32>(&mut y.slice(), 68).grid(1).checked().launch().unwrap();
}

#[kernel(B = 64)]
fn three<const B: usize>(a: Ptr<f32>, b: Ptr<f32>, c: PtrMut<f32>, d: PtrMut<f32>) {
    let at = program_id(0) * B + arange(0, B);
    let p = load(a + at); // planted a
    let q = load(b + at); // planted b
    store(c + at, p + q); // planted c
    store(d + at, p * q); // planted d
}

fn the_right_access_of_several(lab: &mut Lab) {
    for (short, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let len = |parameter: usize| if parameter == short { 100 } else { 128 };
        let (a, b) = (lab.input(&vec![1.0f32; len(0)]), lab.input(&vec![2.0f32; len(1)]));
        let (mut c, mut d) = (lab.output::<f32>(len(2)), lab.output::<f32>(len(3)));
        let found = out_of_bounds(three::<64>(a.slice(), b.slice(), &mut c.slice(), &mut d.slice()).grid(2).checked().launch());
        check_position(&found, name, if short < 2 { "load" } else { "store" }, name);
        assert!((100..128).contains(&found.index) && found.length == 100 && found.program_id == [1, 0, 0], "{found}");
        c.read();
        d.read();
    }
}

#[kernel(B = 64)]
fn by_index<const B: usize>(x: Ptr<i32>, index: Ptr<i64>, y: PtrMut<i32>, one: i64) {
    let at = arange(0, B);
    let v = load(x + load(index + at)); // planted gather
    let w = load(x + one);
    store(y + at, v + w);
}

fn scalars_and_indices(lab: &mut Lab) {
    let host = lab.values::<i32>(50);
    let x = lab.input(&host);
    let mut indices: Vec<i64> = (0..64).map(|_| lab.below(50) as i64).collect();
    let mut y = lab.output::<i32>(64);
    by_index::<64>(x.slice(), lab.input(&indices).slice(), &mut y.slice(), 49).grid(1).checked().launch().unwrap();
    check_bits(&y.read(), |i| host[indices[i] as usize].wrapping_add(host[49]));
    let found = out_of_bounds(by_index::<64>(x.slice(), lab.input(&indices).slice(), &mut y.slice(), 50).grid(1).checked().launch());
    assert_eq!((found.op, found.parameter.as_str(), found.index, found.length), ("load", "x", 50, 50), "{found}");
    for wrong in [-1, 50, i64::MAX, i64::MIN] {
        let lane = lab.below(64);
        let right = std::mem::replace(&mut indices[lane], wrong);
        let found = out_of_bounds(by_index::<64>(x.slice(), lab.input(&indices).slice(), &mut y.slice(), 0).grid(1).checked().launch());
        let (line, column) = planted("gather", "load(");
        assert_eq!((found.line, found.column, found.index, found.length), (line, column, wrong, 50), "{found}");
        indices[lane] = right;
    }
}

/// A mask that leaves a lane out makes its index harmless.
fn masked_lanes_are_no_mistake(lab: &mut Lab) {
    for n in [0, 1, 63, 64, 65, 300] {
        let host = lab.numbers::<f32>(n, -1.0, 1.0);
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(n);
        too_far::<64>(x.slice(), &mut y.slice(), n, 0).grid(9).checked().launch().unwrap();
        check_bits(&y.read(), |i| host[i] + host[i]);
    }
}

/// Lanes inside are written as ever.
fn what_was_right_was_done(lab: &mut Lab) {
    let mut y = lab.output::<u16>(40);
    out_of_bounds(before_the_start::<32>(&mut y.slice(), 20).grid(1).checked().launch());
    before_the_start::<32>(&mut y.slice(), 20).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| if i < 20 { y.before()[i] } else { 7 });
}

#[kernel]
fn one_of_the_grid(y: PtrMut<i32>, i: i64, j: i64, k: i64) {
    if program_id(0) == i && program_id(1) == j && program_id(2) == k {
        store(y + 1000 * i + j, 1); // planted in a branch
    }
}

fn on_a_grid_of_three_axes(lab: &mut Lab) {
    let mut y = lab.output::<i32>(10);
    let found = out_of_bounds(one_of_the_grid(&mut y.slice(), 3, 2, 4).grid((5, 4, 6)).checked().launch());
    check_position(&found, "in a branch", "store", "y");
    assert_eq!((found.program_id, found.index), ([3, 2, 4], 3002), "{found}");
    one_of_the_grid(&mut y.slice(), 5, 2, 4).grid((5, 4, 6)).checked().launch().unwrap();
    check_bits(&y.read(), |i| y.before()[i]);
}

fn constants_compiled_here(lab: &mut Lab) {
    let x = lab.input(&[1.0f32; 300]);
    let mut y = lab.output::<f32>(300);
    let found = out_of_bounds(too_far::<256>(x.slice(), &mut y.slice(), 300, 299).grid(2).checked().launch());
    check_position(&found, "load", "load", "x");
    assert!((300..599).contains(&found.index) && found.program_id[0] as i64 == (found.index - 299) / 256, "{found}");
}

#[kernel(B = 128)]
fn copy<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let mut start = program_id(0) * B;
    while start < 1000 {
        let at = start + arange(0, B);
        store(y + at, load(x + at, mask = at < 1000), mask = at < 1000);
        start += num_programs(0) * B;
    }
}

fn a_kernel_without_mistakes<T: crate::value::Value>(lab: &mut Lab) {
    let host = lab.values::<T>(1000);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(1000);
    copy::<T, 128>(x.slice(), &mut y.slice()).grid(3).checked().launch().unwrap();
    check_bits(&y.read(), |i| host[i]);
}

#[kernel(N = [64])]
fn assertions_kernel<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize, limit: i32) {
    let offsets = program_id(0) * N + arange(0, N);
    let v = load(x + offsets, mask = offsets < n);
    device_assert!(v <= limit, "an element is too large"); // planted tile
    if program_id(0) == 1 {
        device_assert!(n > 7); // planted scalar
    }
    store(y + offsets, v + 1, mask = offsets < n);
}

fn assertions(lab: &mut Lab) {
    let mut host = vec![5i32; 200];
    host[150] = 9;
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(200);
    let mut launch = |n: usize, limit: i32, checked: bool| {
        let mut out = y.slice();
        let launch = assertions_kernel::<64>(x.slice(), &mut out, n, limit).grid(4);
        if checked { launch.checked().launch() } else { launch.launch() }
    };
    let failed = |result: galatea::Result<()>| match result {
        Err(Error::AssertionFailed(found)) => *found,
        other => panic!("the assertion was not looked at: {other:?}"),
    };
    launch(200, 9, true).unwrap();
    let tile = failed(launch(200, 8, true));
    assert_eq!((tile.message.as_str(), tile.program_id), ("assertion failed: an element is too large", [2, 0, 0]));
    assert_eq!((tile.line, tile.column), planted("tile", "v <= limit"));
    assert!(tile.file.ends_with("tests/run/checked.rs") && tile.kernel == "assertions_kernel", "{tile}");
    let scalar = failed(launch(3, 8, true));
    assert_eq!((scalar.message.as_str(), scalar.program_id), ("assertion failed: `n > 7`", [1, 0, 0]));
    assert_eq!((scalar.line, scalar.column), planted("scalar", "n > 7"));
    // Nobody asked.
    launch(200, 8, false).unwrap();
    assert_eq!(y.read(), host.iter().map(|v| v + 1).collect::<Vec<_>>());
}

#[kernel(B = 1024)]
fn either<const B: usize>(a: Ptr<f32>, b: Ptr<f32>, at: Ptr<i32>, y: PtrMut<f32>, n: usize, total: usize) {
    let o = program_id(0) * B + arange(0, B);
    let (first, all) = (o < n, o < total);
    let index = load(at + o, mask = all);
    store(y + o, load(a + o, mask = first) + load(b + index as usize, mask = !first & all), mask = all);
}

/// In a full tile, the gather's mask holds nowhere: what is left of the access is its report.
fn an_access_that_a_full_tile_does_not_make(lab: &mut Lab) {
    let (n, total) = (1024, 1500);
    let (a, b) = (lab.numbers::<f32>(n, -1.0, 1.0), lab.numbers::<f32>(40, -1.0, 1.0));
    let indices: Vec<i32> = (0..total as i32).map(|i| i % 40).collect();
    let (left, right, at, mut y) = (lab.input(&a), lab.input(&b), lab.input(&indices), lab.output::<f32>(total));
    either::<1024>(left.slice(), right.slice(), at.slice(), &mut y.slice(), n, total).grid(2).checked().launch().unwrap();
    check_bits(&y.read(), |i| if i < n { a[i] } else { b[i % 40] });
}
