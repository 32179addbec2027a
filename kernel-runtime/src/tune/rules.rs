//! What the attributes of a kernel say of a configuration and the arguments, as functions that capture nothing: a launch carries one pointer to them.

use super::verify::{HostArgs, Verify};

/// The functions of one kernel. `#[kernel]` and `#[autotune]` write them.
#[doc(hidden)]
pub struct Rules<C, const WORDS: usize> {
    /// What heuristics give.
    complete: Option<Rule<C, WORDS, C>>,
    /// Does a configuration not fit the arguments?
    prune: Option<Rule<C, WORDS, bool>>,
    /// How many are timed at most, and what each may cost.
    top_k: Option<(usize, Rule<C, WORDS, f64>)>,
    pre_hook: Option<Rule<C, WORDS, ()>>,
    post_hook: Option<Rule<C, WORDS, ()>>,
    /// Are results compared, and with what?
    verify: Option<Verify>,
}

type Rule<C, const WORDS: usize, R> = fn(&[u64; WORDS], C) -> R;

impl<C: Copy, const WORDS: usize> Rules<C, WORDS> {
    /// Nothing is said.
    pub const NONE: Rules<C, WORDS> = Rules { complete: None, prune: None, top_k: None, pre_hook: None, post_hook: None, verify: None };

    /// `heuristics(..)`: fills the places of a configuration that they give.
    #[must_use]
    pub const fn heuristics(mut self, rule: fn(&[u64; WORDS], C) -> C) -> Self {
        self.complete = Some(rule);
        self
    }

    /// `prune = |config| ..`
    #[must_use]
    pub const fn prune(mut self, rule: fn(&[u64; WORDS], C) -> bool) -> Self {
        self.prune = Some(rule);
        self
    }

    /// `prune = top_k(count, |config| ..)`
    #[must_use]
    pub const fn top_k(mut self, count: usize, cost: fn(&[u64; WORDS], C) -> f64) -> Self {
        self.top_k = Some((count, cost));
        self
    }

    /// `pre_hook = |config| ..`
    #[must_use]
    pub const fn pre_hook(mut self, hook: fn(&[u64; WORDS], C)) -> Self {
        self.pre_hook = Some(hook);
        self
    }

    /// `post_hook = |config| ..`
    #[must_use]
    pub const fn post_hook(mut self, hook: fn(&[u64; WORDS], C)) -> Self {
        self.post_hook = Some(hook);
        self
    }

    /// `verify = cpu`
    #[must_use]
    pub const fn verify(mut self, rtol: Option<f64>) -> Self {
        self.verify = Some(Verify { by: None, rtol });
        self
    }

    /// `verify = reference`
    #[must_use]
    pub const fn verify_by(mut self, rtol: Option<f64>, path: &'static str, reference: fn(&mut HostArgs)) -> Self {
        self.verify = Some(Verify { by: Some((path, reference)), rtol });
        self
    }

    /// With what results are compared, if they are.
    pub(super) fn verifies(&self) -> Option<Verify> {
        self.verify
    }

    /// The configuration with what heuristics give for these arguments.
    #[inline]
    pub(super) fn completed(&self, words: &[u64; WORDS], config: C) -> C {
        self.complete.map_or(config, |complete| complete(words, config))
    }

    /// The configurations that fit these arguments.
    #[inline]
    pub(super) fn kept(&self, words: &[u64; WORDS], configs: &[C]) -> Kept {
        let Some(prune) = self.prune else { return Kept::ALL };
        let fits = |config: C| !prune(words, self.completed(words, config));
        let kept = configs.iter().take(Kept::MOST).enumerate().filter(|(_, config)| fits(**config));
        Kept(kept.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    /// Splits candidates, some places among `configs`, into those to time and the others: the cheapest first, in their order where they are alike.
    pub(super) fn likely(&self, words: &[u64; WORDS], configs: &[C], mut candidates: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let Some((count, cost)) = self.top_k else { return (candidates, Vec::new()) };
        // What is no number says nothing good.
        let costs: Vec<f64> =
            configs.iter().map(|config| Some(cost(words, *config)).filter(|cost| !cost.is_nan()).unwrap_or(f64::INFINITY)).collect();
        candidates.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]));
        let others = candidates.split_off(count.min(candidates.len()));
        candidates.sort_unstable();
        (candidates, others)
    }

    /// Before a run of this configuration.
    pub(super) fn before(&self, words: &[u64; WORDS], config: C) {
        if let Some(hook) = self.pre_hook {
            hook(words, config);
        }
    }

    /// Behind a run of this configuration.
    pub(super) fn after(&self, words: &[u64; WORDS], config: C) {
        if let Some(hook) = self.post_hook {
            hook(words, config);
        }
    }
}

