//! THE WORDS OF A KERNEL, as documentation.
//!
//! Inside `#[kernel]` these words need no import: the macro reads the body itself. The functions here are what an editor shows for
//! them; calling one outside of a kernel does nothing but panic.
//!
//! # Values
//!
//! * A **scalar** is one number or `bool`, the same for the whole program: a parameter, `program_id(0)`, `n / 2`.
//! * A **tile** is a vector, a matrix or a block of more axes that the program computes at once: `arange(0, N)`, what [`load`] reads.
//!   Its extents are constants, at best powers of two: others are kept in the registers of the next one, and what lies behind the tile's
//!   elements is never read, written or combined. `rows[(.., None)]` is a tile with a new axis behind, a column; `columns[(None, ..)]`
//!   one with a new axis in front, a row.
//! * A **pointer** is a parameter [`Ptr`] or [`PtrMut`] plus offsets in elements: `x + offsets`, `x + row * stride + columns`. `(x + i) as u64` is its
//!   address, and in an `unchecked` kernel [an address may become a pointer](#pointers-in-memory).
//! * A **view** is a parameter [`View`] or [`ViewMut`], or what [`view`] makes: a tensor of several axes whose shape is known, read and written by
//!   blocks, `x.load([i, j], [M, N])` and `y.store([i, j], tile)`.
//! * A **constant** is a literal, a `const` generic, or arithmetic on them. It takes the type of what it meets. Where it meets
//!   nothing, as in `let mut count = 0;`, an integer is `i64` and a float `f32`; `0i32` and `0.0f64` say otherwise, and so does the type that the
//!   value of an `if` is to have: `let step: u8 = if is_first { 1 } else { 2 };`. `i32::MAX`, `f32::EPSILON` and `std::f32::consts::PI` are constants too, of
//!   the type that they name. Infinities and NaN, which every type of floats has, become those of what they meet, whatever type they name: `f32::INFINITY`,
//!   or `T::INFINITY`, `T::NEG_INFINITY` and `T::NAN` of a type parameter bound by `Float`. A `const` generic has a range and no type: `B + B` is exact, and what does
//!   not fit where it lands is an error. `let b: u32 = B`, `B as u32` or a parameter `b: u32` give it one, in which `b + b` wraps. `const SCALE: f32 = 0.5;` stands in a body; a `const` outside
//!   of the kernel is not seen there.
//!
//! # Types
//!
//! Element types are `f16`, `bf16`, `f32`, `f64`, `i8` to `i64`, `u8` to `u64`, `bool`, and for storage `f8e4m3` and `f8e5m2`; `usize` and
//! `isize` are `i64`, because an index is exact and signed. A type parameter is bound by `Float`, `Int`, `Number` or `Element`.
//!
//! * Integers widen by themselves where every value is kept (`i32` to `i64`, `u8` to `i16`). Everything else needs `as`, which
//!   converts as Rust's does: floats to integers saturate, wider to narrower floats round to nearest even, `bool` is 0 or 1. `x as bool`,
//!   which Rust has not, is `x != 0`.
//! * `f32 + bf16` is an error, and so is `T + f32`: cast one side.
//! * Arithmetic on `f16` and `bf16`, and every function of [`math`], is computed in `f32` and rounded once.
//! * `f8e4m3` (4 bits of exponent, 3 of fraction, no infinities, up to 448) and `f8e5m2` (5 and 2, up to 57344) are loaded, stored, compared, sorted,
//!   chosen and cast, but not computed with: `load(q + at) as f32 * scale`, and back `(x / scale) as f8e4m3`. A cast to them rounds once to nearest
//!   even; what is too large, infinities too, becomes the largest number of its sign (no infinity), and a NaN becomes the NaN with the bits `0x7f`. These
//!   are the bits that a GPU's own conversion gives (`cvt.rn.satfinite`, `sm_89`); older ones compute them. Casts from them are exact. They are
//!   `Element`s, and no `Float`s. On the host they are `galatea::f8e4m3` and `galatea::f8e5m2`.
//! * Integers wrap, constants that have a type among them; `x / 0` is 0 and `x % 0` is `x`; shifting by the width or more gives 0, or the sign.
//!
//! # Operators
//!
//! `+ - * / %` on numbers, `& | ^ !` on integers and `bool`, `<< >>` on integers, `== != < <= > >=` on everything, `&& ||` on `bool`
//! (on scalars the right side runs only if it is needed). A scalar meets a tile element by element. Two tiles that meet have as many
//! axes; along each, the extents are equal or one of them is 1 and repeats: `rows[(.., None)] * stride + columns[(None, ..)]`. So do masks,
//! `other` and stored values with offsets.
//!
//! # Calls
//!
//! What a word needs is given in its order, `gather(x, index, 0)`. What stands as an `Option` in its signature may be left out, and is given by its
//! name: `sum(x, axis = 1)`, `load(x + i, mask = m)`. Most functions of one value are methods as well, `x.exp()`, and take their options there, too.
//!
//! # Functions
//!
//! A function that is marked `#[device]` is called by its name or path, from kernels and from other device functions, in any module or crate. It is
//! written in the same language, and becomes a part of its caller: a parameter `x: Value<T>` takes a scalar or a tile of any shape, `n: usize`
//! one scalar, and what is constant in a call stays constant in the body. `T == f32` and `T != f32` compare types, and are constants. What else a
//! signature may hold, such as pointers, tuples, closures and options, stands in the documentation of `#[device]`.
//!
//! A closure with a name is a function of one kernel. It sees the variables in front of it, may load and store, and is written out where it is called; it
//! does not assign to variables outside of it, and stays in its block:
//!
//! ```text
//! let at = |i, j| load(x + i * n + j, mask = mask) as f32;
//! let lerp = |a, b, part| a + (b - a) * part;
//! let top = lerp(at(row, column), at(row, column + 1), right);
//! ```
//!
//! # Structs
//!
//! A struct that is marked `#[device]` holds scalars, tiles, pointers, views, tuples and structs under names, and may have functions, `w.combine(other)`
//! and `Welford::of(x)`, if it stands with them in a `#[device] mod`. It is made by `Welford { mean, m2, count }` or `Welford { count, ..w }`, taken
//! apart by `let Welford { mean, .. } = w`, and its fields are assigned to where it is `let mut`. To everything else it is the tuple of its fields:
//! loops carry it, branches choose it, and [`reduce`] and [`associative_scan`] combine structs of tiles, `reduce(w, 0, |a, b| a.combine(b))`.
//! The documentation of `#[device]` has an example.
//!
//! # Control flow
//!
//! `if`/`else` on a scalar `bool`; on a constant only the branch that is taken exists. `match` on a scalar, with numbers, `true` and `false`, ranges,
//! constants, several of them with `|`, names, `_` and guards: `match n { 0 => a, 1 | 2 => b, MODE => c, other if other % 2 == 0 => d, _ => e }`; it is a chain of `if`s.
//! `for i in a..b`, `a..=b`, `(a..b).step_by(s)`, [`range`], [`static_range`], each with `.rev()` behind it to begin with the last index, `while`, `loop`, `break`, `continue`, early `return`. A variable keeps its type: what a loop adds up to must be a tile from
//! the start, `let mut sum = zeros::<f32>([N]);`.
//!
//! `static_assert!(N >= 64, "N is too small")` checks constants when the kernel is compiled. `device_assert!(index < n, "index too large")` checks
//! values, of a tile every element, in launches that are `.checked()`: these then fail with the message, the line and the program. Other
//! launches do not compute it on a GPU.
//!
//! # Printing
//!
//! `device_print!("row {row}: {} of {n}, bits {:x}", x, x)` prints when the kernel runs, on a GPU too: a line for each element of the values (scalars
//! are repeated beside tiles, and alone make one line), with the line of the source, the program and the element's index:
//!
//! ```text
//! src/main.rs:12: program (0, 0, 0), element [3]: row 0: 1.5 of 7, bits 0x3fc00000
//! ```
//!
//! A place of the text is `{}` for the next value, `{name}` for a variable, and `{:x}` or `{name:x}` for bits in hexadecimal. Values are of any type
//! but pointers, and have one shape. The lines go to the standard error output (or to `galatea::capture_prints`) when the launch is over: the
//! programs in order, and what each printed in the order of time. A launch has room for a mebibyte: 32 bytes and some for each
//! `device_print!` of a program, and 8 for each value. What does not fit is dropped and counted. A launch of such a kernel waits until it is done,
//! and is not tuned by `#[autotune]`. A closure does not print.
//!
//! `static_print!("N is {N}, x is {}", x)` tells when the kernel is compiled: of a constant its value, of anything else its type. For the values that
//! `#[kernel(..)]` lists it appears as a warning of rustc's at its line, for others in the standard error output when they are first launched.
//!
//! # PTX of your own
//!
//! `inline_ptx!` is an expression: instructions that run once for each element, where the language has no word for them, and beside them what they
//! compute. That closure is what the CPU runs, and what a test can hold the text to.
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
//! * `y: f32` is a result and its type, `x = value` an operand. Operands are scalars and tiles that meet as those of any operator do, and have types:
//!   `3u32`, not `3`. In the text, `{x}` is the register; `{{` and `}}` are braces, `mov.b32 {{lo, hi}}, {x};`. A text may declare registers of its
//!   own, `.reg .b32 t;`: it is a scope.
//! * The register of a `bool` is a predicate; of 8 bits, floats too, one of 32 bits, extended by the sign or by zeros, of which a result takes the low
//!   bits; of 16 bits `.b16`; of 32 and 64 bits `.b32` and `.b64`; of `f32` and `f64` `.f32` and `.f64`.
//! * `pack = k`, a power of two up to 16, runs the text once for `k` elements. Those of 8 and 16 bits fill registers of 32 bits, the first lowest: four
//!   `u8` or two `f16` in one. Where a value takes several registers they are `{x[0]}`, `{x[1]}`. Which elements come together is left open.
//! * `cpu = |a, b| ..` takes the operands in the order in which they stand, those that only the text names behind the others, and gives the result,
//!   `(y, z)` if there are several, `{}` if there is none. It computes element by element, with all words that do.
//! * A text is pure: what it gives follows from its operands alone, so that it may run once for equal ones, twice, or not at all. `volatile = true`
//!   keeps it where it stands and as often as it stands there; its closure may read and write memory. Elements that several threads hold, a
//!   scalar's among them, and those behind a tile's extent are still run as often as they are held. A thread that holds fewer than `k` elements runs some of them again.
//! * `isa = 8.1` says which version of the PTX ISA an instruction needs beyond that of its target, 7.0 of `sm_80` and 8.0 of `sm_90a`. What the
//!   target has not is an error of the driver's when the kernel is loaded: choose by `target() >= 90`.
//!
//! A safe kernel takes texts that only compute from their registers. Whatever looks at memory, other threads or special registers, or jumps, needs a
//! kernel that is `unchecked`; what writes, waits or ends the thread needs `volatile = true` besides. There, `(x + offsets) as u64` are the addresses
//! that a pointer leads to, as in `ld.global.f32 {v}, [{address}];`.
//!
//! When the kernel is checked, so are the text's places and braces, that each result and operand is used, that statements end in `;`, that their
//! instructions exist, and that what they name is declared; that operands are not written to; and in texts that only compute, that every register is
//! set before it is read, and each result in the end, also behind guards such as `@p`. That types fit the instruction is the assembler's to say,
//! when the kernel is loaded. Accuracy is that of the instruction.
//!
//! # Pointers in memory
//!
//! `address as Ptr<f32>` and `address as PtrMut<f32>` make a pointer of an address, one `u64` or `i64`: a list of tensors is a tensor of their
//! addresses, which `Tensor::address` gives on every device. Accesses, atomics, views and device functions take it as any pointer.
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
//! Nothing is known of what lies there, so that this is for kernels that are `unchecked`, which are `unsafe` to launch: the address is that of
//! elements of this type, aligned for it; masks keep accesses within their number; what a `Ptr` leads to, nobody writes meanwhile; and the launch
//! neither keeps the tensors alive nor orders itself with other streams' work on them. A `.checked()` launch still looks at all other accesses, and of
//! these at the start alone: an offset that is negative is an error, one beyond the end is not seen (a simulated GPU sees what leaves the allocation).

