//! The attribute macros `#[kernel]`, `#[device]`, `#[autotune]` and `#[op]`. Each is one call into `kernel-frontend`.
//!
//! This crate contains no logic of the compiler. It is the only crate that may access files while a user's crate compiles: it caches
//! variants between builds and, if `GALATEA_PTX_DIR` names a folder, writes the PTX of every variant there.

mod store;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use kernel_frontend::Expansion;
use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use store::Files;

/// Defines a GPU kernel: the function is checked and compiled to PTX while the crate compiles.
///
/// ```ignore
/// #[kernel(BLOCK_SIZE = [1024, 4096], num_warps = 8)]
/// fn double<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
///     let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
///     let mask = offsets < n;
///     let v = load(x + offsets, mask = mask);
///     store(y + offsets, v + v, mask = mask);
/// }
/// ```
///
/// The function becomes a launcher: `double::<f32, 1024>(&x, &mut y, n).grid(cdiv(n, 1024)).launch()?`. `galatea::dsl` documents the
/// builtins of the body. All arguments of the attribute are optional:
///
/// | argument | meaning |
/// |---|---|
/// | `N = [1024, 4096]` | values of the constant parameter `N` to compile at build time; any other value is compiled at its first launch |
/// | `T = [f32, bf16]` | element types to compile at build time; the default is all types that the bound allows |
/// | `num_warps = 8` | warps of a CTA: a power of two up to 32, default 4 |
/// | `num_ctas = 4` | CTAs of a cluster that share one program: a power of two up to 16, default 1; see below |
/// | `maxnreg = 128` | the maximum number of registers that the assembler may give a thread |
/// | `num_stages = 3` | the maximum number of iterations in flight of a loop whose `range` sets none; all but one of them only load |
/// | `heuristics(EVEN_N = n % BLOCK_SIZE == 0)` | constants that the launch computes, see below |
/// | `assume(n = 4096, shift % 16 == 0)` | facts about arguments that a variant may rely on, see below |
/// | `do_not_specialize = [stride]`, or `do_not_specialize` | no automatic variants for strides of 1: for these arguments, or for all |
/// | `unchecked` | the launcher becomes an `unsafe fn`, see below |
/// | `contract` | on a GPU, `a * b + c` and sums of products may be rounded once, see below |
/// | `require(wgmma, tma, specialized)` | matrix products may not lose their fast path, see below |
/// | `crate = path` | the path of `galatea`, if it was renamed |
///
/// More than one CTA (`num_ctas`) requires sm_90. The CTAs of a cluster share elementwise ops, memory accesses and reductions.
///
/// `unchecked` removes bounds checks. It allows pointers made from addresses, and `inline_ptx!` that accesses memory.
///
/// `contract` rounds like `fma`. It makes the kernel faster, and results may differ from those of the CPU in the last place.
///
/// # Required fast paths
///
/// For sm_90a, a kernel with `dot` gets a second version, which a launch takes if its tensors allow that. `require` makes it an error if the kernel has no such
/// version. The error is at the line that loses it, says why, and how to mend it. `galatea explain` shows the same, and which launches take the version.
///
/// | name | meaning |
/// |---|---|
/// | `wgmma` | each `dot` is a product of warpgroups |
/// | `tma` | the operands of each `dot`, and the stores of its results, are tensor copies |
/// | `specialized` | a warp of its own copies the operands ahead |
///
/// - Code for older GPUs, and that of a `.checked()` launch, need not have it.
/// - A configuration of `#[autotune]` without it is left out, unless all are: then each reason is an error.
/// - A variant that is compiled at its first launch gives [`Error::Compile`](https://docs.rs/galatea/latest/galatea/enum.Error.html).
/// - If the driver's compiler serialises the products of the loaded code, loading fails with its advisory. Without `require`, that is a warning.
///
/// # Heuristics
///
/// ```ignore
/// #[kernel(heuristics(BLOCK_SIZE = columns.next_power_of_two(), num_warps = if BLOCK_SIZE >= 2048 { 8 } else { 4 }), BLOCK_SIZE = [1024, 2048])]
/// fn total<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: PtrMut<f32>, columns: usize) { .. }
///
/// total(&x, &mut y, columns).grid(|_| rows).launch()?;
/// ```
///
/// A heuristic is a Rust expression for a constant parameter of the kernel, or for `num_warps`, `num_ctas`, `num_stages` or `maxnreg`.
/// Every launch evaluates the heuristics in order. An expression can use:
///
/// - the scalar arguments, `x.len()` of a tensor, and `extent(x, 0)` of a view;
/// - the constants that the launch names;
/// - the values that an autotuned kernel's configuration sets;
/// - the heuristics before it.
///
/// Heuristics may be in `#[kernel]` or in `#[autotune]`; in both they are evaluated after the configuration is known. Constants that
/// heuristics set are not generics of the launcher. The grid is a function of the configuration, which contains these constants:
/// `.grid(|config| cdiv(n, config.BLOCK_SIZE))`.
///
/// The build compiles the values that an expression visibly has: the values of all its branches, or both values of a `bool`. Otherwise it
/// compiles the values that are listed. Any other value is compiled at its first launch.
///
/// # Facts of arguments
///
/// ```ignore
/// #[kernel(BM = [32], BN = [128], assume(n = 4096))]
/// fn copy<T: Element, const BM: usize, const BN: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize, x_row: isize, x_col: isize, y_row: isize, y_col: isize) { .. }
/// ```
///
/// An integer argument may be the stride between adjacent elements of a tile, as `x_col` in
/// `x + rows[(.., None)] * x_row + columns[(None, ..)] * x_col`. For such arguments there is automatically a variant for launches in which
/// the stride is 1. This variant reads and writes up to 16 bytes at a time; the general variant accesses memory element by element.
/// `assume` adds facts: an integer or a `bool` equals a literal, or a power of two divides an integer.
///
/// A fact only selects a variant. A launch checks in a few nanoseconds which facts hold for its arguments. If a fact does not hold, the
/// launch runs another variant, so a false fact cannot change the result. `.checked()` launches and launches on the CPU run the general
/// kernel.
///
/// The build compiles these variants:
///
/// - the general variant, which relies on no facts;
/// - the variant in which the last stride of each tensor, in the order of the parameters, is 1;
/// - for each `assume(..)`, the variant in which all of its facts hold. If the `assume` does not name strides, the last strides are 1 as
///   well.
///
/// Another combination is compiled when a launch first needs it. With `.compile_in_background()` another thread compiles it, and the launch
/// uses one of the variants above in the meantime.
///
/// # Reading the PTX
///
/// To read the PTX, build with the environment variable `GALATEA_PTX_DIR` naming a folder. Each variant is written there as
/// `<crate>/<kernel>-<types and constants>-w<warps>-<target>.ptx`; other parts of the schedule follow the warps. If a variant relies on facts, its
/// last constant has one bit for each fact. Cargo recompiles crates with kernels when the variable changes. `cargo galatea variants` sets
/// the variable and lists the variants with their resource use.
///
/// # Build cache
///
/// Variants are cached in the target directory by their content. A build after an edit compiles only the variants that changed.
/// `cargo clean` removes the cache. With the environment variable `GALATEA_BUILD_CACHE=off`, each build compiles all variants.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    finish(kernel_frontend::kernel(arguments.into(), item.into(), &Files::of_this_target()))
}