/// Which configurations of a tuner a launch may use, a bit for each; those beyond the 128th always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kept(u128);

impl Kept {
    /// All of them.
    pub(super) const ALL: Kept = Kept(u128::MAX);
    /// How many can be pruned.
    const MOST: usize = 128;

    pub(super) fn has(self, index: usize) -> bool {
        index >= Kept::MOST || self.0 >> index & 1 == 1
    }

    /// The places of those that are left, of so many.
    pub(super) fn of(self, configs: usize) -> impl Iterator<Item = usize> {
        (0..configs).filter(move |index| self.has(*index))
    }

    pub(super) fn words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }
}

/// A tensor among the arguments, as heuristics and other rules see it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Extents<const RANK: usize> {
    len: usize,
    extents: [usize; RANK],
}

impl<const RANK: usize> Extents<RANK> {
    /// The one whose address is this word.
    #[inline]
    pub fn of(words: &[u64], word: usize) -> Extents<RANK> {
        let at = |word: usize| words.get(word).copied().unwrap_or(0) as usize;
        Extents { len: at(word + 1), extents: std::array::from_fn(|axis| at(word + 2 + axis)) }
    }

    /// The number of elements.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "it is what rules compute with")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// How many elements a view has along an axis, as inside of a kernel; 0 if there is no such axis.
#[doc(hidden)]
#[inline]
pub fn extent<const RANK: usize>(view: Extents<RANK>, axis: usize) -> usize {
    view.extents.get(axis).copied().unwrap_or(0)
}

/// What a rule says of a configuration; a closure's parameter has its type from here.
#[doc(hidden)]
#[inline]
pub fn asked<C, R>(config: C, rule: impl FnOnce(C) -> R) -> R {
    rule(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cheapest_is_timed_in_its_order() {
        let rules = Rules::<f64, 1>::NONE.top_k(2, |words, config| config * words[0] as f64);
        let configs = [4.0, f64::NAN, 1.0, 3.0, 1.0];
        assert_eq!(rules.likely(&[2], &configs, vec![0, 1, 2, 3]), (vec![2, 3], vec![0, 1]));
        assert_eq!(rules.likely(&[2], &configs, (0..5).collect()), (vec![2, 4], vec![3, 0, 1]));
        assert_eq!(rules.likely(&[2], &configs, vec![1]), (vec![1], vec![]));
        assert_eq!(Rules::<f64, 1>::NONE.likely(&[2], &configs, vec![3, 0]), (vec![3, 0], vec![]));
    }

    #[test]
    fn pruning_sees_what_heuristics_give() {
        let rules = Rules::<u64, 1>::NONE.heuristics(|words, config| config + words[0]).prune(|_, config| config > 5);
        let kept = rules.kept(&[3], &[1, 2, 3]);
        assert_eq!((kept.of(3).collect::<Vec<_>>(), kept.words()), (vec![0, 1], [0b11, 0]));
        assert_eq!(Rules::<u64, 1>::NONE.kept(&[3], &[1]), Kept::ALL);
    }

    #[test]
    fn a_tensor_tells_its_extents() {
        let view = Extents::<2>::of(&[9, 0xadd, 12, 3, 4, 4], 1);
        assert_eq!((view.len(), extent(view, 0), extent(view, 1), extent(view, 2)), (12, 3, 4, 0));
    }
}
