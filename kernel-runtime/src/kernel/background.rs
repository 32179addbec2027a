//! Background compilation: another thread compiles a variant, while launches run a variant that relies on fewer facts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kernel_lang::Schedule;

use crate::kernel::gpu::Gpu;
use crate::kernel::{Kernel, Table};
use crate::launch::fact::Key;
use crate::{Error, Result};

/// A key whose own variant is not available yet.
pub(crate) struct Pending<L: 'static> {
    /// The variant that runs meanwhile.
    instead: &'static L,
    /// Whether a thread has begun to compile.
    begun: AtomicBool,
    /// Set if the compilation failed. Holds the error until a launch has returned it.
    failed: OnceLock<Mutex<Option<Error>>>,
}

/// The function that a GPU runs for this key. Does not wait for the compiler if another variant can run.
#[inline]
pub(crate) fn at_once<G: Gpu, const N: usize>(
    kernel: &'static Kernel,
    gpu: &G,
    key: &Key<N>,
    schedule: Option<Schedule>,
) -> Result<&'static G::Loaded> {
    let table = kernel.table(gpu);
    if let Some(loaded) = table.loaded(key.as_ref(), schedule) {
        return Ok(loaded);
    }
    if let Some(ready) = kernel.ready(gpu, table, key.as_ref(), schedule) {
        return ready;
    }
    match table.pending.find(schedule, key.as_ref()) {
        Some(pending) => pending.serve(),
        None => begin(kernel, gpu, table, key, schedule),
    }
}

impl<L> Pending<L> {
    /// Returns the variant that runs meanwhile. If the compilation failed, one call returns its error instead.
    fn serve(&self) -> Result<&'static L> {
        let untold = self.failed.get().and_then(|error| error.lock().unwrap_or_else(PoisonError::into_inner).take());
        untold.map_or_else(|| Ok(self.instead), Err)
    }
}

