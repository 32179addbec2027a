//! The cost of a launch: of the first one in a process, and of every later one, beside the driver's own call.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench launch
//! ```
//!
//! The first launch loads the embedded PTX, which the driver compiles, or machine code that an earlier process cached: in the driver's cache, or in
//! ours if an assembler made it. New processes measure it after they create the context. The rounds of enqueueing alternate between ours and
//! `cuLaunchKernel`: 4 arguments; 4 and a stride that selects a variant; 19 arguments. Triton and torch are timed too where python3 has them.

#[path = "../kernel-runtime/tests/allocations/mod.rs"]
mod counted;
mod peers;

use std::error::Error;
use std::ffi::{CString, OsString};
use std::process::Command;
use std::time::Instant;

use counted::allocations;
use galatea::cudarc::driver::sys;
use galatea::prelude::*;
use peers::Peers;

#[kernel(BLOCK_SIZE = 1024)]
fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}

/// Of three configurations, by the length; the stride, which is 1, selects a variant.
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 512, num_warps: 4 },
        Config { BLOCK_SIZE: 512, num_warps: 2 },
    ],
    key = [n],
)]
#[kernel]
fn tuned_add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize, stride: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets * stride, mask = mask) + load(y + offsets * stride, mask = mask);
    store(out + offsets, sum, mask = mask);
}

/// Five tensors, nine numbers and five constants.
#[kernel(A = 1, B = 2, C = 3, D = 4, E = 5)]
fn nineteen<const A: i64, const B: i64, const C: i64, const D: i64, const E: i64>(
    t1: Ptr<i64>,
    t2: Ptr<i64>,
    t3: Ptr<i64>,
    t4: Ptr<i64>,
    t5: PtrMut<i64>,
    i1: i64,
    i2: i64,
    i3: i64,
    i4: i64,
    i5: i64,
    i6: i64,
    i7: i64,
    i8: i64,
    i9: i64,
) {
    let sum = load(t1) + load(t2) + load(t3) + load(t4) + i1 + i2 + i3 + i4 + i5 + i6 + i7 + i8 + i9 + A + B + C + D + E;
    store(t5, sum);
}

const FIRST: &str = "--first-launch";
const LAUNCHES: u32 = 200;
const ROUNDS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    if Device::cuda_count() == 0 {
        println!("skipped: there is no CUDA device");
        return Ok(());
    }
    if std::env::args().any(|word| word == FIRST) {
        return first_launch();
    }
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name).into_os_string();
    let first = |what: &str, settings: &[(&str, OsString)]| -> Result<(), Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let child = command.arg(FIRST).env("GALATEA_CACHE", "off").envs(settings.iter().map(|(name, value)| (name, value))).output()?;
        print!("{what}: {}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
        Ok(())
    };
    for _ in 0..3 {
        first("compiled by the driver", &[("CUDA_CACHE_DISABLE", "1".into())])?;
    }
    for what in ["compiled and kept by the driver", "kept by the driver", "kept by the driver", "kept by the driver"] {
        first(what, &[("CUDA_CACHE_DISABLE", "0".into()), ("CUDA_CACHE_PATH", path("driver"))])?;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if let Some(assembler) = std::env::split_paths(&paths).map(|path| path.join("ptxas")).find(|path| path.is_file()) {
        for what in ["assembled and kept", "kept machine code", "kept machine code", "kept machine code"] {
            let ours = [("GALATEA_CACHE", path("ours")), ("GALATEA_PTXAS", assembler.clone().into_os_string())];
            first(what, &[("CUDA_CACHE_DISABLE", "1".into()), ours[0].clone(), ours[1].clone()])?;
        }
    }
    enqueue()?;
    match peers_enqueue() {
        Ok(()) => {}
        Err(error) => println!("no peers to compare with: {error}"),
    }
    chain()
}

