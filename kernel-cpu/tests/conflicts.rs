//! Which accesses of the CPU executor are plain: those that can meet no other program's. And what a race between programs gives: values that were stored.

mod support;

use std::sync::Barrier;
use std::time::Instant;

use kernel_cpu::{Program, Scratch};
use kernel_lang::Bindings;

/// A kernel of a body that knows `x`, `y`, `z`, `indices`, `n`, `m` and `i`, the indices of a tile of 64, and `ones`, a tile to store.
fn compile(body: &str) -> Program {
    let source = format!(
        "#[kernel]
        fn k(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, indices: Ptr<i64>, n: usize, m: usize) {{
            let (i, ones) = (arange(0, 64), full::<f32>([64], 1.0));
            {body}
        }}"
    );
    let func =
        kernel_frontend::lower_source(&source, "test.rs").unwrap_or_else(|diagnostics| panic!("{}\n{source}", diagnostics.render(&[])));
    kernel_cpu::compile(&func, &Bindings::new()).unwrap_or_else(|diagnostics| panic!("{}\n{source}", diagnostics.render(&[])))
}

/// A kernel of such a body that runs on a grid, with numbers for `n` and `m`; each tensor has a million elements.
fn conflicts(body: &str, grid: [u32; 3], [n, m]: [i64; 2]) -> Vec<bool> {
    let million = 1_000_000;
    let args = [0, million, 0, million, 0, million, 0, million, n as u64, m as u64];
    let conflicts = compile(body).conflicts(&args, grid);
    let accesses = body.matches("load(").count() + body.matches("store(").count() + body.matches("atomic_add(").count();
    (0..accesses).map(|access| conflicts.contains(access)).collect()
}

#[track_caller]
fn all_plain(body: &str, grid: [u32; 3], numbers: [i64; 2]) {
    let found = conflicts(body, grid, numbers);
    assert!(!found.is_empty() && !found.contains(&true), "{found:?}");
}

#[track_caller]
fn all_atomic(body: &str, grid: [u32; 3], numbers: [i64; 2]) {
    let found = conflicts(body, grid, numbers);
    assert!(!found.is_empty() && !found.contains(&false), "{found:?}");
}

const BLOCKS: &str = "store(y + program_id(0) * 64 + i, ones, mask = program_id(0) * 64 + i < n);";
const ROWS: &str = "store(y + program_id(0) * m + i, ones, mask = i < n);";

#[test]
fn blocks_of_their_own_are_plain_and_windows_that_overlap_are_not() {
    all_plain(BLOCKS, [1000, 1, 1], [60_000, 0]);
    all_plain("store(y + program_id(0) * 64 - i, ones);", [1000, 1, 1], [0; 2]);
    all_atomic("store(y + program_id(0) * 63 + i, ones);", [1000, 1, 1], [0; 2]);
    all_atomic("store(y + program_id(0) * 64 + 2 * i, ones);", [1000, 1, 1], [0; 2]);
    all_atomic("store(y + program_id(0) / 2 * 64 + i, ones);", [1000, 1, 1], [0; 2]);
    // A second axis of the grid of which the offsets know nothing.
    all_atomic(BLOCKS, [1000, 2, 1], [60_000, 0]);
    all_plain(BLOCKS, [1000, 1, 1], [i64::MAX, 0]);
}

#[test]
fn what_all_programs_store_at_one_index_is_atomic_unless_there_is_one_program() {
    let body = "store(y + i, ones);";
    all_atomic(body, [2, 1, 1], [0; 2]);
    all_atomic(body, [1, 1, 3], [0; 2]);
    all_plain(body, [1, 1, 1], [0; 2]);
    all_atomic("store(y, 1.0);", [2, 1, 1], [0; 2]);
    all_plain("if program_id(0) == 3 { store(y, 1.0); }", [8, 1, 1], [0; 2]);
    all_atomic("if program_id(0) != 3 { store(y, 1.0); }", [8, 1, 1], [0; 2]);
    all_plain("store(y, 1.0, mask = program_id(0) < 1);", [8, 1, 1], [0; 2]);
    all_atomic("store(y, 1.0, mask = program_id(0) < 2);", [8, 1, 1], [0; 2]);
    // A step that is 0, and one that is not.
    all_atomic("store(y + program_id(0) * n, 1.0);", [8, 1, 1], [0; 2]);
    all_plain("store(y + program_id(0) * n, 1.0);", [8, 1, 1], [1, 0]);
}

