//! What rustc shows for a mistake, and programs that must compile and run. One mistake a file.
//!
//! `TRYBUILD=overwrite cargo test --test ui` writes the messages anew. The kernel language's own messages are pinned without rustc in
//! `kernel-lang/tests/filetests/frontend/reject`.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
