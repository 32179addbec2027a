//! The caches on disk, and all that can befall them. What must happen in a process of its own runs in this executable once more, as a child.

#[path = "../axpy/mod.rs"]
mod axpy;
mod children;
mod faults;
mod launches;
mod limits;
mod processes;
mod random;
mod trust;
#[path = "../trusted/mod.rs"]
mod trusted;
#[path = "../axpy/tuned.rs"]
mod tuned;
mod tuning;

use libtest_mimic::{Arguments, Trial};

type Test = (&'static str, fn());

fn main() {
    if let Some(role) = std::env::var_os(children::ROLE) {
        return children::run(&role.to_string_lossy());
    }
    // Whatever a test forgets: no user's store is touched.
    kernel_runtime::cache::set(None);
    let tests = [faults::TESTS, launches::TESTS, limits::TESTS, processes::TESTS, trust::TESTS, tuning::TESTS].concat();
    let trial = |(name, test): Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let is_root = trust::is_root();
    let of_root = trust::OF_ROOT.iter().map(|test| {
        let kind = if is_root { "" } else { "skipped: only root can give a file to another user" };
        trial(*test).with_ignored_flag(!is_root).with_kind(kind)
    });
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).chain(of_root).collect()).exit();
}
