//! Random programs: the graph after the pass computes what it computes before, and copies no more.
//!
//! The elements of new memory are arbitrary. So the outputs of both graphs are compared as terms, in which an allocation is a variable. The pass is right
//! if one choice of the variables of the graph before makes all outputs equal to those of the graph after.

use std::collections::HashMap;

use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_package::NodeOp;
use kernel_runtime::ops::recorder::{RecordedArg, Value};
use kernel_runtime::ops::{self, Tensor};

use crate::export::record;
use crate::graph::Graph;
use crate::{Session, input, passes, verify};

#[kernel]
fn add(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<f32>) {
    let at = arange(0, 16);
    store(z + at, load(x + at) + load(y + at));
}

#[kernel]
fn double(x: PtrMut<f32>) {
    let at = arange(0, 16);
    store(x + at, load(x + at) * 2.0);
}

/// Writes the first two elements only.
#[kernel]
fn start(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 2);
    store(y + at, load(x + at));
}

/// Writes the first two elements of two results.
#[kernel]
fn split(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>) {
    let at = arange(0, 2);
    let (v, old) = (load(x + at), load(y + at));
    store(y + at, v + load(z + at));
    store(z + at, v - old);
}

/// A random program. Equal operations are frequent. With `is_known`, no element of a result is arbitrary.
fn program(seed: u64, is_known: bool, x: &Tensor) -> Result<[Tensor; 3]> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |end: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % end
    };
    let mut tensors = vec![x.clone()];
    for _ in 0..4 + below(10) {
        let recent = |at: usize| at.min(tensors.len() - 1);
        let (one, other) = (tensors[recent(below(3))].clone(), tensors[below(tensors.len())].clone());
        match below(10) {
            0 | 1 => {
                let mut sum = x.empty_like()?;
                add(&one, &other, &mut sum).grid(1).launch()?;
                tensors.push(sum);
            }
            2 | 3 if !is_known => {
                let mut part = x.empty_like()?;
                start(&one, &mut part).grid(1).launch()?;
                tensors.push(part);
            }
            4 if !is_known => {
                tensors.push(x.empty_like()?);
                if below(2) == 0 {
                    let [mut sum, mut difference] = [x.empty_like()?, x.empty_like()?];
                    split(&one, &mut sum, &mut difference).grid(1).launch()?;
                    tensors.extend([sum, difference]);
                }
            }
            5 => tensors.push(x.zeros_like()?),
            6 => tensors.push(other.reshape([2.into(), other.dim(0) / 2])?.reshape([16])?),
            7 => tensors.push(other.slice(Dim::from(0)..other.dim(0))?),
            8 => {
                let last = tensors.len() - 1;
                double(&mut tensors[last]).grid(1).launch()?;
            }
            _ => {
                let at = below(tensors.len());
                double(&mut tensors[at]).grid(1).launch()?;
            }
        }
    }
    Ok([tensors.len() - 1, below(tensors.len()), below(tensors.len())].map(|at| tensors[at].clone()))
}

/// A value as a term: the number of its entry in a table of different terms.
type Term = usize;

#[derive(Default)]
struct Terms {
    numbers: HashMap<(String, Vec<Term>), Term>,
    /// The operation and the operands of each term. An allocation has its node in the operation.
    entries: Vec<(String, Vec<Term>)>,
}

impl Terms {
    fn term(&mut self, entry: (String, Vec<Term>)) -> Term {
        let new = self.entries.len();
        let number = *self.numbers.entry(entry.clone()).or_insert(new);
        if number == new {
            self.entries.push(entry);
        }
        number
    }

    /// The terms of the outputs. Allocations of graphs with other names are different.
    fn outputs(&mut self, graph: &Graph, name: &str) -> Vec<Term> {
        let mut terms: HashMap<Value, Term> = HashMap::new();
        for number in 0..graph.plan.inputs.len() {
            terms.insert(Value(number as u32), self.term((format!("input {number}"), Vec::new())));
        }
        for (number, node) in graph.plan.nodes.iter().enumerate() {
            let ty = graph.ty(node.results[0]);
            let (operation, operands) = match &node.op {
                NodeOp::Alloc { zeroed: true } => (format!("zeros {ty}"), Vec::new()),
                NodeOp::Alloc { zeroed: false } => (format!("{name} {number}"), Vec::new()),
                // All views of these programs have all elements.
                NodeOp::View { of, .. } => {
                    terms.insert(node.results[0], terms[of]);
                    continue;
                }
                NodeOp::Launch(launch) => {
                    let tensor =
                        |(_, arg): (_, &RecordedArg)| if let RecordedArg::Tensor { value, .. } = arg { Some(terms[value]) } else { None };
                    (launch.kernel().to_owned(), launch.args().filter_map(tensor).collect())
                }
                NodeOp::Extern(_) => unreachable!("these programs have no opaque ops"),
            };
            for (at, result) in node.results.iter().enumerate() {
                let operation = if node.results.len() == 1 { operation.clone() } else { format!("{operation} {at}") };
                terms.insert(*result, self.term((operation, operands.clone())));
            }
        }
        graph.plan.outputs.iter().map(|output| terms[output]).collect()
    }