/// Makes a function of tensors an op: a call that a recorded graph shows as one line.
///
/// ```ignore
/// #[op("mylib::silu")]
/// pub fn silu(x: &Tensor) -> Result<Tensor> {
///     let (n, mut y) = (x.numel(), x.empty_like()?);
///     silu_elements::<Any, 1024>(x, &mut y, &n).grid(n.cdiv(1024)).launch()?;
///     Ok(y)
/// }
///
/// assert_eq!(silu::DEF.schema, "mylib::silu(Tensor x) -> Tensor");
/// ```
///
/// The function runs as before. The name has a namespace, which is that of the project, and may have an overload: `mylib::add.out`. The signature gives the schema:
///
/// | parameter or result | schema |
/// |---|---|
/// | `&Tensor`, `&mut Tensor` | `Tensor`, `Tensor(a!)`: the op writes the tensor |
/// | `Option<&Tensor>`, `&[Tensor]`, `&[&Tensor]` | `Tensor?`, `Tensor[]` |
/// | integers, `Dim`, `&Dim` | `SymInt` |
/// | `f32`, `f64`, `bool`, `&str`, `Dtype` | `float`, `float`, `bool`, `str`, `ScalarType` |
/// | `Result<Tensor>`, `Result<(Tensor, Tensor)>`, `Result<Vec<Tensor>>`, `Result<()>` | `Tensor`, `(Tensor, Tensor)`, `Tensor[]`, `()` |
///
/// Options follow the name:
///
/// | option | meaning |
/// |---|---|
/// | `backward(x, out) = f` | the function of the gradients, see below |
/// | `cpu = f` | a function of the same signature that runs in place of the body if all tensors are on the CPU; without it the CPU runs the kernels |
/// | `flops = f` | the number of floating-point operations of a call as a `Dim`, from the arguments: <code>flops = \|x\| x.numel()</code>. Without it they are counted in the kernels |
/// | `opaque, fake = f` | the body is never recorded: see below |
/// | `crate = path` | names `galatea`, if it was renamed |
///
/// Every op can be called by name: `ops::get("mylib::silu")?.call([(&x).into()])`.
///
/// # Opaque ops
///
/// The body of an opaque op may read elements and call other libraries. A recording has a call of it as one operation, and each run of a session calls the body. `fake = f` makes
/// the results in a recording: `f` has the signature of the op, and only the dtypes and extents of its results are used.
///
/// ```ignore
/// #[op("mylib::sort", opaque, fake = |x| x.empty_like())]
/// fn sort(x: &Tensor) -> Result<Tensor> {
///     let mut elements = x.to_vec::<f32>()?;
///     ..
/// }
/// ```
///
/// # Gradients
///
/// `backward(x, out) = f` makes the op differentiable. If an argument of a call needs a gradient, the op keeps the arguments and results that are listed: `x` as it was before the
/// call, and the result as `out`, or the results as `out0`, `out1` and so on. `Tensor::backward` calls `f` with a gradient for each result, then for each tensor that the op
/// writes, and then with what was kept, in the order of the list. `f` returns a gradient for each argument that is a tensor: a `Tensor`, an `Option<Tensor>` (`None` for an argument
/// without a gradient), or a `Vec<Tensor>` for a slice; several as a tuple. rustc checks these types.
///
/// ```ignore
/// #[op("mylib::mul", backward(x, y) = mul_backward)]
/// fn mul(x: &Tensor, y: &Tensor) -> Result<Tensor> { .. }
///
/// fn mul_backward(grad: &Tensor, x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
///     Ok((mul(grad, y)?, mul(grad, x)?))
/// }
/// ```
///
/// An op without `backward` that only calls ops with one needs none. If it launches a kernel with a tensor that needs a gradient, the launch is an error: nothing is silently a constant.
#[proc_macro_attribute]
pub fn op(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel_frontend::op(arguments.into(), item.into()).into()
}

