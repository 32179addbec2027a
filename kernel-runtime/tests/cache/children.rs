//! The roles of this executable as a child process.

use std::io::{Read, Write, stdout};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use kernel_runtime::cache::{Key, Kind, Store};
use kernel_runtime::prelude::*;

use crate::axpy::axpy;
use crate::random::Random;
use crate::tuning;

/// The environment variable that says what a child does.
pub(crate) const ROLE: &str = "GALATEA_CACHE_TEST";
/// The directory that it does it in.
const DIRECTORY: &str = "GALATEA_CACHE_TEST_DIRECTORY";
/// A number that it is told.
const NUMBER: &str = "GALATEA_CACHE_TEST_NUMBER";

/// This executable in that role. Of the caches it knows what the test says, and no home.
pub(crate) fn child(role: &str, directory: &Path, number: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).env(DIRECTORY, directory).env(NUMBER, number.to_string());
    command.env("GALATEA_CACHE", "off").env_remove("XDG_CACHE_HOME").env("HOME", "/dev/null");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits, and gives both outputs; the child must not have panicked.
pub(crate) fn outputs(child: Child) -> (String, String, bool) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(stdout), text(stderr));
    assert!(!err.contains("panicked"), "{out}\n{err}");
    (out, err, status.success())
}

/// Runs a child that must succeed; gives what it printed, and its errors.
pub(crate) fn succeed(mut command: Command) -> (String, String) {
    let (out, err, success) = outputs(command.spawn().unwrap());
    assert!(success, "{out}\n{err}");
    (out, err)
}

pub(crate) fn run(role: &str) {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let store = Store::open(directory);
    let number: u64 = std::env::var(NUMBER).unwrap().parse().unwrap();
    match role {
        "write" => write(&store, number),
        "make" => make(&store, number),
        "save" => save(&store, number),
        "fill" => fill(&store),
        "read" => read(&store, number),
        "launch" => launch(number),
        "tune" => tuning::tune(number as usize),
        "tune beside" => tuning::tune_beside(number as usize),
        role => panic!("no role is called {role}"),
    }
}

/// Keeps entry after entry, and says of each that it is kept, until it is killed. What is kept is kept once more: not even then may it be lost.
fn write(store: &Store, seed: u64) {
    for i in 0.. {
        let (key, payload) = numbered(seed, i);
        store.put(&key, &payload).unwrap();
        say(&i.to_string());
        for _ in 0..3 {
            store.put(&key, &payload).unwrap();
        }
    }
}

/// An entry that can be told from its numbers.
pub(crate) fn numbered(seed: u64, i: u64) -> (Key, Vec<u8>) {
    let key = Key::new(Kind::ALL[i as usize % 3], &[("seed", &seed.to_string()), ("number", &i.to_string())]);
    let mut random = Random::seeded(seed.wrapping_mul(31).wrapping_add(i));
    let most = if random.below(4) == 0 { 200_000 } else { 5000 };
    let len = random.below(most);
    (key, random.bytes(len))
}

/// Waits for the starting shot, and asks for what takes a while to make.
fn make(store: &Store, number: u64) {
    say("ready");
    let _ = std::io::stdin().read(&mut [0]);
    let mut made = false;
    let slowly = || {
        made = true;
        std::thread::sleep(Duration::from_millis(100));
        Ok::<_, ()>((number, number.to_string().into_bytes()))
    };
    let read = |payload: Vec<u8>| String::from_utf8(payload).ok()?.parse().ok();
    let value = store.get_or_make(&shared_key(), Duration::from_secs(60), read, slowly, |error| panic!("{error}")).unwrap();
    say(&format!("{} {value}", if made { "made" } else { "found" }));
}

/// The key that many processes ask for.
pub(crate) fn shared_key() -> Key {
    Key::new(Kind::Tuning, &[("kernel", "shared")])
}

/// Keeps its own record of the shared key over and over, and reads whatever is there.
fn save(store: &Store, number: u64) {
    for _ in 0..50 {
        store.put(&shared_key(), &own_record(number)).unwrap();
        let found = store.get(&shared_key()).expect("somebody's record is always there");
        assert_eq!(found, own_record(u64::from(found[0])));
    }
    say("saved");
}

/// A record that shows if two are mixed.
pub(crate) fn own_record(number: u64) -> Vec<u8> {
    vec![number as u8; 3000 + 1000 * number as usize]
}

/// Keeps a large entry and a small one, and says what became of them.
fn fill(store: &Store) {
    for (name, len) in [("large", 1 << 20), ("small", 100)] {
        let key = Key::new(Kind::Code, &[("size", name)]);
        let kept = store.put(&key, &vec![7; len]);
        let found = store.get(&key).is_some_and(|payload| payload == vec![7; len]);
        say(&format!("{name} {} {found}", kept.is_ok()));
    }
}

/// Looks for an entry, and says how much memory this process has ever had, in KiB.
fn read(store: &Store, kind: u64) {
    assert_eq!(store.get(&Key::new(Kind::ALL[kind as usize], &[("size", "large")])), None);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("0", |line| line.trim().trim_end_matches(" kB"));
    say(peak);
}

/// Launches a kernel that is compiled in process, twice with different constants, and says what it computed.
fn launch(value: u64) {
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(100, value as f32).unwrap(), device.full(100, 1.0f32).unwrap());
    axpy::<f32, 64>(2.0, &x, &mut y, 100).grid(2).launch().unwrap();
    axpy::<f32, 32>(0.0, &x, &mut y, 100).grid(4).launch().unwrap();
    let y = y.to_vec().unwrap();
    assert!(y.iter().all(|value| *value == y[0]), "{y:?}");
    say(&y[0].to_string());
}

pub(crate) fn say(line: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}
