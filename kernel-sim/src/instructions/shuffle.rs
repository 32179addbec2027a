//! Exchange between the lanes of a warp: `shfl.sync`, `vote.sync`, `match.sync`, `redux.sync`, `elect.sync`, `activemask` (PTX ISA, 9.7.9.6
//! and 9.7.13.9 to 9.7.13.14).

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{Convergence, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::{Cx, Unknowns};
use crate::ptx::Type;

/// An instruction of the lanes in a member mask. It returns a value and possibly a predicate.
struct Exchange {
    kind: Kind,
    destinations: [Option<Register>; 2],
    source: Value,
    members: Value,
}

/// The operation on the values of the lanes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Shuffle { mode: Mode, distance: Value, bounds: Value },
    Vote(Vote),
    MatchAny,
    MatchAll,
    Reduce { operation: Reduction, is_signed: bool },
    Elect,
}

/// The mode of `shfl`, which determines the source lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug)]
enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug)]
enum Reduction {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// `activemask`
struct ActiveMask {
    destination: Option<Register>,
}

fn need_sync(form: &mut Form<'_>) -> Result<(), Unsupported> {
    let opcode = form.opcode();
    if form.flag("sync") {
        return Ok(());
    }
    Err(form
        .error(format!("`{opcode}` without `.sync` does not exist since `sm_70`: name the lanes that take part, as `{opcode}.sync` does")))
}

/// Decodes `shfl.sync`.
pub(crate) fn decode_shuffle(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    need_sync(form)?;
    let modes = [("up", Mode::Up), ("down", Mode::Down), ("bfly", Mode::Butterfly), ("idx", Mode::Index)];
    let mode = form.one_of(&modes).ok_or_else(|| form.error("`shfl` needs a mode: `.up`, `.down`, `.bfly` or `.idx`"))?;
    if form.ty()? != Type::B32 {
        return Err(form.error("`shfl` moves a `.b32`"));
    }
    let destinations = form.destination_pair(Type::B32, Type::Pred)?;
    if destinations[0].is_none() {
        return Err(form.error("`shfl` needs a register to write"));
    }
    let source = form.source(Type::B32)?;
    let kind = Kind::Shuffle { mode, distance: form.source(Type::B32)?, bounds: form.source(Type::B32)? };
    Ok(Box::new(Exchange { kind, destinations, source, members: form.source(Type::B32)? }))
}

/// Decodes `vote.sync`.
pub(crate) fn decode_vote(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    need_sync(form)?;
    let votes = [("all", Vote::All), ("any", Vote::Any), ("uni", Vote::Uniform), ("ballot", Vote::Ballot)];
    let vote = form.one_of(&votes).ok_or_else(|| form.error("`vote` needs a mode: `.all`, `.any`, `.uni` or `.ballot`"))?;
    let wanted = if matches!(vote, Vote::Ballot) { Type::B32 } else { Type::Pred };
    let ty = form.ty()?;
    if ty != wanted {
        return Err(form.error(format!("this `vote` gives a `{wanted}`, not a `{ty}`")));
    }
    let destinations = [form.destination(ty)?, None];
    let source = form.source(Type::Pred)?;
    Ok(Box::new(Exchange { kind: Kind::Vote(vote), destinations, source, members: form.source(Type::B32)? }))
}

/// Decodes `match.sync`.
pub(crate) fn decode_match(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    need_sync(form)?;
    let modes = [("any", false), ("all", true)];
    let is_all = form.one_of(&modes).ok_or_else(|| form.error("`match` needs a mode: `.any` or `.all`"))?;
    let ty = form.ty()?;
    if !matches!(ty, Type::B32 | Type::B64) {
        return Err(form.error(format!("`match` compares `.b32` or `.b64`, not `{ty}`")));
    }
    let (kind, destinations) = match is_all {
        true => (Kind::MatchAll, form.destination_pair(Type::B32, Type::Pred)?),
        false => (Kind::MatchAny, [form.destination(Type::B32)?, None]),
    };
    let source = form.source(ty)?;
    Ok(Box::new(Exchange { kind, destinations, source, members: form.source(Type::B32)? }))
}

/// Decodes `redux.sync`.
pub(crate) fn decode_reduce(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    need_sync(form)?;
    let operations = [
        ("add", Reduction::Add),
        ("min", Reduction::Min),
        ("max", Reduction::Max),
        ("and", Reduction::And),
        ("or", Reduction::Or),
        ("xor", Reduction::Xor),
    ];
    let operation = form.one_of(&operations).ok_or_else(|| form.error("`redux` needs an operation, such as `.add`"))?;
    let ty = form.ty()?;
    let is_legal = match operation {
        Reduction::Add | Reduction::Min | Reduction::Max => matches!(ty, Type::U32 | Type::S32),
        Reduction::And | Reduction::Or | Reduction::Xor => ty == Type::B32,
    };
    if !is_legal {
        return Err(form.error(format!("this `redux` has no type `{ty}`: sums and bounds are of `.u32` or `.s32`, logic is of `.b32`")));
    }
    let destinations = [form.destination(ty)?, None];
    let source = form.source(ty)?;
    let kind = Kind::Reduce { operation, is_signed: ty.is_signed() };
    Ok(Box::new(Exchange { kind, destinations, source, members: form.source(Type::B32)? }))
}

/// Decodes `elect.sync`.
pub(crate) fn decode_elect(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    need_sync(form)?;
    let destinations = form.destination_pair(Type::B32, Type::Pred)?;
    if destinations[1].is_none() {
        return Err(form.error("`elect` needs a predicate to write: `d|p`"));
    }
    let members = form.source(Type::B32)?;
    Ok(Box::new(Exchange { kind: Kind::Elect, destinations, source: Value::Bits(0), members }))
}

/// Decodes `activemask`.
pub(crate) fn decode_active_mask(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if form.ty()? != Type::B32 {
        return Err(form.error("`activemask` gives a `.b32`"));
    }
    Ok(Box::new(ActiveMask { destination: form.destination(Type::B32)? }))
}

impl Instruction for Exchange {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let mut unknown = Unknowns::new();
        let source = match self.kind {
            Kind::Shuffle { .. } => cx.read_through(cx.lanes, self.source, &mut unknown)?,
            _ => cx.read(self.source)?,
        };
        let (distances, bounds) = match self.kind {
            Kind::Shuffle { distance, bounds, .. } => (cx.read(distance)?, cx.read(bounds)?),
            _ => ([0; WARP], [0; WARP]),
        };
        for lanes in member_sets(cx, self.members)? {
            let [values, flags] = self.exchange(lanes, &source, &distances, &bounds);
            cx.write_lanes(self.destinations[0], lanes, &values);
            cx.write_lanes(self.destinations[1], lanes, &flags);
            if let Kind::Shuffle { mode, .. } = self.kind {
                cx.write_unknown(self.destinations[0], &passed(mode, lanes, &distances, &bounds, &unknown));
                let absent = |(lane, source_lane)| {
                    let kind = FaultKind::InactiveSource { lane: lane as u32, source_lane: source_lane as u32 };
                    (lane, cx.unknown(kind))
                };
                let strays: Unknowns = strays(mode, lanes, &distances, &bounds).map(absent).collect();
                cx.write_unknown(self.destinations[0], &strays);
            }
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Members(self.members)
    }

