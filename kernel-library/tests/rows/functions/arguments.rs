//! Accepted arguments: empty tensors, views, references, tensors of other streams, and `f64`.

use galatea::prelude::*;
use kernel_library::*;

use super::{agree, devices, sample};

/// A tensor without elements gives a result without elements, or the result for no elements.
#[test]
fn empty_tensors() {
    for device in devices() {
        let zeros = |shape: &[usize]| device.zeros::<f32>(shape).unwrap();
        let integers = |shape: &[usize]| device.zeros::<i64>(shape).unwrap();
        let shape_of = |tensor: Result<Tensor<f32>>| tensor.unwrap().shape().to_vec();
        let values = |tensor: Result<Tensor<f32>>| tensor.unwrap().to_vec().unwrap();
        for shape in [&[0][..], &[0, 4], &[3, 0], &[2, 0, 4], &[2, 3, 0]] {
            let (leading, columns) = (&shape[..shape.len() - 1], shape[shape.len() - 1]);
            let (x, weight) = (zeros(shape), zeros(&[columns]));
            for same in [
                softmax(&x),
                row_cumsum(&x),
                swiglu(&x, &x),
                geglu(&x, &x),
                dropout(&x, 0.5, 1),
                dropout_backward(&x, 0.5, 1),
                layer_norm(&x, &weight, &weight, 1e-5),
                rms_norm(&x, &weight, 1e-5),
            ] {
                assert_eq!(shape_of(same), shape, "{device}");
            }
            for gradients in [swiglu_backward(&x, &x, &x).unwrap(), geglu_backward(&x, &x, &x).unwrap()] {
                assert_eq!((gradients.dgate.shape(), gradients.dup.shape()), (shape, shape));
            }
            let rows: usize = leading.iter().product();
            assert_eq!(values(row_sum(&x)), vec![0.0; rows], "{device}: {shape:?}");
            assert_eq!(values(row_max(&x)), vec![f32::NEG_INFINITY; rows], "{device}: {shape:?}");
            assert_eq!(values(column_sum(&x)), vec![0.0; columns], "{device}: {shape:?}");
            assert_eq!(values(sum(&x)), [0.0], "{device}: {shape:?}");
            assert_eq!(bin_counts::<_, 4>(&x, 0.0, 1.0).unwrap().to_vec().unwrap(), [0; 4]);
            let top = row_topk::<_, 8>(&x).unwrap();
            assert_eq!(top.values.to_vec().unwrap(), vec![f32::NEG_INFINITY; rows * 8], "{device}: {shape:?}");
            assert_eq!(top.indices.to_vec().unwrap(), vec![-1; rows * 8], "{device}: {shape:?}");

            let (_, saved) = layer_norm_forward(&x, &weight, &weight, 1e-5).unwrap();
            assert_eq!((saved.mean.shape(), saved.rstd.shape()), (leading, leading));
            assert!(values(Ok(saved.mean)).into_iter().chain(values(Ok(saved.rstd))).all(f32::is_nan), "{device}: {shape:?}");
            let (_, saved) = layer_norm_forward(&x, &weight, &weight, 1e-5).unwrap();
            let gradients = layer_norm_backward(&x, &x, &weight, &saved).unwrap();
            assert_eq!(gradients.dx.shape(), shape);
            assert_eq!((values(Ok(gradients.dweight)), values(Ok(gradients.dbias))), (vec![0.0; columns], vec![0.0; columns]));
            let (_, saved) = rms_norm_forward(&x, &weight, 1e-5).unwrap();
            let gradients = rms_norm_backward(&x, &x, &weight, &saved).unwrap();
            assert_eq!((gradients.dx.shape(), values(Ok(gradients.dweight))), (shape, vec![0.0; columns]));
        }

        assert_eq!(row_argmax(&zeros(&[2, 0, 4])).unwrap().shape(), [2, 0]);
        for (shape, turned) in [([0, 4], [4, 0]), ([3, 0], [0, 3])] {
            assert_eq!(shape_of(transpose(&zeros(&shape))), turned);
        }
        let (none, table) = (integers(&[2, 0]), zeros(&[5, 4]));
        assert_eq!(shape_of(embedding(&none, &table)), [2, 0, 4]);
        assert_eq!(shape_of(embedding(&integers(&[2]), &zeros(&[5, 0]))), [2, 0]);
        // A table without rows has no row for any index.
        assert_eq!(values(embedding(&integers(&[2]), &zeros(&[0, 3]))), [0.0; 6]);
        assert_eq!(values(embedding_backward(&zeros(&[2, 0, 4]), &none, &table, None)), [0.0; 20]);
        assert_eq!(shape_of(embedding_backward(&zeros(&[2, 3]), &integers(&[2]), &zeros(&[0, 3]), None)), [0, 3]);

        let (logits, targets) = (zeros(&[0, 7]), integers(&[0]));
        let (losses, saved) = cross_entropy_forward(&logits, &targets, -100).unwrap();
        assert_eq!((losses.shape(), saved.lse.shape()), (&[0][..], &[0][..]));
        assert_eq!(shape_of(cross_entropy_backward(&losses, &logits, &targets, &saved)), [0, 7]);

        let (cosine, sine) = (zeros(&[3, 2]), zeros(&[3, 2]));
        assert_eq!(shape_of(rope(&zeros(&[0, 2, 4]), &integers(&[0]), &cosine, &sine)), [0, 2, 4]);
        assert_eq!(shape_of(rope_backward(&zeros(&[5, 0, 4]), &integers(&[5]), &cosine, &sine)), [5, 0, 4]);

        let [mut weights, mut m, mut v] = [0; 3].map(|_| zeros(&[0, 3]));
        adamw(&mut weights, &zeros(&[0, 3]), &mut m, &mut v, &AdamW::default(), 1).unwrap();
    }
}

