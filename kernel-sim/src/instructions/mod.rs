//! The instructions: one file for each family, and one table of all.
//!
//! A family decodes its instructions from the text ([`Form`]) into an object that executes for a whole warp at once ([`Instruction`]). A
//! modifier or an operand that the decoder does not take is an error.

mod access;
mod address_space;
mod approximate;
mod arithmetic;
mod async_access;
mod async_copy;
mod atomic;
mod barrier;
mod barrier_state;
mod bits;
mod bulk;
mod bulk_tensor;
mod cache;
mod cluster_address;
mod compare;
mod convert;
mod convert_packed;
mod extended;
mod fence;
mod float;
mod form;
#[cfg(test)]
pub(crate) mod harness;
mod hints;
mod integer;
pub(crate) mod lanewise;
#[cfg(test)]
mod legality;
mod logic;
mod matrix;
mod mbarrier;
mod mov;
mod ordering;
mod pause;
mod set_registers;
mod shuffle;
mod store_async;
mod uses;
mod video;
mod wgmma;

pub(crate) use async_copy::Copies;
pub(crate) use barrier_state::{Barriers, ClusterBarrier, exited};
pub(crate) use bulk::BulkGroups;
pub(crate) use form::{Address, Form, Register, Special, Unsupported, Value};
pub(crate) use mbarrier::{Mbarriers, waiting as waiting_mbarriers};
pub(crate) use ordering::{Fences, Published};
pub(crate) use pause::failed_assertion;
pub(crate) use uses::Uses;
pub(crate) use wgmma::{Matrices, Warpgroups};

use crate::counters::Class;
use crate::fault::Trap;
use crate::machine::Cx;

/// A decoded instruction.
pub(crate) trait Instruction: Send + Sync {
    /// Executes the instruction for the active lanes `cx.lanes`: the converged lanes whose guard predicate is true. There is at least one.
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap>;

    /// The lanes that must execute the instruction together.
    fn convergence(&self) -> Convergence {
        Convergence::Free
    }

    /// Whether the instruction can observe another running CTA, as atomics on global memory and strong accesses can. The CTAs of such a
    /// launch are interleaved in a fixed order, so that two runs give the same bytes.
    fn crosses_ctas(&self) -> bool {
        false
    }

    /// The class of the instruction in the report.
    fn class(&self) -> Class;
}

/// The result of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// The instruction is complete.
    Done,
    /// The instruction is complete, and the program probably polls, so other warps should run first (a failed `try_wait`, `nanosleep`).
    Yield,
    /// The instruction cannot complete now. The same lanes execute it again after the next event ([`Cluster::happened`]).
    ///
    /// [`Cluster::happened`]: crate::machine::Cluster::happened
    Wait,
}

/// The convergence requirement of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Convergence {
    /// Any lanes.
    Free,
    /// `.aligned`: all live lanes of the warp, with a true guard predicate.
    Aligned,
    /// `.sync`: the lanes in a member mask, which must be the same in each of them and must contain the executing lane. Lanes wait for
    /// members that have not arrived.
    Members(Value),
}

