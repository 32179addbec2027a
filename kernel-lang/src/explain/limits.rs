//! Why an access is not wider: the conditions of the passes and of the layouts, in the order in which they decide.

use crate::analysis::affine::Affine;
use crate::analysis::masks::{self, Condition};
use crate::analysis::polynomial::Polynomial;
use crate::ir::{Access, Function, Value};

use super::index::{Culprit, Numbers, Origin};
use super::{Limit, WIDEST};

/// Finds the limits of the accesses of one kernel.
pub(super) struct Limits<'a> {
    numbers: Numbers<'a>,
    threads: u32,
}

impl<'a> Limits<'a> {
    pub(super) fn new(func: &'a Function, known: &'a dyn Fn(&str) -> Option<i64>, threads: u32) -> Limits<'a> {
        Limits { numbers: Numbers::new(func, known), threads }
    }

    /// The limits of an access. `is_wide` says that some copy of it is as wide as an access can be, and `align` is the best alignment that
    /// a copy relies on.
    pub(super) fn of(&mut self, access: &Access, is_wide: bool, align: u32) -> Vec<Limit> {
        let func = self.numbers.func;
        let run = i64::from(WIDEST) / func.ty(access.base).dtype().bytes() as i64;
        if !func.ty(access.offset).is_tile() {
            return vec![Limit::Scalar];
        }
        if is_wide {
            let limits = self.at_launch(access, run);
            return if limits.is_empty() { vec![Limit::NotFull] } else { limits };
        }
        let elements = func.ty(access.offset).numel();
        // Some copy moves runs, though shorter ones.
        if align > func.ty(access.base).dtype().bytes() as u32 {
            let is_small = (elements as i64) < run * i64::from(self.threads);
            return vec![if is_small { Limit::FewElements { elements, threads: self.threads } } else { Limit::OtherLayout }];
        }
        vec![self.at_compilation(access, run)]
    }

    /// Does the access keep all accesses of its tiles from the fast path, in a launch with these arguments?
    pub(super) fn leaves_fast_path(&mut self, access: &Access, is_wide: bool) -> bool {
        let func = self.numbers.func;
        let run = i64::from(WIDEST) / func.ty(access.base).dtype().bytes() as i64;
        let is_cause = |limit: &Limit| is_wide || matches!(limit, Limit::Divisor { .. });
        func.ty(access.offset).is_tile() && self.at_launch(access, run).iter().any(is_cause)
    }

    /// Why no copy of an access is wide.
    fn at_compilation(&mut self, access: &Access, run: i64) -> Limit {
        let func = self.numbers.func;
        let extents = func.ty(access.offset).extents();
        let Some(affine) = self.numbers.facts.get(func, access.offset) else {
            return match self.numbers.origin(access.offset) {
                Origin::Loaded(from) => Limit::LoadedIndex { from },
                Origin::Divided(divisors) => match divisors.first().and_then(|divisor| self.uniform(*divisor)) {
                    Some(divisor) => Limit::DividedIndex { by: self.numbers.quantity(&divisor) },
                    None => Limit::ComputedIndex,
                },
                Origin::Other => Limit::ComputedIndex,
            };
        };
        let Some(axis) = fastest(&affine, &extents) else {
            let Some(last) = (0..extents.len()).rev().find(|axis| extents[*axis] > 1) else { return Limit::Scalar };
            let stride = &affine.strides[last];
            let is_parameter = matches!(&stride.terms[..], [(factors, 1)] if factors.len() == 1 && stride.constant == 0)
                && stride.scalars().all(|scalar| func.param_index(scalar).is_some());
            return Limit::Stride { apart: self.numbers.quantity(stride), is_parameter };
        };
        if (extents[axis] as i64) < run {
            return Limit::ShortRows { elements: extents[axis] };
        }
        if !access.can_be_wide(func) {
            return Limit::Atomic;
        }
        let step = |other: usize| affine.strides[other].as_constant().unwrap_or(0);
        if let Some(other) = (0..extents.len()).find(|other| *other != axis && extents[*other] > 1 && step(*other) % run != 0) {
            return Limit::RowStride { apart: self.numbers.quantity(&affine.strides[other]), run };
        }
        if self.has_unknown_mask(access, axis) { Limit::Mask } else { Limit::NoFastPath }
    }

    /// Does the mask have a conjunct that may differ along the axis and of which nothing is known?
    fn has_unknown_mask(&mut self, access: &Access, axis: usize) -> bool {
        let func = self.numbers.func;
        let Some(mask) = access.mask else { return false };
        masks::conjuncts(func, &mut self.numbers.facts, mask).into_iter().any(|conjunct| {
            let extents = func.ty(conjunct.mask).extents();
            let differs = |axes: &Vec<usize>| axes.iter().zip(&extents).any(|(own, extent)| *own == axis && *extent > 1);
            matches!(conjunct.condition, Condition::Unknown) && conjunct.axes.as_ref().is_none_or(differs)
        })
    }

    /// The conditions that the fast path tests and that do not hold in a launch with these arguments.
    fn at_launch(&mut self, access: &Access, run: i64) -> Vec<Limit> {
        let func = self.numbers.func;
        let extents = func.ty(access.offset).extents();
        let mut limits = Vec::new();
        let Some(affine) = self.numbers.facts.get(func, access.offset) else {
            let Origin::Divided(divisors) = self.numbers.origin(access.offset) else { return limits };
            for divisor in divisors {
                let Some(divisor) = self.uniform(divisor) else { continue };
                if self.numbers.culprit(&divisor, run).is_some() {
                    limits.push(Limit::Divisor { by: self.numbers.quantity(&divisor), run });
                }
            }
            limits.dedup();
            return limits;
        };
        let axis = fastest(&affine, &extents);
        for other in (0..extents.len()).filter(|other| Some(*other) != axis && extents[*other] > 1) {
            let stride = &affine.strides[other];
            if self.numbers.culprit(stride, run).is_some() {
                limits.push(Limit::RowStride { apart: self.numbers.quantity(stride), run });
            }
        }
        let start = self.numbers.start(access.offset).unwrap_or_else(|| affine.start.clone());
        match self.numbers.culprit(&start, run) {
            Some(Culprit::Multiple(at)) => limits.push(Limit::Start { at, run }),
            Some(Culprit::Shift(by)) => limits.push(Limit::Shift { by, run }),
            Some(Culprit::Computed) => limits.push(Limit::ComputedStart { run }),
            None => {}
        }
        // Where rows begin at multiples of the number at which they end, one reason is enough.
        let is_new = |limit: &Limit| match limit {
            Limit::MaskEnd { at, .. } => !limits.iter().any(|known| matches!(known, Limit::Start { at: known, .. } if known == at)),
            _ => true,
        };
        let end = self.mask_end(access, axis, run).filter(is_new);
        limits.extend(end);
        limits
    }

    /// A limit of the mask along the axis that is the same in every program, and not a multiple of a run.
    fn mask_end(&mut self, access: &Access, axis: Option<usize>, run: i64) -> Option<Limit> {
        let func = self.numbers.func;
        let extents = func.ty(access.offset).extents();
        masks::conjuncts(func, &mut self.numbers.facts, access.mask?).into_iter().find_map(|conjunct| {
            let (comparison, own) = conjunct.along_axis(&extents)?;
            let distance = comparison.limit.minus(&comparison.index.start);
            let is_row_mask = Some(own) == axis && self.numbers.is_of_arguments(&distance);
            (is_row_mask && self.numbers.culprit(&distance, run).is_some())
                .then(|| Limit::MaskEnd { at: self.numbers.quantity(&comparison.limit), run })
        })
    }

    /// A tile whose elements are all equal, as a polynomial.
    fn uniform(&mut self, tile: Value) -> Option<Polynomial> {
        self.numbers.facts.get(self.numbers.func, tile).filter(|form| form.is_uniform()).map(|affine| affine.start.clone())
    }
}

/// The last axis along which addresses are consecutive.
fn fastest(affine: &Affine, extents: &[usize]) -> Option<usize> {
    (0..extents.len()).rev().find(|axis| extents[*axis] > 1 && affine.strides[*axis].is(1))
}