/// Handles the first launch of a key. Returns another variant that can run while a thread compiles; if there is none, compiles on this thread.
#[cold]
fn begin<G: Gpu, const N: usize>(
    kernel: &'static Kernel,
    gpu: &G,
    table: &'static Table<G::Loaded>,
    key: &Key<N>,
    schedule: Option<Schedule>,
) -> Result<&'static G::Loaded> {
    let Some(instead) = kernel.serving(gpu, table, key, schedule) else {
        return kernel.compile(gpu, table, key.as_ref(), schedule);
    };
    let pending = Pending { instead: instead?, begun: AtomicBool::new(false), failed: OnceLock::new() };
    let pending = table.pending.keep(schedule, key.as_ref(), pending);
    // If several threads arrive here at once, one of them compiles. Without the compiler in the program, none does.
    if cfg!(feature = "jit") && !pending.begun.swap(true, Ordering::Relaxed) {
        let (anywhere, key) = (gpu.anywhere()?, *key);
        let compile = move || {
            // Later launches do not wait either, so they find all entries loaded.
            let load = |loaded: &G::Loaded| anywhere.load_entries(loaded);
            let compile = AssertUnwindSafe(|| kernel.compile_and(&anywhere, table, key.as_ref(), schedule, load));
            let outcome = catch_unwind(compile).unwrap_or_else(|_| Err(kernel.crashed(key.as_ref())));
            if let Err(error) = outcome {
                // `set` cannot fail, because only one thread compiles this key.
                let _ = pending.failed.set(Mutex::new(Some(error)));
            }
        };
        if std::thread::Builder::new().name(format!("compile {}", kernel.name())).spawn(compile).is_err() {
            // Without another thread, this one compiles.
            return kernel.compile(gpu, table, key.as_ref(), schedule);
        }
    }
    pending.serve()
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::kernel::gpu::Image;
    use crate::kernel::{Tables, Variant};
    use crate::launch::fact::Fact;
    use crate::{Device, Stream};

    /// A fake GPU that loads nothing: a loaded function is the text of its PTX. Loading of code that was compiled in process waits for the gate.
    struct Shelf {
        tables: Tables<String>,
        loads: AtomicUsize,
        /// How often all entries of a function were loaded.
        whole_loads: AtomicUsize,
        /// Whether loading of code that was compiled in process succeeds; `None` while it must wait.
        gate: Mutex<Option<bool>>,
        opened: Condvar,
    }

    #[derive(Clone, Copy)]
    struct Shelved(&'static Shelf);

    impl Shelved {
        fn new() -> Shelved {
            let (loads, whole_loads) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let (tables, gate, opened) = (Tables::new(), Mutex::new(None), Condvar::new());
            Shelved(Box::leak(Box::new(Shelf { tables, loads, whole_loads, gate, opened })))
        }

        fn open(self, works: bool) {
            *self.0.gate.lock().unwrap() = Some(works);
            self.0.opened.notify_all();
        }
    }

    impl Gpu for Shelved {
        type Loaded = String;
        const IS_SIMULATED: bool = true;
        type Anywhere = Shelved;

        fn anywhere(&self) -> Result<Shelved> {
            Ok(*self)
        }

        fn device(&self) -> Device {
            Device::cpu()
        }

        fn number(&self) -> usize {
            0
        }

        fn count() -> usize {
            1
        }

        fn compute_capability(&self) -> (i32, i32) {
            (8, 0)
        }

        fn stream(&self) -> Stream {
            Device::cpu().stream().clone()
        }

        fn tables<'k>(&self, _: &'k Kernel) -> &'k Tables<String> {
            &self.0.tables
        }

        fn load(&self, image: &Image<'_>) -> Result<String> {
            self.0.loads.fetch_add(1, Ordering::SeqCst);
            if image.ptx.starts_with("embedded") {
                return Ok(image.ptx.to_owned());
            }
            let gate = self.0.gate.lock().unwrap();
            let gate = self.0.opened.wait_while(gate, |gate| gate.is_none()).unwrap();
            if *gate == Some(true) { Ok("compiled".to_owned()) } else { Err(Error::EventNotRecorded) }
        }

        fn load_entries(&self, _: &String) -> Result<()> {
            // A launch that finds the function too early sees the old count.
            std::thread::sleep(std::time::Duration::from_millis(50));
            self.0.whole_loads.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }

        fn cache_bytes(&self) -> usize {
            0
        }

        unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
            unreachable!("nothing is launched")
        }

        unsafe fn zero(&self, _: u64, _: usize) -> Result<()> {
            unreachable!("nothing is launched")
        }

        fn code(_: &String) -> crate::replay::Code {
            unreachable!("nothing is captured")
        }

        unsafe fn start<const WORDS: usize>(
            &self,
            _: &crate::launch::args::Args<'_, WORDS>,
            _: &String,
            _: [u32; 3],
            _: &[&u64],
        ) -> Result<()> {
            unreachable!("nothing is launched")
        }
    }

    const IR: &str = "kernel @k<const N: i64>(%y: ptr_mut<i64>, %a: i64, %b: i64, %c: i64) {
        %0 = arange {start = 0, end = N} : tile<i64, [N]>
        store %y, %0, %0
        return
    }";

    const fn variant(key: &'static [u64], ptx: &'static str) -> Variant {
        Variant { key, schedule: Schedule::DEFAULT, target: "sm_80", entry: "k", shared_bytes: 0, ptx }
    }

    const FACTS: [Fact; 3] = [Fact::is("a", 2, 1), Fact::is("b", 3, 1), Fact::multiple_of("c", 4, 16)];
    const VARIANTS: [Variant; 3] = [variant(&[64], "embedded"), variant(&[64, 0b001], "embedded a"), variant(&[64, 0b110], "embedded b c")];

    fn kernel() -> &'static Kernel {
        // SAFETY: no test launches it.
        let kernel = unsafe { Kernel::new("k", IR, Schedule::DEFAULT, &[], &VARIANTS) };
        Box::leak(Box::new(kernel.specializing(&FACTS)))
    }

    /// Repeats `ask` until `is_it` accepts the answer.
    #[cfg(feature = "jit")]
    fn until(
        mut ask: impl FnMut() -> Result<&'static String>,
        is_it: impl Fn(&Result<&'static String>) -> bool,
    ) -> Result<&'static String> {
        let start = std::time::Instant::now();
        loop {
            let answer = ask();
            if is_it(&answer) {
                return answer;
            }
            assert!(start.elapsed().as_secs() < 60, "{answer:?}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn embedded_variants_are_used_without_compilation() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        for (facts, ptx) in [(0, "embedded"), (0b001, "embedded a"), (0b110, "embedded b c")] {
            assert_eq!(at_once(kernel, &gpu, &Key::new([64], facts), None).unwrap(), ptx);
            assert_eq!(kernel.on_gpu(&gpu, Key::new([64], facts).as_ref(), None).unwrap(), ptx);
        }
        assert_eq!(gpu.0.loads.load(Ordering::SeqCst), 3);
    }

    #[cfg(feature = "jit")]
    #[test]
    fn another_variant_serves_until_the_right_one_is_there() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        // The variant that relies on the most facts that hold, and on no others.
        for (facts, ptx) in [(0b010, "embedded"), (0b011, "embedded a"), (0b111, "embedded b c"), (0b101, "embedded a")] {
            for _ in 0..3 {
                assert_eq!(at_once(kernel, &gpu, &Key::new([64], facts), None).unwrap(), ptx);
            }
        }
        gpu.open(true);
        for facts in [0b010, 0b011, 0b111, 0b101] {
            until(|| at_once(kernel, &gpu, &Key::new([64], facts), None), |answer| answer.as_ref().is_ok_and(|ptx| *ptx == "compiled"))
                .unwrap();
        }
        assert_eq!((gpu.0.loads.load(Ordering::SeqCst), gpu.0.whole_loads.load(Ordering::SeqCst)), (3 + 4, 4));
    }

    /// Later launches wait for no entry, because all are loaded before one of them finds the variant. A launch that compiles needs only its own.
    #[cfg(feature = "jit")]
    #[test]
    fn a_variant_of_another_thread_has_all_its_entries() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        gpu.open(true);
        assert_eq!(kernel.on_gpu(&gpu, Key::new([32], 0b010).as_ref(), None).unwrap(), "compiled");
        assert_eq!(gpu.0.whole_loads.load(Ordering::SeqCst), 0);
        let key = Key::new([64], 0b010);
        until(|| at_once(kernel, &gpu, &key, None), |answer| answer.as_ref().is_ok_and(|ptx| *ptx == "compiled")).unwrap();
        assert_eq!(gpu.0.whole_loads.load(Ordering::SeqCst), 1);
    }

    #[cfg(feature = "jit")]
    #[test]
    fn one_thread_compiles_however_many_ask() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        let key = Key::new([64], 0b010);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(at_once(kernel, &gpu, &key, None).unwrap(), "embedded"));
            }
        });
        // A launch that must not run another variant waits for the compiling thread, and does not repeat its work.
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| kernel.on_gpu(&gpu, key.as_ref(), None).unwrap())).collect();
            gpu.open(true);
            waiting.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), "compiled"));
        });
        until(|| at_once(kernel, &gpu, &key, None), |answer| answer.as_ref().is_ok_and(|ptx| *ptx == "compiled")).unwrap();
        assert_eq!(gpu.0.loads.load(Ordering::SeqCst), 2);
    }

    #[cfg(feature = "jit")]
    #[test]
    fn a_failed_compilation_is_reported_once_and_launches_continue() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        let key = Key::new([64], 0b010);
        assert_eq!(at_once(kernel, &gpu, &key, None).unwrap(), "embedded");
        gpu.open(false);
        let error = until(|| at_once(kernel, &gpu, &key, None), Result::is_err).unwrap_err();
        assert!(matches!(error, Error::EventNotRecorded), "{error}");
        for _ in 0..3 {
            assert_eq!(at_once(kernel, &gpu, &key, None).unwrap(), "embedded");
        }
        // A launch that waits gets the error each time.
        assert!(kernel.on_gpu(&gpu, key.as_ref(), None).is_err() && kernel.on_gpu(&gpu, key.as_ref(), None).is_err());
    }

    #[cfg(feature = "jit")]
    #[test]
    fn where_nothing_can_serve_the_launch_waits() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        gpu.open(true);
        assert_eq!(at_once(kernel, &gpu, &Key::new([32], 0b010), None).unwrap(), "compiled");
        let other = Schedule { num_warps: 8, ..Schedule::DEFAULT };
        assert_eq!(at_once(kernel, &gpu, &Key::new([64], 0), Some(other)).unwrap(), "compiled");
        // The variant that was compiled without facts can run too.
        assert_eq!(at_once(kernel, &gpu, &Key::new([16], 0), None).unwrap(), "compiled");
        assert_eq!(at_once(kernel, &gpu, &Key::new([16], 0b010), None).unwrap(), "compiled");
    }

    #[cfg(not(feature = "jit"))]
    #[test]
    fn without_a_compiler_another_variant_serves_for_ever() {
        let (kernel, gpu) = (kernel(), Shelved::new());
        gpu.open(true);
        for _ in 0..3 {
            assert_eq!(at_once(kernel, &gpu, &Key::new([64], 0b111), None).unwrap(), "embedded b c");
        }
        let error = at_once(kernel, &gpu, &Key::new([32], 0b001), None).unwrap_err().to_string();
        assert_eq!(
            error,
            "kernel `k` was not built for `N = 32, a = 1` and 4 warps, as `cpu` needs it, and this program cannot compile it: the feature `jit` \
             is off\nhelp: list it, `#[kernel(N = [32])]`, or turn the feature on: `galatea = { .., features = [\"jit\"] }`"
        );
        assert_eq!(gpu.0.loads.load(Ordering::SeqCst), 1);
    }
}
