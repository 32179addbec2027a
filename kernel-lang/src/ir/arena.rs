//! Typed handles and the tables they index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A handle: a `u32` that names an entity in one function. Its `Display` is its name in the text form.
pub trait Handle: Copy + Eq + fmt::Display {
    /// The handle of the entity at `index`.
    fn new(index: usize) -> Self;
    /// The index of the entity.
    fn index(self) -> usize;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(u32);

        impl Handle for $name {
            #[inline]
            fn new(index: usize) -> $name {
                $name(u32::try_from(index).expect("a function has fewer than 2^32 entities"))
            }
            #[inline]
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

/// A table that owns entities. Only [compaction](crate::ir::Function::compact) removes entities; it makes all handles invalid.
#[derive(Clone, Debug)]
pub struct Arena<H, T> {
    items: Vec<T>,
    handle: PhantomData<H>,
}

impl<H: Handle, T> Arena<H, T> {
    /// Adds an entity.
    #[inline]
    pub fn push(&mut self, item: T) -> H {
        self.items.push(item);
        H::new(self.items.len() - 1)
    }

    /// The number of entities.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Is the table empty?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Removes all entities for which `is_kept` is false. The others keep their order, and get new handles.
    pub(super) fn retain(&mut self, is_kept: impl Fn(H) -> bool) {
        let mut next = 0;
        self.items.retain(|_| {
            next += 1;
            is_kept(H::new(next - 1))
        });
    }

    /// Mutable access to all entities, in order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (H, &mut T)> {
        self.items.iter_mut().enumerate().map(|(index, item)| (H::new(index), item))
    }
}

impl<H, T> Default for Arena<H, T> {
    fn default() -> Self {
        Arena { items: Vec::new(), handle: PhantomData }
    }
}

impl<H: Handle, T> Index<H> for Arena<H, T> {
    type Output = T;
    #[inline]
    fn index(&self, handle: H) -> &T {
        &self.items[handle.index()]
    }
}

impl<H: Handle, T> IndexMut<H> for Arena<H, T> {
    #[inline]
    fn index_mut(&mut self, handle: H) -> &mut T {
        &mut self.items[handle.index()]
    }
}

/// The number of entries of a [`SideTable`] that are allocated at once.
const PAGE: usize = 64;

/// A table of facts beside an arena: one `T` for each handle, the default until it is set.
///
/// Entries are allocated in pages, so that a table with a few facts about a large function is cheap: passes make one for each loop.
#[derive(Clone, Debug)]
pub struct SideTable<H, T> {
    pages: Vec<Option<Box<[T]>>>,
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
        SideTable { pages: Vec::new(), absent: T::default(), handle: PhantomData }
    }
}

impl<H: Handle, T> Index<H> for SideTable<H, T> {
    type Output = T;
    #[inline]
    fn index(&self, handle: H) -> &T {
        match self.pages.get(handle.index() / PAGE) {
            Some(Some(page)) => &page[handle.index() % PAGE],
            _ => &self.absent,
        }
    }
}

impl<H: Handle, T: Clone + Default> IndexMut<H> for SideTable<H, T> {
    #[inline]
    fn index_mut(&mut self, handle: H) -> &mut T {
        let page = handle.index() / PAGE;
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| vec![T::default(); PAGE].into_boxed_slice());
        &mut page[handle.index() % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_the_default() {
        let mut table: SideTable<Value, u32> = SideTable::new();
        for index in [0, 63, 64, 1000] {
            table[Value::new(index)] = index as u32 + 1;
        }
        for index in 0..2000 {
            let expected = if [0, 63, 64, 1000].contains(&index) { index as u32 + 1 } else { 0 };
            assert_eq!(table[Value::new(index)], expected, "{index}");
        }
    }
}
