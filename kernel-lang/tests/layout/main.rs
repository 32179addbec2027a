//! Layouts against brute force: every claim of the algebra is checked element by element.

mod constructors;
mod conversion;
mod fragments;
mod known;
mod map;
mod strategies;
