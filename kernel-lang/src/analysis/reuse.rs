//! Reuse: does the kernel read the elements of a load again, in another program, another iteration or by another load?
//!
//! ```text
//! load %x, %pid * %n + i, i < 1024            a row for each program                          once
//! load %b, i, i < 1024                        all programs read the same elements             shared
//! o = %pid * 1024 + i
//! load %b, o % %n                             so do programs with the same remainder          shared
//! load %x, (o % %n) * %m + o / %n             quotient and remainder differ between programs  once, in parts
//! load %x, %pid * %n / 16 * 16 + i            a row that begins at a multiple of 16           once
//! load %x, %pid / 16 * 16 + i                 16 programs read the same elements              shared
//! load %x, (load %rows, %pid) * %n + i        a row whose number was loaded                   gathered
//! for %k in 0 .. %n step 1024 { load %x, %pid * %n + %k + i }    the second loop reads ..     again
//! for %k in 0 .. %n step 1024 { load %x, %pid * %n + %k + i }    .. what the first has read   last
//! ```
//!
//! An element has one index for each coordinate of the work: the program ids that the kernel uses, the indices of the loops around the load,
//! and the positions in the tile. A load reads each element once if its index contains all of them and no two different coordinates give
//! one index. An index can contain a coordinate in pieces, by quotients and remainders.
//!
//! A scalar that is rounded to a multiple of a constant counts as if it were not rounded (`rounding`).
//!
//! The answer is a guess that selects cache hints, and no result may depend on it: the analysis ignores masks, takes numbers to be
//! positive, and takes an extent such as `%n` of `%row * %n + %column` to be larger than the columns.
//!
//! A load that reads a small part of what another load of the tensor reads, such as one element of a row, does not count beside it.
//!
//! Forms are short (see [`Polynomial`]), an index is taken apart into at most `MOST_PARTS` values, and at most `MOST_READS` loads of a
//! tensor are compared. So the analysis takes time linear in the size of the kernel.

mod rounding;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::loops::{Loop, carried_step};
use crate::analysis::polynomial::{Polynomial, Product};
use crate::ir::{BinaryOp, Def, Function, Inst, Op, Region, SideTable, Value, postorder};
use crate::target::SECTOR;

/// An index of more parts is taken to be shared.
const MOST_PARTS: usize = 64;

/// Loads of a tensor that has more of them are taken to be shared.
const MOST_READS: usize = 32;

/// A loop whose number of iterations is unknown is taken to have so many.
const ITERATIONS: u128 = 16;

/// A load of a tensor does not count beside one that reads at least so many times as many bytes.
const FEW: u128 = 64;

/// How often the elements of a load are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reuse {
    /// Each element is read once, and its neighbours are read by the same program in the same iteration.
    Once,
    /// Each element is read once, but its neighbours may be read by other programs or in other iterations.
    Parts,
    /// A later loop of the program reads the elements again.
    Again,
    /// An earlier loop of the program has read the elements, and no later one does.
    Last,
    /// The index was loaded, so the elements may be read any number of times.
    Gathered,
    /// Other programs, iterations or loads read the elements, too, or nothing is known.
    Shared,
}

/// A load and its context.
#[derive(Clone, Debug)]
pub struct Read {
    /// The op.
    pub inst: Inst,
    /// The loops around it, from the outside to the inside: `for` and `while`.
    pub loops: Vec<Inst>,
    /// How often its elements are read.
    pub reuse: Reuse,
}

/// The loads of a kernel, in order.
pub fn compute(func: &Function) -> Vec<Read> {
    let mut reads = Vec::new();
    collect(func, func.body, &mut Vec::new(), &mut reads);
    let mut indices = Indices::new(func);
    let forms: Vec<Option<Index>> = reads.iter().map(|read| indices.index(read)).collect();
    for (read, form) in reads.iter_mut().zip(&forms) {
        read.reuse = form.as_ref().map_or(Reuse::Shared, |form| indices.alone(read, form));
    }
    let mut tensors: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    for (at, read) in reads.iter().enumerate() {
        let Op::Load { base, .. } = func.inst(read.inst).op else { continue };
        tensors.entry(base).or_default().push(at);
    }
    for mut group in tensors.into_values() {
        let bytes = |at: &usize| bytes(func, func.result(reads[*at].inst), &reads[*at].loops);
        let most = group.iter().map(bytes).max().unwrap_or_default();
        let few: Vec<usize> = group.extract_if(.., |at| bytes(at).saturating_mul(FEW) <= most).collect();
        few.into_iter().for_each(|at| reads[at].reuse = Reuse::Shared);
        if group.len() < 2 {
            continue;
        }
        let found = indices.together(&reads, &forms, &group);
        group.into_iter().zip(found).for_each(|(at, reuse)| reads[at].reuse = reuse);
    }
    reads
}

