//! The width of an access: the bytes that one of its instructions moves for a thread.

use crate::analysis::affine::AffineFacts;
use crate::ir::{Function, Op};

use super::{first_and_steps, group};

/// The bytes that one instruction of an access moves for a thread, in a kernel with layouts; `None` for other ops. An atomic is taken to be
/// as wide as it may be if nothing uses its old values.
pub(crate) fn access_bytes(func: &Function, facts: &mut AffineFacts, op: &Op) -> Option<u32> {
    let (Op::Load { base, offset, align, .. }
    | Op::Store { base, offset, align, .. }
    | Op::Atomic { base, offset, align, .. }
    | Op::AsyncCopy { base, offset, align, .. }) = *op
    else {
        return None;
    };
    let dtype = func.ty(base).dtype();
    let steps = facts.get(func, offset).or_else(|| Some(first_and_steps(func, facts, offset)?.1));
    let elements = steps.map_or(1, |steps| group(func.layouts[offset].as_ref(), &steps, align, dtype));
    Some((elements * dtype.bytes()) as u32)
}
