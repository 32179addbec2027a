//! Shapes to tune in advance: a file of rows that `galatea tune` passes to the program.
//!
//! ```json
//! {
//!   "add_kernel": [
//!     { "n": 1048576, "T": "f32" },
//!     { "n": 98432, "T": "bf16" }
//!   ]
//! }
//! ```
//!
//! The file maps the name of each kernel to a list of rows. A row has fields with any names; their values are integers, floats, booleans
//! and strings. The program defines their meaning: it reads them by name and launches its kernel.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Dtype, Error, Result};

/// The environment variable that names the file of shapes.
const VARIABLE: &str = "GALATEA_SHAPES";

/// The rows of a kernel, see [`shapes()`]. Tunings on the same thread are attributed to the row that the iterator returned last.
#[derive(Debug)]
pub struct Shapes {
    file: Arc<PathBuf>,
    kernel: String,
    rows: std::vec::IntoIter<Fields>,
    number: usize,
}

/// The sizes of one launch.
#[derive(Clone, Debug)]
pub struct Row {
    file: Arc<PathBuf>,
    kernel: String,
    number: usize,
    fields: Fields,
}

type Fields = Map<String, Value>;

/// The type of a row's field: an integer, `f32`, `f64`, `bool`, [`Dtype`] or `String`.
pub trait FromField: Sized + sealed::Sealed {
    /// The expected type, for error messages.
    #[doc(hidden)]
    const WANTED: &str;

    /// Converts the value, if it has this type.
    #[doc(hidden)]
    fn from_json(value: &Value) -> Option<Self>;
}

mod sealed {
    pub trait Sealed {}
}

/// The rows of a kernel in the file of `galatea tune` or of the environment variable `GALATEA_SHAPES`. There are no rows if the file does
/// not name the kernel.
///
/// ```no_run
/// # use kernel_runtime::{Device, Dtype, Result, tune};
/// # fn add(_: &Device, _: Dtype, _: usize) -> Result<()> { Ok(()) }
/// # fn main() -> Result<()> {
/// # let device = Device::default()?;
/// for row in tune::shapes("add_kernel")? {
///     let (n, dtype): (usize, Dtype) = (row.get("n")?, row.get("T")?);
///     add(&device, dtype, n)?; // launches the kernel, which is tuned
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shapes`] if no file is named, or if the file cannot be read or has another format.
pub fn shapes(kernel: &str) -> Result<Shapes> {
    match std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        Some(file) => Shapes::read(Path::new(&file), kernel),
        None => Err(Error::Shapes {
            reason: "no file of shapes is named".to_owned(),
            help: "run the program by `galatea tune SHAPES.json -- PROGRAM`, or name a file in `GALATEA_SHAPES`",
        }),
    }
}

impl Shapes {
    /// The rows of a kernel in a file; none if the file does not name the kernel.
    ///
    /// # Errors
    /// [`Error::Shapes`] if the file cannot be read or has another format.
    pub fn read(file: impl AsRef<Path>, kernel: &str) -> Result<Shapes> {
        let file = file.as_ref();
        let rows = Shapes::read_all(file)?.into_iter().find_map(|(name, rows)| (name == kernel).then_some(rows)).unwrap_or_default();
        Ok(Shapes { file: Arc::new(file.to_owned()), kernel: kernel.to_owned(), rows: rows.into_iter(), number: 0 })
    }

    /// The names of the kernels in a file.
    ///
    /// # Errors
    /// As [`Shapes::read`].
    pub fn kernels(file: impl AsRef<Path>) -> Result<Vec<String>> {
        Ok(Shapes::read_all(file.as_ref())?.into_iter().map(|(name, _)| name).collect())
    }

    fn read_all(file: &Path) -> Result<Vec<(String, Vec<Fields>)>> {
        let wrong = |reason: String| Error::Shapes { reason: format!("{}: {reason}", file.display()), help: FORM };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(kernels) = value else { return Err(wrong("names of kernels are wanted, each with a list of rows".to_owned())) };
        let mut all = Vec::new();
        for (kernel, rows) in kernels {
            let Value::Array(rows) = rows else { return Err(wrong(format!("a list of rows is wanted for `{kernel}`"))) };
            let mut read = Vec::new();
            for (number, row) in (1..).zip(rows) {
                let Value::Object(fields) = row else {
                    return Err(wrong(format!("row {number} of `{kernel}` has no names and values")));
                };
                if let Some((name, _)) = fields.iter().find(|(_, value)| matches!(value, Value::Array(_) | Value::Object(_) | Value::Null))
                {
                    return Err(wrong(format!("row {number} of `{kernel}`: `{name}` is neither a number nor a text")));
                }
                read.push(fields);
            }
            all.push((kernel, read));
        }
        Ok(all)
    }
}

const FORM: &str = "a file of shapes looks like `{ \"add_kernel\": [{ \"n\": 1048576, \"T\": \"f32\" }] }`";

impl Iterator for Shapes {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let fields = self.rows.next();
        self.number += 1;
        let row = fields.map(|fields| Row { file: self.file.clone(), kernel: self.kernel.clone(), number: self.number, fields });
        CURRENT.set(row.as_ref().map(Row::to_string));
        row
    }
}

