//! Profiles of ops, copies, steps and sessions: the structure of their traces, on the CPU, on simulated GPUs, and on a GPU where there is one.

#[path = "../on_devices/mod.rs"]
mod on_devices;
mod ops;
mod sessions;
mod trace_events;

use galatea::ops::Tensor;
use galatea::prelude::*;
use on_devices::OnDevice;

/// The tests of each device.
const ON_EACH: &[OnDevice] = &[
    ("ops::an_op_is_a_span_over_its_launches", ops::an_op_is_a_span_over_its_launches),
    ("ops::inputs_have_their_extents_and_dtypes", ops::inputs_have_their_extents_and_dtypes),
    ("ops::operations_are_those_of_the_grid", ops::operations_are_those_of_the_grid),
    ("ops::a_copy_names_its_bytes_and_its_line", ops::a_copy_names_its_bytes_and_its_line),
    ("ops::an_op_that_fails_ends_its_span", ops::an_op_that_fails_ends_its_span),
    ("ops::a_benchmark_of_an_op_has_no_spans_of_it", ops::a_benchmark_of_an_op_has_no_spans_of_it),
    ("sessions::each_cycle_of_steps_is_a_trace", sessions::each_cycle_of_steps_is_a_trace),
    ("sessions::a_callback_takes_the_traces", sessions::a_callback_takes_the_traces),
    ("sessions::an_interrupted_cycle_is_a_trace_if_something_happened", sessions::an_interrupted_cycle_is_a_trace_if_something_happened),
    ("sessions::launches_of_a_run_are_in_the_span_of_the_program", sessions::launches_of_a_run_are_in_the_span_of_the_program),
    ("sessions::a_copy_of_a_run_has_the_line_of_the_recorded_launch", sessions::a_copy_of_a_run_has_the_line_of_the_recorded_launch),
    ("sessions::recording_a_program_makes_no_spans", sessions::recording_a_program_makes_no_spans),
];

fn main() {
    on_devices::run(&["cpu", "sim:sm_90a", "cuda:0"], ON_EACH, &[]);
}

/// A tensor of `n` numbers that differ.
fn numbers(device: &Device, n: usize) -> Tensor {
    let numbers: Vec<f32> = (0..n).map(|i| i as f32 * 0.75 - 3.0).collect();
    device.tensor(&numbers).unwrap().into()
}
