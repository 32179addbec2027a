//! Tensors as text, in the format in which PyTorch prints them. `torch/_tensor_str.py` of PyTorch 2 defines the format.

use std::fmt::{self, Write};

use kernel_lang::dtype::Dtype;

use crate::tensor::element::value;
use crate::tensor::view::{TensorView, TensorViewMut};
use crate::{Element, Result, Tensor};

/// The number of digits after the decimal point.
const PRECISION: usize = 4;
/// A tensor with more elements is summarised.
const THRESHOLD: usize = 1000;
/// The number of entries that a summary shows at each end of an axis.
const EDGE: usize = 3;
/// The number of characters of a line. One entry may exceed it.
const LINE_WIDTH: usize = 80;
const PREFIX: &str = "tensor(";

/// Shows the elements as PyTorch prints them. Waits for the work that writes them.
///
/// Floats have four digits after the decimal point, or a bare point if all are integers. They are in scientific notation if one is above 1e8 or
/// below 1e-4, or if the largest is more than 1000 times the smallest. Above 1000 elements, each axis shows three entries at each end, and only
/// these are copied to the host. The device follows unless it is the CPU, and the dtype unless it is `f32`, `i64` or `bool`.
///
/// ```
/// # use kernel_runtime::{Device, Result};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[0.5f32, -0.25, 1.0])?;
/// assert_eq!(x.to_string(), "tensor([ 0.5000, -0.2500,  1.0000])");
/// let x = device.tensor_from(&[1, 2, 3, 40], [2, 2])?;
/// assert_eq!(x.to_string(), "tensor([[ 1,  2],\n        [ 3, 40]], dtype=i32)");
/// let x = device.full([2000, 2], 3.0f32)?;
/// let summary = "\
/// tensor([[3., 3.],
///         [3., 3.],
///         [3., 3.],
///         ...,
///         [3., 3.],
///         [3., 3.],
///         [3., 3.]])";
/// assert_eq!(x.to_string(), summary);
/// # Ok(())
/// # }
/// ```
impl<T: Element> fmt::Display for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.view(), f)
    }
}

/// Shows the elements as PyTorch prints them, as for a [`Tensor`]. Waits for the work that writes them.
///
/// ```
/// # use kernel_runtime::{Device, Result, bf16};
/// # fn main() -> Result<()> {
/// let x = Device::cpu().full([7, 3], bf16::from_f32(1e-5))?;
/// assert_eq!(x.slice(5..)?.to_string(), "\
/// tensor([[1.0014e-05, 1.0014e-05, 1.0014e-05],
///         [1.0014e-05, 1.0014e-05, 1.0014e-05]], dtype=bf16)");
/// # Ok(())
/// # }
/// ```
impl<T: Element> fmt::Display for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = PREFIX.to_owned();
        match shown_elements(self) {
            Ok(_) if self.is_empty() => text.push_str("[]"),
            Ok(elements) => {
                let (cells, width) = cells(&elements);
                let layout = Layout { width, is_summary: is_summary(self) };
                layout.write(&mut text, &mut cells.iter(), self.shape(), PREFIX.len());
            }
            Err(error) => write!(text, "<{error}>")?,
        }
        push_suffixes(&mut text, &suffixes(self));
        f.write_str(&text)
    }
}

/// Shows the elements as PyTorch prints them, as for a [`Tensor`]. Waits for the work that writes them.
impl<T: Element> fmt::Display for TensorViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_view(), f)
    }
}

fn is_summary<T: Element>(view: &TensorView<'_, T>) -> bool {
    view.len() > THRESHOLD
}

/// The shown indices of an axis of length `len`, in order. `None` is the gap between the two ends of a summary.
fn shown_indices(len: usize, is_summary: bool) -> impl Iterator<Item = Option<usize>> {
    let is_cut = is_summary && len > 2 * EDGE;
    let (start, end) = if is_cut { (EDGE, len - EDGE) } else { (len, len) };
    (0..start).map(Some).chain(is_cut.then_some(None)).chain((end..len).map(Some))
}

/// Copies the shown elements to the host, in row-major order.
fn shown_elements<T: Element>(view: &TensorView<'_, T>) -> Result<Vec<T>> {
    /// The start of a copy takes longer than the copy of this many elements.
    const COPIED_GAP: usize = 1024;
    let mut offsets = if view.is_empty() { Vec::new() } else { vec![0] };
    for (&len, &stride) in view.shape().iter().zip(view.strides()) {
        let along = |start: usize| shown_indices(len, is_summary(view)).flatten().map(move |index| start + index * stride);
        offsets = offsets.into_iter().flat_map(along).collect();
    }
    let mut elements = Vec::with_capacity(offsets.len());
    for offsets in offsets.chunk_by(|low, high| high - low <= COPIED_GAP) {
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        let mut copied = vec![T::default(); last - first + 1];
        view.read(first, &mut copied)?;
        elements.extend(offsets.iter().map(|offset| copied[offset - first]));
    }
    Ok(elements)
}