/// Views are read and written in place, and a variable that is a reference already is an argument.
#[test]
fn views_and_references() {
    for device in devices() {
        let (x, _) = sample::<f32>(device, &[6, 33], 2.0);
        let whole = row_cumsum(&x).unwrap().to_vec().unwrap();
        let (mut copy, reference) = (x.try_clone().unwrap(), &x);
        let view = x.slice(2..5).unwrap();
        agree(device, &row_cumsum(&view).unwrap(), &[3, 33], 0.0, |i| whole[66 + i].into());
        agree(device, &row_cumsum(&copy.slice_mut(2..5).unwrap()).unwrap(), &[3, 33], 0.0, |i| whole[66 + i].into());
        agree(device, &row_cumsum(&reference).unwrap(), &[6, 33], 0.0, |i| whole[i].into());

        let [mut m, mut v] = [0; 2].map(|_| device.zeros::<f32>([3, 33]).unwrap());
        let before = copy.to_vec().unwrap();
        let mut part = copy.slice_mut(2..5).unwrap();
        adamw(&mut part, &view, &mut m, &mut v, &AdamW::default(), 1).unwrap();
        let after = copy.to_vec().unwrap();
        let is_part = |i: usize| (66..165).contains(&i);
        assert!((0..198).all(|i| (before[i] != after[i]) == is_part(i)), "{device}");
    }
}

/// Results have the home stream of the first tensor, so work on two streams stays apart.
#[test]
fn results_stay_on_the_stream_of_the_input() {
    for device in devices() {
        let stream = device.new_stream().unwrap();
        let mut x = device.zeros::<f32>([2, 33]).unwrap();
        x.set_stream(&stream).unwrap();
        let (y, top) = (softmax(&x).unwrap(), row_topk::<_, 8>(&x).unwrap());
        assert!([y.stream(), top.values.stream(), top.indices.stream()].into_iter().all(|own| *own == stream), "{device}");
        assert_eq!(y.to_vec().unwrap(), [1.0 / 33.0; 66]);
    }
}

/// `f64` is computed in `f32`, except where that would make different numbers equal.
#[test]
fn doubles() {
    let x = Device::cpu().tensor_from(&[0.0f64, 0.0, 1.0, 1.0], [2, 2]).unwrap();
    assert_eq!(softmax(&x).unwrap().to_vec().unwrap(), [0.5; 4]);
    assert_eq!(row_sum(&x).unwrap().to_vec().unwrap(), [0.0, 2.0]);
    for refused in [row_max(&x).map(drop), row_argmax(&x).map(drop), row_topk::<_, 2>(&x).map(drop)] {
        assert!(matches!(&refused, Err(Error::Compile { .. })), "{refused:?}");
    }
}