/// Makes a struct of tensors and modules a `Module`: a value with named parameters.
///
/// ```ignore
/// #[derive(Module)]
/// struct Mlp {
///     linear1: Linear,
///     linear2: Linear,
///     #[module(skip)]
///     width: usize,
/// }
/// ```
///
/// The parameters are those of the fields, named by their paths: `linear1.weight`. `#[module(skip)]` leaves a field out that holds none. See
/// `galatea::ops::Module`.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(item: TokenStream) -> TokenStream {
    kernel_frontend::module(item.into()).into()
}

/// Makes a kernel select its configuration by timing, at the first launch of each key.
///
/// ```ignore
/// #[autotune(configs = [Config { BLOCK_SIZE: 1024, num_warps: 4 }, Config { BLOCK_SIZE: 4096, num_warps: 8 }], key = [n])]
/// #[kernel]
/// fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) { .. }
/// ```
///
/// | argument | meaning |
/// |---|---|
/// | `configs = [Config { B: 64, num_warps: 4 }, ..]` | the configurations, see below |
/// | `configs = product(B = [64, 128], num_warps = [4, 8]) if B * num_warps < 1024` | every combination that satisfies the condition, see below |
/// | `key = [n, bucket(m), bucket(k, 512), extent(x, 1)]` | the values of the arguments that select the configuration, see below |
/// | `prune = \|config\| config.B < n` | the configurations that do not fit the arguments of a launch; they are neither timed nor run |
/// | `prune = top_k(4, \|config\| cost)` | only those with the lowest estimated cost, an `f64`, are timed; the others only if none of them runs |
/// | `heuristics(EVEN_N = n % B == 0)` | constants that the launch computes after its configuration is known, see [`macro@kernel`] |
/// | `restore_value = [y]` | tensors to restore before each run of the tuning, see below |
/// | `reset_to_zero = [y]` | tensors to fill with zeros before each run of the tuning, see below |
/// | `warmup = 5`, `rep = 100` | the duration of a tuning in milliseconds: the warm-up, and the measurement |
/// | `pre_hook = \|config\| ..`, `post_hook = \|config\| ..` | functions called on the host before and after each run of the tuning |
/// | `records = "tuned/h200.json"` | a file of tuning records, or a list of files, see below |
/// | `verify = cpu`, `verify = reference`, `verify(cpu, rtol = 1e-2)` | the reference results; a configuration with other results cannot win, see below |
///
/// - **Configurations** set constant parameters, of an integer type, `bool`, `f32` or `f64`, and may set `num_warps`, `num_ctas`, `num_stages` and `maxnreg`. All of them must set the
///   same constant parameters. A part of the schedule that a configuration does not set is that of `#[kernel(..)]`. A `product` does not
///   contain the combinations that its condition excludes; it may also be an element of the list.
/// - **Key**: an element is a value, its next power of two (`bucket(m)`), its next multiple of a number (`bucket(k, 512)`), or an extent of
///   a view. The element types, the constants that the launch names, the device and the set of tensors aligned to 16 bytes are always part
///   of the key.
/// - **Pruning**: if no configuration is left, the launch fails with an error that lists them. `prune = [|config| .., top_k(..)]` combines
///   both forms.
/// - **Restored tensors**: `restore_value` tensors have their contents from before the launch in each run. Tensors that the kernel both
///   reads and writes are always restored. Tuning cannot restore memory that a kernel writes through addresses. Such a kernel must have
///   the option, if only as `restore_value = []`: it asserts that another run changes nothing at these addresses.
/// - **Zeroed tensors**: `reset_to_zero` also zeroes them before the launch's own run. Zeroing is cheaper than a copy, and correct if the
///   launch passes zeros.
///
/// Closures can use the same arguments as heuristics, and capture nothing else.
///
/// The launch that tunes runs the kernel many times; later launches with the same key look up the result. `.report()` in place of
/// `.launch()` returns the trials and launches nothing else. If the environment variable `GALATEA_PRINT_TUNING` is set, every tuning prints
/// its trials. `galatea::tune` describes the measurement.
///
/// # Committed records
///
/// `galatea tune` and `galatea cache export` write a file of records, a team commits it, and it becomes part of the program. The path is
/// relative to the folder of `Cargo.toml`. A key with a record in the file is not tuned. Committed records take precedence over records on
/// disk, so that all machines use the committed configurations. A record must match:
///
/// - the code of the kernel; comments and spans do not count;
/// - the configurations;
/// - the GPU, but not the driver;
/// - the values of the key.
///
/// The chosen configuration must also load. Otherwise the record is ignored and the key is tuned; with `GALATEA_PRINT_TUNING` a note gives
/// the reason. A change of the file recompiles the crate. A missing file, or one without records, is an error at its name in the attribute.
///
/// # Verification of results
///
/// With `verify = cpu` the CPU first runs the kernel in its first configuration, on a copy of the launch's arguments. Then each
/// configuration runs on restored arguments, and all tensors that the kernel may write are compared. A configuration with different results
/// is recorded with the reason, such as ``differs from the reference: `y[7]` is 3.5 instead of 4 (1 of 1000 elements differ)``. The winner
/// is verified once more at the end. The reference may also be the name of a function. It takes the kernel's parameters in their order:
/// `&[T]` for `Ptr<T>`, `&mut [T]` for `PtrMut<T>`, and scalars unchanged:
///
/// ```ignore
/// fn reference(x: &[f32], y: &mut [f32], n: usize) { .. }
/// ```
///
/// Integers must be equal. A float may differ by `rtol` times the sum of the reference's magnitude and the tensor's mean magnitude. The
/// default of `rtol` depends on the type:
///
/// | `f64` | `f32` | `f16` | `bf16` | `f8e4m3` | `f8e5m2` |
/// |---|---|---|---|---|---|
/// | 1e-9 | 1e-4 | 4e-3 | 3e-2 | 0.25 | 0.5 |
///
/// Verification costs the time of the reference and a copy of the written tensors, once for each key. On the CPU nothing is tuned, and
/// nothing is verified.
///
/// # The launcher
///
/// The build compiles every configuration. The constants that configurations set are not generics of the launcher. The grid is a function
/// of the configuration: `add(&x, &y, &mut out, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?`. A grid that all configurations
/// share is `|_| rows`.
#[proc_macro_attribute]
pub fn autotune(arguments: TokenStream, item: TokenStream) -> TokenStream {
    finish(kernel_frontend::autotune(arguments.into(), item.into(), &Files::of_this_target()))
}

