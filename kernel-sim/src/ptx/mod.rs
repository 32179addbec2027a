//! The PTX front end: lexer, parser and syntax tree.

mod constant;
mod cursor;
mod error;
mod lexer;
mod operand;
mod parser;
mod syntax;
mod variable;

pub use error::PtxError;
pub use parser::parse;
pub use syntax::*;
