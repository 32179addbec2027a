//! The library: builtins that are written in the language itself, one family per file.
//!
//! A file holds plain functions of the kernel language. A public function is a builtin: it has a row
//! `Builtin::Library` in `builtins.rs` and its documentation in `dsl`. The other functions are its helpers. The functions of a
//! file see each other and every builtin. `library_files.rs` embeds the files; a test there compares the builtins with the functions.

mod assumptions;
mod bessel;
mod error;
mod exponential;
mod extended;
mod fast;
mod floats;
mod gamma;
mod hyperbolic;
mod indexing;
mod inverse_trigonometric;
mod power;
mod random;
mod statistics;