    fn class(&self) -> Class {
        Class::Warp
    }
}

impl Exchange {
    /// The results of the lanes, which all have the same member mask.
    fn exchange(&self, lanes: Lanes, source: &Row, distances: &Row, bounds: &Row) -> [Row; 2] {
        match self.kind {
            Kind::Shuffle { mode, .. } => shuffle(mode, lanes, source, distances, bounds),
            Kind::Vote(kind) => [[vote(kind, lanes, source); WARP], [0; WARP]],
            Kind::MatchAny => {
                let same = |lane: usize| u64::from(lanes.filter(|other| source[other] == source[lane]).0);
                [std::array::from_fn(same), [0; WARP]]
            }
            Kind::MatchAll => {
                let first = lanes.lowest().unwrap_or(0);
                let is_same = lanes.into_iter().all(|lane| source[lane] == source[first]);
                [[if is_same { u64::from(lanes.0) } else { 0 }; WARP], [u64::from(is_same); WARP]]
            }
            Kind::Reduce { operation, is_signed } => [[reduce(operation, is_signed, lanes, source); WARP], [0; WARP]],
            Kind::Elect => {
                // The ISA lets the hardware choose the leader, as long as the same mask gives the same leader.
                let leader = lanes.lowest().unwrap_or(0);
                [[leader as u64; WARP], std::array::from_fn(|lane| u64::from(lane == leader))]
            }
        }
    }
}

/// Splits the active lanes by their member masks: for example, the two halves of a warp may each use their own mask.
pub(crate) fn member_sets(cx: &Cx<'_>, members: Value) -> Result<Vec<Lanes>, Trap> {
    let masks = cx.read(members)?;
    let mut sets = Vec::new();
    let mut rest = cx.lanes;
    while let Some(first) = rest.lowest() {
        let set = rest.filter(|lane| masks[lane] == masks[first]);
        sets.push(set);
        rest = rest.without(set);
    }
    Ok(sets)
}

impl Instruction for ActiveMask {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        cx.write(self.destination, &[u64::from(cx.lanes.0); WARP]);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Warp
    }
}

