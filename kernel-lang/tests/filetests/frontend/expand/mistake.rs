/// A mistake: callers still compile.
#[kernel(N = 64, unchecked)]
pub fn mistake<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: Strange) {
    store(x + arange(0, N), laod(x));
}
