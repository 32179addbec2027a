//! Messages on standard error. A program must not fail if they cannot be written. Each case runs this executable as a process of its own.

mod trusted;

use std::fs::File;
use std::process::{Command, Output, Stdio};

use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Kernel, Schedule};
use libtest_mimic::{Arguments, Trial};

/// The environment variable that names the role of a child process.
const ROLE: &str = "KERNEL_RUNTIME_TEST_ROLE";

const TESTS: &[(&str, fn())] = &[
    ("the_cpu_instead_of_a_gpu_is_said_once", the_cpu_instead_of_a_gpu_is_said_once),
    ("a_program_that_asks_for_the_cpu_gets_no_note", a_program_that_asks_for_the_cpu_gets_no_note),
    ("lines_that_nobody_can_read_end_no_program", lines_that_nobody_can_read_end_no_program),
];

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("default") => return open_the_default_device(),
        Ok("print") => return print_from_a_kernel(),
        _ => {}
    }
    let trial = |&(name, test): &(&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), TESTS.iter().map(trial).collect()).exit();
}

fn open_the_default_device() {
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| Device::default().unwrap())).collect();
    threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), Device::default().unwrap()));
    println!("{}", Device::default().unwrap());
}

fn print_from_a_kernel() {
    const IR: &str = "kernel @say() file \"src/say.rs\" {\n    print {format = \"said\"} @2:5\n    return @3:1\n}\n";
    static SAY: Kernel = crate::trusted::kernel("say", IR, Schedule::DEFAULT, &[], &[]).printing();
    crate::trusted::launch::<0, 0>(Args::new(&SAY), []).on(Device::cpu().stream()).grid(2).launch().unwrap();
    println!("done");
}

/// A child that sees no GPU, also where there is one.
fn child(role: &str, standard_error: Stdio) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).env("CUDA_VISIBLE_DEVICES", "").env("SIM_DRIVER_GPUS", "0").env_remove("GALATEA_DEVICE");
    command.stdout(Stdio::piped()).stderr(standard_error);
    command.spawn().unwrap().wait_with_output().unwrap()
}

fn the_cpu_instead_of_a_gpu_is_said_once() {
    let Output { status, stdout, stderr } = child("default", Stdio::piped());
    assert!(status.success() && stdout == b"cpu\n", "{status}");
    let said = String::from_utf8(stderr).unwrap();
    assert!(said.starts_with("galatea: ") && said.contains("kernels run on the CPU") && said.lines().count() == 1, "{said}");
}

fn a_program_that_asks_for_the_cpu_gets_no_note() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).env(ROLE, "default").env("GALATEA_DEVICE", "cpu").output().unwrap();
    assert!(output.status.success() && output.stdout == b"cpu\n" && output.stderr.is_empty(), "{output:?}");
}

fn lines_that_nobody_can_read_end_no_program() {
    let said = child("print", Stdio::piped());
    assert!(said.status.success() && said.stderr.ends_with(b"src/say.rs:2: program (1, 0, 0): said\n"), "{said:?}");
    for (role, out) in [("default", "cpu\n"), ("print", "done\n")] {
        // A file that takes nothing.
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = child(role, full.into());
        assert!(output.status.success() && output.stdout == out.as_bytes(), "{role}: {output:?}");
    }
}