/// The bytes of a tile that is read or stored in all iterations of these loops.
pub fn bytes(func: &Function, tile: Value, loops: &[Inst]) -> u128 {
    let ty = func.ty(tile);
    let once = ty.numel() as u128 * ty.dtype().bytes() as u128;
    loops.iter().fold(once, |bytes, inst| bytes.saturating_mul(iterations(func, *inst)))
}

fn iterations(func: &Function, inst: Inst) -> u128 {
    let counted = Loop::of(func, inst).and_then(|around| {
        let (first, last) = around.index_range(func)?;
        u128::try_from((last - first) / around.constant_step(func)? + 1).ok()
    });
    counted.unwrap_or(ITERATIONS)
}

fn collect(func: &Function, region: Region, loops: &mut Vec<Inst>, reads: &mut Vec<Read>) {
    for &inst in &func.region(region).insts {
        let op = &func.inst(inst).op;
        if let Op::Load { .. } = op {
            reads.push(Read { inst, loops: loops.clone(), reuse: Reuse::Shared });
        }
        let is_loop = matches!(op, Op::For { .. } | Op::While { .. });
        loops.extend(is_loop.then_some(inst));
        op.for_each_region(&mut |inner| collect(func, inner, loops, reads));
        loops.truncate(loops.len() - usize::from(is_loop));
    }
}

/// A coordinate of the work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Coordinate {
    /// The program id along an axis of the grid.
    Program(u32),
    /// The iteration of a loop.
    Iteration(Inst),
    /// The position along an axis of the tile.
    Position(usize),
}

/// A term of an index: a coordinate, or a quotient or remainder of some, times a factor.
#[derive(Clone, Debug)]
struct Term {
    /// The coefficient if it is a single product: its scalars, and its number. The number includes the step of a loop.
    factor: Option<(Product, i128)>,
    /// The number of values that the coordinate has, if it is known.
    extent: Option<i128>,
    /// Do neighbours in the tile differ by one in it?
    is_innermost: bool,
}

/// The index of a load.
#[derive(Clone, Debug)]
struct Index {
    form: Rc<Affine>,
    terms: Vec<Term>,
}

/// The part of a number between two divisors: `number % high / low`.
#[derive(Clone, PartialEq, Debug)]
struct Digit {
    number: Value,
    low: Polynomial,
    high: Option<Polynomial>,
}

struct Indices<'a> {
    func: &'a Function,
    facts: AffineFacts,
    /// Of the parameters of loop bodies: the loop.
    loops: FxHashMap<Region, Inst>,
    /// The axes of the grid whose program id the kernel uses.
    programs: FxHashSet<u32>,
    /// Of the values that have been visited: do they differ between programs, iterations or elements?
    varies: SideTable<Value, Option<bool>>,
}

