//! The doorway: `#[kernel]`, `#[device]` and `#[autotune]`, one call each into `kernel-lang`.
//!
//! Nothing is decided here. Only this crate may touch files while a user's crate compiles: variants are kept from build to build, and where
//! `GALATEA_PTX_DIR` names a folder, the PTX of every variant is written there.

mod store;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use kernel_lang::frontend::{self, Expansion};
use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use store::Files;

/// Makes a function a GPU kernel: checked and lowered to PTX while the crate compiles.
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
/// The function becomes a launcher: `double::<f32, 1024>(&x, &mut y, n).grid(cdiv(n, 1024)).launch()?`. The words of the body are
/// documented in `galatea::dsl`. Arguments, all optional:
///
/// | argument | meaning |
/// |---|---|
/// | `N = [1024, 4096]` | values of the constant parameter `N` to compile now; any other value is compiled when it is first launched |
/// | `T = [f32, bf16]` | types to compile now; without it all that the bound allows |
/// | `num_warps = 8` | warps of a CTA: a power of two up to 32, 4 if not given |
/// | `num_ctas = 4` | CTAs that share one program, a cluster: a power of two up to 16, 1 if not given; more need sm_90. They share elementwise ops, accesses and reductions |
/// | `maxnreg = 128` | the most registers that the assembler may give a thread |
/// | `num_stages = 3` | how many turns of a loop are under way at once, at most, where its `range` does not say: all but one only load |
/// | `heuristics(EVEN_N = n % BLOCK_SIZE == 0)` | constants that the launch computes, see below |
/// | `assume(n = 4096, shift % 16 == 0)` | facts of arguments that a variant may count on, see below |
/// | `do_not_specialize = [stride]`, or `do_not_specialize` | no variants are made unasked for strides that are 1: of these arguments, or of all |
/// | `unchecked` | no bounds checks, pointers of addresses, `inline_ptx!` that reaches memory: the launcher becomes an `unsafe fn` |
/// | `contract` | on a GPU `a * b + c` and sums of products may be rounded once, as by `fma`: faster, and different in the last place from the CPU |
/// | `crate = path` | where `galatea` is, if it was renamed |
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
/// Heuristics give constant parameters of the kernel, `num_warps`, `num_ctas`, `num_stages` and `maxnreg`, by expressions of Rust that every launch
/// computes, in their order. An expression sees the scalar arguments, the constants that the launch names, what an autotuned kernel's configuration
/// fixes, and the heuristics before it; of a tensor `x.len()`, of a view `extent(x, 0)`. In whichever of the two attributes they stand, they come
/// behind the configuration. What they give leaves the launcher's generics, and the grid is a function of the configuration, which has it:
/// `.grid(|config| cdiv(n, config.BLOCK_SIZE))`.
///
/// Compiled now are the values that an expression can be seen to give: all that its branches give, both of a `bool`, else those that are listed. Any
/// other is compiled when it is first launched.
///
/// # Facts of arguments
///
/// ```ignore
/// #[kernel(BM = [32], BN = [128], assume(n = 4096))]
/// fn copy<T: Element, const BM: usize, const BN: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize, x_row: isize, x_col: isize, y_row: isize, y_col: isize) { .. }
/// ```
///
/// Where an integer argument is the distance between neighbours of a tile, as `x_col` in `x + rows[(.., None)] * x_row + columns[(None, ..)] * x_col`,
/// there is, unasked, a variant for launches in which it is 1: it reads and writes up to 16 bytes at a time, and the other one element by element.
/// `assume` adds facts: that an integer or a `bool` is a number that is written there, or that a power of two divides an integer.
///
/// A fact selects a variant, and nothing else. A launch asks which facts hold for its arguments, in a few nanoseconds; where one does not, it runs another
/// variant, so that nothing that is assumed can be wrong. `.checked()` launches and those on the CPU run the kernel as it is written.
///
/// Compiled now are the variant that counts on nothing; the one where the last stride of each tensor, in the order of the parameters, is 1; and for each
/// `assume(..)` one where all of its facts hold, and these strides are 1 if it does not speak of strides. Another combination is compiled when a launch first
/// brings it; with `.compile_in_background()` on another thread, while one of these serves.
///
/// # Reading the PTX
///
/// To read the PTX, build with the environment variable `GALATEA_PTX_DIR` naming a folder: each variant is written there as
/// `<kernel>-<types and constants>-w<warps>-<target>.ptx`, other parts of a schedule behind the warps; the last constant of a variant that counts on facts
/// has a bit for each. Cargo compiles crates that have kernels anew when the variable changes. `cargo galatea variants` sets it, and lists the variants with
/// what they take.
///
/// # What a build keeps
///
/// Variants are kept inside of the target directory, by their content: a build after an edit compiles those that changed, and `cargo clean` takes them along.
/// The environment variable `GALATEA_BUILD_CACHE=off` has each build compile all.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    finish(frontend::kernel(arguments.into(), item.into(), &Files::of_this_target()))
}