#[test]
fn rows_are_plain_where_the_mask_keeps_them_within_their_stride() {
    all_plain(ROWS, [100, 1, 1], [64, 64]);
    all_plain(ROWS, [100, 1, 1], [50, 50]);
    all_plain(ROWS, [100, 1, 1], [50, 60]);
    all_atomic(ROWS, [100, 1, 1], [51, 50]);
    all_atomic(ROWS, [100, 1, 1], [64, 63]);
    // The rows in the opposite order, or from the last one on.
    all_plain(ROWS, [100, 1, 1], [50, -50]);
    all_atomic(ROWS, [100, 1, 1], [50, -49]);
    all_plain("store(y + program_id(0) * n + i, ones, mask = (i < n) & (i >= 3));", [100, 1, 1], [50, 0]);
    all_plain("store(y + program_id(0) * m + i, ones, mask = (i < n) & (i >= 3));", [100, 1, 1], [50, 47]);
    all_atomic("store(y + program_id(0) * m + i, ones, mask = (i < n) & (i >= 3));", [100, 1, 1], [50, 46]);
    // Of a mask that is not read, nothing follows.
    let unread = "store(y + program_id(0) * n + i, ones, mask = load(x + i) > 0.0);";
    assert_eq!(conflicts(unread, [100, 1, 1], [50, 0]), [false, true]);
}

#[test]
fn rows_in_loops_are_plain_where_their_ends_are_known() {
    let row = "for s in range(0, n, 64) { let at = s + i; store(y + program_id(0) * m + at, ones, mask = at < n); }";
    all_plain(row, [100, 1, 1], [1000, 1000]);
    all_atomic(row, [100, 1, 1], [1000, 999]);
    let unmasked = "for s in range(0, n, 64) { store(y + program_id(0) * m + s + i, ones); }";
    all_plain(unmasked, [100, 1, 1], [1000, 1024]);
    all_atomic(unmasked, [100, 1, 1], [1000, 1023]);
    let strided = "for s in range(program_id(0) * 64, n, num_programs(0) * 64) { store(y + s + i, ones, mask = s + i < n); }";
    all_plain(strided, [7, 1, 1], [100_000, 0]);
    let short = "for s in range(program_id(0) * 64, n, num_programs(0) * 32) { store(y + s + i, ones); }";
    all_atomic(short, [7, 1, 1], [100_000, 0]);
    let chunk = "let first = program_id(0) * m;
        for s in range(first, min(first + m, n), 64) { store(y + s + i, ones, mask = s + i < min(first + m, n)); }";
    all_plain(chunk, [9, 1, 1], [8000, 1000]);
    let chunk_and_more = "let first = program_id(0) * m;
        for s in range(first, min(first + m, n), 64) { store(y + s + i, ones, mask = s + i < n); }";
    all_atomic(chunk_and_more, [9, 1, 1], [8000, 1000]);
    // An index that the loop carries.
    let carried = "let mut at = program_id(0) * m + i;
        for s in range(0, n, 64) { store(y + at, ones, mask = s + i < n); at += 64; }";
    all_plain(carried, [100, 1, 1], [1000, 1000]);
    all_atomic(carried, [100, 1, 1], [1000, 999]);
    let falling = "let mut at = program_id(0) * m; for s in range(0, n, 64) { store(y + n - at - i, ones); at -= 64; }";
    all_plain(falling, [100, 1, 1], [128, 128]);
    all_atomic(falling, [100, 1, 1], [129, 128]);
    let faster = carried.replace("at += 64", "at += 65");
    all_plain(&faster, [100, 1, 1], [128, 129]);
    all_atomic(&faster, [100, 1, 1], [128, 128]);
    for unsteady in ["at = at * 2", "at = at + at", "at += at / 2", "at += s", "at = 64 - at"] {
        all_atomic(&carried.replace("at += 64", unsteady), [100, 1, 1], [1000, 1000]);
    }
    // How often a `while` runs, nobody knows.
    let unknown = "let mut s = 0; while s < n { store(y + program_id(0) * m + s + i, ones); s += 64; }";
    all_atomic(unknown, [9, 1, 1], [1000, 100_000]);
}

