//! Transfers of 8×8 matrices of 16-bit elements: `ldmatrix`, `stmatrix`, `movmatrix` (PTX ISA, 9.7.14.5.15 to 9.7.14.5.17).
//!
//! A matrix in shared memory consists of eight rows of 16 bytes at any addresses. Lane `8 * j + r` provides the address of row `r` of
//! matrix `j`. In registers, lane `l` holds two adjacent elements of row `l / 4`, from column `l % 4 * 2` on. With `.trans` these are
//! elements of the transposed matrix.

use crate::counters;
use crate::fault::Trap;
use crate::instructions::{Address, Convergence, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Lanes, Row, WARP, WideRow};
use crate::machine::{Access, Cx};
use crate::ptx::{Space, Type};

/// The rows of a matrix of 16-bit elements.
type Matrix = [[u16; 8]; 8];

struct Load {
    address: Address,
    transpose: bool,
    destinations: Vec<Option<Register>>,
}

struct Store {
    address: Address,
    transpose: bool,
    sources: Vec<Value>,
}

struct Move {
    destination: Option<Register>,
    source: Value,
}

/// Decodes `ldmatrix`.
pub(crate) fn decode_load(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let (count, transpose, space) = modifiers(form)?;
    let destinations = form.destinations(count, Type::B32)?;
    Ok(Box::new(Load { destinations, transpose, address: form.address(space)? }))
}

/// Decodes `stmatrix`.
pub(crate) fn decode_store(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let (count, transpose, space) = modifiers(form)?;
    let address = form.address(space)?;
    Ok(Box::new(Store { address, transpose, sources: form.sources(count, Type::B32)? }))
}

/// Decodes `movmatrix`.
pub(crate) fn decode_move(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    matrix_of_16_bits(form)?;
    if !form.flag("trans") {
        return Err(form.error("`movmatrix` transposes: it needs `.trans`"));
    }
    Ok(Box::new(Move { destination: form.destination(Type::B32)?, source: form.source(Type::B32)? }))
}

fn modifiers(form: &mut Form<'_>) -> Result<(usize, bool, Space), Unsupported> {
    matrix_of_16_bits(form)?;
    let opcode = form.opcode();
    let counts = [("x1", 1), ("x2", 2), ("x4", 4)];
    let count = form.one_of(&counts).ok_or_else(|| form.error(format!("`{opcode}` needs a count: `.x1`, `.x2` or `.x4`")))?;
    let transpose = form.flag("trans");
    match form.space() {
        space @ (Space::Shared | Space::Generic) => Ok((count, transpose, space)),
        space => Err(form.error(format!("`{opcode}` accesses shared memory of its own CTA, not {space} memory"))),
    }
}

fn matrix_of_16_bits(form: &mut Form<'_>) -> Result<(), Unsupported> {
    let opcode = form.opcode();
    if !(form.flag("sync") && form.flag("aligned")) {
        return Err(form.error(format!("`{opcode}` needs `.sync.aligned`")));
    }
    if form.flag("m8n8") && form.maybe_ty() == Some(Type::B16) {
        return Ok(());
    }
    Err(form.error(format!("`{opcode}` moves matrices `.m8n8` of `.b16`; the other shapes do not exist before `sm_100a`")))
}

/// The two elements of a lane.
fn word(matrix: &Matrix, lane: usize) -> u64 {
    let row = &matrix[lane / 4];
    u64::from(row[lane % 4 * 2]) | u64::from(row[lane % 4 * 2 + 1]) << 16
}

/// The matrix whose elements the lanes hold.
fn gather(words: &Row) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| (words[row * 4 + column / 2] >> (column % 2 * 16)) as u16))
}

fn transposed(matrix: &Matrix) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[column][row]))
}

/// Restricts the active lanes to those that provide the addresses of `count` matrices.
fn with_address_lanes<T>(cx: &mut Cx<'_>, count: usize, access: impl FnOnce(&mut Cx<'_>) -> Result<T, Trap>) -> Result<T, Trap> {
    let lanes = cx.lanes;
    cx.lanes = lanes.and(Lanes::first(8 * count));
    let result = access(cx);
    cx.lanes = lanes;
    result
}

impl Instruction for Load {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let access = Access::plain("ldmatrix", self.address.space, 16);
        let rows = with_address_lanes(cx, self.destinations.len(), |cx| {
            let addresses = cx.addresses(self.address)?;
            cx.load(access, &addresses)
        })?;
        for (number, &destination) in self.destinations.iter().enumerate() {
            let stored: Matrix = std::array::from_fn(|row| std::array::from_fn(|column| (rows[number * 8 + row] >> (column * 16)) as u16));
            let matrix = if self.transpose { transposed(&stored) } else { stored };
            cx.write(destination, &std::array::from_fn(|lane| word(&matrix, lane)));
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        counters::Class::Shared
    }
}

impl Instruction for Store {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let mut rows: WideRow = [0; WARP];
        for (number, &source) in self.sources.iter().enumerate() {
            let held = gather(&cx.read(source)?);
            let matrix = if self.transpose { transposed(&held) } else { held };
            for (row, elements) in matrix.iter().enumerate() {
                rows[number * 8 + row] = elements.iter().rev().fold(0, |bytes, &element| bytes << 16 | u128::from(element));
            }
        }
        let access = Access::plain("stmatrix", self.address.space, 16);
        with_address_lanes(cx, self.sources.len(), |cx| {
            let addresses = cx.addresses(self.address)?;
            cx.store(access, &addresses, &rows)
        })?;
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        counters::Class::Shared
    }
}