/// Makes a kernel choose its configuration by measuring, at the first launch of each key.
///
/// ```ignore
/// #[autotune(configs = [Config { BLOCK_SIZE: 1024, num_warps: 4 }, Config { BLOCK_SIZE: 4096, num_warps: 8 }], key = [n])]
/// #[kernel]
/// fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) { .. }
/// ```
///
/// | argument | meaning |
/// |---|---|
/// | `configs = [Config { B: 64, num_warps: 4 }, ..]` | the configurations: values of constant parameters, which all of them name, and of `num_warps`, `num_ctas`, `num_stages`, `maxnreg`, which are as `#[kernel(..)]` has them where one names none |
/// | `configs = product(B = [64, 128], num_warps = [4, 8]) if B * num_warps < 1024` | every combination for which the condition holds; what it leaves out does not exist. A product may also stand in the list |
/// | `key = [n, bucket(m), bucket(k, 512), extent(x, 1)]` | what of the arguments chooses: a value, its next power of two, its next multiple of a number; an extent of a view. Element types, constants that the launch names, the device and which tensors are aligned to 16 bytes always do |
/// | `prune = \|config\| config.B < n` | the configurations that do not fit the arguments of a launch: they are neither timed nor run. If none is left, the launch is an error that lists them |
/// | `prune = top_k(4, \|config\| cost)` | only those with the least estimated cost, an `f64`, are timed, the others only if none of them runs. `prune = [\|config\| .., top_k(..)]` is both |
/// | `heuristics(EVEN_N = n % B == 0)` | constants that the launch computes behind its configuration, see [`macro@kernel`] |
/// | `restore_value = [y]` | tensors that each run of the tuning finds as the launch did. Those that the kernel both reads and writes always are; a kernel that writes through addresses says `restore_value = []`, that another run changes nothing there |
/// | `reset_to_zero = [y]` | tensors that are zeros before each run of the tuning, and before the one that counts: cheaper than a copy, and right if the launch brings zeros |
/// | `warmup = 5`, `rep = 100` | milliseconds of a tuning, before it measures and then |
/// | `pre_hook = \|config\| ..`, `post_hook = \|config\| ..` | called on the host before and behind each run of the tuning |
/// | `records = "tuned/h200.json"` | a file of what was tuned before, or a list of them, from the folder of `Cargo.toml` on: `galatea tune` and `galatea cache export` write it, a team commits it, and it becomes a part of the program. A key that it has is not tuned, see below |
/// | `verify = cpu`, `verify = reference`, `verify(cpu, rtol = 1e-2)` | a configuration that computes something else than the CPU, or than a function, cannot win, see below |
///
/// Closures see the arguments as heuristics do, and capture nothing else.
///
/// A launch that tunes runs the kernel many times; in later ones with the same key the choice is looked up. `.report()` in place of `.launch()` tells what
/// was tried, and runs nothing besides; so does every tuning if the environment variable `GALATEA_PRINT_TUNING` is set. How it is measured: `galatea::tune`.
///
/// # Records that are committed
///
/// A record of a file is used for a key that is new to the process, before what lies on the disk, so that all machines do what was committed. It must be of
/// what runs: of the same code of the kernel (a comment and a place in the source do not count), the same configurations, the same GPU, and the values of the key;
/// the driver may be another one. What was chosen must load. Otherwise the file is as good as not there, and the key is tuned. With `GALATEA_PRINT_TUNING`
/// it is said why. A changed file compiles the crate anew; one that is not there, or is none of records, is an error where it is named.
///
/// # Results that are compared
///
/// With `verify = cpu` the CPU runs the kernel first, on a copy of the launch's arguments, in the first configuration; each configuration then runs on the arguments as
/// they were, and all tensors that the kernel takes to write are compared. One that differs is a record with its reason, such as ``differs from the
/// reference: `y[7]` is 3.5 instead of 4 (1 of 1000 elements differ)``. The winner runs once more in the end. The name of a function stands for the
/// reference instead: it takes the kernel's parameters in their order, `&[T]` for `Ptr<T>`, `&mut [T]` for `PtrMut<T>`, and scalars as they are:
///
/// ```ignore
/// fn reference(x: &[f32], y: &mut [f32], n: usize) { .. }
/// ```
///
/// Integers must be equal. Floats may be off by `rtol` of the value and of the mean magnitude of the tensor together, 1e-4 for `f32`, 1e-9 for `f64`, 4e-3 for
/// `f16`, 3e-2 for `bf16`, 0.25 for `f8e4m3` and 0.5 for `f8e5m2` if it is not said. It costs the time of the reference and a copy of what is written, once a
/// key. On the CPU, where nothing is tuned, nothing is compared.
///
/// # The launcher
///
/// Every configuration is compiled now. The constants that they name leave the launcher's generics; the grid is a function of the
/// configuration: `add(&x, &y, &mut out, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?`. One that all share is `|_| rows`.
#[proc_macro_attribute]
pub fn autotune(arguments: TokenStream, item: TokenStream) -> TokenStream {
    finish(frontend::autotune(arguments.into(), item.into(), &Files::of_this_target()))
}

