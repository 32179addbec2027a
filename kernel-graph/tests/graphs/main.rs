//! Recorded graphs on the CPU, on simulated GPUs, and on a GPU where there is one: their runs beside the same function without recording, their text,
//! and their errors.

mod allocations;
#[path = "../../../kernel-runtime/tests/allocations/mod.rs"]
mod allocator;
mod any;
mod cse;
mod dot;
mod errors;
mod flops;
mod gradients;
mod intercept;
mod kernels;
#[cfg(unix)]
mod machine_code;
mod modules;
#[path = "../on_devices/mod.rs"]
mod on_devices;
mod opaque;
mod opaque_text;
mod packages;
mod parse;
mod replays;
mod round_trip;
mod runs;
mod sessions;
mod sizes;
mod streams;
mod text;
mod text_mutations;
mod tuned;
mod typed;

use galatea::ops::Tensor;
use galatea::prelude::*;
use on_devices::{OnDevice, Once};

/// The tests of each device.
const ON_EACH: &[OnDevice] = &[
    ("runs::a_graph_runs_for_all_values_of_its_dims", runs::a_graph_runs_for_all_values_of_its_dims),
    ("runs::views_bring_the_extents_of_the_run", runs::views_bring_the_extents_of_the_run),
    ("runs::a_tensor_is_a_value", runs::a_tensor_is_a_value),
    (
        "runs::a_launch_writes_in_place_where_no_later_use_needs_the_elements",
        runs::a_launch_writes_in_place_where_no_later_use_needs_the_elements,
    ),
    ("runs::an_input_that_the_function_writes_keeps_its_elements", runs::an_input_that_the_function_writes_keeps_its_elements),
    ("runs::a_launch_may_have_several_results", runs::a_launch_may_have_several_results),
    (
        "runs::a_tensor_that_is_read_and_written_by_one_launch_is_two_values",
        runs::a_tensor_that_is_read_and_written_by_one_launch_is_two_values,
    ),
    ("runs::threads_share_a_session", runs::threads_share_a_session),
    ("runs::constants_keep_the_elements_of_the_recording", runs::constants_keep_the_elements_of_the_recording),
    ("runs::zeros_are_zeros_in_each_run", runs::zeros_are_zeros_in_each_run),
    ("runs::weights_are_constants_that_the_graph_shares", runs::weights_are_constants_that_the_graph_shares),
    ("runs::later_runs_allocate_only_outputs", runs::later_runs_allocate_only_outputs),
    ("runs::launches_of_a_run_are_one_launch_of_a_graph", runs::launches_of_a_run_are_one_launch_of_a_graph),
    ("runs::a_profile_sees_each_launch_of_a_run", runs::a_profile_sees_each_launch_of_a_run),
    ("runs::parts_are_written_in_place", runs::parts_are_written_in_place),
    ("runs::one_value_may_be_written_as_two", runs::one_value_may_be_written_as_two),
    ("runs::outputs_belong_to_the_caller", runs::outputs_belong_to_the_caller),
    ("allocations::warm_runs_allocate_only_what_they_return", allocations::warm_runs_allocate_only_what_they_return),
    ("allocations::an_op_allocates_nothing", allocations::an_op_allocates_nothing),
    ("replays::equal_runs_launch_one_graph", replays::equal_runs_launch_one_graph),
    ("replays::addresses_that_recur_have_graphs_of_their_own", replays::addresses_that_recur_have_graphs_of_their_own),
    ("replays::addresses_that_never_recur_change_one_graph", replays::addresses_that_never_recur_change_one_graph),
    ("replays::all_dims_keep_a_graph", replays::all_dims_keep_a_graph),
    ("replays::runs_with_outputs_of_their_own_are_right", replays::runs_with_outputs_of_their_own_are_right),
    ("replays::an_error_in_a_capture_changes_no_graph", replays::an_error_in_a_capture_changes_no_graph),
    ("replays::a_capture_that_fails_counts_no_copy", replays::a_capture_that_fails_counts_no_copy),
    ("sessions::graphs_are_those_of_the_dims_and_tensors_of_a_run", sessions::graphs_are_those_of_the_dims_and_tensors_of_a_run),
    ("sessions::outputs_are_used_again", sessions::outputs_are_used_again),
    ("sessions::outputs_that_share_memory_are_used_again", sessions::outputs_that_share_memory_are_used_again),
    ("sessions::a_run_in_a_capture_changes_nothing", sessions::a_run_in_a_capture_changes_nothing),
    ("sessions::names_of_parameters_are_not_those_of_constants", sessions::names_of_parameters_are_not_those_of_constants),
    ("sessions::parameters_are_replaced_by_name", sessions::parameters_are_replaced_by_name),
    (
        "sessions::memory_is_shared_by_tensors_that_are_not_needed_together",
        sessions::memory_is_shared_by_tensors_that_are_not_needed_together,
    ),
    ("sessions::shared_memory_has_room_for_the_largest", sessions::shared_memory_has_room_for_the_largest),
    ("streams::runs_on_streams_wait_for_each_other", streams::runs_on_streams_wait_for_each_other),
    ("streams::streams_share_no_memory", streams::streams_share_no_memory),
    ("streams::launches_run_on_the_stream", streams::launches_run_on_the_stream),
    ("typed::calls_return_what_the_function_returns", typed::calls_return_what_the_function_returns),
    ("typed::types_of_a_package_are_compared_with_its_program", typed::types_of_a_package_are_compared_with_its_program),
    ("gradients::gradients_flow_through_every_use", gradients::gradients_flow_through_every_use),
    ("gradients::gradients_are_finite_differences", gradients::gradients_are_finite_differences),
    ("gradients::a_step_is_recorded_with_its_gradients", gradients::a_step_is_recorded_with_its_gradients),
    ("gradients::an_optimizer_writes_parameters_in_place", gradients::an_optimizer_writes_parameters_in_place),
    ("gradients::an_op_may_have_a_function_for_the_cpu", gradients::an_op_may_have_a_function_for_the_cpu),
    (
        "gradients::a_function_that_reads_elements_keeps_its_graph_from_the_cpu",
        gradients::a_function_that_reads_elements_keeps_its_graph_from_the_cpu,
    ),
    ("gradients::a_part_of_a_parameter_has_a_gradient", gradients::a_part_of_a_parameter_has_a_gradient),
    ("gradients::a_session_refuses_inputs_with_gradients", gradients::a_session_refuses_inputs_with_gradients),
    ("gradients::a_function_for_the_cpu_is_recorded", gradients::a_function_for_the_cpu_is_recorded),
    ("packages::a_package_computes_what_its_graph_computes", packages::a_package_computes_what_its_graph_computes),
    ("packages::a_package_is_loaded_on_every_device", packages::a_package_is_loaded_on_every_device),
    #[cfg(unix)]
    ("machine_code::machine_code_runs_where_it_is_for_the_gpu", machine_code::machine_code_runs_where_it_is_for_the_gpu),
    ("any::the_kernel_of_the_dtype_runs", any::the_kernel_of_the_dtype_runs),
    ("any::each_type_parameter_has_a_dtype_of_its_own", any::each_type_parameter_has_a_dtype_of_its_own),
    ("any::views_have_the_shapes_of_their_tensors", any::views_have_the_shapes_of_their_tensors),
    ("any::a_write_copies_shared_elements", any::a_write_copies_shared_elements),
    ("any::scalars_have_the_dtype_of_the_tensors", any::scalars_have_the_dtype_of_the_tensors),
    ("any::an_autotuned_kernel_runs_for_the_dtype", any::an_autotuned_kernel_runs_for_the_dtype),
    ("modules::a_model_changes_its_dtype", modules::a_model_changes_its_dtype),
    ("parse::a_parsed_graph_computes_what_its_graph_computes", parse::a_parsed_graph_computes_what_its_graph_computes),
    ("parse::programs_of_ops_run", parse::programs_of_ops_run),
    ("tuned::all_forms_take_the_configuration_that_one_has_tuned", tuned::all_forms_take_the_configuration_that_one_has_tuned),
    (
        "tuned::a_package_runs_the_configurations_that_were_found_elsewhere",
        tuned::a_package_runs_the_configurations_that_were_found_elsewhere,
    ),
    ("tuned::a_session_tunes_in_front_of_its_capture", tuned::a_session_tunes_in_front_of_its_capture),
    ("tuned::a_capture_that_cannot_tune_changes_no_graph", tuned::a_capture_that_cannot_tune_changes_no_graph),
    ("tuned::fields_of_autotune_are_those_of_the_function", tuned::fields_of_autotune_are_those_of_the_function),
    ("opaque::a_session_calls_the_op", opaque::a_session_calls_the_op),
    ("opaque::arguments_have_any_type", opaque::arguments_have_any_type),
    ("opaque::tensors_are_written_in_place", opaque::tensors_are_written_in_place),
    ("opaque::an_op_may_keep_its_tensors", opaque::an_op_may_keep_its_tensors),
    ("opaque::gradients_flow_through_opaque_ops", opaque::gradients_flow_through_opaque_ops),
    ("intercept::calls_are_counted", intercept::calls_are_counted),
    ("intercept::a_call_is_replaced_by_shards", intercept::a_call_is_replaced_by_shards),
    ("intercept::arguments_and_written_tensors_may_be_others", intercept::arguments_and_written_tensors_may_be_others),
    ("intercept::gradients_and_sessions_are_intercepted", intercept::gradients_and_sessions_are_intercepted),
];

