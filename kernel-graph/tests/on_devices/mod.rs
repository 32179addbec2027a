//! Test programs with trials for each device, named as `Device::parse` reads it: `cpu::runs::a_test`. Trials of a GPU that is not there are skipped.

use galatea::prelude::*;
use libtest_mimic::{Arguments, Trial};

/// A test's name, and what it does on a device.
pub(crate) type OnDevice = (&'static str, fn(Device));
/// A test's name, and what it does.
pub(crate) type Once = (&'static str, fn());

/// Runs the tests, one after the other: a profile has the launches of all threads, and copies are counted for all of them.
pub(crate) fn run(devices: &[&str], on_each: &[OnDevice], once: &[Once]) -> ! {
    let mut trials = Vec::new();
    for name in devices {
        let device = match Device::parse(name) {
            Ok(device) => Ok(device),
            Err(Error::NoDriver | Error::NoDevice { .. }) => Err("skipped: no GPU"),
            Err(error) => panic!("{error}"),
        };
        trials.extend(on_each.iter().map(|&(test_name, test)| {
            let name = format!("{name}::{test_name}");
            match device {
                Ok(device) => Trial::test(name, move || {
                    test(device);
                    Ok(())
                }),
                Err(reason) => Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind(reason),
            }
        }));
    }
    trials.extend(once.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    }));
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit()
}
