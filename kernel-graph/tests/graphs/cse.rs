//! Common subexpressions.

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Graph, Level, Session, input};

use crate::kernels::{mlp_op, row_sums, scale, silu, silu_op, sum_difference};
use crate::numbers;
use crate::round_trip::export;

fn recorded<const N: usize>(mut body: impl FnMut(&Tensor) -> Result<[Tensor; N]>) -> Graph {
    let n = Dim::new("n", 4..=128);
    export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap()
}

/// The lines of the operations, without kernels' arguments that are the same in all tests.
fn lines<const N: usize>(body: impl FnMut(&Tensor) -> Result<[Tensor; N]>) -> Vec<String> {
    let text = recorded(body).to_string().replace("<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1]", "").replace(" [cdiv(n, 64), 1, 1]", "");
    text.lines().skip(1).map(|line| line.trim().replace(", n = n)", ")")).collect()
}

pub(crate) fn equal_views_are_one() {
    let found = lines(|x| {
        let half = || x.slice(Dim::from(1)..x.dim(0));
        let [one, other] = [half()?, half()?];
        let part = other.slice(Dim::from(2)..other.dim(0))?;
        let whole = x.slice(Dim::from(0)..x.dim(0))?.reshape([x.numel()])?;
        let matrix = |x: &Tensor| x.reshape([1.into(), x.numel()]);
        let sums = row_sums(&matrix(&part)?)?;
        let (sum, _) = sum_difference(&sums, &row_sums(&matrix(&x.slice(Dim::from(3)..x.dim(0))?)?)?)?;
        Ok([one, other, whole, sum])
    });
    assert_eq!(
        found,
        [
            "%0 = view %x at 1 : f32[n - 1]",
            "%1 = view %x at 3 : f32[1, n - 3]",
            "%2 = alloc : f32[1]",
            "%3 = launch sum_rows<BLOCK = 32> [1, 1, 1] (x = %1, y = %2) : f32[1]",
            "%4 = alloc : f32[1]",
            "%5 = alloc : f32[1]",
            "%6, %7 = launch sum_and_difference [1, 1, 1] (a = %3, b = %3, sum = %4, difference = %5, n = 1) : f32[1], f32[1]",
            "return %0, %0, %x, %6",
        ]
    );
}

pub(crate) fn views_that_differ_stay() {
    let found = lines(|x| {
        let views = [x.slice(Dim::from(0)..Dim::from(2))?, x.slice(Dim::from(1)..Dim::from(3))?, x.slice(Dim::from(1)..Dim::from(4))?];
        let mut y = silu(x)?;
        let before = y.slice(Dim::from(0)..Dim::from(2))?;
        scale(&mut y, 0.5, 1)?;
        let after = y.slice(Dim::from(0)..Dim::from(2))?;
        let [a, b, c] = views;
        Ok([a, b, c, before, after])
    });
    let views = found.iter().filter(|line| line.contains("view")).count();
    assert_eq!(views, 5, "{found:?}");
}

pub(crate) fn zeros_that_nothing_writes_are_one() {
    let zeros = |x: &Tensor| x.zeros_like();
    let read = lines(|x| {
        let (sum, difference) = sum_difference(&zeros(x)?, &zeros(x)?)?;
        Ok([sum_difference(&sum, &difference)?.0, zeros(x)?])
    });
    assert_eq!(read[0], "%0 = zeros : f32[n]");
    assert_eq!(read.iter().filter(|line| line.contains("zeros")).count(), 1, "{read:?}");
    let written = lines(|x| {
        let [mut one, other, mut part] = [zeros(x)?, zeros(x)?, zeros(x)?.slice(Dim::from(0)..Dim::from(2))?];
        scale(&mut one, 0.5, 1)?;
        scale(&mut part, 0.5, 1)?;
        Ok([one, other, part])
    });
    assert_eq!(written.iter().filter(|line| line.contains("zeros")).count(), 3, "the launches would copy: {written:?}");
    let returned = lines(|x| Ok([zeros(x)?, zeros(x)?]));
    assert_eq!(returned.len(), 3, "the caller may write both: {returned:?}");
    let types = lines(|x| Ok([sum_difference(&zeros(x)?, &zeros(&x.slice(Dim::from(0)..Dim::from(2))?)?)?.0]));
    assert_eq!(types.iter().filter(|line| line.contains("zeros")).count(), 2, "{types:?}");
}

