//! Test harness: one warp with named registers, which executes single instructions written in PTX.
//!
//! ```text
//! let mut harness = Harness::new();
//! harness.define("%a", Type::U32, |lane| lane as u64);   // a register with a value in each lane
//! harness.declare("%d", Type::U32);                      // an uninitialised register
//! harness.run("add.u32 %d, %a, 1;")?;
//! assert_eq!(harness.value("%d")[3], 4);
//! ```

use crate::arguments::Arguments;
use crate::fault::FaultKind;
use crate::instructions::{self, Convergence, Form, Progress, Register, Unsupported};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::{Cluster, Cta, Cx, Grid, Warp};
use crate::memory::GlobalView;
use crate::program::{Named, Scope};
use crate::ptx::{AddressBase, Instruction, Operand, Position, SourceLine, Space, Type};

/// A warp of a CTA, and the names of its registers and variables.
pub(crate) struct Harness {
    pub(crate) scope: Scope,
    pub(crate) warp: Warp,
    pub(crate) cluster: Cluster,
    pub(crate) grid: Grid,
    /// The active lanes; initially all 32.
    pub(crate) lanes: Lanes,
    names: Vec<String>,
}

/// The reason why an instruction was not executed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Failure {
    /// The decoder rejected the instruction.
    Unsupported(String),
    /// The instruction trapped in this lane.
    Trap(usize, FaultKind),
}

impl Harness {
    pub(crate) fn new() -> Harness {
        let grid = Grid {
            global: GlobalView::default(),
            params: Vec::new(),
            arguments: Arguments::default(),
            grid: [1; 3],
            block: [WARP as u32, 1, 1],
            cluster: [1; 3],
            is_explicit_cluster: false,
            dynamic_shared_bytes: 0,
            total_shared_bytes: 48 << 10,
            num_sms: 132,
            allow_uninitialised: false,
            count_sectors: false,
            record: None,
        };
        let cta = Cta::new([0; 3], WARP as u32, &grid);
        let cluster = Cluster::new([0; 3], vec![cta], grid.block);
        let warp = Warp::new(0, Lanes::ALL, 0, 1 << 10);
        Harness { scope: Scope::default(), warp, cluster, grid, lanes: Lanes::ALL, names: Vec::new() }
    }

    /// Declares a register.
    pub(crate) fn declare(&mut self, name: &str, ty: Type) -> Register {
        let register = Register(self.names.len() as u32);
        assert!(self.scope.declare(name, Named::Register { register, ty }), "{name} is declared twice");
        for half in 0..ty.bits().div_ceil(64) {
            self.names.push(if half == 0 { name.to_owned() } else { format!("{name} (high half)") });
            self.warp.registers.push([0; WARP]);
            self.warp.defined.push(Lanes::NONE);
        }
        register
    }

    /// Declares a register, unless it exists, and sets its value in each lane.
    pub(crate) fn define(&mut self, name: &str, ty: Type, value: impl Fn(usize) -> u64) {
        let register = match self.scope.lookup(name) {
            Some(Named::Register { register, .. }) => register,
            _ => self.declare(name, ty),
        };
        self.warp.registers[register.0 as usize] = std::array::from_fn(value);
        self.warp.defined[register.0 as usize] = Lanes::ALL;
    }

    /// Declares a variable at an address of a state space.
    pub(crate) fn variable(&mut self, name: &str, space: Space, address: u64) {
        assert!(self.scope.declare(name, Named::Variable { space, address }), "{name} is declared twice");
    }

    /// Decodes an instruction and executes it once. The guard is ignored.
    pub(crate) fn run(&mut self, text: &str) -> Result<Progress, Failure> {
        let written = read(text);
        let unsupported = |Unsupported(reason)| Failure::Unsupported(reason);
        let instruction = instructions::decode(&mut Form::new(&written, &self.scope)).map_err(unsupported)?;
        let Harness { warp, cluster, grid, lanes, names, .. } = self;
        let mut cx = Cx { lanes: *lanes, warp, cluster, rank: 0, grid, step: 0, line: SourceLine::default(), names };
        instruction.execute(&mut cx).map_err(|trap| Failure::Trap(trap.lane, *trap.kind))
    }

