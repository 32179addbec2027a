//! Types of values: an element type with a shape, or a pointer.

use std::fmt;

use crate::dtype::Dtype;
use crate::ir::constexpr::ConstExpr;
use crate::location::Name;

/// An element type: a dtype, or a type parameter of a generic kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    /// A dtype.
    Dtype(Dtype),
    /// A type parameter such as `T`.
    Param(Name),
}

impl Elem {
    /// The dtype, unless it is still a parameter.
    pub fn dtype(&self) -> Option<Dtype> {
        if let Elem::Dtype(dtype) = self { Some(*dtype) } else { None }
    }
}

impl From<Dtype> for Elem {
    fn from(dtype: Dtype) -> Elem {
        Elem::Dtype(dtype)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Dtype(dtype) => write!(f, "{dtype}"),
            Elem::Param(name) => f.write_str(name),
        }
    }
}

/// The extents of a tile, outermost axis first; a scalar has none.
pub type Shape = Vec<ConstExpr>;

/// The type of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Type {
    /// A tile, or a scalar when the shape is empty.
    Tile {
        /// The type of each element.
        elem: Elem,
        /// Extents, outermost axis first.
        shape: Shape,
    },
    /// A pointer to a tensor's elements: a kernel parameter, or in an `unchecked` kernel the result of a `pointer` op.
    Pointer {
        /// The type of the elements behind the pointer.
        elem: Elem,
        /// May the kernel store through it?
        mutable: bool,
    },
    /// A block of elements in shared memory, in the [swizzled](crate::layout::SharedBlock) order that tensor copies and warpgroup products share. Only in
    /// kernels for a GPU.
    Shared {
        /// The type of each element.
        elem: Elem,
        /// Extents, outermost axis first: there are two.
        shape: Shape,
        /// The axis along which neighbours are adjacent.
        contiguous: u32,
    },
}

impl Type {
    /// A scalar.
    pub fn scalar(elem: impl Into<Elem>) -> Type {
        Type::Tile { elem: elem.into(), shape: Vec::new() }
    }

    /// A tile; a scalar if `shape` is empty.
    pub fn tile(elem: impl Into<Elem>, shape: Shape) -> Type {
        Type::Tile { elem: elem.into(), shape }
    }

    /// The element type of the tile or block, or behind the pointer.
    pub fn elem(&self) -> &Elem {
        match self {
            Type::Tile { elem, .. } | Type::Pointer { elem, .. } | Type::Shared { elem, .. } => elem,
        }
    }

    /// The element's dtype.
    ///
    /// # Panics
    /// If it is a type parameter, which exists only before specialisation.
    pub fn dtype(&self) -> Dtype {
        self.elem().dtype().unwrap_or_else(|| panic!("`{self}` is not specialised"))
    }

    /// The shape; empty for scalars and pointers.
    pub fn shape(&self) -> &[ConstExpr] {
        match self {
            Type::Tile { shape, .. } | Type::Shared { shape, .. } => shape,
            Type::Pointer { .. } => &[],
        }
    }

    /// The extents as numbers.
    ///
    /// # Panics
    /// If an extent is an expression, which exists only before specialisation.
    pub fn extents(&self) -> Vec<usize> {
        self.shape().iter().map(|dim| self.extent(dim)).collect()
    }

    /// The number of elements of a value: 1 for a scalar.
    ///
    /// # Panics
    /// As [`Type::extents`].
    pub fn numel(&self) -> usize {
        self.shape().iter().map(|dim| self.extent(dim)).product()
    }

    fn extent(&self, dim: &ConstExpr) -> usize {
        let extent = dim.as_int().and_then(|int| usize::try_from(int).ok());
        extent.unwrap_or_else(|| panic!("`{self}` is not specialised"))
    }

    /// Is it a value of rank 0, not a pointer?
    pub fn is_scalar(&self) -> bool {
        matches!(self, Type::Tile { shape, .. } if shape.is_empty())
    }

    /// Is it a tile of rank 1 or more?
    pub fn is_tile(&self) -> bool {
        matches!(self, Type::Tile { shape, .. } if !shape.is_empty())
    }

    /// Is it a block in shared memory?
    pub fn is_shared(&self) -> bool {
        matches!(self, Type::Shared { .. })
    }

    /// Is it a pointer?
    pub fn is_pointer(&self) -> bool {
        matches!(self, Type::Pointer { .. })
    }

    /// The same type with another element type.
    #[must_use]
    pub fn with_elem(&self, elem: impl Into<Elem>) -> Type {
        Type::Tile { elem: elem.into(), shape: self.shape().to_vec() }
    }

    /// Are the element type and the shape free of parameters?
    pub fn is_concrete(&self) -> bool {
        self.elem().dtype().is_some() && self.shape().iter().all(|dim| dim.as_int().is_some())
    }
}

/// Prints `f32`, `tile<f32, [64, BLOCK_SIZE]>`, `ptr<f32>`, `ptr_mut<T>` or `shared<bf16, [128, 64], 1>`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |shape: &Shape| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Type::Tile { elem, shape } if shape.is_empty() => write!(f, "{elem}"),
            Type::Tile { elem, shape } => write!(f, "tile<{elem}, [{}]>", list(shape)),
            Type::Shared { elem, shape, contiguous } => write!(f, "shared<{elem}, [{}], {contiguous}>", list(shape)),
            Type::Pointer { elem, mutable: false } => write!(f, "ptr<{elem}>"),
            Type::Pointer { elem, mutable: true } => write!(f, "ptr_mut<{elem}>"),
        }
    }
}
