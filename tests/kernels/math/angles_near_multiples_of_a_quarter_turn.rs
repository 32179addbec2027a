//! Large angles next to multiples of a quarter turn: what is left of them lies in the last words of the product with 2 / pi.
//! bits: 7207106769679764790, 5505332456995688745, 7113631902020258907, 5948205954906803709, 7585218870214038045, 6453162015682090443, 8943604165517767289
//! y: zeros 4
fn kernel(bits: i64, y: PtrMut<f32>) {
    let x = bitcast::<f64>(bits);
    store(y, sin(x) as f32);
    store(y + 1, cos(x) as f32);
    store(y + 2, tan(x) as f32);
    store(y + 3, sin(-x) as f32);
}
