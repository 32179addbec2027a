//! Reconvergence points: the lanes of a divergent branch reconverge at the immediate post-dominator of the branch.
//!
//! The algorithm is that of Cooper, Harvey and Kennedy, *A Simple, Fast Dominance Algorithm* (2001), on the reversed control-flow graph.

use super::{Action, Step};

/// The node at the end of every path.
const END: usize = 0;

/// Sets `reconverge` of every branch.
pub(crate) fn run(steps: &mut [Step]) {
    let (starts, block_of) = blocks(steps);
    // Node 0 is the end; block `b` is node `b + 1`.
    let successors: Vec<Vec<usize>> = (0..starts.len()).map(|block| successors(steps, &starts, &block_of, block)).collect();
    let post_dominators = post_dominators(&successors);
    for block in 0..starts.len() {
        let last = starts.get(block + 1).copied().unwrap_or(steps.len()) - 1;
        let meeting = post_dominators[block + 1].filter(|&node| node != END).map(|node| starts[node - 1] as u32);
        match &mut steps[last].action {
            Action::Branch { reconverge, .. } | Action::BranchTable { reconverge, .. } => *reconverge = meeting,
            // Lanes without the guard predicate continue with the next step.
            Action::Work(_) | Action::Exit => {}
        }
    }
}

/// The first step of each block, and the block of each step.
fn blocks(steps: &[Step]) -> (Vec<usize>, Vec<usize>) {
    let mut is_start = vec![false; steps.len() + 1];
    is_start[0] = true;
    for (index, step) in steps.iter().enumerate() {
        match &step.action {
            Action::Work(_) => continue,
            Action::Branch { target, .. } => is_start[*target as usize] = true,
            Action::BranchTable { targets, .. } => targets.iter().for_each(|&target| is_start[target as usize] = true),
            Action::Exit => {}
        }
        is_start[index + 1] = true;
    }
    let starts: Vec<usize> = (0..steps.len()).filter(|&index| is_start[index]).collect();
    let mut block_of = vec![0; steps.len()];
    for (block, &start) in starts.iter().enumerate() {
        let end = starts.get(block + 1).copied().unwrap_or(steps.len());
        block_of[start..end].fill(block);
    }
    (starts, block_of)
}

/// The successor nodes of a block.
fn successors(steps: &[Step], starts: &[usize], block_of: &[usize], block: usize) -> Vec<usize> {
    let end = starts.get(block + 1).copied().unwrap_or(steps.len());
    let next = if end < steps.len() { block_of[end] + 1 } else { END };
    let step = &steps[end - 1];
    let node = |target: &u32| block_of.get(*target as usize).map_or(END, |block| block + 1);
    let mut nodes = match &step.action {
        Action::Work(_) => vec![next],
        Action::Branch { target, .. } => vec![node(target)],
        Action::BranchTable { targets, .. } => targets.iter().map(node).collect(),
        Action::Exit => vec![END],
    };
    if step.guard.is_some() && !nodes.contains(&next) {
        nodes.push(next);
    }
    nodes
}

/// The immediate post-dominator of each node; `None` for the end and for nodes without a path to the end.
fn post_dominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let nodes = successors.len() + 1;
    let mut predecessors = vec![Vec::new(); nodes];
    for (block, targets) in successors.iter().enumerate() {
        targets.iter().for_each(|&target| predecessors[target].push(block + 1));
    }
    // Post-order of the reversed graph, starting at the end.
    let mut order = Vec::with_capacity(nodes);
    let mut rank = vec![usize::MAX; nodes];
    let mut seen = vec![false; nodes];
    let mut stack = vec![(END, 0)];
    seen[END] = true;
    while let Some((node, next)) = stack.pop() {
        if let Some(&above) = predecessors[node].get(next) {
            stack.push((node, next + 1));
            if !seen[above] {
                seen[above] = true;
                stack.push((above, 0));
            }
        } else {
            rank[node] = order.len();
            order.push(node);
        }
    }
    let mut dominator: Vec<Option<usize>> = vec![None; nodes];
    dominator[END] = Some(END);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|&&node| node != END) {
            let mut meeting = None;
            for &target in successors[node - 1].iter().filter(|&&target| dominator[target].is_some()) {
                meeting = Some(match meeting {
                    None => target,
                    Some(other) => meet(target, other, &dominator, &rank),
                });
            }
            if meeting != dominator[node] {
                dominator[node] = meeting;
                changed = true;
            }
        }
    }
    dominator[END] = None;
    dominator
}

/// The nearest common post-dominator of two nodes.
fn meet(mut a: usize, mut b: usize, dominator: &[Option<usize>], rank: &[usize]) -> usize {
    while a != b {
        while rank[a] < rank[b] {
            a = dominator[a].unwrap_or(END);
        }
        while rank[b] < rank[a] {
            b = dominator[b].unwrap_or(END);
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The immediate post-dominators of blocks, as blocks; the end is `None`.
    fn of(successors: &[&[usize]]) -> Vec<Option<usize>> {
        let shifted: Vec<Vec<usize>> = successors.iter().map(|targets| targets.to_vec()).collect();
        post_dominators(&shifted)[1..].iter().map(|node| node.filter(|&node| node != END).map(|node| node - 1)).collect()
    }

    #[test]
    fn a_diamond_meets_at_its_end() {
        assert_eq!(of(&[&[2, 3], &[4], &[4], &[END]]), [Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn a_loop_meets_at_its_exit() {
        // 0 -> 1; 1 -> 2 or 3; 2 -> 1; 3 ends.
        assert_eq!(of(&[&[2], &[3, 4], &[2], &[END]]), [Some(1), Some(3), Some(1), None]);
    }

    #[test]
    fn an_early_exit_meets_nowhere() {
        assert_eq!(of(&[&[2, 3], &[END], &[END]]), [None, None, None]);
    }

    #[test]
    fn an_endless_loop_meets_nowhere() {
        assert_eq!(of(&[&[2, 3], &[2], &[END]]), [Some(2), None, None]);
    }
}
