//! Weights in the safetensors format: the length of a JSON header, the header, and the elements of all tensors.
//!
//! <https://github.com/huggingface/safetensors> specifies the format. Its crate needs the derive macros of serde, and with them a second syn; a package needs
//! little of it.

use std::ops::Range;

use kernel_runtime::Dtype;
use serde_json::{Map, Value as Json, json};

use crate::error::PackageError;

/// A tensor in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    /// Where its bytes lie in the file.
    pub(crate) bytes: Range<usize>,
}

/// The most bytes of a header, as in the reference implementation.
const MOST_HEADER: usize = 100_000_000;

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

/// The bytes of a file with these tensors: their names, dtypes, shapes and little-endian elements.
pub(crate) fn write(tensors: &[(String, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut at) = (Map::new(), 0);
    for (name, dtype, shape, bytes) in tensors {
        let dtype = NAMES.iter().find(|(known, _)| known == dtype).map(|(_, name)| *name);
        header.insert(name.clone(), json!({ "dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes.len()] }));
        at += bytes.len();
    }
    let mut header = Json::Object(header).to_string().into_bytes();
    // Elements begin at a multiple of 8 bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.append(&mut header);
    tensors.iter().for_each(|(.., bytes)| file.extend_from_slice(bytes));
    file
}

/// The tensors of a file, whose extents fit their bytes.
pub(crate) fn read(file: &[u8]) -> Result<Vec<Entry>, PackageError> {
    let fail = |reason: &str| PackageError::Malformed { reason: format!("weights.safetensors: {reason}") };
    let len = file.first_chunk::<8>().map(|len| u64::from_le_bytes(*len)).ok_or_else(|| fail("it is cut off"))?;
    let len = usize::try_from(len).ok().filter(|len| *len <= MOST_HEADER).ok_or_else(|| fail("its header is too long"))?;
    let header = file.get(8..8 + len).ok_or_else(|| fail("its header is cut off"))?;
    let header: Json = serde_json::from_slice(header).map_err(|_| fail("its header is no JSON"))?;
    let data = 8 + len;
    let mut entries = Vec::new();
    for (name, entry) in header.as_object().ok_or_else(|| fail("its header is no object"))? {
        if name == "__metadata__" {
            continue;
        }
        let tensor = || {
            let dtype = entry["dtype"].as_str()?;
            let dtype = NAMES.iter().find(|(_, known)| *known == dtype)?.0;
            let number = |value: &Json| value.as_u64().and_then(|number| usize::try_from(number).ok());
            let shape: Vec<usize> = entry["shape"].as_array()?.iter().map(number).collect::<Option<_>>()?;
            let offsets = entry["data_offsets"].as_array()?;
            let [start, end] = [offsets.first()?, offsets.get(1)?].map(number);
            let (start, end) = (data.checked_add(start?)?, data.checked_add(end?)?);
            let len = shape.iter().try_fold(dtype.bytes(), |len, extent| len.checked_mul(*extent))?;
            let is_fine = start <= end && end <= file.len() && end - start == len;
            is_fine.then(|| Entry { name: name.clone(), dtype, shape, bytes: start..end })
        };
        entries.push(tensor().ok_or_else(|| fail(&format!("tensor `{name}` does not fit the file")))?);
    }
    Ok(entries)
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
        let file = write(&tensors);
        let found: Vec<_> = read(&file).unwrap().into_iter().map(|e| (e.name, e.dtype, e.shape, file[e.bytes].to_vec())).collect();
        assert_eq!(found, tensors);
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
            "[]",
            "{",
        ] {
            assert!(read(&file(header)).is_err(), "{header}");
        }
        assert!(read(&[1, 2]).is_err() && read(&u64::MAX.to_le_bytes()).is_err());
    }
}
