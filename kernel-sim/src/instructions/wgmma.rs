//! `wgmma`: matrix products of a warpgroup, which consists of four warps (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

mod descriptor;
mod fragment;
mod group;
mod product;

pub(crate) use group::{Matrices, Warpgroups};

use super::{Convergence, Form, Instruction, Progress, Unsupported};
use crate::counters::Class;
use crate::fault::Trap;
use crate::lanes::WARP;
use crate::machine::Cx;
use group::WARPS;

/// Decodes `wgmma`.
pub(super) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let what = form.next_modifier();
    if !form.flag("sync") || !form.flag("aligned") {
        return Err(form.error("`.sync.aligned` is missing"));
    }
    match what {
        Some("fence") => Ok(Box::new(Fence)),
        Some("commit_group") => Ok(Box::new(Commit)),
        Some("wait_group") => Ok(Box::new(Wait { allowed: form.immediate()? })),
        Some("mma_async") => product::decode(form),
        other => Err(form.error(format!("the simulator does not know `wgmma.{}`", other.unwrap_or_default()))),
    }
}

struct Fence;

impl Instruction for Fence {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        warpgroup(cx)?;
        let registers = cx.warp.registers.len();
        cx.warp.matrices.fence(registers);
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Commit;

impl Instruction for Commit {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        warpgroup(cx)?;
        cx.warp.matrices.committed += 1;
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

struct Wait {
    /// The number of most recent committed groups that may stay in flight.
    allowed: u64,
}

impl Instruction for Wait {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let group = warpgroup(cx)?;
        let limit = cx.warp.matrices.committed.saturating_sub(self.allowed);
        while cx.warp.matrices.products.front().is_some_and(|own| own.group < limit) {
            if !product::finish_oldest(cx, group)? {
                return Ok(Progress::Wait);
            }
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

/// The number of the warp's warpgroup. The warpgroup must be complete.
pub(super) fn warpgroup(cx: &Cx<'_>) -> Result<usize, Trap> {
    let group = cx.warp.index / WARPS;
    let threads = cx.grid.block.iter().product::<u32>() as usize;
    let wanted = (group + 1) * WARPS * WARP;
    if threads < wanted {
        let reason = format!("a warpgroup has {} threads, and this one only {}", WARPS * WARP, threads + WARPS * WARP - wanted);
        return Err(cx.illegal(0, reason));
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use crate::instructions::harness::refusal;

    #[test]
    fn shapes_types_and_operands_are_checked() {
        let taken = |text: &str| assert_eq!(refusal(&format!("wgmma.mma_async.sync.aligned.{text}")), None, "{text}");
        taken("m64n8k16.f16.f16.f16 {%r0,%r1}, %d0, %d1, %p0, 1, -1, 0, 1;");
        taken("m64n8k16.f32.bf16.bf16 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, %d1, %p0, 1, 1, 1;");
        taken("m64n8k8.f32.tf32.tf32 {%r0,%r1,%r2,%r3}, %d0, %d1, %p0, 1, 1;");
        taken("m64n8k32.f16.e4m3.e5m2 {%r0,%r1}, %d0, %d1, %p0, 1, 1;");
        taken("m64n8k32.s32.u8.s8.satfinite {%r0,%r1,%r2,%r3}, %d0, %d1, %p0;");
        let refused = |text: &str| refusal(&format!("wgmma.mma_async.sync.aligned.{text}")).unwrap_or_default();
        assert_eq!(refused("m64n8k8.f32.f16.f16 {%r0,%r1,%r2,%r3}, %d0, %d1, %p0, 1, 1, 0, 0;"), "k of `wgmma` is 16 for `.f16`, not 8");
        assert_eq!(refused("m64n12k16.f32.f16.f16 {%r0,%r1}, %d0, %d1, %p0, 1, 1, 0, 0;"), "n of `wgmma` can not be 12");
        assert_eq!(
            refused("m64n8k16.f16.bf16.bf16 {%r0,%r1}, %d0, %d1, %p0, 1, 1, 0, 0;"),
            "`wgmma` can not make `.f16` of `.bf16` and `.bf16`"
        );
        assert_eq!(
            refused("m64n8k8.f32.tf32.tf32 {%r0,%r1,%r2,%r3}, %d0, %d1, %p0, 1, 2;"),
            "an operand of `wgmma` is scaled by 1 or -1, not 2"
        );
        assert_eq!(refused("m64n8k8.f32.tf32.tf32 {%r0,%r1,%r2,%r3}, %d0, %d1, %p0, 1, 1, 0, 0;"), "too many operands");
        assert_eq!(refusal("wgmma.fence;"), Some("`.sync.aligned` is missing".to_owned()));
    }

    #[test]
    fn register_counts_are_multiples_of_8() {
        assert_eq!(refusal("setmaxnreg.inc.sync.aligned.u32 240;"), None);
        let reason = "a thread can have 24 to 256 registers, a multiple of 8, not 100";
        assert_eq!(refusal("setmaxnreg.dec.sync.aligned.u32 100;"), Some(reason.to_owned()));
    }
}
