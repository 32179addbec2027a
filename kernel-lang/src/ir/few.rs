//! A list that nearly always has one element or none, such as the results of an op.
//!
//! Such a list needs no memory of its own, and becomes a slice by one match. That is fast even where macros run unoptimised, as cargo builds them by default: there
//! each call costs, and a general list with elements in place makes several for each use.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// A list.
#[derive(Clone, Debug, Default)]
pub enum Few<T> {
    /// No element.
    #[default]
    Empty,
    /// One element.
    One(T),
    /// Any number of elements.
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Appends an element.
    pub fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            Few::Empty => Few::One(item),
            Few::One(first) => Few::Many(vec![first, item]),
            Few::Many(mut items) => {
                items.push(item);
                Few::Many(items)
            }
        };
    }

    /// The results of `of` for each element.
    pub fn map<'a, R>(&'a self, mut of: impl FnMut(&'a T) -> R) -> Few<R> {
        match self {
            Few::Empty => Few::Empty,
            Few::One(item) => Few::One(of(item)),
            Few::Many(items) => Few::Many(items.iter().map(of).collect()),
        }
    }

    /// The results of `of` for each element, which it takes.
    pub fn into_map<R>(self, mut of: impl FnMut(T) -> R) -> Few<R> {
        match self {
            Few::Empty => Few::Empty,
            Few::One(item) => Few::One(of(item)),
            Few::Many(items) => Few::Many(items.into_iter().map(of).collect()),
        }
    }

    /// Removes the elements for which `is_kept` is false.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) {
        match self {
            Few::Empty => {}
            Few::One(item) => {
                if !is_kept(item) {
                    *self = Few::Empty;
                }
            }
            Few::Many(items) => items.retain(is_kept),
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Few::Empty => &[],
            Few::One(item) => std::slice::from_ref(item),
            Few::Many(items) => items,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::Empty => &mut [],
            Few::One(item) => std::slice::from_mut(item),
            Few::Many(items) => items,
        }
    }
}

/// Lists are equal if their elements are, however they are stored.
impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Few<T>) -> bool {
        match (self, other) {
            (Few::One(item), Few::One(other)) => item == other,
            _ => self[..] == other[..],
        }
    }
}

impl<T: Eq> Eq for Few<T> {}

impl<T: Hash> Hash for Few<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Few<T> {
        let mut few = Few::Empty;
        few.extend(items);
        few
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;
    fn into_iter(self) -> IntoIter<T> {
        let (one, many) = match self {
            Few::Empty => (None, Vec::new()),
            Few::One(item) => (Some(item), Vec::new()),
            Few::Many(items) => (None, items),
        };
        IntoIter { one, many: many.into_iter() }
    }
}

/// The elements of a list, in order.
#[derive(Clone, Debug)]
pub struct IntoIter<T> {
    one: Option<T>,
    many: std::vec::IntoIter<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        self.one.take().or_else(|| self.many.next())
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.one.is_some()) + self.many.len();
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn a_list_of_any_length_is_what_a_vec_is() {
        for length in 0..5 {
            let numbers: Vec<u32> = (0..length).collect();
            let mut few: Few<u32> = numbers.iter().copied().collect();
            assert_eq!(few[..], numbers[..]);
            assert_eq!(few.clone().into_iter().len(), numbers.len());
            assert_eq!(few.clone().into_iter().collect::<Vec<u32>>(), numbers);
            assert_eq!((&few).into_iter().sum::<u32>(), numbers.iter().sum());
            few.iter_mut().for_each(|number| *number += 1);
            few.retain(|number| number % 2 == 0);
            few.push(7);
            let expected: Vec<u32> = (1..=length).filter(|number| number % 2 == 0).chain([7]).collect();
            assert_eq!(few[..], expected[..]);
        }
    }
}
