//! The builtin table: every builtin that a kernel can call, its usage, and the names that are not available.
//!
//! [`kernel_lang::dsl`] documents each builtin under the same name; a test compares the two lists.

use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::ir::{AtomicOp, BinaryOp, UnaryOp};

/// The operation of a builtin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Builtin {
    ProgramId,
    NumPrograms,
    Arange,
    Cdiv,
    Zeros,
    Ones,
    Full,
    ZerosLike,
    FullLike,
    Load,
    Store,
    View,
    Atomic(AtomicOp),
    Barrier,
    /// Waits for the previous launch.
    GdcWait,
    /// Allows the next launch to begin.
    GdcLaunchDependents,
    /// The target of the compilation, a constant.
    Target,
    /// States a condition that the compiler may rely on.
    Assume,
    Select,
    Fma,
    Clamp,
    Bitcast,
    To,
    Range,
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// The upper half of a product of unsigned integers.
    Umulhi,
    ExpandDims,
    /// Makes a column or a row of a tile with one axis; the number is the index of the new axis.
    NewAxis(u32),
    BroadcastTo,
    Reshape,
    Permute,
    Trans,
    Flip,
    Squeeze,
    Join,
    Split,
    Interleave,
    Cat,
    /// The extent along an axis, a constant.
    Extent,
    /// The number of axes of a value.
    Rank,
    /// The number of elements of a value.
    Numel,
    /// Reduces numbers along an axis with an operator: `sum`.
    Fold(BinaryOp),
    /// Reduces booleans along an axis: `any`.
    Predicate(BinaryOp),
    /// The index of the largest or smallest element.
    Arg(BinaryOp),
    /// A cumulative operation: `cumsum`.
    Cumulative(BinaryOp),
    Reduce,
    Scan,
    Gather,
    Dot,
    Histogram,
    Sort,
    Topk,
    /// A function of a library file.
    Library(&'static str),
}

impl Builtin {
    /// Does it only compute from its operands?
    pub(crate) fn is_pure(self) -> bool {
        let has_effects =
            [Builtin::Load, Builtin::Store, Builtin::Barrier, Builtin::Assume, Builtin::GdcWait, Builtin::GdcLaunchDependents]
                .contains(&self);
        !has_effects && !matches!(self, Builtin::Atomic(_))
    }

    /// Is it available only as a method? As a function, its name is free for the user.
    pub(crate) fn is_only_method(self) -> bool {
        matches!(self, Builtin::To | Builtin::NewAxis(_))
    }
}

/// A row of the table: name, operation, usage, and number of positional arguments.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) builtin: Builtin,
    pub(crate) usage: &'static str,
    pub(crate) args: usize,
    /// Is it available as a method, `x.exp()`?
    pub(crate) method: bool,
}

const fn row(name: &'static str, builtin: Builtin, usage: &'static str, args: usize, method: bool) -> Row {
    Row { name, builtin, usage, args, method }
}