/// The source lane of a lane in `shfl`, and whether it is in range (PTX ISA, 9.7.9.6). `bounds` has the clamp in bits 0 to 4 and the
/// segment mask in bits 8 to 12. Bits of the lane number that are set in the segment mask never change.
fn shuffle_source(mode: Mode, lane: usize, distance: u64, bounds: u64) -> (usize, bool) {
    let lane = lane as i64;
    let distance = (distance & 31) as i64;
    let clamp = (bounds & 31) as i64;
    let segment = (bounds >> 8 & 31) as i64;
    let limit = lane & segment | clamp & !segment;
    let (source, is_in_range) = match mode {
        Mode::Up => (lane - distance, lane - distance >= limit),
        Mode::Down => (lane + distance, lane + distance <= limit),
        Mode::Butterfly => (lane ^ distance, lane ^ distance <= limit),
        Mode::Index => {
            let source = lane & segment | distance & !segment;
            (source, source <= limit)
        }
    };
    if is_in_range { (source as usize, true) } else { (lane as usize, false) }
}

/// The lanes whose source lane does not participate, and this source lane. The values that these lanes read are undefined.
fn strays(mode: Mode, lanes: Lanes, distances: &Row, bounds: &Row) -> impl Iterator<Item = (usize, usize)> {
    let with_sources = lanes.into_iter().map(move |lane| (lane, shuffle_source(mode, lane, distances[lane], bounds[lane]).0));
    with_sources.filter(move |(_, source)| !lanes.has(*source))
}

/// The lanes whose source lane has an unknown value, and the origin of the value.
fn passed(mode: Mode, lanes: Lanes, distances: &Row, bounds: &Row, unknown: &Unknowns) -> Unknowns {
    if unknown.is_empty() {
        return Unknowns::new();
    }
    let read = |lane: usize| {
        let (source, _) = shuffle_source(mode, lane, distances[lane], bounds[lane]);
        unknown.iter().find(|(unknown, _)| *unknown == source).map(|(_, unknown)| (lane, unknown.clone()))
    };
    lanes.into_iter().filter_map(read).collect()
}

fn shuffle(mode: Mode, lanes: Lanes, values: &Row, distances: &Row, bounds: &Row) -> [Row; 2] {
    let mut result = [[0; WARP]; 2];
    for lane in lanes {
        let (source, is_in_range) = shuffle_source(mode, lane, distances[lane], bounds[lane]);
        result[0][lane] = values[source];
        result[1][lane] = u64::from(is_in_range);
    }
    result
}

fn vote(kind: Vote, lanes: Lanes, predicates: &Row) -> u64 {
    let ayes = lanes.filter(|lane| predicates[lane] != 0);
    match kind {
        Vote::All => u64::from(ayes == lanes),
        Vote::Any => u64::from(!ayes.is_empty()),
        Vote::Uniform => u64::from(ayes == lanes || ayes.is_empty()),
        Vote::Ballot => u64::from(ayes.0),
    }
}

