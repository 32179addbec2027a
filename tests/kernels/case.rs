//! A file: what a kernel is launched with, its text, and that of its reference.

use std::collections::BTreeMap;

use galatea::{Device, Dtype};

use crate::array::{Array, Tolerance};
use crate::lab::{Arg, Lab, NAMES, Source};
use crate::number::Number;

/// The largest magnitude of `whole` elements: their sums are exact in any order.
const LARGEST_WHOLE: i128 = 20;

/// The numbers of a header that are no arguments of the kernel.
const NOT_ARGUMENTS: [&str; 5] = ["grid", "grid_y", "grid_z", "warps", "ctas"];

pub(crate) struct Case {
    kernel: Source,
    reference: Option<Source>,
    parameters: Vec<Parameter>,
    /// By their names: the numbers of each launch, or one for all.
    numbers: BTreeMap<String, Vec<i128>>,
}

struct Parameter {
    name: String,
    dtype: Dtype,
    kind: Kind,
}

enum Kind {
    Scalar,
    Tensor { is_written: bool, elements: Elements, len: usize },
}

#[derive(Clone, Copy)]
enum Elements {
    Any,
    Whole,
    Counting,
    Zeros,
}

impl Case {
    /// Reads a file, or says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Case, String> {
        let header: BTreeMap<&str, &str> =
            text.lines().map_while(|line| line.strip_prefix("//!")).filter_map(|line| line.trim().split_once(": ")).collect();
        let code: String = text.lines().skip_while(|line| line.starts_with("//!")).map(|line| format!("{line}\n")).collect();
        let (kernel, reference) = match code.split_once("\nfn reference(") {
            Some((kernel, reference)) => (kernel.to_owned() + "\n", Some(format!("fn kernel({reference}"))),
            None => (code.clone(), None),
        };
        let list = kernel.split_once("fn kernel(").and_then(|(_, rest)| rest.split_once(") {")).map(|(list, _)| list);
        let list = list.ok_or("there is no `fn kernel(..) {`")?;
        let parameters = split(list).map(|text| Parameter::parse(text, &header)).collect::<Result<Vec<_>, String>>()?;
        if parameters.len() > NAMES.len() {
            return Err(format!("a kernel of a file has at most {} parameters, not {}", NAMES.len(), parameters.len()));
        }

        let mut numbers = BTreeMap::new();
        let scalars = parameters.iter().filter(|parameter| matches!(parameter.kind, Kind::Scalar)).map(|parameter| parameter.name.as_str());
        for name in scalars.chain(NOT_ARGUMENTS) {
            let Some(list) = header.get(name) else {
                if !NOT_ARGUMENTS.contains(&name) {
                    return Err(format!("no `//! {name}: ..` says what `{name}` is"));
                }
                continue;
            };
            let list = list.split(',').map(|text| text.trim().parse::<i128>()).collect::<Result<Vec<_>, _>>();
            numbers.insert(name.to_owned(), list.map_err(|error| format!("`{name}`: {error}"))?);
        }
        let number = |name: &str, usual: i128| numbers.get(name).map_or(usual, |list: &Vec<i128>| list[0]) as u32;
        Ok(Case { kernel: Source::new(kernel).warps(number("warps", 4)), reference: reference.map(Source::new), parameters, numbers })
    }

    pub(crate) fn has_reference(&self) -> bool {
        self.reference.is_some()
    }

    /// Holds a device to the reference.
    pub(crate) fn check(&self, device: Device, seed: u64) -> Result<(), String> {
        let launches = self.numbers.values().map(Vec::len).max().unwrap_or(1);
        for launch in 0..launches {
            // Each launch has other elements, and runs twice: a fast path may need all tensors aligned, the other path one that is not.
            let lab = |device: Device| Lab::new(device, seed, &format!("launch {launch}"));
            let wanted = self.written(self.reference.as_ref().unwrap_or(&self.kernel), launch, lab(Device::cpu()), true)?;
            for (run, is_aligned) in [("", true), ("tensors at any addresses, ", false)] {
                let found = self.written(&self.kernel, launch, lab(device), is_aligned)?;
                for ((name, found), (_, wanted)) in found.iter().zip(&wanted) {
                    // The check rounds what is wanted to its type, which for `f8e5m2` makes an infinity the largest number. Equal bits need no check.
                    let is_right =
                        if found.bits == wanted.bits { Ok(()) } else { found.check(Tolerance::Exact, |index| wanted.get(index)) };
                    is_right.map_err(|error| format!("{run}launch {launch}: `{name}`: {error}\nin {}", self.kernel.text))?;
                }
            }
        }
        Ok(())
    }

    /// Runs one launch, and returns the tensors that it writes. Labs of one seed give the same elements on every device.
    fn written(&self, source: &Source, launch: usize, mut lab: Lab, is_aligned: bool) -> Result<Vec<(&str, Array)>, String> {
        let number = |name: &str| self.numbers.get(name).map_or(1, |list| *list.get(launch).unwrap_or(&list[0]));
        let mut arrays: Vec<Option<Array>> = self.parameters.iter().map(|parameter| parameter.elements(&mut lab)).collect();
        let mut args = Vec::new();
        for (parameter, array) in self.parameters.iter().zip(&mut arrays) {
            args.push(match (&parameter.kind, array) {
                (Kind::Tensor { is_written: true, .. }, Some(array)) => Arg::Out(array),
                (_, Some(array)) => Arg::In(array),
                (_, None) => Arg::Scalar(parameter.dtype, Number::Int(number(&parameter.name))),
            });
        }
        let mut source = source.clone();
        if lab.has_clusters() {
            source.schedule.num_ctas = number("ctas") as u32;
        }
        let grid = ["grid", "grid_y", "grid_z"].map(|axis| number(axis) as usize);
        if is_aligned {
            lab.launch_aligned(&source, grid, &mut args)?
        } else {
            lab.launch(&source, grid, &mut args)?
        }
        let all = self.parameters.iter().zip(arrays);
        let is_written = |parameter: &Parameter| matches!(parameter.kind, Kind::Tensor { is_written: true, .. });
        Ok(all.filter(|(own, _)| is_written(own)).filter_map(|(own, array)| Some((own.name.as_str(), array?))).collect())
    }
}

