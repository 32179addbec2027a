//! The tasks of `docs/requirements.md`, solved with the public API alone. Expected texts are in `goldens`; `BLESS=1` writes them.

mod chart;
mod dims;
mod flops;
mod model;
#[path = "../on_devices/mod.rs"]
mod on_devices;
mod ops;
mod packages;
mod page;
#[path = "../graphs/round_trip.rs"]
mod round_trip;
mod values;

use std::path::Path;

use galatea::ops::Tensor;
use galatea::prelude::*;
use on_devices::{OnDevice, Once};

/// The tests of each device.
const ON_EACH: &[OnDevice] = &[
    ("chart::plain_eager", chart::plain_eager),
    ("chart::plain_recorded", chart::plain_recorded),
    ("chart::plain_packaged", chart::plain_packaged),
    ("chart::plain_profiled", chart::plain_profiled),
    ("chart::plain_flops", chart::plain_flops),
    ("chart::plain_checked", chart::plain_checked),
    ("chart::op_eager", chart::op_eager),
    ("chart::op_recorded", chart::op_recorded),
    ("chart::op_packaged", chart::op_packaged),
    ("chart::op_profiled", chart::op_profiled),
    ("chart::op_flops", chart::op_flops),
    ("chart::op_gradients", chart::op_gradients),
    ("chart::op_checked", chart::op_checked),
    ("chart::on_cpu_eager", chart::on_cpu_eager),
    ("chart::on_cpu_recorded", chart::on_cpu_recorded),
    ("chart::on_cpu_packaged", chart::on_cpu_packaged),
    ("chart::on_cpu_profiled", chart::on_cpu_profiled),
    ("chart::on_cpu_flops", chart::on_cpu_flops),
    ("chart::on_cpu_gradients", chart::on_cpu_gradients),
    ("chart::on_cpu_checked", chart::on_cpu_checked),
    ("chart::opaque_eager", chart::opaque_eager),
    ("chart::opaque_recorded", chart::opaque_recorded),
    ("chart::opaque_packaged", chart::opaque_packaged),
    ("chart::opaque_profiled", chart::opaque_profiled),
    ("chart::opaque_flops", chart::opaque_flops),
    ("chart::opaque_gradients", chart::opaque_gradients),
    ("chart::opaque_checked", chart::opaque_checked),
    ("chart::tuned_eager", chart::tuned_eager),
    ("chart::tuned_recorded", chart::tuned_recorded),
    ("chart::tuned_packaged", chart::tuned_packaged),
    ("chart::tuned_profiled", chart::tuned_profiled),
    ("chart::tuned_flops", chart::tuned_flops),
    ("chart::tuned_checked", chart::tuned_checked),
    ("chart::training_recorded", chart::training_recorded),
    ("chart::training_packaged", chart::training_packaged),
    ("dims::all_batches_of_the_range_run", dims::all_batches_of_the_range_run),
    ("ops::the_op_of_ten_lines_runs", ops::the_op_of_ten_lines_runs),
    ("ops::silu_of_bf16_is_rounded_once", ops::silu_of_bf16_is_rounded_once),
    ("ops::sines_are_those_of_f64", ops::sines_are_those_of_f64),
    ("values::a_cache_is_written_in_place", values::a_cache_is_written_in_place),
    ("values::a_recorded_cache_is_written_in_place", values::a_recorded_cache_is_written_in_place),
    ("values::a_cache_that_is_given_away_is_not_copied", values::a_cache_that_is_given_away_is_not_copied),
    ("values::checked_runs_name_the_line_of_the_kernel", values::checked_runs_name_the_line_of_the_kernel),
    ("packages::eight_threads_have_a_session_each", packages::eight_threads_have_a_session_each),
    ("packages::new_parameters_are_those_of_the_next_run", packages::new_parameters_are_those_of_the_next_run),
];

/// Tests that need no device but the CPU and simulated GPUs.
const ONCE: &[Once] = &[
    ("chart::plain_gradients", chart::plain_gradients),
    ("chart::tuned_gradients", chart::tuned_gradients),
    ("dims::a_plain_function_is_exported_with_its_launch", dims::a_plain_function_is_exported_with_its_launch),
    ("dims::errors_of_batches_name_dim_and_line", dims::errors_of_batches_name_dim_and_line),
    ("dims::an_undecided_branch_names_its_line", dims::an_undecided_branch_names_its_line),
    ("dims::elements_cannot_be_read_while_recording", dims::elements_cannot_be_read_while_recording),
    ("flops::a_model_without_a_recording_has_the_table_of_torch", flops::a_model_without_a_recording_has_the_table_of_torch),
    ("flops::a_recorded_model_has_the_same_table", flops::a_recorded_model_has_the_same_table),
    ("model::the_story_of_the_example", model::the_story_of_the_example),
    ("model::all_four_forms_are_exported", model::all_four_forms_are_exported),
    ("model::traces_have_five_steps_of_ops_over_kernels", model::traces_have_five_steps_of_ops_over_kernels),
    ("model::seeds_repeat_a_model", model::seeds_repeat_a_model),
    ("ops::gradcheck_tells_its_error", ops::gradcheck_tells_its_error),
    ("ops::a_forgotten_backward_names_op_and_input", ops::a_forgotten_backward_names_op_and_input),
    ("ops::the_function_for_the_cpu_runs_when_compiled", ops::the_function_for_the_cpu_runs_when_compiled),
    ("ops::kernels_of_an_op_are_its_launches", ops::kernels_of_an_op_are_its_launches),
    ("ops::a_graph_lists_all_launches_of_an_op", ops::a_graph_lists_all_launches_of_an_op),
    ("ops::an_argument_is_not_written_behind_a_reference", ops::an_argument_is_not_written_behind_a_reference),
    ("ops::a_machine_without_a_gpu_has_a_device", ops::a_machine_without_a_gpu_has_a_device),
    ("packages::any_zip_program_lists_a_package", packages::any_zip_program_lists_a_package),
    ("packages::bytes_of_the_program_are_a_package", packages::bytes_of_the_program_are_a_package),
    ("packages::a_flipped_byte_is_named", packages::a_flipped_byte_is_named),
    ("packages::another_gpu_compiles_the_kernels_again", packages::another_gpu_compiles_the_kernels_again),
    ("packages::parameters_that_do_not_fit_are_named", packages::parameters_that_do_not_fit_are_named),
    ("page::tests_of_the_page_exist", page::tests_of_the_page_exist),
    ("page::all_requirements_have_a_row", page::all_requirements_have_a_row),
];

fn main() {
    if std::env::var_os(model::CHILD).is_some() {
        return model::example();
    }
    on_devices::run(&["cpu", "sim:sm_80", "sim:sm_90a", "cuda:0"], ON_EACH, ONCE);
}

/// Compares a text with that of a file in `goldens`.
fn golden(name: &str, text: &str) {
    // On another machine, the tests run in their folder.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let file = Path::new(&folder).join("tests/acceptance/goldens").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default(), "{name}: BLESS=1 writes the file");
}

/// A tensor of `n` numbers that differ.
fn numbers(device: &Device, n: usize) -> Tensor {
    let numbers: Vec<f32> = (0..n).map(|i| (i % 37) as f32 * 0.25 - 3.0).collect();
    device.tensor(&numbers).unwrap().into()
}

/// Equal bytes, in equal types.
fn assert_same(a: &Tensor, b: &Tensor) {
    let comparison = galatea::ops::compare(a, b).unwrap();
    assert!(comparison.bit_equal, "{a} {b}: {comparison}");
}
