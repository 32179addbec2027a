//! Addresses that a loop carries: a thread's address of rows moves by the same distance in each iteration.
//!
//! ```text
//! for %lower, %upper, 2 (%i: i64) {         mad %first, %lower * %columns + ..
//!     load %x, %i * %columns + ..       again:
//!     load %x, (%i + 1) * %columns + ..     ld [%first]
//! }                                         add %second, %first, %columns
//!                                           ld [%second]
//!                                           add %first, %first, 2 * %columns
//! ```
//!
//! Computed anew, such an address takes a product of 64 bits, the sum of its terms and the thread's part: a dozen instructions, of which each waits for the
//! one before it. The driver's compiler moves what does not change out of a loop, but turns no product with an argument into a sum. A distance that is a
//! constant it handles itself.

use rustc_hash::FxHashMap;

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops;
use crate::analysis::polynomial::Polynomial;
use crate::ir::{Op, Region, Value};

use super::Emitter;
use super::index::AddressKey;
use super::text::registers::{Class, Reg, asm};

/// The most addresses that a loop carries: each takes two registers.
const MOST: usize = 8;

/// The addresses of a loop's accesses that the loop carries, or that are at fixed distances from one that it carries.
#[derive(Default)]
pub(super) struct Carried {
    first: Vec<First>,
    behind: Vec<Behind>,
}

/// An address that a loop carries.
struct First {
    key: AddressKey,
    /// What is the same for every thread, as a sum of products of the index and scalars outside of the loop.
    start: Polynomial,
    /// The address in this iteration.
    address: Reg,
    /// The bytes from one iteration to the next.
    step: Reg,
}

/// An address at a distance from one that a loop carries.
struct Behind {
    key: AddressKey,
    first: Reg,
    distance: Reg,
}

impl Emitter<'_> {
    /// Computes the addresses of the first iteration, behind the test whether there is one. The index is in its register.
    pub(super) fn carried(&mut self, index: Value, step: Value, body: Region) -> Carried {
        let (func, mut carried) = (self.func, Carried::default());
        let mut facts = AffineFacts::through_products();
        let inside = loops::defined_in(func, &[body]);
        let step = loops::constant(func, step).map_or_else(|| Polynomial::scalar(step), Polynomial::constant);
        for inst in &func.region(body).insts {
            let (Op::Load { base, offset, .. }
            | Op::Store { base, offset, .. }
            | Op::Atomic { base, offset, .. }
            | Op::AsyncCopy { base, offset, .. }) = func.inst(*inst).op
            else {
                continue;
            };
            let (Some(own), Some(place)) = (self.facts.get(func, offset), facts.get(func, offset)) else { continue };
            let mut place = (*place).clone();
            // The access itself adds the constant that it sees.
            place.start.constant = place.start.constant.wrapping_sub(own.start.constant);
            let is_known = !inside[base] && place.scalars().all(|scalar| scalar == index || !inside[scalar]);
            let is_same = |number: &Polynomial| number.coefficient(index).is_some_and(|scale| scale.is(0));
            if !is_known || !place.strides.iter().all(is_same) {
                continue;
            }
            let moves = place.start.coefficient(index).and_then(|scale| scale.times(&step));
            let Some(moves) = moves.filter(|moves| moves.as_constant().is_none()) else { continue };
            let (layout, bytes) = (self.layout(offset).cloned(), func.ty(base).dtype().bytes() as i64);
            let key = AddressKey::new(Some(base), &own, layout.as_ref(), bytes);
            if carried.keys().any(|known| *known == key) {
                continue;
            }
            let near = carried.first.iter().find(|first| first.key.differs_in_terms(&key) && is_same(&place.start.minus(&first.start)));
            if let Some(first) = near {
                let distance = self.step(&place.start.minus(&first.start), bytes);
                carried.behind.push(Behind { key, first: first.address, distance });
            } else if carried.first.len() < MOST {
                let (pointer, _) = self.pointers[base].expect("a pointer is a parameter, or was made before");
                let begin = self.address(Some(pointer), Some(base), &place, layout.as_ref(), bytes);
                let (step, address) = (self.step(&moves, bytes), self.reg(Class::B64));
                asm!(self, "add.s64 {address}, {begin}, {}", place.start.constant.wrapping_mul(bytes));
                carried.first.push(First { key, start: place.start, address, step });
            }
        }
        carried
    }

    /// At the start of an iteration: the addresses by their keys.
    pub(super) fn carried_addresses(&mut self, carried: &Carried) -> FxHashMap<AddressKey, Reg> {
        let mut addresses: FxHashMap<AddressKey, Reg> = carried.first.iter().map(|first| (first.key.clone(), first.address)).collect();
        for Behind { key, first, distance } in &carried.behind {
            let address = self.reg(Class::B64);
            asm!(self, "add.s64 {address}, {first}, {distance}");
            addresses.insert(key.clone(), address);
        }
        addresses
    }

    /// At the end of an iteration: moves the addresses to the next one.
    pub(super) fn advance(&mut self, carried: &Carried) {
        for First { address, step, .. } in &carried.first {
            asm!(self, "add.s64 {address}, {address}, {step}");
        }
    }
}

impl Carried {
    fn keys(&self) -> impl Iterator<Item = &AddressKey> {
        self.first.iter().map(|first| &first.key).chain(self.behind.iter().map(|behind| &behind.key))
    }
}
