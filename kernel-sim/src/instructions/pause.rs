//! Instructions that pause or stop a thread: `nanosleep`, `trap`, `brkpt`, `pmevent`, `griddepcontrol` (PTX ISA, 9.7.13.15, 9.7.13.16 and
//! 9.7.19).

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{Form, Instruction, Progress, Unsupported, Value};
use crate::machine::Cx;
use crate::ptx::Type;

enum Pause {
    /// `nanosleep`: other warps run first. The simulator has no time to wait for.
    Sleep(Value),
    /// `trap`, `brkpt`: the launch ends.
    Stop(&'static str),
    /// `pmevent`, `griddepcontrol`: no effect. Launches run one after the other, so each earlier launch is already complete.
    Nothing,
}

/// Decodes `nanosleep`.
pub(crate) fn decode_sleep(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if form.ty()? != Type::U32 {
        return Err(form.error("`nanosleep` takes a `.u32`"));
    }
    Ok(Box::new(Pause::Sleep(form.source(Type::U32)?)))
}

/// Decodes `trap` and `brkpt`.
pub(crate) fn decode_stop(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let message = if form.opcode() == "brkpt" { "`brkpt` without a debugger" } else { "" };
    Ok(Box::new(Pause::Stop(message)))
}

/// Decodes `pmevent`.
pub(crate) fn decode_event(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let limit = if form.flag("mask") { 0xffff } else { 15 };
    let event = form.immediate()?;
    if event > limit {
        return Err(form.error(format!("{event} is beyond the 16 events")));
    }
    Ok(Box::new(Pause::Nothing))
}

/// Decodes `griddepcontrol`.
pub(crate) fn decode_dependency(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !(form.flag("launch_dependents") || form.flag("wait")) {
        return Err(form.error("`griddepcontrol` is `.launch_dependents` or `.wait`"));
    }
    Ok(Box::new(Pause::Nothing))
}

impl Instruction for Pause {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        match self {
            Pause::Sleep(time) => cx.read(*time).map(|_| Progress::Yield),
            Pause::Stop(message) => {
                let message = (*message).to_owned();
                Err(Trap::new(cx.lanes.lowest().unwrap_or(0), FaultKind::Trap { message }))
            }
            Pause::Nothing => Ok(Progress::Done),
        }
    }

    fn class(&self) -> Class {
        Class::Control
    }
}

/// The effect of a call of `__assertfail`.
pub(crate) fn failed_assertion() -> Box<dyn Instruction> {
    struct FailedAssertion;
    impl Instruction for FailedAssertion {
        fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
            let message = "a device assertion failed".to_owned();
            Err(Trap::new(cx.lanes.lowest().unwrap_or(0), FaultKind::Trap { message }))
        }

        fn class(&self) -> Class {
            Class::Control
        }
    }
    Box::new(FailedAssertion)
}
