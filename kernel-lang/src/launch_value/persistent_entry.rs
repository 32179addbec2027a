//! The persistent entry of a module: a second function, for launches whose tensors can be copied in blocks by tensor maps.
//!
//! A module of PTX has one entry that runs every launch. It may have a persistent entry, too. That computes the same for launches in which the first of its own launch
//! values is true in all programs. It has its own number of threads and its own shared memory, and its CTAs are as many as the device holds at the same time: each works
//! through programs. The launch values are those of the grid of programs.
//!
//! Its parameters are those of the kernel, then `launch_0` and so on, then its tensor maps: `.param .align 64 .b8 map_0[128]` and so on. A tensor map describes
//! blocks of a tensor to `cp.async.bulk.tensor`. The host makes it for a launch (`cuTensorMapEncodeTiled`).
//!
//! The PTX states the entry in a comment in front of it, after the usual entry:
//!
//! ```text
//! // persistent entry: matmul_blocks
//! // 384 threads and 213000 bytes of shared memory a CTA, 1 CTAs a multiprocessor
//! // map_0: bf16, box [64, 128], swizzle 128, address launch_1, extents [launch_2, launch_3], strides [launch_4]
//! // launch values:
//! // kernel @launch_values(..) {
//! ```
//!
//! The axes of a map begin with the innermost, whose stride is 1; so there is one stride less. Extents and strides count elements. A swizzle permutes chunks of 16
//! bytes inside of so many bytes of shared memory, 0 for none.

mod separate_modules;
#[cfg(test)]
mod tests;

use std::fmt;

pub use separate_modules::separate_modules;

use super::{LaunchValues, MOST_PARAMETERS};
use crate::dtype::Dtype;

/// The beginning of the first line of the comment, with the end of the line before it.
const HEADER: &str = "\n// persistent entry: ";

/// The maximum number of tensor maps of an entry. Each takes 128 bytes of the parameters, of which a GPU has about 4000.
pub const MOST_MAPS: usize = 16;
/// The maximum number of axes of a tensor map.
pub const MOST_AXES: usize = 5;
/// The size of a tensor map in bytes.
pub const MAP_BYTES: usize = 128;
/// The alignment of the parameter with a tensor map, in bytes.
pub const MAP_ALIGNMENT: usize = 64;

/// The type of a tensor map whose copies round.
const TF32: &str = "tf32";
const MOST_THREADS: u32 = 1024;
const MOST_CTAS: u32 = 32;
const WARP: u32 = 32;
/// The longest name of an entry, in bytes.
const LONGEST_NAME: usize = 1024;
/// The unit of addresses, strides and boxes of tensor maps, in bytes.
const MAP_UNIT: u64 = 16;

/// A second entry of a module of PTX, for launches in which the first of its launch values is true in all programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentEntry {
    /// The name of the function in the PTX.
    pub name: String,
    /// The threads of a CTA.
    pub threads: u32,
    /// The dynamic shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// The CTAs of a launch for each multiprocessor, if there are as many programs.
    pub ctas_per_multiprocessor: u32,
    /// The tensor maps that it takes, in order.
    pub maps: Vec<TensorMap>,
}

/// A tensor map: blocks of a tensor whose address and shape are launch values, of type `i64`. Each is named by the number of its parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// The type of an element.
    pub dtype: Dtype,
    /// Do copies round elements of `f32` to the nearest of `tf32`? The text then has this type in place of `f32`.
    pub tf32: bool,
    /// The elements of a block along each axis, the innermost first.
    pub block: Vec<u32>,
    /// The bytes of shared memory inside of which chunks of 16 bytes are permuted: 32, 64 or 128, or 0 for none.
    pub swizzle: u32,
    /// The address of the first element.
    pub address: usize,
    /// The elements of the tensor along each axis.
    pub extents: Vec<usize>,
    /// The distance of neighbours along each axis but the innermost, in elements.
    pub strides: Vec<usize>,
}

/// The tensor of a tensor map in a launch. It obeys the rules of `cuTensorMapEncodeTiled`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedTensor {
    /// The address of the first element.
    pub address: u64,
    /// The elements along each axis, the innermost first.
    pub extents: Vec<u64>,
    /// The distance of neighbours along each axis but the innermost, in bytes.
    pub byte_strides: Vec<u64>,
}

/// The name of the parameter of a tensor map in the PTX.
pub fn map_name(number: usize) -> String {
    format!("map_{number}")
}

