//! Planted races: all are found, whatever the order of warps and the number of cores, and nothing is found in their correct twins.

mod asynchronous;
mod clusters;
mod harness;
mod program;
mod programs;
mod rules;
mod shared;

use harness::{Planted, check};

fn all() -> impl Iterator<Item = &'static Planted> {
    [program::RACES, clusters::RACES, programs::RACES, asynchronous::RACES, shared::RACES].into_iter().flatten()
}

#[test]
fn threads_of_a_program() {
    program::RACES.iter().for_each(check);
}

#[test]
fn programs_of_a_cluster() {
    clusters::RACES.iter().for_each(check);
}

#[test]
fn programs_of_a_grid() {
    programs::RACES.iter().for_each(check);
}

#[test]
fn asynchronous_copies() {
    asynchronous::RACES.iter().for_each(check);
}

#[test]
fn shared_memory() {
    shared::RACES.iter().for_each(check);
}

#[test]
fn there_are_at_least_40_races_with_different_names() {
    let mut names: Vec<&str> = all().map(|planted| planted.name).collect();
    assert!(names.len() >= 40, "{} races", names.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().count(), "each has a name of its own");
}