/// The text of each element, padded to the width that is returned beside it. The width does not count zeros, infinities and NaNs, so these can be
/// wider.
fn cells<T: Element>(elements: &[T]) -> (Vec<String>, usize) {
    let (mut cells, width): (Vec<String>, usize) = if T::DTYPE.is_float() {
        let values: Vec<f64> = elements.iter().map(|element| value(T::DTYPE, element.bits())).collect();
        let notation = Notation::of(&values);
        let counts = |value: &&f64| value.is_finite() && **value != 0.0;
        let width = values.iter().filter(counts).map(|&value| notation.text(value).len()).max().unwrap_or(1);
        (values.iter().map(|&value| notation.text(value)).collect(), width)
    } else {
        let text = |element: &T| match (T::DTYPE, element.bits()) {
            (Dtype::Bool, 0) => "False".to_owned(),
            (Dtype::Bool, _) => "True".to_owned(),
            _ => format!("{element:?}"),
        };
        let cells: Vec<String> = elements.iter().map(text).collect();
        let width = cells.iter().map(String::len).max().unwrap_or(1);
        (cells, width)
    };
    for cell in &mut cells {
        *cell = format!("{cell:>width$}");
    }
    (cells, width)
}

/// The notation of all floats of a tensor.
#[derive(Clone, Copy, PartialEq)]
enum Notation {
    /// `3.`
    Integers,
    /// `3.1416`
    Fixed,
    /// `3.1416e+00`
    Scientific,
}

impl Notation {
    fn of(values: &[f64]) -> Notation {
        let magnitudes = || values.iter().map(|value| value.abs()).filter(|&magnitude| magnitude.is_finite() && magnitude != 0.0);
        let (min, max) = magnitudes().fold((f64::INFINITY, 0.0), |(min, max), magnitude| (magnitude.min(min), magnitude.max(max)));
        if max == 0.0 {
            Notation::Integers
        } else if max / min > 1000.0 || max > 1e8 || min < 1e-4 {
            Notation::Scientific
        } else if magnitudes().all(|magnitude| magnitude.fract() == 0.0) {
            Notation::Integers
        } else {
            Notation::Fixed
        }
    }

    fn text(self, value: f64) -> String {
        if value.is_nan() {
            return "nan".to_owned();
        }
        if value.is_infinite() {
            return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
        }
        match self {
            Notation::Integers => format!("{value:.0}."),
            Notation::Fixed => format!("{value:.PRECISION$}"),
            Notation::Scientific => {
                // Python's exponent has a sign and at least two digits.
                let text = format!("{value:.PRECISION$e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
                format!("{digits}e{sign}{exponent:0>2}")
            }
        }
    }
}

/// The arrangement of cells in lines.
struct Layout {
    /// The width of a cell.
    width: usize,
    is_summary: bool,
}

impl Layout {
    /// Appends the entries of the axes `shape`, whose bracket is in column `indent`. Takes their cells.
    fn write<'a>(&self, text: &mut String, cells: &mut impl Iterator<Item = &'a String>, shape: &[usize], indent: usize) {
        let mut next = || cells.next().map_or("", String::as_str);
        match shape {
            [] => text.push_str(next()),
            [len] => {
                let in_line = (LINE_WIDTH.saturating_sub(indent) / (self.width + ", ".len())).max(1);
                let entries: Vec<&str> = shown_indices(*len, self.is_summary).map(|index| index.map_or(" ...", |_| next())).collect();
                let lines: Vec<String> = entries.chunks(in_line).map(|entries| entries.join(", ")).collect();
                let separator = format!(",\n{:indent$} ", "");
                *text += &format!("[{}]", lines.join(&separator));
            }
            [len, inner @ ..] => {
                let separator = format!(",{}{:indent$} ", "\n".repeat(inner.len()), "");
                text.push('[');
                for (position, index) in shown_indices(*len, self.is_summary).enumerate() {
                    if position > 0 {
                        text.push_str(&separator);
                    }
                    match index {
                        Some(_) => self.write(text, cells, inner, indent + 1),
                        None => text.push_str("..."),
                    }
                }
                text.push(']');
            }
        }
    }
}

/// The properties that the elements do not show.
fn suffixes<T: Element>(view: &TensorView<'_, T>) -> Vec<String> {
    let mut suffixes = Vec::new();
    if !view.device().is_cpu() {
        suffixes.push(format!("device='{}'", view.device()));
    }
    if view.is_empty() && view.shape().len() != 1 {
        let dims: Vec<String> = view.shape().iter().map(usize::to_string).collect();
        suffixes.push(format!("size=({})", dims.join(", ")));
    }
    // No element shows that an empty tensor holds integers or booleans.
    let is_evident = match T::DTYPE {
        Dtype::F32 => true,
        Dtype::I64 | Dtype::Bool => !view.is_empty(),
        _ => false,
    };
    if !is_evident {
        suffixes.push(format!("dtype={}", T::DTYPE));
    }
    suffixes
}

/// Appends the suffixes, on new lines where they do not fit, and the closing parenthesis.
fn push_suffixes(text: &mut String, suffixes: &[String]) {
    const SEPARATOR: &str = ", ";
    // PyTorch counts the last line two characters too long.
    let mut column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 2;
    for suffix in suffixes {
        column += SEPARATOR.len() + suffix.len();
        if column > LINE_WIDTH {
            *text += &format!(",\n{:indent$}{suffix}", "", indent = PREFIX.len());
            column = PREFIX.len() + suffix.len();
        } else {
            *text += &format!("{SEPARATOR}{suffix}");
        }
    }
    text.push(')');
}
