//! Cache entries with the PTX of variants that are compiled in process.

use kernel_lang::{COMPILER, Compiled, Options, Schedule};

use super::process::{COMPILING, tell, usable};
use super::{Key, Kind, hash};

/// The compiled variant of a kernel: from the process's store, or made by `make` and stored. Variants for checked launches are not cached.
pub(crate) fn compile<E>(kernel: &str, ir: &str, options: &Options, make: impl FnOnce() -> Result<Compiled, E>) -> Result<Compiled, E> {
    let store = if options.checked { None } else { usable() };
    let Some(store) = store else { return make() };
    let make = || make().map(|compiled| (compiled.clone(), write(&compiled)));
    store.get_or_make(&key(kernel, ir, options), COMPILING, read, make, |error| tell(&error))
}

fn key(kernel: &str, ir: &str, options: &Options) -> Key {
    let Options { bindings, target, schedule, checked: _ } = options;
    let Schedule { num_warps, num_ctas, num_stages, maxnreg } = *schedule;
    let types = bindings.types.iter().map(|(name, dtype)| format!("{name} = {dtype}"));
    let consts = bindings.consts.iter().map(|(name, value)| format!("{name} = {value}"));
    let multiples = bindings.multiples.iter().map(|(name, of)| format!("{name} % {of} = 0"));
    let values: Vec<String> = types.chain(consts).chain(multiples).collect();
    let mut schedule = format!("num_warps = {num_warps}, num_ctas = {num_ctas}, num_stages = {num_stages}");
    if let Some(registers) = maxnreg {
        schedule += &format!(", maxnreg = {registers}");
    }
    Key::new(
        Kind::Ptx,
        &[
            ("kernel", kernel),
            ("ir", &hash(&[ir.as_bytes()])),
            ("values", &values.join(", ")),
            ("schedule", &schedule),
            ("target", &target.to_string()),
            ("compiler", COMPILER),
        ],
    )
}

/// The payload: the name of the entry function and the bytes of shared memory on the first line, then the PTX.
fn write(compiled: &Compiled) -> Vec<u8> {
    format!("{} {}\n{}", compiled.entry, compiled.shared_bytes, compiled.ptx).into_bytes()
}

fn read(payload: Vec<u8>) -> Option<Compiled> {
    let text = String::from_utf8(payload).ok()?;
    let (first, ptx) = text.split_once('\n')?;
    let (entry, shared_bytes) = first.split_once(' ')?;
    Some(Compiled { ptx: ptx.to_owned(), entry: entry.to_owned(), shared_bytes: shared_bytes.parse().ok()?, sites: Vec::new() })
}

#[cfg(test)]
mod tests {
    use kernel_lang::Bindings;
    use kernel_lang::target::Target;

    use super::*;

    #[test]
    fn a_variant_is_read_as_it_was_compiled() {
        let compiled = Compiled { ptx: ".version 7.0\n\n.. \n".into(), entry: "silu".into(), shared_bytes: 512, sites: Vec::new() };
        assert_eq!(read(write(&compiled)), Some(compiled));
        assert!(read(b"silu x\n".to_vec()).is_none() && read(b"\xff".to_vec()).is_none() && read(Vec::new()).is_none());
    }

    #[test]
    fn everything_that_the_text_depends_on_is_in_the_key() {
        let options = Options::new(Bindings::new().constant("B", 512), Target::SM_80);
        let name = |ir: &str, options: &Options| key("silu", ir, options).name().to_owned();
        let schedule = |schedule: Schedule| Options { schedule, ..options.clone() };
        let mut names = vec![
            name("a", &options),
            name("b", &options),
            name("a", &Options::new(Bindings::new().constant("B", 256), Target::SM_80)),
            name("a", &Options::new(Bindings::new().constant("B", 512), Target::SM_90A)),
            name("a", &Options::new(Bindings::new().constant("B", 512).constant("stride", 1), Target::SM_80)),
            name("a", &Options::new(Bindings::new().constant("B", 512).multiple("n", 16), Target::SM_80)),
            name("a", &schedule(Schedule { num_warps: 8, ..Schedule::DEFAULT })),
            name("a", &schedule(Schedule { num_ctas: 2, ..Schedule::DEFAULT })),
            name("a", &schedule(Schedule { num_stages: 1, ..Schedule::DEFAULT })),
            name("a", &schedule(Schedule { maxnreg: Some(64), ..Schedule::DEFAULT })),
        ];
        assert_eq!(name("a", &options), names[0]);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10);
        assert_eq!(key("silu", "a", &options).field("values").unwrap(), "B = 512");
        assert_eq!(key("silu", "a", &options).field("compiler").unwrap(), COMPILER);
    }
}
