//! Which span is around which: the nesting of the spans and launches of each thread.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// A span or a launch: its thread and its time there.
pub(super) type Item = (u64, Range<Duration>);

/// For each item, the index of the innermost span around it. `spans` and `launches` are sorted by their starts, and of spans that begin together the longer
/// comes first.
pub(super) fn innermost(spans: &[Item], launches: &[Item]) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    // The open spans of each thread, outermost first.
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let (mut of_spans, mut of_launches) = (Vec::with_capacity(spans.len()), Vec::with_capacity(launches.len()));
    let mut around = |(thread, time): &Item, span: Option<usize>| {
        let open = open.entry(*thread).or_default();
        while open.last().is_some_and(|last| spans[*last].1.end < time.end || spans[*last].1.end <= time.start) {
            open.pop();
        }
        let innermost = open.last().copied();
        open.extend(span);
        innermost
    };
    let mut next = spans.iter().enumerate().peekable();
    for launch in launches {
        while let Some((index, span)) = next.next_if(|(_, span)| span.1.start <= launch.1.start) {
            of_spans.push(around(span, Some(index)));
        }
        of_launches.push(around(launch, None));
    }
    next.for_each(|(index, span)| of_spans.push(around(span, Some(index))));
    (of_spans, of_launches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_span_of_the_thread_is_around_an_item() {
        let us = |range: Range<u64>| Duration::from_micros(range.start)..Duration::from_micros(range.end);
        // Of thread 1: 0 holds 1, which holds 2; 3 reaches over the end of 0. Of thread 2: 4.
        let spans = [(1, 0..50), (1, 5..40), (1, 10..20), (1, 45..60), (2, 46..47)].map(|(thread, time)| (thread, us(time)));
        let launches =
            [(2, 1..2), (1, 11..19), (1, 20..30), (1, 41..44), (1, 50..55), (1, 61..62)].map(|(thread, time)| (thread, us(time)));
        let (of_spans, of_launches) = innermost(&spans, &launches);
        assert_eq!(of_spans, [None, Some(0), Some(1), None, None]);
        assert_eq!(of_launches, [None, Some(2), Some(1), Some(0), Some(3), None]);
    }
}