/// Tests that need no device but the CPU.
const ONCE: &[Once] = &[
    ("gradients::mistakes_with_gradients_are_explained", gradients::mistakes_with_gradients_are_explained),
    ("gradients::op_check_finds_mistakes", gradients::op_check_finds_mistakes),
    ("gradients::a_function_for_the_cpu_returns_the_same_types", gradients::a_function_for_the_cpu_returns_the_same_types),
    ("gradients::long_chains_need_no_stack", gradients::long_chains_need_no_stack),
    ("gradients::ops_are_called_by_name", gradients::ops_are_called_by_name),
    ("gradients::an_op_may_count_its_operations", gradients::an_op_may_count_its_operations),
    ("text::the_text_shows_grids_arguments_and_types_as_expressions", text::the_text_shows_grids_arguments_and_types_as_expressions),
    ("text::calls_of_ops_are_one_line_or_their_nodes", text::calls_of_ops_are_one_line_or_their_nodes),
    ("text::tables_have_the_columns_of_torch", text::tables_have_the_columns_of_torch),
    ("text::parameters_of_ops_have_any_name", text::parameters_of_ops_have_any_name),
    ("text::calls_that_fail_end", text::calls_that_fail_end),
    ("text::scalars_of_generic_types_are_written_as_numbers", text::scalars_of_generic_types_are_written_as_numbers),
    ("text::definitions_have_schemas", text::definitions_have_schemas),
    ("text::constants_come_first_and_dead_code_is_left_out", text::constants_come_first_and_dead_code_is_left_out),
    ("errors::the_elements_of_a_recorded_tensor_cannot_be_read", errors::the_elements_of_a_recorded_tensor_cannot_be_read),
    ("errors::an_undecided_comparison_names_its_line", errors::an_undecided_comparison_names_its_line),
    ("errors::a_launch_that_cannot_be_recorded_says_why", errors::a_launch_that_cannot_be_recorded_says_why),
    ("errors::arguments_have_the_dtype_of_their_parameter", errors::arguments_have_the_dtype_of_their_parameter),
    ("errors::expressions_have_no_value_outside_of_a_recording", errors::expressions_have_no_value_outside_of_a_recording),
    ("errors::a_recorded_tensor_ends_with_its_recording", errors::a_recorded_tensor_ends_with_its_recording),
    ("errors::inputs_determine_the_dims", errors::inputs_determine_the_dims),
    ("errors::a_run_checks_its_inputs", errors::a_run_checks_its_inputs),
    (
        "errors::a_scalar_that_exceeds_its_parameter_is_an_error_of_the_run",
        errors::a_scalar_that_exceeds_its_parameter_is_an_error_of_the_run,
    ),
    ("errors::dims_of_operations_are_those_of_the_inputs", errors::dims_of_operations_are_those_of_the_inputs),
    ("errors::a_denied_copy_names_the_launch", errors::a_denied_copy_names_the_launch),
    ("streams::a_stream_of_another_device_is_an_error", streams::a_stream_of_another_device_is_an_error),
    ("errors::a_run_takes_tensors_with_elements", errors::a_run_takes_tensors_with_elements),
    ("text::arguments_of_other_recordings_are_named", text::arguments_of_other_recordings_are_named),
    ("errors::sessions_and_graphs_are_shared_between_threads", errors::sessions_and_graphs_are_shared_between_threads),
    ("modules::parameters_are_named_by_their_paths", modules::parameters_are_named_by_their_paths),
    ("modules::a_graph_and_its_package_name_parameters", modules::a_graph_and_its_package_name_parameters),
    ("modules::a_model_moves_between_devices", modules::a_model_moves_between_devices),
    ("modules::parameters_are_saved_and_loaded", modules::parameters_are_saved_and_loaded),
    ("modules::parameters_that_do_not_fit_are_named", modules::parameters_that_do_not_fit_are_named),
    ("packages::equal_programs_give_equal_bytes", packages::equal_programs_give_equal_bytes),
    ("packages::guards_of_a_package_name_the_line_of_the_declaration", packages::guards_of_a_package_name_the_line_of_the_declaration),
    ("packages::a_file_replaces_another_in_one_step", packages::a_file_replaces_another_in_one_step),
    ("packages::damaged_files_are_errors", packages::damaged_files_are_errors),
    ("packages::contents_that_do_not_belong_together_are_errors", packages::contents_that_do_not_belong_together_are_errors),
    ("packages::the_code_of_the_package_is_what_runs", packages::the_code_of_the_package_is_what_runs),
    ("packages::a_check_goes_on_behind_the_first_error", packages::a_check_goes_on_behind_the_first_error),
    ("packages::a_kernel_without_a_built_variant_is_compiled", packages::a_kernel_without_a_built_variant_is_compiled),
    #[cfg(unix)]
    ("machine_code::a_package_has_machine_code_for_the_named_gpus", machine_code::a_package_has_machine_code_for_the_named_gpus),
    #[cfg(unix)]
    (
        "machine_code::an_assembler_that_is_missing_or_refuses_is_an_error",
        machine_code::an_assembler_that_is_missing_or_refuses_is_an_error,
    ),
    (
        "tuned::the_text_has_the_first_grid_and_the_number_of_configurations",
        tuned::the_text_has_the_first_grid_and_the_number_of_configurations,
    ),
    ("tuned::equal_launches_with_configurations_are_one", tuned::equal_launches_with_configurations_are_one),
    ("tuned::fields_that_cannot_be_recorded_or_packed_are_named", tuned::fields_that_cannot_be_recorded_or_packed_are_named),
    ("tuned::damaged_configurations_are_errors", tuned::damaged_configurations_are_errors),
    ("any::types_are_inferred_from_typed_tensors", any::types_are_inferred_from_typed_tensors),
    ("any::tensors_of_one_type_have_one_dtype", any::tensors_of_one_type_have_one_dtype),
    ("any::a_dtype_is_one_of_the_bound", any::a_dtype_is_one_of_the_bound),
    ("any::a_scalar_is_a_number_of_the_dtype", any::a_scalar_is_a_number_of_the_dtype),
    ("flops::a_symbolic_table_has_expressions", flops::a_symbolic_table_has_expressions),
    ("flops::a_table_for_sizes_has_the_layout_of_torch", flops::a_table_for_sizes_has_the_layout_of_torch),
    ("flops::counts_at_sizes_are_those_of_the_kernels", flops::counts_at_sizes_are_those_of_the_kernels),
    ("flops::counts_that_depend_on_data_are_lower_bounds", flops::counts_that_depend_on_data_are_lower_bounds),
    ("flops::only_the_outermost_calls_have_rows", flops::only_the_outermost_calls_have_rows),
    ("flops::sizes_are_those_of_the_graph", flops::sizes_are_those_of_the_graph),
    ("flops::a_graph_without_launches_has_one_row", flops::a_graph_without_launches_has_one_row),
    ("flops::arguments_decide_loops_and_branches", flops::arguments_decide_loops_and_branches),
    ("cse::equal_views_are_one", cse::equal_views_are_one),
    ("cse::views_that_differ_stay", cse::views_that_differ_stay),
    ("cse::zeros_that_nothing_writes_are_one", cse::zeros_that_nothing_writes_are_one),
    ("cse::equal_launches_are_one", cse::equal_launches_are_one),
    ("cse::launches_that_differ_stay", cse::launches_that_differ_stay),
    (
        "cse::arbitrary_elements_that_another_operation_sees_are_not_chosen",
        cse::arbitrary_elements_that_another_operation_sees_are_not_chosen,
    ),
    ("cse::a_call_without_nodes_is_left_out", cse::a_call_without_nodes_is_left_out),
    ("cse::graphs_of_random_programs_compute_what_the_programs_compute", cse::graphs_of_random_programs_compute_what_the_programs_compute),
    ("parse::mistakes_in_texts_have_lines_and_columns", parse::mistakes_in_texts_have_lines_and_columns),
    ("text_mutations::changed_texts_are_errors_or_graphs", text_mutations::changed_texts_are_errors_or_graphs),
    ("parse::other_spellings_are_the_same_graph", parse::other_spellings_are_the_same_graph),
    ("parse::names_of_all_kinds_are_told_apart", parse::names_of_all_kinds_are_told_apart),
    ("parse::kernels_of_one_name_have_hashes", parse::kernels_of_one_name_have_hashes),
    ("parse::scalars_keep_their_bits_and_types", parse::scalars_keep_their_bits_and_types),
    ("parse::calls_nest_up_to_a_limit", parse::calls_nest_up_to_a_limit),
    ("dot::a_drawing_has_frames_for_calls_and_types_at_edges", dot::a_drawing_has_frames_for_calls_and_types_at_edges),
    ("sizes::the_time_is_linear_in_the_operations", sizes::the_time_is_linear_in_the_operations),
    ("cse::values_of_calls_that_others_use_are_results", cse::values_of_calls_that_others_use_are_results),
    ("flops::quotients_of_negative_numbers_are_not_those_of_dims", flops::quotients_of_negative_numbers_are_not_those_of_dims),
    ("opaque::an_opaque_op_is_one_line_at_both_levels", opaque::an_opaque_op_is_one_line_at_both_levels),
    ("opaque::calls_are_not_merged_and_stay_if_they_write", opaque::calls_are_not_merged_and_stay_if_they_write),
    ("opaque::results_of_other_types_are_named", opaque::results_of_other_types_are_named),
    ("opaque::an_opaque_op_without_backward_refuses_gradients", opaque::an_opaque_op_without_backward_refuses_gradients),
    ("opaque::calls_that_cannot_be_recorded_say_why", opaque::calls_that_cannot_be_recorded_say_why),
    ("opaque::missing_ops_are_listed", opaque::missing_ops_are_listed),
    ("opaque::damaged_calls_are_errors", opaque::damaged_calls_are_errors),
    ("opaque::untrusted_packages_call_no_opaque_ops", opaque::untrusted_packages_call_no_opaque_ops),
    ("opaque::operations_are_those_of_the_formula_or_unknown", opaque::operations_are_those_of_the_formula_or_unknown),
    ("opaque::fakes_keep_nothing_and_may_fail", opaque::fakes_keep_nothing_and_may_fail),
    ("opaque_text::a_graph_has_arguments_of_each_type", opaque_text::a_graph_has_arguments_of_each_type),
    ("opaque_text::arguments_keep_their_values", opaque_text::arguments_keep_their_values),
    ("opaque_text::mistakes_in_calls_have_lines_and_columns", opaque_text::mistakes_in_calls_have_lines_and_columns),
    ("intercept::scopes_are_nested", intercept::scopes_are_nested),
    ("intercept::arguments_and_results_are_those_of_the_function", intercept::arguments_and_results_are_those_of_the_function),
    ("intercept::mistakes_of_interceptors_are_errors", intercept::mistakes_of_interceptors_are_errors),
];

fn main() {
    if let Ok(task) = std::env::var(tuned::CHILD) {
        return tuned::child(&task);
    }
    on_devices::run(&["cpu", "sim:sm_80", "sim:sm_90a", "cuda:0"], ON_EACH, ONCE);
}

/// Compares a text with that of a file in `goldens`.
fn golden(name: &str, text: &str) {
    // On another machine, the tests run in their folder.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let file = std::path::Path::new(&folder).join("tests/graphs/goldens").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default(), "{name}: BLESS=1 writes the file");
}

/// A tensor of `n` numbers that differ.
fn numbers(device: &Device, n: usize) -> Tensor {
    let numbers: Vec<f32> = (0..n).map(|i| i as f32 * 0.75 - 3.0).collect();
    device.tensor(&numbers).unwrap().into()
}
