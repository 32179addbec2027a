//! Random kernels: the executor, which knows forms, ranges, chunks and reused slots, equals one that knows none of these.

mod support;

use kernel_lang::ir::parse;
use proptest::prelude::*;
use support::random_kernels;

const GRID: [u32; 3] = [2, 1, 2];

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 250 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels(choices in prop::collection::vec(any::<u16>(), 10..400), seed in any::<u64>()) {
        let func = random_kernels::make(&choices);
        // Through the text, so that a failure can be replayed from what it prints.
        let func = parse(&func.to_string()).unwrap();
        support::check(&func, random_kernels::tensors(&func, seed), &random_kernels::SCALARS, GRID);
    }
}
