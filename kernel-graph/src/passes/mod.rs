//! Rewrites of graphs, one a file.

pub(crate) mod cse;
pub(crate) mod dead_code;

use crate::graph::Graph;

/// The passes of a new graph, in order.
pub(crate) const ALL: [fn(&mut Graph); 3] = [
    dead_code::run, // before cse: a launch that is not needed must not count as a use
    cse::run,
    dead_code::run, // after cse, which leaves the nodes that it has replaced
];
