//! Compilation of variants during the build of the user's crate: every listed combination of types, constants, configurations and targets.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::attributes::Attributes;
use crate::autotune::Autotune;
use crate::facts::Known;
use crate::heuristics;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan, Spans};
use crate::variant_cache::{CachedKernel, Store};
use kernel_lang::diagnostic::Diagnostic;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstParam, Function};
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Compiled, Prepared, Schedule};

/// PTX of a kernel for particular types, constants and schedule, embedded by a macro.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// A word for each type parameter, then one for each constant parameter, then one with a bit for each fact, if the variant assumes any.
    pub key: Vec<u64>,
    /// How the work is spread over threads and time.
    pub schedule: Schedule,
    /// The architecture, such as `sm_80`.
    pub target: String,
    /// The name of the function in the PTX.
    pub entry: String,
    /// Dynamic shared memory of one program.
    pub shared_bytes: u32,
    /// The PTX.
    pub ptx: String,
    /// The values of its generics, by name.
    pub values: Vec<(String, String)>,
    /// The compilation time, in this build or an earlier one. Instances that differ only in their schedules share a part of their compilation: that
    /// time counts for one of them.
    pub took: Duration,
}

/// A configuration of a tuned kernel that is left out for one target or for all, because they cannot run it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pruned {
    /// The values of its generics, by name.
    pub values: Vec<(String, String)>,
    /// The schedule.
    pub schedule: Schedule,
    /// The architecture; `None` if no target can run it.
    pub target: Option<String>,
    /// The reason.
    pub note: String,
}

/// The results of compiling a kernel's instances.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) variants: Vec<Variant>,
    pub(crate) pruned: Vec<Pruned>,
}

impl Variant {
    /// The name of a file for it: `silu-11-1024-w4-sm_80.ptx`.
    pub fn file_name(&self, kernel: &str) -> String {
        let key: String = self.key.iter().map(|word| format!("-{word}")).collect();
        let Variant { schedule, target, .. } = self;
        format!("{kernel}{key}-{schedule}-{target}.ptx")
    }
}

/// One combination to compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Instance {
    /// The binding of each generic, types first.
    pub(crate) generics: Vec<Bound>,
    pub(crate) schedule: Schedule,
    /// The facts that hold for arguments: by parameter name, and as bits of the kernel's facts.
    pub(crate) known: Vec<(kernel_lang::location::Name, Known)>,
    pub(crate) facts: u64,
}

/// The binding of a generic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    Type(kernel_lang::location::Name, kernel_lang::dtype::Dtype),
    /// The value of a float is its bits.
    Const(ConstParam, i128),
}

/// Every combination that the attributes list; empty if the launch chooses a constant.
pub(crate) fn instances(signature: &Signature, attributes: &Attributes, autotune: Option<&Autotune>) -> Vec<Instance> {
    let mut generics: Vec<Vec<Bound>> = Vec::new();
    for (generic, choices) in signature.types.iter().zip(&attributes.types) {
        generics.push(choices.iter().map(|dtype| Bound::Type(generic.name.text.as_str().into(), *dtype)).collect());
    }
    let types = generics.len();
    for (index, generic) in signature.consts.iter().enumerate() {
        let param = ConstParam { name: generic.name.text.as_str().into(), dtype: generic.dtype };
        if autotune.is_some_and(|autotune| autotune.fixed().contains(&index)) {
            // The configuration or the heuristics set the value later.
            generics.push(vec![Bound::Const(param, 0)]);
        } else {
            let Some(values) = &attributes.consts[index] else { return Vec::new() };
            generics.push(values.iter().map(|value| Bound::Const(param.clone(), *value)).collect());
        }
    }
    let mut product: Vec<Vec<Bound>> = vec![Vec::new()];
    for choices in &generics {
        product = product
            .iter()
            .flat_map(|known| choices.iter().map(move |choice| known.iter().cloned().chain([choice.clone()]).collect()))
            .collect();
    }
    let Some(autotune) = autotune else {
        return product.into_iter().map(|generics| Instance::general(generics, attributes.schedule)).collect();
    };
    let mut list = Vec::new();
    for config in &autotune.configs {
        for generics in &product {
            let mut generics = generics.clone();
            for (value, index) in config.values.iter().zip(&autotune.tuned) {
                if let Bound::Const(_, bound) = &mut generics[types + index] {
                    *bound = *value;
                }
            }
            let instance = Instance::general(generics, config.schedule);
            for instance in heuristics::instances(instance, &autotune.heuristics, signature, attributes) {
                if !list.contains(&instance) {
                    list.push(instance);
                }
            }
        }
    }
    list
}