/// Defines a helper function that any kernel can call, also from other modules and crates; or a struct that kernels can use.
///
/// ```ignore
/// /// Gaussian error linear unit.
/// #[device]
/// pub fn gelu<T: Float>(x: Value<T>) -> Value<T> {
///     let wide = x as f32;
///     (0.5 * wide * (1.0 + erf(wide * std::f32::consts::FRAC_1_SQRT_2))) as T
/// }
///
/// #[kernel]
/// fn activate<const N: usize>(x: Ptr<bf16>, y: PtrMut<bf16>) {
///     let offsets = program_id(0) * N + arange(0, N);
///     store(y + offsets, gelu(load(x + offsets)));
/// }
/// ```
///
/// The body is written in the kernel language and is inlined into each caller. It can use the parameters, the generics and, by their names
/// and paths, other device functions. It cannot recurse. Types are checked where a kernel calls the function, for each set of its generics.
/// For a function that no kernel calls, only the syntax and the signature are checked.
///
/// | in the signature | meaning |
/// |---|---|
/// | `x: Value<T>` | a scalar or a tile of any shape with elements `T` |
/// | `x: T`, `x: f32`, `n: usize` | one scalar; a constant argument of the call is a constant in the body |
/// | `x: Ptr<T>`, `y: PtrMut<T>` | a pointer of the kernel, with its offsets |
/// | `x: View<T, 2>`, `y: ViewMut<T, 2>` | a view of the kernel, or the result of `view` |
/// | `(Value<T>, usize)` | several values; tuples can be parameters and results |
/// | `w: Welford<T>` | a struct that is marked `#[device]`, as below |
/// | `f: impl Fn(Value<T>) -> Value<T>` | a closure of the call, `\|v\| v * scale`, which can use the caller's variables; call it, `f(x)`, or pass it on |
/// | `<T: Float>` | inferred from the arguments, or named: `gelu::<f32>(x)`; bounds are those of kernels |
/// | `<const N: usize>` | named: `window::<64>(start)` |
/// | `#[option(1.0)] by: f32` | passed by name or omitted: `scaled(x, by = 2.0)`; options come last |
/// | `#[option] mask: Value<bool>` | an option without a default; if it is omitted, it is also omitted wherever the function passes it on |
///
/// `return x;` is allowed in every `if` that always returns, but not in a loop. If the call decides a condition, such as `T == f32` or a
/// condition on a constant, only the selected branch is compiled.
///
/// # Structs
///
/// A struct groups scalars, tiles, pointers, views, tuples and other structs as named fields. It has no cost: a kernel computes with its
/// fields. A struct without functions is marked itself: `#[device] struct Range { low: Value<f32>, high: Value<f32> }`. A struct with
/// functions must be in one module with them, because a macro sees only its own item:
///
/// ```ignore
/// #[device]
/// pub mod moments {
///     /// Mean, sum of squared deviations and number of some values.
///     pub struct Welford<T> {
///         pub mean: Value<T>,
///         pub m2: Value<T>,
///         pub count: Value<T>,
///     }
///
///     impl<T: Float> Welford<T> {
///         pub fn of(x: Value<T>) -> Self {
///             Self { mean: x, m2: zeros_like(x), count: full_like(x, 1) }
///         }
///
///         pub fn combine(self, other: Self) -> Self {
///             let count = self.count + other.count;
///             let (delta, share) = (other.mean - self.mean, other.count / count);
///             Welford { mean: self.mean + delta * share, m2: self.m2 + other.m2 + delta * delta * self.count * share, count }
///         }
///     }
/// }
/// use moments::Welford;
///
/// #[kernel]
/// fn variance<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
///     let row = Welford::of(load(x + program_id(0) * N + arange(0, N)));
///     let Welford { m2, count, .. } = reduce(row, 0, |a, b| a.combine(b));
///     store(y + program_id(0), m2 / count);
/// }
/// ```
///
/// In such a module every function is a device function and every struct a device struct. An `impl` block contains functions with or
/// without `self`, which is copied. Other items, such as imports and kernels, are left unchanged. Items of one module may name each other
/// in cycles, such as a method of a struct that calls a function with a parameter of that struct. Calls still cannot recurse.
///
/// A struct is constructed, destructured and modified as in Rust: `Welford { mean, m2: 0.0, ..other }`, `let Welford { mean, .. } = w`,
/// `w.count += 1.0` of a `let mut`. Functions, closures, tuples, `if` and loops accept structs. `reduce` and `associative_scan` combine
/// structs of tiles field by field, with a closure or a function such as `Welford::combine`.
///
/// The generics of a struct are inferred from its fields or named: `Welford::<f32>::zero()`. A type parameter of the struct itself needs no
/// bound. Constants in fields take their type from the values that they are combined with, as in a tuple. A method with the name of a
/// builtin, such as `z.abs()`, is the struct's own. A kernel's parameters cannot be structs.
///
/// # Names
///
/// A name in a call denotes a builtin of the language first. A function whose name belongs to another language or to a later version, such
/// as `add` or `rand`, must be called by its path, `self::add(..)`. Functions are resolved like macros: a function with the name of a macro
/// or an attribute of Rust, such as `write`, `line` or `feature`, hides it in its module or is ambiguous, and needs another name. Names
/// with a capital letter are structs.
///
/// If rustc reports "cannot find macro `f`", there are two possible causes. There is no builtin, device function or struct `f` in scope, or `f`
/// belongs to a cycle of functions that call each other, which is allowed only within one `#[device] mod`. The argument `crate = path`
/// gives the path of `galatea`, if it was renamed.
#[proc_macro_attribute]
pub fn device(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel_frontend::device(arguments.into(), item.into(), &crate_name()).into()
}