pub(crate) fn equal_launches_are_one() {
    let found = lines(|x| {
        let chain = || -> Result<Tensor> {
            let mut y = silu(&silu(x)?)?;
            scale(&mut y, 0.5, 3)?;
            Ok(y)
        };
        let [one, other] = [chain()?, chain()?];
        Ok([sum_difference(&one, &other)?.1])
    });
    assert_eq!(
        found,
        [
            "%0 = alloc : f32[n]",
            "%1 = launch silu_elements (x = %x, y = %0) : f32[n]",
            "%2 = alloc : f32[n]",
            "%3 = launch silu_elements (x = %1, y = %2) : f32[n]",
            "%4 = launch scale_elements (y = %3, a = 0.5, b = 3) : f32[n]",
            "%5 = alloc : f32[n]",
            "%6 = alloc : f32[n]",
            "%7, %8 = launch sum_and_difference (a = %4, b = %4, sum = %5, difference = %6) : f32[n], f32[n]",
            "return %8",
        ]
    );
}

/// The number of launches of a kernel.
fn launches(lines: &[String], kernel: &str) -> usize {
    lines.iter().filter(|line| line.contains(&format!("launch {kernel}"))).count()
}

pub(crate) fn launches_that_differ_stay() {
    let scalars = lines(|x| {
        let [mut one, mut other] = [silu(x)?, silu(x)?];
        scale(&mut one, 0.5, 3)?;
        scale(&mut other, 0.5, 4)?;
        Ok([sum_difference(&one, &other)?.0])
    });
    assert_eq!((launches(&scalars, "silu"), launches(&scalars, "scale")), (2, 2), "a copy would replace the first launch: {scalars:?}");
    let returned = lines(|x| Ok([silu(x)?, silu(x)?]));
    assert_eq!(launches(&returned, "silu"), 2, "the caller may write both: {returned:?}");
    let views = lines(|x| Ok([silu(x)?.slice(Dim::from(0)..Dim::from(2))?, silu(x)?]));
    assert_eq!(launches(&views, "silu"), 2, "the caller may write both: {views:?}");
    let inputs = lines(|x| {
        let y = silu(x)?;
        Ok([sum_difference(x, &y)?.0, sum_difference(&y, x)?.0])
    });
    assert_eq!(launches(&inputs, "sum_and"), 2, "{inputs:?}");
    let grids = lines(|x| {
        let launch = |programs: usize| -> Result<Tensor> {
            let mut y = x.empty_like()?;
            crate::kernels::silu_elements::<f32, 64>(x, &mut y, x.numel()).grid(programs).launch()?;
            Ok(y)
        };
        let [one, other] = [launch(1)?, launch(2)?];
        Ok([sum_difference(&one, &other)?.0])
    });
    assert_eq!(launches(&grids, "silu"), 2, "{grids:?}");
    let constants = lines(|x| {
        let launch = |block: usize| -> Result<Tensor> {
            let mut y = x.empty_like()?;
            match block {
                32 => crate::kernels::silu_elements::<f32, 32>(x, &mut y, x.numel()).grid(1).launch()?,
                _ => crate::kernels::silu_elements::<f32, 64>(x, &mut y, x.numel()).grid(1).launch()?,
            }
            Ok(y)
        };
        let [one, other] = [launch(32)?, launch(64)?];
        Ok([sum_difference(&one, &other)?.0])
    });
    assert_eq!(launches(&constants, "silu"), 2, "{constants:?}");
}

pub(crate) fn arbitrary_elements_that_another_operation_sees_are_not_chosen() {
    // The launches write the first two elements only.
    let filled = |x: &Tensor, y: &mut Tensor| {
        let part = x.slice(Dim::from(0)..Dim::from(2))?;
        crate::kernels::silu_elements::<f32, 64>(&part, y, 2).grid(1).launch()
    };
    let unseen = lines(|x| {
        let [mut one, mut other] = [x.empty_like()?, x.empty_like()?];
        filled(x, &mut one)?;
        filled(x, &mut other)?;
        Ok([sum_difference(&one, &other)?.1])
    });
    assert_eq!(launches(&unseen, "silu"), 1, "{unseen:?}");
    let seen = lines(|x| {
        let [mut one, mut other] = [x.empty_like()?, x.empty_like()?];
        let before = other.clone();
        filled(x, &mut one)?;
        filled(x, &mut other)?;
        Ok([sum_difference(&one, &other)?.1, sum_difference(&other, &before)?.1])
    });
    assert_eq!(launches(&seen, "silu"), 2, "`other - before` has zeros: {seen:?}");
    let viewed = lines(|x| {
        let [one, other] = [x.empty_like()?, x.empty_like()?];
        let launch = |y: &Tensor| silu(&y.slice(Dim::from(1)..y.dim(0))?);
        let [first, second, before] = [launch(&one)?, launch(&other)?, silu(&other)?];
        Ok([sum_difference(&first, &second)?.1, before])
    });
    assert_eq!(launches(&viewed, "silu"), 3, "`before` shows the elements of `other`: {viewed:?}");
    let twice = lines(|x| {
        let [mut one, other] = [x.empty_like()?, x.empty_like()?];
        filled(x, &mut one)?;
        let mut last = other.clone();
        filled(x, &mut last)?;
        let mut again = other;
        filled(x, &mut again)?;
        Ok([sum_difference(&one, &last)?.1, sum_difference(&again, &last)?.1])
    });
    // The second and the third launch are equal for the same elements, which the first one has not.
    assert_eq!(launches(&twice, "silu"), 2, "{twice:?}");
}

