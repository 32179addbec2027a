//! Named tensors in the safetensors format: the length of a JSON header, the header, and the elements of all tensors.
//!
//! <https://github.com/huggingface/safetensors> specifies the format. Its crate needs the derive macros of serde, and with them a second syn; a package needs
//! little of it.
//!
//! ```
//! use kernel_package::weights;
//! use kernel_runtime::Device;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cpu = Device::cpu();
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("model.safetensors");
//! weights::save(&path, &[("bias".to_owned(), cpu.tensor(&[1.0f32, 2.0])?.into())])?;
//! let tensors = weights::load(&path, &cpu)?;
//! assert_eq!((&*tensors[0].0, tensors[0].1.to_vec::<f32>()?), ("bias", vec![1.0, 2.0]));
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use kernel_runtime::ops::{Module, Tensor};
use kernel_runtime::{Device, Dim, DimValues, Dtype};
use serde_json::{Map, Value as Json, json};

use crate::error::PackageError;
use crate::files;
use crate::json::is_sparse;

/// A tensor in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The name of the tensor.
    pub name: String,
    /// The dtype of the elements.
    pub dtype: Dtype,
    /// The extents.
    pub shape: Vec<usize>,
    /// The bytes of the file with its elements: row-major and little-endian.
    pub bytes: Range<usize>,
}

impl Entry {
    /// The type: `f32[2, 3]`.
    pub fn ty(&self) -> String {
        format!("{}{:?}", self.dtype, self.shape)
    }
}

/// Writes a file of named tensors. If a file exists, it is replaced in one step: a reader sees the old one or the new one.
///
/// # Errors
/// [`PackageError::File`] for the path, [`PackageError::SameName`] for two tensors of one name, and errors of copies from the device.
pub fn save(path: impl AsRef<Path>, tensors: &[(String, Tensor)]) -> Result<(), PackageError> {
    let (path, contents) = (path.as_ref(), Contents::of(tensors)?);
    files::replace(path, |file| {
        let fail = |source| PackageError::File { path: path.to_owned(), source };
        contents.parts().try_for_each(|part| file.write_all(&part?).map_err(fail))
    })
}

/// Reads a file of named tensors. They are copied to the device, in the order of the file.
///
/// # Errors
/// [`PackageError::File`] if it cannot be read, [`PackageError::Weights`] if it is not in the format, and errors of the device.
pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<Vec<(String, Tensor)>, PackageError> {
    let path = path.as_ref();
    let file = files::map(path)?;
    let entries = read(&file).map_err(|reason| PackageError::Weights { path: path.to_owned(), reason })?;
    entries.into_iter().map(|entry| Ok((entry.name.clone(), tensor(device, &entry, &file)?))).collect()
}

/// Writes the parameters of a model to a file, under their names. If a file exists, it is replaced in one step.
///
/// # Errors
/// As [`save`].
pub fn save_parameters(model: &impl Module, path: impl AsRef<Path>) -> Result<(), PackageError> {
    save(path, &model.parameters())
}

/// Replaces the parameters of a model by the tensors of a file, each on the device of the old one. Names that share a tensor still share one. If there is an error, the model keeps its parameters.
///
/// # Errors
/// - [`PackageError::NoTensor`] for a parameter that the file lacks, and [`PackageError::NoParameter`] for a tensor that the model lacks
/// - [`PackageError::ParameterType`] for another dtype or shape
/// - [`PackageError::SharedParameter`] if two names are one tensor of the model, and have other elements in the file
/// - those of [`load`]
pub fn load_parameters(model: &mut impl Module, path: impl AsRef<Path>) -> Result<(), PackageError> {
    let path = path.as_ref();
    let file = files::map(path)?;
    let entries = read(&file).map_err(|reason| PackageError::Weights { path: path.to_owned(), reason })?;
    let mut by_name: HashMap<&str, &Entry> = entries.iter().map(|entry| (&*entry.name, entry)).collect();
    let mut new: HashMap<String, Tensor> = HashMap::new();
    // The first name of each parameter, and its entry.
    let mut known: Vec<(Tensor, String, &Entry)> = Vec::new();
    for (name, old) in model.parameters() {
        let entry = by_name.remove(&*name).ok_or_else(|| PackageError::NoTensor { path: path.to_owned(), name: name.clone() })?;
        if entry.dtype != old.dtype() || entry.shape != extents(&old.dims())? {
            let expected = format!("{}{:?}", old.dtype(), extents(&old.dims())?);
            return Err(PackageError::ParameterType { path: path.to_owned(), found: entry.ty(), expected, name });
        }
        // A parameter of two names stays one tensor.
        let shared = known.iter().find(|(tensor, ..)| tensor.is_same(&old));
        let tensor = match shared {
            Some((_, first, entry_of_first)) if file[entry_of_first.bytes.clone()] != file[entry.bytes.clone()] => {
                return Err(PackageError::SharedParameter { path: path.to_owned(), first: first.clone(), second: name });
            }
            Some((_, first, _)) => new[first].clone(),
            None => tensor(&old.device().unwrap_or_else(Device::cpu), entry, &file)?,
        };
        if shared.is_none() {
            known.push((old, name.clone(), entry));
        }
        new.insert(name, tensor);
    }
    // The first in the order of the file, so that equal mistakes have equal errors.
    if let Some(extra) = entries.iter().find(|entry| by_name.contains_key(&*entry.name)) {
        return Err(PackageError::NoParameter { path: path.to_owned(), name: extra.name.clone() });
    }
    model.visit_mut("", &mut |name, parameter| {
        if let Some(tensor) = new.get(name) {
            *parameter = tensor.clone();
        }
        Ok(())
    })?;
    Ok(())
}

