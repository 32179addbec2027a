//! The simulator answers what an H200 answered, bit for bit where the ISA or the hardware defines bits.
//!
//! `h200.bin` holds the hardware's answers to every row of `rows`. It was made, on a machine with an H200, by
//!
//! ```sh
//! cargo run -p kernel-sim --example suite -- FOLDER
//! python3 kernel-sim/tests/suite/record.py FOLDER kernel-sim/tests/suite/h200.bin
//! ```
//!
//! and is to be made again when a row or the inputs change: the digest at its beginning says so.

mod emit;
mod inputs;
mod rows;

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::LazyLock;

use emit::{Entry, digest, entries, input_names, output_names};
use inputs::stored_bytes;
use kernel_sim::ptx::Type;
use kernel_sim::{Gpu, Launch, Machine};
use rows::Compare;

/// The answers of the hardware: a digest of the rows and inputs, then the answers to all rows.
static RECORDED: &[u8] = include_bytes!("h200.bin");

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entries = entries();
    let (recorded, answers) = RECORDED.split_at(8);
    let digest = digest(&entries);
    let is_fresh = recorded == digest.to_le_bytes() && entries.last().is_some_and(|last| last.answers.end == answers.len());
    assert!(
        is_fresh,
        "h200.bin holds the answers to other rows or inputs (digest {:016x}, not {digest:016x}); record it again on an H200: \
         `cargo run -p kernel-sim --example suite -- FOLDER`, then `python3 kernel-sim/tests/suite/record.py FOLDER kernel-sim/tests/suite/h200.bin`",
        u64::from_le_bytes(recorded.try_into().expect("eight bytes were split off")),
    );
    entries
});

#[test]
fn integers() {
    check("integer");
}

#[test]
fn predicates() {
    check("predicate");
}

#[test]
fn conversions() {
    check("convert");
}

#[test]
fn floats() {
    check("float");
}

#[test]
fn halves() {
    check("half");
}

#[test]
fn warps() {
    check("warp");
}

#[test]
fn matrices() {
    check("matrix");
}

#[test]
fn atomics() {
    check("atomic");
}

#[test]
fn every_row_has_its_own_name_and_a_test() {
    let names: HashSet<&str> = ENTRIES.iter().map(|entry| entry.row.name.as_str()).collect();
    assert_eq!(names.len(), ENTRIES.len());
    assert!(ENTRIES.len() > 1300);
    let tested = ["integer", "predicate", "convert", "float", "half", "warp", "matrix", "atomic"];
    assert!(ENTRIES.iter().all(|entry| tested.contains(&entry.family)));
}

/// An answer that differs in one bit is found.
#[test]
fn a_wrong_answer_is_found() {
    let entry = ENTRIES.iter().find(|entry| entry.row.name == "add.u32").expect("the table has an addition");
    let mut answers = recorded(entry).to_vec();
    assert_eq!(difference(entry, &answers), None);
    answers[4 * 17] ^= 1;
    let message = difference(entry, &answers).expect("one answer was changed");
    assert!(message.contains("1 of 192 cases differ; case 17:"), "{message}");
}

/// Runs every row of a family, and fails with a list of those that answer something else.
fn check(family: &str) {
    let machine = Machine::new(Gpu::h200());
    let entries: Vec<&Entry> = ENTRIES.iter().filter(|entry| entry.family == family).collect();
    let wrong: Vec<String> =
        entries.iter().filter_map(|entry| Some(format!("{}: {}", entry.row.name, run(&machine, entry).err()?))).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
}

