//! Variants that an earlier build compiled: what a build keeps of them, and how it is found again.
//!
//! A variant follows from the generic kernel, what it is compiled for, and the compiler. These make its key, so there is nothing to
//! invalidate. Mistakes are not kept: they are found, and told, each time.

use crate::COMPILER;
use crate::frontend::variants::{Instance, Variant};

/// Keeps bytes from one build to the next. The compiler itself does no I/O: who expands macros brings one, or `()`, which keeps nothing.
pub trait Store: Sync {
    /// What was kept for this key, byte for byte. Anything less is nothing: the variant is compiled again.
    fn find(&self, key: &str) -> Option<Vec<u8>>;

    /// Keeps something for a key. If that fails, nobody needs to know.
    fn keep(&self, key: &str, value: &[u8]);
}

impl Store for () {
    fn find(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _: &str, _: &[u8]) {}
}

/// The variants of an instance of the kernel with this IR: from the store, or made.
pub(crate) fn or_made<E>(
    store: &dyn Store,
    ir: &str,
    instance: &Instance,
    make: impl FnOnce() -> Result<Vec<Variant>, E>,
) -> Result<Vec<Variant>, E> {
    let key = key(ir, instance);
    if let Some(variants) = store.find(&key).and_then(|value| read(&value, instance)) {
        return Ok(variants);
    }
    let variants = make()?;
    store.keep(&key, &write(&variants));
    Ok(variants)
}

fn key(ir: &str, Instance { generics, schedule, known, facts }: &Instance) -> String {
    format!("{COMPILER}\n{generics:?}\n{known:?} {facts}\n{schedule:?}\n{ir}")
}

/// For each variant a line, `sm_80 silu 0 1234`, and so many bytes of PTX.
fn write(variants: &[Variant]) -> Vec<u8> {
    let mut text = String::new();
    for Variant { target, entry, shared_bytes, ptx, .. } in variants {
        text += &format!("{target} {entry} {shared_bytes} {}\n{ptx}", ptx.len());
    }
    text.into_bytes()
}

fn read(value: &[u8], instance: &Instance) -> Option<Vec<Variant>> {
    let mut rest = std::str::from_utf8(value).ok()?;
    let mut variants = Vec::new();
    while !rest.is_empty() {
        let (line, behind) = rest.split_once('\n')?;
        let mut words = line.split(' ');
        let mut word = || words.next();
        let (target, entry, shared_bytes) = (word()?.to_owned(), word()?.to_owned(), word()?.parse().ok()?);
        let (ptx, behind) = behind.split_at_checked(word()?.parse().ok()?)?;
        let (key, schedule, ptx) = (instance.key(), instance.schedule, ptx.to_owned());
        variants.push(Variant { key, schedule, target, entry, shared_bytes, ptx });
        rest = behind;
    }
    (!variants.is_empty()).then_some(variants)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use proc_macro2::TokenStream;

    use super::*;
    use crate::frontend;

    /// Keeps what it is told, and counts what it finds.
    #[derive(Default)]
    struct Memory {
        kept: Mutex<HashMap<String, Vec<u8>>>,
        found: Mutex<usize>,
    }

    impl Store for Memory {
        fn find(&self, key: &str) -> Option<Vec<u8>> {
            let value = self.kept.lock().unwrap().get(key).cloned();
            *self.found.lock().unwrap() += usize::from(value.is_some());
            value
        }

        fn keep(&self, key: &str, value: &[u8]) {
            self.kept.lock().unwrap().insert(key.to_owned(), value.to_vec());
        }
    }

    const KERNEL: &str = "fn copy<T: Int, const N: usize>(x: Ptr<T>, y: PtrMut<T>, step: usize) {
        store(y + arange(0, N), load(x + arange(0, N) * step));
    }";

    fn expand(arguments: &str, kernel: &str, store: &dyn Store) -> String {
        let tokens = |text: &str| text.parse::<TokenStream>().expect("these are tokens");
        frontend::kernel(tokens(arguments), tokens(kernel), store).tokens.to_string()
    }

    #[test]
    fn a_build_is_the_same_with_and_without_what_was_kept() {
        let store = Memory::default();
        let arguments = "N = [32, 64], T = [i8, i32]";
        let fresh = expand(arguments, KERNEL, &());
        assert_eq!((expand(arguments, KERNEL, &store), *store.found.lock().unwrap()), (fresh.clone(), 0));
        let count = store.kept.lock().unwrap().len();
        assert_eq!(count, 8, "two constants, two types, and a step that is 1 or not");
        assert_eq!((expand(arguments, KERNEL, &store), *store.found.lock().unwrap()), (fresh, count));
        // Anything else is another key, or compiled again.
        expand("N = [32], T = [i8], num_warps = 8", KERNEL, &store);
        expand("N = [32], T = [i8]", &KERNEL.replace("* step", "* step * 2"), &store);
        assert_eq!(*store.found.lock().unwrap(), count);
    }

    #[test]
    fn what_was_spoilt_is_compiled_again() {
        let store = Memory::default();
        let fresh = expand("N = 64, T = [i32]", KERNEL, &store);
        for spoil in
            [|value: &mut Vec<u8>| value.clear(), |value| value.truncate(100), |value| value.insert(0, b'x'), |value| value[3] = 0xff]
        {
            store.kept.lock().unwrap().values_mut().for_each(spoil);
            assert_eq!(expand("N = 64, T = [i32]", KERNEL, &store), fresh);
        }
    }

    #[test]
    fn mistakes_are_not_kept() {
        let store = Memory::default();
        let kernel = "fn k<const N: usize>(y: PtrMut<f32>) { store(y + arange(0, N), zeros::<f32>([N])); }";
        let first = expand("N = [0]", kernel, &store);
        assert!(first.contains("compile_error") && store.kept.lock().unwrap().is_empty());
        assert_eq!(expand("N = [0]", kernel, &store), first);
    }
}
