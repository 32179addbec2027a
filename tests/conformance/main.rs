//! Conformance: the themes of Triton's own suites, each a table of cases: a kernel template with its types, shapes, axes and options, run on the
//! CPU, on simulated GPUs and on the first GPU, and held to a reference in plain Rust that shares nothing with the compiler.
//!
//! A case is one trial a device: `cpu::bin_op::add-i8-f32`. Inputs are fresh in every run; a failure prints its seed, and `GALATEA_SEED` sets it.

mod array;
mod case;
#[path = "../devices/mod.rs"]
mod devices;
mod lab;
mod memory;
mod number;
mod themes;
mod tiles;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed};

use case::Case;
use galatea::Device;
use lab::Lab;

fn main() {
    let arguments = Arguments::from_args();
    let seed = seed();
    let columns = devices::columns(seed);
    let mut trials = Vec::new();
    for (theme, cases) in [
        ("bin_op", themes::arithmetic::bin_op()),
        ("bitwise_op", themes::arithmetic::bitwise_op()),
        ("compare_op", themes::arithmetic::compare_op()),
        ("shift_op", themes::arithmetic::shift_op()),
        ("floordiv", themes::arithmetic::floordiv()),
        ("bin_op_constexpr", themes::arithmetic::bin_op_constexpr()),
        ("unary_op", themes::arithmetic::unary_op()),
        ("math_op", themes::math::math_op()),
        ("math_erf_op", themes::math::math_erf_op()),
        ("math_fma_op", themes::math::math_fma_op()),
        ("math_divide_op", themes::math::math_divide_op()),
        ("precise_math", themes::math::precise_math()),
        ("fdiv_ieee_rounding", themes::math::fdiv_ieee_rounding()),
        ("abs", themes::math::abs()),
        ("math_member_fn", themes::math::math_member_fn()),
        ("where", themes::math::select()),
        ("where_broadcast", themes::math::select_broadcast()),
        ("clamp", themes::math::clamp()),
        ("clamp_symmetric", themes::math::clamp_symmetric()),
        ("propagate_nan", themes::math::propagate_nan()),
        ("max_min_with_nan", themes::math::max_min_with_nan()),
        ("umulhi", themes::math::umulhi()),
        ("int1", themes::math::bool_as_int()),
        ("neg_preserves_signed_zero", themes::math::neg_preserves_signed_zero()),
        ("bfloat16_mul_rounds_to_nearest_even", themes::math::bfloat16_mul_rounds_to_nearest_even()),
        ("unsigned_name_mangling", themes::math::unsigned_name_mangling()),
        ("libdevice_rint", themes::math::rint()),
        ("cast", themes::casts::cast()),
        ("bitcast", themes::casts::bitcast()),
        ("typeconvert_upcast", themes::casts::typeconvert_upcast()),
        ("typeconvert_downcast", themes::casts::typeconvert_downcast()),
        ("typeconvert_downcast_clamping", themes::casts::typeconvert_downcast_clamping()),
        ("reduce1d", themes::reductions::reduce1d()),
        ("reduce", themes::reductions::reduce()),
        ("max_returns_zero", themes::reductions::max_returns_zero()),
        ("sum_dtype", themes::reductions::sum_dtype()),
        ("generic_reduction", themes::reductions::generic_reduction()),
        ("chained_reductions", themes::reductions::chained_reductions()),
        ("argmax_argmin_with_nan", themes::reductions::argmax_argmin_with_nan()),
        ("optimize_thread_locality", themes::reductions::optimize_thread_locality()),
        ("scan2d", themes::scans::scan2d()),
        ("scan_1d", themes::scans::scan_1d()),
        ("cumsum_dtype", themes::scans::cumsum_dtype()),
    ] {
        for case in cases {
            let name = format!("{theme}::{}", case.name);
            let case = Arc::new(case);
            trials.extend(columns.iter().map(|column| {
                let (case, case_name) = (case.clone(), name.clone());
                column.trial(&name, move |device| run(&case, device, &case_name, seed))
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// What `GALATEA_SEED` says, else another one each time.
fn seed() -> u64 {
    match std::env::var("GALATEA_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("GALATEA_SEED is a number, not `{text}`")),
        Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
    }
}

fn run(case: &Case, device: Device, name: &str, seed: u64) -> Result<(), Failed> {
    let mut lab = Lab::new(device, seed, name);
    let checked = catch_unwind(AssertUnwindSafe(|| (case.run)(&mut lab))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(text.unwrap_or("a panic without a text").to_string())
    });
    checked.map_err(|error| Failed::from(format!("{error}\nto repeat: GALATEA_SEED={seed}")))
}