impl Indices<'_> {
    fn new(func: &Function) -> Indices<'_> {
        let (mut loops, mut programs) = (FxHashMap::default(), FxHashSet::default());
        for inst in func.all_insts() {
            match func.inst(inst).op {
                Op::For { body, .. } => _ = loops.insert(body, inst),
                Op::ProgramId { axis } => _ = programs.insert(axis),
                _ => {}
            }
        }
        Indices { func, facts: AffineFacts::over_tiles(), loops, programs, varies: SideTable::new() }
    }

    /// The terms of a load's index; `None` if it is not a sum of them.
    fn index(&mut self, read: &Read) -> Option<Index> {
        let Op::Load { offset, .. } = self.func.inst(read.inst).op else { return None };
        let form = self.facts.get(self.func, offset)?;
        let start = self.unrounded(&form.start, self.element_bytes(read));
        let mut terms = Vec::new();
        for (stride, extent) in form.strides.iter().zip(extents(self.func, offset)) {
            if extent > 1 && !stride.is(0) {
                terms.push(Term { factor: product(stride), extent: Some(extent), is_innermost: true });
            }
        }
        for part in self.parts(&start) {
            let coefficient = start.coefficient(part)?;
            if coefficient.scalars().any(|scalar| self.varies(scalar)) {
                return None;
            }
            terms.push(self.term(part, &coefficient)?);
        }
        Some(Index { form, terms })
    }

    fn term(&mut self, part: Value, coefficient: &Polynomial) -> Option<Term> {
        if let Some(around) = self.loop_index(part) {
            let extent = around.index_range(self.func).zip(around.constant_step(self.func));
            let extent = extent.map(|((first, last), step)| i128::from((last - first) / step) + 1);
            let step = self.facts.get(self.func, around.step)?;
            return Some(Term { factor: product(&coefficient.times(&step.start)?), extent, is_innermost: false });
        }
        if let Some((_, _, step)) = self.carried(part) {
            return Some(Term { factor: product(&coefficient.times(&step)?), extent: None, is_innermost: false });
        }
        let digit = self.digit(part);
        let is_innermost = digit.as_ref().is_some_and(|digit| digit.low.is(1)) && !self.func.ty(part).is_scalar();
        let ends = digit.and_then(|digit| Some((digit.low.as_constant()?, digit.high?.as_constant()?)));
        let extent = ends.and_then(|(low, high)| high.checked_div(low)).map(i128::from);
        Some(Term { factor: product(coefficient), extent, is_innermost })
    }

    /// The terms of a polynomial that differ between programs, iterations or elements.
    fn parts(&mut self, sum: &Polynomial) -> Vec<Value> {
        let mut parts: Vec<Value> = sum.scalars().filter(|scalar| self.varies(*scalar)).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// How often the elements of a load are read, if no other load reads them.
    fn alone(&mut self, read: &Read, index: &Index) -> Reuse {
        let Op::Load { offset, .. } = self.func.inst(read.inst).op else { return Reuse::Shared };
        let positions = extents(self.func, offset).into_iter().enumerate().filter(|(_, extent)| *extent > 1);
        let mut needed: FxHashSet<Coordinate> = positions.map(|(axis, _)| Coordinate::Position(axis)).collect();
        needed.extend(self.programs.iter().map(|axis| Coordinate::Program(*axis)));
        needed.extend(read.loops.iter().map(|inst| Coordinate::Iteration(*inst)));
        let bytes = self.element_bytes(read);
        let is_small = (self.func.ty(offset).numel() as i128 * bytes) < LINE;
        if is_small {
            return Reuse::Shared;
        }
        if !self.coordinates(offset, bytes).is_some_and(|found| found.is_superset(&needed)) || overlaps_itself(index) {
            let is_gathered = self.parts(&index.form.start).into_iter().any(|part| self.is_loaded(part));
            return if is_gathered { Reuse::Gathered } else { Reuse::Shared };
        }
        let is_line = |term: &Term| match &term.factor {
            Some((scalars, number)) => {
                let step = number * bytes;
                term.is_innermost
                    && scalars.is_empty()
                    && step <= WIDEST
                    && term.extent.is_none_or(|extent| extent * step >= i128::from(SECTOR))
            }
            None => false,
        };
        if index.terms.iter().any(is_line) { Reuse::Once } else { Reuse::Parts }
    }

    /// The bytes of an element.
    fn element_bytes(&self, read: &Read) -> i128 {
        self.func.ty(self.func.result(read.inst)).dtype().bytes() as i128
    }

    /// Was the value loaded, and perhaps cast?
    fn is_loaded(&self, value: Value) -> bool {
        match self.func.def_op(value) {
            Some(Op::Cast { x }) => matches!(self.func.def_op(*x), Some(Op::Load { .. })),
            Some(op) => matches!(op, Op::Load { .. }),
            None => false,
        }
    }

    /// The coordinates that an index of elements of so many bytes contains; `None` if it has too many parts.
    fn coordinates(&mut self, offset: Value, bytes: i128) -> Option<FxHashSet<Coordinate>> {
        let (mut found, mut digits) = (FxHashSet::default(), Vec::<Digit>::new());
        let (mut seen, mut open) = (FxHashSet::default(), vec![offset]);
        while let Some(index) = open.pop() {
            if !seen.insert(index) {
                continue;
            }
            if seen.len() + digits.len() > MOST_PARTS {
                return None;
            }
            let Some(form) = self.facts.get(self.func, index) else { continue };
            // The axes of another shape are not those of the load.
            if self.func.ty(index).shape() == self.func.ty(offset).shape() {
                let strides = form.strides.iter().enumerate().filter(|(_, stride)| !stride.is(0));
                found.extend(strides.map(|(axis, _)| Coordinate::Position(axis)));
            }
            let known = digits.len();
            let start = self.unrounded(&form.start, bytes);
            for part in self.parts(&start) {
                match self.func.def_op(part) {
                    Some(Op::ProgramId { axis }) => _ = found.insert(Coordinate::Program(*axis)),
                    Some(_) => digits.extend(self.digit(part)),
                    None => self.loop_parameter(part, &mut found, &mut open),
                }
            }
            let whole = digits[known..].iter().map(|digit| digit.number).filter(|number| is_whole(&digits, *number));
            open.extend(whole);
        }
        Some(found)
    }

    /// Adds the coordinates in a parameter of a loop: the iteration, and those of its first value, which goes to `open`.
    fn loop_parameter(&mut self, param: Value, found: &mut FxHashSet<Coordinate>, open: &mut Vec<Value>) {
        if let Some((inst, init, _)) = self.carried(param) {
            found.insert(Coordinate::Iteration(inst));
            open.push(init);
            return;
        }
        let Some(around) = self.loop_index(param) else { return };
        found.insert(Coordinate::Iteration(around.inst));
        // A loop from a loaded bound reads a segment. Segments are apart if their bounds are different elements.
        let loaded = match self.func.def_op(around.lower) {
            Some(Op::Cast { x }) => *x,
            _ => around.lower,
        };
        open.push(match self.func.def_op(loaded) {
            Some(Op::Load { offset, .. }) => *offset,
            _ => around.lower,
        });
    }

    /// Of a scalar that a loop carries: the loop, its first value, and the uniform step by which each iteration moves it.
    fn carried(&mut self, param: Value) -> Option<(Inst, Value, Polynomial)> {
        let Def::Param(region, position) = self.func.def(param) else { return None };
        let (inst, carried) = (*self.loops.get(&region)?, position.checked_sub(1)?);
        let Op::For { init, .. } = &self.func.inst(inst).op else { return None };
        let step = carried_step(self.func, &mut self.facts, region, carried).filter(|_| self.func.ty(param).is_scalar())?.start;
        (!step.is(0) && !step.scalars().any(|scalar| self.varies(scalar))).then(|| (inst, init[carried], step))
    }

    /// The loop whose index this is.
    fn loop_index(&self, value: Value) -> Option<Loop> {
        let Def::Param(region, 0) = self.func.def(value) else { return None };
        Loop::of(self.func, *self.loops.get(&region)?)
    }

    /// The digit that a quotient or remainder, or a quotient of a remainder and so on, is.
    fn digit(&mut self, value: Value) -> Option<Digit> {
        let mut divisors = Vec::new();
        let mut number = value;
        while let Some(&Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs }) = self.func.def_op(number) {
            let divisor = self.facts.get(self.func, rhs).filter(|form| form.is_uniform())?.start.clone();
            divisors.push((op, divisor));
            // A rotation, `(number % n + shift) % n`, has the same digits in another order.
            let rotated =
                self.facts.get(self.func, lhs).filter(|form| form.is_uniform()).and_then(|form| match self.parts(&form.start)[..] {
                    [part] if form.start.coefficient(part)?.is(1) => Some(part),
                    _ => None,
                });
            number = rotated.filter(|part| self.is_remainder(*part, rhs) && op == BinaryOp::Rem).unwrap_or(lhs);
            if divisors.len() > MOST_PARTS {
                return None;
            }
        }
        if divisors.is_empty() {
            return None;
        }
        let mut digit = Digit { number, low: Polynomial::constant(1), high: None };
        for (op, divisor) in divisors.into_iter().rev() {
            let product = digit.low.times(&divisor)?;
            match op {
                BinaryOp::Div => digit.low = product,
                _ => digit.high = Some(product),
            }
        }
        Some(digit)
    }

    /// Is it a remainder by that divisor?
    fn is_remainder(&self, value: Value, divisor: Value) -> bool {
        matches!(self.func.def_op(value), Some(Op::Binary { op: BinaryOp::Rem, rhs, .. }) if *rhs == divisor)
    }

    /// How often the elements of the loads of one tensor are read.
    fn together(&mut self, reads: &[Read], forms: &[Option<Index>], group: &[usize]) -> Vec<Reuse> {
        let mut found: Vec<Reuse> = group.iter().map(|at| reads[*at].reuse).collect();
        if group.len() > MOST_READS {
            return vec![Reuse::Shared; group.len()];
        }
        let (mut is_again, mut is_last) = (vec![false; group.len()], vec![false; group.len()]);
        for later in 0..group.len() {
            for earlier in 0..later {
                let [(first, index), (second, other)] = [earlier, later].map(|at| (&reads[group[at]], &forms[group[at]]));
                let pair = index.as_ref().zip(other.as_ref());
                match pair.map_or(Meeting::Unknown, |(index, other)| self.meeting((first, index), (second, other))) {
                    Meeting::Never => {}
                    Meeting::Repeats => (is_again[earlier], is_last[later]) = (true, true),
                    Meeting::Unknown => (found[earlier], found[later]) = (Reuse::Shared, Reuse::Shared),
                }
            }
        }
        // Loads of one tensor share lines.
        if found.contains(&Reuse::Shared) {
            return vec![Reuse::Shared; group.len()];
        }
        for (at, reuse) in found.iter_mut().enumerate() {
            match (is_again[at], is_last[at]) {
                (true, _) => *reuse = Reuse::Again,
                (false, true) => *reuse = Reuse::Last,
                (false, false) => {}
            }
        }
        found
    }

    /// Do two loads of one tensor read the same elements?
    fn meeting(&mut self, (first, index): (&Read, &Index), (second, other): (&Read, &Index)) -> Meeting {
        let mut form = other.form.clone();
        let same = first.loops.iter().zip(&second.loops).take_while(|(own, other)| own == other).count();
        let is_one_loop = first.loops.len() == same && second.loops.len() == same;
        if !is_one_loop {
            let ([own], [other]) = (&first.loops[same..], &second.loops[same..]) else { return Meeting::Unknown };
            let [Some(own), Some(other)] = [*own, *other].map(|inst| Loop::of(self.func, inst)) else { return Meeting::Unknown };
            if !self.are_equal(own.lower, other.lower) || !self.are_equal(own.step, other.step) {
                return Meeting::Unknown;
            }
            let (own, other) = (own.index(self.func), other.index(self.func));
            let renamed = |value: Value| if value == other { own } else { value };
            let strides = form.strides.iter().map(|stride| stride.map(&renamed)).collect();
            form = Rc::new(Affine { start: form.start.map(&renamed), strides });
        }
        if index.form.strides != form.strides {
            return Meeting::Unknown;
        }
        let distance = form.start.minus(&index.form.start);
        if distance.scalars().any(|scalar| self.varies(scalar)) {
            return Meeting::Unknown;
        }
        match (is_apart(index, &distance), is_one_loop) {
            (true, _) => Meeting::Never,
            (false, false) if distance.is(0) => Meeting::Repeats,
            (false, _) => Meeting::Unknown,
        }
    }

    fn are_equal(&mut self, lhs: Value, rhs: Value) -> bool {
        lhs == rhs || self.facts.get(self.func, lhs) == self.facts.get(self.func, rhs)
    }

    /// Does a value differ between programs, iterations or elements?
    fn varies(&mut self, value: Value) -> bool {
        let func = self.func;
        let enter = |varies: &mut SideTable<Value, Option<bool>>, value: Value, before: &mut Vec<Value>| {
            if let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            varies[value].is_none()
        };
        let leave = |varies: &mut SideTable<Value, Option<bool>>, value: Value| {
            let varied = match func.def_op(value) {
                None => func.param_index(value).is_none(),
                Some(Op::ProgramId { .. } | Op::Arange { .. } | Op::Load { .. }) => true,
                Some(op) if op.has_effects() => true,
                Some(op) => {
                    let mut any = op.has_regions();
                    op.for_each_operand(&mut |operand| any |= varies[operand] == Some(true));
                    any
                }
            };
            varies[value] = Some(varied);
        };
        postorder(&mut self.varies, value, enter, leave);
        self.varies[value] == Some(true)
    }
}