impl Parameter {
    fn parse(text: &str, header: &BTreeMap<&str, &str>) -> Result<Parameter, String> {
        let (name, ty) = text.split_once(": ").ok_or_else(|| format!("`{text}` is no parameter"))?;
        let dtype = |name: &str| name.parse::<Dtype>().map_err(|_| format!("`{name}` is no type of elements"));
        let pointee = |prefix: &str| ty.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
        let (is_written, dtype) = match (pointee("PtrMut<"), pointee("Ptr<"), ty) {
            (Some(pointee), ..) => (true, dtype(pointee)?),
            (_, Some(pointee), _) => (false, dtype(pointee)?),
            (_, _, "usize") => return Ok(Parameter { name: name.to_owned(), dtype: Dtype::I64, kind: Kind::Scalar }),
            _ => return Ok(Parameter { name: name.to_owned(), dtype: dtype(ty)?, kind: Kind::Scalar }),
        };
        let elements = header.get(name).ok_or_else(|| format!("no `//! {name}: ..` says what `{name}` holds"))?;
        let mut words = elements.split_whitespace();
        let elements = match words.next() {
            Some("any") => Elements::Any,
            Some("whole") => Elements::Whole,
            Some("counting") => Elements::Counting,
            Some("zeros") => Elements::Zeros,
            _ => return Err(format!("`{name}` holds `any`, `whole`, `counting` or `zeros`, not `{elements}`")),
        };
        let len = words.next().and_then(|len| len.parse().ok()).ok_or_else(|| format!("how many elements has `{name}`?"))?;
        Ok(Parameter { name: name.to_owned(), dtype, kind: Kind::Tensor { is_written, elements, len } })
    }

    /// A tensor's elements.
    fn elements(&self, lab: &mut Lab) -> Option<Array> {
        let Kind::Tensor { elements, len, .. } = self.kind else { return None };
        let is_signed = self.dtype.int_range().is_none() || self.dtype.is_signed_int();
        Some(match elements {
            Elements::Any => lab.any(self.dtype, len),
            Elements::Whole => lab.ints(self.dtype, len, if is_signed { -LARGEST_WHOLE } else { 0 }, LARGEST_WHOLE + 1),
            Elements::Counting => Array::ints(self.dtype, (0..len).map(|index| index as i128)),
            Elements::Zeros => Array::ints(self.dtype, vec![0; len]),
        })
    }
}

/// The parameters of a list, which may end with a comma.
fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty())
}
