//! What a step uses and leaves behind, as far as the search for loops without progress asks.

use crate::counters::Class;
use crate::instructions::Uses;
use crate::ptx::Instruction;

/// What executing an instruction once more can change beside registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Nothing: it computes registers from registers of its own warp.
    Registers,
    /// Memory, perhaps: the access itself says whether a byte has changed.
    Memory,
    /// Nothing that outlasts it: it waits for other threads, or orders accesses.
    Waits,
    /// Something that nobody compares, such as an asynchronous copy or an arrival that does not wait: it counts as progress.
    Progress,
}

/// The effect of an instruction of that class. What is not known to leave nothing behind counts as progress, so that an unknown instruction hides a loop without
/// progress and never invents one.
pub(crate) fn of(written: &Instruction, class: Class, uses: &Uses) -> Effect {
    let has = |names: &[&str]| written.modifiers.iter().any(|modifier| names.contains(&modifier.as_str()));
    match written.opcode.as_str() {
        // A clock is another one each time.
        _ if uses.reads_clock => Effect::Progress,
        "ld" | "ldu" => Effect::Memory,
        "st" | "atom" | "red" if !has(&["async", "bulk"]) => Effect::Memory,
        // An arrival at a barrier of the CTA adds up; one at the cluster's barrier is followed by its wait.
        "bar" | "barrier" if !has(&["red"]) && (has(&["cluster"]) || !has(&["arrive"])) => Effect::Waits,
        "mbarrier" if has(&["test_wait", "try_wait"]) => Effect::Waits,
        "membar" | "fence" | "nanosleep" => Effect::Waits,
        _ if matches!(class, Class::Integer | Class::Float | Class::Special | Class::Warp) => Effect::Registers,
        _ => Effect::Progress,
    }
}
