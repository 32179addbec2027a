//! THE LIBRARY: words that are said in the language itself, one family a file.
//!
//! A file holds plain functions of the kernel language. A public one is a word: it has a row `Word::Library` in
//! `frontend/words.rs` and its documentation in `dsl`. The others serve it. Functions of a file see each other and every word.
//! `frontend/library.rs` embeds the files; a test there holds the words to the functions.

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
