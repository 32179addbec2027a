//! Postorder walks over values and their operands, without recursion: a chain of ops may be longer than the stack is deep.

/// Visits `root` and its dependencies in the order in which a recursive function would return from them.
///
/// `enter` decides whether to visit a node, and appends the nodes to leave before it, the first one first. It must reject nodes that `leave`
/// has seen; otherwise a shared node is visited once for each path to it. When `leave` sees a node, all its dependencies are done.
pub fn postorder<Cx: ?Sized, N: Copy>(
    cx: &mut Cx,
    root: N,
    mut enter: impl FnMut(&mut Cx, N, &mut Vec<N>) -> bool,
    mut leave: impl FnMut(&mut Cx, N),
) {
    let mut open = vec![(root, false)];
    let mut before = Vec::new();
    while let Some((node, is_entered)) = open.pop() {
        if is_entered {
            leave(cx, node);
        } else if enter(cx, node, &mut before) {
            open.push((node, true));
            open.extend(before.drain(..).rev().map(|node| (node, false)));
        } else {
            before.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_left_once_behind_those_before_it() {
        // Node n depends on n - 1 and n - 2: shared operands, a hundred levels deep.
        let mut left: Vec<u32> = Vec::new();
        let enter = |left: &mut Vec<u32>, node: u32, before: &mut Vec<u32>| {
            before.extend([node.checked_sub(2), node.checked_sub(1)].into_iter().flatten());
            !left.contains(&node)
        };
        postorder(&mut left, 100, enter, |left, node| left.push(node));
        assert_eq!(left, (0..=100).collect::<Vec<_>>());
    }
}