/// Makes a function a helper of kernels, to be called from any of them, in this and in other modules and crates; or a struct one of their values.
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
/// The body is written in the language of kernels, and becomes a part of each caller. It sees the parameters, the generics and, by their
/// names and paths, other device functions; it cannot recurse. Types are checked where a kernel calls it, for each set of its generics: of a
/// function that no kernel calls only the syntax and the signature are.
///
/// | in the signature | means |
/// |---|---|
/// | `x: Value<T>` | a scalar or a tile of any shape with elements `T` |
/// | `x: T`, `x: f32`, `n: usize` | one scalar; a constant of the call stays a constant in the body |
/// | `x: Ptr<T>`, `y: PtrMut<T>` | a pointer of the kernel, with its offsets |
/// | `x: View<T, 2>`, `y: ViewMut<T, 2>` | a view of the kernel, or what `view` makes |
/// | `(Value<T>, usize)` | several; tuples go in and come out |
/// | `w: Welford<T>` | a struct that is marked `#[device]`, as below |
/// | `f: impl Fn(Value<T>) -> Value<T>` | a closure of the call, `|v| v * scale`, which sees the variables of the caller; it is called, `f(x)`, or given on |
/// | `<T: Float>` | found from the arguments, or named: `gelu::<f32>(x)`; bounds are those of kernels |
/// | `<const N: usize>` | named: `window::<64>(start)` |
/// | `#[option(1.0)] by: f32` | given by its name or left out: `scaled(x, by = 2.0)`; options come last |
/// | `#[option] mask: Value<bool>` | an option without a default; where it is left out, it is left out wherever it is passed on |
///
/// `return x;` may stand in every `if` that always returns, but not in a loop. On a condition that a call decides, such as `T == f32` or
/// one on a constant, only the branch that is taken exists.
///
/// # Structs
///
/// A struct holds scalars, tiles, pointers, views, tuples and other structs under names. It costs nothing: a kernel computes with its fields. One
/// without functions is marked by itself, `#[device] struct Range { low: Value<f32>, high: Value<f32> }`; a struct and its functions stand in one
/// module, because a macro sees nothing but its own item:
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
/// In such a module every function is a device function, every struct a device struct, and an `impl` block holds functions with `self`, which is
/// copied, or without; what is none of these, such as imports and kernels, is left as it is. Names of one module may go in circles.
///
/// A struct is made, taken apart and changed as in Rust: `Welford { mean, m2: 0.0, ..other }`, `let Welford { mean, .. } = w`, `w.count += 1.0` of a
/// `let mut`. It goes through functions, closures, tuples, `if` and loops; `reduce` and `associative_scan` combine structs of tiles field by field, with
/// a closure or a function, `Welford::combine`. Its generics are found from its fields, or named: `Welford::<f32>::zero()`; a type parameter of the
/// struct itself needs no bound. Constants in fields take their type from what they meet, as in a tuple. A method that has the name of a word,
/// `z.abs()`, is the struct's. A kernel's own parameters are no structs.
///
/// # Names
///
/// A call means a word of the language first. A function whose name belongs to another language or to a later version, such as `add` or
/// `rand`, is called by its path, `self::add(..)`. Functions are found as macros are: one with the name of a macro or of an attribute of Rust, such as
/// `write`, `line` or `feature`, hides it in its module or is ambiguous, and is better called otherwise. Names with a capital letter are structs. Where rustc "cannot find macro `f`", there is no device
/// function or struct `f` in scope, or it is one of a circle of functions that call each other, which only those of one `#[device] mod` may name. The argument `crate = path` says where `galatea` is, if it was renamed.
#[proc_macro_attribute]
pub fn device(arguments: TokenStream, item: TokenStream) -> TokenStream {
    frontend::device(arguments.into(), item.into(), &crate_name()).into()
}