/// The decoder of an opcode.
type Decode = fn(&mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported>;

/// The table of instructions, by opcode. Branches, `call`, `ret` and `exit` are missing, because the program represents them as control
/// flow.
const TABLE: &[(&str, Decode)] = &[
    // Integer and floating-point arithmetic.
    ("add", arithmetic::add),
    ("sub", arithmetic::sub),
    ("mul", arithmetic::mul),
    ("mad", arithmetic::mad),
    ("div", arithmetic::div),
    ("abs", arithmetic::abs),
    ("neg", arithmetic::neg),
    ("min", arithmetic::min),
    ("max", arithmetic::max),
    ("fma", float::fma),
    ("rcp", float::rcp),
    ("sqrt", float::sqrt),
    ("rsqrt", approximate::rsqrt),
    ("ex2", approximate::ex2),
    ("lg2", approximate::lg2),
    ("sin", approximate::sin),
    ("cos", approximate::cos),
    ("tanh", approximate::tanh),
    ("testp", approximate::testp),
    ("copysign", approximate::copysign),
    ("mul24", integer::mul24),
    ("mad24", integer::mad24),
    ("sad", integer::sad),
    ("rem", integer::rem),
    ("addc", extended::addc),
    ("subc", extended::subc),
    ("madc", extended::madc),
    // Bits.
    ("popc", bits::popc),
    ("clz", bits::clz),
    ("bfind", bits::bfind),
    ("fns", bits::fns),
    ("brev", bits::brev),
    ("bfe", bits::bfe),
    ("bfi", bits::bfi),
    ("szext", bits::szext),
    ("bmsk", bits::bmsk),
    ("dp4a", bits::dp4a),
    ("dp2a", bits::dp2a),
    ("vabsdiff2", video::vabsdiff2),
    ("vabsdiff4", video::vabsdiff4),
    ("and", logic::and),
    ("or", logic::or),
    ("xor", logic::xor),
    ("not", logic::not),
    ("cnot", logic::cnot),
    ("lop3", logic::lop3),
    ("shf", logic::shf),
    ("shl", logic::shl),
    ("shr", logic::shr),
    ("prmt", logic::prmt),
    // Memory.
    ("ld", access::decode_load),
    ("ldu", access::decode_uniform_load),
    ("st", store_async::decode_store),
    ("prefetch", cache::decode_prefetch),
    ("prefetchu", cache::decode_prefetch_uniform),
    ("createpolicy", cache::decode_create_policy),
    ("discard", cache::decode_line),
    ("applypriority", cache::decode_line),
    ("atom", atomic::decode_atomic),
    ("red", store_async::decode_reduction),
    ("cp", bulk::decode_copy),
    // Matrices.
    ("mma", matrix::decode_mma),
    ("wmma", matrix::decode_wmma),
    ("ldmatrix", matrix::decode_ldmatrix),
    ("stmatrix", matrix::decode_stmatrix),
    ("movmatrix", matrix::decode_movmatrix),
    ("wgmma", wgmma::decode),
    // Exchange between the lanes of a warp.
    ("shfl", shuffle::decode_shuffle),
    ("vote", shuffle::decode_vote),
    ("match", shuffle::decode_match),
    ("redux", shuffle::decode_reduce),
    ("elect", shuffle::decode_elect),
    ("activemask", shuffle::decode_active_mask),
    // Instructions for asynchronous copies, warpgroups and clusters.
    ("mbarrier", mbarrier::decode),
    ("tensormap", bulk_tensor::decode_replace),
    ("setmaxnreg", set_registers::decode),
    ("mapa", cluster_address::decode_map),
    ("getctarank", cluster_address::decode_rank),
    // Barriers, fences and pauses.
    ("bar", barrier::decode),
    ("barrier", barrier::decode),
    ("membar", fence::decode_membar),
    ("fence", fence::decode_fence),
    ("nanosleep", pause::decode_sleep),
    ("trap", pause::decode_stop),
    ("brkpt", pause::decode_stop),
    ("pmevent", pause::decode_event),
    ("griddepcontrol", pause::decode_dependency),
    // Comparison, selection, conversion, moves.
    ("setp", compare::setp),
    ("set", compare::set),
    ("selp", compare::selp),
    ("slct", compare::slct),
    ("cvt", convert::cvt),
    ("mov", mov::mov),
    ("cvta", address_space::cvta),
    ("isspacep", address_space::isspacep),
];

/// Decodes an instruction of the table.
pub(crate) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let opcode = form.opcode();
    let Some((_, decode)) = TABLE.iter().find(|(name, _)| *name == opcode) else {
        return Err(Unsupported::new(format!("the simulator does not know the instruction `{opcode}`")));
    };
    let instruction = decode(form)?;
    form.finish()?;
    Ok(instruction)
}
