//! The effects of steps, for the detection of loops without progress.

use crate::counters::Class;
use crate::instructions::Uses;
use crate::ptx::Instruction;

/// The possible effects of a repeated execution of an instruction, apart from registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// No effect: the instruction computes registers from registers of its own warp.
    Registers,
    /// A change of memory. The access itself decides whether a byte changes.
    Memory,
    /// No lasting effect: the instruction waits for other threads, or orders accesses.
    Waits,
    /// An effect that is not compared, such as an asynchronous copy or an arrival that does not wait. It counts as progress.
    Progress,
}

/// The effect of an instruction of this class. An instruction that is not known to have no effect counts as progress: an unknown
/// instruction may hide a loop without progress, but never causes a false report.
pub(crate) fn of(written: &Instruction, class: Class, uses: &Uses) -> Effect {
    let has = |names: &[&str]| written.modifiers.iter().any(|modifier| names.contains(&modifier.as_str()));
    match written.opcode.as_str() {
        // A clock returns a different value at each read.
        _ if uses.reads_clock => Effect::Progress,
        "ld" | "ldu" => Effect::Memory,
        "st" | "atom" | "red" if !has(&["async", "bulk"]) => Effect::Memory,
        // An arrival at a barrier of the CTA changes its count. An arrival at the cluster's barrier is followed by its wait.
        "bar" | "barrier" if !has(&["red"]) && (has(&["cluster"]) || !has(&["arrive"])) => Effect::Waits,
        "mbarrier" if has(&["test_wait", "try_wait"]) => Effect::Waits,
        "membar" | "fence" | "nanosleep" => Effect::Waits,
        _ if matches!(class, Class::Integer | Class::Float | Class::Special | Class::Warp) => Effect::Registers,
        _ => Effect::Progress,
    }
}
