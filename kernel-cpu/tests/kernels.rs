//! Whole kernels on the CPU executor against plain Rust.

mod support;

use kernel_cpu::{Conflicts, Program, Scratch};
use kernel_lang::dtype::Dtype;
use support::{Buffer, Random, check_text, compile, run_grid};

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

/// `x * sigmoid(x)`, computed in f32 and rounded once.
const SILU_BF16: &str = r#"kernel @silu(%x: ptr<bf16>, %y: ptr_mut<bf16>, %n: i64) {
    %0 = program_id : i64
    %1 = const {value = 256} : i64
    %2 = mul %0, %1 : i64
    %3 = arange {start = 0, end = 256} : tile<i64, [256]>
    %4 = broadcast %2 : tile<i64, [256]>
    %5 = add %4, %3 : tile<i64, [256]>
    %6 = broadcast %n : tile<i64, [256]>
    %7 = lt %5, %6 : tile<bool, [256]>
    %8 = load %x, %5 {mask = %7} : tile<bf16, [256]>
    %9 = cast %8 : tile<f32, [256]>
    %10 = sigmoid %9 : tile<f32, [256]>
    %11 = mul %9, %10 : tile<f32, [256]>
    %12 = cast %11 : tile<bf16, [256]>
    store %y, %5, %12 {mask = %7}
    return
}
"#;

#[test]
fn one_program_runs_on_many_threads() {
    fn is_shared<T: Send + Sync>(shared: T) -> T {
        shared
    }
    let program: Program = is_shared(compile(SILU_BF16));
    let n = if cfg!(miri) { 1500 } else { 100_003 };
    let mut random = Random(11);
    let x: Vec<half::bf16> = (0..n).map(|_| half::bf16::from_f64(random.unit() * 40.0 - 20.0)).collect();
    let mut y = vec![half::bf16::NAN; n];
    let args = [x.as_ptr().expose_provenance() as u64, n as u64, y.as_mut_ptr().expose_provenance() as u64, n as u64, n as u64];
    let programs = n.div_ceil(256) as u32;
    let conflicts = &program.conflicts(&args, [programs, 1, 1]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (program, args) = (&program, &args);
            scope.spawn(move || {
                let mut scratch = Scratch::new();
                for index in (thread..programs).step_by(4) {
                    // SAFETY: the buffers outlive the threads, and the conflicts are those of this launch.
                    unsafe { program.run(args, [programs, 1, 1], [index, 0, 0], &mut scratch, true, conflicts) }.unwrap();
                }
            });
        }
    });
    for (x, y) in x.iter().zip(&y) {
        let (wide, got) = (x.to_f64(), y.to_f64());
        let exact = wide / (1.0 + (-wide).exp());
        // Half an ulp of bf16 is 2^-8 of a power of two; two operations in f32 add little to it.
        let bound = exact.abs() * 2f64.powi(-8) * 1.001;
        assert!((got - exact).abs() <= bound, "silu({wide}) is {exact}, not {got}");
    }
}

/// A scratch goes from program to program: constants of the one never stand in for those of the other.
#[test]
fn a_scratch_serves_several_programs() {
    let text = |value: i32| {
        format!(
            "kernel @fill(%y: ptr_mut<i32>) {{
    %lane = arange {{start = 0, end = 256}} : tile<i64, [256]>
    %v = const {{value = {value}}} : tile<i32, [256]>
    store %y, %lane, %v
    return
}}
"
        )
    };
    let programs = [compile(&text(7)), compile(&text(8)), compile(VECTOR_ADD)];
    let mut scratch = Scratch::new();
    let mut y = [0i32; 256];
    for (program, expected) in [(0, 7), (1, 8), (2, 8), (0, 7), (0, 7)] {
        let at = y.as_mut_ptr().expose_provenance() as u64;
        let args = if program == 2 { vec![0; 7] } else { vec![at, 256] };
        // SAFETY: the buffer lives, or the tensors are empty.
        unsafe { programs[program].run(&args, [1; 3], [0; 3], &mut scratch, false, &Conflicts::none()) }.unwrap();
        assert_eq!(y, [expected; 256]);
    }
}

/// gelu by erf over a ragged f64 tensor, with constants as uniform tiles, checked against the naive executor too.
#[test]
fn gelu_with_uniform_constants() {
    let text = "kernel @gelu(%x: ptr<f64>, %y: ptr_mut<f64>, %n: i64) {
    %o = arange {start = 0, end = 512} : tile<i64, [512]>
    %nb = broadcast %n : tile<i64, [512]>
    %m = lt %o, %nb : tile<bool, [512]>
    %v = load %x, %o {mask = %m} : tile<f64, [512]>
    %half = const {value = 0.5} : tile<f64, [512]>
    %one = const {value = 1.0} : tile<f64, [512]>
    %two = add %one, %one : tile<f64, [512]>
    %scale = rsqrt %two : tile<f64, [512]>
    %s = mul %v, %scale : tile<f64, [512]>
    %e = erf %s : tile<f64, [512]>
    %p = add %one, %e : tile<f64, [512]>
    %h = mul %half, %p : tile<f64, [512]>
    %r = mul %v, %h : tile<f64, [512]>
    store %y, %o, %r {mask = %m}
    return
}
";
    let n = 400;
    let mut random = Random(5);
    let x: Vec<u64> = (0..n).map(|_| (random.unit() * 8.0 - 4.0).to_bits()).collect();
    let (got, violation) = check_text(text, vec![Buffer::new(Dtype::F64, &x), Buffer::poisoned(Dtype::F64, n)], &[n as u64], [1; 3]);
    assert_eq!(violation, None);
    for (x, y) in x.iter().zip(&got[1]) {
        let (x, y) = (f64::from_bits(*x), f64::from_bits(*y));
        // Without erf: the tanh form of gelu is within 5e-4 (Hendrycks and Gimpel, 2016).
        let tanh_form = 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
        assert!((y - tanh_form).abs() < 5e-4, "gelu({x}) = {y}");
    }
}

/// Through the compiler's entry point: neither offsets nor masks are ever computed lane by lane, so the scratch holds three tiles of `f32` at most.
#[test]
fn offsets_and_masks_take_no_memory() {
    let text = "kernel @add<T: f32 | f64, const BLOCK: i64>(%x: ptr<T>, %y: ptr<T>, %z: ptr_mut<T>, %n: i64) {
    %0 = program_id : i64
    %1 = const {value = BLOCK} : i64
    %2 = mul %0, %1 : i64
    %3 = broadcast %2 : tile<i64, [BLOCK]>
    %4 = arange {start = 0, end = BLOCK} : tile<i64, [BLOCK]>
    %5 = add %3, %4 : tile<i64, [BLOCK]>
    %6 = broadcast %n : tile<i64, [BLOCK]>
    %7 = lt %5, %6 : tile<bool, [BLOCK]>
    %8 = load %x, %5 {mask = %7} : tile<T, [BLOCK]>
    %9 = load %y, %5 {mask = %7} : tile<T, [BLOCK]>
    %10 = add %8, %9 : tile<T, [BLOCK]>
    store %z, %5, %10 {mask = %7}
    return
}
";
    let bindings = kernel_lang::Bindings::new().ty("T", Dtype::F32).constant("BLOCK", 1024);
    let program = kernel_cpu::compile(&kernel_lang::ir::parse(text).unwrap(), &bindings).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(program.scratch_bytes() <= 3 * 4096 + 512, "{}", program.scratch_bytes());
}