/// What the sources of a kernel's device functions end in.
#[doc(hidden)]
#[proc_macro]
pub fn __kernel(collected: TokenStream) -> TokenStream {
    let expansion = frontend::kernel_bundle(collected.into(), &crate_name(), &Files::of_this_target());
    let has_variants = !expansion.variants.is_empty();
    let tokens = finish(expansion);
    // The macro stands for an expression, in front of which `finish` puts an item.
    if has_variants { TokenTree::Group(Group::new(Delimiter::Brace, tokens)).into() } else { tokens }
}

/// What the sources of a device function's callees end in.
#[doc(hidden)]
#[proc_macro]
pub fn __device(collected: TokenStream) -> TokenStream {
    frontend::device_bundle(collected.into()).into()
}

/// The crate that is being compiled: cargo says it, and without cargo there is only one.
fn crate_name() -> String {
    std::env::var("CARGO_CRATE_NAME").unwrap_or_default()
}

/// The macros run again once `GALATEA_PTX_DIR` changes: cargo compiles a crate anew whose code mentions the variable.
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

/// Writes `<kernel>-<key>-w<warps>-<target>.ptx`, and adds the expansion's lines to `variants.jsonl`. A folder that cannot be written costs a warning, not
/// the build.
fn keep(folder: &Path, expansion: &Expansion) {
    let warn = |path: &Path, written: std::io::Result<()>| {
        if let Err(error) = written {
            eprintln!("warning: GALATEA_PTX_DIR: cannot write {}: {error}", path.display());
        }
    };
    for variant in &expansion.variants {
        let path = folder.join(variant.file_name(&expansion.name));
        warn(&path, std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, &variant.ptx)));
    }
    let (path, lines) =
        (folder.join("variants.jsonl"), expansion.summary(&std::env::var("CARGO_PKG_NAME").unwrap_or_default(), &crate_name()));
    if !lines.is_empty() {
        // At once, as several crates are compiled at a time.
        let add = |mut file: std::fs::File| file.write_all(lines.as_bytes());
        warn(&path, std::fs::create_dir_all(folder).and_then(|()| OpenOptions::new().create(true).append(true).open(&path)).and_then(add));
    }
}
