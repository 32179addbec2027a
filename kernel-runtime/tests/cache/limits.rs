//! The size limit of a store, and the order of eviction.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use kernel_runtime::cache::{Key, Kind, Store};

use crate::Test;
use crate::children::numbered;
use crate::faults::file;

pub(crate) const TESTS: &[Test] = &[
    ("a_store_stays_below_its_limit", stays_below),
    ("least_recently_used_entries_are_evicted_first_and_records_last", order),
    ("a_read_during_a_removal_finds_a_complete_entry_or_none", readers),
    ("clearing_removes_what_was_asked_for", clearing),
];

fn code(number: usize) -> Key {
    Key::new(Kind::Code, &[("number", &number.to_string())])
}

fn bytes(store: &Store) -> u64 {
    // A file takes whole blocks of 4096 bytes on a disk.
    store.entries().unwrap().iter().map(|entry| entry.bytes.next_multiple_of(4096)).sum()
}

fn stays_below() {
    let directory = tempfile::tempdir().unwrap();
    let limit = 1 << 20;
    let store = Store::open(directory.path()).with_limit_bytes(limit);
    for number in 0..200 {
        // Another process would open it anew.
        Store::open(directory.path()).with_limit_bytes(limit).put(&code(number), &vec![1; 30_000 - 100 * number]).unwrap();
        assert!(bytes(&store) <= limit, "{} after {number}", bytes(&store));
        assert!(store.get(&code(number)).is_some());
    }
    assert!(bytes(&store) > limit / 2, "{}", bytes(&store));
    // Sweeping again removes nothing.
    let before = bytes(&store);
    store.sweep();
    let after = bytes(&store);
    store.sweep();
    assert!(after <= before && bytes(&store) == after);
}

fn order() {
    let directory = tempfile::tempdir().unwrap();
    let roomy = Store::open(directory.path());
    let record = Key::new(Kind::Tuning, &[("kernel", "silu")]);
    roomy.put(&record, &[1; 1000]).unwrap();
    for number in 0..20 {
        roomy.put(&code(number), &[2; 10_000]).unwrap();
    }
    // The record is the oldest of all, then the numbers in order.
    let ago = |hours: usize| SystemTime::now() - Duration::from_secs(60 * 60 * hours as u64);
    let age = |key: &Key, hours| fs::File::open(file(&roomy, key)).unwrap().set_modified(ago(hours)).unwrap();
    age(&record, 1000);
    (0..20).for_each(|number| age(&code(number), 100 - number));
    assert!(roomy.get(&code(3)).is_some(), "to use it makes it the youngest");
    let listed: Vec<_> = roomy.entries().unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!((&listed[0], &listed[20]), (&code(3), &record));

    // Room for the record and the five youngest: three quarters of the limit are left by a sweep.
    let tight = Store::open(directory.path()).with_limit_bytes((4096 + 5 * 12_288) / 3 * 4 + 100);
    tight.sweep();
    let mut left: Vec<Key> = tight.entries().unwrap().into_iter().map(|entry| entry.key).collect();
    left.sort_by_key(|key| key.field("number").map(|number| number.parse::<usize>().unwrap()));
    assert_eq!(left, [record, code(3), code(16), code(17), code(18), code(19)]);
}

fn readers() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).with_limit_bytes(400_000);
    let (over, found) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for start in 0..4 {
            let (store, over, found) = (&store, &over, &found);
            scope.spawn(move || {
                for i in (start..).take_while(|_| !over.load(Ordering::Relaxed)) {
                    let (key, payload) = numbered(9, i % 30);
                    if let Some(read) = store.get(&key) {
                        assert!(read == payload, "entry {}", i % 30);
                        found.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
        for i in 0..300 {
            let (key, payload) = numbered(9, i % 30);
            store.put(&key, &payload).unwrap();
            if i % 7 == 0 {
                store.remove(&numbered(9, i % 11).0);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(found.into_inner());
}

fn clearing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("none"));
    assert!(store.entries().unwrap().is_empty() && store.clear(&Kind::ALL).unwrap() == (0, 0));
    let store = Store::open(directory.path());
    for i in 0..6 {
        let (key, payload) = numbered(1, i);
        store.put(&key, &payload).unwrap();
    }
    assert_eq!(store.clear(&[Kind::Code, Kind::Ptx]).unwrap().0, 4);
    assert!(store.entries().unwrap().iter().all(|entry| entry.key.kind() == Kind::Tuning));
    assert_eq!((store.clear(&Kind::ALL).unwrap().0, store.entries().unwrap().len()), (2, 0));
}