/// The part of a PTX text with the usual entry, and the part with the persistent entry, from its comment on.
pub fn split_entries(ptx: &str) -> (&str, Option<&str>) {
    match ptx.find(HEADER) {
        Some(at) => (&ptx[..=at], Some(&ptx[at + 1..])),
        None => (ptx, None),
    }
}

impl PersistentEntry {
    /// Reads the persistent entry that a PTX text states, and its launch values; `None` if it states none.
    ///
    /// # Errors
    /// If the comment is not one that the compiler writes.
    pub fn of_ptx(ptx: &str) -> Result<Option<(PersistentEntry, LaunchValues)>, String> {
        let Some(part) = split_entries(ptx).1 else { return Ok(None) };
        let named = |error: String| format!("the comment with the persistent entry: {error}");
        let entry = PersistentEntry::parse(part).map_err(named)?;
        let values = LaunchValues::of_part(part)?.ok_or_else(|| named("it states no launch values".to_owned()))?;
        entry.check(&values).map_err(named)?;
        Ok(Some((entry, values)))
    }

    /// Reads the lines in front of the launch values. Numbers have one spelling: printing the entry must give the same lines.
    fn parse(part: &str) -> Result<PersistentEntry, String> {
        if part.contains(HEADER) {
            return Err("there is more than one".to_owned());
        }
        let (above, _) = part.split_once(super::HEADER).ok_or("it states no launch values")?;
        let mut lines = above.lines();
        let name = lines.next().and_then(|line| line.strip_prefix(&HEADER[1..])).unwrap_or_default();
        let size = lines.next().unwrap_or_default();
        let [threads, shared_bytes, ctas_per_multiprocessor] = sizes(size).ok_or_else(|| malformed(size))?;
        let mut entry = PersistentEntry { name: name.to_owned(), threads, shared_bytes, ctas_per_multiprocessor, maps: Vec::new() };
        for line in lines {
            if entry.maps.len() == MOST_MAPS {
                return Err(format!("an entry has at most {MOST_MAPS} tensor maps"));
            }
            let map = line.split_once(": ").and_then(|(_, map)| TensorMap::parse(map));
            entry.maps.push(map.ok_or_else(|| malformed(line))?);
        }
        match entry.to_string().lines().zip(above.lines()).find(|(printed, line)| printed != line) {
            Some((_, line)) => Err(malformed(line)),
            None => Ok(entry),
        }
    }

    /// Checks the limits of the hardware, and that the launch values are of the types that the entry needs.
    fn check(&self, values: &LaunchValues) -> Result<(), String> {
        let PersistentEntry { name, threads, ctas_per_multiprocessor, maps, .. } = self;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(is_name) {
            return Err("the entry has no name".to_owned());
        }
        if !(WARP..=MOST_THREADS).contains(threads) || !threads.is_multiple_of(WARP) {
            return Err(format!("a CTA has whole warps of up to {MOST_THREADS} threads, not {threads} threads"));
        }
        if !(1..=MOST_CTAS).contains(ctas_per_multiprocessor) {
            return Err(format!("a multiprocessor holds 1 to {MOST_CTAS} CTAs, not {ctas_per_multiprocessor}"));
        }
        if values.parameter_count() > MOST_PARAMETERS {
            return Err(format!("there are more than {MOST_PARAMETERS} launch values"));
        }
        if !values.begins_with_bool() {
            return Err("the first launch value is no `bool`".to_owned());
        }
        maps.iter().try_for_each(|map| map.check(values))
    }
}

impl TensorMap {
    fn parse(text: &str) -> Option<TensorMap> {
        let (dtype, rest) = text.split_once(", box [")?;
        let (block, rest) = rest.split_once("], swizzle ")?;
        let (swizzle, rest) = rest.split_once(", address ")?;
        let (address, rest) = rest.split_once(", extents [")?;
        let (extents, rest) = rest.split_once("], strides [")?;
        let strides = rest.strip_suffix(']')?;
        let tf32 = dtype == TF32;
        Some(TensorMap {
            dtype: if tf32 { Dtype::F32 } else { dtype.parse().ok()? },
            tf32,
            block: list(block, |extent| extent.parse().ok())?,
            swizzle: swizzle.parse().ok()?,
            address: parameter(address)?,
            extents: list(extents, parameter)?,
            strides: list(strides, parameter)?,
        })
    }