impl Drop for Shapes {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

thread_local! {
    /// The text of the current row.
    static CURRENT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The current row of this thread.
pub(super) fn current() -> Option<String> {
    CURRENT.with_borrow(Clone::clone)
}

impl Row {
    /// The value of a field.
    ///
    /// # Errors
    /// [`Error::Shapes`] if the field is missing or has another type. The error names the file, the row and the field.
    pub fn get<T: FromField>(&self, field: &str) -> Result<T> {
        let wrong = |reason: String| Error::Shapes {
            reason: format!("{}: row {} of `{}`{reason}", self.file.display(), self.number, self.kernel),
            help: "the program that is tuned says which fields a row has",
        };
        let value = self.fields.get(field).ok_or_else(|| {
            let names: Vec<String> = self.fields.keys().map(|name| format!("`{name}`")).collect();
            let there = if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) };
            wrong(format!(" has no field `{field}`{there}"))
        })?;
        T::from_json(value).ok_or_else(|| wrong(format!(": `{field}` is `{value}`, and {} is wanted", T::WANTED)))
    }
}

/// Formats a row as `T = f32, n = 1048576`.
impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (name, value)) in self.fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match value.as_str() {
                Some(text) => write!(f, "{comma}{name} = {text}")?,
                None => write!(f, "{comma}{name} = {value}")?,
            }
        }
        Ok(())
    }
}

macro_rules! from_field {
    ($($ty:ty: $wanted:expr, |$value:ident| $read:expr;)*) => {$(
        impl sealed::Sealed for $ty {}

        impl FromField for $ty {
            const WANTED: &str = $wanted;

            fn from_json($value: &Value) -> Option<$ty> {
                $read
            }
        }
    )*};
}

from_field! {
    usize: "a `usize`", |value| value.as_u64()?.try_into().ok();
    u64: "a `u64`", |value| value.as_u64();
    u32: "a `u32`", |value| value.as_u64()?.try_into().ok();
    isize: "an `isize`", |value| value.as_i64()?.try_into().ok();
    i64: "an `i64`", |value| value.as_i64();
    i32: "an `i32`", |value| value.as_i64()?.try_into().ok();
    f64: "a number", |value| value.as_f64();
    f32: "a number", |value| value.as_f64().map(|value| value as f32);
    bool: "`true` or `false`", |value| value.as_bool();
    Dtype: "the name of a type of elements, such as `\"f32\"`,", |value| value.as_str()?.parse().ok();
    String: "a text", |value| value.as_str().map(str::to_owned);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shapes.json");
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn rows_are_read_by_kernel_and_field() {
        let (_directory, path) =
            file(r#"{ "add": [{ "n": 7, "T": "bf16" }, { "n": 8, "T": "f32", "scale": -1.5, "fast": true }], "mul": [] }"#);
        assert_eq!(Shapes::kernels(&path).unwrap(), ["add", "mul"]);
        let mut rows = Shapes::read(&path, "add").unwrap();
        let first = rows.next().unwrap();
        assert_eq!((first.get::<usize>("n").unwrap(), first.get::<Dtype>("T").unwrap()), (7, Dtype::Bf16));
        assert_eq!((first.to_string(), current()), ("T = bf16, n = 7".to_owned(), Some("T = bf16, n = 7".to_owned())));
        let second = rows.next().unwrap();
        assert_eq!((second.get::<f32>("scale").unwrap(), second.get::<bool>("fast").unwrap()), (-1.5, true));
        assert!(rows.next().is_none() && current().is_none());
        assert_eq!(Shapes::read(&path, "sub").unwrap().count(), 0);
        Shapes::read(&path, "add").unwrap().next();
        assert!(current().is_none(), "the rows are gone");
    }

    #[test]
    fn an_error_names_the_file_the_row_and_the_field() {
        let (_directory, path) = file(r#"{ "add": [{ "n": 7 }, { "n": "many", "m": -1, "T": "f31" }] }"#);
        let rows: Vec<Row> = Shapes::read(&path, "add").unwrap().collect();
        let error = |error: Error| error.to_string();
        let cases = [
            (error(rows[0].get::<usize>("m").unwrap_err()), "row 1 of `add` has no field `m`; it has `n`"),
            (error(rows[1].get::<usize>("n").unwrap_err()), "row 2 of `add`: `n` is `\"many\"`, and a `usize` is wanted"),
            (error(rows[1].get::<u32>("m").unwrap_err()), "row 2 of `add`: `m` is `-1`, and a `u32` is wanted"),
            (error(rows[1].get::<Dtype>("T").unwrap_err()), "`T` is `\"f31\"`, and the name of a type"),
        ];
        for (text, part) in cases {
            assert!(text.contains("shapes.json: ") && text.contains(part) && text.contains("\nhelp: "), "{text}");
        }
        for (text, part) in [
            ("", "EOF"),
            ("[]", "names of kernels"),
            (r#"{ "add": 3 }"#, "a list of rows is wanted for `add`"),
            (r#"{ "add": [[7]] }"#, "row 1 of `add` has no names"),
            (r#"{ "add": [{}, { "n": [1, 2] }] }"#, "row 2 of `add`: `n` is neither"),
        ] {
            let (_directory, path) = file(text);
            let error = Shapes::read(&path, "add").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("help: a file of shapes looks like"), "{error}");
        }
        assert!(Shapes::read("nowhere.json", "add").unwrap_err().to_string().contains("nowhere.json: "));
    }
}
