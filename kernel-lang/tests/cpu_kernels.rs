//! Whole kernels on the CPU executor against plain Rust.

mod cpu_support;

use cpu_support::{compile, run_grid};

const VECTOR_ADD: &str = r#"kernel @add(%x: ptr<f32>, %y: ptr<f32>, %z: ptr_mut<f32>, %n: i64) file "add.rs" {
    %0 = program_id : i64
    %1 = const {value = 1024} : i64
    %2 = mul %0, %1 : i64
    %3 = arange {start = 0, end = 1024} : tile<i64, [1024]>
    %4 = broadcast %2 : tile<i64, [1024]>
    %5 = add %4, %3 : tile<i64, [1024]>
    %6 = broadcast %n : tile<i64, [1024]>
    %7 = lt %5, %6 : tile<bool, [1024]>
    %8 = load %x, %5 {mask = %7} : tile<f32, [1024]> @5:13
    %9 = load %y, %5 {mask = %7} : tile<f32, [1024]> @6:13
    %10 = add %8, %9 : tile<f32, [1024]>
    store %z, %5, %10 {mask = %7} @7:5
    return
}
"#;

#[test]
fn vector_add_of_ragged_sizes() {
    let program = compile(VECTOR_ADD);
    for n in [0usize, 1, 7, 1023, 1024, 1025, 4096, 5000] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
        // Poisoned, with a guard behind the end.
        let mut z = vec![f32::NAN; n + 16];
        let args = [x.as_ptr() as u64, n as u64, y.as_ptr() as u64, n as u64, z.as_mut_ptr() as u64, n as u64, n as u64];
        run_grid(&program, &args, [n.div_ceil(1024) as u32, 1, 1], true).unwrap();
        assert!((0..n).all(|i| z[i] == 1.5 * i as f32), "n = {n}");
        assert!(z[n..].iter().all(|z| z.is_nan()));
    }
}