/// The builtins of the language.
pub(crate) const BUILTINS: &[Row] = &[
    row("program_id", Builtin::ProgramId, "program_id(axis)", 1, false),
    row("num_programs", Builtin::NumPrograms, "num_programs(axis)", 1, false),
    row("arange", Builtin::Arange, "arange(start, end)", 2, false),
    row("cdiv", Builtin::Cdiv, "cdiv(a, b)", 2, true),
    row("zeros", Builtin::Zeros, "zeros::<f32>([N])", 1, false),
    row("full", Builtin::Full, "full([N], value)", 2, false),
    row("ones", Builtin::Ones, "ones::<f32>([N])", 1, false),
    row("zeros_like", Builtin::ZerosLike, "zeros_like(x)", 1, false),
    row("full_like", Builtin::FullLike, "full_like(x, value)", 2, false),
    row("load", Builtin::Load, "load(pointer, mask = .., other = .., cache = .., evict = .., volatile = ..)", 1, false),
    row("store", Builtin::Store, "store(pointer, value, mask = .., cache = .., evict = ..)", 2, false),
    row("view", Builtin::View, "view(pointer, [m, n], [stride, 1])", 3, false),
    row("atomic_add", Builtin::Atomic(AtomicOp::Add), "atomic_add(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_max", Builtin::Atomic(AtomicOp::Max), "atomic_max(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_min", Builtin::Atomic(AtomicOp::Min), "atomic_min(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_and", Builtin::Atomic(AtomicOp::And), "atomic_and(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_or", Builtin::Atomic(AtomicOp::Or), "atomic_or(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_xor", Builtin::Atomic(AtomicOp::Xor), "atomic_xor(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_xchg", Builtin::Atomic(AtomicOp::Exchange), "atomic_xchg(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row(
        "atomic_cas",
        Builtin::Atomic(AtomicOp::CompareAndSwap),
        "atomic_cas(pointer, compare, value, mask = .., sem = .., scope = ..)",
        3,
        false,
    ),
    row("atomic_load", Builtin::Atomic(AtomicOp::Load), "atomic_load(pointer, mask = .., sem = .., scope = ..)", 1, false),
    row("atomic_store", Builtin::Atomic(AtomicOp::Store), "atomic_store(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("debug_barrier", Builtin::Barrier, "debug_barrier()", 0, false),
    row("gdc_wait", Builtin::GdcWait, "gdc_wait()", 0, false),
    row("gdc_launch_dependents", Builtin::GdcLaunchDependents, "gdc_launch_dependents()", 0, false),
    row("target", Builtin::Target, "target()", 0, false),
    row("assume", Builtin::Assume, "assume(n > 0)", 1, false),
    row("multiple_of", Builtin::Library("assumptions"), "multiple_of(x, 16)", 2, true),
    row("select", Builtin::Select, "select(cond, a, b)", 3, false),
    row("min", Builtin::Binary(BinaryOp::Min), "min(a, b)", 2, true),
    row("max", Builtin::Binary(BinaryOp::Max), "max(a, b)", 2, true),
    row("abs", Builtin::Unary(UnaryOp::Abs), "abs(x)", 1, true),
    row("fma", Builtin::Fma, "fma(a, b, c)", 3, true),
    row("clamp", Builtin::Clamp, "clamp(x, low, high)", 3, true),
    row("exp", Builtin::Unary(UnaryOp::Exp), "exp(x)", 1, true),
    row("exp2", Builtin::Unary(UnaryOp::Exp2), "exp2(x)", 1, true),
    row("log", Builtin::Unary(UnaryOp::Log), "log(x)", 1, true),
    row("log2", Builtin::Unary(UnaryOp::Log2), "log2(x)", 1, true),
    row("sqrt", Builtin::Unary(UnaryOp::Sqrt), "sqrt(x)", 1, true),
    row("rsqrt", Builtin::Unary(UnaryOp::Rsqrt), "rsqrt(x)", 1, true),
    row("sin", Builtin::Unary(UnaryOp::Sin), "sin(x)", 1, true),
    row("cos", Builtin::Unary(UnaryOp::Cos), "cos(x)", 1, true),
    row("tan", Builtin::Unary(UnaryOp::Tan), "tan(x)", 1, true),
    row("tanh", Builtin::Unary(UnaryOp::Tanh), "tanh(x)", 1, true),
    row("sigmoid", Builtin::Unary(UnaryOp::Sigmoid), "sigmoid(x)", 1, true),
    row("erf", Builtin::Unary(UnaryOp::Erf), "erf(x)", 1, true),
    row("floor", Builtin::Unary(UnaryOp::Floor), "floor(x)", 1, true),
    row("ceil", Builtin::Unary(UnaryOp::Ceil), "ceil(x)", 1, true),
    row("round", Builtin::Unary(UnaryOp::Round), "round(x)", 1, true),
    row("rint", Builtin::Unary(UnaryOp::Rint), "rint(x)", 1, true),
    row("trunc", Builtin::Unary(UnaryOp::Trunc), "trunc(x)", 1, true),
    row("copysign", Builtin::Binary(BinaryOp::CopySign), "copysign(magnitude, sign)", 2, true),
    row("fast_exp2", Builtin::Unary(UnaryOp::ExpApproxFtz2), "fast_exp2(x)", 1, true),
    row("fast_log2", Builtin::Unary(UnaryOp::LogApprox2), "fast_log2(x)", 1, true),
    row("fast_sqrt", Builtin::Unary(UnaryOp::SqrtApprox), "fast_sqrt(x)", 1, true),
    row("fast_sin", Builtin::Unary(UnaryOp::SinApprox), "fast_sin(x)", 1, true),
    row("fast_cos", Builtin::Unary(UnaryOp::CosApprox), "fast_cos(x)", 1, true),
    row("fast_tanh", Builtin::Unary(UnaryOp::TanhApprox), "fast_tanh(x)", 1, true),
    row("fast_div", Builtin::Binary(BinaryOp::DivApprox), "fast_div(a, b)", 2, true),
    row("popc", Builtin::Unary(UnaryOp::Popc), "popc(x)", 1, true),
    row("clz", Builtin::Unary(UnaryOp::Clz), "clz(x)", 1, true),
    row("brev", Builtin::Unary(UnaryOp::Brev), "brev(x)", 1, true),
    row("umulhi", Builtin::Umulhi, "umulhi(a, b)", 2, true),
    row("bitcast", Builtin::Bitcast, "bitcast::<u32>(x)", 1, true),
    row("to", Builtin::To, "x.to::<f32>()", 1, true),
    row("col", Builtin::NewAxis(1), "x.col()", 1, true),
    row("row", Builtin::NewAxis(0), "x.row()", 1, true),
    row("expand_dims", Builtin::ExpandDims, "expand_dims(x, axis)", 2, true),
    row("broadcast_to", Builtin::BroadcastTo, "broadcast_to(x, [M, N])", 2, true),
    row("reshape", Builtin::Reshape, "reshape(x, [M, N])", 2, true),
    row("permute", Builtin::Permute, "permute(x, [1, 0, 2])", 2, true),
    row("trans", Builtin::Trans, "trans(x)", 1, true),
    row("squeeze", Builtin::Squeeze, "squeeze(x, axis)", 2, true),
    row("flip", Builtin::Flip, "flip(x, axis = 0)", 1, true),
    row("join", Builtin::Join, "join(a, b)", 2, true),
    row("split", Builtin::Split, "split(x)", 1, true),
    row("interleave", Builtin::Interleave, "interleave(a, b)", 2, true),
    row("cat", Builtin::Cat, "cat(a, b, axis = 0)", 2, true),
    row("extent", Builtin::Extent, "extent(x, axis)", 2, true),
    row("rank", Builtin::Rank, "rank(x)", 1, true),
    row("numel", Builtin::Numel, "numel(x)", 1, true),
    row("sum", Builtin::Fold(BinaryOp::Add), "sum(x, axis = 0, keep_dims = true)", 1, true),
    row("prod", Builtin::Fold(BinaryOp::Mul), "prod(x, axis = 0, keep_dims = true)", 1, true),
    row("xor_sum", Builtin::Fold(BinaryOp::Xor), "xor_sum(x, axis = 0, keep_dims = true)", 1, true),
    row("any", Builtin::Predicate(BinaryOp::Or), "any(x, axis = 0, keep_dims = true)", 1, true),
    row("all", Builtin::Predicate(BinaryOp::And), "all(x, axis = 0, keep_dims = true)", 1, true),
    row("mean", Builtin::Library("statistics"), "mean(x, axis = 0, keep_dims = true)", 1, true),
    row("var", Builtin::Library("statistics"), "var(x, axis = 0, keep_dims = true, correction = 1)", 1, true),
    row("softmax", Builtin::Library("statistics"), "softmax(x, axis = 0)", 1, true),
    row("argmax", Builtin::Arg(BinaryOp::Max), "argmax(x, axis = 0, keep_dims = true)", 1, true),
    row("argmin", Builtin::Arg(BinaryOp::Min), "argmin(x, axis = 0, keep_dims = true)", 1, true),
    row("cumsum", Builtin::Cumulative(BinaryOp::Add), "cumsum(x, axis = 0, reverse = true)", 1, true),
    row("cumprod", Builtin::Cumulative(BinaryOp::Mul), "cumprod(x, axis = 0, reverse = true)", 1, true),
    row("cummax", Builtin::Cumulative(BinaryOp::Max), "cummax(x, axis = 0, reverse = true)", 1, true),
    row("cummin", Builtin::Cumulative(BinaryOp::Min), "cummin(x, axis = 0, reverse = true)", 1, true),
    row("reduce", Builtin::Reduce, "reduce(x, axis, |a, b| a + b)", 3, true),
    row("associative_scan", Builtin::Scan, "associative_scan(x, axis, |a, b| a + b)", 3, true),
    row("swizzle2d", Builtin::Library("indexing"), "swizzle2d(i, j, rows, columns, group)", 5, false),
    row("exp10", Builtin::Library("exponential"), "exp10(x)", 1, true),
    row("expm1", Builtin::Library("exponential"), "expm1(x)", 1, true),
    row("log1p", Builtin::Library("exponential"), "log1p(x)", 1, true),
    row("log10", Builtin::Library("exponential"), "log10(x)", 1, true),
    row("pow", Builtin::Library("power"), "pow(x, y)", 2, true),
    row("cbrt", Builtin::Library("power"), "cbrt(x)", 1, true),
    row("hypot", Builtin::Library("power"), "hypot(x, y)", 2, true),
    row("fmod", Builtin::Library("power"), "fmod(x, y)", 2, true),
    row("asin", Builtin::Library("inverse_trigonometric"), "asin(x)", 1, true),
    row("acos", Builtin::Library("inverse_trigonometric"), "acos(x)", 1, true),
    row("atan", Builtin::Library("inverse_trigonometric"), "atan(x)", 1, true),
    row("atan2", Builtin::Library("inverse_trigonometric"), "atan2(y, x)", 2, true),
    row("sinh", Builtin::Library("hyperbolic"), "sinh(x)", 1, true),
    row("cosh", Builtin::Library("hyperbolic"), "cosh(x)", 1, true),
    row("asinh", Builtin::Library("hyperbolic"), "asinh(x)", 1, true),
    row("acosh", Builtin::Library("hyperbolic"), "acosh(x)", 1, true),
    row("atanh", Builtin::Library("hyperbolic"), "atanh(x)", 1, true),
    row("isnan", Builtin::Library("floats"), "isnan(x)", 1, true),
    row("isinf", Builtin::Library("floats"), "isinf(x)", 1, true),
    row("isfinite", Builtin::Library("floats"), "isfinite(x)", 1, true),
    row("ffs", Builtin::Library("floats"), "ffs(x)", 1, true),
    row("fast_exp", Builtin::Library("fast"), "fast_exp(x)", 1, true),
    row("fast_exp10", Builtin::Library("fast"), "fast_exp10(x)", 1, true),
    row("fast_log", Builtin::Library("fast"), "fast_log(x)", 1, true),
    row("fast_log10", Builtin::Library("fast"), "fast_log10(x)", 1, true),
    row("fast_pow", Builtin::Library("fast"), "fast_pow(x, y)", 2, true),
    row("fast_tan", Builtin::Library("fast"), "fast_tan(x)", 1, true),
    row("fast_sigmoid", Builtin::Library("fast"), "fast_sigmoid(x)", 1, true),
    row("erfc", Builtin::Library("error"), "erfc(x)", 1, true),
    row("erfinv", Builtin::Library("error"), "erfinv(x)", 1, true),
    row("lgamma", Builtin::Library("gamma"), "lgamma(x)", 1, true),
    row("tgamma", Builtin::Library("gamma"), "tgamma(x)", 1, true),
    row("j0", Builtin::Library("bessel"), "j0(x)", 1, true),
    row("j1", Builtin::Library("bessel"), "j1(x)", 1, true),
    row("y0", Builtin::Library("bessel"), "y0(x)", 1, true),
    row("y1", Builtin::Library("bessel"), "y1(x)", 1, true),
    row("philox", Builtin::Library("random"), "philox(seed, c0, c1, c2, c3, n_rounds = 10)", 5, false),
    row("rand", Builtin::Library("random"), "rand(seed, offset, n_rounds = 10)", 2, false),
    row("randn", Builtin::Library("random"), "randn(seed, offset, n_rounds = 10)", 2, false),
    row("randint", Builtin::Library("random"), "randint(seed, offset, n_rounds = 10)", 2, false),
    row("rand4x", Builtin::Library("random"), "rand4x(seed, offset, n_rounds = 10)", 2, false),
    row("randn4x", Builtin::Library("random"), "randn4x(seed, offset, n_rounds = 10)", 2, false),
    row("randint4x", Builtin::Library("random"), "randint4x(seed, offset, n_rounds = 10)", 2, false),
    row("gather", Builtin::Gather, "gather(x, index, axis)", 3, true),
    row("dot", Builtin::Dot, "dot(a, b, acc = ..)", 2, true),
    row("histogram", Builtin::Histogram, "histogram(x, num_bins, mask = ..)", 2, true),
    row("sort", Builtin::Sort, "sort(x, axis = 0, descending = true)", 1, true),
    row("topk", Builtin::Topk, "topk(x, k, axis = 0)", 2, true),
    row("range", Builtin::Range, "for i in range(a, b, step, num_stages = 3, unroll = 2)", 2, false),
    row("static_range", Builtin::Range, "for i in static_range(a, b, step)", 2, false),
];

/// Builtins of the block-level model that this version lacks.
const LATER: &[&str] = &["dot_scaled", "max_contiguous", "map_elementwise"];

/// Builtins of other languages, and their equivalents here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("where", "select(cond, a, b)"),
    ("where_", "select(cond, a, b)"),
    ("r#where", "select(cond, a, b)"),
    ("maximum", "max(a, b)"),
    ("minimum", "min(a, b)"),
    ("fmax", "max(a, b)"),
    ("fmin", "min(a, b)"),
    ("fabs", "abs(x)"),
    ("ln", "log(x)"),
    ("mul_add", "fma(a, b, c)"),
    ("div_ceil", "cdiv(a, b)"),
    ("ceil_div", "cdiv(a, b)"),
    ("round_ties_even", "rint(x)"),
    ("nearbyint", "rint(x)"),
    ("logistic", "sigmoid(x)"),
    ("recip", "1.0 / x"),
    ("reciprocal", "1.0 / x"),
    ("cast", "x as f32"),
    ("astype", "x as f32"),
    ("float", "x as f32`; infinities are `f32::INFINITY` and `f32::NEG_INFINITY"),
    ("int", "x as i32"),
    ("to_bits", "bitcast::<u32>(x)"),
    ("from_bits", "bitcast::<f32>(x)"),
    ("transmute", "bitcast::<u32>(x)"),
    ("splat", "full([N], value)"),
    ("iota", "arange(0, N)"),
    ("block_idx", "program_id(0)"),
    ("program_idx", "program_id(0)"),
    ("pid", "program_id(0)"),
    ("grid_dim", "num_programs(0)"),
    ("barrier", "debug_barrier()"),
    ("syncthreads", "debug_barrier()"),
    ("__syncthreads", "debug_barrier()"),
    ("constexpr", "const N: usize = 4;"),
    ("make_block_ptr", "view(x, [m, n], [stride, 1])"),
    ("make_tensor_descriptor", "view(x, [m, n], [stride, 1])"),
    ("load_tensor_descriptor", "x.load([i, j], [M, N])"),
    ("store_tensor_descriptor", "y.store([i, j], tile)"),
    ("advance", "x.load([i + M, j], [M, N])"),
    ("not", "!cond"),
    ("print", "device_print!(\"x is {}\", x)"),
    ("griddepcontrol_wait", "gdc_wait()"),
    ("griddepcontrol_launch_dependents", "gdc_launch_dependents()"),
    ("atomic_sub", "atomic_add(pointer, -value)"),
    ("atomic_swap", "atomic_xchg(pointer, value)"),
    ("atomic_exchange", "atomic_xchg(pointer, value)"),
    ("atomic_compare_exchange", "atomic_cas(pointer, compare, value)"),
    ("fetch_add", "atomic_add(pointer, value)"),
    ("compare_exchange", "atomic_cas(pointer, compare, value)"),
    ("rsqrtf", "rsqrt(x)"),
    ("scan", "associative_scan(x, axis, |a, b| a + b)"),
    ("transpose", "trans(x)"),
    ("powf", "pow(x, y)"),
    ("gamma", "tgamma(x)"),
    ("ln_gamma", "lgamma(x)"),
    ("powi", "pow(x, n as f32)"),
    ("exp_m1", "expm1(x)"),
    ("ln_1p", "log1p(x)"),
    ("is_nan", "isnan(x)"),
    ("is_infinite", "isinf(x)"),
    ("is_finite", "isfinite(x)"),
    ("mul_high", "umulhi(a, b)"),
    ("mulhi", "umulhi(a, b)"),
    ("count_ones", "popc(x)"),
    ("popcount", "popc(x)"),
    ("leading_zeros", "clz(x)"),
    ("trailing_zeros", "clz(brev(x))"),
    ("reverse_bits", "brev(x)"),
    ("signum", "copysign(1.0, x)"),
    ("signbit", "copysign(1.0, x) < 0.0"),
    ("div_rn", "a / b"),
    ("sqrt_rn", "sqrt(x)"),
    ("fdiv", "a / b"),
    ("broadcast", "broadcast_to(x, [M, N])"),
    ("ravel", "reshape(x, [N])"),
    ("flatten", "reshape(x, [N])"),
    ("unsqueeze", "expand_dims(x, axis)"),
    ("stack", "join(a, b)"),
    ("concat", "cat(a, b, axis = 0)"),
    ("concatenate", "cat(a, b, axis = 0)"),
    ("ones_like", "full_like(x, 1)"),
    ("amax", "max(x, axis = 0)"),
    ("amin", "min(x, axis = 0)"),
    ("reduce_or", "any(x, axis = 0)"),
    ("average", "mean(x, axis = 0)"),
    ("variance", "var(x, axis = 0)"),
    ("std", "sqrt(var(x, axis = 0))"),
    ("fold", "reduce(x, axis, |a, b| a + b)"),
    ("logical_and", "a & b"),
    ("logical_or", "a | b"),
    ("assert_unchecked", "assume(cond)"),
    ("inline_asm_elementwise", "inline_ptx!(\"neg.f32 {y}, {x};\", y: f32, x = value, cpu = |x| -x)"),
    ("inline_ptx", "inline_ptx!(\"neg.f32 {y}, {x};\", y: f32, x = value, cpu = |x| -x)"),
    ("pointer_type", "address as Ptr<f32>"),
    ("device_print", "device_print!(\"x is {}\", x)"),
    ("static_print", "static_print!(\"N is {}\", N)"),
    ("device_assert", "device_assert!(x >= 0, \"x is negative\")"),
    ("wrapping_add", "a + b"),
    ("wrapping_sub", "a - b"),
    ("wrapping_mul", "a * b"),
    ("add", "a + b"),
    ("sub", "a - b"),
    ("mul", "a * b"),
    ("div", "a / b"),
    ("offset", "pointer + offset"),
    ("wrapping_shl", "a << b"),
    ("wrapping_shr", "a >> b"),
];

