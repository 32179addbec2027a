//! Rings: how many slots a loop that copies operands ahead has.

use crate::analysis::loops::Loop;
use crate::ir::Function;
use crate::schedule::Schedule;
use crate::target::Asked;

use super::LEFT_BYTES;

/// The most slots of operands. More of them hold no more than a copy takes to arrive.
const MOST_SLOTS: u32 = 4;
/// About the registers of a thread that multiplies, beside those of the tiles that its loop carries.
const OTHER_REGISTERS: u32 = 112;
/// As many CTAs of products keep the tensor cores of a multiprocessor busy.
const MOST_CTAS: u32 = 4;

/// The slots of a loop with operands of products, each of `slot` bytes: a multiprocessor runs as many CTAs as its registers allow, if two slots of each fit.
pub(in crate::passes) fn slots_of_loop(func: &Function, around: &Loop, slot: u32, target: &Asked, schedule: Schedule) -> u32 {
    let carried = func.region(around.body).params.iter().map(|param| func.ty(*param)).filter(|ty| ty.is_tile());
    let words = carried.map(|ty| ty.numel() as u32 * (ty.dtype().bytes() as u32).div_ceil(4)).fold(0, u32::saturating_add);
    let registers = (words / schedule.threads()).saturating_add(OTHER_REGISTERS).min(Schedule::MOST_REGISTERS);
    target.ask(|target| {
        let ctas = (target.registers() / (registers * schedule.threads())).clamp(1, MOST_CTAS);
        let fitting = |ctas: u32| (target.shared_bytes_of(ctas).min(target.least_shared_bytes()) - LEFT_BYTES) / slot;
        let slots = (1..=ctas).rev().map(fitting).find(|slots| *slots >= 2).unwrap_or(1);
        slots.min(MOST_SLOTS).min(schedule.num_stages)
    })
}
