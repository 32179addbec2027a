//! Matrix products: their instructions, the version of the kernel with roles, and the launches that take it.

use crate::dtype::Dtype;
use crate::ir::product::multiplier;
use crate::ir::{Function, Op};
use crate::layout::Multiplier;
use crate::location::{Loc, Name};
use crate::passes::specialize_warps::{BlockCopy, Decisions, Obstacle, StoreObstacle};
use crate::target::Target;

use super::index::Numbers;
use super::{Quantity, parameter};

/// The bytes to which tensor copies align addresses and distances of rows.
const ALIGNMENT: usize = 16;

/// A `dot` of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// Its position.
    pub loc: Loc,
    /// The rows and columns of the result, and the terms of each sum.
    pub tile: [usize; 3],
    /// The type of the operands.
    pub dtype: Dtype,
    /// The instruction of the usual version.
    pub usual: String,
    /// The instruction of the version with roles.
    pub with_roles: Option<String>,
}

/// The version with roles.
#[derive(Clone, Debug)]
pub struct WithRoles {
    /// What it does.
    pub decisions: Decisions,
    /// Its copies of blocks.
    pub copies: Vec<CopiedBlock>,
    /// The stores of what products give that are no copies of blocks.
    pub usual_stores: Vec<Lost>,
    /// What must hold in a launch that takes it.
    pub conditions: Vec<String>,
}

/// A load or store that is a copy of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedBlock {
    /// The copy.
    pub copy: BlockCopy,
    /// The tensor.
    pub tensor: Name,
    /// Of a store: what must hold for the copy. Otherwise it stores as the usual version does.
    pub conditions: Vec<String>,
}

/// Why a fast path does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The op of the source; [`Loc::NONE`] if the reason is about the whole kernel.
    pub loc: Loc,
    /// The reason.
    pub reason: String,
    /// How to mend it.
    pub help: &'static str,
}

impl Lost {
    pub(super) fn of(obstacle: &Obstacle) -> Lost {
        Lost { loc: obstacle.loc(), reason: obstacle.to_string(), help: obstacle.help() }
    }

    fn of_store((loc, why): &(Loc, StoreObstacle)) -> Lost {
        Lost { loc: *loc, reason: why.to_string(), help: why.help() }
    }
}

/// The products of a kernel in which each exists once. Of a batch of matrices, the tile is that of one.
pub(super) fn all(func: &Function, target: Target, decisions: Option<&Decisions>) -> Vec<Product> {
    let mut products: Vec<Product> = Vec::new();
    for inst in func.all_insts() {
        let (Op::Dot { a, acc, precision, .. }, loc) = (&func.inst(inst).op, func.inst(inst).loc) else { continue };
        let dtype = func.ty(*a).dtype();
        let ([.., rows, columns], [.., depth]) = (&func.ty(*acc).extents()[..], &func.ty(*a).extents()[..]) else { continue };
        if products.iter().any(|product| product.loc == loc) {
            continue;
        }
        let with_roles = decisions.and_then(|decisions| decisions.products.iter().find(|product| product.loc == loc));
        products.push(Product {
            loc,
            tile: [*rows, *columns, *depth],
            dtype,
            usual: usual(dtype, multiplier(dtype, *precision), target),
            with_roles: with_roles.map(ToString::to_string),
        });
    }
    products
}

/// The instruction of the usual version.
fn usual(dtype: Dtype, multiplier: Multiplier, target: Target) -> String {
    let [rows, columns, depth] = match multiplier {
        Multiplier::Fma => return format!("fma {dtype}"),
        Multiplier::Mma { .. } if dtype == Dtype::F64 && !target.has_f64_products_of_16_rows() => [8, 8, 4],
        Multiplier::Mma { .. } => multiplier.least(),
    };
    let name = if dtype == Dtype::F32 { "tf32" } else { dtype.name() };
    format!("mma.sync m{rows}n{columns}k{depth} {name}")
}

impl WithRoles {
    /// `func` has the values of the decisions.
    pub(super) fn of(func: &Function, decisions: Decisions, known: &dyn Fn(&str) -> Option<i64>) -> WithRoles {
        let numbers = Numbers::new(func, known);
        let mut conditions: Vec<String> = Vec::new();
        let mut copies = Vec::new();
        for copy in &decisions.copies {
            let tensor = parameter(func, copy.tensor).cloned().unwrap_or_default();
            let own = of_copy(&numbers, copy, &tensor);
            if copy.is_store {
                copies.push(CopiedBlock { copy: copy.clone(), tensor, conditions: own });
                continue;
            }
            conditions.extend(own.into_iter().filter(|condition| !conditions.contains(condition)).collect::<Vec<_>>());
            copies.push(CopiedBlock { copy: copy.clone(), tensor, conditions: Vec::new() });
        }
        conditions.push(
            "each tile's rows and columns end within its tensor, and the numbers of which they are computed have at most 31 bits"
                .to_owned(),
        );
        conditions.push("the grid has fewer than 2^31 programs".to_owned());
        let usual_stores = decisions.usual_stores.iter().map(Lost::of_store).collect();
        WithRoles { decisions, copies, usual_stores, conditions }
    }
}

fn of_copy(numbers: &Numbers<'_>, copy: &BlockCopy, tensor: &str) -> Vec<String> {
    let run = ALIGNMENT / copy.dtype.bytes();
    let must = |quantity: Quantity, text: &str| {
        let holds =
            quantity.value.map_or("must be a multiple", |value| if value % run as i64 == 0 { "a multiple" } else { "not a multiple" });
        format!("{text} {quantity} elements, {holds} of {run}")
    };
    let first = match copy.offset.is(0) {
        true => format!("`{tensor}` begins"),
        false => format!("element {} of `{tensor}` is", numbers.quantity(&copy.offset)),
    };
    let mut conditions = vec![format!("{first} at a multiple of {ALIGNMENT} bytes")];
    conditions.push(must(numbers.quantity(&copy.row_stride), &format!("rows of `{tensor}` are apart by")));
    if let Some(stride) = &copy.matrix_stride {
        conditions.push(must(numbers.quantity(stride), &format!("matrices of `{tensor}` are apart by")));
    }
    if copy.is_store
        && let Some(row) = &copy.row
    {
        conditions.push(must(numbers.quantity(row), &format!("a row of `{tensor}` has")));
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_instruction() {
        let of = |dtype: Dtype, element_bits, target| usual(dtype, Multiplier::Mma { element_bits }, target);
        let found = [Dtype::Bf16, Dtype::F8E4M3, Dtype::I8, Dtype::F32, Dtype::F64]
            .map(|dtype| of(dtype, 8 * dtype.bytes() as u32, Target::SM_90A));
        let expected =
            ["mma.sync m16n8k16 bf16", "mma.sync m16n8k32 f8e4m3", "mma.sync m16n8k32 i8", "mma.sync m16n8k8 tf32", "mma.sync m16n8k8 f64"];
        assert_eq!(found, expected);
        assert_eq!(of(Dtype::F64, 64, Target::SM_80), "mma.sync m8n8k4 f64");
        assert_eq!(usual(Dtype::F32, Multiplier::Fma, Target::SM_80), "fma f32");
    }
}
