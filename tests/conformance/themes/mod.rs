//! THE TABLE OF THEMES: what of Triton's suites is here, and what is not and why.
//!
//! A theme is named for the test that it stands for, written anew from the meaning of the builtins; a few stand for several small tests.

mod arithmetic;
mod atomics;
mod casts;
mod control;
mod dot_loops;
mod dot_rounds;
mod dots;
mod math;
mod memory;
mod random;
mod reductions;
mod scans;
mod shapes;
mod standard;

use galatea::Dtype;

use crate::case::Case;

/// Cases of one idea.
pub(crate) struct Theme {
    pub(crate) suite: Suite,
    pub(crate) name: &'static str,
    /// How many cases Triton's suite has of it.
    pub(crate) upstream: usize,
    pub(crate) cases: Vec<Case>,
}

/// Tests of Triton's that have no theme.
pub(crate) struct Outside {
    pub(crate) suite: Suite,
    pub(crate) tests: &'static str,
    pub(crate) upstream: usize,
    pub(crate) why: &'static str,
}

/// A file of Triton's tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suite {
    Core,
    Standard,
    Random,
    Conversions,
}

impl Suite {
    pub(crate) const ALL: [Suite; 4] = [Suite::Core, Suite::Standard, Suite::Random, Suite::Conversions];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Suite::Core => "test_core",
            Suite::Standard => "test_standard",
            Suite::Random => "test_random",
            Suite::Conversions => "test_conversions",
        }
    }

    /// How many cases it has, of a release from 2026.
    pub(crate) fn upstream(self) -> usize {
        match self {
            Suite::Core => 8246,
            Suite::Standard => 233,
            Suite::Random => 107,
            Suite::Conversions => 69,
        }
    }
}

