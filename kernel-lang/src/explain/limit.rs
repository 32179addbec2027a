//! The reasons why an access is not wider, as text for users.

use std::fmt;

/// A number of the kernel: its expression, and its value if it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// The expression, in the names of the kernel.
    pub text: String,
    /// The value.
    pub value: Option<i64>,
}

/// A reason why an access is not wider. A *run* is the number of elements that a thread moves in 16 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Limit {
    /// The access is to one element.
    Scalar,
    /// The index of each element is loaded.
    LoadedIndex {
        /// The tensor with the indices.
        from: Option<String>,
    },
    /// The index is a quotient or a remainder.
    DividedIndex {
        /// The divisor.
        by: Quantity,
    },
    /// The index is not a sum of positions times strides.
    ComputedIndex,
    /// Neighbouring elements of the tile are not neighbours in memory.
    Stride {
        /// The distance in elements.
        apart: Quantity,
        /// Is the distance a parameter of the kernel?
        is_parameter: bool,
    },
    /// The tile has fewer elements than a run along the axis of consecutive addresses.
    ShortRows {
        /// The elements along that axis.
        elements: usize,
    },
    /// The atomic has no wide form.
    Atomic,
    /// The mask may differ between neighbouring elements in a way that the compiler does not know.
    Mask,
    /// Rows do not begin at a multiple of a run.
    RowStride {
        /// The distance of two rows in elements.
        apart: Quantity,
        /// The elements of a run.
        run: i64,
    },
    /// Tiles do not begin at a multiple of a run.
    Start {
        /// A number of which the start is a multiple.
        at: Quantity,
        /// The elements of a run.
        run: i64,
    },
    /// A constant that is not a multiple of a run is added to the index.
    Shift {
        /// The constant.
        by: i64,
        /// The elements of a run.
        run: i64,
    },
    /// The start depends on a loaded or computed value.
    ComputedStart {
        /// The elements of a run.
        run: i64,
    },
    /// The mask does not end at a multiple of a run.
    MaskEnd {
        /// The end of the mask.
        at: Quantity,
        /// The elements of a run.
        run: i64,
    },
    /// A divisor of the index is not a multiple of a run.
    Divisor {
        /// The divisor.
        by: Quantity,
        /// The elements of a run.
        run: i64,
    },
    /// The tile has fewer elements for each thread than a run.
    FewElements {
        /// The elements of the tile.
        elements: usize,
        /// The threads of a program.
        threads: u32,
    },
    /// Another access decided the layout.
    OtherLayout,
    /// The compiler made no fast path for full tiles.
    NoFastPath,
    /// Another access moves the elements, together with their neighbours, in launches for which the compiler made one access of both.
    Neighbours {
        /// The line of the other access.
        line: u32,
    },
    /// Another access of the same tiles has a reason, and the fast path is for all of them.
    OtherAccess {
        /// The line of the other access.
        line: u32,
        /// The tensor of the other access.
        tensor: Option<String>,
    },
    /// No tile is full: a mask or the tensor ends in it.
    NotFull,
}

