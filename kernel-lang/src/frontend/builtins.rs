//! The builtin table: every builtin that a kernel can call, its usage, and the names that are not available.
//!
//! [`crate::dsl`] documents each builtin under the same name; a test compares the two lists.

use crate::diagnostic::did_you_mean;
use crate::ir::{AtomicOp, BinaryOp, UnaryOp};

/// The operation of a builtin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
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
    Histogram,
    Sort,
    Topk,
    /// A function of a library file.
    Library(&'static str),
}

impl Word {
    /// Does it only compute from its operands?
    pub(crate) fn is_pure(self) -> bool {
        let has_effects = [Word::Load, Word::Store, Word::Barrier, Word::Assume, Word::GdcWait, Word::GdcLaunchDependents].contains(&self);
        !has_effects && !matches!(self, Word::Atomic(_))
    }

    /// Is it available only as a method? As a function, its name is free for the user.
    pub(crate) fn is_only_method(self) -> bool {
        matches!(self, Word::To | Word::NewAxis(_))
    }
}

/// A row of the table: name, operation, usage, and number of positional arguments.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) word: Word,
    pub(crate) usage: &'static str,
    pub(crate) args: usize,
    /// Is it available as a method, `x.exp()`?
    pub(crate) method: bool,
}

const fn row(name: &'static str, word: Word, usage: &'static str, args: usize, method: bool) -> Row {
    Row { name, word, usage, args, method }
}