/// The bytes of the widest access of a thread.
const WIDEST: i128 = 16;

/// The bytes of a cache line.
const LINE: i128 = crate::target::LINE as i128;

/// Do two loads read the same elements?
enum Meeting {
    /// They never do.
    Never,
    /// The second one, in a later loop, reads exactly what the first one has read.
    Repeats,
    /// They may.
    Unknown,
}

fn extents(func: &Function, tile: Value) -> Vec<i128> {
    func.ty(tile).shape().iter().map(|extent| extent.as_int().unwrap_or(1)).collect()
}

/// A coefficient, if it is a single product: its scalars and the magnitude of its number.
fn product(coefficient: &Polynomial) -> Option<(Product, i128)> {
    let (scalars, number) = match &coefficient.terms[..] {
        [] => (Product::Empty, coefficient.constant),
        [(scalars, number)] if coefficient.constant == 0 => (scalars.clone(), *number),
        _ => return None,
    };
    Some((scalars, i128::from(number).abs()))
}

/// Can two different coordinates give one index? Terms with different scalars in their coefficients are taken to be digits of a number, as
/// `%row * %n` and `%column` are.
fn overlaps_itself(index: &Index) -> bool {
    let mut groups: FxHashMap<&[Value], Vec<(i128, Option<i128>)>> = FxHashMap::default();
    for term in &index.terms {
        let Some((scalars, number)) = &term.factor else { continue };
        groups.entry(scalars).or_default().push((*number, term.extent));
    }
    groups.into_values().any(|mut terms| {
        terms.sort_unstable_by_key(|(number, extent)| (*number, extent.is_none()));
        let mut reach = Some(0);
        !terms.into_iter().all(|(number, extent)| {
            let is_above = reach.is_some_and(|reach| number > reach);
            reach = reach.zip(extent).map(|(reach, extent)| reach + number * (extent - 1));
            is_above
        })
    })
}

