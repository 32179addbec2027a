//! Shuffle conversions: moving elements between the lanes of a warp by `shfl.sync`.
//!
//! `shfl.sync.idx` gives every lane one value of another lane. In a round each lane sends one register and fills one. With `n` destination
//! registers there are `n` rounds, none of them wasted, if in each round no lane has to send two elements. Over GF(2) let `R` be the
//! elements of a source thread and `Q` those of a destination thread. The elements of a round are then a subspace `X` that represents the
//! lanes' elements modulo `Q` and intersects `R` only in zero: a common complement. The other rounds are translates of `X`.
//!
//! ```text
//! src: register 1 -> 1, lane 1 -> 2        dst: register 1 -> 2, lane 1 -> 1        (a 2 x 2 transpose)
//! lane 0 holds 0 1, lane 1 holds 2 3       lane 0 wants 0 2, lane 1 wants 1 3
//! X = {0, 3}; {0, 1} is not possible, because lane 0 would send both elements in one round
//! round 0 moves 0 and 3: lane 0 sends register 0 to itself, lane 1 sends register 1 to itself
//! round 1 moves 2 and 1: lane 0 sends register 1, lane 1 sends register 0, to each other
//! ```
//!
//! Source: arXiv 2505.23819, "Intra-warp data exchange". This implementation also covers copies, lane-dependent warps and layouts whose
//! bases are not single bits. As in the paper, registers that stay together are packed into one 32-bit word.

use super::conversion::{XorTable, check, differences, xor_of};
use super::matrix::{Span, combine};
use super::{Layout, LayoutError, Level};

/// The tags of lanes are above the tags of registers.
const LANE: u32 = 32;
/// The maximum number of padding bits: rounds that move less than a full register cause at most `1 << MOST_PADDING` times as many rounds.
const MOST_PADDING: usize = 5;

/// Rounds of shuffles that convert a tile within a warp.
///
/// In round `r` the thread (lane, warp, block) does the following:
///
/// ```text
/// sends     source register        r.send    ^ send(lane, warp, block)
/// from      lane                   r.lane    ^ source_lane(lane, warp, block)
/// into      destination register   r.receive ^ receive(lane, warp, block)     dropped if it is not a register of dst
/// ```
///
/// A register that depends on the thread needs no dynamic index. For each bit of the thread id with a nonzero value `v` in the table,
/// threads with this bit set swap registers `i` and `i ^ v`: before the rounds (send) or after them (receive). If the elements are packed,
/// each round moves all [`ShufflePlan::packed_registers`] together. `copies` come last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    /// Bits of an element.
    pub element_bits: u32,
    /// Pairs of a source register bit and a destination register bit that are packed into one 32-bit word.
    pub packed: Vec<(u32, u32)>,
    /// The part of the sent register that depends on the sending thread.
    pub send: XorTable,
    /// The part of the lane read from that depends on the receiving thread.
    pub source_lane: XorTable,
    /// The part of the filled register that depends on the receiving thread.
    pub receive: XorTable,
    /// The rounds, in any order.
    pub rounds: Vec<Round>,
    /// Destination registers that hold copies: `(register, the register it copies)`, after all rounds.
    pub copies: Vec<(u32, u32)>,
    /// The number of destination registers; a round's results beyond it are dropped.
    pub registers: u32,
}

/// One round of a [`ShufflePlan`]: the parts that are the same in every thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Xor into the source register sent.
    pub send: u32,
    /// Xor into the lane read from.
    pub lane: u32,
    /// Xor into the destination register filled.
    pub receive: u32,
}

impl ShufflePlan {
    /// Plans the conversion. `None` if elements move between warps, or if the plan needs many more rounds than destination registers (for
    /// example if one lane holds the elements that all lanes want).
    ///
    /// # Errors
    /// See [`conversion`](super::conversion()).
    pub fn new(src: &Layout, dst: &Layout, element_bits: u32) -> Result<Option<ShufflePlan>, LayoutError> {
        check(src, dst, element_bits)?;
        let candidates = packing_candidates(src, dst, element_bits);
        let plan = |count| Problem::new(src, dst, &candidates[..count])?.solve(element_bits);
        Ok((0..=candidates.len()).rev().filter_map(plan).min_by_key(ShufflePlan::cost))
    }