impl Instruction for Move {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let matrix = transposed(&gather(&cx.read(self.source)?));
        cx.write(self.destination, &std::array::from_fn(|lane| word(&matrix, lane)));
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        counters::Class::Warp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use crate::instructions::harness::{Failure, Harness, refusal};

    /// Shared memory with 48 rows of 16 bytes, in which element `e` of row `r` is `r * 8 + e`. In lane `l`, `%a` is the address of
    /// row `(l * 5 + 3) % 48`.
    fn filled() -> Harness {
        let mut harness = Harness::new();
        harness.define("%a", Type::U32, |lane| (named(lane) * 16) as u64);
        harness.define("%z", Type::U32, |lane| lane as u64 * 16);
        for chunk in 0..2 {
            let pair =
                |row: usize, first: usize| (0..4).fold(0u64, |word, element| word | ((row * 8 + first + element) as u64) << (element * 16));
            harness.define("%x", Type::B64, |lane| pair(chunk * 32 + lane, 0));
            harness.define("%y", Type::B64, |lane| pair(chunk * 32 + lane, 4));
            harness.run(&format!("st.shared.v2.b64 [%z+{}], {{%x, %y}};", chunk * 512)).expect("it stores");
        }
        harness.cluster.clocks.barrier(&[(0, Lanes::ALL)]);
        for number in 0..4 {
            harness.declare(&format!("%d{number}"), Type::B32);
        }
        harness
    }

    fn named(lane: usize) -> usize {
        (lane * 5 + 3) % 48
    }

    #[test]
    fn loads_rows_and_columns() {
        for (count, operands) in [(1, "{%d0}"), (2, "{%d0, %d1}"), (4, "{%d0, %d1, %d2, %d3}")] {
            for transpose in [false, true] {
                let mut harness = filled();
                let flag = if transpose { ".trans" } else { "" };
                harness.run(&format!("ldmatrix.sync.aligned.m8n8.x{count}{flag}.shared.b16 {operands}, [%a];")).expect("it loads");
                for number in 0..count {
                    for (lane, &bits) in harness.value(&format!("%d{number}")).iter().enumerate() {
                        let expected = [0, 1].map(|half| {
                            let (row, column) = (lane / 4, lane % 4 * 2 + half);
                            let (row, column) = if transpose { (column, row) } else { (row, column) };
                            (named(number * 8 + row) * 8 + column) as u64
                        });
                        assert_eq!(bits, expected[0] | expected[1] << 16, "x{count}{flag} register {number} lane {lane}");
                    }
                }
            }
        }
    }

    #[test]
    fn stores_what_it_loads() {
        for flag in ["", ".trans"] {
            let mut harness = filled();
            harness.run(&format!("ldmatrix.sync.aligned.m8n8.x4{flag}.shared::cta.b16 {{%d0, %d1, %d2, %d3}}, [%a];")).expect("it loads");
            harness.run(&format!("stmatrix.sync.aligned.m8n8.x4{flag}.shared.b16 [%z+1024], {{%d0, %d1, %d2, %d3}};")).expect("it stores");
            harness.run("ld.shared.v2.b64 {%x, %y}, [%z+1024];").expect("it loads");
            for (lane, (&low, &high)) in harness.value("%x").iter().zip(&harness.value("%y")).enumerate() {
                assert_eq!((low & 0xffff, high >> 48), ((named(lane) * 8) as u64, (named(lane) * 8 + 7) as u64), "{flag} row {lane}");
            }
        }
    }

    #[test]
    fn a_move_transposes() {
        let mut harness = filled();
        harness.run("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%d0}, [%a];").expect("it loads");
        harness.run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d1}, [%a];").expect("it loads");
        harness.run("movmatrix.sync.aligned.m8n8.trans.b16 %d2, %d1;").expect("it moves");
        assert_eq!(harness.value("%d2"), harness.value("%d0"));
        assert_ne!(harness.value("%d1"), harness.value("%d0"));
    }

    #[test]
    fn rows_of_other_lanes_need_a_barrier() {
        let mut harness = filled();
        harness.run("st.shared.b64 [%z], %x;").expect("it stores");
        let fault = harness.run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%a];");
        assert!(matches!(fault, Err(Failure::Trap(0, FaultKind::SharedRace { access: "ldmatrix", .. }))), "{fault:?}");
    }

    #[test]
    fn only_rows_that_are_loaded_are_checked() {
        let mut harness = filled();
        // For `.x2`, the lanes from 16 on provide no address.
        harness.define("%b", Type::U32, |lane| if lane < 16 { lane as u64 * 16 } else { 0xffff_0007 });
        harness.run("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0, %d1}, [%b];").expect("it loads");
        let fault = harness.run("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%b];");
        assert!(matches!(fault, Err(Failure::Trap(16, FaultKind::Misaligned { alignment: 16, .. }))), "{fault:?}");
    }

    #[test]
    fn forms_that_do_not_exist_are_refused() {
        for (text, reason) in [
            ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r0, %r1, %r2}, [%r3];", "`ldmatrix` needs a count: `.x1`, `.x2` or `.x4`"),
            (
                "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r3];",
                "`ldmatrix` moves matrices `.m8n8` of `.b16`; the other shapes do not exist before `sm_100a`",
            ),
            (
                "ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%d3];",
                "`ldmatrix` accesses shared memory of its own CTA, not global memory",
            ),
            ("stmatrix.aligned.m8n8.x1.shared.b16 [%r3], {%r0};", "`stmatrix` needs `.sync.aligned`"),
            ("movmatrix.sync.aligned.m8n8.b16 %r0, %r1;", "`movmatrix` transposes: it needs `.trans`"),
        ] {
            assert_eq!(refusal(text).as_deref(), Some(reason));
        }
    }
}