/// Methods of Rust's numbers that are not builtins, and their equivalents. As functions their names are free.
const METHODS: &[(&str, &str)] = &[
    ("into", "x as f32"),
    ("unwrap", "x"),
    ("expect", "x"),
    ("half", "x as f16"),
    ("double", "x as f64"),
    ("long", "x as i64"),
    ("item", "x"),
    ("map", "f(x)` with `let f = |x| 2.0 * x;"),
    ("t", "trans(x)"),
    ("contiguous", "x"),
    ("clone", "x"),
    ("rem_euclid", "(x % n + n) % n"),
    ("rotate_left", "(x << k) | (x >> (32 - k))"),
    ("rotate_right", "(x >> k) | (x << (32 - k))"),
    ("saturating_sub", "max(x, y) - y"),
    ("abs_diff", "max(x, y) - min(x, y)"),
    ("is_multiple_of", "x % y == 0"),
    ("is_power_of_two", "popc(x) == 1"),
    ("ilog2", "63 - clz(x as i64)"),
    ("fract", "x - trunc(x)"),
    ("sin_cos", "(sin(x), cos(x))"),
    ("to_radians", "x * (std::f32::consts::PI / 180.0)"),
    ("from_bits", "bitcast::<f32>(x)"),
    ("total_cmp", "x < y"),
];