/// The builtins of the language.
pub(crate) const WORDS: &[Row] = &[
    row("program_id", Word::ProgramId, "program_id(axis)", 1, false),
    row("num_programs", Word::NumPrograms, "num_programs(axis)", 1, false),
    row("arange", Word::Arange, "arange(start, end)", 2, false),
    row("cdiv", Word::Cdiv, "cdiv(a, b)", 2, true),
    row("zeros", Word::Zeros, "zeros::<f32>([N])", 1, false),
    row("full", Word::Full, "full([N], value)", 2, false),
    row("ones", Word::Ones, "ones::<f32>([N])", 1, false),
    row("zeros_like", Word::ZerosLike, "zeros_like(x)", 1, false),
    row("full_like", Word::FullLike, "full_like(x, value)", 2, false),
    row("load", Word::Load, "load(pointer, mask = .., other = .., cache = .., evict = .., volatile = ..)", 1, false),
    row("store", Word::Store, "store(pointer, value, mask = .., cache = .., evict = ..)", 2, false),
    row("view", Word::View, "view(pointer, [m, n], [stride, 1])", 3, false),
    row("atomic_add", Word::Atomic(AtomicOp::Add), "atomic_add(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_max", Word::Atomic(AtomicOp::Max), "atomic_max(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_min", Word::Atomic(AtomicOp::Min), "atomic_min(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_and", Word::Atomic(AtomicOp::And), "atomic_and(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_or", Word::Atomic(AtomicOp::Or), "atomic_or(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_xor", Word::Atomic(AtomicOp::Xor), "atomic_xor(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("atomic_xchg", Word::Atomic(AtomicOp::Exchange), "atomic_xchg(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row(
        "atomic_cas",
        Word::Atomic(AtomicOp::CompareAndSwap),
        "atomic_cas(pointer, compare, value, mask = .., sem = .., scope = ..)",
        3,
        false,
    ),
    row("atomic_load", Word::Atomic(AtomicOp::Load), "atomic_load(pointer, mask = .., sem = .., scope = ..)", 1, false),
    row("atomic_store", Word::Atomic(AtomicOp::Store), "atomic_store(pointer, value, mask = .., sem = .., scope = ..)", 2, false),
    row("debug_barrier", Word::Barrier, "debug_barrier()", 0, false),
    row("gdc_wait", Word::GdcWait, "gdc_wait()", 0, false),
    row("gdc_launch_dependents", Word::GdcLaunchDependents, "gdc_launch_dependents()", 0, false),
    row("target", Word::Target, "target()", 0, false),
    row("assume", Word::Assume, "assume(n > 0)", 1, false),
    row("multiple_of", Word::Library("assumptions"), "multiple_of(x, 16)", 2, true),
    row("select", Word::Select, "select(cond, a, b)", 3, false),
    row("min", Word::Binary(BinaryOp::Min), "min(a, b)", 2, true),
    row("max", Word::Binary(BinaryOp::Max), "max(a, b)", 2, true),
    row("abs", Word::Unary(UnaryOp::Abs), "abs(x)", 1, true),
    row("fma", Word::Fma, "fma(a, b, c)", 3, true),
    row("clamp", Word::Clamp, "clamp(x, low, high)", 3, true),
    row("exp", Word::Unary(UnaryOp::Exp), "exp(x)", 1, true),
    row("exp2", Word::Unary(UnaryOp::Exp2), "exp2(x)", 1, true),
    row("log", Word::Unary(UnaryOp::Log), "log(x)", 1, true),
    row("log2", Word::Unary(UnaryOp::Log2), "log2(x)", 1, true),
    row("sqrt", Word::Unary(UnaryOp::Sqrt), "sqrt(x)", 1, true),
    row("rsqrt", Word::Unary(UnaryOp::Rsqrt), "rsqrt(x)", 1, true),
    row("sin", Word::Unary(UnaryOp::Sin), "sin(x)", 1, true),
    row("cos", Word::Unary(UnaryOp::Cos), "cos(x)", 1, true),
    row("tan", Word::Unary(UnaryOp::Tan), "tan(x)", 1, true),
    row("tanh", Word::Unary(UnaryOp::Tanh), "tanh(x)", 1, true),
    row("sigmoid", Word::Unary(UnaryOp::Sigmoid), "sigmoid(x)", 1, true),
    row("erf", Word::Unary(UnaryOp::Erf), "erf(x)", 1, true),
    row("floor", Word::Unary(UnaryOp::Floor), "floor(x)", 1, true),
    row("ceil", Word::Unary(UnaryOp::Ceil), "ceil(x)", 1, true),
    row("round", Word::Unary(UnaryOp::Round), "round(x)", 1, true),
    row("rint", Word::Unary(UnaryOp::Rint), "rint(x)", 1, true),
    row("trunc", Word::Unary(UnaryOp::Trunc), "trunc(x)", 1, true),
    row("copysign", Word::Binary(BinaryOp::CopySign), "copysign(magnitude, sign)", 2, true),
    row("fast_exp2", Word::Unary(UnaryOp::ExpApproxFtz2), "fast_exp2(x)", 1, true),
    row("fast_log2", Word::Unary(UnaryOp::LogApprox2), "fast_log2(x)", 1, true),
    row("fast_sqrt", Word::Unary(UnaryOp::SqrtApprox), "fast_sqrt(x)", 1, true),
    row("fast_sin", Word::Unary(UnaryOp::SinApprox), "fast_sin(x)", 1, true),
    row("fast_cos", Word::Unary(UnaryOp::CosApprox), "fast_cos(x)", 1, true),
    row("fast_tanh", Word::Unary(UnaryOp::TanhApprox), "fast_tanh(x)", 1, true),
    row("fast_div", Word::Binary(BinaryOp::DivApprox), "fast_div(a, b)", 2, true),
    row("popc", Word::Unary(UnaryOp::Popc), "popc(x)", 1, true),
    row("clz", Word::Unary(UnaryOp::Clz), "clz(x)", 1, true),
    row("brev", Word::Unary(UnaryOp::Brev), "brev(x)", 1, true),
    row("umulhi", Word::Umulhi, "umulhi(a, b)", 2, true),
    row("bitcast", Word::Bitcast, "bitcast::<u32>(x)", 1, true),
    row("to", Word::To, "x.to::<f32>()", 1, true),
    row("col", Word::NewAxis(1), "x.col()", 1, true),
    row("row", Word::NewAxis(0), "x.row()", 1, true),
    row("expand_dims", Word::ExpandDims, "expand_dims(x, axis)", 2, true),
    row("broadcast_to", Word::BroadcastTo, "broadcast_to(x, [M, N])", 2, true),
    row("reshape", Word::Reshape, "reshape(x, [M, N])", 2, true),
    row("permute", Word::Permute, "permute(x, [1, 0, 2])", 2, true),
    row("trans", Word::Trans, "trans(x)", 1, true),
    row("squeeze", Word::Squeeze, "squeeze(x, axis)", 2, true),
    row("flip", Word::Flip, "flip(x, axis = 0)", 1, true),
    row("join", Word::Join, "join(a, b)", 2, true),
    row("split", Word::Split, "split(x)", 1, true),
    row("interleave", Word::Interleave, "interleave(a, b)", 2, true),
    row("cat", Word::Cat, "cat(a, b, axis = 0)", 2, true),
    row("extent", Word::Extent, "extent(x, axis)", 2, true),
    row("rank", Word::Rank, "rank(x)", 1, true),
    row("numel", Word::Numel, "numel(x)", 1, true),
    row("sum", Word::Fold(BinaryOp::Add), "sum(x, axis = 0, keep_dims = true)", 1, true),
    row("prod", Word::Fold(BinaryOp::Mul), "prod(x, axis = 0, keep_dims = true)", 1, true),
    row("xor_sum", Word::Fold(BinaryOp::Xor), "xor_sum(x, axis = 0, keep_dims = true)", 1, true),
    row("any", Word::Predicate(BinaryOp::Or), "any(x, axis = 0, keep_dims = true)", 1, true),
    row("all", Word::Predicate(BinaryOp::And), "all(x, axis = 0, keep_dims = true)", 1, true),
    row("mean", Word::Library("statistics"), "mean(x, axis = 0, keep_dims = true)", 1, true),
    row("var", Word::Library("statistics"), "var(x, axis = 0, keep_dims = true, correction = 1)", 1, true),
    row("softmax", Word::Library("statistics"), "softmax(x, axis = 0)", 1, true),
    row("argmax", Word::Arg(BinaryOp::Max), "argmax(x, axis = 0, keep_dims = true)", 1, true),
    row("argmin", Word::Arg(BinaryOp::Min), "argmin(x, axis = 0, keep_dims = true)", 1, true),
    row("cumsum", Word::Cumulative(BinaryOp::Add), "cumsum(x, axis = 0, reverse = true)", 1, true),
    row("cumprod", Word::Cumulative(BinaryOp::Mul), "cumprod(x, axis = 0, reverse = true)", 1, true),
    row("cummax", Word::Cumulative(BinaryOp::Max), "cummax(x, axis = 0, reverse = true)", 1, true),
    row("cummin", Word::Cumulative(BinaryOp::Min), "cummin(x, axis = 0, reverse = true)", 1, true),
    row("reduce", Word::Reduce, "reduce(x, axis, |a, b| a + b)", 3, true),
    row("associative_scan", Word::Scan, "associative_scan(x, axis, |a, b| a + b)", 3, true),
    row("swizzle2d", Word::Library("indexing"), "swizzle2d(i, j, rows, columns, group)", 5, false),
    row("exp10", Word::Library("exponential"), "exp10(x)", 1, true),
    row("expm1", Word::Library("exponential"), "expm1(x)", 1, true),
    row("log1p", Word::Library("exponential"), "log1p(x)", 1, true),
    row("log10", Word::Library("exponential"), "log10(x)", 1, true),
    row("pow", Word::Library("power"), "pow(x, y)", 2, true),
    row("cbrt", Word::Library("power"), "cbrt(x)", 1, true),
    row("hypot", Word::Library("power"), "hypot(x, y)", 2, true),
    row("fmod", Word::Library("power"), "fmod(x, y)", 2, true),
    row("asin", Word::Library("inverse_trigonometric"), "asin(x)", 1, true),
    row("acos", Word::Library("inverse_trigonometric"), "acos(x)", 1, true),
    row("atan", Word::Library("inverse_trigonometric"), "atan(x)", 1, true),
    row("atan2", Word::Library("inverse_trigonometric"), "atan2(y, x)", 2, true),
    row("sinh", Word::Library("hyperbolic"), "sinh(x)", 1, true),
    row("cosh", Word::Library("hyperbolic"), "cosh(x)", 1, true),
    row("asinh", Word::Library("hyperbolic"), "asinh(x)", 1, true),
    row("acosh", Word::Library("hyperbolic"), "acosh(x)", 1, true),
    row("atanh", Word::Library("hyperbolic"), "atanh(x)", 1, true),
    row("isnan", Word::Library("floats"), "isnan(x)", 1, true),
    row("isinf", Word::Library("floats"), "isinf(x)", 1, true),
    row("isfinite", Word::Library("floats"), "isfinite(x)", 1, true),
    row("ffs", Word::Library("floats"), "ffs(x)", 1, true),
    row("fast_exp", Word::Library("fast"), "fast_exp(x)", 1, true),
    row("fast_exp10", Word::Library("fast"), "fast_exp10(x)", 1, true),
    row("fast_log", Word::Library("fast"), "fast_log(x)", 1, true),
    row("fast_log10", Word::Library("fast"), "fast_log10(x)", 1, true),
    row("fast_pow", Word::Library("fast"), "fast_pow(x, y)", 2, true),
    row("fast_tan", Word::Library("fast"), "fast_tan(x)", 1, true),
    row("fast_sigmoid", Word::Library("fast"), "fast_sigmoid(x)", 1, true),
    row("erfc", Word::Library("error"), "erfc(x)", 1, true),
    row("erfinv", Word::Library("error"), "erfinv(x)", 1, true),
    row("lgamma", Word::Library("gamma"), "lgamma(x)", 1, true),
    row("tgamma", Word::Library("gamma"), "tgamma(x)", 1, true),
    row("j0", Word::Library("bessel"), "j0(x)", 1, true),
    row("j1", Word::Library("bessel"), "j1(x)", 1, true),
    row("y0", Word::Library("bessel"), "y0(x)", 1, true),
    row("y1", Word::Library("bessel"), "y1(x)", 1, true),
    row("philox", Word::Library("random"), "philox(seed, c0, c1, c2, c3, n_rounds = 10)", 5, false),
    row("rand", Word::Library("random"), "rand(seed, offset, n_rounds = 10)", 2, false),
    row("randn", Word::Library("random"), "randn(seed, offset, n_rounds = 10)", 2, false),
    row("randint", Word::Library("random"), "randint(seed, offset, n_rounds = 10)", 2, false),
    row("rand4x", Word::Library("random"), "rand4x(seed, offset, n_rounds = 10)", 2, false),
    row("randn4x", Word::Library("random"), "randn4x(seed, offset, n_rounds = 10)", 2, false),
    row("randint4x", Word::Library("random"), "randint4x(seed, offset, n_rounds = 10)", 2, false),
    row("gather", Word::Gather, "gather(x, index, axis)", 3, true),
    row("histogram", Word::Histogram, "histogram(x, num_bins, mask = ..)", 2, true),
    row("sort", Word::Sort, "sort(x, axis = 0, descending = true)", 1, true),
    row("topk", Word::Topk, "topk(x, k, axis = 0)", 2, true),
    row("range", Word::Range, "for i in range(a, b, step, num_stages = 3, unroll = 2)", 2, false),
    row("static_range", Word::Range, "for i in static_range(a, b, step)", 2, false),
];

/// Builtins of the block-level model that this version lacks.
const LATER: &[&str] = &["dot", "dot_scaled", "max_contiguous", "map_elementwise"];

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
    WORDS.iter().find(|row| row.name == name)
}

/// Is it a builtin, or a near misspelling of one? Such names are not looked up among the device functions.
///
/// A function with such a name is called by its path, `self::add(..)`. A misspelt builtin is therefore reported here and does not become an
/// unresolved name in rustc.
pub(crate) fn is_reserved(name: &str) -> bool {
    let is_misspelt = || {
        let plain = !name.contains(|c: char| c.is_ascii_digit());
        plain && WORDS.iter().any(|row| is_one_slip(name, row.name))
    };
    !name.contains("::")
        && (find(name).is_some() || LATER.contains(&name) || ELSEWHERE.iter().any(|(word, _)| *word == name) || is_misspelt())
}

/// Is one letter missing, added, wrong, or swapped with its neighbour?
fn is_one_slip(name: &str, word: &str) -> bool {
    let (a, b) = (name.as_bytes(), word.as_bytes());
    let front = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let back = a[front..].iter().rev().zip(b[front..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[front..a.len() - back], &b[front..b.len() - back]);
    match (a, b) {
        ([x, y], [z, w]) => name.len() >= 4 && x == w && y == z,
        // `gelu` and `ceil` are too short for a misspelling.
        _ => name.len() >= 5 && word.len() >= 5 && a.len() <= 1 && b.len() <= 1,
    }
}

/// The message and help for a name that is not in the table.
pub(crate) fn unknown(name: &str, is_method: bool) -> (String, String) {
    if LATER.contains(&name) {
        let help = "`galatea::dsl` documents the words of this version";
        return (format!("`{name}` is not available yet"), format!("{help}{}", by_path(name, is_method)));
    }
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(word, _)| *word == name) {
        return (format!("there is no word `{name}`"), format!("write `{instead}`{}", by_path(name, is_method)));
    }
    if let Some(told) = of_a_tensor(name) {
        return told;
    }
    if let Some((_, instead)) = METHODS.iter().find(|(word, _)| is_method && *word == name) {
        return (format!("there is no method `{name}`"), format!("write `{instead}`"));
    }
    if name.contains("::") {
        let help = "a path leads to a function that is marked `#[device]`; the words of the language need none";
        return (format!("there is no device function `{name}`"), help.to_string());
    }
    let candidates = WORDS.iter().filter(|row| row.method || !is_method).map(|row| row.name);
    let what = if is_method { "method" } else { "word" };
    match did_you_mean(name, candidates) {
        Some(near) => (format!("there is no {what} `{name}`"), format!("did you mean `{near}`?")),
        None => (
            format!("there is no {what} `{name}`"),
            "a kernel calls the words of `galatea::dsl`, and functions that are marked `#[device]`".to_string(),
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
    fn a_word_is_there_or_later_or_elsewhere() {
        for row in WORDS {
            assert!(!LATER.contains(&row.name), "{}", row.name);
            assert!(ELSEWHERE.iter().all(|(word, _)| *word != row.name), "{}", row.name);
        }
        assert!(ELSEWHERE.iter().all(|(word, _)| !LATER.contains(word)));
    }

    /// Each builtin is documented, and each documented function is a builtin.
    #[test]
    fn every_word_is_documented() {
        let sources = [
            include_str!("../dsl/bits.rs"),
            include_str!("../dsl/fast.rs"),
            include_str!("../dsl/floats.rs"),
            include_str!("../dsl/atomic.rs"),
            include_str!("../dsl/lookup.rs"),
            include_str!("../dsl/math.rs"),
            include_str!("../dsl/memory.rs"),
            include_str!("../dsl/overlap.rs"),
            include_str!("../dsl/program.rs"),
            include_str!("../dsl/random.rs"),
            include_str!("../dsl/reduction.rs"),
            include_str!("../dsl/shape.rs"),
            include_str!("../dsl/special.rs"),
            include_str!("../dsl/tile.rs"),
        ];
        let name = |line: &'static str| line.strip_prefix("pub fn ")?.split(['<', '(']).next();
        let mut documented: Vec<&str> = sources.iter().flat_map(|source| source.lines().filter_map(name)).collect();
        let mut words: Vec<&str> = WORDS.iter().map(|row| row.name).collect();
        documented.sort_unstable();
        words.sort_unstable();
        assert_eq!(documented, words);
    }

    #[test]
    fn a_name_near_a_word_is_not_looked_for() {
        assert!(["laod", "arrange", "sigmod", "progam_id", "max", "maximum", "rand"].into_iter().all(is_reserved));
        assert!(!["gelu", "silu", "norm", "exp3", "argmax2", "self::add", "helpers::arrange"].into_iter().any(is_reserved));
    }

    #[test]
    fn every_unknown_word_has_a_help() {
        assert_eq!(unknown("arrange", false).1, "did you mean `arange`?");
        assert_eq!(unknown("maximum", true).1, "write `max(a, b)`");
        assert!(unknown("maximum", false).1.ends_with("`self::maximum(..)`"));
        assert_eq!(unknown("dot", false).0, "`dot` is not available yet");
        assert!(unknown("frobnicate", false).1.contains("#[device]"));
    }
}
