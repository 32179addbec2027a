//! Explanations: for each access of the user's source, the widest instruction that the compiler chose, why it is not wider, and the cache
//! hint with its reason.
//!
//! An explanation follows the compilation. It reads the kernel at two points: where each access still exists once, as the user wrote it, and
//! at the end, where a fast path and a guarded path may have copies of it. No pass knows of it.

mod hint;
mod index;
mod limit;
mod limits;
mod products;

use rustc_hash::FxHashMap;

use crate::analysis::affine::AffineFacts;
use crate::backend::ptx::access_bytes;
use crate::compile::{Compiled, Options, WITH_ROLES, compile_explained};
use crate::diagnostic::Diagnostics;
use crate::dtype::Dtype;
use crate::ir::{Function, Inst, Op, Region, Value};
use crate::location::{Loc, Name};
use crate::passes::pair_accesses;
use crate::passes::specialize_warps::Obstacle;

pub use hint::Hint;
pub use limit::{Limit, Quantity};
pub use products::{CopiedBlock, Lost, Product, WithRoles};

/// A compiled kernel and its accesses.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The kernel.
    pub compiled: Compiled,
    /// The source files; positions are indices into them.
    pub files: Vec<Name>,
    /// Its accesses, in the order in which a program executes them.
    pub accesses: Vec<Access>,
    /// Its matrix products, in the order of the source's ops. Several at one position are one.
    pub products: Vec<Product>,
    /// The version of the kernel with roles, or why it has none.
    pub roles: Result<WithRoles, Lost>,
}

/// An access of the source. Several accesses with one position, as in a loop that is repeated at compile time, are one.
#[derive(Clone, Debug)]
pub struct Access {
    /// Its position.
    pub loc: Loc,
    /// The builtin's name: `load`, `store` or that of an atomic.
    pub builtin: &'static str,
    /// Does it read?
    pub loads: bool,
    /// Does it write?
    pub stores: bool,
    /// The names of the tensors. A tensor behind a computed pointer has none.
    pub tensors: Vec<Name>,
    /// The type of an element.
    pub dtype: Dtype,
    /// The extents of the tile; empty for one element.
    pub tile: Vec<usize>,
    /// The bytes that its widest instruction moves for a thread. Another path of the code may be narrower.
    pub widest: u32,
    /// Why it is not wider. If [`Access::widest`] is 16 bytes: why the programs of a launch with the known arguments may take a narrower path.
    /// The first reason decides.
    pub limits: Vec<Limit>,
    /// The cache hint.
    pub hint: Hint,
}

/// The widest access of a thread, in bytes.
pub const WIDEST: u32 = 16;

/// The pass in front of the choice of cache hints: each access exists once, and its index is a sum.
const WRITTEN: &str = "split_carried_indices";

/// The last pass in front of those that access a tile for a group of each thread's elements at a time.
const FINAL: &str = "issue_loads";