/// A tensor with the elements of an entry.
pub(crate) fn tensor(device: &Device, entry: &Entry, file: &[u8]) -> Result<Tensor, PackageError> {
    let dims: Vec<Dim> = entry.shape.iter().map(|extent| Dim::from(*extent)).collect();
    Ok(Tensor::from_bytes(device, entry.dtype, dims, &file[entry.bytes.clone()])?)
}

/// The extents of a tensor with elements.
pub(crate) fn extents(dims: &[Dim]) -> Result<Vec<usize>, PackageError> {
    let extent = |dim: &Dim| Ok(usize::try_from(dim.value(&DimValues::new())?).unwrap_or(0));
    dims.iter().map(extent).collect::<Result<_, kernel_runtime::Error>>().map_err(PackageError::from)
}

/// The most bytes of a header, as in the reference implementation.
const MOST_HEADER: usize = 100_000_000;
/// The entry of a header that is no tensor.
const METADATA: &str = "__metadata__";

const NAMES: [(Dtype, &str); 15] = [
    (Dtype::Bool, "BOOL"),
    (Dtype::I8, "I8"),
    (Dtype::I16, "I16"),
    (Dtype::I32, "I32"),
    (Dtype::I64, "I64"),
    (Dtype::U8, "U8"),
    (Dtype::U16, "U16"),
    (Dtype::U32, "U32"),
    (Dtype::U64, "U64"),
    (Dtype::F16, "F16"),
    (Dtype::Bf16, "BF16"),
    (Dtype::F32, "F32"),
    (Dtype::F64, "F64"),
    (Dtype::F8E4M3, "F8_E4M3"),
    (Dtype::F8E5M2, "F8_E5M2"),
];

/// The contents of a file with named tensors. Only one of them at a time is copied from its device.
pub(crate) struct Contents<'t> {
    header: Vec<u8>,
    tensors: &'t [(String, Tensor)],
    len: u64,
}

impl<'t> Contents<'t> {
    pub(crate) fn of(tensors: &'t [(String, Tensor)]) -> Result<Contents<'t>, PackageError> {
        let ty = |(name, tensor): &(String, Tensor)| Ok((name.clone(), tensor.dtype(), extents(&tensor.dims())?));
        let (header, data) = header(&tensors.iter().map(ty).collect::<Result<Vec<_>, PackageError>>()?)?;
        Ok(Contents { len: header.len() as u64 + data, header, tensors })
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes in their order: the header, and the elements of each tensor.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Result<Vec<u8>, PackageError>> + '_ {
        let elements = self.tensors.iter().map(|(_, tensor)| tensor.to_bytes().map_err(PackageError::from));
        std::iter::once_with(|| Ok(self.header.clone())).chain(elements)
    }
}

/// The header of a file with tensors of these names, dtypes and shapes, with its length in front; and the number of bytes of the elements behind it.
fn header(tensors: &[(String, Dtype, Vec<usize>)]) -> Result<(Vec<u8>, u64), PackageError> {
    let (mut header, mut at) = (Map::new(), 0);
    for (name, dtype, shape) in tensors {
        let end = at + shape.iter().product::<usize>() as u64 * dtype.bytes() as u64;
        let dtype = NAMES.iter().find(|(known, _)| known == dtype).map(|(_, name)| *name);
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [at, end] });
        if name == METADATA || header.insert(name.clone(), entry).is_some() {
            return Err(PackageError::SameName { name: name.clone() });
        }
        at = end;
    }
    let mut header = Json::Object(header).to_string().into_bytes();
    // Elements begin at a multiple of 8 bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(([&(header.len() as u64).to_le_bytes()[..], &header].concat(), at))
}

/// The bytes of the header that a file states, as far as the file has them.
pub(crate) fn header_len(file: &[u8]) -> usize {
    let stated = file.first_chunk::<8>().map_or(0, |len| u64::from_le_bytes(*len));
    usize::try_from(stated).map_or(file.len(), |stated| stated.min(file.len()))
}