/// The values of each generic and of each part of the schedule, as a user writes them.
pub(crate) fn choices(instances: &[Instance]) -> Vec<(String, Vec<String>)> {
    let mut choices: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |name: &str, value: String| match choices.iter_mut().find(|(known, _)| known == name) {
        Some((_, values)) if values.contains(&value) => {}
        Some((_, values)) => values.push(value),
        None => choices.push((name.to_owned(), vec![value])),
    };
    for Instance { generics, schedule, .. } in instances {
        for bound in generics {
            match bound {
                Bound::Type(name, dtype) => add(name, dtype.to_string()),
                Bound::Const(param, number) if param.dtype == Dtype::Bool => add(&param.name, (*number != 0).to_string()),
                Bound::Const(param, number) => add(&param.name, param.written(*number)),
            }
        }
        let Schedule { num_warps, num_ctas, num_stages, maxnreg } = *schedule;
        let parts = [("num_warps", Some(num_warps)), ("num_ctas", Some(num_ctas)), ("num_stages", Some(num_stages)), ("maxnreg", maxnreg)];
        parts.into_iter().filter_map(|(name, part)| Some((name, part?))).for_each(|(name, part)| add(name, part.to_string()));
    }
    choices
}

impl Instance {
    /// An instance without facts about the arguments.
    fn general(generics: Vec<Bound>, schedule: Schedule) -> Instance {
        Instance { generics, schedule, known: Vec::new(), facts: 0 }
    }

    /// The values that its generics and arguments are bound to.
    fn bindings(&self) -> Bindings {
        let mut bindings = Bindings::new();
        for (name, known) in &self.known {
            bindings = match known {
                Known::Is(number) => bindings.constant(name, *number),
                Known::MultipleOf(of) => bindings.multiple(name, *of),
            };
        }
        for bound in &self.generics {
            match bound {
                Bound::Type(name, dtype) => bindings.types.push((name.clone(), *dtype)),
                Bound::Const(param, value) => bindings.consts.push((param.name.clone(), *value)),
            }
        }
        bindings
    }

    /// The values of its generics, and the facts about arguments, as text.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let value = |bound: &Bound| match bound {
            Bound::Type(name, dtype) => (name.to_string(), dtype.to_string()),
            Bound::Const(param, value) => (param.name.to_string(), param.written(*value)),
        };
        let known = self.known.iter().map(|(name, known)| match known {
            Known::Is(number) => (name.to_string(), number.to_string()),
            Known::MultipleOf(of) => (format!("{name} % {of}"), "0".to_owned()),
        });
        self.generics.iter().map(value).chain(known).collect()
    }

    pub(crate) fn pruned(&self, target: Option<String>, note: String) -> Pruned {
        Pruned { values: self.values(), schedule: self.schedule, target, note }
    }

    /// The key by which a launch finds the variant.
    pub(crate) fn key(&self) -> Vec<u64> {
        let generics = self.generics.iter().map(|bound| match bound {
            Bound::Type(_, dtype) => dtype.code(),
            // The low 64 bits of two's complement, as Rust's `as u64` of the constant.
            Bound::Const(_, value) => *value as u64,
        });
        generics.chain((self.facts != 0).then_some(self.facts)).collect()
    }
}