    /// The source and destination registers that one lane moves in one round, as xors into the registers of the round. The pair `(0, 0)`
    /// comes first. Several pairs share a 32-bit word.
    pub fn packed_registers(&self) -> Vec<(u32, u32)> {
        let bits = |pick: fn(&(u32, u32)) -> u32| self.packed.iter().map(|p| 1 << pick(p)).collect::<Vec<u32>>();
        let (from, to) = (bits(|p| p.0), bits(|p| p.1));
        (0..1 << self.packed.len()).map(|part| (xor_of(&from, part), xor_of(&to, part))).collect()
    }

    /// Whether some lane reads from another lane in this round. If not, the round is a move between registers.
    pub fn exchanges(&self, round: &Round) -> bool {
        let own = self.source_lane.lane.iter().enumerate().all(|(bit, &lane)| lane == 1 << bit);
        let same = self.source_lane.warp.iter().chain(&self.source_lane.block).all(|&lane| lane == 0);
        round.lane != 0 || !own || !same
    }

    /// The issue slots of a warp, in halves. A shuffle of a 32-bit word takes two halves, a select takes one. Packing is not counted, as in
    /// [`SharedPlan::cost`](super::SharedPlan::cost).
    pub fn cost(&self) -> u32 {
        let words = self.element_bits.div_ceil(32);
        let shuffles = self.rounds.iter().filter(|round| self.exchanges(round)).count() as u32;
        let selects = (self.send.steps() + self.receive.steps()) * self.rounds.len() as u32;
        words * (2 * shuffles + selects)
    }
}

/// Register bits that stand for the same element in both layouts, as many as fill a 32-bit word.
fn packing_candidates(src: &Layout, dst: &Layout, element_bits: u32) -> Vec<(u32, u32)> {
    let most = (32 / element_bits).checked_ilog2().unwrap_or(0) as usize;
    let targets = dst.flat_bases(Level::Register);
    let sources = src.flat_bases(Level::Register).iter().enumerate();
    let pair = |(from, &basis): (usize, &u64)| {
        let to = targets.iter().position(|&target| target == basis && basis != 0)?;
        Some((from as u32, to as u32))
    };
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (from, to) in sources.filter_map(pair) {
        if pairs.len() < most && pairs.iter().all(|&(_, taken)| taken != to) {
            pairs.push((from, to));
        }
    }
    pairs
}

/// The two layouts, in the form that the planner uses.
struct Problem<'a> {
    src: &'a Layout,
    dst: &'a Layout,
    packed: &'a [(u32, u32)],
    /// Elements of lane 0 of the source. The tags are registers.
    own: Span,
    /// Elements of warp 0 of the source, registers preferred. The tags are registers and lanes.
    held: Span,
    /// By destination register bit: its element, 0 for a packed bit. Padding bits follow the bits of the layout.
    targets: Vec<u64>,
    /// The destination register bits that make no copies, padding included.
    pivots: Vec<u32>,
}

impl<'a> Problem<'a> {
    /// `None` if warp 0 of block 0 of the source does not hold all elements that the destination needs there.
    fn new(src: &'a Layout, dst: &'a Layout, packed: &'a [(u32, u32)]) -> Option<Self> {
        let mut own = Span::default();
        for (bit, &basis) in src.flat_bases(Level::Register).iter().enumerate() {
            if packed.iter().all(|&(from, _)| from as usize != bit) {
                own.insert(basis, 1 << bit);
            }
        }
        let mut held = own.clone();
        for (bit, &basis) in src.flat_bases(Level::Lane).iter().enumerate() {
            held.insert(basis, 1 << bit << LANE);
        }
        let mut targets = dst.flat_bases(Level::Register).to_vec();
        for &(_, to) in packed {
            targets[to as usize] = 0;
        }
        let mut wanted = Span::default();
        let pivots = (0..targets.len()).filter(|&bit| wanted.grow(targets[bit])).map(|bit| bit as u32).collect();
        let in_warp = targets.iter().chain(dst.flat_bases(Level::Lane)).all(|&basis| held.contains(basis));
        in_warp.then_some(Self { src, dst, packed, own, held, targets, pivots })
    }