/// The end of the macro chain that collects the sources of a kernel's device functions.
#[doc(hidden)]
#[proc_macro]
pub fn __kernel(collected: TokenStream) -> TokenStream {
    let expansion = kernel_frontend::kernel_bundle(collected.into(), &crate_name(), &Files::of_this_target());
    let has_variants = !expansion.variants.is_empty();
    let tokens = finish(expansion);
    // The macro is an expression, and `finish` puts an item before it, so a block is needed.
    if has_variants { TokenTree::Group(Group::new(Delimiter::Brace, tokens)).into() } else { tokens }
}

/// The end of the macro chain that collects the sources of a device function's callees.
#[doc(hidden)]
#[proc_macro]
pub fn __device(collected: TokenStream) -> TokenStream {
    kernel_frontend::device_bundle(collected.into()).into()
}

/// Imports a macro under the name of each builtin, so that rustc suggests the builtins.
#[doc(hidden)]
#[proc_macro]
pub fn __builtin_names(of: TokenStream) -> TokenStream {
    kernel_frontend::builtin_names(&of.into()).into()
}

/// The name of the crate that is being compiled, from cargo. Without cargo there is only one crate.
fn crate_name() -> String {
    std::env::var("CARGO_CRATE_NAME").unwrap_or_default()
}

