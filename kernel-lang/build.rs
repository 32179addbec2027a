//! Gives the compiler a name that changes whenever its sources do: what it compiled may then be kept on disk, and a compiler that has been
//! edited, or built from another commit of the same version, never meets what another one made.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut hasher = DefaultHasher::new();
    add(Path::new("src"), &mut hasher)?;
    println!("cargo::rustc-env=SOURCES_HASH={:016x}", hasher.finish());
    Ok(())
}

/// Adds the names and texts of all files of a folder, in the order of their names.
fn add(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hasher)?;
        } else {
            let text = fs::read(&path)?;
            hasher.write(path.to_string_lossy().replace('\\', "/").as_bytes());
            hasher.write_u64(text.len() as u64);
            hasher.write(&text);
        }
    }
    Ok(())
}
