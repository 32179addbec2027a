//! Cache of compiled variants across builds: the cached data, and its keys.
//!
//! The generic kernel, the compilation inputs and the compiler determine a variant. They form its key, so no entry ever needs invalidation.
//! Errors are not cached; each build reports them again.
//!
//! An edit above a kernel shifts its lines and changes nothing else. Therefore lines in keys and entries count from the kernel's first line.

use std::fmt::Write;
use std::time::Duration;

use crate::variants::{Instance, Outcomes, Variant};
use kernel_lang::COMPILER;
use kernel_lang::ir::Function;

/// Identifies the frontend, which says for which targets a variant is compiled, and how an entry is written.
const FRONTEND: &str = env!("SOURCES_HASH");

/// A store that keeps bytes from one build to the next. The compiler itself does no I/O: the macro crate supplies a store, or `()`, which
/// keeps nothing.
pub trait Store: Sync {
    /// The bytes stored for this key, complete and unchanged, or `None`; then the variant is compiled again.
    fn find(&self, key: &str) -> Option<Vec<u8>>;

    /// Stores a value for a key. Failures are ignored.
    fn keep(&self, key: &str, value: &[u8]);
}

impl Store for () {
    fn find(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _: &str, _: &[u8]) {}
}

/// A kernel whose variants may be cached.
pub(crate) struct CachedKernel<'a> {
    store: &'a dyn Store,
    /// The generic kernel, with lines that count from its first line.
    ir: String,
    /// The number of lines before the kernel's first line.
    above: u32,
}

impl CachedKernel<'_> {
    /// The cache entries of `func`.
    pub(crate) fn of<'a>(func: &Function, store: &'a dyn Store) -> CachedKernel<'a> {
        let mut func = func.clone();
        let insts = func.all_insts();
        let own = |func: &Function, inst| Some(func.inst(inst).loc).filter(|loc| loc.is_some() && loc.file == 0);
        let above = insts.iter().filter_map(|inst| own(&func, *inst)).map(|loc| loc.line - 1).min().unwrap_or(0);
        for inst in insts {
            if own(&func, inst).is_some() {
                func.inst_mut(inst).loc.line -= above;
            }
        }
        CachedKernel { store, ir: func.to_string(), above }
    }

    /// The outcomes for an instance: from the store, or compiled by `compile`.
    pub(crate) fn get_or_compile<E>(&self, instance: &Instance, compile: impl FnOnce() -> Result<Outcomes, E>) -> Result<Outcomes, E> {
        let key = self.key(instance);
        let down = |line: u32| line.checked_add(self.above);
        if let Some(outcomes) = self.store.find(&key).and_then(|value| read(&value, instance, down)) {
            return Ok(outcomes);
        }
        let outcomes = compile()?;
        if let Some(value) = write(&outcomes, |line| line.checked_sub(self.above)) {
            self.store.keep(&key, &value);
        }
        Ok(outcomes)
    }

    fn key(&self, Instance { generics, schedule, known, facts }: &Instance) -> String {
        format!("{COMPILER} {FRONTEND}\n{generics:?}\n{known:?} {facts}\n{schedule:?}\n{}", self.ir)
    }
}

/// The text in front of a line number in a location of the PTX in the kernel's own file: `.loc 1 12 5`.
const OWN_LOCATION: &str = "\t.loc 1 ";
/// The text in front of a line number of the kernel's own file in a note: `(line 12)`.
const OWN_LINE: &str = "(line ";

/// Maps the line numbers that follow `mark`; `None` if one cannot be mapped.
fn moved(text: &str, mark: &str, to: impl Fn(u32) -> Option<u32>) -> Option<String> {
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    let mut pieces = text.split(mark);
    out += pieces.next()?;
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
        write!(out, "{mark}{}{}", to(piece[..end].parse().ok()?)?, &piece[end..]).ok()?;
    }
    Some(out)
}