    /// Whether a choice of the variables, which extends the known ones, makes a term equal to another one.
    fn matches(&self, term: Term, other: Term, chosen: &mut HashMap<Term, Term>) -> bool {
        if let Some(known) = chosen.get(&term) {
            return *known == other;
        }
        let ((operation, operands), (of_other, operands_of_other)) = (&self.entries[term], &self.entries[other]);
        let is_equal = operation.starts_with("before ")
            || operation == of_other && operands.iter().zip(operands_of_other).all(|(one, other)| self.matches(*one, *other, chosen));
        chosen.insert(term, other);
        is_equal
    }
}

fn recorded(seed: u64, is_known: bool) -> Graph {
    let n = Dim::new("n", 1..=1);
    let graph = record(|x| program(seed, is_known, x[0]), vec![input("x", [16], Dtype::F32), input("n", [&n], Dtype::F32)], false);
    graph.unwrap().0
}

/// Compares the outputs of a graph before and after the passes. Returns the numbers of their nodes.
fn compare(record: &dyn Fn() -> Graph) -> [usize; 2] {
    let [mut before, mut after] = [record(), record()];
    for pass in passes::ALL {
        pass(&mut after);
        verify::run(&after).unwrap();
    }
    passes::dead_code::run(&mut before);
    let mut terms = Terms::default();
    let outputs = [terms.outputs(&before, "before"), terms.outputs(&after, "after")];
    let mut chosen = HashMap::new();
    for (one, other) in outputs[0].iter().zip(&outputs[1]) {
        assert!(terms.matches(*one, *other, &mut chosen), "{before}\n{after}");
    }
    [before.plan.nodes.len(), after.plan.nodes.len()]
}

#[test]
fn outputs_are_equal_for_a_choice_of_arbitrary_elements() {
    let mut merged = 0;
    for seed in 0..3000 {
        let [before, after] = compare(&|| recorded(seed, false));
        merged += usize::from(after < before);
    }
    assert!(merged > 1000, "the pass changed only {merged} programs");
}

/// Two values with arbitrary elements that are both outputs, so neither takes the place of the other. Their sums with `x` differ, too.
#[test]
fn arbitrary_elements_of_outputs_are_seen() {
    let sum = |one: &Tensor, other: &Tensor| -> Result<Tensor> {
        let mut sum = one.empty_like()?;
        add(one, other, &mut sum).grid(1).launch()?;
        Ok(sum)
    };
    let part = |x: &Tensor| -> Result<Tensor> {
        let mut part = x.empty_like()?;
        start(x, &mut part).grid(1).launch()?;
        Ok(part)
    };
    let of = |body: &dyn Fn(&Tensor) -> Result<[Tensor; 3]>| {
        compare(&|| record(|x| body(x[0]), vec![input("x", [16], Dtype::F32)], false).unwrap().0)
    };
    let counts = of(&|x| {
        let [one, other] = [part(x)?, part(x)?];
        let [first, second] = [sum(&one, x)?, sum(&other, x)?];
        Ok([one, other, sum(&first, &second)?])
    });
    assert_eq!(counts, [10, 10]);
    let counts = of(&|x| {
        let [one, other] = [part(x)?, part(x)?];
        let [second, first] = [sum(&other, x)?, sum(&one, x)?];
        Ok([one, other, sum(&first, &second)?])
    });
    assert_eq!(counts, [10, 10]);
    let counts = of(&|x| {
        let both = || -> Result<[Tensor; 2]> {
            let [mut sum, mut difference] = [x.empty_like()?, x.empty_like()?];
            split(x, &mut sum, &mut difference).grid(1).launch()?;
            Ok([sum, difference])
        };
        let [[one, first], [other, second]] = [both()?, both()?];
        Ok([first, second, sum(&sum(&one, x)?, &sum(&other, x)?)?])
    });
    assert_eq!(counts, [12, 12], "the results of a launch have arbitrary elements in common");
}

#[test]
fn runs_give_the_same_elements_and_copy_no_more() {
    let device = Device::cpu();
    let x: Tensor = device.tensor(&(0..16).map(|i| i as f32 * 0.25 - 1.0).collect::<Vec<f32>>()).unwrap().into();
    let one: Tensor = device.tensor(&[1.0f32]).unwrap().into();
    for seed in 0..1000 {
        let (mut before, mut after) = (recorded(seed, true), recorded(seed, true));
        passes::ALL.iter().for_each(|pass| pass(&mut after));
        passes::dead_code::run(&mut before);
        let runs = [before, after].map(|graph| {
            let session = Session::new(graph, &device).unwrap();
            let start = ops::copies();
            let outputs = session.run([&x, &one]).unwrap();
            let copies = ops::copies() - start;
            (outputs.iter().map(|output| output.to_vec::<f32>().unwrap()).collect::<Vec<_>>(), copies, session)
        });
        let [(expected, most, before), (outputs, copies, after)] = &runs;
        let graphs = || format!("program {seed}:\n{:?}\n{:?}", before.plan(), after.plan());
        assert_eq!(outputs, expected, "{}", graphs());
        assert!(copies <= most, "{copies} copies instead of {most} in {}", graphs());
    }
}
