//! Variants that count on facts of arguments, and those that serve until they are compiled.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, ir};
use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Fact, Kernel, Launch, PtrArg, PtrMutArg, Schedule, Variant};

use crate::Test;
use crate::allocations::allocations;

pub(crate) const TESTS: &[Test] = &[
    ("a_fact_selects_a_variant_and_costs_little", a_fact_selects_a_variant_and_costs_little),
    ("another_variant_serves_while_a_thread_compiles", another_variant_serves_while_a_thread_compiles),
];

/// y[i] = x[i * step]
const IR: &str = "
kernel @pick<const N: i64>(%x: ptr<f32>, %y: ptr_mut<f32>, %step: i64) {
    %0 = arange {start = 0, end = N} : tile<i64, [N]>
    %1 = broadcast %step : tile<i64, [N]>
    %2 = mul %0, %1 : tile<i64, [N]>
    %3 = load %x, %2 : tile<f32, [N]>
    store %y, %0, %3
    return
}
";

const N: usize = 1024;

/// Built for any step, as the macro does it; another variant counts on a step of 1.
fn kernel() -> Kernel {
    let func = ir::parse(IR).expect("it parses");
    let compiled =
        kernel_lang::compile(&func, &Options::new(Bindings::new().constant("N", N as i128), Target::SM_80)).expect("it compiles");
    let variant = Variant {
        key: &[N as u64],
        schedule: Schedule::DEFAULT,
        target: "sm_80",
        entry: "pick",
        shared_bytes: compiled.shared_bytes,
        ptx: compiled.ptx.leak(),
    };
    const FACTS: &[Fact] = &[Fact::is("step", 4, 1)];
    crate::trusted::kernel("pick", IR, Schedule::DEFAULT, &[], vec![variant].leak()).specializing(FACTS)
}

fn pick<'a>(kernel: &'static Kernel, x: impl PtrArg<'a, f32>, y: impl PtrMutArg<'a, f32>, step: usize) -> Launch<'a, 5, 1> {
    let mut args = Args::new(kernel);
    args.pointer("x", x);
    args.pointer_mut("y", y);
    args.scalar(step);
    crate::trusted::launch(args, [N as u64])
}

fn picked(x: &[f32], step: usize) -> Vec<f32> {
    (0..N).map(|i| x[i * step]).collect()
}

fn a_fact_selects_a_variant_and_costs_little(device: Device) {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    let kernel = KERNEL.get_or_init(kernel);
    let data: Vec<f32> = (0..3 * N).map(|i| i as f32).collect();
    let (x, mut y) = (device.tensor(&data).unwrap(), device.zeros::<f32>(N).unwrap());
    let mut per_launch = Vec::new();
    for step in [1, 2, 0, 3, 1] {
        pick(kernel, &x, &mut y, step).grid(1).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), picked(&data, step), "step {step}");
        device.synchronize().unwrap();
        let (before, start) = (allocations(), Instant::now());
        (0..200).for_each(|_| pick(kernel, &x, &mut y, step).grid(1).launch().unwrap());
        let took = start.elapsed() / 200;
        assert_eq!(allocations() - before, 0, "step {step}");
        per_launch.push(took);
    }
    println!("a launch that finds its variant by no fact, and by one: {:?}, {:?}", per_launch[1], per_launch[4]);
}

fn another_variant_serves_while_a_thread_compiles(device: Device) {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    let kernel = KERNEL.get_or_init(kernel);
    let data: Vec<f32> = (0..2 * N).map(|i| i as f32).collect();
    let x = device.tensor(&data).unwrap();
    // This launch loads the variant that serves while a thread compiles the other one.
    pick(kernel, &x, &mut device.zeros::<f32>(N).unwrap(), 2).grid(1).launch().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut y = device.zeros::<f32>(N).unwrap();
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(200) {
                    pick(kernel, &x, &mut y, 1).grid(1).compile_in_background().launch().unwrap();
                    assert_eq!(y.to_vec().unwrap(), picked(&data, 1));
                }
            });
        }
    });
    // By now it is ready: nothing is left to do for a launch that waits.
    let mut y = device.zeros::<f32>(N).unwrap();
    let start = Instant::now();
    pick(kernel, &x, &mut y, 1).grid(1).launch().unwrap();
    println!("a launch that finds what another thread compiled: {:?}", start.elapsed());
    assert_eq!(y.to_vec().unwrap(), picked(&data, 1));
}
