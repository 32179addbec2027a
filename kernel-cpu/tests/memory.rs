//! Loads and stores on the CPU executor: ragged, strided, gathered, masked, empty, outside. Each kernel also runs on the naive executor.

mod support;

use kernel_lang::dtype::Dtype;
use support::{Buffer, check_text, compile, run_grid};

fn iota(dtype: Dtype, len: usize) -> Buffer {
    Buffer::new(dtype, &(0..len as u64).map(|i| i + 100).collect::<Vec<u64>>())
}

fn ints(dtype: Dtype, values: &[i64]) -> Buffer {
    Buffer::new(dtype, &values.iter().map(|value| *value as u64).collect::<Vec<u64>>())
}

/// Loads `tile<dtype, [64]>` at `base + lane * step` and stores it densely.
fn strided(dtype: Dtype, attributes: &str) -> String {
    format!(
        "kernel @strided(%x: ptr<{dtype}>, %y: ptr_mut<{dtype}>, %base: i64, %step: i64) {{
    %lane = arange {{start = 0, end = 64}} : tile<i64, [64]>
    %b = broadcast %base : tile<i64, [64]>
    %s = broadcast %step : tile<i64, [64]>
    %o = mul %lane, %s : tile<i64, [64]>
    %p = add %o, %b : tile<i64, [64]>
    %other = const {{value = 1}} : tile<{dtype}, [64]>
    %v = load %x, %p {attributes} : tile<{dtype}, [64]> @7:3
    store %y, %lane, %v @8:3
    return
}}
"
    )
}

#[test]
fn strides_and_bases_of_every_sign_and_size() {
    let dtypes = [Dtype::U8, Dtype::I16, Dtype::U32, Dtype::I64];
    for dtype in dtypes {
        for attributes in ["", "{other = %other}"] {
            let text = strided(dtype, attributes);
            for base in [0, 5, -5, 63, 99, 100, -64, 200, i64::MAX, i64::MAX - 10, i64::MIN, i64::MIN + 40] {
                for step in [0, 1, -1, 2, 3, -3, 50, 1 << 58, i64::MAX, i64::MIN] {
                    let tensors = vec![iota(dtype, 100), Buffer::poisoned(dtype, 64)];
                    let (got, _) = check_text(&text, tensors, &[base as u64, step as u64], [1; 3]);
                    let other = u64::from(!attributes.is_empty());
                    for (lane, got) in got[1].iter().enumerate() {
                        let offset = base.wrapping_add(step.wrapping_mul(lane as i64));
                        assert_eq!(*got, if (0..100).contains(&offset) { offset as u64 + 100 } else { other }, "{base} + {step} * {lane}");
                    }
                }
            }
        }
    }
}

#[test]
fn strided_stores_and_repeated_ones() {
    let text = "kernel @scatter(%y: ptr_mut<i32>, %base: i64, %step: i64) {
    %lane = arange {start = 0, end = 16} : tile<i64, [16]>
    %b = broadcast %base : tile<i64, [16]>
    %s = broadcast %step : tile<i64, [16]>
    %o = mul %s, %lane : tile<i64, [16]>
    %p = sub %b, %o : tile<i64, [16]>
    %v = cast %lane : tile<i32, [16]>
    store %y, %p, %v
    return
}
";
    for (base, step) in [(20, 1), (3, 1), (0, -3), (40, 7), (5, 0), (-1, -2)] {
        let (got, _) = check_text(text, vec![ints(Dtype::I32, &[-1; 30])], &[base as u64, step as u64], [1; 3]);
        let mut expected = [u64::from(u32::MAX); 30];
        for lane in 0..16 {
            if let Some(element) = usize::try_from(base - step * lane).ok().and_then(|at| expected.get_mut(at)) {
                *element = lane as u64;
            }
        }
        assert_eq!(got[0], expected, "{base} - {step} * lane");
    }
}

