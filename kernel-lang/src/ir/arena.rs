//! Typed handles and the tables they index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A handle: a `u32` that is the name of an entity in one function. Its `Display` is its name in the text form.
pub trait Handle: Copy + Eq + fmt::Display {
    /// The handle of the entity at `index`.
    fn new(index: usize) -> Self;
    /// Its index.
    fn index(self) -> usize;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(u32);

        impl Handle for $name {
            fn new(index: usize) -> $name {
                $name(u32::try_from(index).expect("a function has fewer than 2^32 entities"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

handles! {
    /// An SSA value: defined once, by an op or as a parameter of a region.
    Value = "%";
    /// An op in a function, with its results.
    Inst = "inst";
    /// A list of ops with parameters, ending in one terminator.
    Region = "region";
}

/// A table that owns entities; its handles stay valid, nothing is ever removed.
#[derive(Clone, Debug)]
pub struct Arena<H, T> {
    items: Vec<T>,
    handle: PhantomData<H>,
}

impl<H: Handle, T> Arena<H, T> {
    /// Adds an entity.
    pub fn push(&mut self, item: T) -> H {
        self.items.push(item);
        H::new(self.items.len() - 1)
    }

    /// How many entities there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Is the table empty?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<H, T> Default for Arena<H, T> {
    fn default() -> Self {
        Arena { items: Vec::new(), handle: PhantomData }
    }
}

impl<H: Handle, T> Index<H> for Arena<H, T> {
    type Output = T;
    fn index(&self, handle: H) -> &T {
        &self.items[handle.index()]
    }
}

impl<H: Handle, T> IndexMut<H> for Arena<H, T> {
    fn index_mut(&mut self, handle: H) -> &mut T {
        &mut self.items[handle.index()]
    }
}

/// A table of facts beside an arena: one `T` a handle, its default until set.
#[derive(Clone, Debug)]
pub struct SideTable<H, T> {
    items: Vec<T>,
    absent: T,
    handle: PhantomData<H>,
}

impl<H: Handle, T: Clone + Default> SideTable<H, T> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<H, T: Default> Default for SideTable<H, T> {
    fn default() -> Self {
        SideTable { items: Vec::new(), absent: T::default(), handle: PhantomData }
    }
}

impl<H: Handle, T> Index<H> for SideTable<H, T> {
    type Output = T;
    fn index(&self, handle: H) -> &T {
        self.items.get(handle.index()).unwrap_or(&self.absent)
    }
}

impl<H: Handle, T: Clone + Default> IndexMut<H> for SideTable<H, T> {
    fn index_mut(&mut self, handle: H) -> &mut T {
        if self.items.len() <= handle.index() {
            self.items.resize(handle.index() + 1, T::default());
        }
        &mut self.items[handle.index()]
    }
}
