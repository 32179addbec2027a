//! Raw elements in files, by which the benchmark and its peers see the same inputs, and the peers see our results.

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};

use galatea::{Device, Element, Tensor};

use crate::peers::Peers;

/// A folder of raw elements, through which both sides see the same inputs and the peers see our results. Removed when dropped.
pub(crate) struct Exchange {
    folder: PathBuf,
}

impl Exchange {
    pub(crate) fn new() -> std::io::Result<Exchange> {
        let folder = std::env::temp_dir().join(format!("galatea-against-peers-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Exchange { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.bin"))
    }

    /// An input that the peers have written.
    pub(crate) fn tensor<T: Element>(&self, device: &Device, name: &str) -> Result<Tensor<T>, Box<dyn Error>> {
        let path = self.file(name);
        let mut file = std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let len = usize::try_from(file.metadata()?.len())? / size_of::<T>();
        let mut elements = vec![T::default(); len];
        // SAFETY: elements are numbers, for which any bytes are a value, and the slice covers exactly the vector's.
        let bytes = unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast::<u8>(), size_of_val(&*elements)) };
        file.read_exact(bytes)?;
        std::fs::remove_file(&path)?;
        Ok(device.tensor(&elements)?)
    }

    /// Lets the peers compare a result of ours with their reference in f64.
    pub(crate) fn check<T: Element>(&self, peers: &mut Peers, name: &str, result: &[T]) -> Result<(), Box<dyn Error>> {
        let path = self.file(name);
        // SAFETY: as above; elements have no padding.
        let bytes = unsafe { std::slice::from_raw_parts(result.as_ptr().cast::<u8>(), size_of_val(result)) };
        std::fs::write(&path, bytes)?;
        peers.ask(&format!("check {name} {}", path.display()))?;
        Ok(std::fs::remove_file(&path)?)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