/// The row of a builtin.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    BUILTINS.iter().find(|row| row.name == name)
}

/// Is it a builtin, or a near misspelling of one? Such names are not looked up among the device functions.
///
/// A function with such a name is called by its path, `self::add(..)`. A misspelt builtin is therefore reported here and does not become an
/// unresolved name in rustc.
pub(crate) fn is_reserved(name: &str) -> bool {
    let is_misspelt = || {
        let plain = !name.contains(|c: char| c.is_ascii_digit());
        plain && BUILTINS.iter().any(|row| is_one_slip(name, row.name))
    };
    !name.contains("::")
        && (find(name).is_some() || LATER.contains(&name) || ELSEWHERE.iter().any(|(known, _)| *known == name) || is_misspelt())
}

/// Is one letter missing, added, wrong, or swapped with its neighbour?
fn is_one_slip(name: &str, builtin: &str) -> bool {
    let (a, b) = (name.as_bytes(), builtin.as_bytes());
    let front = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let back = a[front..].iter().rev().zip(b[front..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[front..a.len() - back], &b[front..b.len() - back]);
    match (a, b) {
        ([x, y], [z, w]) => name.len() >= 4 && x == w && y == z,
        // `gelu` and `ceil` are too short for a misspelling.
        _ => name.len() >= 5 && builtin.len() >= 5 && a.len() <= 1 && b.len() <= 1,
    }
}

/// The message and help for a name that is not in the table.
pub(crate) fn unknown(name: &str, is_method: bool) -> (String, String) {
    if LATER.contains(&name) {
        let help = "`galatea::dsl` documents the builtins of this version";
        return (format!("`{name}` is not available yet"), format!("{help}{}", by_path(name, is_method)));
    }
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
        return (format!("there is no function `{name}`"), format!("write `{instead}`{}", by_path(name, is_method)));
    }
    if let Some(found) = of_a_tensor(name) {
        return found;
    }
    if let Some((_, instead)) = METHODS.iter().find(|(known, _)| is_method && *known == name) {
        return (format!("there is no method `{name}`"), format!("write `{instead}`"));
    }
    if name.contains("::") {
        let help = "a path leads to a function that is marked `#[device]`; builtins need none";
        return (format!("there is no device function `{name}`"), help.to_string());
    }
    let candidates = BUILTINS.iter().filter(|row| row.method || !is_method).map(|row| row.name);
    let what = if is_method { "method" } else { "function" };
    match did_you_mean(name, candidates) {
        Some(near) => (format!("there is no {what} `{name}`"), format!("did you mean `{near}`?")),
        None => (
            format!("there is no {what} `{name}`"),
            "a kernel calls the builtins of `galatea::dsl`, and functions that are marked `#[device]`".to_string(),
        ),
    }
}

