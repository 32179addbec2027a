//! Properties of ops: what passes and backends ask of an op, whatever it computes.

use crate::ir::arena::Handle;
use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::{BinaryOp, Op, UnaryOp};
use crate::ir::types::Type;

impl Op {
    /// Does it end a region?
    pub fn is_terminator(&self) -> bool {
        matches!(self, Op::Yield { .. } | Op::Condition { .. } | Op::Return {})
    }

    /// Does specialisation replace it completely?
    pub fn is_static(&self) -> bool {
        matches!(self, Op::StaticIf { .. } | Op::StaticFor { .. } | Op::StaticAssert { .. } | Op::StaticPrint { .. } | Op::Print { .. })
    }

    /// Does it do more than compute its results: store, contain regions, end a region, or read state that may change?
    pub fn has_effects(&self) -> bool {
        matches!(
            self,
            Op::Store { .. }
                | Op::Atomic { .. }
                | Op::Barrier { .. }
                | Op::SyncThreads { .. }
                | Op::GdcWait { .. }
                | Op::GdcLaunchDependents { .. }
                | Op::AsyncBuffer { .. }
                | Op::AsyncCopy { .. }
                | Op::AsyncCommitGroup { .. }
                | Op::AsyncWait { .. }
                | Op::LocalLoad { .. }
                | Op::IssueLoads { .. }
                | Op::RunsIf { .. }
                | Op::Roles { .. }
                | Op::Ring { .. }
                | Op::RingAcquire { .. }
                | Op::CopyBlock { .. }
                | Op::StoreBlock { .. }
                | Op::RingWait { .. }
                | Op::ReadBlock { .. }
                | Op::RingRelease { .. }
                | Op::RingReleasePrevious { .. }
                | Op::WarpgroupWait { .. }
                | Op::WarpgroupDot { .. }
                | Op::Report { .. }
                | Op::Assert { .. }
                | Op::Load { volatile: true, .. }
                | Op::InlinePtx { volatile: true, .. }
                | Op::If { .. }
                | Op::For { .. }
                | Op::While { .. }
        ) || self.is_static()
            || self.is_terminator()
    }

    /// Is it a function of its operands only, so that equal ops have equal results?
    pub fn is_pure(&self) -> bool {
        !self.has_effects() && !matches!(self, Op::Load { .. })
    }

    /// Is it, on scalars, a function of its operands, the kernel's parameters and the grid, which the host computes bit for bit as a GPU does?
    pub fn is_known_at_launch(&self) -> bool {
        use UnaryOp::{Abs, Brev, Ceil, Clz, Floor, Neg, Not, Popc, Rint, Round, Sqrt, Trunc};
        match self {
            Op::Unary { op, .. } => {
                matches!(op, Neg | Not | Abs | Sqrt | Floor | Ceil | Round | Rint | Trunc | Popc | Clz | Brev)
            }
            Op::Binary { op, .. } => !matches!(op, BinaryOp::DivApprox),
            Op::Arange { .. } => false,
            op => op.is_elementwise(),
        }
    }

    /// Is it, on scalars, [known at launch](Op::is_known_at_launch), and the same in all programs?
    pub fn is_uniform(&self) -> bool {
        self.is_known_at_launch() && !matches!(self, Op::ProgramId { .. })
    }

    /// Does it compute each element of its result from its operands' elements at the same index, or from nothing that is stored?
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Op::Const { .. }
                | Op::ProgramId { .. }
                | Op::NumPrograms { .. }
                | Op::Length { .. }
                | Op::Address { .. }
                | Op::Arange { .. }
                | Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Compare { .. }
                | Op::Fma { .. }
                | Op::Select { .. }
                | Op::Cast { .. }
                | Op::Bitcast { .. }
        )
    }

    /// Does no thread wait for another in this op, also where other warps do not execute it? A load is of a constant tensor, which each thread reads for itself.
    pub fn stays_in_threads(&self, func: &Function) -> bool {
        match self {
            Op::ExpandDims { .. } | Op::Broadcast { .. } => true,
            Op::Load { base, volatile: false, .. } => matches!(func.ty(*base), Type::Pointer { mutable: false, .. }),
            op => op.is_elementwise(),
        }
    }

    /// Are two ops equal, so that they compute the same from the same operands? Floats are compared by their bits: 0 is not -0, and NaN is NaN.
    pub fn is_same(&self, other: &Op) -> bool {
        match (self, other) {
            (Op::Const { value: ConstExpr::Float(one) }, Op::Const { value: ConstExpr::Float(other) }) => one.to_bits() == other.to_bits(),
            (one, other) => one == other,
        }
    }

    /// A number that ops which are the [same](Op::is_same) share, and other ops seldom do: of the operands, or of a constant.
    pub fn hash(&self) -> u64 {
        let mut hash = match self {
            Op::Const { value: ConstExpr::Int(value) } => *value as u64,
            Op::Const { value: ConstExpr::Float(value) } => value.to_bits(),
            Op::Arange { start, end } => {
                (start.as_int().unwrap_or(0) as u64).wrapping_mul(31).wrapping_add(end.as_int().unwrap_or(0) as u64)
            }
            _ => 0,
        };
        self.for_each_operand(&mut |value| hash = hash.wrapping_mul(31).wrapping_add(value.index() as u64 + 1));
        hash
    }

    /// Do threads wait for each other's elements?
    pub fn exchanges(&self) -> bool {
        matches!(
            self,
            Op::Reduce { .. }
                | Op::Scan { .. }
                | Op::Gather { .. }
                | Op::Dot { .. }
                | Op::WarpgroupDot { .. }
                | Op::Histogram { .. }
                | Op::Sort { .. }
                | Op::Butterfly { .. }
        )
    }

    /// Does an element of the result depend on operand elements at other indices?
    pub fn looks_across(&self) -> bool {
        matches!(
            self,
            Op::ExpandDims { .. }
                | Op::Reshape { .. }
                | Op::Permute { .. }
                | Op::Flip { .. }
                | Op::Reduce { .. }
                | Op::Scan { .. }
                | Op::Gather { .. }
                | Op::Dot { .. }
                | Op::Histogram { .. }
                | Op::Sort { .. }
                | Op::Butterfly { .. }
        )
    }
}