fn first_launch() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let device = Device::cuda(0)?;
    device.synchronize()?;
    let context = start.elapsed();
    let (x, y) = (device.tensor(&[1.0f32; 5000])?, device.tensor(&[2.0f32; 5000])?);
    let mut out = device.zeros::<f32>(5000)?;
    device.synchronize()?;
    let start = Instant::now();
    add::<1024>(&x, &y, &mut out, 5000).grid(cdiv(5000, 1024)).launch()?;
    device.synchronize()?;
    let first = start.elapsed();
    let start = Instant::now();
    add::<1024>(&x, &y, &mut out, 5000).grid(cdiv(5000, 1024)).launch()?;
    device.synchronize()?;
    let second = start.elapsed();
    if out.to_vec()? != [3.0f32; 5000] {
        return Err("the first launch is wrong".into());
    }
    // The first launch of another kernel shows the cost of loading a kernel without the costs that arise once in a process.
    let ones = [0; 4].map(|_| device.tensor(&[1i64]));
    let ([t1, t2, t3, t4], mut t5) = (ones, device.zeros::<i64>(1)?);
    let (t1, t2, t3, t4) = (t1?, t2?, t3?, t4?);
    device.synchronize()?;
    let start = Instant::now();
    nineteen::<1, 2, 3, 4, 5>(&t1, &t2, &t3, &t4, &mut t5, 1, 2, 3, 4, 5, 6, 7, 8, 9).grid(1).launch()?;
    device.synchronize()?;
    let other = start.elapsed();
    println!("context {context:.1?}; first launch to its end {first:.2?}; second {second:.1?}; first of another kernel {other:.2?}");
    Ok(())
}

fn enqueue() -> Result<(), Box<dyn Error>> {
    let device = Device::cuda(0)?;
    let n = 1024;
    let (x, y) = (device.tensor(&[1.0f32; 1024])?, device.tensor(&[2.0f32; 1024])?);
    let mut out = device.zeros::<f32>(n)?;
    beside_raw::<7>(&device, "4 arguments", || add::<1024>(&x, &y, &mut out, n).grid(1).launch())?;
    beside_raw::<8>(&device, "4 arguments and a stride, autotuned and specialised", || {
        tuned_add(&x, &y, &mut out, n, 1).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()
    })?;
    let [t1, t2, t3, t4] = [0; 4].map(|_| device.tensor(&[1i64]));
    let (t1, t2, t3, t4, mut t5) = (t1?, t2?, t3?, t4?, device.zeros::<i64>(1)?);
    beside_raw::<19>(&device, "19 arguments", || {
        nineteen::<1, 2, 3, 4, 5>(&t1, &t2, &t3, &t4, &mut t5, 1, 2, 3, 4, 5, 6, 7, 8, 9).grid(1).launch()
    })?;
    if t5.to_vec()? != [4 + 45 + 15] {
        return Err("the launch of nineteen arguments is wrong".into());
    }
    Ok(())
}

/// The same kernels as Triton's, and torch's sum, queued by their own process.
fn peers_enqueue() -> Result<(), Box<dyn Error>> {
    let answer = Peers::start("peers.py")?.ask("enqueue")?;
    let what = [
        ("triton_us", "4 arguments by Triton"),
        ("triton_autotuned_us", "4 arguments and a stride by Triton, autotuned"),
        ("triton_nineteen_us", "19 arguments by Triton"),
        ("torch_us", "a sum by torch"),
    ];
    for (key, what) in what {
        println!("enqueue of {what}: {:.2} us", answer[key].as_f64().ok_or("the peers gave no such time")?);
    }
    Ok(())
}

/// A launch, and one of a kernel of as many words that does nothing, through the driver's call.
fn beside_raw<const WORDS: usize>(
    device: &Device,
    what: &str,
    mut launch: impl FnMut() -> Result<(), galatea::Error>,
) -> Result<(), Box<dyn Error>> {
    let function = raw::Function::<WORDS>::load(device)?;
    // The first launch loads the kernel, and tunes it.
    launch()?;
    let (mut ours, mut raws) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    let mut allocated = 0;
    for _ in 0..ROUNDS {
        let before = allocations();
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            launch()?;
        }
        ours.push(start.elapsed() / LAUNCHES);
        allocated += allocations() - before;
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            function.launch()?;
        }
        raws.push(start.elapsed() / LAUNCHES);
        device.synchronize()?;
    }
    ours.sort();
    raws.sort();
    let (ours, raw) = (ours[ROUNDS / 2], raws[ROUNDS / 2]);
    println!(
        "enqueue of {what}: ours {ours:?}, cuLaunchKernel {raw:?}, difference {:?}; {allocated} allocations in {} launches",
        ours.saturating_sub(raw),
        ROUNDS as u32 * LAUNCHES
    );
    Ok(())
}