/// The tensors of a file in the order of their elements, or what is wrong with the file.
///
/// Extents fit the bytes. The tensors cover all bytes behind the header, each byte once, as the format demands. So copies of all tensors take no more memory
/// than the file.
pub(crate) fn read(file: &[u8]) -> Result<Vec<Entry>, String> {
    let fail = |reason: &str| reason.to_owned();
    let len = file.first_chunk::<8>().map(|len| u64::from_le_bytes(*len)).ok_or_else(|| fail("it is cut off"))?;
    let len = usize::try_from(len).ok().filter(|len| *len <= MOST_HEADER).ok_or_else(|| fail("its header is too long"))?;
    let header = file.get(8..8 + len).ok_or_else(|| fail("its header is cut off"))?;
    if !is_sparse(header) {
        return Err(fail("its header has too many values for its size"));
    }
    let header: Json = serde_json::from_slice(header).map_err(|_| fail("its header is no JSON"))?;
    let data = 8 + len;
    let mut entries = Vec::new();
    for (name, entry) in header.as_object().ok_or_else(|| fail("its header is no object"))? {
        if name == METADATA {
            continue;
        }
        let tensor = || {
            let dtype = entry["dtype"].as_str()?;
            let dtype = NAMES.iter().find(|(_, known)| *known == dtype)?.0;
            let number = |value: &Json| value.as_u64().and_then(|number| usize::try_from(number).ok());
            let shape: Vec<usize> = entry["shape"].as_array()?.iter().map(number).collect::<Option<_>>()?;
            let offsets = entry["data_offsets"].as_array().filter(|offsets| offsets.len() == 2)?;
            let [start, end] = [&offsets[0], &offsets[1]].map(number);
            let (start, end) = (data.checked_add(start?)?, data.checked_add(end?)?);
            let len = shape.iter().try_fold(dtype.bytes(), |len, extent| len.checked_mul(*extent))?;
            let is_fine = start <= end && end <= file.len() && end - start == len;
            is_fine.then(|| Entry { name: name.clone(), dtype, shape, bytes: start..end })
        };
        entries.push(tensor().ok_or_else(|| fail(&format!("tensor `{name}` does not fit the file")))?);
    }
    entries.sort_by_key(|entry| (entry.bytes.start, entry.bytes.end));
    let mut at = data;
    for Entry { name, bytes, .. } in &entries {
        if bytes.start != at {
            return Err(fail(&format!("tensor `{name}` does not begin where the one before it ends")));
        }
        at = bytes.end;
    }
    if at == file.len() { Ok(entries) } else { Err(fail("it has bytes that belong to no tensor")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_back() {
        let tensors = [
            ("a".to_owned(), Dtype::Bf16, vec![2, 3], vec![1; 12]),
            ("b.weight".to_owned(), Dtype::F64, vec![], vec![2; 8]),
            ("c".to_owned(), Dtype::F8E5M2, vec![0, 7], vec![]),
        ];
        let types: Vec<_> = tensors.iter().map(|(name, dtype, shape, _)| (name.clone(), *dtype, shape.clone())).collect();
        let (mut file, data) = header(&types).unwrap();
        tensors.iter().for_each(|(.., bytes)| file.extend(bytes));
        assert_eq!(data, 20);
        let found: Vec<_> = read(&file).unwrap().into_iter().map(|e| (e.name, e.dtype, e.shape, file[e.bytes].to_vec())).collect();
        assert_eq!(found, tensors);
    }

    #[test]
    fn a_name_is_used_once() {
        let tensor = |name: &str| (name.to_owned(), Dtype::U8, vec![1]);
        assert!(header(&[tensor("a"), tensor("b")]).is_ok());
        for tensors in [[tensor("a"), tensor("a")], [tensor("a"), tensor(METADATA)]] {
            assert!(matches!(header(&tensors), Err(PackageError::SameName { .. })));
        }
    }

    #[test]
    fn a_file_of_another_program_is_read() {
        let header = br#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let file = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat();
        assert_eq!(
            read(&file).unwrap(),
            [Entry { name: "w".to_owned(), dtype: Dtype::F32, shape: vec![2], bytes: 8 + header.len()..file.len() }]
        );
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        let file = |header: &str| [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 8]].concat();
        for header in [
            r#"{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#,
            r#"{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#,
            r#"{"w":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#,
            r#"{"w":{"dtype":"Q4","shape":[2],"data_offsets":[0,8]}}"#,
            r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#,
            r#"{"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
            r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
            r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
            r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}"#,
            "{}",
            "[]",
            "{",
        ] {
            assert!(read(&file(header)).is_err(), "{header}");
        }
        assert!(read(&[1, 2]).is_err() && read(&u64::MAX.to_le_bytes()).is_err());
    }
}