/// Every theme.
pub(crate) fn all() -> Vec<Theme> {
    macro_rules! themes {
        ($($suite:ident: $($name:literal $upstream:literal $cases:expr,)*;)*) => {
            vec![$($(Theme { suite: Suite::$suite, name: $name, upstream: $upstream, cases: $cases },)*)*]
        };
    }
    themes! {
        Core:
            "bin_op" 720 arithmetic::bin_op(),
            "bitwise_op" 432 arithmetic::bitwise_op(),
            "compare_op" 744 arithmetic::compare_op(),
            "shift_op" 64 arithmetic::shift_op(),
            "floordiv" 32 arithmetic::floordiv(),
            "bin_op_constexpr" 48 arithmetic::bin_op_constexpr(),
            "unary_op" 16 arithmetic::unary_op(),
            "math_op" 40 math::math_op(),
            "math_erf_op" 4 math::math_erf_op(),
            "math_fma_op" 2 math::math_fma_op(),
            "math_divide_op" 2 math::math_divide_op(),
            "precise_math" 2 math::precise_math(),
            "fdiv_ieee_rounding" 1 math::fdiv_ieee_rounding(),
            "abs" 12 math::abs(),
            "abs_fp8" 5 casts::abs_fp8(),
            "math_member_fn" 14 math::math_member_fn(),
            "where" 13 math::select(),
            "where_broadcast" 1 math::select_broadcast(),
            "clamp" 2 math::clamp(),
            "clamp_symmetric" 3 math::clamp_symmetric(),
            "propagate_nan" 12 math::propagate_nan(),
            "max_min_with_nan" 1 math::max_min_with_nan(),
            "umulhi" 1 math::umulhi(),
            "int1_bin_op_wraparound" 2 math::bool_as_int(),
            "neg_preserves_signed_zero" 1 math::neg_preserves_signed_zero(),
            "bfloat16_mul_rounds_to_nearest_even" 1 math::bfloat16_mul_rounds_to_nearest_even(),
            "unsigned_name_mangling" 1 math::unsigned_name_mangling(),
            "libdevice_rint" 2 math::rint(),
            "cast" 160 casts::cast(),
            "bitcast" 0 casts::bitcast(),
            "convert_float16_to_float32" 2 casts::convert_float16_to_float32(),
            "dtype_tensor" 14 shapes::dtype_tensor(),
            "broadcast" 12 shapes::broadcast(),
            "expand_dims" 2 shapes::expand_dims(),
            "slice" 2 shapes::slice(),
            "index1d" 12 shapes::index1d(),
            "reshape" 5 shapes::reshape(),
            "trans_2d" 8 shapes::trans_2d(),
            "trans_4d" 96 shapes::trans_4d(),
            "transpose" 12 shapes::transpose(),
            "permute" 6 shapes::permute(),
            "odd_extents" 0 shapes::odd_extents(),
            "full" 36 shapes::full(),
            "arange" 4 shapes::arange(),
            "join_split_interleave" 8 shapes::join_and_split(),
            "cat" 28 shapes::cat(),
            "cat_nd" 10 shapes::cat_nd(),
            "squeeze_unsqueeze" 1 shapes::squeeze_unsqueeze(),
            "constexpr_shape" 3 shapes::constexpr_shape(),
            "masked_load" 200 memory::masked_load(),
            "masked_load_scalar" 4 memory::masked_load_scalar(),
            "load_scalar_with_mask" 1 memory::load_scalar_with_mask(),
            "strided_load" 12 memory::strided_load(),
            "strided_store" 12 memory::strided_store(),
            "indirect_load" 12 memory::indirect_load(),
            "indirect_store" 12 memory::indirect_store(),
            "store_constant" 20 memory::store_constant(),
            "addptr" 24 memory::addptr(),
            "load_store_same_ptr" 1 memory::load_store_same_ptr(),
            "load_cache_modifier" 5 memory::load_cache_modifier(),
            "store_cache_modifier" 5 memory::store_cache_modifier(),
            "store_eviction_policy" 3 memory::store_eviction_policy(),
            "vectorization" 4 memory::vectorization(),
            "assume" 3 memory::assumptions(),
            "const" 16 memory::constant_tensors(),
            "zero_strided_tensors" 1 memory::zero_strided_tensors(),
            "atomic_rmw" 400 atomics::atomic_rmw(),
            "atomic_bits" 0 atomics::atomic_bits(),
            "atomic_rmw_predicate" 1 atomics::atomic_rmw_predicate(),
            "tensor_atomic_rmw" 84 atomics::tensor_atomic_rmw(),
            "tensor_atomic_rmw_block" 1 atomics::tensor_atomic_rmw_block(),
            "tensor_atomic_add_access_patterns" 240 atomics::tensor_atomic_add_access_patterns(),
            "tensor_atomic_add_non_exclusive_offset" 18 atomics::tensor_atomic_add_non_exclusive_offset(),
            "tensor_atomic_add_shift_1" 18 atomics::tensor_atomic_add_shift_1(),
            "tensor_atomic_use_result" 12 atomics::tensor_atomic_use_result(),
            "atomic_cas" 10 atomics::atomic_cas(),
            "tensor_atomic_cas" 120 atomics::tensor_atomic_cas(),
            "atomic_min_max_neg_zero" 1 atomics::atomic_min_max_neg_zero(),
            "atomic_unsupported_type" 5 atomics::atomic_unsupported_type(),
            "atomic_poll" 22 atomics::atomic_poll(),
            "multicta" 6 atomics::multicta(),
            "reduce1d" 336 reductions::reduce1d(),
            "reduce" 178 reductions::reduce(),
            "reduce_odd" 0 reductions::reduce_odd(),
            "max_returns_zero" 1 reductions::max_returns_zero(),
            "sum_dtype" 1 reductions::sum_dtype(),
            "generic_reduction" 1 reductions::generic_reduction(),
            "chained_reductions" 2 reductions::chained_reductions(),
            "argmax_argmin_with_nan" 2 reductions::argmax_argmin_with_nan(),
            "optimize_thread_locality" 55 reductions::optimize_thread_locality(),
            "scan2d" 1009 scans::scan2d(),
            "scan_odd" 0 scans::scan_odd(),
            "scan_1d" 7 scans::scan_1d(),
            "cumsum_dtype" 1 scans::cumsum_dtype(),
            "histogram" 16 shapes::histogram(),
            "gather" 5 shapes::gather(),
            "for_iv" 8 control::for_iv(),
            "if" 7 control::if_(),
            "if_else" 3 control::branches(),
            "nested_if_else_return" 8 control::nested_if_else_return(),
            "call" 18 control::calls(),
            "while" 5 control::loops(),
            "tl_range_num_stages" 2 control::stages_and_unrolling(),
            "constexpr" 19 control::constants(),
            "value_specialization" 15 control::value_specialization(),
            "num_programs" 1 control::num_programs(),
            "num_warps_pow2" 1 control::num_warps(),
            "maxnreg" 1 control::maxnreg(),
            "dot" 588 dots::dot(),
            "dot3d" 255 dots::dot3d(),
            "dot_loop" 0 dot_rounds::dot_loop(),
            "dot_loop_roles" 0 dot_rounds::dot_loop_roles(),
            "dot_loop_normal" 0 dot_rounds::dot_loop_normal(),
        ;
        Standard:
            "sort" 120 standard::sort(),
            "sort_odd" 0 standard::sort_odd(),
            "flip" 80 shapes::flip(),
            "maximum_minimum" 24 standard::maximum_minimum(),
            "ravel" 9 shapes::ravel(),
            "swizzle2d" 0 standard::swizzle2d(),
            "flip_inf" 0 shapes::flip_inf(),
        ;
        Random:
            "randint" 72 random::randint(),
            "rand" 16 random::rand(),
            "randn" 16 random::randn(),
            "seed_is_int" 1 random::seed_is_int(),
            "rand_limits" 2 random::rand_limits(),
            "randint4x" 0 random::four_at_once(),
        ;
        Conversions:
            "typeconvert_upcast" 8 casts::typeconvert_upcast(),
            "typeconvert_downcast" 8 casts::typeconvert_downcast(),
            "typeconvert_downcast_clamping" 30 casts::typeconvert_downcast_clamping(),
        ;
    }
}

