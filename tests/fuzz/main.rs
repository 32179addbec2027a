//! Random kernels, each on the CPU and on every other device, which must agree on every bit.
//!
//! A seed and a number draw a kernel as text in the language: loads, loops over memory with masks, strides and stages, and statements on tiles of any shape
//! and type (`writer`). Results can be compared, and need no reference, because nothing in a kernel depends on which of two lanes or programs comes
//! first, floats are rounded correctly wherever it runs, and what is summed is small whole numbers, of which sums are exact in any order. Math functions, which
//! may be off by some ulp, have tests of their own.
//!
//! A program writes its own part of a tensor, also by addresses of the same memory, which kernels without bounds checks load; what all programs write, they write by
//! atomics whose order does not matter. Some kernels are shared by the CTAs of a cluster where the device has clusters.
//!
//! A kernel is one trial a device: `sim::kernel_7`, and `sim::product_7` of those with matrix products. `GALATEA_SEED` draws others, `GALATEA_FUZZ` says how many
//! of both, and with `GALATEA_MINIMISE` one that fails loses what it fails without. A failure prints its source.

mod accesses;
#[allow(dead_code, reason = "conformance uses all of it")]
#[path = "../conformance/array.rs"]
mod array;
mod check;
mod control;
#[path = "../devices/mod.rs"]
mod devices;
mod elements;
mod flat;
mod kernel;
#[allow(dead_code, reason = "conformance uses all of it")]
#[path = "../conformance/lab.rs"]
mod lab;

#[path = "../conformance/memory.rs"]
mod memory;
mod minimise;
#[allow(dead_code, reason = "conformance uses all of it")]
#[path = "../conformance/number.rs"]
mod number;
mod pairs;
mod products;
mod ragged;
mod rows;
mod shapes;
mod sweeps;
mod tile;
mod transposes;
mod walks;
mod writer;

use galatea::Device;
use libtest_mimic::{Arguments, Failed};

use lab::Lab;

/// So many as a usual run of the tests has time for.
const KERNELS: u64 = 100;
/// The same of kernels with matrix products.
const PRODUCTS: u64 = 36;

/// Writes a kernel.
type Write = fn(&mut Lab) -> kernel::Kernel;

fn main() {
    let arguments = Arguments::from_args();
    let seed = number_of("GALATEA_SEED").unwrap_or(1);
    let [_cpu, devices @ ..] = devices::columns(seed);
    let mut trials = Vec::new();
    let families: [(&str, u64, Write); 2] = [("kernel", KERNELS, writer::write), ("product", PRODUCTS, writer::write_products)];
    for (family, usual, write) in families {
        for number in 0..number_of("GALATEA_FUZZ").unwrap_or(usual) {
            let name = format!("{family}_{number}");
            trials.extend(devices.iter().map(|column| {
                let own = name.clone();
                column.trial(&name, move |device| run(device, seed, write, &own, number))
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    check::report();
    conclusion.exit();
}

fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}

fn run(device: Device, seed: u64, write: Write, name: &str, number: u64) -> Result<(), Failed> {
    let kernel = write(&mut Lab::new(Device::cpu(), seed, name));
    let wrong = |kernel: &kernel::Kernel| check::check(kernel, device, seed).err();
    let Some(error) = wrong(&kernel) else { return Ok(()) };
    let least = if std::env::var_os("GALATEA_MINIMISE").is_some() { minimise::minimise(&kernel, &error, wrong) } else { kernel };
    let source = least.source();
    Err(Failed::from(format!(
        "{error}\n{:?}\n{}launched with {:?}\nto repeat: GALATEA_SEED={seed} GALATEA_FUZZ={} cargo test --workspace --test fuzz -- {name}",
        source.schedule,
        source.text,
        least.launches,
        number + 1
    )))
}