#![allow(unused_variables, reason = "the functions are documentation: nothing runs")]

pub mod atomic;
mod bits;
mod fast;
mod floats;
mod lookup;
pub mod math;
mod memory;
mod overlap;
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
pub use program::*;
pub use random::*;
pub use reduction::*;
pub use shape::*;
pub use special::*;
pub use tile::*;

use std::marker::PhantomData;

/// A parameter of a kernel: a tensor that the kernel reads. It takes `&Tensor<T>`, a view, or `&CudaSlice<T>`.
///
/// It knows the tensor's length: lanes outside read `other` (or 0), so that no index is undefined behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Ptr<T>(PhantomData<T>);

/// A parameter of a kernel: a tensor that the kernel writes and reads. It takes `&mut Tensor<T>`, a view, or `&mut CudaSlice<T>`.
///
/// Lanes outside of the tensor store nothing.
#[derive(Clone, Copy, Debug)]
pub struct PtrMut<T>(PhantomData<T>);

/// A parameter of a kernel: a tensor of `RANK` axes that the kernel reads, whose shape and strides come with it. It takes `&Tensor<T>` or a
/// view of that many axes; another number is an error of the launch. Neighbours along the last axis are neighbours in memory.
///
/// It is read by blocks. `x.load([i, j], [M, N])` is the tile of the shape `[M, N]` whose first element is element `(i, j)`: elements that lie
/// outside of the tensor, on any side, are 0, or `other = ..`; `cache` and `evict` are those of [`load`]. The indices count elements, not
/// blocks, and are computed at run time; the shape is constant. Elements that are picked by data, such as the rows that a tile of indices names, are
/// read through a [`Ptr`]: `load(table + ids[(.., None)] * width + columns[(None, ..)])`. `extent(x, 1)` is how many elements the tensor has along an axis, an `i64`
/// scalar. [`view`] makes one of a pointer.
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

/// A parameter of a kernel: a [`View`] of a tensor that the kernel writes and reads. It takes `&mut Tensor<T>` or a `&mut` view of that many axes.
///
/// `y.store([i, j], tile)` stores a tile of as many axes from element `(i, j)` on; what would lie outside is dropped.
#[derive(Clone, Copy, Debug)]
pub struct ViewMut<T, const RANK: usize>(PhantomData<T>);

/// A scalar or a tile with elements `T`.
#[derive(Clone, Copy, Debug)]
pub struct Value<T>(PhantomData<T>);

/// A tile's extents, known when the kernel is compiled: `[BLOCK_SIZE]`.
#[derive(Clone, Copy, Debug)]
pub struct Shape;

fn only_in_a_kernel() -> ! {
    panic!("this is a word of the kernel language: it has a meaning only inside `#[kernel]`")
}
