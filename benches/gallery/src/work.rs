//! One row of the table of works: its tensors, its launch, and its reference in f64.
//!
//! A test makes the tensors of a row itself, from random numbers. The benchmark takes them from the memory of the Triton process. Both put them into a
//! [`Case`], from which the launch takes them by name.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::ops::{DerefMut, Index};

use galatea::{Device, Dtype, Element, Lent, Result, Tensor, Tensors};

/// A kernel of the gallery, with all that a test and a benchmark need to run it.
pub struct Work {
    /// The name, which is also the name of its function in `peers/`.
    pub name: &'static str,
    /// The element types with which it is run.
    pub dtypes: &'static [Dtype],
    /// The sizes for benchmarks: aligned ones, odd ones, and fewer than 2^20 elements.
    pub sizes: [&'static [usize]; 3],
    /// The sizes for tests.
    pub test_sizes: &'static [&'static [usize]],
    /// The tensors for these sizes.
    pub tensors: fn(&[usize]) -> Vec<Row>,
    /// Launches the kernels of the work.
    pub launch: fn(Dtype, &Case, &[usize], &mut Run) -> Result<()>,
    /// The values that the outputs should have, in f64, by loops that know nothing of the kernel.
    pub reference: fn(&[usize], &Host) -> Outputs,
    /// How many times the error of one rounding a result may be off.
    pub tolerance: f64,
}

/// The values of outputs, by name.
pub type Outputs = Vec<(&'static str, Vec<f64>)>;

/// `f32` and `bf16`: the element types of most works.
pub const FLOATS: &[Dtype] = &[Dtype::F32, Dtype::Bf16];

/// A tensor of a work.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name by which the launch, the reference and `peers/` find it.
    pub name: &'static str,
    /// The element type; `None` is the element type of the work.
    pub dtype: Option<Dtype>,
    /// The number of elements.
    pub len: usize,
    /// The contents before the launch.
    pub fill: Fill,
    /// Whether the launch writes the tensor, so that a test compares it.
    pub is_output: bool,
    /// How far an element may be off, if the type and the tolerance of the work do not say that.
    pub within: Option<f64>,
}

/// The contents of a tensor before the launch.
#[derive(Clone, Debug)]
pub enum Fill {
    /// NaN, or for integers a number that no work computes.
    Poison,
    /// Random numbers from the first to the second.
    Between(f64, f64),
    /// Random whole numbers below this one.
    Below(usize),
    /// These numbers.
    These(Vec<f64>),
    /// Memory for our side only, which neither the test nor the peers look at.
    Scratch,
    /// The addresses of the parts of these tensors, which begin at these elements: [`Case::add_addresses`] makes them.
    Addresses(&'static [&'static str], Vec<usize>),
}

fn row(name: &'static str, len: usize, fill: Fill, is_output: bool) -> Row {
    Row { name, dtype: None, len, fill, is_output, within: None }
}

/// Random numbers from -2 to 2, which the launch reads.
pub fn input(name: &'static str, len: usize) -> Row {
    row(name, len, Fill::Between(-2.0, 2.0), false)
}

/// Random whole numbers below `limit`, as `i64`: indices.
pub fn indices(name: &'static str, len: usize, limit: usize) -> Row {
    row(name, len, Fill::Below(limit), false).of(Dtype::I64)
}

/// These numbers, as `i64`: the lengths of sequences.
pub fn lengths(name: &'static str, numbers: Vec<usize>) -> Row {
    let numbers: Vec<f64> = numbers.into_iter().map(|number| number as f64).collect();
    row(name, numbers.len(), Fill::These(numbers), false).of(Dtype::I64)
}

/// A tensor that the launch writes.
pub fn output(name: &'static str, len: usize) -> Row {
    row(name, len, Fill::Poison, true)
}

/// A tensor that the launch changes.
pub fn in_place(name: &'static str, len: usize) -> Row {
    row(name, len, Fill::Between(-2.0, 2.0), true)
}

/// Memory that one kernel of the launch writes and the next one reads.
pub fn scratch(name: &'static str, len: usize) -> Row {
    row(name, len, Fill::Scratch, false)
}

