#[kernel]
fn k<T: Float, I: Int, N: Number>(x: Ptr<T>, y: PtrMut<T>, i: Ptr<I>, j: PtrMut<I>, z: PtrMut<N>, u: PtrMut<i32>) {
    let at = arange(0, 64);
    let v = load(x + at, mask = at < 60, other = T::MAX);
    store(y + at, clamp(v, T::MIN_POSITIVE, T::MAX) + T::EPSILON);
    store(y, if any(v > T::MIN) { T::INFINITY } else { -T::MAX });
    let w = load(i + at, mask = at < 60, other = I::MIN);
    // A number of bits takes the type of the other operand.
    store(j + at, min(w >> (I::BITS - 1) as I, I::MAX));
    store(u + arange(0, I::BITS), i32::BITS - 1);
    store(z, N::MAX);
    store(z + 1, N::MIN);
    if I::BITS > 32 && I == u64 {
        store(u, (u64::MAX >> 60) as i32);
    }
}
