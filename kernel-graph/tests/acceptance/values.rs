//! Tensors as values, and checked runs: tasks 15 and 16.

use galatea::graph::{compile, input};
use galatea::ops::{self, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use crate::model::silu;
use crate::{assert_same, golden, numbers};

/// cache[at] = row
#[kernel]
fn write_row(cache: PtrMut<f32>, row: Ptr<f32>, at: usize, columns: usize) {
    let column = arange(0, 64);
    store(cache + at * columns + column, load(row + column, mask = column < columns), mask = column < columns);
}

fn append(cache: &mut Tensor, row: &Tensor, at: usize) -> Result<()> {
    write_row(cache, row, at, row.numel()).grid(1).launch()
}

pub(crate) fn a_cache_is_written_in_place(device: Device) {
    let (mut cache, row) = (Tensor::zeros(&device, Dtype::F32, [8, 5]).unwrap(), numbers(&device, 5));
    let old = cache.clone();
    let before = ops::copies();
    append(&mut cache, &row, 0).unwrap();
    assert_eq!(ops::copies() - before, 1, "the clone has the old elements, so the first write copies them");
    ops::deny_copies(|| (1..8).try_for_each(|at| append(&mut cache, &row, at))).unwrap();
    assert_eq!(ops::copies() - before, 1);
    assert_eq!(old.to_vec::<f32>().unwrap(), [0.0; 40]);
    assert_eq!(cache.to_vec::<f32>().unwrap(), row.to_vec::<f32>().unwrap().repeat(8));
}

/// The rows of a prompt, one after the other, behind a clone of the cache as it was.
fn prefill(cache: &Tensor, row: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut cache = cache.clone();
    let old = cache.clone();
    for at in 0..8 {
        append(&mut cache, row, at)?;
    }
    Ok((old, cache))
}

pub(crate) fn a_recorded_cache_is_written_in_place(device: Device) {
    let columns = Dim::new("columns", 1..=64);
    let inputs = [input("cache", [&8.into(), &columns], Dtype::F32), input("row", [&columns], Dtype::F32)];
    let compiled = compile(|[cache, row]| prefill(cache, row), inputs, &device).unwrap();
    let (cache, row) = (Tensor::zeros(&device, Dtype::F32, [8, 5]).unwrap(), numbers(&device, 5));
    // On a CUDA GPU, the first run also finds out that no CUDA graph holds a copy.
    compiled.run([&cache, &row]).unwrap();
    for _ in 0..2 {
        let before = ops::copies();
        let outputs = compiled.run([&cache, &row]).unwrap();
        assert_eq!(ops::copies() - before, 1, "an input belongs to the caller, so the first write copies it");
        let (old, new) = prefill(&cache, &row).unwrap();
        assert_same(&outputs[0], &old);
        assert_same(&outputs[1], &new);
        assert_eq!(cache.to_vec::<f32>().unwrap(), [0.0; 40]);
    }
}

/// A step returns the cache that it was given, with another row.
fn decode(cache: &Tensor, row: &Tensor) -> Result<Tensor> {
    let mut cache = cache.clone();
    append(&mut cache, row, 3)?;
    append(&mut cache, row, 5)?;
    Ok(cache)
}

pub(crate) fn a_cache_that_is_given_away_is_not_copied(device: Device) {
    let columns = Dim::new("columns", 1..=64);
    let inputs = [input("cache", [&8.into(), &columns], Dtype::F32), input("row", [&columns], Dtype::F32)];
    let compiled = compile(|[cache, row]| decode(cache, row), inputs, &device).unwrap();
    let (zeros, row) = (Tensor::zeros(&device, Dtype::F32, [8, 5]).unwrap(), numbers(&device, 5));
    let expected = decode(&zeros, &row).unwrap();
    let mut cache = Tensor::zeros(&device, Dtype::F32, [8, 5]).unwrap();
    for _ in 0..3 {
        cache = ops::deny_copies(|| compiled.run_owned([cache, row.clone()])).unwrap().remove(0);
        assert_same(&cache, &expected);
    }
    // A clone keeps the older elements, also then.
    let (kept, before) = (zeros.clone(), ops::copies());
    assert_same(&compiled.run_owned([zeros, row.clone()]).unwrap()[0], &expected);
    assert_eq!((ops::copies() - before, kept.to_vec::<f32>().unwrap()), (1, vec![0.0; 40]));
    let error = compiled.run_owned([row]).unwrap_err().to_string();
    assert_eq!(error, "wrong number of inputs: 2 expected (cache, row), 1 given");
}

/// y[i] = x[i + 1] - x[i], with a mask that is off by one.
#[kernel]
fn differences(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * 64 + arange(0, 64);
    let next = load(x + at + 1, mask = at < n); // one too far
    store(y + at, next - load(x + at, mask = at < n), mask = at < n);
}

fn activated_differences(x: &Tensor) -> Result<Tensor> {
    let x = silu(x)?;
    let (n, mut y) = (x.numel(), x.empty_like()?);
    differences(&x, &mut y, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

pub(crate) fn checked_runs_name_the_line_of_the_kernel(device: Device) {
    let n = Dim::new("n", 1..=1000);
    let compiled = compile(|[x]| activated_differences(x), [input("x", [&n], Dtype::F32)], &device).unwrap();
    let x = numbers(&device, 100);
    compiled.run([&x]).unwrap();
    let checked = compiled.checked();
    let error = checked.run([&x]).unwrap_err().to_string();
    golden("checked.txt", &format!("{error}\n"));
    let line = include_str!("values.rs").lines().position(|line| line.ends_with("// one too far")).unwrap() + 1;
    assert!(error.contains(&format!("values.rs:{line}:")), "{error}");
}