#[test]
fn gathers_with_masks_from_memory() {
    let text = "kernel @gather(%x: ptr<bf16>, %at: ptr<i64>, %on: ptr<bool>, %y: ptr_mut<bf16>) {
    %lane = arange {start = 0, end = 128} : tile<i64, [128]>
    %p = load %at, %lane : tile<i64, [128]>
    %m = load %on, %lane : tile<bool, [128]>
    %other = const {value = 2.0} : tile<bf16, [128]>
    %v = load %x, %p {mask = %m, other = %other} : tile<bf16, [128]>
    store %y, %lane, %v {mask = %m}
    return
}
";
    let at: Vec<i64> = (0..128).map(|lane| lane * 7919 % 90 - 20).collect();
    // Any byte but 0 is true.
    let on: Vec<i64> = (0..128).map(|lane| [0, 1, 2, 255][lane % 4]).collect();
    let tensors = vec![iota(Dtype::Bf16, 50), ints(Dtype::I64, &at), ints(Dtype::Bool, &on), Buffer::poisoned(Dtype::Bf16, 128)];
    let (got, violation) = check_text(text, tensors, &[], [1; 3]);
    assert!(violation.is_some());
    for (lane, got) in got[3].iter().enumerate() {
        let offset = at[lane];
        let expected = match on[lane] {
            0 => 0xA5A5,
            _ if (0..50).contains(&offset) => offset as u64 + 100,
            _ => 0x4000,
        };
        assert_eq!(*got, expected, "lane {lane}");
    }
}

#[test]
fn bools_in_memory_are_true_unless_zero() {
    let text = "kernel @bools(%x: ptr<bool>, %y: ptr_mut<bool>, %z: ptr_mut<u8>) {
    %lane = arange {start = 0, end = 256} : tile<i64, [256]>
    %v = load %x, %lane : tile<bool, [256]>
    %not = not %v : tile<bool, [256]>
    store %y, %lane, %not
    %w = load %x, %lane {mask = %v} : tile<bool, [256]>
    %n = cast %w : tile<u8, [256]>
    store %z, %lane, %n
    return
}
";
    let bytes: Vec<i64> = (0..256).collect();
    let tensors = vec![ints(Dtype::Bool, &bytes), Buffer::poisoned(Dtype::Bool, 256), Buffer::poisoned(Dtype::U8, 256)];
    let (got, _) = check_text(text, tensors, &[], [1; 3]);
    for (byte, (not, number)) in got[1].iter().zip(&got[2]).enumerate() {
        assert_eq!((*not, *number), (u64::from(byte == 0), u64::from(byte != 0)));
    }
}

/// Every comparison of offsets with a bound, in both orders, where the mask is a range.
#[test]
fn masks_are_exact_at_every_bound() {
    for (op, swapped) in ["lt", "le", "gt", "ge", "eq", "ne"].into_iter().flat_map(|op| [(op, false), (op, true)]) {
        let operands = if swapped { "%b, %o" } else { "%o, %b" };
        let text = format!(
            "kernel @masked(%x: ptr<u16>, %y: ptr_mut<u16>, %z: ptr_mut<bool>, %start: i64, %bound: i64) {{
    %lane = arange {{start = 0, end = 32}} : tile<i64, [32]>
    %s = broadcast %start : tile<i64, [32]>
    %o = add %lane, %s : tile<i64, [32]>
    %b = broadcast %bound : tile<i64, [32]>
    %m = {op} {operands} : tile<bool, [32]>
    %v = load %x, %lane {{mask = %m}} : tile<u16, [32]>
    store %y, %lane, %v {{mask = %m}}
    store %z, %lane, %m
    return
}}
"
        );
        for (start, bound) in [
            (0i64, 10i64),
            (0, 0),
            (0, 32),
            (0, 31),
            (-5, 0),
            (7, 7),
            (7, 6),
            (100, 5),
            (-100, 5),
            (i64::MAX - 10, 3),
            (i64::MAX - 10, i64::MAX),
            (i64::MAX, i64::MIN),
            (i64::MIN, i64::MIN),
            (i64::MIN, i64::MAX),
        ] {
            let tensors = vec![iota(Dtype::U16, 32), Buffer::poisoned(Dtype::U16, 32), Buffer::poisoned(Dtype::Bool, 32)];
            let (got, violation) = check_text(&text, tensors, &[start as u64, bound as u64], [1; 3]);
            assert_eq!(violation, None);
            for (lane, (loaded, mask)) in got[1].iter().zip(&got[2]).enumerate() {
                let offset = start.wrapping_add(lane as i64);
                let (a, b) = if swapped { (bound, offset) } else { (offset, bound) };
                let active = match op {
                    "lt" => a < b,
                    "le" => a <= b,
                    "gt" => a > b,
                    "ge" => a >= b,
                    "eq" => a == b,
                    _ => a != b,
                };
                assert_eq!(*loaded, if active { lane as u64 + 100 } else { 0xA5A5 }, "{op} {start} {bound} lane {lane}");
                assert_eq!(*mask, u64::from(active));
            }
        }
    }
}

