//! Reference of the kernel language: its builtins, types and statements.
//!
//! Inside `#[kernel]` the builtins need no import: the macro reads the body itself. The functions here exist for documentation and for
//! editors. Calling one outside a kernel panics.
//!
//! # Values
//!
//! * A **scalar** is one number or `bool` with the same value in the whole program: a parameter, `program_id(0)`, `n / 2`.
//! * A **tile** is a vector, a matrix or a block of more axes that the program computes at once: `arange(0, N)`, or the result of [`load`].
//!   Its extents are constants, ideally powers of two. Other extents take the registers of the next power of two; the padding is never read,
//!   written or combined. `rows[(.., None)]` adds a last axis (a column), `columns[(None, ..)]` adds a first axis (a row).
//! * A **pointer** is a parameter [`Ptr`] or [`PtrMut`] plus offsets in elements: `x + offsets`, `x + row * stride + columns`.
//!   `(x + i) as u64` is its address. In an `unchecked` kernel [an address can be cast to a pointer](#pointers-in-memory).
//! * A **view** is a parameter [`View`] or [`ViewMut`], or the result of [`view`]: a tensor of several axes with a known shape. It is read
//!   and written by blocks: `x.load([i, j], [M, N])` and `y.store([i, j], tile)`.
//! * A **constant** is a literal, a `const` generic, arithmetic on constants, or an `if` or a `match` on constants that chooses between them.
//!   It takes the type of the other operand.
//!
//! Types of constants:
//!
//! * Without another operand, as in `let mut count = 0;`, an integer is `i64` and a float is `f32`. A suffix (`0i32`, `0.0f64`) overrides
//!   this, and so does the declared type of an `if`: `let step: u8 = if is_first { 1 } else { 2 };`.
//! * `i32::MAX`, `f32::EPSILON` and `std::f32::consts::PI` are constants of the type that they name, and so are `T::MAX`, `T::MIN`,
//!   `T::EPSILON` and `T::MIN_POSITIVE` of a type parameter that has them. `i32::BITS` and `I::BITS` take the type of the other operand.
//! * Infinities and NaN take the float type of the other operand, whatever type they name: `f32::INFINITY`, or `T::INFINITY`,
//!   `T::NEG_INFINITY` and `T::NAN` for a type parameter bound by `Float`.
//! * A `const` generic has a range and no type: `B + B` is exact, and a value that does not fit its final type is an error. `let b: u32 = B`,
//!   `B as u32` and a parameter `b: u32` give it a type; `b + b` then wraps.
//! * `const SCALE: f32 = 0.5;` is allowed in a body, and `const H: usize = if B > 16 { 16 } else { B };` is an extent.
//! * A `const` of Rust outside of a kernel is written by its name or path, in capitals: `x + EPS`, `config::SCALE`. A launch passes its value as
//!   an argument, so it cannot be an extent or another constant that the compiler must know. It has its Rust type: the value that it meets
//!   tells the type, and rustc checks it. An expression of such constants and literals, `-EPS` or `2.0 * SCALE as f32`, is computed by Rust.
//!   `#[device]` functions do not see such constants.
//!
//! # Types
//!
//! Element types are `f16`, `bf16`, `f32`, `f64`, `i8` to `i64`, `u8` to `u64`, `bool`, and the storage types `f8e4m3` and `f8e5m2`. `usize`
//! and `isize` are `i64`, because an index is exact and signed. A type parameter is bound by `Float`, `Int`, `Number` or `Element`.
//!
//! * Integers widen implicitly if every value is kept (`i32` to `i64`, `u8` to `i16`). Every other conversion needs `as` and follows Rust:
//!   floats to integers saturate, wider to narrower floats round to nearest even, `bool` is 0 or 1. `x as bool`, which Rust does not have, is
//!   `x != 0`.
//! * `f32 + bf16` is an error, and so is `T + f32`: cast one side.
//! * Arithmetic on `f16` and `bf16`, and every function of [`math`], is computed in `f32` and rounded once.
//! * Integers wrap, typed constants included. `x / 0` is 0 and `x % 0` is `x`. A shift by the width or more gives 0, or the sign.
//!
//! 8-bit floats:
//!
//! * `f8e4m3` has 4 bits of exponent, 3 of fraction, no infinities, and a maximum of 448. `f8e5m2` has 5 and 2 bits and a maximum of 57344.
//! * They can be loaded, stored, compared, sorted, selected and cast, but have no arithmetic: `load(q + at) as f32 * scale`, and back
//!   `(x / scale) as f8e4m3`.
//! * A cast to them rounds once to nearest even. Values beyond the maximum, infinities included, become the largest number of their sign (not
//!   infinity); a NaN becomes the NaN with the bits `0x7f`. These are the bits of the GPU's own conversion (`cvt.rn.satfinite`, `sm_89`);
//!   older GPUs compute the same bits in software. Casts from them are exact.
//! * They satisfy the bound `Element`, but not `Float`. On the host they are `galatea::f8e4m3` and `galatea::f8e5m2`.
//!
//! # Operators
//!
//! * `+ - * / %` on numbers
//! * `& | ^ !` on integers and `bool`
//! * `<< >>` on integers
//! * `== != < <= > >=` on all types
//! * `&& ||` on `bool`; on scalars the right side runs only if it is needed
//!
//! A scalar combines with a tile element by element. Two tiles must have the same number of axes; along each axis the extents are equal, or
//! one of them is 1 and is repeated: `rows[(.., None)] * stride + columns[(None, ..)]`. Masks, `other` and stored values broadcast to the
//! offsets in the same way.
//!
//! # Calls
//!
//! Required arguments are positional: `gather(x, index, 0)`. A parameter that is an `Option` in the signature is optional and is passed by
//! name: `sum(x, axis = 1)`, `load(x + i, mask = m)`. Most functions of one value are methods too, with the same options: `x.exp()`.
//!
//! # Functions
//!
//! Kernels and device functions call a function marked `#[device]` by its name or path, in any module or crate. It is written in the same
//! language and is inlined into its caller. A parameter `x: Value<T>` takes a scalar or a tile of any shape; `n: usize` takes one scalar. A
//! constant argument stays constant in the body. `T == f32` and `T != f32` compare types and are constants. The documentation of `#[device]`
//! lists what else a signature may contain, such as pointers, tuples, closures and options.
//!
//! A closure bound to a name is a function local to its block of the kernel. It can use the variables declared before it, and may load and
//! store. It cannot assign to variables outside it. Each call inlines it:
//!
//! ```text
//! let at = |i, j| load(x + i * n + j, mask = mask) as f32;
//! let lerp = |a, b, part| a + (b - a) * part;
//! let top = lerp(at(row, column), at(row, column + 1), right);
//! ```
//!
//! # Structs
//!
//! A struct marked `#[device]` has scalars, tiles, pointers, views, tuples and structs as fields. It may have functions, `w.combine(other)`
//! and `Welford::of(x)`, if it is defined with them in a `#[device] mod`.
//!
//! * Construction: `Welford { mean, m2, count }` or `Welford { count, ..w }`.
//! * Destructuring: `let Welford { mean, .. } = w`.
//! * Fields of a `let mut` struct are assignable.
//! * Everything else treats it as the tuple of its fields: loops carry it, branches select it, and [`reduce`] and [`associative_scan`]
//!   combine structs of tiles, `reduce(w, 0, |a, b| a.combine(b))`.
//!
//! The documentation of `#[device]` has an example.
//!
//! # Control flow
//!
//! * `if`/`else` on a scalar `bool`. If the condition is constant, only the branch that is taken is compiled.
//! * `match` on a scalar, with numbers, `true` and `false`, ranges, constants, alternatives with `|`, names, `_` and guards:
//!   `match n { 0 => a, 1 | 2 => b, MODE => c, other if other % 2 == 0 => d, _ => e }`. It compiles to a chain of `if`s.
//! * `for i in a..b`, `a..=b`, `(a..b).step_by(s)`, [`range`], [`static_range`], each with an optional `.rev()` that starts with the last
//!   index.
//! * `while`, `loop`, `break`, `continue` and early `return`.
//!
//! A variable keeps its type: the accumulator of a loop must be a tile from the start, `let mut sum = zeros::<f32>([N]);`.
//!
//! `static_assert!(N >= 64, "N is too small")` checks constants when the kernel is compiled. `device_assert!(index < n, "index too large")`
//! checks values, for a tile every element, in `.checked()` launches. A failing launch reports the message, the line and the program. Other
//! launches on a GPU do not evaluate the condition.
//!
//! # Printing
//!
//! `device_print!("row {row}: {} of {n}, bits {:x}", x, x)` prints when the kernel runs, on a GPU too. It prints one line per element of the
//! values, with the source line, the program and the element's index. Scalars are repeated beside tiles; scalars alone print one line.
//!
//! ```text
//! src/main.rs:12: program (0, 0, 0), element [3]: row 0: 1.5 of 7, bits 0x3fc00000
//! ```
//!
//! A placeholder is `{}` for the next value, `{name}` for a variable, and `{:x}` or `{name:x}` for bits in hexadecimal. Values have any type
//! except pointers, and all have one shape.
//!
//! * The lines go to standard error (or to `galatea::capture_prints`) after the launch has finished, ordered by program and then by time.
//! * A launch has a buffer of 1 MiB: a little more than 32 bytes for each `device_print!` of a program, and 8 for each value. Output that
//!   does not fit is dropped and counted.
//! * A launch of such a kernel blocks until it is done, and `#[autotune]` does not tune it.
//! * A closure cannot print.
//!
//! `static_print!("N is {N}, x is {}", x)` prints when the kernel is compiled: the value of a constant, the type of anything else. For the
//! values that `#[kernel(..)]` lists, the text is a rustc warning at that line. For other values it is printed to standard error at their
//! first launch.
//!
//! # Inline PTX
//!
//! `inline_ptx!` is an expression: PTX instructions that run once for each element, for operations that have no builtin, and a closure that
//! computes the same result. The CPU runs the closure, and tests can compare the PTX with it.
//!
//! ```ignore
//! // Bytes 0 and 1 of two words in turn.
//! let d = inline_ptx!("prmt.b32 {d}, {a}, {b}, 0x5140;", d: u32, a = x, b = y,
//!     cpu = |a, b| (a & 0xff) | (b & 0xff) << 8 | (a & 0xff00) << 8 | (b & 0xff00) << 16);
//!
//! // Several texts are lines of one, several results a tuple, and a variable that only the text names is an operand, as in `format!`.
//! let (least, most) = inline_ptx!("min.f16x2 {least}, {u}, {v};", "max.f16x2 {most}, {u}, {v};",
//!     least: f16, most: f16, pack = 2, cpu = |u, v| (min(u, v), max(u, v)));
//! ```
//!
//! * `y: f32` declares a result and its type, `x = value` an operand. Operands are scalars and tiles that broadcast as for any operator, and
//!   have types: `3u32`, not `3`. In the text, `{x}` is the register; `{{` and `}}` are braces, `mov.b32 {{lo, hi}}, {x};`. The text is a
//!   scope and may declare its own registers, `.reg .b32 t;`.
//! * Register types: a predicate for `bool`; `.b32` for 8-bit types, floats included, sign- or zero-extended (a result takes the low bits);
//!   `.b16` for 16-bit types; `.b32` and `.b64` for 32-bit and 64-bit integers; `.f32` and `.f64` for `f32` and `f64`.
//! * `pack = k`, a power of two up to 16, runs the text once for `k` elements. Elements of 8 and 16 bits are packed into 32-bit registers,
//!   the first one lowest: four `u8` or two `f16` in one. If a value takes several registers they are `{x[0]}`, `{x[1]}`. It is unspecified
//!   which elements are grouped.
//! * `cpu = |a, b| ..` takes the operands in their order, followed by the operands that only the text names. It returns the result: `(y, z)`
//!   for several, `{}` for none. It computes element by element and may use all elementwise builtins.
//! * A text is pure: its results depend on its operands only. The compiler may run it once for equal operands, twice, or not at all.
//!   `volatile = true` keeps its position and the number of its executions; the closure may then read and write memory. Elements held by
//!   several threads (those of scalars, for example) and the padding of a tile still run once for each copy. A thread with fewer than `k`
//!   elements runs some of them again.
//! * `isa = 8.1` states the PTX ISA version that an instruction needs beyond the one of its target, which is 7.0 for `sm_80` and 8.0 for
//!   `sm_90a`. An instruction that the target does not have is a driver error when the kernel is loaded: branch on `target() >= 90`.
//!
//! A safe kernel accepts texts that only compute from their registers. Instructions that read memory, other threads or special registers, or
//! that jump, need an `unchecked` kernel. Instructions that write, wait or end the thread need `volatile = true` as well. In such a kernel
//! `(x + offsets) as u64` are the addresses of a pointer, as in `ld.global.f32 {v}, [{address}];`.
//!
//! Checking the kernel also checks the text:
//!
//! * placeholders and braces match, and each result and operand is used;
//! * statements end in `;`, their instructions exist, and the names they use are declared;
//! * operands are not written to;
//! * in texts that only compute, every register is set before it is read and each result is set at the end, also under guards such as `@p`.
//!
//! The assembler checks that types fit the instruction, when the kernel is loaded. The accuracy is that of the instruction.
//!
//! # Pointers in memory
//!
//! `address as Ptr<f32>` and `address as PtrMut<f32>` cast an address, one `u64` or `i64`, to a pointer. A list of tensors is thus a tensor
//! of their addresses; `Tensor::address` returns an address on every device. Accesses, atomics, views and device functions take such a
//! pointer as any other.
//!
//! ```ignore
//! /// Scales tensors of any number and lengths in one launch: a column of the grid is a tensor.
//! #[kernel(B = 1024, unchecked)]
//! fn scale_all<const B: usize>(addresses: Ptr<u64>, lengths: Ptr<u32>, factor: f32) {
//!     let x = load(addresses + program_id(1)) as PtrMut<f32>;
//!     let at = program_id(0) * B + arange(0, B);
//!     let mask = at < load(lengths + program_id(1));
//!     store(x + at, load(x + at, mask = mask) * factor, mask = mask);
//! }
//! ```
//!
//! The compiler knows nothing about the memory behind such an address. The cast therefore needs an `unchecked` kernel, which is `unsafe` to
//! launch. The caller guarantees that:
//!
//! * the address points to elements of this type and is aligned for them;
//! * masks keep accesses within the number of elements;
//! * nobody writes the elements behind a `Ptr` during the launch;
//! * the tensors stay alive, and work on them in other streams is ordered with the launch, which does neither itself.
//!
//! A `.checked()` launch still checks all other accesses. For these pointers it checks the start only: a negative offset is an error, an
//! offset beyond the end is not detected (a simulated GPU detects accesses outside the allocation).

