//! The inputs of `galatea run`: tensors of a file, and random ones.

use std::path::Path;

use half::{bf16, f16};
use kernel_lang::diagnostic::did_you_mean;
use kernel_package::{Limits, Plan, PlanInput, weights};
use kernel_runtime::ops::Tensor;
use kernel_runtime::{Device, Dim, DimValues, Dtype, f8e4m3, f8e5m2};

use crate::argument::random;

/// The inputs of a run.
pub(super) struct Inputs {
    /// In the order of the program.
    pub(super) tensors: Vec<Tensor>,
    /// Whether there are random ones.
    pub(super) are_random: bool,
}

impl Inputs {
    /// The tensors of the file, and random ones for the other inputs. The values of dims are those of the tensors and of `values`. With limits, the
    /// random inputs may take as much memory as the package.
    pub(super) fn of(
        plan: &Plan,
        device: &Device,
        values: &[(String, i64)],
        file: Option<&Path>,
        (seed, limits): (u64, Option<Limits>),
    ) -> Result<Inputs, String> {
        let mut left = limits.map_or(u64::MAX, |limits| limits.most_memory());
        let given = file.map_or_else(|| Ok(Vec::new()), |file| of_file(plan, device, file))?;
        let mut dims = DimValues::new();
        for (input, (_, tensor)) in plan.inputs.iter().filter_map(|input| Some((input, find(&given, input)?))) {
            for (dim, extent) in input.ty.dims.iter().zip(tensor.dims()).filter(|(dim, _)| dim.is_named()) {
                // The run reports an extent that is not allowed.
                let _ = dims.set(dim, extent.known().unwrap_or(0));
            }
        }
        let known = plan.dims();
        for (name, value) in values {
            let dim = known.iter().find(|dim| dim.to_string() == *name).ok_or_else(|| no_dim(&known, name))?;
            dims.set(dim, *value).map_err(|error| error.to_string())?;
        }
        let (mut tensors, mut are_random) = (Vec::new(), false);
        // Spread the seed over the bits of the state, which is not 0 (Steele et al., *Fast splittable pseudorandom number generators*, 2014).
        let state = (seed.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut next = random(state.max(1));
        for input in &plan.inputs {
            if let Some((_, tensor)) = find(&given, input) {
                tensors.push(tensor.clone());
                continue;
            }
            are_random = true;
            let extent = |dim: &Dim| dim.value(&dims).map_err(|error| missing(&error.to_string(), dim, &known));
            let extents = input.ty.dims.iter().map(extent).collect::<Result<Vec<i64>, _>>()?;
            let count = extents.iter().try_fold(1usize, |count, extent| count.checked_mul(usize::try_from(*extent).ok()?));
            let needed = count.and_then(|count| count.checked_mul(input.ty.dtype.bytes())).map_or(u64::MAX, |bytes| bytes as u64);
            if needed > left {
                let reason = format!("input `{}` of {extents:?} takes {needed} bytes, and {left} are left below the limit", input.name);
                return Err(format!("{reason}\nhelp: if you want to run it, raise the limit: `--max-memory`, or give its `--inputs`"));
            }
            left -= needed;
            let bytes = count.and_then(|count| random_bytes(input.ty.dtype, count, &mut next));
            let bytes = bytes.ok_or_else(|| format!("input `{}` of {extents:?} does not fit into memory", input.name))?;
            let dims: Vec<Dim> = extents.iter().map(|extent| Dim::from(*extent)).collect();
            tensors.push(Tensor::from_bytes(device, input.ty.dtype, dims, &bytes).map_err(|error| error.to_string())?);
        }
        Ok(Inputs { tensors, are_random })
    }
}

fn find<'t>(given: &'t [(String, Tensor)], input: &PlanInput) -> Option<&'t (String, Tensor)> {
    given.iter().find(|(name, _)| *name == input.name)
}

fn of_file(plan: &Plan, device: &Device, file: &Path) -> Result<Vec<(String, Tensor)>, String> {
    let tensors = weights::load(file, device).map_err(|error| error.to_string())?;
    let names: Vec<&str> = plan.inputs.iter().map(|input| &*input.name).collect();
    match tensors.iter().find(|(name, _)| !names.contains(&&**name)) {
        Some((name, _)) => {
            let help = list("inputs", &names, name);
            Err(format!("{}: tensor `{name}` is no input of the program\nhelp: {help}", file.display()))
        }
        None => Ok(tensors),
    }
}

fn no_dim(known: &[Dim], name: &str) -> String {
    let names: Vec<String> = known.iter().map(Dim::to_string).collect();
    let help = list("dims", &names.iter().map(String::as_str).collect::<Vec<_>>(), name);
    format!("the program has no dim `{name}`\nhelp: {help}")
}

fn list(of: &str, names: &[&str], wrong: &str) -> String {
    match (did_you_mean(wrong, names.iter().copied()), names) {
        (Some(similar), _) => format!("did you mean `{similar}`?"),
        (None, []) => format!("it has no {of}"),
        (None, names) => format!("its {of} are {}", names.join(", ")),
    }
}

/// The error of an extent whose dims have no values yet.
fn missing(error: &str, dim: &Dim, known: &[Dim]) -> String {
    let ranges = known.iter().filter(|known| dim.named().contains(known)).filter_map(Dim::declared);
    let values: Vec<String> = ranges.map(|(name, range, _)| format!("`{name}=VALUE` with a value in {range:?}")).collect();
    format!("{error}\nhelp: add {}", values.join(" and "))
}

/// Random elements: floats between -4 and 4, integers from 0 to 99, booleans. None if there is no memory for them.
fn random_bytes(dtype: Dtype, count: usize, next: &mut impl FnMut() -> u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count.checked_mul(dtype.bytes())?).ok()?;
    for _ in 0..count {
        let bits = next();
        let (float, integer) = ((bits >> 40) as f64 / f64::from(1 << 21) - 4.0, (bits >> 11) % 100);
        let word = match dtype {
            Dtype::Bool => integer % 2,
            Dtype::F16 => f16::from_f64(float).to_bits().into(),
            Dtype::Bf16 => bf16::from_f64(float).to_bits().into(),
            Dtype::F32 => (float as f32).to_bits().into(),
            Dtype::F64 => float.to_bits(),
            Dtype::F8E4M3 => f8e4m3::from_f32(float as f32).to_bits().into(),
            Dtype::F8E5M2 => f8e5m2::from_f32(float as f32).to_bits().into(),
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 | Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => integer,
        };
        bytes.extend_from_slice(&word.to_le_bytes()[..dtype.bytes()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_random_and_in_range() {
        let all =
            [Dtype::Bool, Dtype::I8, Dtype::I64, Dtype::U16, Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64, Dtype::F8E4M3, Dtype::F8E5M2];
        for dtype in all {
            let bytes = |seed: u64| random_bytes(dtype, 200, &mut random(seed)).unwrap();
            assert_eq!((bytes(1).len(), bytes(1) == bytes(2)), (200 * dtype.bytes(), false), "{dtype}");
            assert_eq!(bytes(3), bytes(3));
        }
        let floats = random_bytes(Dtype::F32, 200, &mut random(1)).unwrap();
        assert!(floats.chunks(4).all(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()).abs() <= 4.0));
        assert!(random_bytes(Dtype::F64, usize::MAX / 4, &mut random(1)).is_none());
    }
}
