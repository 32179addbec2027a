//! Compile-fail tests, one mistake a file, with the diagnostics that rustc shows; and programs that must compile and run.
//!
//! `TRYBUILD=overwrite cargo test -p ui` writes the messages anew. The kernel language's own messages are pinned without rustc in
//! `kernel-lang/tests/filetests/frontend/reject`.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("pass/*.rs");
    cases.compile_fail("fail/*.rs");
}
