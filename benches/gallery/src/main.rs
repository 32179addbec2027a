//! Prints the table of works as JSON, a work a line: the programs in `peers/` that need no GPU read it.

use galatea_gallery::work::{Fill, Row};
use galatea_gallery::{WORKS, Work};

fn main() {
    for work in WORKS {
        let dtypes: Vec<String> = work.dtypes.iter().map(ToString::to_string).collect();
        let (sizes, test_sizes) = (shapes(work, &work.sizes), shapes(work, work.test_sizes));
        println!(r#"{{"name": "{}", "dtypes": {dtypes:?}, "sizes": [{sizes}], "test_sizes": [{test_sizes}]}}"#, work.name);
    }
}

/// Sizes, each with the tensors that `peers/` must have: `{"sizes": [8, 4], "tensors": [["x", "", 32], ["scales", "f32", 8]]}`.
fn shapes(work: &Work, sizes: &[&[usize]]) -> String {
    let is_shared = |row: &Row| !matches!(row.fill, Fill::Scratch | Fill::Addresses(..));
    let dtype = |row: &Row| row.dtype.map_or(String::new(), |dtype| dtype.to_string());
    let shape = |sizes: &&[usize]| {
        let rows = (work.tensors)(sizes).into_iter().filter(is_shared);
        let tensors: Vec<String> = rows.map(|row| format!(r#"["{}", "{}", {}]"#, row.name, dtype(&row), row.len)).collect();
        format!(r#"{{"sizes": {sizes:?}, "tensors": [{}]}}"#, tensors.join(", "))
    };
    sizes.iter().map(shape).collect::<Vec<_>>().join(", ")
}
