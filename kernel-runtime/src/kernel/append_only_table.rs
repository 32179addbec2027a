//! An append-only table of values that were compiled or tuned. A lookup takes no lock, so a launch never waits for one.

use std::sync::OnceLock;

use kernel_lang::Schedule;

/// A hash table from the words of a key, and a schedule if one matters, to a value. Entries are never removed: a kernel has few keys, and each value
/// took far longer to make than to keep.
pub(crate) struct Grown<V> {
    chains: [Chain<V>; CHAINS],
}

const CHAINS: usize = 32;

type Chain<V> = OnceLock<Box<Link<V>>>;

struct Link<V> {
    schedule: Option<Schedule>,
    key: Box<[u64]>,
    value: V,
    next: Chain<V>,
}

impl<V> Grown<V> {
    /// An empty table.
    pub(crate) const fn new() -> Grown<V> {
        Grown { chains: [const { OnceLock::new() }; CHAINS] }
    }

    /// The value for this schedule and key.
    #[inline]
    pub(crate) fn find(&self, schedule: Option<Schedule>, key: &[u64]) -> Option<&V> {
        let mut cell = &self.chains[chain(key)];
        while let Some(link) = cell.get() {
            if link.is_of(schedule, key) {
                return Some(&link.value);
            }
            cell = &link.next;
        }
        None
    }

    /// Inserts a value unless the key has one already. Returns the value that is now in the table.
    pub(crate) fn keep(&self, schedule: Option<Schedule>, key: &[u64], value: V) -> &V {
        let mut own = Some(Box::new(Link { schedule, key: key.into(), value, next: OnceLock::new() }));
        let mut cell = &self.chains[chain(key)];
        loop {
            // If the link is already set, or another thread sets it meanwhile, this one goes after it.
            if let Some(link) = own.take()
                && let Err(link) = cell.set(link)
            {
                own = Some(link);
            }
            let Some(link) = cell.get() else { unreachable!("`set` succeeds, or fails because there is a link") };
            if link.is_of(schedule, key) {
                return &link.value;
            }
            cell = &link.next;
        }
    }
}

impl<V> Link<V> {
    /// A key is a few words; comparing them inline is faster than calling a memory comparison.
    #[inline]
    fn is_of(&self, schedule: Option<Schedule>, key: &[u64]) -> bool {
        self.key.len() == key.len() && self.key.iter().zip(key).all(|(own, other)| own == other) && self.schedule == schedule
    }
}

/// Keys differ in few bits of few words. All these bits affect the upper half of the product.
#[inline]
fn chain(key: &[u64]) -> usize {
    let hash = key.iter().fold(0u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95));
    (hash >> 32) as usize % CHAINS
}

impl<V> std::fmt::Debug for Grown<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grown").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inserted_value_is_found_and_not_overwritten() {
        let grown = Grown::new();
        let other = Some(Schedule::DEFAULT);
        for i in 0..500u64 {
            assert!(grown.find(None, &[i, 7]).is_none());
            assert_eq!(*grown.keep(None, &[i, 7], i), i);
            assert_eq!(*grown.keep(other, &[i, 7], i + 1000), i + 1000);
        }
        assert_eq!(*grown.keep(None, &[3, 7], 99), 3);
        for i in 0..500 {
            assert_eq!((grown.find(None, &[i, 7]), grown.find(other, &[i, 7])), (Some(&i), Some(&(i + 1000))));
        }
        assert!(grown.find(None, &[4]).is_none());
    }

    #[test]
    fn threads_that_insert_the_same_key_get_the_same_value() {
        let grown = Grown::new();
        let kept: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    scope.spawn({
                        let grown = &grown;
                        move || *grown.keep(None, &[1], i)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(kept.iter().all(|i| *i == kept[0]), "{kept:?}");
    }
}
