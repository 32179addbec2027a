//! Control flow on the CPU executor. Each kernel also runs on the naive executor.

mod support;

use kernel_lang::dtype::Dtype;
use support::{Buffer, check_text};

#[test]
fn a_loop_carries_tiles() {
    // Row sums of a matrix, the offsets carried: they stay affine.
    let text = "kernel @rows(%x: ptr<i32>, %y: ptr_mut<i32>, %n: i64) {
    %lane = arange {start = 0, end = 16} : tile<i64, [16]>
    %zero = const {value = 0} : tile<i32, [16]>
    %0 = const {value = 0} : i64
    %1 = const {value = 1} : i64
    %16 = const {value = 16} : i64
    %sixteen = broadcast %16 : tile<i64, [16]>
    %at, %sum = for %0, %n, %1, %lane, %zero (%i: i64, %o: tile<i64, [16]>, %acc: tile<i32, [16]>) {
        %v = load %x, %o : tile<i32, [16]>
        %s = add %acc, %v : tile<i32, [16]>
        %next = add %o, %sixteen : tile<i64, [16]>
        yield %next, %s
    } : tile<i64, [16]>, tile<i32, [16]>
    store %y, %lane, %sum
    %last = cast %at : tile<i32, [16]>
    store %y, %at, %last
    return
}
";
    for n in 0..5u64 {
        let x = Buffer::new(Dtype::I32, &(0..64).collect::<Vec<u64>>());
        let (got, violation) = check_text(text, vec![x, Buffer::poisoned(Dtype::I32, 100)], &[n], [1; 3]);
        assert_eq!(violation, None);
        for lane in 0..16 {
            let sum: u64 = (0..n).map(|row| row * 16 + lane).sum();
            assert_eq!(got[1][lane as usize], if n == 0 { lane } else { sum });
            assert_eq!(got[1][(n * 16 + lane) as usize], n * 16 + lane);
        }
    }
}

#[test]
fn carried_values_swap_at_once() {
    let text = "kernel @fibonacci(%y: ptr_mut<i32>, %n: i32) {
    %lane = arange {start = 0, end = 4} : tile<i64, [4]>
    %a = const {value = 0} : tile<i32, [4]>
    %b = cast %lane : tile<i32, [4]>
    %offset = const {value = 4} : tile<i64, [4]>
    %other = add %lane, %offset : tile<i64, [4]>
    %0 = const {value = 0} : i32
    %1 = const {value = 1} : i32
    %p, %q, %s, %t, %k, %l = for %0, %n, %1, %a, %b, %0, %1, %lane, %other (%i: i32, %x: tile<i32, [4]>, %z: tile<i32, [4]>, %u: i32, %v: i32, %f: tile<i64, [4]>, %g: tile<i64, [4]>) {
        %w = add %x, %z : tile<i32, [4]>
        %r = add %u, %v : i32
        yield %z, %w, %v, %r, %g, %f
    } : tile<i32, [4]>, tile<i32, [4]>, i32, i32, tile<i64, [4]>, tile<i64, [4]>
    store %y, %k, %p
    store %y, %l, %q
    %eight = const {value = 8} : i64
    store %y, %eight, %s
    return
}
";
    let (got, _) = check_text(text, vec![Buffer::poisoned(Dtype::I32, 9)], &[10], [1; 3]);
    assert_eq!(got[0], [0, 55, 110, 165, 0, 89, 178, 267, 55]);
    let (got, _) = check_text(text, vec![Buffer::poisoned(Dtype::I32, 9)], &[1], [1; 3]);
    assert_eq!(got[0], [0, 1, 2, 3, 0, 1, 2, 3, 1]);
}

