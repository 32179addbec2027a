//! Costs of recorded launches: floating-point operations and bytes, as dims.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kernel_lang::analysis::flops::{self, Flops, Number};
use kernel_lang::analysis::updates;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, Function};

use super::LaunchVariant;
use super::recorder::{RecordedArg, RecordedLaunch, TensorType, Value};
use crate::dim::{Dim, Proof, Relation};
use crate::kernel::ParamKind;
use crate::{Error, Result};

/// What a launch computes and moves, for all values of its dims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchCost {
    /// The floating-point operations of all programs. [`kernel_lang::analysis::flops`] has the rules.
    pub flops: Dim,
    /// Whether `flops` is exact. Otherwise it is a lower bound, because a loop or a branch depends on data.
    pub is_exact: bool,
    /// The bytes of the tensors that the kernel reads, each tensor as a whole and once.
    pub read_bytes: Dim,
    /// The bytes of the tensors that the kernel writes.
    pub written_bytes: Dim,
}

/// Computes costs of launches. It keeps the specialised kernels, which launches share.
#[derive(Default)]
pub struct CostModel {
    kernels: HashMap<LaunchVariant, Function>,
}

impl CostModel {
    /// A model that has no kernels yet.
    pub fn new() -> CostModel {
        CostModel::default()
    }

    /// The cost of a launch. `types` has the type of each value.
    ///
    /// # Errors
    /// [`Error::Compile`] if the kernel cannot be specialised, and [`Error::ArgumentCount`] for an argument without a type.
    pub fn cost(&mut self, launch: &RecordedLaunch, types: &[TensorType]) -> Result<LaunchCost> {
        let func = match self.kernels.entry(launch.variant()) {
            Entry::Occupied(known) => &*known.into_mut(),
            Entry::Vacant(new) => &*new.insert(launch.kernel.specialized(&launch.key)?),
        };
        let (mut numbers, mut read_bytes, mut written_bytes) = (Vec::new(), Dim::from(0), Dim::from(0));
        let uses = updates::uses(func);
        let missing = || Error::ArgumentCount { kernel: launch.kernel(), expected: launch.kernel.params().len(), given: launch.args.len() };
        for (param, arg) in launch.kernel.params().iter().zip(&launch.args) {
            match arg {
                RecordedArg::Tensor { value: Value(value), dtype, .. } => {
                    let TensorType { dims, .. } = types.get(*value as usize).ok_or_else(missing)?;
                    let numel = dims.iter().fold(Dim::from(1), |product, dim| product * dim);
                    let bytes = &numel * dtype.bytes() as i64;
                    let (reads, writes) = uses.get(numbers.len()).copied().ok_or_else(missing)?;
                    if reads {
                        read_bytes = read_bytes + &bytes;
                    }
                    if writes {
                        written_bytes = written_bytes + &bytes;
                    }
                    numbers.push(Some(numel));
                    if let ParamKind::View(rank) | ParamKind::ViewMut(rank) = param.kind {
                        // The extents, and all strides but the last, on which only indices depend.
                        numbers.extend(dims.iter().map(|dim| Some(dim.clone())));
                        numbers.extend((1..rank).map(|_| None));
                    }
                }
                RecordedArg::Dim { dim, .. } => numbers.push(Some(dim.clone())),
                RecordedArg::Word { word, .. } => {
                    let dtype = func.params.get(numbers.len()).map(|param| func.ty(param.value).dtype());
                    numbers.push(dtype.and_then(|dtype| number(*word, dtype)).map(Dim::from));
                }
            }
        }
        let Flops { count, is_exact } = flops::count(func, &numbers, &launch.grid);
        Ok(LaunchCost { flops: count, is_exact, read_bytes, written_bytes })
    }
}

impl std::fmt::Debug for CostModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CostModel").field("kernels", &self.kernels.len()).finish()
    }
}

/// The number of an argument word, for an integer or a `bool` that has 64 bits with a sign.
pub(crate) fn number(word: u64, dtype: Dtype) -> Option<i64> {
    if dtype.is_float() {
        return None;
    }
    let unused = 64 - dtype.bits();
    let word = word << unused;
    if dtype.is_signed_int() { Some(word.cast_signed() >> unused) } else { i64::try_from(word >> unused).ok() }
}

impl Number for Dim {
    fn constant(number: i64) -> Dim {
        Dim::from(number)
    }

    fn binary(op: BinaryOp, lhs: &Dim, rhs: &Dim) -> Option<Dim> {
        let result = match op {
            BinaryOp::Add => lhs + rhs,
            BinaryOp::Sub => lhs - rhs,
            BinaryOp::Mul => lhs * rhs,
            BinaryOp::Min => lhs.min(rhs),
            BinaryOp::Max => lhs.max(rhs),
            // The quotient of dims is rounded down, and that of a kernel towards zero.
            BinaryOp::Div | BinaryOp::Rem => {
                let is_floor = lhs.compare(Relation::Ge, 0) == Proof::Yes && rhs.compare(Relation::Gt, 0) == Proof::Yes;
                match op {
                    _ if !is_floor => return None,
                    BinaryOp::Div => lhs / rhs,
                    _ => lhs % rhs,
                }
            }
            _ => return None,
        };
        (!result.is_invalid()).then_some(result)
    }

    fn compare(op: CompareOp, lhs: &Dim, rhs: &Dim) -> Option<bool> {
        let relation = match op {
            CompareOp::Eq => Relation::Eq,
            CompareOp::Ne => Relation::Ne,
            CompareOp::Lt => Relation::Lt,
            CompareOp::Le => Relation::Le,
            CompareOp::Gt => Relation::Gt,
            CompareOp::Ge => Relation::Ge,
        };
        match lhs.compare(relation, rhs) {
            Proof::Yes => Some(true),
            Proof::No => Some(false),
            Proof::Unknown => None,
        }
    }
}
