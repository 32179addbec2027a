//! The rules of a kernel's attributes: functions of a configuration and the arguments that capture nothing. A launch carries one pointer to
//! them.

use super::verify::{HostArgs, Verify};

/// The rules of one kernel. `#[kernel]` and `#[autotune]` generate them.
#[doc(hidden)]
pub struct Rules<C, const WORDS: usize> {
    /// Applies the heuristics.
    complete: Option<Rule<C, WORDS, C>>,
    /// Returns whether a configuration does not fit the arguments.
    prune: Option<Rule<C, WORDS, bool>>,
    /// The maximum number of configurations to time, and the cost estimate for each.
    top_k: Option<(usize, Rule<C, WORDS, f64>)>,
    pre_hook: Option<Rule<C, WORDS, ()>>,
    post_hook: Option<Rule<C, WORDS, ()>>,
    /// The comparison of results, if there is one.
    verify: Option<Verify>,
    /// The words that heuristics, `prune` and `top_k` read.
    reads: &'static [usize],
}

type Rule<C, const WORDS: usize, R> = fn(&[u64; WORDS], C) -> R;

impl<C: Copy, const WORDS: usize> Rules<C, WORDS> {
    /// No rules.
    pub const NONE: Rules<C, WORDS> =
        Rules { complete: None, prune: None, top_k: None, pre_hook: None, post_hook: None, verify: None, reads: &[] };

    /// The argument words that heuristics, `prune` and `top_k` read.
    #[must_use]
    pub const fn reading(mut self, words: &'static [usize]) -> Self {
        self.reads = words;
        self
    }

    /// `heuristics(..)`: fills the fields of a configuration that heuristics compute.
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

    /// The words that heuristics, `prune` and `top_k` read.
    pub(super) fn reads(&self) -> &'static [usize] {
        self.reads
    }

    /// Whether there are heuristics.
    pub(super) fn has_heuristics(&self) -> bool {
        self.complete.is_some()
    }

    /// Whether `prune` may reject configurations. `top_k` only orders them.
    pub(super) fn has_prune(&self) -> bool {
        self.prune.is_some()
    }

    /// The count of `top_k` and the cost of a configuration.
    pub(super) fn cost(&self, words: &[u64; WORDS], config: C) -> Option<(usize, f64)> {
        self.top_k.map(|(count, cost)| (count, cost(words, config)))
    }

    /// The name of the first field that is a function which runs while the kernel is tuned.
    pub(super) fn function(&self) -> Option<&'static str> {
        let verifies_by_function = self.verify.is_some_and(|verify| verify.by.is_some());
        let fields = [("pre_hook", self.pre_hook.is_some()), ("post_hook", self.post_hook.is_some()), ("verify", verifies_by_function)];
        fields.into_iter().find(|(_, is_given)| *is_given).map(|(field, _)| field)
    }

    /// The comparison of results, if there is one.
    pub(super) fn verifies(&self) -> Option<Verify> {
        self.verify
    }

    /// The configuration after the heuristics for these arguments.
    #[inline]
    pub(super) fn completed(&self, words: &[u64; WORDS], config: C) -> C {
        self.complete.map_or(config, |complete| complete(words, config))
    }

    /// The configurations that `prune` leaves for these arguments.
    #[inline]
    pub(super) fn unpruned(&self, words: &[u64; WORDS], configs: &[C]) -> ConfigSet {
        let Some(prune) = self.prune else { return ConfigSet::ALL };
        let fits = |config: C| !prune(words, self.completed(words, config));
        let unpruned = configs.iter().take(ConfigSet::MOST).enumerate().filter(|(_, config)| fits(**config));
        ConfigSet(unpruned.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    /// Splits `candidates`, which are indices into `configs`, into those to time and the others. The cheapest are timed; of equal costs,
    /// the first.
    pub(super) fn likely(&self, words: &[u64; WORDS], configs: &[C], mut candidates: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let Some((count, cost)) = self.top_k else { return (candidates, Vec::new()) };
        // A NaN cost counts as infinite.
        let costs: Vec<f64> =
            configs.iter().map(|config| Some(cost(words, *config)).filter(|cost| !cost.is_nan()).unwrap_or(f64::INFINITY)).collect();
        candidates.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]));
        let others = candidates.split_off(count.min(candidates.len()));
        candidates.sort_unstable();
        (candidates, others)
    }

    /// Calls the hook before a run of this configuration.
    pub(super) fn before(&self, words: &[u64; WORDS], config: C) {
        if let Some(hook) = self.pre_hook {
            hook(words, config);
        }
    }

    /// Calls the hook after a run of this configuration.
    pub(super) fn after(&self, words: &[u64; WORDS], config: C) {
        if let Some(hook) = self.post_hook {
            hook(words, config);
        }
    }
}

/// The configurations that `prune` leaves for a launch: one bit for each of the first 128. Later ones are always in the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ConfigSet(u128);

impl ConfigSet {
    /// All configurations.
    pub(super) const ALL: ConfigSet = ConfigSet(u128::MAX);
    /// The number of configurations that `prune` can reject.
    const MOST: usize = 128;

    pub(super) fn has(self, index: usize) -> bool {
        index >= ConfigSet::MOST || self.0 >> index & 1 == 1
    }

    /// The indices of the configurations that are left, out of `configs`.
    pub(super) fn of(self, configs: usize) -> impl Iterator<Item = usize> {
        (0..configs).filter(move |index| self.has(*index))
    }

    pub(super) fn words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }
}

/// A tensor argument, as heuristics and other rules see it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Extents<const RANK: usize> {
    len: usize,
    extents: [usize; RANK],
}

impl<const RANK: usize> Extents<RANK> {
    /// The tensor whose address is this word.
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

/// The number of elements of a view along an axis, as in a kernel; 0 if there is no such axis.
#[doc(hidden)]
#[inline]
pub fn extent<const RANK: usize>(view: Extents<RANK>, axis: usize) -> usize {
    view.extents.get(axis).copied().unwrap_or(0)
}

/// Applies a rule to a configuration. The signature gives the closure's parameter its type.
#[doc(hidden)]
#[inline]
pub fn asked<C, R>(config: C, rule: impl FnOnce(C) -> R) -> R {
    rule(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_configurations_are_timed_in_their_order() {
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
        let unpruned = rules.unpruned(&[3], &[1, 2, 3]);
        assert_eq!((unpruned.of(3).collect::<Vec<_>>(), unpruned.words()), (vec![0, 1], [0b11, 0]));
        assert_eq!(Rules::<u64, 1>::NONE.unpruned(&[3], &[1]), ConfigSet::ALL);
    }

    #[test]
    fn extents_of_a_tensor_argument() {
        let view = Extents::<2>::of(&[9, 0xadd, 12, 3, 4, 4], 1);
        assert_eq!((view.len(), extent(view, 0), extent(view, 1), extent(view, 2)), (12, 3, 4, 0));
    }
}
