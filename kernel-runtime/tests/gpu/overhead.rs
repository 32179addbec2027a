//! The cost of a launch, beside the driver's own call.

use std::ffi::c_void;
use std::time::Instant;

use kernel_runtime::cudarc::driver::sys;
use kernel_runtime::prelude::*;

use crate::Test;
use crate::kernels::{NOTHING, nothing};

pub(crate) const TESTS: &[Test] = &[("a_launch_costs_little_more_than_the_drivers", a_launch_costs_little_more_than_the_drivers)];

const BATCH: usize = 200;
const ROUNDS: usize = 51;

fn a_launch_costs_little_more_than_the_drivers(device: Device) {
    let (x, y) = (device.zeros::<f32>(1024).unwrap(), device.zeros::<f32>(1024).unwrap());
    let mut out = device.zeros::<f32>(1024).unwrap();
    let n = x.len();
    nothing(&x, &y, &mut out, n).grid(8).launch().unwrap();

    let mut raw = raw_launch(device, &out);
    let mut ours = || nothing(&x, &y, &mut out, n).grid(8).launch().unwrap();
    let batch = |work: &mut dyn FnMut()| {
        device.synchronize().unwrap();
        let start = Instant::now();
        (0..BATCH).for_each(|_| work());
        start.elapsed().as_secs_f64() * 1e9 / BATCH as f64
    };
    let (mut raw_ns, mut our_ns) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        raw_ns.push(batch(&mut raw));
        our_ns.push(batch(&mut ours));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (raw_ns, our_ns) = (median(&mut raw_ns), median(&mut our_ns));
    println!("raw cuLaunchKernel {raw_ns:.0} ns, ours {our_ns:.0} ns, difference {:.0} ns", our_ns - raw_ns);
    assert!(our_ns < raw_ns + 500.0, "raw {raw_ns} ns, ours {our_ns} ns");
}

/// The same launch with nothing around the driver's call.
fn raw_launch(device: Device, out: &Tensor<f32>) -> impl FnMut() + use<> {
    // A stream of its own, and not the device's: who has that may capture it, which launches there would ask about.
    let stream = Box::leak(Box::new(device.new_stream().unwrap())).cuda_stream().unwrap().cu_stream();
    let text = std::ffi::CString::new(NOTHING).unwrap();
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the device is open and its context current; the text and the name are terminated.
    unsafe {
        sys::cuModuleLoadData(&mut module, text.as_ptr().cast()).result().unwrap();
        sys::cuModuleGetFunction(&mut function, module, c"nothing".as_ptr()).result().unwrap();
    }
    let mut words = [0u64; 7];
    words[5] = out.len() as u64;
    move || {
        let mut params: [*mut c_void; 7] = std::array::from_fn(|i| (&raw mut words[i]).cast());
        // SAFETY: the function takes seven words.
        let code = unsafe { sys::cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, params.as_mut_ptr(), std::ptr::null_mut()) };
        assert_eq!(code, sys::CUresult::CUDA_SUCCESS);
    }
}