/// Compiles the instances in parallel, or finds them in the store. An error that occurs for some values only is reported once, with those
/// values.
///
/// If there are several configurations, one that exceeds a limit of the GPU is left out, unless all do. Tuning records the reason and uses
/// the others.
pub(crate) fn compile(
    func: &Function,
    instances: &[Instance],
    has_choice: bool,
    spans: &Spans,
    fallback: SourceSpan,
    store: &dyn Store,
    errors: &mut Errors,
) -> Outcomes {
    let cached = CachedKernel::of(func, store);
    let groups = Groups::of(instances);
    let results = in_parallel(instances.len(), |index| {
        let instance = &instances[index];
        cached.get_or_compile(instance, || one(func, instance, groups.group(index)))
    });
    let prunes = has_choice && results.iter().any(|result| result.as_ref().is_ok_and(|outcomes| !outcomes.variants.is_empty()));
    let mut outcomes = Outcomes::default();
    let mut mistakes: Vec<(Diagnostic, Vec<usize>)> = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(compiled) => {
                outcomes.variants.extend(compiled.variants);
                outcomes.pruned.extend(compiled.pruned);
            }
            Err(diagnostics) if prunes && diagnostics.iter().all(|diagnostic| diagnostic.beyond_gpu) => {
                let note = diagnostics.into_iter().next().map_or_else(String::new, |diagnostic| diagnostic.message);
                outcomes.pruned.push(instances[index].pruned(None, note));
            }
            Err(diagnostics) => {
                for diagnostic in diagnostics {
                    // One value often violates several ops in the same way: the first span represents all.
                    match mistakes.iter_mut().find(|(known, _)| known.message == diagnostic.message && known.help == diagnostic.help) {
                        Some((_, by)) => by.push(index),
                        None => mistakes.push((diagnostic, vec![index])),
                    }
                }
            }
        }
    }
    for (mut diagnostic, by) in mistakes {
        if let Some(values) = values(instances, &by) {
            diagnostic.message = format!("{} (with {values})", diagnostic.message);
        }
        let span = spans.get(diagnostic.loc).unwrap_or(fallback);
        if !diagnostic.loc.is_some() {
            diagnostic.loc = fallback.loc();
        }
        errors.add(span, diagnostic);
    }
    outcomes
}

/// The messages of `static_print!`; a message that occurs for some values only includes those values.
pub(crate) fn notes(func: &Function, instances: &[Instance], spans: &Spans, fallback: SourceSpan) -> Vec<(SourceSpan, String)> {
    let mut notes: Vec<((kernel_lang::location::Loc, String), Vec<usize>)> = Vec::new();
    for (index, instance) in instances.iter().enumerate() {
        for note in Target::ALL.into_iter().flat_map(|target| kernel_lang::notes(func, &instance.bindings(), Some(target))) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, by)) if by.contains(&index) => {}
                Some((_, by)) => by.push(index),
                None => notes.push((note, vec![index])),
            }
        }
    }
    let shown = notes.into_iter().map(|((loc, text), by)| {
        let text = match values(instances, &by) {
            Some(values) if instances.len() > 1 => format!("{text} (with {values})"),
            _ => text,
        };
        (spans.get(loc).unwrap_or(fallback), text)
    });
    shown.collect()
}

/// Instances of a kernel that differ only in their schedules: the first one that is compiled for a target prepares the kernel for all.
#[derive(Default)]
struct Group {
    prepared: [OnceLock<Result<Prepared, Vec<Diagnostic>>>; Target::ALL.len()],
}

impl Group {
    /// The kernel, prepared for the target with that index in [`Target::ALL`].
    fn prepared(&self, func: &Function, instance: &Instance, target: usize) -> Result<&Prepared, Vec<Diagnostic>> {
        let prepare = || {
            let prepared = Prepared::new(func, &instance.bindings(), Target::ALL[target], false);
            prepared.map_err(|diagnostics| diagnostics.into_vec())
        };
        self.prepared[target].get_or_init(prepare).as_ref().map_err(Clone::clone)
    }
}