impl Limit {
    /// What the user can do about it; `None` if nothing.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Limit::Scalar | Limit::Atomic | Limit::Neighbours { .. } | Limit::OtherAccess { .. } => return None,
            Limit::LoadedIndex { .. } => {
                "let each index stand for a whole row, so that neighbours are adjacent: `rows * width + arange(0, WIDTH)`".to_owned()
            }
            Limit::DividedIndex { .. } => {
                "make the divisor a constant of the kernel, or use an axis of the tile or of the grid for each coordinate".to_owned()
            }
            Limit::ComputedIndex => "write the index as a sum of positions times strides: `start + arange(0, N) * stride`".to_owned(),
            Limit::Stride { apart, is_parameter: true } => {
                format!("store neighbours side by side: launches have a variant of their own for `{}` = 1", apart.text)
            }
            Limit::Stride { .. } => {
                "use the last axis of the tile for elements that are adjacent in memory, and `trans` to swap axes".to_owned()
            }
            Limit::ShortRows { .. } => "extend the tile along the axis of consecutive addresses to at least 16 bytes".to_owned(),
            Limit::Mask => "write the mask as comparisons of positions with limits: `offsets < n`".to_owned(),
            Limit::RowStride { run, .. } => format!("pad the rows, so that they are a multiple of {run} elements apart"),
            Limit::Start { run, .. } => format!("let tiles begin at multiples of {run} elements: pad the rows, or change the block"),
            Limit::Shift { run, .. } => format!("shift by a multiple of {run} elements, or keep a shifted copy of the tensor"),
            Limit::ComputedStart { run } => format!("begin segments at multiples of {run} elements"),
            Limit::MaskEnd { run, .. } => format!("pad the rows to a multiple of {run} elements"),
            Limit::Divisor { run, .. } => format!("pad this extent to a multiple of {run} elements, or make it a constant of the kernel"),
            Limit::FewElements { .. } => "use a larger tile, or fewer `num_warps`".to_owned(),
            Limit::OtherLayout => "access both tensors along the same axis and in elements of one size, or split the kernel".to_owned(),
            Limit::NoFastPath => "compute the index from arguments, program ids and loop indices only".to_owned(),
            Limit::NotFull => "use a smaller tile, or pad the tensors to whole tiles".to_owned(),
        };
        Some(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) if self.text == value.to_string() => write!(f, "{value}"),
            Some(value) => write!(f, "`{}` = {value}", self.text),
            None => write!(f, "`{}`", self.text),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Scalar => write!(f, "a program accesses one element"),
            Limit::LoadedIndex { from: Some(from) } => write!(f, "the index of each element is loaded from `{from}`"),
            Limit::LoadedIndex { from: None } => write!(f, "the index of each element is loaded"),
            Limit::DividedIndex { by } => write!(f, "the index is divided by {by}"),
            Limit::ComputedIndex => write!(f, "the index is not a sum of positions times strides"),
            Limit::Stride { apart, .. } => write!(f, "neighbouring elements are {apart} elements apart"),
            Limit::ShortRows { elements } => write!(f, "a row of the tile has {elements} elements"),
            Limit::Atomic => write!(f, "this atomic updates one element at a time"),
            Limit::Mask => write!(f, "the mask may differ between neighbouring elements"),
            Limit::RowStride { apart, run } => write!(f, "rows are {apart} elements apart, not a multiple of {run}"),
            Limit::Start { at, run } => write!(f, "tiles begin at multiples of {at}, not of {run}"),
            Limit::Shift { by, run } => write!(f, "the index is shifted by {by}, not a multiple of {run}"),
            Limit::ComputedStart { run } => write!(f, "tiles begin at a loaded or computed element, which need not be a multiple of {run}"),
            Limit::MaskEnd { at, run } => write!(f, "the mask ends at {at}, not a multiple of {run}"),
            Limit::Divisor { by, run } => write!(f, "the index is divided by {by}, not a multiple of {run}"),
            Limit::FewElements { elements, threads } => write!(f, "{threads} threads share {elements} elements"),
            Limit::OtherLayout => write!(f, "each thread holds the elements that another access of these tiles needs"),
            Limit::NoFastPath => write!(f, "the index is known too late to test whether a tile is full"),
            Limit::Neighbours { line } => {
                write!(f, "the access in line {line} moves these elements, too, if pairs of neighbours begin at multiples of their size")
            }
            Limit::OtherAccess { line, tensor } => {
                let tensor = tensor.as_ref().map_or(String::new(), |tensor| format!(" of `{tensor}`"));
                write!(f, "the access{tensor} in line {line} keeps all accesses of these tiles from the fast path")
            }
            Limit::NotFull => write!(f, "a mask or the tensor ends within the tiles"),
        }
    }
}
