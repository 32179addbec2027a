//! Files of tuning records named on the command line.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use kernel_runtime::cache::Records;

/// A record takes about 10 KiB, so the limit is thousands of records. A larger file was probably named by mistake and is not read.
const MOST_BYTES: u64 = 64 << 20;

/// The records of a file; none if the file does not exist.
pub(crate) fn read(file: &Path) -> Result<Option<Records>, String> {
    let name = file.display();
    let cannot = |error: std::io::Error| format!("cannot read `{name}`: {error}");
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    let mut text = String::new();
    let length = opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    if length as u64 > MOST_BYTES {
        return Err(format!("{name} is larger than {} MiB: these are no records of tuning", MOST_BYTES >> 20));
    }
    Records::parse(&text).map(Some).map_err(|error| format!("{name}: {error}"))
}
