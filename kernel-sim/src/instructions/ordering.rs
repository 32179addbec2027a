//! Memory semantics and scopes of accesses: `.relaxed.gpu`, `.acquire.cta`, `.volatile` (PTX ISA, 8.5 and 9.7.9.8).

use std::collections::HashMap;

use crate::instructions::{Form, Unsupported};
use crate::lanes::{Row, WARP};
use crate::machine::{self, Cluster, Cx};
use crate::memory::{Clocks, Released, Scope, Stamp};
use crate::ptx::Space;

/// The memory semantics of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Semantics {
    /// The default of loads and stores.
    Weak,
    /// `.volatile`: as `.relaxed.sys`.
    Volatile,
    /// `.relaxed`
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`
    AcquireRelease,
}

impl Semantics {
    fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcquireRelease)
    }

    fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcquireRelease)
    }
}

/// The semantics of an access, and its scope if it is strong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ordering {
    pub(crate) semantics: Semantics,
    pub(crate) scope: Option<Scope>,
}

impl Ordering {
    /// A weak access.
    pub(crate) const WEAK: Ordering = Ordering { semantics: Semantics::Weak, scope: None };

    /// Whether the access is strong.
    pub(crate) fn is_strong(self) -> bool {
        self.scope.is_some()
    }
}

/// The releases at the addresses of a memory, for threads that read there. A strong store starts a new release sequence. An atomic extends
/// the previous one.
#[derive(Default)]
pub(crate) struct Published {
    /// Indexed by the rank of the CTA (`None` for global memory) and the address.
    releases: HashMap<(Option<usize>, u64), Releases>,
}

/// The releases at an address, by scope. An acquire with a narrow scope observes only releases of its own CTA or cluster. A release with a
/// narrow scope reaches only threads inside that scope.
#[derive(Default)]
struct Releases {
    of_ctas: HashMap<(u32, usize), Level>,
    of_clusters: HashMap<u32, Level>,
    of_all: Level,
    /// The clocks at `fence.sc` of GPU scope that happen before the stores.
    sequenced: Level,
}

/// A release, and a cached copy of it as seen by one cluster.
#[derive(Default)]
struct Level {
    released: Released,
    seen: Option<(u32, Stamp)>,
}

/// The fences of a warp's lanes. A fence before a strong store forms a release pattern, and a fence after a strong load forms an acquire
/// pattern (PTX ISA, 8.8). Each scope has an entry, which covers fences of that scope or a wider one.
#[derive(Default)]
pub(crate) struct Fences {
    fenced: [[Option<Stamp>; WARP]; 3],
    observed: [[Option<Stamp>; WARP]; 3],
}

impl Fences {
    /// The clocks of a lane at its last fence of this scope.
    pub(crate) fn fenced(&self, lane: usize, scope: Scope) -> Option<&Stamp> {
        self.fenced[scope as usize][lane].as_ref()
    }
}

impl Releases {
    /// The releases that reach a CTA of a cluster through this scope.
    fn level(&mut self, scope: Scope, cluster: u32, rank: usize) -> Option<&mut Level> {
        match scope {
            Scope::Cta => self.of_ctas.get_mut(&(cluster, rank)),
            Scope::Cluster => self.of_clusters.get_mut(&cluster),
            Scope::Gpu => Some(&mut self.of_all),
        }
    }

    fn add(&mut self, scope: Scope, cluster: u32, rank: usize, released: &Released) {
        let level = match scope {
            Scope::Cta => self.of_ctas.entry((cluster, rank)).or_default(),
            Scope::Cluster => self.of_clusters.entry(cluster).or_default(),
            Scope::Gpu => &mut self.of_all,
        };
        level.add(released);
    }
}

impl Level {
    fn add(&mut self, released: &Released) {
        self.released.join(released);
        self.seen = None;
    }

    /// The release, as seen by the cluster of these clocks.
    fn gathered(&mut self, clocks: &Clocks) -> &Stamp {
        let (cluster, stamp) = self.seen.get_or_insert_with(|| (clocks.cluster(), clocks.gathered(&self.released)));
        if *cluster != clocks.cluster() {
            (*cluster, *stamp) = (clocks.cluster(), clocks.gathered(&self.released));
        }
        stamp
    }
}

/// The scopes that are included in a scope.
fn within(scope: Scope) -> impl Iterator<Item = Scope> {
    Scope::ALL.into_iter().filter(move |&narrow| narrow <= scope)
}

/// Executes a fence of this scope by the active lanes; `is_sequential` is true for `fence.sc`.
pub(crate) fn fence(cx: &mut Cx<'_>, scope: Scope, is_sequential: bool) {
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    for lane in cx.lanes {
        for scope in within(scope) {
            if let Some(stamp) = cx.warp.fences.observed[scope as usize][lane].take() {
                cx.cluster.clocks.acquire(warp, lane, &stamp);
            }
        }
        if is_sequential && scope == Scope::Gpu {
            cx.cluster.clocks.fence_sequential(warp, lane);
        }
        let stamp = cx.cluster.clocks.release(warp, lane);
        for scope in within(scope) {
            cx.warp.fences.fenced[scope as usize][lane] = Some(stamp.clone());
        }
    }
}

/// Records strong stores by the active lanes. An atomic has also read the old value.
pub(crate) fn publish(cx: &mut Cx<'_>, ordering: Ordering, is_atomic: bool, space: Space, addresses: &Row) {
    let Some(scope) = ordering.scope else { return };
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    for lane in cx.lanes {
        let Some(key) = key(cx, space, addresses[lane]) else { continue };
        let released = ordering.semantics.releases().then(|| {
            let stamp = cx.cluster.clocks.release(warp, lane);
            cx.cluster.clocks.spread(&stamp)
        });
        let (cluster, rank) = (cx.cluster.clocks.cluster(), cx.rank);
        let published = if key.0.is_none() { &mut cx.cluster.global.published } else { &mut cx.cluster.published };
        if !is_atomic {
            published.releases.remove(&key);
        }
        for scope in within(scope) {
            let fenced = || cx.warp.fences.fenced(lane, scope).map(|stamp| cx.cluster.clocks.spread(stamp));
            if let Some(released) = released.clone().or_else(fenced) {
                published.releases.entry(key).or_default().add(scope, cluster, rank, &released);
            }
        }
        if let Some(stamp) = cx.cluster.clocks.sequenced(warp, lane).filter(|_| scope == Scope::Gpu) {
            let sequenced = cx.cluster.clocks.spread(&stamp);
            published.releases.entry(key).or_default().sequenced.add(&sequenced);
        }
    }
}

/// Records loads by the active lanes.
pub(crate) fn observe(cx: &mut Cx<'_>, ordering: Ordering, space: Space, addresses: &Row) {
    let Some(scope) = ordering.scope else { return };
    let Cluster { clocks, published, global, .. } = &mut *cx.cluster;
    if published.releases.is_empty() && global.published.releases.is_empty() {
        return;
    }
    let warp = clocks.warp(cx.rank, cx.warp.index);
    for lane in cx.lanes {
        let Some(key) = key(cx, space, addresses[lane]) else { continue };
        let Cluster { clocks, published, global, .. } = &mut *cx.cluster;
        let published = if key.0.is_none() { &mut global.published } else { published };
        let Some(releases) = published.releases.get_mut(&key) else { continue };
        if scope == Scope::Gpu {
            let stamp = releases.sequenced.gathered(clocks);
            clocks.observe(warp, lane, stamp);
        }
        for scope in within(scope) {
            let Some(level) = releases.level(scope, clocks.cluster(), cx.rank) else { continue };
            let stamp = level.gathered(clocks);
            if ordering.semantics.acquires() {
                clocks.acquire(warp, lane, stamp);
            } else {
                cx.warp.fences.observed[scope as usize][lane].get_or_insert_with(Stamp::default).join(stamp);
            }
        }
    }
}

fn key(cx: &Cx<'_>, space: Space, address: u64) -> Option<(Option<usize>, u64)> {
    match cx.resolve(space, address) {
        Ok(machine::Location::Global(address)) => Some((None, address)),
        Ok(machine::Location::Shared { rank, offset }) => Some((Some(rank), offset)),
        _ => None,
    }
}

/// Takes a scope, if present.
pub(crate) fn take_scope(form: &mut Form<'_>) -> Option<Scope> {
    form.one_of(&[("cta", Scope::Cta), ("cluster", Scope::Cluster), ("gpu", Scope::Gpu), ("sys", Scope::Gpu)])
}

/// Takes the semantics and the scope of `ld` (`synchronising` is `acquire`) or `st` (`release`).
pub(crate) fn take_access(form: &mut Form<'_>, synchronising: (&str, Semantics)) -> Result<Ordering, Unsupported> {
    let is_mmio = form.flag("mmio");
    let choices = [("weak", Semantics::Weak), ("volatile", Semantics::Volatile), ("relaxed", Semantics::Relaxed), synchronising];
    let semantics = form.one_of(&choices);
    let is_system = form.has(&["sys"]);
    let scope = take_scope(form);
    match (semantics, scope) {
        (Some(Semantics::Relaxed), Some(_)) if is_mmio && is_system => Ok(Ordering { semantics: Semantics::Relaxed, scope }),
        _ if is_mmio => Err(form.error("`.mmio` is always `.mmio.relaxed.sys`")),
        (Some(Semantics::Relaxed), None) => Err(form.error("`.relaxed` needs a scope, such as `.relaxed.gpu`")),
        (Some(semantics), None) if semantics == synchronising.1 => {
            let name = synchronising.0;
            Err(form.error(format!("`.{name}` needs a scope, such as `.{name}.gpu`")))
        }
        (None | Some(Semantics::Weak | Semantics::Volatile), Some(scope)) => {
            let name = format!("{scope:?}").to_lowercase();
            Err(form.error(format!("the scope `.{name}` needs `.relaxed` or `.{}`", synchronising.0)))
        }
        (Some(Semantics::Volatile), None) => Ok(Ordering { semantics: Semantics::Volatile, scope: Some(Scope::Gpu) }),
        (semantics, scope) => Ok(Ordering { semantics: semantics.unwrap_or(Semantics::Weak), scope }),
    }
}

/// Takes the semantics and the scope of an atomic; the defaults are `.relaxed` and `.gpu`.
pub(crate) fn take_atomic(form: &mut Form<'_>, choices: &[(&str, Semantics)]) -> Ordering {
    let semantics = form.one_of(choices).unwrap_or(Semantics::Relaxed);
    Ordering { semantics, scope: Some(take_scope(form).unwrap_or(Scope::Gpu)) }
}