/// A list of tensors: the addresses of the parts of each tensor in `of` that begin at the elements `starts`, as `i64`.
pub fn addresses(name: &'static str, of: &'static [&'static str], starts: Vec<usize>) -> Row {
    row(name, of.len() * starts.len(), Fill::Addresses(of, starts), false).of(Dtype::I64)
}

/// Lengths of `count` sequences or tensors, from 1 to `longest`; `peers/` has the same.
pub fn uneven_lengths(count: usize, longest: usize) -> Vec<usize> {
    (0..count).map(|i| 1 + i * 7919 % longest).collect()
}

/// Where each of some sequences of these lengths begins, if one lies behind the other, and where the last one ends.
pub fn starts(lengths: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let ends = lengths.iter().map(|length| {
        end += length;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

impl Row {
    /// The same tensor with elements of this type, whatever the type of the work.
    pub fn of(self, dtype: Dtype) -> Row {
        Row { dtype: Some(dtype), ..self }
    }

    /// The same tensor with random numbers of an interval.
    pub fn between(self, low: f64, high: f64) -> Row {
        Row { fill: Fill::Between(low, high), ..self }
    }

    /// The same output, of which each element may be off by `error`.
    pub fn within(self, error: f64) -> Row {
        Row { within: Some(error), ..self }
    }
}

/// The inputs of a work as numbers of f64, by name: `host["x"][i]`.
#[derive(Default)]
pub struct Host(pub BTreeMap<&'static str, Vec<f64>>);

impl Index<&str> for Host {
    type Output = [f64];

    fn index(&self, name: &str) -> &[f64] {
        self.0.get(name).unwrap_or_else(|| panic!("the work has a row for `{name}`"))
    }
}

/// A holder of a tensor of any element type: a `Box<Tensor<T>>`, or a tensor in the memory of another process.
pub trait Held {
    /// The tensor.
    fn tensor(&self) -> &dyn std::any::Any;
    /// The tensor, to write to it.
    fn tensor_mut(&mut self) -> &mut dyn std::any::Any;
    /// The address of an element.
    fn address_of(&self, element: usize) -> u64;
    /// Lends the tensor to a replay.
    fn lend<'t>(&'t mut self, lent: &mut Lent<'t>);
}

impl<T: Element, H: DerefMut<Target = Tensor<T>>> Held for H {
    fn tensor(&self) -> &dyn std::any::Any {
        &**self
    }

    fn tensor_mut(&mut self) -> &mut dyn std::any::Any {
        &mut **self
    }

    fn address_of(&self, element: usize) -> u64 {
        self.address() + (element * size_of::<T>()) as u64
    }

    fn lend<'t>(&'t mut self, lent: &mut Lent<'t>) {
        (&mut **self).lend(lent);
    }
}

/// The tensors of one run of a work, by name.
#[derive(Default)]
pub struct Case {
    tensors: BTreeMap<&'static str, RefCell<Box<dyn Held>>>,
}

impl Case {
    /// Adds a tensor.
    pub fn add(&mut self, name: &'static str, tensor: impl Held + 'static) {
        self.tensors.insert(name, RefCell::new(Box::new(tensor)));
    }

    /// Adds a list of tensors, which has the addresses of other tensors of the case.
    ///
    /// # Errors
    /// Those of a new tensor.
    pub fn add_addresses(&mut self, device: Device, name: &'static str, of: &[&str], starts: &[usize]) -> Result<()> {
        let tensors = of.iter().flat_map(|of| starts.iter().map(|&start| self.cell(of).borrow().address_of(start) as i64));
        let addresses: Vec<i64> = tensors.collect();
        self.add(name, Box::new(device.tensor(&addresses)?));
        Ok(())
    }

    fn cell(&self, name: &str) -> &RefCell<Box<dyn Held>> {
        self.tensors.get(name).unwrap_or_else(|| panic!("the work has a row for `{name}`"))
    }

    /// A tensor to read.
    ///
    /// # Panics
    /// If the work has no such tensor, if it has another element type, or if it is written to.
    pub fn read<T: Element>(&self, name: &str) -> Ref<'_, Tensor<T>> {
        Ref::map(self.cell(name).borrow(), |held| {
            held.tensor().downcast_ref().unwrap_or_else(|| panic!("`{name}` has the element type of its row, not {}", T::DTYPE))
        })
    }

    /// A tensor to write to.
    ///
    /// # Panics
    /// As [`Case::read`], and if the tensor is read.
    pub fn write<T: Element>(&self, name: &str) -> RefMut<'_, Tensor<T>> {
        RefMut::map(self.cell(name).borrow_mut(), |held| {
            held.tensor_mut().downcast_mut().unwrap_or_else(|| panic!("`{name}` has the element type of its row, not {}", T::DTYPE))
        })
    }
}

/// Lends every tensor for writing.
impl<'t> Tensors<'t> for &'t mut Case {
    fn lend(self, lent: &mut Lent<'t>) {
        for tensor in self.tensors.values_mut() {
            tensor.get_mut().lend(lent);
        }
    }
}

/// What is to be done with the launches of a work.
pub enum Run {
    /// Launch them.
    Launch,
    /// Collect the configurations that tuning has chosen for them.
    Configs(Vec<String>),
    /// Launch them with these configurations, in the order of the launches, without tuning.
    With(VecDeque<String>),
}

/// Launches an autotuned kernel, or notes its configuration, as `run` says.
macro_rules! launch {
    ($run:ident, $call:expr) => {
        match $run {
            $crate::work::Run::Launch => $call.launch()?,
            $crate::work::Run::Configs(configs) => {
                configs.push($call.report()?.chosen().map_or(String::new(), |chosen| format!("{:?}", chosen.config)));
            }
            $crate::work::Run::With(configs) => {
                let wanted = configs.pop_front().unwrap_or_default();
                $call.launch_with(|config| format!("{config:?}") == wanted)?
            }
        }
    };
}

/// The `launch` of a work: calls a function that is generic over the element type.
macro_rules! by_dtype {
    ($launch:ident, $($dtype:ident: $ty:ty),+) => {
        |dtype, case, sizes, run| match dtype {
            $(galatea::Dtype::$dtype => $launch::<$ty>(case, sizes, run),)+
            other => panic!("the work lists the types that it is launched with, and not {other}"),
        }
    };
    ($launch:ident) => {
        by_dtype!($launch, F32: f32, Bf16: galatea::bf16)
    };
}

pub(crate) use {by_dtype, launch};
