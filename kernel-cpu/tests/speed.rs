//! The speed of the CPU executor, beside plain Rust loops in the same run. Ignored by default, because it is meaningful only in release:
//! `cargo test --release -p kernel-cpu --test speed -- --ignored --nocapture`

mod support;

use std::hint::black_box;
use std::time::Instant;

use half::bf16;
use kernel_cpu::{Conflicts, Program, Scratch};
use support::compile;

const N: usize = 1 << 24;
const THREADS: usize = 2;

const ADD: &str = r#"kernel @add(%x: ptr<f32>, %y: ptr<f32>, %z: ptr_mut<f32>, %n: i64) {
    %0 = program_id : i64
    %1 = const {value = 1024} : i64
    %2 = mul %0, %1 : i64
    %3 = arange {start = 0, end = 1024} : tile<i64, [1024]>
    %4 = broadcast %2 : tile<i64, [1024]>
    %5 = add %4, %3 : tile<i64, [1024]>
    %6 = broadcast %n : tile<i64, [1024]>
    %7 = lt %5, %6 : tile<bool, [1024]>
    %8 = load %x, %5 {mask = %7} : tile<f32, [1024]>
    %9 = load %y, %5 {mask = %7} : tile<f32, [1024]>
    %10 = add %8, %9 : tile<f32, [1024]>
    store %z, %5, %10 {mask = %7}
    return
}
"#;

/// `x * sigmoid(x)` of an element type, computed in `f32`.
fn silu_text(ty: &str) -> String {
    let (up, down) = match ty {
        "f32" => ("".to_string(), "%9".to_string()),
        _ => ("%v = cast %8 : tile<f32, [1024]>".to_string(), "%c".to_string()),
    };
    let v = if ty == "f32" { "%8" } else { "%v" };
    let cast = if ty == "f32" { String::new() } else { format!("%c = cast %9 : tile<{ty}, [1024]>") };
    format!(
        r#"kernel @silu(%x: ptr<{ty}>, %y: ptr_mut<{ty}>, %n: i64) {{
    %0 = program_id : i64
    %1 = const {{value = 1024}} : i64
    %2 = mul %0, %1 : i64
    %3 = arange {{start = 0, end = 1024}} : tile<i64, [1024]>
    %4 = broadcast %2 : tile<i64, [1024]>
    %5 = add %4, %3 : tile<i64, [1024]>
    %6 = broadcast %n : tile<i64, [1024]>
    %7 = lt %5, %6 : tile<bool, [1024]>
    %8 = load %x, %5 {{mask = %7}} : tile<{ty}, [1024]>
    {up}
    %s = sigmoid {v} : tile<f32, [1024]>
    %9 = mul {v}, %s : tile<f32, [1024]>
    {cast}
    store %y, %5, {down} {{mask = %7}}
    return
}}
"#
    )
}

/// The best of several runs of each, in seconds, taken in turns so that a busy machine disturbs both alike.
fn best(mut ours: impl FnMut(), mut plain: impl FnMut()) -> [f64; 2] {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..15).fold([f64::INFINITY; 2], |[a, b], _| [time(&mut ours).min(a), time(&mut plain).min(b)])
}

/// One program of 1024 elements again and again, its data in the L1 cache: what the executor itself costs.
fn hot(name: &str, program: &Program, args: &[u64]) {
    const ROUNDS: usize = 2000;
    let mut scratch = Scratch::new();
    let round = || {
        for _ in 0..ROUNDS {
            // SAFETY: the buffers outlive the call.
            unsafe { program.run(args, [1; 3], [0; 3], &mut scratch, false, &Conflicts::none()) }.unwrap();
        }
    };
    let [seconds, _] = best(round, || {});
    let element = seconds / (1024 * ROUNDS) as f64;
    println!("{name:12} hot  {:6.3} ns/element ({:5.2} cycles at 3 GHz)", element * 1e9, element * 3e9);
}