/// Are two loads with this index, at this distance from each other, sure to read different elements?
fn is_apart(index: &Index, distance: &Polynomial) -> bool {
    if index.terms.iter().any(|term| term.factor.is_none()) {
        return false;
    }
    let constant = (distance.constant != 0).then_some((&[][..], distance.constant));
    let products = distance.terms.iter().map(|(scalars, number)| (&scalars[..], *number)).chain(constant);
    products.into_iter().any(|(scalars, number)| {
        let terms = index.terms.iter().filter_map(|term| match &term.factor {
            Some((own, number)) => (own[..] == *scalars).then_some((*number, term.extent)),
            None => None,
        });
        // The terms of unknown extents give the multiples of `period`; around each of them, the others reach up to `reach`.
        let (mut unit, mut period, mut reach) = (0, 0, 0);
        for (step, extent) in terms {
            unit = greatest_common_divisor(unit, step);
            match extent {
                Some(extent) => reach += step * (extent - 1),
                None => period = greatest_common_divisor(period, step),
            }
        }
        let number = i128::from(number).abs();
        let rest = if period == 0 { number } else { (number % period).min(period - number % period) };
        unit == 0 || number % unit != 0 || rest > reach
    })
}

fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Do the digits of a number determine it?
fn is_whole(digits: &[Digit], number: Value) -> bool {
    let mut at = Polynomial::constant(1);
    for _ in 0..digits.len() {
        let Some(digit) = digits.iter().find(|digit| digit.number == number && digit.low == at) else { return false };
        match &digit.high {
            Some(high) => at = high.clone(),
            None => return true,
        }
    }
    false
}