fn reduce(operation: Reduction, is_signed: bool, lanes: Lanes, values: &Row) -> u64 {
    let combine = |a: u32, b: u32| match operation {
        Reduction::Add => a.wrapping_add(b),
        Reduction::Min if is_signed => (a as i32).min(b as i32) as u32,
        Reduction::Max if is_signed => (a as i32).max(b as i32) as u32,
        Reduction::Min => a.min(b),
        Reduction::Max => a.max(b),
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
    };
    u64::from(lanes.into_iter().map(|lane| values[lane] as u32).reduce(combine).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a shuffle of the lane numbers plus 100.
    fn shuffled(mode: Mode, lanes: Lanes, distance: u64, bounds: u64) -> [Row; 2] {
        let values = std::array::from_fn(|lane| 100 + lane as u64);
        shuffle(mode, lanes, &values, &[distance; WARP], &[bounds; WARP])
    }

    /// The source lanes of a shuffle by the whole warp.
    fn sources(mode: Mode, distance: u64, bounds: u64) -> Vec<(u64, bool)> {
        let [values, flags] = shuffled(mode, Lanes::ALL, distance, bounds);
        values.iter().zip(flags).map(|(value, flag)| (value - 100, flag == 1)).collect()
    }

    #[test]
    fn a_prefix_sum_step_stops_at_lane_0() {
        // `shfl.sync.up.b32 Ry|p, Rx, 4, 0x0`, as in the ISA's prefix sum over 32 lanes.
        let expected: Vec<_> = (0..32).map(|lane| if lane < 4 { (lane, false) } else { (lane - 4, true) }).collect();
        assert_eq!(sources(Mode::Up, 4, 0), expected);
    }

    #[test]
    fn down_stays_in_its_segment_of_8() {
        // Width 8 in CUDA: the segment mask is 0b11000.
        let bounds = (0b11000 << 8) | 31;
        let expected: Vec<_> = (0..32).map(|lane| if lane % 8 < 6 { (lane + 2, true) } else { (lane, false) }).collect();
        assert_eq!(sources(Mode::Down, 2, bounds), expected);
    }

    #[test]
    fn up_stays_in_its_segment_of_8() {
        let bounds = 0b11000 << 8;
        let expected: Vec<_> = (0..32).map(|lane| if lane % 8 >= 3 { (lane - 3, true) } else { (lane, false) }).collect();
        assert_eq!(sources(Mode::Up, 3, bounds), expected);
    }

    #[test]
    fn a_butterfly_swaps_and_clamps() {
        let whole: Vec<_> = (0..32).map(|lane| (lane ^ 16, true)).collect();
        assert_eq!(sources(Mode::Butterfly, 16, 31), whole);
        // Segments of 16 with a clamp of 15: a source lane in the upper segment is out of range, one in the lower segment is not.
        let halves: Vec<_> = (0..32).map(|lane| if lane < 16 { (lane, false) } else { (lane ^ 16, true) }).collect();
        assert_eq!(sources(Mode::Butterfly, 16, (0b10000 << 8) | 15), halves);
    }

    #[test]
    fn an_index_is_taken_inside_the_segment() {
        let expected: Vec<_> = (0..32).map(|lane| (lane / 4 * 4 + 3, true)).collect();
        assert_eq!(sources(Mode::Index, 7, (0b11100 << 8) | 31), expected);
        // A clamp of 5 without segments: lane 7 is out of range.
        let beyond: Vec<_> = (0..32).map(|lane| (lane, false)).collect();
        assert_eq!(sources(Mode::Index, 7, 5), beyond);
    }

    #[test]
    fn a_lane_that_is_absent_can_not_be_read() {
        let found = |mode, bounds| strays(mode, Lanes::first(16), &[8; WARP], &[bounds; WARP]).collect::<Vec<_>>();
        assert_eq!(found(Mode::Down, 31), (8..16).map(|lane| (lane, lane + 8)).collect::<Vec<_>>());
        // A lane that is out of range reads its own value.
        assert_eq!(found(Mode::Up, 0), []);
    }

    #[test]
    fn votes_and_reductions_are_of_the_members() {
        let lanes = Lanes(0b1110);
        let mut row = [1; WARP];
        row[2] = 0;
        assert_eq!(vote(Vote::All, lanes, &row), 0);
        assert_eq!(vote(Vote::All, Lanes(0b1010), &row), 1);
        assert_eq!(vote(Vote::Uniform, Lanes(0b0100), &row), 1);
        assert_eq!(vote(Vote::Any, Lanes(0b0100), &row), 0);
        assert_eq!(vote(Vote::Ballot, lanes, &row), 0b1010);
        row[1] = 0xffff_ffff;
        assert_eq!(reduce(Reduction::Add, false, lanes, &row), 0);
        assert_eq!(reduce(Reduction::Min, true, lanes, &row), 0xffff_ffff);
        assert_eq!(reduce(Reduction::Min, false, lanes, &row), 0);
        assert_eq!(reduce(Reduction::Max, true, lanes, &row), 1);
        assert_eq!(reduce(Reduction::Xor, false, lanes, &row), 0xffff_fffe);
    }
}
