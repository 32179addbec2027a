//! The store of the process: selected by the program, otherwise by the environment.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use etcetera::BaseStrategy;
use trusted_files::Refused;

use super::Store;

/// The environment variable that names the directory, or is `off`.
const VARIABLE: &str = "GALATEA_CACHE";

/// The longest wait for another process that compiles the same variant: the time that a compilation may take.
pub(super) const COMPILING: Duration = Duration::from_secs(10);

/// The store of this process; none before its first use.
static CURRENT: RwLock<Option<Choice>> = RwLock::new(None);

#[derive(Clone)]
struct Choice {
    store: Option<Store>,
    /// Whether the program or the environment names the directory. Then failures to write it are reported.
    named: bool,
}

/// Sets the store of this process, or none, whatever the environment says. Code that is loaded already stays loaded.
///
/// ```
/// use kernel_runtime::cache::{self, Store};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// cache::set(Some(Store::open(directory).with_limit_bytes(64 << 20)));
/// assert_eq!(cache::current().unwrap().directory(), directory);
/// cache::set(None); // nothing is kept, and nothing is looked for
/// assert!(cache::current().is_none());
/// ```
pub fn set(store: Option<Store>) {
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Choice { store, named: true });
}

/// The store of this process; none if the cache is off or the user has no cache directory.
pub fn current() -> Option<Store> {
    choice().store
}

/// The default directory of the store; none if the user has no home directory.
pub fn default_directory() -> Option<PathBuf> {
    etcetera::choose_base_strategy().ok().map(|base| base.cache_dir().join("galatea"))
}

fn choice() -> Choice {
    if let Some(choice) = &*CURRENT.read().unwrap_or_else(PoisonError::into_inner) {
        return choice.clone();
    }
    let mut current = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
    current.get_or_insert_with(from_environment).clone()
}

fn from_environment() -> Choice {
    match std::env::var_os(VARIABLE) {
        Some(name) if name == "off" => Choice { store: None, named: true },
        Some(directory) if !directory.is_empty() => Choice { store: Some(Store::open(directory)), named: true },
        _ => Choice { store: default_directory().map(Store::open), named: false },
    }
}

/// The store of this process, unless it is refused. A refusal is reported once.
pub(super) fn usable() -> Option<Store> {
    let store = current()?;
    match store.check() {
        Ok(()) => Some(store),
        Err(error) => {
            tell(&error);
            None
        }
    }
}

/// Reports once in a process why the store cannot be read or written. A cache directory that cannot be written is usual in containers, so
/// that is reported only if the directory was named. A refused store is always reported.
pub(super) fn tell(error: &io::Error) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let Choice { store, named } = choice();
    let Some(store) = store else { return };
    let directory = store.directory().display();
    let refused = Refused::of(error);
    let usual = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotADirectory
    );
    if (refused.is_none() && !named && usual) || TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    crate::launch::prints::show(match refused {
        Some(refused) => format!(
            "warning: the cache in {directory} is not used, because somebody else may have written it: {refused}\nhelp: {}; or name another \
             directory: `{VARIABLE}=DIR`, or none: `{VARIABLE}=off`",
            refused.help()
        ),
        None => format!(
            "warning: cannot keep what was compiled or tuned in {directory}: {error}\nhelp: `{VARIABLE}` names another directory, or is `off`"
        ),
    });
}