/// Compiles a kernel as [`compile`](crate::compile()) does, and explains its accesses. `known` has the values of integer arguments; they
/// change no code, and only say which conditions hold in a launch.
///
/// ```
/// use kernel_lang::explain::explain;
/// use kernel_lang::{Bindings, Options, ir, target::Target};
///
/// let kernel = ir::parse(
///     "kernel @fill(%y: ptr_mut<f32>, %stride: i64, %value: f32) {
///         %0 = arange {start = 0, end = 512} : tile<i64, [512]>
///         %1 = broadcast %stride : tile<i64, [512]>
///         %2 = mul %0, %1 : tile<i64, [512]>
///         %3 = broadcast %value : tile<f32, [512]>
///         store %y, %2, %3 @3:5
///         return
///     }",
/// )?;
/// let explained = explain(&kernel, &Options::new(Bindings::new(), Target::SM_80), &|_| None).expect("it compiles");
/// let store = &explained.accesses[0];
/// assert_eq!((store.builtin, store.widest), ("store", 4));
/// assert_eq!(store.limits[0].to_string(), "neighbouring elements are `stride` elements apart");
/// # Ok::<(), kernel_lang::ir::ParseError>(())
/// ```
///
/// # Errors
/// As [`compile`](crate::compile()).
pub fn explain(func: &Function, options: &Options, known: &dyn Fn(&str) -> Option<i64>) -> Result<Explained, Diagnostics> {
    let (mut written, mut last, mut with_roles) = (None, None, None);
    let (compiled, roles) = compile_explained(func, options, &mut |pass, func, _| match pass {
        // The accesses are those of the usual version.
        _ if with_roles.is_some() => {}
        WITH_ROLES => with_roles = Some(func.clone()),
        WRITTEN => written = Some(func.clone()),
        FINAL => last = Some(func.clone()),
        _ => {}
    })?;
    let accesses = match (&written, &last) {
        (Some(written), Some(last)) => accesses(written, last, options, known),
        _ => Vec::new(),
    };
    let products = written.as_ref().map(|written| products::all(written, options.target, roles.as_ref().ok())).unwrap_or_default();
    let roles = match (roles, &with_roles) {
        (Ok(decisions), Some(func)) => Ok(WithRoles::of(func, decisions, known)),
        (Ok(_), None) => unreachable!("the compiler shows the version with roles"),
        (Err(_), _) if !options.target.has_warpgroup_products() => Err(Lost::of(&Obstacle::Target)),
        (Err(obstacle), _) => Err(Lost::of(&obstacle)),
    };
    Ok(Explained { compiled, files: func.files.clone(), accesses, products, roles })
}

/// The accesses of the kernel as it was written, compared with their copies at the end.
fn accesses(written: &Function, last: &Function, options: &Options, known: &dyn Fn(&str) -> Option<i64>) -> Vec<Access> {
    let (copies, hints) = (Copies::of(last), hint::all(written));
    let mut limits = limits::Limits::new(written, known, options.schedule.threads());
    let (mut found, mut numbers) = (Vec::<Access>::new(), FxHashMap::default());
    // Of each access: its region, and whether it keeps the others there from the fast path.
    let mut causes = Vec::new();
    let region_of = regions_of(written);
    let pairs = pair_accesses::pairs(written);
    for inst in written.all_insts() {
        let (data, Some(access)) = (written.inst(inst), written.inst(inst).op.access()) else { continue };
        let (dtype, builtin) = (written.ty(access.base).dtype(), access.kind.builtin());
        let tensor = written.param_index(access.base).map(|index| written.params[index].name.clone());
        let copy = copies.at(data.loc, access.kind.builtin());
        let widest = copy.map_or(dtype.bytes() as u32, |copy| copy.widest);
        let number = *numbers.entry((data.loc, builtin)).or_insert(found.len());
        if number < found.len() {
            let tensors = &mut found[number].tensors;
            tensors.extend(tensor.filter(|tensor| !tensors.contains(tensor)));
            continue;
        }
        let is_wide = copy.is_some_and(|copy| copy.widest >= WIDEST);
        let pair = pairs.iter().find(|[_, second]| *second == inst);
        let neighbours = pair.map(|[first, _]| vec![Limit::Neighbours { line: written.inst(*first).loc.line }]);
        causes.push((region_of[&inst], limits.leaves_fast_path(&access, is_wide)));
        found.push(Access {
            loc: data.loc,
            builtin,
            loads: !matches!(data.op, Op::Store { .. }),
            stores: !matches!(data.op, Op::Load { .. }),
            tensors: tensor.into_iter().collect(),
            dtype,
            tile: written.ty(access.offset).extents(),
            widest,
            limits: neighbours.unwrap_or_else(|| limits.of(&access, is_wide, copy.map_or(0, |copy| copy.align))),
            hint: hints[&inst].clone(),
        });
    }
    blame_others(&mut found, &causes);
    found
}

/// The fast path of a region is for all its accesses. An access without a reason of its own leaves it if another one does.
fn blame_others(accesses: &mut [Access], causes: &[(Region, bool)]) {
    for at in 0..accesses.len() {
        let is_other = |other: &usize| *other != at && causes[*other] == (causes[at].0, true);
        let other = (0..accesses.len()).find(is_other).filter(|_| accesses[at].limits == [Limit::NotFull]);
        if let Some(other) = other {
            let tensor = accesses[other].tensors.first().map(ToString::to_string);
            accesses[at].limits = vec![Limit::OtherAccess { line: accesses[other].loc.line, tensor }];
        }
    }
}

