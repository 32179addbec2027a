//! Walks over what a value follows from, operands first, without recursion: a chain of ops may be longer than a stack is deep.

/// Visits `root` and what it leads to, in the order in which a recursive function would return from them.
///
/// `enter` says whether a node is to be visited, and appends those that are to be left before it, the first one first. It must refuse a node that
/// `leave` has seen, or a node that several others lead to is visited once for each way that leads there. `leave` then finds all of them done.
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
        // Node n follows from n - 1 and n - 2: shared a hundred deep.
        let mut left: Vec<u32> = Vec::new();
        let enter = |left: &mut Vec<u32>, node: u32, before: &mut Vec<u32>| {
            before.extend([node.checked_sub(2), node.checked_sub(1)].into_iter().flatten());
            !left.contains(&node)
        };
        postorder(&mut left, 100, enter, |left, node| left.push(node));
        assert_eq!(left, (0..=100).collect::<Vec<_>>());
    }
}
