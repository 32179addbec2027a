//! The products to time: the rows of the table of targets, and a sweep over shapes and layouts.

use std::fmt;
use std::str::FromStr;

/// How the operands lie in memory: N is a matrix of `[rows, inner]` or `[inner, columns]`, T is its transpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    NN,
    NT,
    TN,
    TT,
}

impl Layout {
    pub(crate) const ALL: [Layout; 4] = [Layout::NN, Layout::NT, Layout::TN, Layout::TT];

    /// Whether `a` and `b` are transposed.
    pub(crate) fn transposed(self) -> (bool, bool) {
        (matches!(self, Layout::TN | Layout::TT), matches!(self, Layout::NT | Layout::TT))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Layout, String> {
        let found = Layout::ALL.into_iter().find(|layout| layout.to_string() == text.to_uppercase());
        found.ok_or_else(|| format!("there is no layout `{text}`\nhelp: there are NN, NT, TN and TT"))
    }
}

/// The type of the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bf16,
    /// `f32` that is rounded to `tf32`.
    Tf32,
    /// `f8e4m3`, with a result of `bf16`.
    Float8,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Bf16, Kind::Tf32, Kind::Float8];

    /// The name of the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Bf16 => "bf16",
            Kind::Tf32 => "tf32",
            Kind::Float8 => "f8e4m3",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("there is no type `{text}`\nhelp: there are bf16, tf32 and f8e4m3"))
    }
}

/// One product: `[rows, inner]` times `[inner, columns]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Case {
    /// The name of the group whose geometric mean the product belongs to.
    pub(crate) class: &'static str,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) inner: usize,
    pub(crate) layout: Layout,
    pub(crate) kind: Kind,
}

impl Case {
    pub(crate) fn new(class: &'static str, [rows, columns, inner]: [usize; 3], layout: Layout) -> Case {
        Case { class, rows, columns, inner, layout, kind: Kind::Bf16 }
    }

    pub(crate) fn of_kind(self, kind: Kind) -> Case {
        Case { kind, ..self }
    }

    /// The shapes of the operands and of the result in memory.
    pub(crate) fn shapes(&self) -> [[usize; 2]; 3] {
        let Case { rows, columns, inner, .. } = *self;
        let (transposed_a, transposed_b) = self.layout.transposed();
        let stored = |shape: [usize; 2], transposed: bool| if transposed { [shape[1], shape[0]] } else { shape };
        [stored([rows, inner], transposed_a), stored([inner, columns], transposed_b), [rows, columns]]
    }

    /// Rows, columns, inner.
    pub(crate) fn extents(&self) -> [usize; 3] {
        [self.rows, self.columns, self.inner]
    }

    /// Floating-point operations.
    pub(crate) fn flops(&self) -> f64 {
        2.0 * self.rows as f64 * self.columns as f64 * self.inner as f64
    }

    /// Tera-operations in a second, for a time in microseconds.
    pub(crate) fn tflops(&self, us: f64) -> f64 {
        self.flops() / us * 1e-6
    }
}

/// The products of the table of targets.
pub(crate) fn targets() -> Vec<Case> {
    let square = |layout| move |n: usize| Case::new("targets", [n, n, n], layout);
    let mut cases: Vec<Case> = [1024, 2048, 4096, 8192].map(square(Layout::NN)).to_vec();
    cases.extend([2048, 4096, 8192].map(square(Layout::NT)));
    cases.extend([[1000, 1003, 1017], [16, 8192, 8192]].map(|shape| Case::new("targets", shape, Layout::NN)));
    cases.push(square(Layout::NN)(4096).of_kind(Kind::Tf32));
    cases.extend([2048, 4096, 8192].map(|n| square(Layout::NT)(n).of_kind(Kind::Float8)));
    cases
}

/// The names of the classes of the sweep.
pub(crate) const CLASSES: [&str; 5] = ["square", "tall", "wide", "ragged", "decode"];

const SQUARE: [usize; 13] = [128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16_384];

const TALL: [[usize; 3]; 9] = [
    [16_384, 128, 4096],
    [16_384, 256, 256],
    [16_384, 1024, 1024],
    [16_384, 4096, 512],
    [12_288, 256, 1024],
    [8192, 512, 2048],
    [8192, 1024, 8192],
    [6144, 768, 3072],
    [4096, 128, 16_384],
];

/// No extent is a multiple of 8, so that rows of no operand begin at multiples of 16 bytes.
const RAGGED: [[usize; 3]; 13] = [
    [129, 131, 133],
    [257, 511, 255],
    [509, 503, 521],
    [777, 333, 2221],
    [1001, 1003, 1017],
    [1023, 1025, 1027],
    [1999, 5003, 777],
    [2047, 2049, 2051],
    [3001, 2999, 3011],
    [4095, 4097, 4099],
    [6001, 301, 1501],
    [8191, 129, 4093],
    [129, 8191, 1023],
];

/// Tokens of a batch, and the columns and rows of the weights of layers.
const DECODE: [[usize; 3]; 16] = [
    [1, 4096, 4096],
    [1, 14_336, 4096],
    [2, 8192, 8192],
    [4, 4096, 14_336],
    [4, 6144, 4096],
    [8, 8192, 8192],
    [8, 14_336, 4096],
    [16, 4096, 4096],
    [16, 8192, 1024],
    [24, 8192, 8192],
    [32, 4096, 14_336],
    [32, 16_384, 2048],
    [48, 6144, 4096],
    [64, 4096, 4096],
    [64, 8192, 8192],
    [64, 14_336, 4096],
];

/// The sixty products of the sweep. The layouts alternate, so that each class has all four.
pub(crate) fn sweep() -> Vec<Case> {
    let wide = TALL.map(|[rows, columns, inner]| [columns, rows, inner]);
    let shapes: [Vec<[usize; 3]>; 5] = [SQUARE.map(|n| [n; 3]).to_vec(), TALL.to_vec(), wide.to_vec(), RAGGED.to_vec(), DECODE.to_vec()];
    let of_class = |(class, shapes): (&'static str, Vec<_>)| {
        shapes.into_iter().zip(Layout::ALL.into_iter().cycle()).map(move |(s, l)| Case::new(class, s, l))
    };
    CLASSES.into_iter().zip(shapes).flat_map(of_class).collect()
}
