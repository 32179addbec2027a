//! Approximate functions, composed of the device's own approximations. For `f64` they are the accurate functions.

pub fn fast_exp<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { exp(x) } else { fast_exp2(x as f32 * std::f32::consts::LOG2_E) as T }
}

pub fn fast_exp10<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { exp10(x) } else { fast_exp2(x as f32 * std::f32::consts::LOG2_10) as T }
}

pub fn fast_log<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { log(x) } else { (fast_log2(x as f32) * std::f32::consts::LN_2) as T }
}

pub fn fast_log10<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { log10(x) } else { (fast_log2(x as f32) * std::f32::consts::LOG10_2) as T }
}

pub fn fast_pow<T: Float>(x: Value<T>, y: Value<T>) -> Value<T> {
    if T == f64 { pow(x, y) } else { fast_exp2(y as f32 * fast_log2(x as f32)) as T }
}

pub fn fast_tan<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { tan(x) } else { fast_div(fast_sin(x as f32), fast_cos(x as f32)) as T }
}

pub fn fast_sigmoid<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { sigmoid(x) } else { fma(fast_tanh(x as f32 * 0.5), 0.5, 0.5) as T }
}
