//! Launches that overlap: a kernel begins while the one before it ends.

use super::only_in_a_kernel;

/// Waits until the launch before this one is over, and what it stored is seen: `griddepcontrol.wait`, as Triton's `gdc_wait`.
///
/// Only a launch with `.overlap_previous()`, on a GPU from compute capability 9.0 on, begins before that; to all others it costs nothing. What stands
/// in front of it, such as indices, random numbers and other arithmetic, runs while the launch before still ends. It takes nothing and gives
/// nothing, and stands wherever a statement may, but not in a closure of a reduction.
///
/// A safe kernel that says this word or [`gdc_launch_dependents`] waits before it touches memory, whatever it says: if some access could be reached without
/// a `gdc_wait`, or the kernel could end without one, it waits at its very beginning as well. So launches that overlap give what others give.
/// An `unchecked` kernel waits only where it says so, and may read what no launch before it writes in front of that: weights, say.
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

/// Says that the launch behind this one may begin, if it is one with `.overlap_previous()`: `griddepcontrol.launch_dependents`, as Triton's
/// `gdc_launch_dependents`.
///
/// It begins once every program has said so or is over, and where there is room for its programs. It does not see what this launch stores, not even before this
/// word, until its own [`gdc_wait`]; so the word may stand anywhere, and early is good. Without it the launch behind begins when the last
/// programs of this one end. It takes nothing and gives nothing, and does nothing on the CPU and on GPUs before compute capability 9.0.
///
/// ```ignore
/// gdc_launch_dependents();
/// store(y + offsets, load(x + offsets, mask = mask) * 2.0, mask = mask);
/// ```
pub fn gdc_launch_dependents() {
    only_in_a_kernel()
}