/// Every program of a grid, a contiguous share for each thread.
fn launch(program: &Program, args: &[u64], programs: usize) {
    let (share, grid) = (programs.div_ceil(THREADS), [programs as u32, 1, 1]);
    let conflicts = &program.conflicts(args, grid);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut scratch = Scratch::new();
                for index in thread * share..programs.min((thread + 1) * share) {
                    // SAFETY: the buffers outlive the call, and the conflicts are those of this launch.
                    unsafe { program.run(args, grid, [index as u32, 0, 0], &mut scratch, false, conflicts) }.unwrap();
                }
            });
        }
    });
}

/// A plain loop over the output, a contiguous share for each thread.
fn plain<T: Send + Sync, R: Send>(x: &[T], y: &mut [R], f: impl Fn(usize, &T) -> R + Sync) {
    let share = x.len().div_ceil(THREADS);
    std::thread::scope(|scope| {
        for (part, (x, y)) in x.chunks(share).zip(y.chunks_mut(share)).enumerate() {
            let f = &f;
            scope.spawn(move || {
                for (i, (x, y)) in x.iter().zip(y).enumerate() {
                    *y = f(part * share + i, x);
                }
            });
        }
    });
}

fn report(name: &str, [ours, plain]: [f64; 2]) {
    // Nominal, to make figures of one machine comparable: cycles of one thread at 3 GHz.
    let cycles = |seconds: f64| seconds * 3e9 * THREADS as f64 / N as f64;
    println!(
        "{name:12} ours {:6.2} ms ({:5.2} cycles/element)   plain {:6.2} ms ({:5.2})   ratio {:.2}",
        ours * 1e3,
        cycles(ours),
        plain * 1e3,
        cycles(plain),
        ours / plain
    );
    assert!(ours <= 2.0 * plain, "{name} is more than twice as slow as a plain loop");
}

#[test]
#[ignore = "a measurement"]
fn vector_add_and_silu_beside_plain_loops() {
    let x: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.02 - 10.0).collect();
    let y: Vec<f32> = (0..N).map(|i| (i % 777) as f32).collect();
    let mut z = vec![0f32; N];
    let n = N as u64;

    let program = compile(ADD);
    println!("scratch of vector add: {} bytes", program.scratch_bytes());
    let args = [x.as_ptr() as u64, n, y.as_ptr() as u64, n, z.as_mut_ptr() as u64, n, n];
    let times = best(|| launch(&program, &args, N / 1024), || plain(&x, black_box(&mut z), |i, x| x + y[i]));
    report("add f32", times);
    hot("add f32", &program, &args);

    let program = compile(&silu_text("f32"));
    let args = [x.as_ptr() as u64, n, z.as_mut_ptr() as u64, n, n];
    let times = best(|| launch(&program, &args, N / 1024), || plain(&x, black_box(&mut z), |_, x| x / (1.0 + (-x).exp())));
    report("silu f32", times);
    hot("silu f32", &program, &args);

    let program = compile(&silu_text("bf16"));
    let x: Vec<bf16> = x.iter().map(|x| bf16::from_f32(*x)).collect();
    let mut z = vec![bf16::ZERO; N];
    let args = [x.as_ptr() as u64, n, z.as_mut_ptr() as u64, n, n];
    let times = best(
        || launch(&program, &args, N / 1024),
        || {
            plain(&x, black_box(&mut z), |_, x| {
                let x = x.to_f32();
                bf16::from_f32(x / (1.0 + (-x).exp()))
            });
        },
    );
    report("silu bf16", times);
    hot("silu bf16", &program, &args);
}

/// The time for each element of each function of `f32`, with the data in the L1 cache.
#[test]
#[ignore = "a measurement"]
fn functions_of_f32() {
    let x: Vec<f32> = (0..1024).map(|i| i as f32 * 0.02 - 10.0).collect();
    let mut y = vec![0f32; 1024];
    for op in ["exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "floor", "round"] {
        let text = format!(
            "kernel @op(%x: ptr<f32>, %y: ptr_mut<f32>) {{
    %lane = arange {{start = 0, end = 1024}} : tile<i64, [1024]>
    %a = load %x, %lane : tile<f32, [1024]>
    %b = {op} %a : tile<f32, [1024]>
    store %y, %lane, %b
    return
}}
"
        );
        hot(op, &compile(&text), &[x.as_ptr() as u64, 1024, y.as_mut_ptr() as u64, 1024]);
    }
}