    /// The convergence requirement of an instruction.
    pub(crate) fn convergence(&self, text: &str) -> Result<Convergence, Failure> {
        let written = read(text);
        let unsupported = |Unsupported(reason)| Failure::Unsupported(reason);
        Ok(instructions::decode(&mut Form::new(&written, &self.scope)).map_err(unsupported)?.convergence())
    }

    /// The value of a register in each lane.
    pub(crate) fn value(&self, name: &str) -> Row {
        self.warp.registers[self.register_index(name)]
    }

    fn register_index(&self, name: &str) -> usize {
        match self.scope.lookup(name) {
            Some(Named::Register { register, .. }) => register.0 as usize,
            _ => panic!("{name} is no register"),
        }
    }
}

/// The decoder's error for an instruction; `None` if it is accepted. The registers are those of [`with_registers`].
pub(crate) fn refusal(text: &str) -> Option<String> {
    match with_registers().run(text) {
        Err(Failure::Unsupported(reason)) => Some(reason),
        _ => None,
    }
}

/// A harness with initialised registers of value 0: `%p0` to `%p9` (predicates), `%b0`.. (8 bits), `%h0`.. (16), `%r0`.. (32), `%d0`.. (64)
/// and `%q0`.. (128).
pub(crate) fn with_registers() -> Harness {
    let mut harness = Harness::new();
    for (letter, ty) in [('p', Type::Pred), ('b', Type::B8), ('h', Type::B16), ('r', Type::B32), ('d', Type::B64), ('q', Type::B128)] {
        (0..10).for_each(|number| harness.define(&format!("%{letter}{number}"), ty, |_| 0));
    }
    harness.warp.defined.fill(Lanes::ALL);
    harness
}

/// Parses an instruction without a guard.
fn read(text: &str) -> Instruction {
    let text = text.trim().trim_end_matches(';');
    let (words, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut words = words.split('.').map(str::to_owned);
    Instruction {
        guard: None,
        opcode: words.next().unwrap_or_default(),
        modifiers: words.collect(),
        operands: split(operands).into_iter().map(operand).collect(),
        text: text.to_owned(),
        position: Position::default(),
    }
}

/// Splits at the commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (offset, letter) in text.char_indices() {
        match letter {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..offset].trim());
                start = offset + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    parts.extend((!last.is_empty()).then_some(last));
    parts
}

fn operand(text: &str) -> Operand {
    let inside = |open: char, close: char| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(parts) = inside('{', '}') {
        return Operand::Vector(split(parts).into_iter().map(operand).collect());
    }
    if let Some(parts) = inside('(', ')') {
        return Operand::List(split(parts).into_iter().map(operand).collect());
    }
    if let Some(address) = inside('[', ']') {
        let mut parts = split(address).into_iter().map(operand);
        let (base, offset) = match parts.next() {
            Some(Operand::Name(name)) => (AddressBase::Name(name), 0),
            Some(Operand::Sum(name, offset)) => (AddressBase::Name(name), offset),
            Some(Operand::Int(address)) => (AddressBase::Absolute(address), 0),
            other => panic!("{other:?} is no address"),
        };
        let coordinates = match parts.next() {
            Some(Operand::Vector(parts)) => parts,
            _ => Vec::new(),
        };
        return Operand::Address { base, offset, coordinates };
    }
    if let Some(name) = text.strip_prefix('!') {
        return Operand::Not(name.to_owned());
    }
    if let Some((p, q)) = text.split_once('|') {
        return Operand::Pair(p.trim().to_owned(), q.trim().to_owned());
    }
    if text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-') {
        return number(text);
    }
    match text.find(['+', '-']) {
        Some(sign) => {
            let offset: i64 = text[sign..].replace("+-", "-").parse().expect("an offset is a number");
            Operand::Sum(text[..sign].to_owned(), offset)
        }
        None => Operand::Name(text.to_owned()),
    }
}

fn number(text: &str) -> Operand {
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).expect("hexadecimal digits");
    if let Some(digits) = text.strip_prefix("0x") {
        Operand::Int(hexadecimal(digits))
    } else if let Some(digits) = text.strip_prefix("0f") {
        Operand::F32(hexadecimal(digits) as u32)
    } else if let Some(digits) = text.strip_prefix("0d") {
        Operand::F64(hexadecimal(digits))
    } else if text.contains('.') {
        Operand::F64(text.parse::<f64>().expect("a number").to_bits())
    } else {
        Operand::Int(text.parse::<i128>().expect("a number") as u64)
    }
}
