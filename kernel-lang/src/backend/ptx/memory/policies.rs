//! Eviction priorities of accesses. An instruction names that of the L1, and an L2 cache policy, which it takes as its last operand, has that of the L2.

use crate::ir::{Cache, Evict, Op, Value};

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The modifier of an access whose last operand is an L2 cache policy.
const HINT: &str = ".L2::cache_hint";

/// The most bytes of the tensors that [`Evict::FirstIfSmall`] evicts early. Sums of rows of 32 KiB take 38.2 us for 134 MB, and 42.1 us without a priority; 54.5 and
/// 56.7 us for 201 MB, 70.9 and 71.2 us for 268 MB, 86.7 and 85.8 us for 335 MB, 102.6 and 100.0 us for 402 MB (`f32`, H200).
const SMALL: u64 = 1 << 28;

/// An L2 cache policy of a kernel.
pub(crate) struct Policy {
    evict: Evict,
    reg: Reg,
}

impl Policy {
    /// The priority in the L1, as a part of the instruction.
    fn in_l1(&self) -> &'static str {
        match self.evict {
            Evict::First => ".L1::evict_first",
            Evict::Last => ".L1::evict_last",
            _ => "",
        }
    }
}

impl Emitter<'_> {
    /// The suffix for an eviction priority. An instruction has a cache operator or a priority, not both.
    pub(super) fn priority(&mut self, evict: Evict) -> String {
        let suffix = match self.policies.iter().find(|policy| policy.evict == evict) {
            Some(policy) => format!("{}{HINT}", policy.in_l1()),
            None if matches!(evict, Evict::Unset | Evict::Normal) => return String::new(),
            None => format!(".L1::{}", evict.text()),
        };
        self.ptx_version = self.ptx_version.max((7, 4));
        suffix
    }

    /// The L2 policy of a copy to shared memory: a part of the instruction, and its last operand.
    pub(crate) fn copy_policy(&mut self, cache: Cache, evict: Evict) -> (&'static str, String) {
        match self.policies.iter().find(|policy| policy.evict == evict) {
            Some(policy) if cache == Cache::Default => {
                self.ptx_version = self.ptx_version.max((7, 4));
                (HINT, format!(", {}", policy.reg))
            }
            _ => ("", String::new()),
        }
    }

    /// The last operand of an access: the policy that its instruction requires.
    pub(super) fn policy_operand(&self, instruction: &str) -> String {
        let Some(instruction) = instruction.strip_suffix(HINT) else { return String::new() };
        let policy = self.policies.iter().find(|policy| instruction.ends_with(policy.in_l1()));
        policy.map_or(String::new(), |policy| format!(", {}", policy.reg))
    }

    /// Creates the policies that the accesses of the kernel use, before all other code.
    pub(crate) fn policies(&mut self) {
        // Every instruction ends with what the last one says of the L1: nothing.
        for evict in [Evict::First, Evict::Last, Evict::FirstIfSmall] {
            let bases = self.bases_of(evict);
            if !bases.is_empty() {
                let reg = if evict == Evict::FirstIfSmall { self.policy_of_small(&bases) } else { self.policy(evict) };
                self.policies.push(Policy { evict, reg });
            }
        }
    }

    /// The pointers of the accesses with this priority.
    fn bases_of(&self, evict: Evict) -> Vec<Value> {
        let base_of = |op: &Op| match *op {
            Op::Load { base, cache: Cache::Default, evict: own, volatile: false, .. }
            | Op::Store { base, cache: Cache::Default, evict: own, .. }
            | Op::AsyncCopy { base, cache: Cache::Default, evict: own, .. } => Some(base).filter(|_| own == evict),
            Op::CopyBlock { base, once: Some(_), evict: Evict::Unset, .. } => Some(base).filter(|_| evict == Evict::First),
            Op::CopyBlock { base, evict: own, .. } => Some(base).filter(|_| own == evict),
            _ => None,
        };
        let mut bases: Vec<Value> = self.func.all_insts().into_iter().filter_map(|inst| base_of(&self.func.inst(inst).op)).collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }

    fn policy(&mut self, evict: Evict) -> Reg {
        let policy = self.reg(Class::B64);
        asm!(self, "createpolicy.fractional.L2::{}.b64 {policy}", evict.text());
        policy
    }

    /// The policy that evicts these tensors early if they are small, and changes nothing otherwise.
    fn policy_of_small(&mut self, bases: &[Value]) -> Reg {
        let mut all = None;
        for base in bases {
            let Some((_, length)) = self.pointers[*base] else { continue };
            let bytes = self.reg(Class::B64);
            asm!(self, "shl.b64 {bytes}, {length}, {}", self.func.ty(*base).dtype().bytes().trailing_zeros());
            all = Some(match all {
                None => bytes,
                Some(before) => {
                    let sum = self.reg(Class::B64);
                    asm!(self, "add.u64 {sum}, {before}, {bytes}");
                    sum
                }
            });
        }
        let early = self.policy(Evict::First);
        let Some(all) = all else { return early };
        let [usual, chosen] = [0; 2].map(|_| self.reg(Class::B64));
        let is_small = self.reg(Class::Pred);
        asm!(self, "createpolicy.fractional.L2::evict_unchanged.b64 {usual}");
        asm!(self, "setp.le.u64 {is_small}, {all}, {SMALL}");
        asm!(self, "selp.b64 {chosen}, {early}, {usual}, {is_small}");
        chosen
    }
}
