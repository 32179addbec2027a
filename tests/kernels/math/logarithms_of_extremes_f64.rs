//! Logarithms of the largest `f64`, of the smallest ones, and of what is no number, rounded to `f32`.
//! bits: 9218868437227405311, 9214364837600034816, 9214364837600034815, 1, 4503599627370495, 4503599627370496, 9218868437227405312, -9223372036854775808, 0, 4607182418800017408
//! y: zeros 3
fn kernel(bits: i64, y: PtrMut<f32>) {
    let x = bitcast::<f64>(bits);
    store(y, log(x) as f32);
    store(y + 1, log2(x) as f32);
    store(y + 2, log(-x) as f32);
}