/// The region of each op.
fn regions_of(func: &Function) -> FxHashMap<Inst, Region> {
    let regions = func.regions_under(func.body).into_iter();
    regions.flat_map(|region| func.region(region).insts.iter().map(move |inst| (*inst, region))).collect()
}

/// The copies of an access at the end of the compilation.
#[derive(Clone, Copy, Default)]
struct Copy {
    /// The bytes that the widest instruction moves.
    widest: u32,
    /// The best alignment that a copy relies on, in bytes: 0 if none relies on any.
    align: u32,
}

/// The copies of all accesses, by position and builtin.
struct Copies(FxHashMap<(Loc, &'static str), Copy>);

impl Copies {
    fn of(last: &Function) -> Copies {
        let mut facts = AffineFacts::new();
        let mut copies: FxHashMap<(Loc, &str), Copy> = FxHashMap::default();
        for inst in last.all_insts() {
            let data = last.inst(inst);
            let (builtin, align) = match &data.op {
                Op::Load { align, .. } | Op::AsyncCopy { align, .. } => ("load", *align),
                Op::Store { align, .. } => ("store", *align),
                Op::Atomic { op, align, .. } => (op.builtin(), *align),
                _ => continue,
            };
            let Some(width) = access_bytes(last, &mut facts, &data.op) else { continue };
            let copy = copies.entry((data.loc, builtin)).or_default();
            *copy = Copy { widest: copy.widest.max(width), align: copy.align.max(align) };
        }
        Copies(copies)
    }

    fn at(&self, loc: Loc, builtin: &'static str) -> Option<Copy> {
        self.0.get(&(loc, builtin)).copied()
    }
}

/// The name of a parameter, if the value is one.
fn parameter(func: &Function, value: Value) -> Option<&Name> {
    func.param_index(value).map(|index| &func.params[index].name)
}

/// The hints of all accesses.
type Hints = FxHashMap<Inst, Hint>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use crate::{Bindings, ir};

    /// The widest instruction of a store to `%y` at these offsets, and its first limit.
    fn store(elements: u32, offsets: &str) -> (u32, String) {
        let text = format!(
            "kernel @k(%y: ptr_mut<f32>, %index: ptr<i64>, %n: i64, %v: f32) {{
                %0 = arange {{start = 0, end = {elements}}} : tile<i64, [{elements}]>
                {offsets}
                %9 = broadcast %v : tile<f32, [{elements}]>
                store %y, %at, %9 @3:5
                return
            }}"
        );
        let func = ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let explained = explain(&func, &Options::new(Bindings::new(), Target::SM_90A), &|_| Some(6)).unwrap();
        let access = explained.accesses.iter().find(|access| access.builtin == "store").unwrap();
        (access.widest, access.limits[0].to_string())
    }

    #[test]
    fn widths_are_those_of_the_instructions() {
        let shifted = |by: &str| {
            format!(
                "%1 = program_id : i64\n%2 = mul %1, {by} : i64\n%3 = broadcast %2 : tile<i64, [512]>\n%at = add %3, %0 : tile<i64, [512]>"
            )
        };
        let start = "tiles begin at multiples of `n` = 6, not of 4";
        assert_eq!(store(512, &shifted("%n")), (16, start.to_owned()));
        let few = "%1 = const {value = 0} : tile<i64, [256]>\n%at = add %1, %0 : tile<i64, [256]>";
        assert_eq!(store(256, few), (8, "128 threads share 256 elements".to_owned()));
        let loaded = "%at = load %index, %0 : tile<i64, [512]>";
        assert_eq!(store(512, loaded), (4, "the index of each element is loaded from `index`".to_owned()));
        let strided = "%1 = broadcast %n : tile<i64, [512]>\n%at = mul %0, %1 : tile<i64, [512]>";
        assert_eq!(store(512, strided), (4, "neighbouring elements are `n` = 6 elements apart".to_owned()));
    }
}
