//! The compiler's one intermediate representation.
//!
//! A [`Function`] is a kernel in SSA form with structured control flow. Three points differ from what a newcomer may expect:
//!
//! * **Values** are scalars or tiles: a tile is a rectangle of elements that the whole program computes at once, and a scalar is a tile of
//!   rank 0. The distribution of elements over threads is not part of the IR until layouts are assigned.
//! * **Loads** happen in the order of the text, like stores. A load may move only if no op in between may store to the same memory.
//! * **Pointers** are kernel parameters. `x + offsets` of the language is a pair of such a pointer and a tile of offsets in elements, and a
//!   memory op takes both. The tensor of an access, and so its length, is therefore always known. Only an `unchecked` kernel may make a
//!   `pointer` from an address that it computed or loaded: it is a base like any other, of unknown length.
//!
//! The text form prints and parses. Once layouts are assigned, the type of each tile is followed by its layout. Once shared memory is
//! allocated, the attributes of an op state its bytes: see [`Scratch`]. A kernel as the frontend
//! creates it:
//!
//! ```
//! let text = r#"kernel @double<T: f32 | f64, const B: i64>(%x: ptr<T>, %y: ptr_mut<T>, %n: i64) file "double.rs" {
//!     %0 = program_id : i64 @3:19
//!     %1 = const {value = B} : i64
//!     %2 = mul %0, %1 : i64
//!     %3 = broadcast %2 : tile<i64, [B]>
//!     %4 = arange {start = 0, end = B} : tile<i64, [B]>
//!     %5 = add %3, %4 : tile<i64, [B]>
//!     %6 = broadcast %n : tile<i64, [B]>
//!     %7 = lt %5, %6 : tile<bool, [B]> @4:16
//!     %8 = load %x, %5 {mask = %7} : tile<T, [B]> @5:13
//!     %9 = add %8, %8 : tile<T, [B]> @6:22
//!     store %y, %5, %9 {mask = %7} @6:5
//!     return
//! }
//! "#;
//! let func = kernel_lang::ir::parse(text).unwrap();
//! assert_eq!(func.to_string(), text);
//! kernel_lang::ir::verify(&func, kernel_lang::ir::Stage::Generic).unwrap();
//! ```

mod access;
mod arena;
pub mod assembly;
mod atomic;
pub mod axes;
mod build;
mod computation;
mod constexpr;
mod few;
mod fields;
mod fragments;
mod function;
mod lexer;
mod ops;
pub mod padding;
mod parse;
mod postorder;
mod print;
pub mod product;
mod properties;
pub mod renaming;
mod requirement;
pub mod rewrite;
mod rules;
mod scratch;
pub mod template;
mod type_constant;
mod types;
mod verify;

pub use access::{Access, AccessKind, Stored, may_alias};
pub use arena::{Arena, Handle, Inst, Region, SideTable, Value};
pub use atomic::{AtomicOp, Scope, Semantics};
pub use build::Builder;
pub use computation::computation;
pub(crate) use constexpr::to_f64_odd;
pub use constexpr::{ConstBinary, ConstExpr, ConstUnary, TARGET};
pub use few::Few;
pub use fields::{AttributeValue, Field, Parts};
pub use fragments::{fragments, largest_product, shared_block, warpgroup_accumulator, warpgroup_operand};
pub use function::{ConstParam, Def, Function, InstData, MAX_NESTING, MOST_MOVES, Param, RegionData, Results, TypeParam};
pub use lexer::ParseError;
pub use ops::{BinaryOp, Cache, CompareOp, Domain, Evict, Op, Precision, Reader, UNKNOWN_LENGTH, UnaryOp};
pub use parse::parse;
pub use postorder::postorder;
pub use requirement::Requirement;
pub use rules::{MAX_STAGES, MAX_UNROLL, ResultTypes, result_types};
pub use scratch::{Part, Scratch, Wait};
pub use type_constant::TypeConstant;
pub use types::{Elem, Shape, Type};
pub use verify::{Stage, Verified, Violation, verify};