/// The groups of a kernel's instances.
struct Groups {
    groups: Vec<Group>,
    /// The group of each instance.
    of: Vec<usize>,
}

impl Groups {
    fn of(instances: &[Instance]) -> Groups {
        let is_same = |one: &Instance, other: &Instance| one.generics == other.generics && one.known == other.known;
        let mut firsts: Vec<&Instance> = Vec::new();
        let group = |instance| match firsts.iter().position(|first| is_same(first, instance)) {
            Some(group) => group,
            None => {
                firsts.push(instance);
                firsts.len() - 1
            }
        };
        let of = instances.iter().map(group).collect();
        Groups { groups: firsts.iter().map(|_| Group::default()).collect(), of }
    }

    fn group(&self, instance: usize) -> &Group {
        &self.groups[self.of[instance]]
    }
}

fn one(func: &Function, instance: &Instance, group: &Group) -> Outcome {
    let (mut variants, mut pruned): (Vec<Variant>, Vec<Pruned>) = (Vec::new(), Vec::new());
    let (schedule, mut served, mut beyond) = (instance.schedule, Vec::new(), None);
    for (index, target) in Target::ALL.into_iter().enumerate() {
        if schedule.num_ctas > target.max_cluster() {
            pruned.push(instance.pruned(Some(target.to_string()), format!("{target} has no clusters of {} CTAs", schedule.num_ctas)));
            continue;
        }
        // PTX for a newer target is embedded only if its instructions differ.
        if served.contains(&target) {
            continue;
        }
        let start = Instant::now();
        let compile = |prepared: &Prepared| prepared.compile(schedule).map_err(|diagnostics| diagnostics.into_vec());
        let (compiled, alike) = match group.prepared(func, instance, index).and_then(compile) {
            Ok(compiled) => compiled,
            // A configuration that exceeds the limits of one target may fit another.
            // Code for an older target does not give what the kernel requires of this one.
            Err(diagnostics) if diagnostics.iter().all(|diagnostic| diagnostic.beyond_gpu) && !requires(func, target) => {
                let note = diagnostics.first().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
                pruned.push(instance.pruned(Some(target.to_string()), note));
                beyond = Some(diagnostics);
                continue;
            }
            Err(diagnostics) => return Err(diagnostics),
        };
        let Compiled { ptx, entry, shared_bytes, .. } = compiled;
        let took = start.elapsed();
        if variants.iter().any(|earlier| body(&earlier.ptx).eq(body(&ptx))) {
            continue;
        }
        served.extend(alike);
        let (target, values) = (target.to_string(), instance.values());
        variants.push(Variant { key: instance.key(), schedule, target, entry, shared_bytes, ptx, values, took });
    }
    match beyond {
        Some(diagnostics) if variants.is_empty() => Err(diagnostics),
        _ => Ok(Outcomes { variants, pruned }),
    }
}

/// Does the kernel require code of a target that the target can have?
fn requires(func: &Function, target: Target) -> bool {
    !func.requires.is_empty() && target.has_warpgroup_products()
}

/// The PTX without the lines that name its target.
fn body(ptx: &str) -> impl Iterator<Item = &str> {
    let named = |line: &&str| !line.starts_with(".target") && !line.starts_with(".version") && !line.starts_with("//");
    ptx.lines().filter(named)
}

type Outcome = Result<Outcomes, Vec<Diagnostic>>;