#[test]
fn tiles_of_two_axes_are_plain_where_they_lie_beside_each_other() {
    let tile = "let row = program_id(0) * 64 + i;
        let column = program_id(1) * 64 + i;
        let mask = (row < n)[(.., None)] & (column < m)[(None, ..)];
        store(y + (row * m)[(.., None)] + column[(None, ..)], full::<f32>([64, 64], 1.0), mask = mask);";
    all_plain(tile, [10, 10, 1], [600, 601]);
    // Without the mask of columns, a row runs into the next one.
    let no_mask = tile.replace(" & (column < m)[(None, ..)]", " & (column >= 0)[(None, ..)]");
    all_atomic(&no_mask, [10, 10, 1], [600, 601]);
    all_plain(&no_mask, [10, 10, 1], [600, 640]);
    let transposed = tile.replace("(row * m)[(.., None)] + column[(None, ..)]", "row[(.., None)] + (column * n)[(None, ..)]");
    all_plain(&transposed, [10, 10, 1], [600, 601]);
    // One program for a row of tiles: quotient and remainder.
    let flat = tile.replace("program_id(0)", "(program_id(0) / cdiv(m, 64))").replace("program_id(1)", "(program_id(0) % cdiv(m, 64))");
    all_plain(&flat, [100, 1, 1], [600, 601]);
    let wrong = flat.replace("% cdiv(m, 64)", "% (cdiv(m, 64) - 1)");
    all_atomic(&wrong, [100, 1, 1], [600, 601]);
}

#[test]
fn accesses_are_compared_with_each_other() {
    let update = "let at = program_id(0) * 64 + i; store(y + at, 2.0 * load(y + at, mask = at < n), mask = at < n);";
    all_plain(update, [100, 1, 1], [5000, 0]);
    // The load meets what the next program stores.
    let shifted = "let at = program_id(0) * 64 + i; store(y + at, load(y + at + 1));";
    all_atomic(shifted, [100, 1, 1], [0; 2]);
    let pairs = "let at = 2 * (program_id(0) * 64 + i); store(y + at, ones); store(y + at + 1, ones);";
    all_plain(pairs, [100, 1, 1], [0; 2]);
    let apart = "store(y + program_id(0), 1.0); store(y + n + program_id(0), 1.0);";
    all_plain(apart, [100, 1, 1], [100, 0]);
    all_atomic(apart, [100, 1, 1], [99, 0]);
    // Loads alone meet nobody; what one tensor's stores do is nothing to another one.
    all_plain("let v = load(z + i) + load(x + i); store(y + program_id(0) * 64 + i, v);", [100, 1, 1], [0; 2]);
    let mixed = "store(y + program_id(0), 1.0); store(z, load(z) + 1.0);";
    assert_eq!(conflicts(mixed, [100, 1, 1], [0; 2]), [false, true, true]);
}

#[test]
fn indices_from_memory_are_atomic() {
    let scatter = "store(y + load(indices + program_id(0) * 64 + i), ones);";
    assert_eq!(conflicts(scatter, [9, 1, 1], [0; 2]), [false, true]);
    let rows = "store(y + load(indices + program_id(0)) * n + i, ones, mask = i < n);";
    assert_eq!(conflicts(rows, [9, 1, 1], [50, 0]), [false, true]);
    // The plain load may see what an atomic does; the atomic stays what it is.
    let counter = "atomic_add(y, 1.0); store(z + program_id(0), load(y));";
    assert_eq!(conflicts(counter, [9, 1, 1], [0; 2]), [false, true, false]);
}

