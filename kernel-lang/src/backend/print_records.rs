//! Print records: decodes the buffer that `device_print!` writes into lines of text. `passes::specialize::prints` defines the format.

use crate::dtype::Dtype;
use crate::ir::{ConstExpr, Function, Op, template};
use crate::location::Loc;
use crate::scalar::Scalar;

/// The size of the buffer in 64-bit words, all zero before the launch: 1 MiB.
pub const WORDS: usize = 1 << 17;

/// The output of `device_print!` in one launch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// One line per element. Programs come in the order of the grid, axis 0 fastest; the records of one program in the order of time; the
    /// elements of one `device_print!` in row-major order.
    pub lines: Vec<String>,
    /// Words that did not fit into the buffer.
    pub lost: u64,
}

/// One `device_print!` of one program.
struct Record<'a> {
    site: u32,
    program: [u64; 3],
    extents: &'a [u64],
    dtypes: Vec<Dtype>,
    values: &'a [u64],
}

/// Decodes the buffer of a launch of this kernel, which may be generic.
pub fn read(func: &Function, buffer: &[u64]) -> Printed {
    let Some((used, mut rest)) = buffer.split_first() else { return Printed::default() };
    let mut records = Vec::new();
    while let Some((record, behind)) = record(rest) {
        records.push(record);
        rest = behind;
    }
    // The sort is stable: the records of one program stay in order.
    records.sort_by_key(|record| [record.program[2], record.program[1], record.program[0]]);
    let taken = buffer.len() - 1 - rest.len();
    let mut printed = Printed { lines: Vec::new(), lost: used.saturating_sub(taken as u64) };
    for record in &records {
        lines(func, record, &mut printed.lines);
    }
    printed
}

/// The first record, and the words after it; `None` if there is no record or an incomplete one.
fn record(words: &[u64]) -> Option<(Record<'_>, &[u64])> {
    let first = *words.first().filter(|first| **first != 0)?;
    let (site, rank, count) = ((first as u32) - 1, (first >> 32) as usize & 0xffff, (first >> 48) as usize);
    let header = 4 + rank + count;
    let extents = words.get(4..4 + rank)?;
    let codes = words.get(4 + rank..header)?;
    let numel = extents.iter().product::<u64>() as usize;
    let end = header + numel * count;
    let values = words.get(header..end)?;
    let dtypes = codes.iter().map(|code| Dtype::from_code(*code)).collect::<Option<Vec<Dtype>>>()?;
    Some((Record { site, program: [words[1], words[2], words[3]], extents, dtypes, values }, &words[end..]))
}

/// `kernel.rs:7: program (0, 0, 0), element [3]: x is 1.5`
fn lines(func: &Function, record: &Record<'_>, lines: &mut Vec<String>) {
    let found = func.all_insts().into_iter().find_map(|inst| match &func.inst(inst).op {
        Op::Print { format, site, .. } if *site == record.site => Some((format.clone(), func.inst(inst).loc)),
        _ => None,
    });
    let (format, loc) = found.unwrap_or((String::new(), Loc::NONE));
    let file = func.files.get(usize::from(loc.file)).map_or("kernel", |file| file);
    let [x, y, z] = record.program;
    let numel = record.extents.iter().product::<u64>() as usize;
    for element in 0..numel {
        let mut values = record.dtypes.iter().enumerate().map(|(index, dtype)| (*dtype, record.values[index * numel + element]));
        let text = template::render(&format, |hex| values.next().map_or(String::new(), |(dtype, bits)| written(dtype, bits, hex)));
        let suffix =
            if record.extents.is_empty() { String::new() } else { format!(", element {:?}", index(element as u64, record.extents)) };
        lines.push(format!("{file}:{}: program ({x}, {y}, {z}){suffix}: {text}", loc.line));
    }
}

/// The index of an element along each axis.
fn index(mut element: u64, extents: &[u64]) -> Vec<u64> {
    let mut index: Vec<u64> = extents
        .iter()
        .rev()
        .map(|extent| {
            let along = element % extent;
            element /= extent;
            along
        })
        .collect();
    index.reverse();
    index
}

/// The shortest text that represents the number in its type; in hexadecimal, its bits.
fn written(dtype: Dtype, bits: u64, hex: bool) -> String {
    if hex {
        return format!("{bits:#0width$x}", width = 2 + dtype.bits().div_ceil(4) as usize);
    }
    match (dtype, Scalar::from_bits(dtype, bits).to_const()) {
        (Dtype::F64, ConstExpr::Float(value)) => format!("{value:?}"),
        // Every value of a narrower float is exact in `f32`.
        (_, ConstExpr::Float(value)) => format!("{:?}", value as f32),
        (_, value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "kernel @k(%x: tile<i16, [2, 2]>, %y: f32) file \"k.rs\" {
        print %x {format = \"x = {}, {:x}\", site = 4} @7:5
        print {format = \"here\"} @9:5
        return
    }";

    #[test]
    fn records_are_read_in_the_order_of_programs() {
        let func = crate::ir::parse(KERNEL).unwrap();
        let here = |program: u64| vec![1, program, 0, 0];
        let code = Dtype::I16.code();
        let mut buffer = vec![0];
        buffer.extend(here(2));
        // Two values of the type, four elements each.
        buffer.extend([5 | 2 << 32 | 2 << 48, 1, 0, 0, 2, 2, code, code, 1, 2, 3, 0xffff, 10, 11, 12, 0xfff0]);
        buffer.extend(here(1));
        buffer[0] = buffer.len() as u64 - 1;
        buffer.resize(64, 0);
        let printed = read(&func, &buffer);
        assert_eq!(
            printed.lines,
            [
                "k.rs:7: program (1, 0, 0), element [0, 0]: x = 1, 0x000a",
                "k.rs:7: program (1, 0, 0), element [0, 1]: x = 2, 0x000b",
                "k.rs:7: program (1, 0, 0), element [1, 0]: x = 3, 0x000c",
                "k.rs:7: program (1, 0, 0), element [1, 1]: x = -1, 0xfff0",
                "k.rs:9: program (1, 0, 0): here",
                "k.rs:9: program (2, 0, 0): here",
            ]
        );
        assert_eq!(printed.lost, 0);
    }

    #[test]
    fn what_did_not_fit_is_counted() {
        let func = crate::ir::parse(KERNEL).unwrap();
        // The second record is cut off, and two more did not fit at all.
        let printed = read(&func, &[16, 1, 0, 0, 0, 1, 1, 0]);
        assert_eq!((printed.lines.len(), printed.lost), (1, 12));
        assert_eq!(read(&func, &[]), Printed::default());
        assert_eq!(read(&func, &[0, 0, 0]), Printed::default());
    }

    #[test]
    fn numbers_are_as_short_as_their_type_allows() {
        assert_eq!(written(Dtype::F32, 1.1f32.to_bits().into(), false), "1.1");
        assert_eq!(written(Dtype::F64, 1.1f64.to_bits(), false), "1.1");
        assert_eq!(written(Dtype::F16, 0x3c00, false), "1.0");
        assert_eq!(written(Dtype::F8E4M3, 0x7e, false), "448.0");
        assert_eq!(written(Dtype::F32, f32::NAN.to_bits().into(), false), "NaN");
        assert_eq!(written(Dtype::I8, 0xff, false), "-1");
        assert_eq!(written(Dtype::U8, 0xff, true), "0xff");
        assert_eq!(written(Dtype::Bool, 1, false), "true");
    }
}