/// The index stops at the end of its type, not after a wrap.
#[test]
fn a_loop_ends_at_the_end_of_its_type() {
    for (dtype, lower, upper, step, rounds) in [
        (Dtype::U8, 250i64, 255i64, 2i64, 3),
        (Dtype::I8, 100, 127, 100, 1),
        (Dtype::I8, -128, 127, 127, 3),
        (Dtype::I64, i64::MAX - 1, i64::MAX, 5, 1),
        (Dtype::I32, 0, 10, 0, 0),
        (Dtype::I32, 0, 10, -1, 0),
        (Dtype::U64, -3, -1, 1, 2),
        (Dtype::U32, 0, -1, 1 << 31, 2),
        (Dtype::I16, 5, 5, 1, 0),
    ] {
        let text = format!(
            "kernel @count(%y: ptr_mut<i64>, %lower: {dtype}, %upper: {dtype}, %step: {dtype}) {{
    %0 = const {{value = 0}} : i64
    %1 = const {{value = 1}} : i64
    %n = for %lower, %upper, %step, %0 (%i: {dtype}, %c: i64) {{
        %d = add %c, %1 : i64
        yield %d
    }} : i64
    store %y, %0, %n
    return
}}
"
        );
        let mask = u64::MAX >> (64 - dtype.bits());
        let scalars = [lower, upper, step].map(|bound| bound as u64 & mask);
        let (got, _) = check_text(&text, vec![Buffer::poisoned(Dtype::I64, 1)], &scalars, [1; 3]);
        assert_eq!(got[0][0], rounds, "{dtype}");
    }
}

#[test]
fn nested_ifs_choose_one_branch() {
    let text = "kernel @choose(%y: ptr_mut<f32>, %a: bool, %b: bool) {
    %0 = const {value = 0} : i64
    %lane = arange {start = 1, end = 9} : tile<i64, [8]>
    %one = const {value = 1.0} : tile<f32, [8]>
    %v, %k = if %a () {
        %w, %l = if %b () {
            %five = const {value = 5.0} : tile<f32, [8]>
            %sum = add %five, %one : tile<f32, [8]>
            store %y, %lane, %sum
            %2 = const {value = 11.0} : f32
            yield %sum, %2
        } () {
            %3 = const {value = 10.0} : f32
            yield %one, %3
        } : tile<f32, [8]>, f32
        %twice = add %w, %w : tile<f32, [8]>
        yield %twice, %l
    } () {
        %f = cast %lane : tile<f32, [8]>
        %4 = const {value = 0.5} : f32
        yield %f, %4
    } : tile<f32, [8]>, f32
    %kb = broadcast %k : tile<f32, [8]>
    %r = mul %v, %kb : tile<f32, [8]>
    store %y, %lane, %r
    store %y, %0, %k
    return
}
";
    for (a, b, first, second, scalar) in
        [(1, 1, 132.0, 132.0, 11.0), (1, 0, 20.0, 20.0, 10.0), (0, 1, 0.5, 1.0, 0.5), (0, 0, 0.5, 1.0, 0.5)]
    {
        let (got, _) = check_text(text, vec![Buffer::poisoned(Dtype::F32, 9)], &[a, b], [1; 3]);
        let value = |at: usize| f32::from_bits(got[0][at] as u32);
        assert_eq!((value(0), value(1), value(2)), (scalar, first, second));
    }
}

#[test]
fn while_loops_carry_tiles_through_the_test() {
    // Collatz steps of a scalar; a tile grows along.
    let text = "kernel @collatz(%y: ptr_mut<i64>, %n: i64) {
    %0 = const {value = 0} : i64
    %1 = const {value = 1} : i64
    %2 = const {value = 2} : i64
    %3 = const {value = 3} : i64
    %lane = arange {start = 1, end = 5} : tile<i64, [4]>
    %last, %steps, %tile = while %n, %0, %lane (%a: i64, %c: i64, %t: tile<i64, [4]>) {
        %go = ne %a, %1 : bool
        %more = add %t, %lane : tile<i64, [4]>
        condition %go, %a, %c, %more
    } (%b: i64, %d: i64, %u: tile<i64, [4]>) {
        %odd = and %b, %1 : i64
        %is_odd = ne %odd, %0 : bool
        %next = if %is_odd () {
            %m = mul %b, %3 : i64
            %p = add %m, %1 : i64
            yield %p
        } () {
            %h = div %b, %2 : i64
            yield %h
        } : i64
        %e = add %d, %1 : i64
        yield %next, %e, %u
    } : i64, i64, tile<i64, [4]>
    store %y, %lane, %tile
    store %y, %0, %steps
    return
}
";
    for (n, steps) in [(1, 0), (6, 8), (27, 111)] {
        let (got, _) = check_text(text, vec![Buffer::poisoned(Dtype::I64, 5)], &[n], [1; 3]);
        assert_eq!(got[0], [steps, steps + 2, 2 * (steps + 2), 3 * (steps + 2), 4 * (steps + 2)]);
    }
}