/// Runs one row, and says what is wrong with it.
fn run(machine: &Machine, entry: &Entry) -> Result<(), String> {
    let module = machine.load(&entry.module()).map_err(|error| error.to_string())?;
    let kernel = module.kernel(&entry.name).ok_or("the kernel is not there")?;
    let text = |error: kernel_sim::MemoryError| error.to_string();
    let input = machine.allocate(entry.inputs.len()).map_err(text)?;
    machine.write(input, &entry.inputs).map_err(text)?;
    let output = machine.allocate(entry.answers.len()).map_err(text)?;
    // Nothing is written between one output and the next.
    machine.fill(output, &[0], entry.answers.len()).map_err(text)?;
    let params = [&input.to_le_bytes()[..], &output.to_le_bytes()[..]];
    let launch = Launch::new([entry.row.warps, 1, 1], [32, 1, 1], &params);
    let launched = machine.launch(&kernel, &launch).map_err(|error| error.to_string());
    let mut answers = vec![0; entry.answers.len()];
    machine.read(output, &mut answers).map_err(text)?;
    machine.free(input).map_err(text)?;
    machine.free(output).map_err(text)?;
    launched?;
    difference(entry, &answers).map_or(Ok(()), Err)
}

fn recorded(entry: &Entry) -> &'static [u8] {
    &RECORDED[8..][entry.answers.clone()]
}

/// How many cases differ, and the first of them.
fn difference(entry: &Entry, answers: &[u8]) -> Option<String> {
    let cases = entry.cases();
    let inputs = Entry::offsets(entry.row.inputs.iter().map(|input| input.ty), cases);
    let outputs = Entry::offsets(entry.row.outputs.iter().copied(), cases);
    let same = |case: usize| {
        entry.row.outputs.iter().zip(&outputs).all(|(&ty, &offset)| {
            let (mine, theirs) = (bits(answers, offset, ty, case), bits(recorded(entry), offset, ty, case));
            mine == theirs || entry.row.compare != Compare::Bits && is_close(mine, theirs, ty, entry.row.compare)
        })
    };
    let wrong: Vec<usize> = (0..cases).filter(|&case| !same(case)).collect();
    let case = *wrong.first()?;
    let mut text = format!("{} of {cases} cases differ; case {case}:", wrong.len());
    for ((name, input), offset) in input_names().zip(&entry.row.inputs).zip(inputs) {
        _ = write!(text, " {name} = {:#x}", bits(&entry.inputs, offset, input.ty, case));
    }
    for ((name, &ty), offset) in output_names().zip(&entry.row.outputs).zip(outputs) {
        let (mine, theirs) = (bits(answers, offset, ty, case), bits(recorded(entry), offset, ty, case));
        _ = write!(text, "; {name} is {mine:#x}, the H200 has {theirs:#x}");
    }
    Some(text)
}

/// The bits of one thread's value.
fn bits(bytes: &[u8], offset: usize, ty: Type, case: usize) -> u64 {
    let size = stored_bytes(ty);
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[offset + case * size..][..size]);
    u64::from_le_bytes(word)
}

fn is_close(mine: u64, theirs: u64, ty: Type, compare: Compare) -> bool {
    let Compare::Close { relative, absolute } = compare else { return false };
    let halves: &[u32] = if matches!(ty, Type::F16x2 | Type::Bf16x2) { &[0, 16] } else { &[0] };
    halves.iter().all(|shift| {
        let (mine, theirs) = (mine >> shift, theirs >> shift);
        let mask = if halves.len() == 2 { 0xffff } else { u64::MAX };
        let (a, b) = (value(mine & mask, ty), value(theirs & mask, ty));
        // A NaN or an infinity has one answer.
        mine & mask == theirs & mask || a.is_finite() && b.is_finite() && (a - b).abs() <= absolute.max(relative * b.abs())
    })
}

fn value(bits: u64, ty: Type) -> f64 {
    match ty {
        Type::F32 => f64::from(f32::from_bits(bits as u32)),
        Type::F16 | Type::F16x2 => half::f16::from_bits(bits as u16).to_f64(),
        Type::Bf16 | Type::Bf16x2 => half::bf16::from_bits(bits as u16).to_f64(),
        _ => f64::from_bits(bits),
    }
}
