//! Has Cargo make a folder inside of the target directory, where variants are kept from build to build: see `src/store.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