#![allow(unused_variables, reason = "the functions are documentation: nothing runs")]

pub mod atomic;
mod bits;
mod fast;
mod floats;
mod lookup;
pub mod math;
mod memory;
mod overlap;
mod product;
mod program;
mod random;
mod reduction;
mod shape;
mod special;
mod tile;

pub use atomic::*;
pub use bits::*;
pub use fast::*;
pub use floats::*;
pub use lookup::*;
pub use math::*;
pub use memory::*;
pub use overlap::*;
pub use product::*;
pub use program::*;
pub use random::*;
pub use reduction::*;
pub use shape::*;
pub use special::*;
pub use tile::*;

use std::marker::PhantomData;

/// A kernel parameter: a tensor that the kernel reads. The launch passes `&Tensor<T>`, a view, or `&CudaSlice<T>`.
///
/// The pointer knows the length of its tensor: elements at offsets outside it read as `other` (or 0), so that no offset is undefined
/// behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Ptr<T>(PhantomData<T>);

/// A kernel parameter: a tensor that the kernel reads and writes. The launch passes `&mut Tensor<T>`, a view, or `&mut CudaSlice<T>`.
///
/// Elements at offsets outside the tensor are not stored.
#[derive(Clone, Copy, Debug)]
pub struct PtrMut<T>(PhantomData<T>);