#[test]
fn two_axes_with_a_mask_each() {
    let text = "kernel @transpose(%x: ptr<f32>, %y: ptr_mut<f32>, %rows: i64, %columns: i64) {
    %px = program_id {axis = 0} : i64
    %py = program_id {axis = 1} : i64
    %sixteen = const {value = 16} : i64
    %eight = const {value = 8} : i64
    %r0 = mul %py, %sixteen : i64
    %c0 = mul %px, %eight : i64
    %ri = arange {start = 0, end = 16} : tile<i64, [16]>
    %ci = arange {start = 0, end = 8} : tile<i64, [8]>
    %rb = broadcast %r0 : tile<i64, [16]>
    %cb = broadcast %c0 : tile<i64, [8]>
    %r1 = add %ri, %rb : tile<i64, [16]>
    %c1 = add %ci, %cb : tile<i64, [8]>
    %r2 = expand_dims %r1 {axis = 1} : tile<i64, [16, 1]>
    %c2 = expand_dims %c1 : tile<i64, [1, 8]>
    %rn = broadcast %rows : tile<i64, [16, 1]>
    %cn = broadcast %columns : tile<i64, [1, 8]>
    %rm = lt %r2, %rn : tile<bool, [16, 1]>
    %cm = lt %c2, %cn : tile<bool, [1, 8]>
    %rmb = broadcast %rm : tile<bool, [16, 8]>
    %cmb = broadcast %cm : tile<bool, [16, 8]>
    %m = and %rmb, %cmb : tile<bool, [16, 8]>
    %r = broadcast %r2 : tile<i64, [16, 8]>
    %c = broadcast %c2 : tile<i64, [16, 8]>
    %rs = broadcast %rows : tile<i64, [16, 8]>
    %cs = broadcast %columns : tile<i64, [16, 8]>
    %rx = mul %r, %cs : tile<i64, [16, 8]>
    %ox = add %rx, %c : tile<i64, [16, 8]>
    %cy = mul %c, %rs : tile<i64, [16, 8]>
    %oy = add %cy, %r : tile<i64, [16, 8]>
    %v = load %x, %ox {mask = %m} : tile<f32, [16, 8]>
    store %y, %oy, %v {mask = %m}
    return
}
";
    for (rows, columns) in [(16, 8), (17, 9), (1, 30), (33, 1), (40, 20), (0, 5)] {
        let tensors = vec![iota(Dtype::F32, rows * columns), Buffer::poisoned(Dtype::F32, rows * columns)];
        let grid = [columns.div_ceil(8) as u32, rows.div_ceil(16) as u32, 1];
        let (got, violation) = check_text(text, tensors, &[rows as u64, columns as u64], grid);
        assert_eq!(violation, None);
        for row in 0..rows {
            for column in 0..columns {
                assert_eq!(got[1][column * rows + row], got[0][row * columns + column]);
            }
        }
    }
}