    /// `None` if elements have to leave other warps, or if one lane holds too many of the elements that the others need.
    fn solve(mut self, element_bits: u32) -> Option<ShufflePlan> {
        let (elements, receive) = match self.lane_elements() {
            Some(found) => found,
            None => {
                self.pad()?;
                self.lane_elements()?
            }
        };
        let lanes = self.source_lanes(&elements, true).or_else(|| self.source_lanes(&elements, false))?;
        // The register that each lane sends, as a linear function of the lane. A lane from which no lane reads sends any register.
        let mut sent = lanes.sent;
        for bit in 0..elements.len() {
            sent.insert(1 << bit, 0);
        }
        let sends = |lane: u32| sent.solve(lane.into()).unwrap_or(0) as u32;
        // For an element relative to the round's element: the register that the source lane has to send, and the source lane.
        let locate = |element: u64| -> Option<(u32, u32)> {
            let tags = self.held.solve(element)?;
            let (register, lane) = (tags as u32, (tags >> LANE) as u32);
            Some((register ^ sends(lane), lane))
        };
        let offsets = |level| -> Option<(Vec<u32>, Vec<u32>)> {
            Some(differences(self.src, self.dst, level).into_iter().map(locate).collect::<Option<Vec<_>>>()?.into_iter().unzip())
        };
        let (send_warp, lane_warp) = offsets(Level::Warp)?;
        let (send_block, lane_block) = offsets(Level::Block)?;
        let registers = self.dst.registers_per_thread();
        let receive = XorTable { lane: receive, warp: vec![0; lane_warp.len()], block: vec![0; lane_block.len()] };
        let pivot_bits: Vec<u32> = self.pivots.iter().map(|&bit| 1 << bit).collect();
        let lane_count = 1 << elements.len();
        let mut rounds = Vec::new();
        for number in 0..1 << pivot_bits.len() {
            let slot = xor_of(&pivot_bits, number);
            let (send, lane) = locate(combine(&self.targets, slot.into()))?;
            if (0..lane_count).any(|lane| slot ^ receive.at(lane, 0, 0) < registers) {
                rounds.push(Round { send, lane, receive: slot });
            }
        }
        Some(ShufflePlan {
            element_bits,
            packed: self.packed.to_vec(),
            send: XorTable { lane: (0..elements.len()).map(|bit| sends(1 << bit)).collect(), warp: send_warp, block: send_block },
            source_lane: XorTable { lane: lanes.from, warp: lane_warp, block: lane_block },
            receive,
            rounds,
            copies: self.copies(),
            registers,
        })
    }

    /// By lane bit: an element that the lane wants, and its destination register. All lanes together must ask each source lane for at most
    /// one element. The elements should therefore intersect `own` as little as possible, and in no more dimensions than there are lanes
    /// with the same elements.
    fn lane_elements(&self) -> Option<(Vec<u64>, Vec<u32>)> {
        self.choose_elements(true).or_else(|| self.choose_elements(false))
    }

