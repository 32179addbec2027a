//! Kernels as text, one idea a file: a folder a theme, `tests/kernels/<theme>/<name>.rs`, read when the tests run.
//!
//! ```text
//! //! What is special about this kernel: why a compiler might get it wrong.
//! //! x: any 300            elements of the tensor `x`: so many of any bits, `whole` numbers from -20 to 20, `counting` from 0 on, or `zeros`
//! //! y: zeros 300
//! //! n: 60, 64, 300        a scalar; each of its values is a launch, which takes the entries at the same index of other lists
//! //! grid: 3               programs of a launch; 1 by default, as are `grid_y`, `grid_z` and `ctas`. `warps` are 4, in all launches
//! fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) { .. }
//!
//! fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) { .. }
//! ```
//!
//! `kernel` on each device must write the same bits as `reference` on the CPU. The reference is a loop over scalars where possible, so that a wrong
//! pass does not change both alike. A file without a `reference` compares with the kernel itself on the CPU; that suffices for barriers and other parts
//! of code generation for GPUs. Each kernel is one trial a device, such as `sim::masks::of_rows`, and each launch runs twice.

#[allow(dead_code, reason = "conformance uses all of it")]
#[path = "../conformance/array.rs"]
mod array;
mod case;
#[path = "../devices/mod.rs"]
mod devices;
#[allow(dead_code, reason = "conformance uses all of it")]
#[path = "../conformance/lab.rs"]
mod lab;
#[path = "../conformance/memory.rs"]
mod memory;
#[allow(dead_code, reason = "conformance uses all of it")]
#[path = "../conformance/number.rs"]
mod number;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use case::Case;
use libtest_mimic::{Arguments, Failed};

fn main() {
    let arguments = Arguments::from_args();
    let seed = std::env::var("GALATEA_SEED").map_or(1, |text| text.parse().expect("GALATEA_SEED is a number"));
    let columns = devices::columns(seed);
    let mut trials = Vec::new();
    for (name, path) in files() {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let case = Arc::new(Case::parse(&text));
        for column in &columns {
            let (read, own) = (case.clone(), case.clone());
            let is_alone = move |device: galatea::Device| match read.as_ref() {
                Ok(case) if device.is_cpu() && !case.has_reference() => Some("skipped: there is no reference"),
                _ => None,
            };
            trials.push(column.trial_unless(&name, is_alone, move |device| {
                let case = own.as_ref().as_ref().map_err(|error| Failed::from(error.clone()))?;
                case.check(device, seed).map_err(Failed::from)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The files and the names of their trials, sorted.
fn files() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    // A bundle runs its tests where their files lie.
    let root = if root.exists() { root } else { PathBuf::from("tests/kernels") };
    let read = |folder: &Path| -> Vec<PathBuf> {
        let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("a folder can be read").path()).collect()
    };
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let themes = read(&root).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<_> = themes
        .flat_map(|theme| read(&theme).into_iter().map(|file| (format!("{}::{}", stem(&theme), stem(&file)), file)).collect::<Vec<_>>())
        .filter(|(_, file)| file.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}
