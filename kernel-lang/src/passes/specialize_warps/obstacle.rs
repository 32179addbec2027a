//! Why a kernel has no version with roles, or a store of it no tensor copy, and how a user mends that.

use std::fmt;

use crate::analysis::blocks;
use crate::location::Loc;

/// Why a kernel has no version with roles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It has no products.
    NoProducts,
    /// The target has no warpgroup products.
    Target,
    /// The schedule has clusters, or no one or two whole warpgroups.
    Schedule(Loc),
    /// A product has too few rows for its warps, and too few columns.
    Rows(Loc),
    /// It reports accesses outside of tensors.
    Checked,
    /// It prints.
    Prints,
    /// It overlaps with other launches.
    Overlaps,
    /// A loop waits for a value that another program stores. Workers run programs one after another, in an order of their own, so that program may never begin.
    Waits(Loc),
    /// A product's tiles have no instruction.
    Product(Loc),
    /// Both operands of a product are computed, a block has two orders, or `f32` is multiplied from shared memory and has other uses.
    Operand(Loc),
    /// The operand is no block.
    Block(Loc, blocks::Obstacle),
    /// Where a block is depends on data.
    Data(Loc),
    /// The blocks do not fit into shared memory twice.
    Memory(Loc),
    /// The products read more tensors than a launch has tensor maps.
    Maps,
}

/// Why a store of what a product gives is no tensor copy. The version with roles then stores as the usual version does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreObstacle {
    /// It is in a loop or a branch.
    Repeated,
    /// The kernel accesses the tensor elsewhere, too.
    Accessed,
    /// The elements have neither 16 nor 32 bits.
    Type,
    /// The tile is stored transposed, or is too small.
    Shape,
    /// It writes no block.
    Block(blocks::Obstacle),
}

impl Obstacle {
    /// The op of the user's source; [`Loc::NONE`] if it is about the whole kernel.
    pub fn loc(&self) -> Loc {
        match self {
            Obstacle::NoProducts | Obstacle::Target | Obstacle::Checked | Obstacle::Prints | Obstacle::Overlaps | Obstacle::Maps => {
                Loc::NONE
            }
            Obstacle::Schedule(loc)
            | Obstacle::Rows(loc)
            | Obstacle::Waits(loc)
            | Obstacle::Product(loc)
            | Obstacle::Operand(loc)
            | Obstacle::Block(loc, _)
            | Obstacle::Data(loc)
            | Obstacle::Memory(loc) => *loc,
        }
    }

    /// How to mend it.
    pub fn help(&self) -> &'static str {
        match self {
            Obstacle::NoProducts => "multiply tiles by `dot`",
            Obstacle::Target => "compile for a GPU that has them, such as an H100",
            Obstacle::Schedule(_) => "say `num_warps = 4` or `num_warps = 8`, and leave `num_ctas` out",
            Obstacle::Rows(_) => "let the tile have at least 16 rows or columns for each warp, or say fewer `num_warps`",
            Obstacle::Checked => "launch without `.checked()`",
            Obstacle::Prints => "remove `device_print!`",
            Obstacle::Overlaps => "leave out `gdc_wait` and `gdc_launch_dependents`",
            Obstacle::Waits(_) => "launch a second kernel in place of waiting for other programs",
            Obstacle::Product(_) => {
                "multiply 16-bit floats into `f32`, `f32` with `precision = \"tf32\"`, or 8-bit floats or integers, with 8 to 256 columns, 32 bytes of depth, and at most 208 sums for each thread; of types of 8 or 32 bits, let neighbours of one operand lie along the sum"
            }
            Obstacle::Operand(_) => {
                "load one operand in front of the `dot`, in the same loop, and multiply it in one order; let no other op use it if it is of `f32`"
            }
            Obstacle::Block(_, why) => why.help(),
            Obstacle::Data(_) => "let the index and the loop around it depend on numbers of the launch and on program ids only",
            Obstacle::Memory(_) => "choose smaller tiles of the operands",
            Obstacle::Maps => "multiply fewer operands in one kernel",
        }
    }

    /// Can other values of constants or another schedule mend it?
    pub fn is_of_values(&self) -> bool {
        matches!(self, Obstacle::Schedule(_) | Obstacle::Rows(_) | Obstacle::Product(_) | Obstacle::Memory(_))
    }
}

impl StoreObstacle {
    /// How to mend it.
    pub fn help(&self) -> &'static str {
        match self {
            StoreObstacle::Repeated => "store behind all loops and branches, once in a program",
            StoreObstacle::Accessed => "access the tensor by this store only",
            StoreObstacle::Type => "store elements of 16 or 32 bits",
            StoreObstacle::Shape => {
                "let rows of the tile be rows of the tensor, with at least 32 bytes each, and at least 16 of them for each warp"
            }
            StoreObstacle::Block(why) => why.help(),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::NoProducts => "the kernel has no `dot`",
            Obstacle::Target => "the target has no warpgroup products",
            Obstacle::Schedule(_) => "the schedule has clusters, or other than 4 or 8 warps",
            Obstacle::Rows(_) => "the rows of a `dot`, and its columns, are fewer than 16 for each warp",
            Obstacle::Checked => "a checked launch reports accesses outside of tensors",
            Obstacle::Prints => "the kernel prints",
            Obstacle::Overlaps => "the kernel overlaps with other launches",
            Obstacle::Waits(_) => "a loop reads memory by atomics or volatile loads, so it may wait for another program",
            Obstacle::Product(_) => "there is no warpgroup product of these tiles",
            Obstacle::Operand(_) => "a `dot` has no operand that can stay in shared memory",
            Obstacle::Block(_, why) => return why.fmt(f),
            Obstacle::Data(_) => "where an operand is loaded depends on data",
            Obstacle::Memory(_) => "the operands do not fit into shared memory twice",
            Obstacle::Maps => "its products read more tensors than a launch has tensor maps",
        })
    }
}

impl fmt::Display for StoreObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreObstacle::Repeated => "the store is in a loop or a branch",
            StoreObstacle::Accessed => "the kernel accesses the tensor elsewhere, too",
            StoreObstacle::Type => "the elements have neither 16 nor 32 bits",
            StoreObstacle::Shape => "the tile is stored transposed, or is too small",
            StoreObstacle::Block(why) => return why.fmt(f),
        })
    }
}
