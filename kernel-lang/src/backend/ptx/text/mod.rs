//! Text of a PTX module: virtual registers, 32-bit words of several elements, and valid PTX names.

pub(crate) mod names;
pub(crate) mod registers;
pub(crate) mod words;