/// Makes cargo recompile the crate when `GALATEA_PTX_DIR` changes, because the code mentions the variable.
const MENTION: &str = r#"const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!("GALATEA_PTX_DIR");"#;

fn finish(expansion: Expansion) -> TokenStream {
    if let Some(folder) = std::env::var_os("GALATEA_PTX_DIR") {
        keep(Path::new(&folder), &expansion);
    }
    let mut tokens = TokenStream::new();
    if !expansion.variants.is_empty() {
        tokens.extend(MENTION.parse::<TokenStream>());
    }
    tokens.extend(TokenStream::from(expansion.tokens));
    tokens
}

/// Writes `<crate>/<kernel>-<key>-w<warps>-<target>.ptx`, because crates may have kernels of one name, and appends the expansion's lines to
/// `variants.jsonl`. An error of writing is a warning and does not fail the build.
fn keep(folder: &Path, expansion: &Expansion) {
    let warn = |path: &Path, written: std::io::Result<()>| {
        if let Err(error) = written {
            eprintln!("warning: GALATEA_PTX_DIR: cannot write {}: {error}", path.display());
        }
    };
    let own = folder.join(crate_name());
    for variant in &expansion.variants {
        let path = own.join(variant.file_name(&expansion.name));
        warn(&path, std::fs::create_dir_all(&own).and_then(|()| std::fs::write(&path, &variant.ptx)));
    }
    let (path, lines) =
        (folder.join("variants.jsonl"), expansion.summary(&std::env::var("CARGO_PKG_NAME").unwrap_or_default(), &crate_name()));
    if !lines.is_empty() {
        // Several crates are compiled at the same time. Not every file system appends the whole of a write at once, or has locks.
        let add = |mut file: std::fs::File| {
            let _ = file.lock();
            file.write_all(lines.as_bytes())
        };
        warn(&path, std::fs::create_dir_all(folder).and_then(|()| OpenOptions::new().create(true).append(true).open(&path)).and_then(add));
    }
}