#[test]
fn broadcasts_of_loaded_tiles_and_of_small_uniform_ones() {
    let text = "kernel @outer(%x: ptr<i32>, %y: ptr_mut<i32>, %k: i32) {
    %ri = arange {start = 0, end = 4} : tile<i64, [4]>
    %ci = arange {start = 0, end = 64} : tile<i64, [64]>
    %a = load %x, %ri : tile<i32, [4]>
    %b = load %x, %ci : tile<i32, [64]>
    %a2 = expand_dims %a {axis = 1} : tile<i32, [4, 1]>
    %b2 = expand_dims %b : tile<i32, [1, 64]>
    %a3 = broadcast %a2 : tile<i32, [4, 64]>
    %b3 = broadcast %b2 : tile<i32, [4, 64]>
    %p = mul %a3, %b3 : tile<i32, [4, 64]>
    %k1 = broadcast %k : tile<i32, [1, 1]>
    %k2 = broadcast %k1 : tile<i32, [4, 1]>
    %k3 = broadcast %k2 : tile<i32, [4, 64]>
    %q = add %k3, %p : tile<i32, [4, 64]>
    %r2 = expand_dims %ri {axis = 1} : tile<i64, [4, 1]>
    %c2 = expand_dims %ci : tile<i64, [1, 64]>
    %r3 = broadcast %r2 : tile<i64, [4, 64]>
    %c3 = broadcast %c2 : tile<i64, [4, 64]>
    %w = const {value = 64} : tile<i64, [4, 64]>
    %rw = mul %w, %r3 : tile<i64, [4, 64]>
    %o = add %rw, %c3 : tile<i64, [4, 64]>
    store %y, %o, %q
    return
}
";
    let (got, _) = check_text(text, vec![iota(Dtype::I32, 64), Buffer::poisoned(Dtype::I32, 256)], &[7], [1; 3]);
    for (at, got) in got[1].iter().enumerate() {
        assert_eq!(*got, (100 + at as u64 / 64) * (100 + at as u64 % 64) + 7);
    }
}

#[test]
fn scalars_load_and_store() {
    let text = "kernel @scalar(%x: ptr<f64>, %y: ptr_mut<f64>, %at: i64, %on: bool) {
    %other = const {value = -1.0} : f64
    %v = load %x, %at {mask = %on, other = %other} : f64
    %zero = const {value = 0} : i64
    store %y, %zero, %v
    store %y, %at, %v {mask = %on}
    return
}
";
    for (at, on) in [(0i64, 1), (2, 1), (3, 1), (-1, 1), (1, 0)] {
        let x = Buffer::new(Dtype::F64, &[1.0f64, 2.0, 3.0].map(f64::to_bits));
        let (got, violation) = check_text(text, vec![x, Buffer::poisoned(Dtype::F64, 3)], &[at as u64, on], [1; 3]);
        let inside = (0..3).contains(&at) && on == 1;
        assert_eq!(f64::from_bits(got[1][0]), if inside { at as f64 + 1.0 } else { -1.0 });
        assert_eq!(violation.is_some(), on == 1 && !inside);
    }
}

#[test]
fn empty_tensors_have_no_address() {
    let program = compile(&strided(Dtype::F32, ""));
    // The address is null, the length 0, for the load and for the store.
    run_grid(&program, &[0, 0, 0, 0, 0, 1], [3, 1, 1], false).unwrap();
    let violation = run_grid(&program, &[0, 0, 0, 0, 0, 1], [3, 1, 1], true).unwrap_err();
    assert_eq!((violation.op, violation.index, violation.length), ("load", 0, 0));
    let masked = compile(
        "kernel @masked(%x: ptr_mut<f32>) {
    %lane = arange {start = 0, end = 64} : tile<i64, [64]>
    %n = length %x : i64
    %b = broadcast %n : tile<i64, [64]>
    %m = lt %lane, %b : tile<bool, [64]>
    %v = load %x, %lane {mask = %m} : tile<f32, [64]>
    store %x, %lane, %v {mask = %m}
    return
}
",
    );
    run_grid(&masked, &[0, 0], [1; 3], true).unwrap();
}