#[test]
fn what_wraps_proves_nothing() {
    // 2^62 * 4 programs is 2^64: the first and the fifth store at 0.
    all_atomic("store(y + program_id(0) * n, 1.0);", [8, 1, 1], [1 << 62, 0]);
    all_plain("store(y + program_id(0) * n, 1.0);", [2, 1, 1], [1 << 62, 0]);
    // In 32 bits the product wraps.
    let narrow = "store(y + (program_id(0) as i32 * (n as i32)) as i64, 1.0);";
    all_atomic(narrow, [8, 1, 1], [1 << 30, 0]);
    all_plain(narrow, [8, 1, 1], [1 << 20, 0]);
}

/// Tensors of an `unchecked` kernel may share memory, and an address may lead anywhere.
#[test]
fn unchecked_kernels_are_compared_by_their_addresses() {
    let text = "kernel @k(%x: ptr_mut<f32>, %y: ptr_mut<f32>) unchecked {
        %p = program_id : i64
        %v = load %x, %p : f32
        store %y, %p, %v
        return
    }";
    let program = support::compile(text);
    let found = |x: u64, y: u64| [0, 1].map(|access| program.conflicts(&[x, 100, y, 100], [100, 1, 1]).contains(access));
    assert_eq!(found(4096, 4496), [false, false]);
    assert_eq!(found(4096, 4492), [true, true]);
    let text = "kernel @k(%x: ptr<f32>, %to: i64) unchecked {
        %p = program_id : i64
        %v = load %x, %p : f32
        %y = pointer %to : ptr_mut<f32>
        store %y, %p, %v
        return
    }";
    let conflicts = support::compile(text).conflicts(&[4096, 100, 8192], [100, 1, 1]);
    assert_eq!([0, 1].map(|access| conflicts.contains(access)), [true, true]);
}

/// Elements that programs share are moved whole where a tensor is aligned, and right where it is not.
#[test]
fn shared_elements_of_unaligned_tensors_are_moved_byte_by_byte() {
    let text = "kernel @k(%x: ptr_mut<u32>, %y: ptr_mut<u32>, %step: i64) {
        %i = arange {start = 0, end = 64} : tile<i64, [64]>
        %s = broadcast %step : tile<i64, [64]>
        %o = mul %i, %s : tile<i64, [64]>
        %a = load %x, %o : tile<u32, [64]>
        %b = neg %a : tile<u32, [64]>
        store %y, %o, %b
        store %x, %o, %a
        return
    }";
    let program = support::compile(text);
    for (shift, step) in (0..4).flat_map(|shift| [(shift, 1), (shift, 2)]) {
        let mut x: Vec<u8> = (0..520).map(|byte| byte as u8).collect();
        let (before, mut y) = (x.clone(), [0xA5u8; 520]);
        let word = |at: *mut u8| at.expose_provenance() as u64 + shift;
        let args = [word(x.as_mut_ptr()), 127, word(y.as_mut_ptr()), 127, step];
        let conflicts = program.conflicts(&args, [2, 1, 1]);
        assert!((0..3).all(|access| conflicts.contains(access)));
        // SAFETY: the buffers live, and one thread runs.
        unsafe { program.run(&args, [2, 1, 1], [0; 3], &mut Scratch::new(), true, &conflicts) }.unwrap();
        assert_eq!(x, before);
        for at in 0..127 {
            let element = |bytes: &[u8]| u32::from_ne_bytes(bytes[4 * at + shift as usize..][..4].try_into().unwrap());
            let is_stored = at < 64 * step as usize && at % step as usize == 0;
            assert_eq!(element(&y), if is_stored { element(&x).wrapping_neg() } else { 0xA5A5_A5A5 }, "{shift} {step} {at}");
        }
    }
}

