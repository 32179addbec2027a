//! Cache entries with machine code that an assembler made from PTX.

use super::process::{COMPILING, tell, usable};
use super::{Key, Kind, Store, hash};

/// Loads the machine code of this PTX from the process's store. If it is missing, `make` makes it, and it is stored. None if there is no
/// store or no machine code; the caller then loads the PTX itself and gets the driver's error.
///
/// `machine` names the architecture, the driver and the assembler. `load` returns none for code that cannot be loaded.
pub(crate) fn load<L>(
    kernel: &str,
    ptx: &str,
    machine: &[(&str, &str)],
    make: impl FnOnce() -> Option<Vec<u8>>,
    load: impl Fn(&[u8]) -> Option<L>,
) -> Option<L> {
    load_from(&usable()?, &key(kernel, ptx, machine), make, load)
}

fn key(kernel: &str, ptx: &str, machine: &[(&str, &str)]) -> Key {
    let hash = hash(&[ptx.as_bytes()]);
    Key::new(Kind::Code, &[&[("kernel", kernel), ("ptx", &hash)], machine].concat())
}

fn load_from<L>(store: &Store, key: &Key, make: impl FnOnce() -> Option<Vec<u8>>, load: impl Fn(&[u8]) -> Option<L>) -> Option<L> {
    let make = || {
        let code = make().ok_or(())?;
        // Do not store code that the driver does not load.
        load(&code).map(|loaded| (loaded, code)).ok_or(())
    };
    store.get_or_make(key, COMPILING, |code| load(&code), make, |error| tell(&error)).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A fake driver that loads code that is a number, and counts how often code is made.
    struct Driver<'a> {
        makes: &'a str,
        made: Cell<usize>,
    }

    impl Driver<'_> {
        fn load(&self, store: &Store, key: &Key) -> Option<u32> {
            let make = || {
                self.made.set(self.made.get() + 1);
                (!self.makes.is_empty()).then(|| self.makes.as_bytes().to_vec())
            };
            load_from(store, key, make, |code| std::str::from_utf8(code).ok()?.parse().ok())
        }
    }

    const MACHINE: [(&str, &str); 2] = [("architecture", "9.0"), ("driver", "13.0")];

    #[test]
    fn code_is_made_once_and_loaded_from_then_on() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path());
        let key = key("silu", "text", &MACHINE);
        let driver = Driver { makes: "42", made: Cell::new(0) };
        assert_eq!((driver.load(&store, &key), driver.made.get()), (Some(42), 1));
        assert_eq!((driver.load(&store, &key), driver.made.get()), (Some(42), 1));
    }

    #[test]
    fn another_driver_architecture_or_text_makes_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path());
        let driver = Driver { makes: "42", made: Cell::new(0) };
        let keys = [
            key("silu", "text", &MACHINE),
            key("silu", "text", &[("architecture", "9.0"), ("driver", "13.1")]),
            key("silu", "text", &[("architecture", "8.0"), ("driver", "13.0")]),
            key("silu", "text ", &MACHINE),
        ];
        assert!(keys.iter().all(|key| driver.load(&store, key) == Some(42)));
        assert_eq!(driver.made.get(), 4);
    }

    #[test]
    fn code_that_does_not_load_is_assembled_again_and_stored_only_if_it_loads() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path());
        let key = key("silu", "text", &MACHINE);
        store.put(&key, b"for another GPU").unwrap();
        let driver = Driver { makes: "42", made: Cell::new(0) };
        assert_eq!((driver.load(&store, &key), driver.made.get()), (Some(42), 1));
        assert_eq!(store.get(&key).as_deref(), Some(&b"42"[..]));

        store.remove(&key);
        let broken = Driver { makes: "broken", made: Cell::new(0) };
        assert_eq!((broken.load(&store, &key), broken.made.get(), store.get(&key)), (None, 1, None));
        let refuses = Driver { makes: "", made: Cell::new(0) };
        assert_eq!((refuses.load(&store, &key), refuses.made.get(), store.get(&key)), (None, 1, None));
    }
}