fn in_parallel(count: usize, work: impl Fn(usize) -> Outcome + Sync) -> Vec<Outcome> {
    // A panic in a pass must not end the user's build without a message.
    let work =
        |index: usize| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(index))).unwrap_or_else(|_| Err(vec![crashed()]));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    if threads <= 1 {
        return (0..count).map(work).collect();
    }
    let (work, share) = (&work, count.div_ceil(threads));
    std::thread::scope(|scope| {
        let chunks = (0..count).step_by(share).map(|start| start..count.min(start + share));
        let chunks: Vec<_> = chunks.map(|chunk| (chunk.len(), scope.spawn(move || chunk.map(work).collect::<Vec<_>>()))).collect();
        let join = |(len, handle): (usize, std::thread::ScopedJoinHandle<'_, Vec<Outcome>>)| {
            handle.join().unwrap_or_else(|_| vec![Err(vec![crashed()]); len])
        };
        chunks.into_iter().flat_map(join).collect()
    })
}

fn crashed() -> Diagnostic {
    Diagnostic::new(kernel_lang::location::Loc::NONE, "the compiler crashed on this kernel")
        .help("this is a defect of the compiler; please report it with the kernel")
}

/// The values on which an error depends; a generic is omitted if the error occurs for all of its values.
fn values(instances: &[Instance], by: &[usize]) -> Option<String> {
    let count = instances.first()?.generics.len();
    let matters = |generic: usize| {
        let all: Vec<&Bound> = instances.iter().map(|instance| &instance.generics[generic]).collect();
        let here: Vec<&Bound> = by.iter().map(|index| &instances[*index].generics[generic]).collect();
        let distinct = all.iter().any(|bound| *bound != all[0]);
        if distinct { all.iter().any(|bound| !here.contains(bound)) } else { matches!(all[0], Bound::Const(..)) }
    };
    let describe = |bound: &Bound| match bound {
        Bound::Type(name, dtype) => format!("`{name} = {dtype}`"),
        Bound::Const(param, value) if param.dtype == Dtype::Bool => format!("`{} = {}`", param.name, *value != 0),
        Bound::Const(param, value) => format!("`{} = {}`", param.name, param.written(*value)),
    };
    let generics: Vec<usize> = (0..count).filter(|generic| matters(*generic)).collect();
    let mut found: Vec<String> = Vec::new();
    for index in by {
        let text = generics.iter().map(|generic| describe(&instances[*index].generics[*generic])).collect::<Vec<_>>().join(", ");
        if !text.is_empty() && !found.contains(&text) {
            found.push(text);
        }
    }
    match found.len() {
        0 => None,
        1..=3 => Some(found.join(", or ")),
        more => Some(format!("{}, or {} others", found[..2].join(", or "), more - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome of an instance of a kernel with two nested loops that both prefetch.
    fn nested(stages: u32) -> Outcome {
        let text = format!(
            "kernel @nested(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {{
                %zero = const {{value = 0}} : i64
                %step = const {{value = 4096}} : i64
                %i = arange {{start = 0, end = 4096}} : tile<i64, [4096]>
                %none = const {{value = 0.0}} : tile<f32, [4096]>
                %all = for %zero, %n, %step, %none {{num_stages = {stages}}} (%k: i64, %acc: tile<f32, [4096]>) {{
                    %ks = broadcast %k : tile<i64, [4096]>
                    %at = add %ks, %i : tile<i64, [4096]>
                    %v = load %x, %at {{in_bounds = true, align = 16}} : tile<f32, [4096]>
                    %first = add %acc, %v : tile<f32, [4096]>
                    %more = for %zero, %k, %step, %first {{num_stages = {stages}}} (%l: i64, %sum: tile<f32, [4096]>) {{
                        %ls = broadcast %l : tile<i64, [4096]>
                        %there = add %ls, %i : tile<i64, [4096]>
                        %w = load %x, %there {{in_bounds = true, align = 16}} : tile<f32, [4096]>
                        %next = add %sum, %w : tile<f32, [4096]>
                        yield %next
                    }} : tile<f32, [4096]> @17:5
                    yield %more
                }} : tile<f32, [4096]> @12:1
                store %y, %i, %all
                return
            }}"
        );
        let func = kernel_lang::ir::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        one(&func, &Instance::general(Vec::new(), Schedule::DEFAULT), &Group::default())
    }

    #[test]
    fn a_target_with_too_little_shared_memory_is_left_out_with_the_reason() {
        let outcomes = nested(6).expect("one target has enough shared memory");
        let targets: Vec<&str> = outcomes.variants.iter().map(|variant| variant.target.as_str()).collect();
        assert_eq!(targets, ["sm_90a"]);
        let pruned: Vec<(Option<&str>, &str)> =
            outcomes.pruned.iter().map(|pruned| (pruned.target.as_deref(), pruned.note.as_str())).collect();
        let note = "this kernel takes 196608 bytes of shared memory, and sm_80 has 166912: \
                    6 stages of a loop's loads (line 12): 98304 bytes; 6 stages of a loop's loads (line 17): 98304 bytes";
        assert_eq!(pruned, [(Some("sm_80"), note)]);
    }

    #[test]
    fn what_fits_no_target_is_a_mistake_and_what_fits_all_is_built_once() {
        let mistakes = nested(8).expect_err("no target has enough shared memory");
        assert!(mistakes[0].message.starts_with("this kernel takes 262144 bytes of shared memory, and sm_90a has 232448: 8 stages"));
        assert!(mistakes[0].beyond_gpu && mistakes[0].loc.line == 12);
        let outcomes = nested(3).expect("both targets have enough shared memory");
        assert_eq!((outcomes.variants.len(), outcomes.pruned.len()), (1, 0));
    }

    #[test]
    fn instances_that_differ_in_schedules_share_a_group_and_no_code() {
        let text = "kernel @fill<T: f32 | f64, const B: i64>(%y: ptr_mut<T>, %value: T, %step: i64) {
            %0 = arange {start = 0, end = B} : tile<i64, [B]>
            %1 = broadcast %step : tile<i64, [B]>
            %2 = mul %0, %1 : tile<i64, [B]>
            %3 = broadcast %value : tile<T, [B]>
            store %y, %2, %3
            return
        }";
        let func = kernel_lang::ir::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let instance = |dtype, extent, known: &[Known], num_warps, num_ctas| {
            let extent = Bound::Const(ConstParam { name: "B".into(), dtype: Dtype::I64 }, extent);
            let generics = vec![Bound::Type("T".into(), dtype), extent];
            let known = known.iter().map(|known| ("step".into(), *known)).collect();
            Instance { known, ..Instance::general(generics, Schedule { num_warps, num_ctas, ..Schedule::DEFAULT }) }
        };
        let bindings = [(Dtype::F32, 512, &[][..]), (Dtype::F32, 1024, &[]), (Dtype::F64, 512, &[]), (Dtype::F32, 512, &[Known::Is(1)])];
        let instances: Vec<Instance> = [(4, 1), (8, 1), (4, 2), (3, 1)]
            .into_iter()
            .flat_map(|(num_warps, num_ctas)| bindings.map(|(dtype, extent, known)| instance(dtype, extent, known, num_warps, num_ctas)))
            .collect();
        let groups = Groups::of(&instances);
        assert_eq!((groups.groups.len(), groups.of.clone()), (4, [0, 1, 2, 3].repeat(4)));
        let codes = |outcome: Outcome| -> Result<Vec<(String, String)>, Vec<String>> {
            let outcomes = outcome.map_err(|mistakes| mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>())?;
            Ok(outcomes.variants.into_iter().map(|variant| (variant.target, variant.ptx)).collect())
        };
        let shared: Vec<_> =
            instances.iter().enumerate().map(|(index, instance)| codes(one(&func, instance, groups.group(index)))).collect();
        let alone: Vec<_> = instances.iter().map(|instance| codes(one(&func, instance, &Group::default()))).collect();
        assert_eq!(shared, alone);
        let distinct = |index: usize| shared.iter().filter(|other| **other == shared[index]).count() == 1;
        assert!((0..12).all(|index| shared[index].is_ok() && distinct(index)), "each is a variant of its own");
        assert!(shared[12..].iter().all(Result::is_err), "three warps are no power of two");
    }
}