/// Twenty small launches, each behind the last, one by one, as a replay, and as a replay that is given other arguments before each launch.
fn chain() -> Result<(), Box<dyn Error>> {
    const CHAIN: usize = 20;
    let device = Device::cuda(0)?;
    let n = 1024;
    let (x, y) = (device.tensor(&[1.0f32; 1024])?, device.tensor(&[2.0f32; 1024])?);
    let mut out = device.zeros::<f32>(n)?;
    let work = |out: &mut Tensor<f32>, n: usize| (0..CHAIN).try_for_each(|_| add::<1024>(&x, &y, &mut *out, n).grid(1).launch());
    let mut replay = Replay::capture(device.stream(), || work(&mut out, n))?;
    let mut allocated = 0;
    // Medians of what the host needs to queue it, and of what it takes to its end.
    let mut time = |what: &str, work: &mut dyn FnMut() -> Result<(), galatea::Error>| -> Result<(), Box<dyn Error>> {
        let (mut queued, mut done) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
        for _ in 0..ROUNDS {
            device.synchronize()?;
            let (before, start) = (allocations(), Instant::now());
            work()?;
            queued.push(start.elapsed());
            allocated = allocations() - before;
            device.synchronize()?;
            done.push(start.elapsed());
        }
        queued.sort();
        done.sort();
        println!("{CHAIN} launches {what}: queued in {:?}, done in {:?}, {allocated} allocations", queued[ROUNDS / 2], done[ROUNDS / 2]);
        Ok(())
    };
    time("one by one", &mut || work(&mut out, n))?;
    time("as a replay", &mut || replay.launch((&x, &y, &mut out)))?;
    let mut iteration = 0;
    time("as a replay that is updated", &mut || {
        iteration += 1;
        replay.update(|| work(&mut out, n - iteration % 2))?;
        replay.launch((&x, &y, &mut out))
    })
}

/// The same kernel through the driver's calls alone.
mod raw {
    use super::*;

    /// A kernel of that many words that does nothing.
    pub(super) struct Function<const WORDS: usize> {
        function: sys::CUfunction,
        stream: sys::CUstream,
    }

    impl<const WORDS: usize> Function<WORDS> {
        pub(super) fn load(device: &Device) -> Result<Function<WORDS>, Box<dyn Error>> {
            let params: Vec<String> = (0..WORDS).map(|word| format!(".param .u64 p{word}")).collect();
            let ptx = format!(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nop({}) {{ ret; }}\n", params.join(", "));
            let ptx = CString::new(ptx)?;
            // A stream of its own, and not the device's: who has that may capture it, which launches there would ask about.
            let stream = Box::leak(Box::new(device.new_stream()?)).cuda_stream().ok_or("the device is a CUDA device")?.cu_stream();
            let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the PTX ends in a zero byte, and the context of the device is current.
            unsafe {
                sys::cuModuleLoadData(&mut module, ptx.as_ptr().cast()).result()?;
                sys::cuModuleGetFunction(&mut function, module, c"nop".as_ptr()).result()?;
            }
            Ok(Function { function, stream })
        }

        pub(super) fn launch(&self) -> Result<(), Box<dyn Error>> {
            let words = [0u64; WORDS];
            let mut params = words.each_ref().map(|word| std::ptr::from_ref(word).cast_mut().cast());
            // SAFETY: the kernel takes these words and touches no memory.
            unsafe {
                sys::cuLaunchKernel(self.function, 1, 1, 1, 128, 1, 1, 0, self.stream, params.as_mut_ptr(), std::ptr::null_mut())
                    .result()?;
            }
            Ok(())
        }
    }
}