    fn check(&self, values: &LaunchValues) -> Result<(), String> {
        let TensorMap { dtype, block, swizzle, address, extents, strides, .. } = self;
        let rank = extents.len();
        if !(1..=MOST_AXES).contains(&rank) || block.len() != rank || strides.len() + 1 != rank {
            return Err(format!("a tensor map has 1 to {MOST_AXES} extents, as many of its box, and one stride less"));
        }
        if let Some(extent) = block.iter().find(|extent| !(1..=256).contains(*extent)) {
            return Err(format!("an extent of the box of a tensor map is 1 to 256, not {extent}"));
        }
        let inner = block[0] as usize * dtype.bytes();
        if !inner.is_multiple_of(MAP_UNIT as usize) || !matches!(swizzle, 0 | 32 | 64 | 128) || (*swizzle > 0 && inner > *swizzle as usize)
        {
            return Err(format!("a box with rows of {inner} bytes cannot have the swizzle {swizzle}"));
        }
        let mut used = std::iter::once(address).chain(extents).chain(strides);
        match used.find(|number| values.uniform(**number) != Some(Dtype::I64)) {
            Some(number) => Err(format!("`launch_{number}` is no `i64` that is the same in all programs")),
            None => Ok(()),
        }
    }

    /// The tensor in a launch with these parameters of the entry's launch values. `None` if a tensor map cannot describe it: its address or a stride is no multiple of
    /// 16 bytes, a stride is 2^40 bytes or more, or an extent is not 1 to 2^32. The driver does not check all of these.
    pub fn tensor(&self, parameters: &[u64]) -> Option<MappedTensor> {
        let value = |number: &usize| parameters.get(*number).copied();
        let extent = |number: &usize| value(number).filter(|extent| (1..=1 << 32).contains(extent));
        let byte_stride = |number: &usize| {
            let bytes = value(number)?.checked_mul(self.dtype.bytes() as u64)?;
            (bytes.is_multiple_of(MAP_UNIT) && bytes < 1 << 40).then_some(bytes)
        };
        Some(MappedTensor {
            address: value(&self.address).filter(|address| address.is_multiple_of(MAP_UNIT))?,
            extents: self.extents.iter().map(extent).collect::<Option<_>>()?,
            byte_strides: self.strides.iter().map(byte_stride).collect::<Option<_>>()?,
        })
    }
}

/// The lines of the comment in front of the launch values.
impl fmt::Display for PersistentEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PersistentEntry { name, threads, shared_bytes, ctas_per_multiprocessor, maps } = self;
        writeln!(f, "{}{name}", &HEADER[1..])?;
        writeln!(
            f,
            "// {threads} threads and {shared_bytes} bytes of shared memory a CTA, {ctas_per_multiprocessor} CTAs a multiprocessor"
        )?;
        maps.iter().enumerate().try_for_each(|(number, map)| writeln!(f, "// {}: {map}", map_name(number)))
    }
}

impl fmt::Display for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorMap { dtype, tf32, block, swizzle, address, extents, strides } = self;
        let dtype = if *tf32 { TF32.to_owned() } else { dtype.to_string() };
        let parameters = |numbers: &[usize]| numbers.iter().map(|number| super::parameter_name(*number)).collect::<Vec<_>>().join(", ");
        let (extents, strides) = (parameters(extents), parameters(strides));
        let address = super::parameter_name(*address);
        write!(f, "{dtype}, box {block:?}, swizzle {swizzle}, address {address}, extents [{extents}], strides [{strides}]")
    }
}

fn malformed(line: &str) -> String {
    // A line of a damaged file may have any length.
    let shown: String = line.chars().take(80).collect();
    format!("`{shown}` is malformed")
}

/// The threads, the bytes of shared memory, and the CTAs of a multiprocessor.
fn sizes(line: &str) -> Option<[u32; 3]> {
    let (threads, rest) = line.strip_prefix("// ")?.split_once(" threads and ")?;
    let (shared_bytes, rest) = rest.split_once(" bytes of shared memory a CTA, ")?;
    let ctas = rest.strip_suffix(" CTAs a multiprocessor")?;
    Some([threads.parse().ok()?, shared_bytes.parse().ok()?, ctas.parse().ok()?])
}

/// Up to as many items as a map has axes.
fn list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let items: Vec<T> = text.split(", ").take(MOST_AXES + 1).map(item).collect::<Option<_>>()?;
    (items.len() <= MOST_AXES).then_some(items)
}

/// The number of a parameter with a launch value.
fn parameter(name: &str) -> Option<usize> {
    name.strip_prefix("launch_")?.parse().ok().filter(|number| *number < MOST_PARAMETERS)
}
