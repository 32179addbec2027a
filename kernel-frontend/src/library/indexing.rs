//! Orders in which programs walk over a matrix of tiles.

/// `i * columns + j` counts the tiles in row-major order; the same number counts them in groups of `group` rows, each group column by column.
pub fn swizzle2d<I: Int>(i: Value<I>, j: Value<I>, rows: Value<I>, columns: Value<I>, group: Value<I>) -> (Value<I>, Value<I>) {
    let index = i * columns + j;
    let group_len = group * columns;
    let first = index / group_len * group;
    // The last group may have fewer rows.
    let height = min(rows - first, group);
    let inside = index % group_len;
    (first + inside % height, inside / height)
}