#[test]
fn programs_know_their_index_in_the_grid() {
    let text = "kernel @grid(%y: ptr_mut<i64>) {
    %x = program_id : i64
    %yy = program_id {axis = 1} : i64
    %z = program_id {axis = 2} : i64
    %nx = num_programs : i64
    %ny = num_programs {axis = 1} : i64
    %nz = num_programs {axis = 2} : i64
    %a = mul %z, %ny : i64
    %b = add %a, %yy : i64
    %c = mul %b, %nx : i64
    %at = add %c, %x : i64
    %d = mul %nx, %nz : i64
    %e = add %at, %d : i64
    store %y, %at, %e
    return
}
";
    let (got, violation) = check_text(text, vec![Buffer::poisoned(Dtype::I64, 30)], &[], [3, 5, 2]);
    assert_eq!(violation, None);
    assert_eq!(got[0], (6..36).collect::<Vec<u64>>());
}

/// A value computed before a loop and used late in the loop keeps its scratch slot through all iterations.
#[test]
fn a_scratch_slot_is_not_reused_inside_a_loop() {
    let text = "kernel @keep(%x: ptr<f32>, %y: ptr_mut<f32>) {
    %lane = arange {start = 0, end = 64} : tile<i64, [64]>
    %a = load %x, %lane : tile<f32, [64]>
    %zero = const {value = 0.0} : tile<f32, [64]>
    %0 = const {value = 0} : i64
    %1 = const {value = 1} : i64
    %3 = const {value = 3} : i64
    %sum = for %0, %3, %1, %zero (%i: i64, %acc: tile<f32, [64]>) {
        %s = add %acc, %a : tile<f32, [64]>
        %t = mul %s, %s : tile<f32, [64]>
        %u = exp %t : tile<f32, [64]>
        %v = sub %u, %u : tile<f32, [64]>
        %w = add %s, %v : tile<f32, [64]>
        yield %w
    } : tile<f32, [64]>
    store %y, %lane, %sum
    return
}
";
    let x = Buffer::new(Dtype::F32, &(0..64).map(|i| u64::from((i as f32 / 64.0).to_bits())).collect::<Vec<u64>>());
    let (got, _) = check_text(text, vec![x, Buffer::poisoned(Dtype::F32, 64)], &[], [1; 3]);
    for (i, bits) in got[1].iter().enumerate() {
        assert_eq!(f32::from_bits(*bits as u32), 3.0 * (i as f32 / 64.0));
    }
}

/// A store at the begin of a `while` of what was computed just before it: the computation stays outside.
#[test]
fn a_loop_that_begins_with_a_store() {
    let text = "kernel @first(%x: ptr<f32>, %y: ptr_mut<f32>, %count: ptr_mut<i64>) {
    %lane = arange {start = 0, end = 64} : tile<i64, [64]>
    %0 = const {value = 0} : i64
    %1 = const {value = 1} : i64
    %4 = const {value = 4} : i64
    %a = load %x, %lane : tile<f32, [64]>
    %b = add %a, %a : tile<f32, [64]>
    %c = add %b, %b : tile<f32, [64]>
    while () {
        store %y, %lane, %c
        %i = load %count, %0 : i64
        %go = lt %i, %4 : bool
        condition %go
    } () {
        %d = load %y, %lane : tile<f32, [64]>
        %e = exp %d : tile<f32, [64]>
        %f = mul %e, %d : tile<f32, [64]>
        store %y, %lane, %f
        %j = load %count, %0 : i64
        %next = add %j, %1 : i64
        store %count, %0, %next
        yield
    }
    return
}
";
    let x = Buffer::new(Dtype::F32, &(0..64).map(|i| u64::from((i as f32 / 64.0).to_bits())).collect::<Vec<u64>>());
    let count = Buffer::new(Dtype::I64, &[0]);
    let (got, _) = check_text(text, vec![x, Buffer::poisoned(Dtype::F32, 64), count], &[], [1; 3]);
    for (i, bits) in got[1].iter().enumerate() {
        assert_eq!(f32::from_bits(*bits as u32), 4.0 * (i as f32 / 64.0));
    }
}