/// The format of an entry: for each variant a line, `sm_80 silu 0 2900 1234`, followed by that many bytes of PTX; for each configuration that
/// was left out `- sm_80` and the reason.
fn write(outcomes: &Outcomes, up: impl Fn(u32) -> Option<u32>) -> Option<Vec<u8>> {
    let mut text = String::new();
    for Variant { target, entry, shared_bytes, ptx, took, .. } in &outcomes.variants {
        let ptx = moved(ptx, OWN_LOCATION, &up)?;
        writeln!(text, "{target} {entry} {shared_bytes} {} {}", took.as_micros(), ptx.len()).ok()?;
        text += &ptx;
    }
    for pruned in &outcomes.pruned {
        writeln!(text, "- {} {}", pruned.target.as_deref()?, moved(&pruned.note, OWN_LINE, &up)?).ok()?;
    }
    Some(text.into_bytes())
}

fn read(value: &[u8], instance: &Instance, down: impl Fn(u32) -> Option<u32>) -> Option<Outcomes> {
    let mut rest = std::str::from_utf8(value).ok()?;
    let mut outcomes = Outcomes::default();
    while !rest.is_empty() {
        let (line, behind) = rest.split_once('\n')?;
        if let Some((target, note)) = line.strip_prefix("- ").and_then(|line| line.split_once(' ')) {
            outcomes.pruned.push(instance.pruned(Some(target.to_owned()), moved(note, OWN_LINE, &down)?));
            rest = behind;
            continue;
        }
        let mut fields = line.split(' ');
        let mut field = || fields.next();
        let (target, entry, shared_bytes) = (field()?.to_owned(), field()?.to_owned(), field()?.parse().ok()?);
        let took = Duration::from_micros(field()?.parse().ok()?);
        let (ptx, behind) = behind.split_at_checked(field()?.parse().ok()?)?;
        let (key, schedule, values, ptx) = (instance.key(), instance.schedule, instance.values(), moved(ptx, OWN_LOCATION, &down)?);
        outcomes.variants.push(Variant { key, schedule, target, entry, shared_bytes, ptx, values, took });
        rest = behind;
    }
    (!value.is_empty()).then_some(outcomes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use proc_macro2::TokenStream;

    use super::*;
    use crate::variants::Bound;
    use kernel_lang::dtype::Dtype;

    /// A store in memory that counts hits.
    #[derive(Default)]
    struct Memory {
        entries: Mutex<HashMap<String, Vec<u8>>>,
        found: Mutex<usize>,
    }

    impl Store for Memory {
        fn find(&self, key: &str) -> Option<Vec<u8>> {
            let value = self.entries.lock().unwrap().get(key).cloned();
            *self.found.lock().unwrap() += usize::from(value.is_some());
            value
        }

        fn keep(&self, key: &str, value: &[u8]) {
            self.entries.lock().unwrap().insert(key.to_owned(), value.to_vec());
        }
    }

    const KERNEL: &str = "fn copy<T: Int, const N: usize>(x: Ptr<T>, y: PtrMut<T>, step: usize) {
        store(y + arange(0, N), load(x + arange(0, N) * step));
    }";

    fn tokens(text: &str) -> TokenStream {
        text.parse().expect("these are tokens")
    }

    /// The output of a macro. `kernel` is parsed only once, because each parsed text gets a file of its own.
    fn expand(arguments: &str, kernel: &TokenStream, store: &dyn Store) -> String {
        crate::kernel(tokens(arguments), kernel.clone(), store).tokens.to_string()
    }

    #[test]
    fn a_build_is_the_same_with_and_without_the_cache() {
        let (store, kernel) = (Memory::default(), tokens(KERNEL));
        let arguments = "N = [32, 64], T = [i8, i32]";
        let fresh = expand(arguments, &kernel, &());
        assert!(expand(arguments, &kernel, &store) == fresh && *store.found.lock().unwrap() == 0);
        let count = store.entries.lock().unwrap().len();
        assert_eq!(count, 8, "two constants, two types, and a step that is 1 or not");
        assert!(expand(arguments, &kernel, &store) == fresh && *store.found.lock().unwrap() == count);
        // Any other change gives another key.
        expand("N = [32], T = [i8], num_warps = 8", &kernel, &store);
        expand("N = [32], T = [i8]", &tokens(&KERNEL.replace("* step", "* step * 2")), &store);
        assert_eq!(*store.found.lock().unwrap(), count);
    }

    #[test]
    fn an_edit_above_a_kernel_moves_its_lines() {
        let source = format!("#[kernel(N = [32], T = [i8])]\n{KERNEL}");
        let variants = |source: &str, store: &dyn Store| {
            let func = crate::lower_source(source, "file.rs").expect("it is right");
            let instance = Instance {
                generics: vec![
                    Bound::Type("T".into(), Dtype::I8),
                    Bound::Const(kernel_lang::ir::ConstParam { name: "N".into(), dtype: Dtype::I64 }, 32),
                ],
                schedule: kernel_lang::Schedule::DEFAULT,
                known: Vec::new(),
                facts: 0,
            };
            let make = || {
                let bindings = kernel_lang::Bindings::new().ty("T", Dtype::I8).constant("N", 32);
                let compiled = kernel_lang::compile(&func, &kernel_lang::Options::new(bindings, kernel_lang::target::Target::SM_80))?;
                let kernel_lang::Compiled { ptx, entry, shared_bytes, .. } = compiled;
                let (key, schedule, target, values) = (instance.key(), instance.schedule, "sm_80".to_owned(), instance.values());
                let variant = Variant { key, schedule, target, entry, shared_bytes, ptx, values, took: Duration::from_micros(7) };
                let line = func.all_insts().into_iter().map(|inst| func.inst(inst).loc.line).max().unwrap_or_default();
                let note = format!("it is too large: a scan (line {line}): 7 bytes; `sort` (`other.rs`, line 3): 9 bytes");
                let pruned = vec![instance.pruned(Some("sm_90a".to_owned()), note)];
                Ok::<_, kernel_lang::diagnostic::Diagnostics>(Outcomes { variants: vec![variant], pruned })
            };
            let outcomes = CachedKernel::of(&func, store).get_or_compile(&instance, make).expect("it compiles");
            (outcomes.variants, outcomes.pruned)
        };
        let store = Memory::default();
        let first = variants(&source, &store);
        for above in ["\n", "\n\n// More.\n\n\n\n\n\n\n\n\n\n"] {
            let moved = format!("{above}{source}");
            assert_eq!(variants(&moved, &store), variants(&moved, &()));
            assert_ne!(variants(&moved, &store).0[0].ptx, first.0[0].ptx);
        }
        assert_eq!((*store.found.lock().unwrap(), store.entries.lock().unwrap().len()), (4, 1));
    }

    #[test]
    fn a_damaged_entry_is_compiled_again() {
        let (store, kernel) = (Memory::default(), tokens(KERNEL));
        let fresh = expand("N = 64, T = [i32]", &kernel, &store);
        // A store verifies its entries; an entry that is damaged despite this must not break a build.
        let spoilt: [fn(&mut Vec<u8>); 3] = [|value| value.clear(), |value| value.truncate(100), |value| value[3] = 0xff];
        for spoil in spoilt {
            store.entries.lock().unwrap().values_mut().for_each(spoil);
            assert!(expand("N = 64, T = [i32]", &kernel, &store) == fresh);
        }
    }

    #[test]
    fn mistakes_are_not_cached() {
        let store = Memory::default();
        let kernel = tokens("fn k<const N: usize>(y: PtrMut<f32>) { store(y + arange(0, N), zeros::<f32>([N])); }");
        let first = expand("N = [0]", &kernel, &store);
        assert!(first.contains("compile_error") && store.entries.lock().unwrap().is_empty());
        assert_eq!(expand("N = [0]", &kernel, &store), first);
    }
}
