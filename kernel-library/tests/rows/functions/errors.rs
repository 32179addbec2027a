//! The text of every error of an argument. `BLESS=1` rewrites `errors.txt`.

use std::fmt::Write;
use std::path::Path;

use galatea::prelude::*;
use kernel_library::*;

/// Each call with its error, in the order of the file.
macro_rules! texts {
    ($($call:expr;)+) => {{
        let mut texts = String::new();
        $(match $call {
            Ok(_) => panic!("`{}` is no error", stringify!($call)),
            // Rust breaks long calls into lines, each version its own way.
            Err(error) => writeln!(texts, "// {}\n{error}\n", stringify!($call).replace('\n', " ")).expect("a string grows"),
        })+
        texts
    }};
}

#[test]
fn texts_of_errors() {
    let cpu = Device::cpu();
    let sim = Device::sim(Target::SM_80).unwrap();
    let floats = |shape: &[usize]| cpu.zeros::<f32>(shape).unwrap();
    let integers = |shape: &[usize]| cpu.zeros::<i64>(shape).unwrap();
    let elsewhere = |shape: &[usize]| sim.zeros::<f32>(shape).unwrap();
    let (scalar, empty, row) = (floats(&[]), floats(&[3, 0]), floats(&[4]));
    let (x, other, targets, far) = (floats(&[2, 4]), floats(&[4, 2]), integers(&[2]), elsewhere(&[2, 4]));
    let long = |columns: usize| floats(&[0, columns]);
    let layer = |shape: &[usize]| LayerNormSaved { mean: floats(shape), rstd: floats(shape) };
    let rms = |shape: &[usize]| RmsNormSaved { rstd: floats(shape) };
    let entropy = |shape: &[usize]| CrossEntropySaved { lse: floats(shape), ignore_index: -100 };
    let [mut w, mut m, mut v, mut short] = [0; 4].map(|_| floats(&[4]));
    short = short.reshape([2, 2]).unwrap();
    let adam = AdamW::default();
    let (heads, positions, table) = (floats(&[3, 2, 4]), integers(&[3]), floats(&[5, 2]));

    let halves = |shape: &[usize]| cpu.zeros::<f16>(shape).unwrap();
    let (a, b) = (halves(&[2, 4]), halves(&[4, 3]));
    let (mut space, far_half) = (halves(&[7]), sim.zeros::<f16>([4, 3]).unwrap());

    let have = texts! {
        softmax(&scalar);
        row_cumsum(&scalar);
        row_sum(&scalar);
        row_max(&scalar);
        column_sum(&scalar);
        sum_over(&x, &[0, 2], Keep::No);
        mean_over(&x, &[1, 0, 1], Keep::Yes);
        max_over(&scalar, &[0], Keep::No);
        row_argmax(&scalar);
        row_argmax(&empty);
        row_topk::<_, 8>(&scalar);
        row_topk::<_, 8>(&long(1 << 32));
        bin_counts::<_, 4>(&x, f32::NAN, 1.0);
        bin_counts::<_, 4>(&x, 0.0, f32::INFINITY);
        bin_counts::<_, 4>(&x, 1.0, 1.0);
        bin_counts::<_, 4>(&x, f32::MIN, f32::MAX);
        transpose(&row);
        transpose(&floats(&[2, 3, 4]));

        matmul(&halves(&[4]), &b);
        matmul(&a, &halves(&[4]));
        matmul(&a, &halves(&[3, 4]));
        matmul(&a, &far_half);
        matmul(&halves(&[5, 2, 4]), &halves(&[3, 4, 3]));
        Matmul::new().transposed_a().product(&a, &b);
        Matmul::new().transposed_b().product(&a, &b);
        matmul_into(&a, &b, &mut floats(&[3, 2]));
        matmul_into(&a, &b, &mut elsewhere(&[2, 3]));
        Matmul::new().bias(&halves(&[2])).product(&a, &b);
        Matmul::new().row_bias(&halves(&[3])).product(&a, &b);
        Matmul::new().bias(&far_half).product(&a, &b);
        Matmul::new().residual(&b).product(&a, &b);
        Matmul::new().padding(Padding::Always).workspace(&mut space).product(&a, &b);
        matmul_gated(&a, &b, &halves(&[4, 2]));
        matmul_gated(&halves(&[5, 2, 4]), &halves(&[5, 4, 3]), &halves(&[5, 4, 3]));
        Matmul::new().bias(&halves(&[3])).gated_product(&a, &b, &b);

        swiglu(&x, &other);
        swiglu(&x, &row);
        swiglu(&x, &far);
        swiglu_backward(&x, &row, &x);
        swiglu_backward(&x, &x, &row);
        swiglu_backward(&x, &x, &far);
        geglu(&x, &row);
        geglu_backward(&x, &row, &x);
        geglu_backward(&x, &x, &row);
        dropout(&x, 1.5, 7);
        dropout(&x, f32::NAN, 7);
        dropout_backward(&x, -0.5, 7);

        layer_norm(&scalar, &row, &row, 1e-5);
        layer_norm(&long(32_769), &row, &row, 1e-5);
        layer_norm(&x, &floats(&[2]), &row, 1e-5);
        layer_norm(&x, &floats(&[1, 4]), &row, 1e-5);
        layer_norm(&x, &row, &floats(&[2]), 1e-5);
        layer_norm(&x, &row, &elsewhere(&[4]), 1e-5);
        layer_norm(&x, &row, &row, -1.0);
        layer_norm_forward(&x, &row, &row, f32::NAN);
        layer_norm_backward(&long(65_537), &x, &row, &layer(&[2]));
        layer_norm_backward(&x, &other, &row, &layer(&[2]));
        layer_norm_backward(&x, &x, &floats(&[2]), &layer(&[2]));
        layer_norm_backward(&x, &x, &row, &layer(&[4]));
        layer_norm_backward(&x, &x, &row, &LayerNormSaved { mean: floats(&[2]), rstd: floats(&[4]) });
        rms_norm(&long(32_769), &row, 1e-5);
        rms_norm(&x, &floats(&[2]), 1e-5);
        rms_norm_forward(&x, &row, f32::INFINITY);
        rms_norm_backward(&x, &row, &row, &rms(&[2]));
        rms_norm_backward(&x, &x, &floats(&[2]), &rms(&[2]));
        rms_norm_backward(&x, &x, &row, &rms(&[2, 1]));

        embedding(&targets, &row);
        embedding(&targets, &far);
        embedding(&integers(&[1; 8]), &x);
        embedding_backward(&scalar, &targets, &x, None);
        embedding_backward(&x, &integers(&[3]), &x, None);
        embedding_backward(&x, &targets, &row, None);
        embedding_backward(&x, &targets, &table, None);
        embedding_backward(&x, &targets, &x, Some(2));

        cross_entropy(&scalar, &targets, -100);
        cross_entropy(&empty, &integers(&[3]), -100);
        cross_entropy(&x, &integers(&[4]), -100);
        cross_entropy_forward(&x, &integers(&[2, 1]), -100);
        cross_entropy_backward(&floats(&[4]), &x, &targets, &entropy(&[2]));
        cross_entropy_backward(&floats(&[2]), &far, &targets, &entropy(&[2]));
        cross_entropy_backward(&floats(&[2]), &scalar, &targets, &entropy(&[2]));
        cross_entropy_backward(&floats(&[2]), &x, &integers(&[4]), &entropy(&[2]));
        cross_entropy_backward(&floats(&[2]), &x, &targets, &entropy(&[4]));

        rope(&row, &positions, &table, &table);
        rope(&floats(&[3, 2, 5]), &positions, &table, &table);
        rope(&floats(&[0, 2, 514]), &positions, &table, &table);
        rope(&heads, &integers(&[2]), &table, &table);
        rope(&heads, &positions, &x, &x);
        rope(&heads, &positions, &row, &row);
        rope(&heads, &positions, &table, &floats(&[4, 2]));
        rope(&heads, &positions, &table, &elsewhere(&[5, 2]));
        rope_backward(&floats(&[3, 2, 5]), &positions, &table, &table);

        adamw(&mut w, &floats(&[5]), &mut m, &mut v, &adam, 1);
        adamw(&mut w, &row, &mut short, &mut v, &adam, 1);
        adamw(&mut w, &row, &mut m, &mut elsewhere(&[4]), &adam, 1);
        adamw(&mut w, &row, &mut m, &mut v, &AdamW { lr: -1.0, ..adam }, 1);
        adamw(&mut w, &row, &mut m, &mut v, &AdamW { beta1: 1.0, ..adam }, 1);
        adamw(&mut w, &row, &mut m, &mut v, &AdamW { beta2: -0.1, ..adam }, 1);
        adamw(&mut w, &row, &mut m, &mut v, &AdamW { eps: f32::NAN, ..adam }, 1);
        adamw(&mut w, &row, &mut m, &mut v, &AdamW { weight_decay: f32::INFINITY, ..adam }, 1);
        adamw(&mut w, &row, &mut m, &mut v, &adam, 0);
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rows/functions/errors.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &have).expect("the file is written");
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    // The first difference says more than two long texts.
    let differs = have.split("\n\n").zip(want.split("\n\n").chain([""])).find(|(have, want)| have != want);
    assert!(have == want, "the errors are not those of {}; to rewrite it: BLESS=1\n{differs:#?}", path.display());
}