const NO_DOT: &str = "the tests of `dot` in tests/run cover the operands and options of these cases";

/// The tests of Triton's that have no theme, with the reasons.
pub(crate) const OUTSIDE: &[Outside] = &[
    outside(Suite::Core, "scaled_dot", 1728, "products of block-scaled formats, for Blackwell; emulated elsewhere"),
    outside(Suite::Core, "dot_max_num_imprecise_acc, dot_multidim, dot_without_load, dot_mulbroadcasted", 47, NO_DOT),
    outside(Suite::Core, "masked_load_shared_memory, join_with_mma", 4, NO_DOT),
    outside(Suite::Core, "override_arch", 12, "a kernel is compiled for what runs it; `compile` of kernel-lang takes any target"),
    outside(Suite::Core, "load_scope_sem_coop_grid", 2, "there are no cooperative grids"),
    outside(Suite::Core, "inline_asm", 5, "`inline_ptx!` computes as its closure says, to which its own tests hold it"),
    outside(Suite::Core, "enable_fp_fusion", 4, "`#[kernel(contract)]` is tested with its pass"),
    outside(Suite::Core, "enable_reflect_ftz", 2, "subnormal numbers are always kept"),
    outside(
        Suite::Core,
        "side_effectful_reduction, side_effectful_scan",
        4,
        "what combines elements has no effects: stores in it are refused",
    ),
    outside(Suite::Core, "map_elementwise", 3, "control flow of single elements is not in the language"),
    outside(Suite::Core, "pointer_arguments", 3, "launches take tensors of one device, which their types and borrows check"),
    outside(Suite::Core, "aliasing", 1, "borrows do not alias"),
    outside(Suite::Core, "tma_load_block_shape_err, tma_store_block_shape_err", 2, "there are no tensor descriptors"),
    outside(Suite::Core, "tl_range_fuse, disable_licm", 3, "loops have no such options"),
    outside(Suite::Core, "num_threads, globaltimer, smid", 3, "there are no builtins for a GPU's threads, clocks and multiprocessors"),
    outside(Suite::Core, "dtype_codegen, no_rematerialization_op, ashr of the interpreter", 3, "about the insides of Triton's compiler"),
    outside(Suite::Core, "not told apart in the count", 3, "the suite is counted by test, and three cases have no name there"),
    outside(Suite::Conversions, "typeconvert of e4b15, e4b8 and e5b16", 12, "formats that NVIDIA's GPUs do not have"),
    outside(Suite::Conversions, "typeconvert_downcast to zero", 3, "casts round to nearest even"),
    outside(Suite::Conversions, "not told apart in the count", 8, "conversions of a later release than the names are of"),
];

const fn outside(suite: Suite, tests: &'static str, upstream: usize, why: &'static str) -> Outside {
    Outside { suite, tests, upstream, why }
}

/// The integers with a sign.
const SIGNED: [Dtype; 4] = [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64];
/// The integers without one.
const UNSIGNED: [Dtype; 4] = [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64];
const INTS: [Dtype; 8] = Dtype::INTS;
const FLOATS: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];
/// The types of numbers.
const NUMBERS: [Dtype; 12] = {
    let ([a, b, c, d], [e, f, g, h], [i, j, k, l]) = (SIGNED, UNSIGNED, FLOATS);
    [a, b, c, d, e, f, g, h, i, j, k, l]
};

/// Each of the one with each of the other.
fn pairs<'a>(a: &'a [Dtype], b: &'a [Dtype]) -> impl Iterator<Item = (Dtype, Dtype)> + use<'a> {
    a.iter().flat_map(move |a| b.iter().map(move |b| (*a, *b)))
}
