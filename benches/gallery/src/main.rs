//! Prints the table of works as JSON, a work a line: the programs in `peers/` that need no GPU read it.

use galatea_gallery::WORKS;

fn main() {
    for work in WORKS {
        let dtypes: Vec<String> = work.dtypes.iter().map(ToString::to_string).collect();
        println!(r#"{{"name": "{}", "dtypes": {dtypes:?}, "sizes": {:?}, "test_sizes": {:?}}}"#, work.name, work.sizes, work.test_sizes);
    }
}
