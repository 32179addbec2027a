//! Text of a layout: `layout<[16, 8], register = [(0, 1), (8, 0)], lane = [..], warp = [], block = []>`.
//!
//! A basis is a tuple with one entry per axis; for rank 1 it is a plain number. The text contains all four levels, in this order.

use std::fmt;
use std::str::FromStr;

use super::{Layout, LayoutError, Level};

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layout<")?;
        list(f, self.shape(), |f, extent| write!(f, "{extent}"))?;
        for level in Level::ALL {
            write!(f, ", {level} = ")?;
            list(f, self.flat_bases(level), |f, &flat| match self.unflatten(flat)[..] {
                [single] => write!(f, "{single}"),
                ref many => {
                    f.write_str("(")?;
                    for (axis, value) in many.iter().enumerate() {
                        write!(f, "{}{value}", if axis == 0 { "" } else { ", " })?;
                    }
                    f.write_str(")")
                }
            })?;
        }
        f.write_str(">")
    }
}

fn list<T>(f: &mut fmt::Formatter<'_>, items: &[T], item: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result) -> fmt::Result {
    f.write_str("[")?;
    for (i, value) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        item(f, value)?;
    }
    f.write_str("]")
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let (layout, used) = Layout::parse_prefix(text)?;
        match text[used..].trim_start() {
            "" => Ok(layout),
            rest => Err(LayoutError::Syntax { at: text.len() - rest.len(), expected: "the end" }),
        }
    }
}

impl Layout {
    /// Parses the layout at the start of `text` and returns it with its length in bytes. Parsers of larger texts call this function.
    ///
    /// # Errors
    /// [`LayoutError::Syntax`], and the errors of [`Layout::new`].
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// let text = "layout<[4], register = [1], lane = [2], warp = [], block = []> @12";
    /// let (layout, used) = Layout::parse_prefix(text).unwrap();
    /// assert_eq!(layout.registers_per_thread(), 2);
    /// assert_eq!(&text[used..], " @12");
    /// ```
    pub fn parse_prefix(text: &str) -> Result<(Layout, usize), LayoutError> {
        let mut cursor = Cursor { text, at: 0 };
        cursor.expect("layout", "`layout`")?;
        cursor.expect("<", "`<`")?;
        let shape = cursor.list(Cursor::number)?;
        let rank = shape.len();
        let mut bases: [Vec<Vec<u32>>; 4] = Default::default();
        for level in Level::ALL {
            cursor.expect(",", "`,`")?;
            cursor.expect(level.name(), level.name())?;
            cursor.expect("=", "`=`")?;
            bases[level as usize] = cursor.list(|cursor| cursor.basis(rank))?;
        }
        cursor.expect(">", "`>`")?;
        Ok((Layout::new(&shape, &bases)?, cursor.at))
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn rest(&mut self) -> &str {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
        &self.text[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), LayoutError> {
        if self.eat(token) { Ok(()) } else { Err(LayoutError::Syntax { at: self.at, expected }) }
    }

    fn number(&mut self) -> Result<u32, LayoutError> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let value = rest[..digits].parse().map_err(|_| LayoutError::Syntax { at: self.at, expected: "a number" })?;
        self.at += digits;
        Ok(value)
    }

    fn basis(&mut self, rank: usize) -> Result<Vec<u32>, LayoutError> {
        if rank == 1 {
            return Ok(vec![self.number()?]);
        }
        self.expect("(", "`(`")?;
        self.until(")", "`)`", Cursor::number)
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, LayoutError>) -> Result<Vec<T>, LayoutError> {
        self.expect("[", "`[`")?;
        self.until("]", "`]`", item)
    }

    fn until<T>(
        &mut self,
        close: &str,
        expected: &'static str,
        item: impl Fn(&mut Self) -> Result<T, LayoutError>,
    ) -> Result<Vec<T>, LayoutError> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(",") {
                self.expect(close, expected)?;
                return Ok(items);
            }
        }
    }
}