/// The message and help for a property that a tensor has only on the host.
pub(crate) fn of_a_tensor(name: &str) -> Option<(String, String)> {
    let help = match name {
        "len" | "shape" | "size" | "dim" => {
            "views and tiles have `extent(x, axis)`, `rank(x)` and tiles `numel(x)`; with a pointer pass sizes as parameters, `n: usize`"
        }
        "stride" | "strides" => "a view applies its strides by itself; with a pointer pass them as parameters, `stride: usize`",
        "dtype" => "element types are names, such as a type parameter `T`: `x as T`, `zeros::<T>([N])`, `if T == f32 { .. }`",
        _ => return None,
    };
    Some((format!("there is no `{name}` of a tensor in a kernel"), help.to_string()))
}

/// How to call a function whose name is reserved.
fn by_path(name: &str, is_method: bool) -> String {
    // Not a name that anyone gives a function.
    let is_unlikely = name.contains("where") || ["not", "print", "float", "int", "constexpr", "__syncthreads"].contains(&name);
    match is_method || is_unlikely {
        true => String::new(),
        false => format!("; a device function of this name is called by its path, `self::{name}(..)`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_in_one_table_only() {
        for row in BUILTINS {
            assert!(!LATER.contains(&row.name), "{}", row.name);
            assert!(ELSEWHERE.iter().all(|(known, _)| *known != row.name), "{}", row.name);
        }
        assert!(ELSEWHERE.iter().all(|(known, _)| !LATER.contains(known)));
    }

    /// Each builtin is documented, and each documented function is a builtin.
    #[test]
    fn every_builtin_is_documented() {
        let sources = [
            include_str!("../../kernel-lang/src/dsl/bits.rs"),
            include_str!("../../kernel-lang/src/dsl/fast.rs"),
            include_str!("../../kernel-lang/src/dsl/floats.rs"),
            include_str!("../../kernel-lang/src/dsl/atomic.rs"),
            include_str!("../../kernel-lang/src/dsl/lookup.rs"),
            include_str!("../../kernel-lang/src/dsl/math.rs"),
            include_str!("../../kernel-lang/src/dsl/memory.rs"),
            include_str!("../../kernel-lang/src/dsl/overlap.rs"),
            include_str!("../../kernel-lang/src/dsl/product.rs"),
            include_str!("../../kernel-lang/src/dsl/program.rs"),
            include_str!("../../kernel-lang/src/dsl/random.rs"),
            include_str!("../../kernel-lang/src/dsl/reduction.rs"),
            include_str!("../../kernel-lang/src/dsl/shape.rs"),
            include_str!("../../kernel-lang/src/dsl/special.rs"),
            include_str!("../../kernel-lang/src/dsl/tile.rs"),
        ];
        let name = |line: &'static str| line.strip_prefix("pub fn ")?.split(['<', '(']).next();
        let mut documented: Vec<&str> = sources.iter().flat_map(|source| source.lines().filter_map(name)).collect();
        let mut builtins: Vec<&str> = BUILTINS.iter().map(|row| row.name).collect();
        documented.sort_unstable();
        builtins.sort_unstable();
        assert_eq!(documented, builtins);
    }

    #[test]
    fn a_name_near_a_builtin_is_reserved() {
        assert!(["laod", "arrange", "sigmod", "progam_id", "max", "maximum", "rand"].into_iter().all(is_reserved));
        assert!(!["gelu", "silu", "norm", "exp3", "argmax2", "self::add", "helpers::arrange"].into_iter().any(is_reserved));
    }

    #[test]
    fn every_unknown_name_has_a_help() {
        assert_eq!(unknown("arrange", false).1, "did you mean `arange`?");
        assert_eq!(unknown("maximum", true).1, "write `max(a, b)`");
        assert!(unknown("maximum", false).1.ends_with("`self::maximum(..)`"));
        assert_eq!(unknown("dot_scaled", false).0, "`dot_scaled` is not available yet");
        assert!(unknown("frobnicate", false).1.contains("#[device]"));
    }
}