    /// With `stay`, prefers an element that the lane itself holds. Without `stay` the choice is optimal: an element is moved out of `own`
    /// if any destination register leads out of it.
    fn choose_elements(&self, stay: bool) -> Option<(Vec<u64>, Vec<u32>)> {
        let alike = self.src.bits(Level::Lane) - (self.held.rank() - self.own.rank());
        let mut asked = self.own.clone();
        let mut represented = Span::default();
        for &bit in &self.pivots {
            represented.insert(self.targets[bit as usize], 1 << bit);
        }
        let (mut elements, mut receive, mut inside) = (Vec::new(), Vec::new(), 0);
        for (lane, &wanted) in self.dst.flat_bases(Level::Lane).iter().enumerate() {
            let (element, register) = if let Some(tags) = represented.solve(wanted) {
                (combine(&elements, tags >> LANE), tags as u32)
            } else {
                let local = stay && self.own.contains(wanted ^ self.src.flat_bases(Level::Lane)[lane]);
                let way_out = || self.pivots.iter().find(|&&bit| !asked.contains(self.targets[bit as usize]));
                let (element, register) = match asked.contains(wanted) && !local {
                    true => way_out().map_or((wanted, 0), |&bit| (wanted ^ self.targets[bit as usize], 1 << bit)),
                    false => (wanted, 0),
                };
                inside += usize::from(!asked.grow(element));
                represented.insert(element, 1 << lane << LANE);
                (element, register)
            };
            elements.push(element);
            receive.push(register);
        }
        (inside <= alike).then_some((elements, receive))
    }

    /// Adds destination registers until a warp wants all elements that it holds. The choice above then always succeeds.
    fn pad(&mut self) -> Option<()> {
        let mut wanted = Span::of(&self.targets);
        wanted.extend(self.dst.flat_bases(Level::Lane).iter().copied());
        let before = self.targets.len();
        let registers = self.src.flat_bases(Level::Register).iter().enumerate();
        let unpacked = registers.filter(|(bit, _)| self.packed.iter().all(|&(from, _)| from as usize != *bit));
        for &basis in unpacked.map(|(_, basis)| basis).chain(self.src.flat_bases(Level::Lane)) {
            if wanted.grow(basis) {
                self.pivots.push(self.targets.len() as u32);
                self.targets.push(basis);
            }
        }
        (self.targets.len() - before <= MOST_PADDING).then_some(())
    }

    /// By lane bit: the source lane of its element, with the register that each source lane sends as tags. `None` if a lane would have to
    /// send two elements, which cannot happen without `stay`.
    fn source_lanes(&self, elements: &[u64], stay: bool) -> Option<SourceLanes> {
        let lanes = self.src.flat_bases(Level::Lane);
        let mut sent = Span::default();
        let mut earlier = Span::default();
        let mut from: Vec<u32> = Vec::new();
        for (bit, &element) in elements.iter().enumerate() {
            let register = |lane: u64| self.own.solve(element ^ combine(lanes, lane));
            // Either no register is sent from this lane yet, or it is the same register.
            let free = |lane: &u64| register(*lane).is_some_and(|tag| sent.solve(*lane).is_none_or(|other| other == tag));
            let unused = || (0..1 << lanes.len()).find(free);
            let lane = if stay {
                Some(1 << bit).filter(free).or_else(unused)?
            } else if let Some(tags) = earlier.solve(element) {
                u64::from(xor_of(&from, tags as u32))
            } else {
                Some(self.held.solve(element)? >> LANE).filter(free).or_else(unused)?
            };
            sent.insert(lane, register(lane)?);
            earlier.insert(element, 1 << bit);
            from.push(lane as u32);
        }
        Some(SourceLanes { from, sent })
    }

    fn copies(&self) -> Vec<(u32, u32)> {
        let mut span = Span::default();
        let packed = |bit: usize| self.packed.iter().any(|&(_, to)| to as usize == bit);
        let bits: Vec<u32> = (0..self.dst.bits(Level::Register))
            .map(|bit| match span.solve(self.targets[bit]) {
                Some(tags) if !packed(bit) => tags as u32,
                _ => {
                    span.insert(self.targets[bit], 1 << bit);
                    1 << bit
                }
            })
            .collect();
        let all = (0..self.dst.registers_per_thread()).map(|register| (register, xor_of(&bits, register)));
        all.filter(|(register, from)| register != from).collect()
    }
}

struct SourceLanes {
    from: Vec<u32>,
    sent: Span,
}