pub(crate) fn a_call_without_nodes_is_left_out() {
    let weight = numbers(&Device::cpu(), 4);
    let graph = recorded(|x| {
        let (one, _) = mlp_op(x, std::slice::from_ref(&weight), None, false)?;
        let (other, _) = mlp_op(x, std::slice::from_ref(&weight), None, false)?;
        let silu = silu_op(x)?;
        Ok([sum_difference(&one, &silu)?.0, silu_op(&other)?])
    });
    assert_eq!(
        graph.text(Level::Ops),
        "graph graph(x: f32[n]) where n in 4..=128
  @c0 = constant : f32[4]
  %0, %1 = test::mlp(x = %x, weights = [@c0], bias = None, keep = false) : f32[n], f32[n]
  %2 = alloc : f32[n]
  %3 = alloc : f32[n]
  %4, %5 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %0, b = %1, sum = %2, difference = %3, n = n) : f32[n], f32[n]
  %6 = test::silu(x = %0) : f32[n]
  return %4, %6
"
    );
}

/// A launch outside of a call takes the result of an equal one inside, which the call does not return.
pub(crate) fn values_of_calls_that_others_use_are_results() {
    let weight = numbers(&Device::cpu(), 4);
    let call = |x: &Tensor| mlp_op(x, std::slice::from_ref(&weight), None, false).map(|both| both.0);
    let second_line = |graph: Graph| graph.text(Level::Ops).lines().nth(2).map(str::to_owned);
    let expected = "  %0, %1 = test::mlp(x = %x, weights = [@c0], bias = None, keep = false) : f32[n], f32[n]";
    let used_next = recorded(|x| Ok([call(x)?, silu(x)?.slice(Dim::from(1)..Dim::from(3))?]));
    assert_eq!(second_line(used_next).as_deref(), Some(expected));
    let output = recorded(|x| Ok([call(x)?, silu(x)?]));
    assert_eq!(second_line(output).as_deref(), Some(expected));
}

/// A random program on a list of tensors. Equal operations are frequent.
fn program(seed: u64, x: &Tensor) -> Result<[Tensor; 4]> {
    let mut state = seed;
    let mut below = |end: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % end
    };
    let mut tensors = vec![x.clone()];
    for _ in 0..12 {
        let one = tensors[below(tensors.len())].clone();
        let other = tensors[below(tensors.len())].clone();
        match below(8) {
            0 | 1 => tensors.push(silu(&one)?),
            2 => tensors.push(x.zeros_like()?),
            3 => {
                // Values of other lengths would not fit together.
                let half = one.slice(Dim::from(0)..one.dim(0) / 2)?;
                let rest = one.slice(one.dim(0) / 2..one.dim(0))?;
                tensors.push(sum_difference(&half, &rest)?.0.new_zeros(Dtype::F32, [x.dim(0)])?);
            }
            4 => {
                let (sum, difference) = sum_difference(&one, &other)?;
                tensors.extend([sum, difference]);
            }
            5 => tensors.push(one.slice(Dim::from(0)..one.dim(0))?),
            _ => {
                let at = below(tensors.len());
                scale(&mut tensors[at], 0.5, 1)?;
            }
        }
    }
    Ok([(); 4].map(|()| tensors[below(tensors.len())].clone()))
}

pub(crate) fn graphs_of_random_programs_compute_what_the_programs_compute() {
    let device = Device::cpu();
    let bits = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let n = Dim::new("n", 2..=64);
    for seed in 0..300 {
        let graph = export(|[x]| program(seed, x), [input("x", [&n], Dtype::F32)]).unwrap();
        let session = Session::new(graph, &device).unwrap();
        let x = numbers(&device, 10);
        let (expected, outputs) = (program(seed, &x).unwrap(), session.run([&x]).unwrap());
        for (output, expected) in outputs.iter().zip(&expected) {
            assert_eq!(bits(output), bits(expected), "program {seed}:\n{:?}", session.plan());
        }
    }
}