/// Programs on several threads store to the same elements, each a value of its own, in rows and one by one, and load them meanwhile. Every value found is
/// one that was stored, whole.
#[test]
fn a_race_gives_values_that_were_stored() {
    let source = "#[kernel]
    fn k(y: PtrMut<u64>, seen: PtrMut<u64>, indices: Ptr<i64>) {
        let i = arange(0, 64);
        let v = (program_id(0) as u64 + 1) * 0x0101_0101_0101_0101;
        store(y + i, full::<u64>([64], v));
        store(y + 64 + load(indices + i), full::<u64>([64], v));
        store(seen + program_id(0) * 128 + i, load(y + i));
        store(seen + program_id(0) * 128 + 64 + i, load(y + 64 + load(indices + i)));
    }";
    let func = kernel_frontend::lower_source(source, "test.rs").unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&[])));
    let program = kernel_cpu::compile(&func, &Bindings::new()).unwrap();
    const PROGRAMS: u32 = 200;
    const THREADS: u32 = 4;
    let grid = [PROGRAMS, 1, 1];
    let indices: Vec<i64> = (0..64).map(|i| i * 7 % 64).collect();
    let (mut y, mut seen) = (vec![0u64; 128], vec![0u64; 128 * PROGRAMS as usize]);
    let word = |at: *mut u64| at.expose_provenance() as u64;
    let args = [word(y.as_mut_ptr()), 128, word(seen.as_mut_ptr()), seen.len() as u64, indices.as_ptr().expose_provenance() as u64, 64];
    let conflicts = program.conflicts(&args, grid);
    // Each to `y` races; `seen` has a part for each program. (The indices are loaded once.)
    assert_eq!((0..7).filter(|access| conflicts.contains(*access)).count(), 4);
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (program, args, conflicts, barrier) = (&program, &args, &conflicts, &barrier);
            scope.spawn(move || {
                let mut scratch = Scratch::new();
                barrier.wait();
                for index in (thread..PROGRAMS).step_by(THREADS as usize) {
                    // SAFETY: the buffers outlive the threads, and the conflicts are those of this launch.
                    unsafe { program.run(args, grid, [index, 0, 0], &mut scratch, false, conflicts) }.unwrap();
                }
            });
        }
    });
    let is_whole =
        |value: &u64| value.is_multiple_of(0x0101_0101_0101_0101) && (1..=u64::from(PROGRAMS)).contains(&(value / 0x0101_0101_0101_0101));
    assert!(y.iter().all(is_whole) && seen.iter().all(is_whole), "a value that nobody stored");
}

/// A kernel that stores at an index made by ops that are given as text.
fn index_text(ops: &str, index: &str) -> String {
    format!(
        "kernel @k(%y: ptr_mut<f32>, %n: i64) {{
            %p = program_id : i64
            %v = const {{value = 1.0}} : f32
            {ops}
            store %y, {index}, %v
            return
        }}"
    )
}

/// Deep kernels and such that share operands take no more stack, and time in proportion.
#[test]
fn long_chains_and_shared_operands_are_decided_soon() {
    let chain: String = (0..20_000).map(|at| format!("%c{} = add %c{at}, %n : i64\n", at + 1)).collect();
    let chain = index_text(&format!("%c0 = mul %p, %n : i64\n{chain}"), "%c20000");
    let shared: String = (0..64).map(|at| format!("%c{} = add %c{at}, %c{at} : i64\n", at + 1)).collect();
    let shared = index_text(&format!("%c0 = mul %p, %n : i64\n{shared}"), "%c64");
    let stores: String = (0..3000).map(|at| format!("%c{at} = const {{value = {at}}} : i64\nstore %y, %c{at}, %v\n")).collect();
    let stores = index_text(&stores, "%p");
    for text in [chain, shared, stores] {
        let decide = move || {
            let program = support::compile(&text);
            let start = Instant::now();
            let found = program.conflicts(&[0, 1000, 1], [10, 1, 1]).contains(0);
            (found, start.elapsed())
        };
        let (found, time) = std::thread::Builder::new().stack_size(512 << 10).spawn(decide).unwrap().join().unwrap();
        assert!(found, "nothing is known of such an index");
        assert!(time.as_secs_f64() < 1.0, "{time:?}");
    }
}