#[test]
fn a_violation_names_the_position_and_the_element() {
    let text = "kernel @copy(%input: ptr<f32>, %output: ptr_mut<f32>, %n: i64) file \"src/copy.rs\" file \"src/helper.rs\" {
    %p = program_id {axis = 1} : i64
    %1 = const {value = 32} : i64
    %2 = mul %p, %1 : i64
    %lane = arange {start = 0, end = 32} : tile<i64, [32]>
    %b = broadcast %2 : tile<i64, [32]>
    %o = add %b, %lane : tile<i64, [32]>
    %nb = broadcast %n : tile<i64, [32]>
    %m = lt %o, %nb : tile<bool, [32]>
    %v = load %input, %o {mask = %m} : tile<f32, [32]> @12:9
    store %output, %o, %v {mask = %m} @1:13:5
    return
}
";
    let program = compile(text);
    let (mut input, mut output) = (iota(Dtype::F32, 50), Buffer::poisoned(Dtype::F32, 45));
    let mut run = |n: u64| {
        let args = [&input.args()[..], &output.args()[..], &[n]].concat();
        run_grid(&program, &args, [1, 2, 1], true)
    };
    run(45).unwrap();
    let load = run(51).unwrap_err();
    assert_eq!(load.to_string(), "`load` at index 50 of `input`, which has 50 elements: lane 18 of program (0, 1, 0), at src/copy.rs:12:9");
    let store = run(46).unwrap_err();
    assert_eq!((store.op, &*store.file, store.line, store.column), ("store", "src/helper.rs", 13, 5));
    assert_eq!((store.program_id, store.index, store.length, &*store.parameter, store.lane), ([0, 1, 0], 45, 45, "output", 13));
    output.check_guards();
}

/// In place, through one mutable pointer: every load sees what the stores before it made.
#[test]
fn loads_and_stores_keep_their_order() {
    let text = "kernel @shift(%x: ptr_mut<i32>) {
    %lane = arange {start = 0, end = 32} : tile<i64, [32]>
    %one = const {value = 1} : tile<i64, [32]>
    %next = add %lane, %one : tile<i64, [32]>
    %a = load %x, %lane : tile<i32, [32]>
    %b = load %x, %next : tile<i32, [32]>
    %c = add %a, %b : tile<i32, [32]>
    store %x, %next, %c
    %d = load %x, %next : tile<i32, [32]>
    %e = add %d, %a : tile<i32, [32]>
    store %x, %lane, %e
    return
}
";
    let (got, _) = check_text(text, vec![ints(Dtype::I32, &(0..33).collect::<Vec<i64>>())], &[], [1; 3]);
    assert_eq!((got[0][0], got[0][31], got[0][32]), (1, 94, 63));
}

/// Tensors should be aligned for their elements; the executor does not rely on it.
#[test]
fn unaligned_tensors_are_copied() {
    let program = compile(
        "kernel @negate(%x: ptr<u32>, %y: ptr_mut<u32>) {
    %lane = arange {start = 0, end = 64} : tile<i64, [64]>
    %a = load %x, %lane : tile<u32, [64]>
    %b = neg %a : tile<u32, [64]>
    store %y, %lane, %b
    return
}
",
    );
    for shift in [0u64, 1, 2, 3] {
        let mut x: Vec<u8> = (0..260).map(|byte| byte as u8).collect();
        let mut y = [0xA5u8; 260];
        let args = [x.as_mut_ptr().expose_provenance() as u64 + shift, 64, y.as_mut_ptr().expose_provenance() as u64 + shift, 64];
        run_grid(&program, &args, [1; 3], true).unwrap();
        for lane in 0..64 {
            let at = 4 * lane + shift as usize;
            let element = |bytes: &[u8]| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(element(&y), element(&x).wrapping_neg());
        }
        assert!(y[..shift as usize].iter().chain(&y[256 + shift as usize..]).all(|byte| *byte == 0xA5));
    }
}

/// A stored value may be used again. Its elements are kept, because the tensor may have changed since the store.
#[test]
fn a_stored_value_keeps_its_elements() {
    let text = "kernel @twice(%x: ptr<i32>, %y: ptr_mut<i32>, %z: ptr_mut<i32>) {
    %lane = arange {start = 0, end = 64} : tile<i64, [64]>
    %a = load %x, %lane : tile<i32, [64]>
    %b = mul %a, %a : tile<i32, [64]>
    store %y, %lane, %b
    %c = sub %b, %a : tile<i32, [64]>
    store %y, %lane, %c
    %d = add %c, %b : tile<i32, [64]>
    store %z, %lane, %d
    return
}
";
    let tensors = vec![iota(Dtype::I32, 64), Buffer::poisoned(Dtype::I32, 64), Buffer::poisoned(Dtype::I32, 64)];
    let (got, _) = check_text(text, tensors, &[], [1; 3]);
    assert_eq!((got[1][3], got[2][3]), (103 * 103 - 103, 2 * 103 * 103 - 103));
}