/// A kernel parameter: a tensor of `RANK` axes that the kernel reads, with its shape and strides. The launch passes `&Tensor<T>` or a view of
/// that many axes; another number of axes is an error of the launch. Tensors and their views are row-major, so the elements along the last
/// axis are contiguous in memory.
///
/// The kernel reads it by blocks. `x.load([i, j], [M, N])` is the tile of shape `[M, N]` whose first element is element `(i, j)`. Elements
/// outside the tensor, on any side, are 0, or `other = ..`; `cache` and `evict` are those of [`load`]. The indices count elements, not
/// blocks, and are computed at run time; the shape is constant.
///
/// `extent(x, 1)` is the tensor's extent along an axis, an `i64` scalar. To gather elements by indices from data, such as the rows named by a
/// tile, use a [`Ptr`]: `load(table + ids[(.., None)] * width + columns[(None, ..)])`. [`view`] makes a view from a pointer.
///
/// ```ignore
/// /// The sums of the rows of a matrix, M of them a program.
/// #[kernel(M = 4, N = 256)]
/// fn row_sums<const M: usize, const N: usize>(x: View<f32, 2>, y: ViewMut<f32, 1>) {
///     let row = program_id(0) * M;
///     let mut total = zeros::<f32>([M]);
///     for column in (0..extent(x, 1)).step_by(N) {
///         total += sum(x.load([row, column], [M, N]), axis = 1);
///     }
///     y.store([row], total);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<T, const RANK: usize>(PhantomData<T>);

/// A kernel parameter: a [`View`] of a tensor that the kernel reads and writes. The launch passes `&mut Tensor<T>` or a `&mut` view of that
/// many axes.
///
/// `y.store([i, j], tile)` stores a tile with as many axes as the view, starting at element `(i, j)`; elements outside the tensor are not
/// stored.
#[derive(Clone, Copy, Debug)]
pub struct ViewMut<T, const RANK: usize>(PhantomData<T>);

/// A scalar or a tile with elements `T`.
#[derive(Clone, Copy, Debug)]
pub struct Value<T>(PhantomData<T>);

/// The extents of a tile, known at compile time: `[BLOCK_SIZE]`.
#[derive(Clone, Copy, Debug)]
pub struct Shape;

fn only_in_a_kernel() -> ! {
    panic!("this is a builtin of the kernel language: it has a meaning only inside `#[kernel]`")
}
