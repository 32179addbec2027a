//! What each instruction does: one family a file, and one table of them all.
//!
//! A family decodes its instructions from their text ([`Form`]) into something that executes for a whole warp at once ([`Instruction`]).
//! Nothing is skipped: a modifier or an operand that nobody asked for is an error.

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

/// An instruction, decoded.
pub(crate) trait Instruction: Send + Sync {
    /// Executes it for `cx.lanes`: lanes that are here together and whose guard holds. There is at least one.
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap>;

    /// Which lanes must come here together.
    fn convergence(&self) -> Convergence {
        Convergence::Free
    }

    /// Can a CTA see through it what another does while both run: an atomic on global memory, a strong access? Then the CTAs of a
    /// launch take turns in a fixed order, so that two runs give the same bytes.
    fn crosses_ctas(&self) -> bool {
        false
    }

    /// What the report counts it as.
    fn class(&self) -> Class;
}

/// What became of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It is done.
    Done,
    /// It is done, and the program probably asks again: others go first (a `try_wait` that failed, `nanosleep`).
    Yield,
    /// It can not go on. It is executed again, by the same lanes, when something has happened ([`Cluster::happened`]).
    ///
    /// [`Cluster::happened`]: crate::machine::Cluster::happened
    Wait,
}

/// Which lanes must execute an instruction together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Convergence {
    /// Any.
    Free,
    /// All running lanes of the warp, guard included: `.aligned`.
    Aligned,
    /// Those that a member mask names, which must have the same value in each and name the executing lane: `.sync`. Lanes wait
    /// for those that are still elsewhere.
    Members(Value),
}

/// How an instruction is decoded: by the word before its first dot.
type Decode = fn(&mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported>;

/// THE TABLE of instructions. Branches, `call`, `ret` and `exit` are not here: they are the program's shape, not work.
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
    // Lanes of a warp.
    ("shfl", shuffle::decode_shuffle),
    ("vote", shuffle::decode_vote),
    ("match", shuffle::decode_match),
    ("redux", shuffle::decode_reduce),
    ("elect", shuffle::decode_elect),
    ("activemask", shuffle::decode_active_mask),
    // What asynchronous copies, warpgroups and clusters need.
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
