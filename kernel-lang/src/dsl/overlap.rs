//! Programmatic dependent launch: a kernel begins while the previous one ends.

use super::only_in_a_kernel;

/// Waits until the previous launch has completed and its stores are visible: `griddepcontrol.wait`, Triton's `gdc_wait`.
///
/// Only a launch with `.overlap_previous()`, on a Hopper GPU (compute capability 9.0), begins before the previous launch has completed;
/// for all other launches the builtin costs nothing. Code before it, such as indices, random numbers and other arithmetic, runs while the
/// previous launch ends. It takes no arguments, returns nothing, and is allowed wherever a statement is, except in the closure of a
/// reduction.
///
/// A safe kernel that uses this builtin or [`gdc_launch_dependents`] always waits before it accesses memory. If some path reaches an access
/// or the end of the kernel without a `gdc_wait`, the kernel also waits at its start. Overlapping launches therefore give the same results as
/// others. An `unchecked` kernel waits only where it calls `gdc_wait`. Before that it may read data that no previous launch writes, such as
/// weights.
///
/// ```ignore
/// /// Adds a bias, computed while the launch before still runs.
/// #[kernel(B = 1024)]
/// fn add_noise<const B: usize>(x: PtrMut<f32>, seed: u64, n: usize) {
///     let at = program_id(0) * B + arange(0, B);
///     let noise = randn(seed, at);
///     gdc_wait();
///     gdc_launch_dependents();
///     store(x + at, load(x + at, mask = at < n) + noise, mask = at < n);
/// }
///
/// add_noise::<1024>(&mut x, 1, n).grid(cdiv(n, 1024)).launch()?;
/// add_noise::<1024>(&mut x, 2, n).grid(cdiv(n, 1024)).overlap_previous().launch()?;
/// ```
pub fn gdc_wait() {
    only_in_a_kernel()
}

/// Allows the next launch to begin, if it has `.overlap_previous()`: `griddepcontrol.launch_dependents`, Triton's `gdc_launch_dependents`.
///
/// The next launch begins once every program has called this builtin or has ended, and when there are resources for its programs. Until its
/// own [`gdc_wait`] it does not see the stores of this launch, not even those before this call. The call may therefore be anywhere, and an
/// early call is best. Without it, the next launch begins when the last programs of this launch end. The builtin takes no arguments and
/// returns nothing. It has no effect on the CPU and on other GPUs.
///
/// ```ignore
/// gdc_launch_dependents();
/// store(y + offsets, load(x + offsets, mask = mask) * 2.0, mask = mask);
/// ```
pub fn gdc_launch_dependents() {
    only_in_a_kernel()
}
