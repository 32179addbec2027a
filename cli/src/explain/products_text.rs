//! The parts of the report about matrix products as text.

use super::product_cost::Cost;
use super::products::{Copy, Reason, Version};
use super::report::Report;

/// The sections; empty for a kernel without products.
pub(super) fn render(report: &Report) -> String {
    let Some(roles) = &report.roles else { return String::new() };
    let mut text = "\nproducts\n".to_owned();
    for product in &report.products {
        let [m, n, k] = product.tile;
        let times = match product.executions {
            None => "executed as often as data says".to_owned(),
            Some(1) => "executed once in the launch".to_owned(),
            Some(count) => format!("executed {count} times in the launch"),
        };
        text += &format!("  dot, line {}\n    {m}x{n}x{k} of {}, {times}\n", product.line, product.dtype);
        match &product.with_roles {
            Some(with_roles) => text += &format!("    {with_roles} in the version with roles, {} in the usual version\n", product.usual),
            None => text += &format!("    {}\n", product.usual),
        }
    }
    text += "\nversion with roles\n";
    if let Some(lost) = &roles.lost {
        text += &format!("  none{}: {}\n  help: {}\n", at(lost), lost.reason, lost.help);
    }
    let Some(version) = &roles.version else { return text };
    text += match roles.taken {
        true => "  this launch takes it; accesses, resources and time above are those of the usual version\n",
        false => "  this launch takes the usual version, because a condition does not hold\n",
    };
    text + &body(version)
}

/// The line of a reason, if it has one.
fn at(reason: &Reason) -> String {
    if reason.line == 0 { String::new() } else { format!(", because of line {}", reason.line) }
}

fn body(version: &Version) -> String {
    let mut text = "  launches take it if\n".to_owned();
    text += &version.conditions.iter().map(|condition| format!("    {condition}\n")).collect::<String>();
    text += &version.copies.iter().map(copy).collect::<String>();
    for store in &version.usual_stores {
        text += &format!("  store, line {}\n    as in the usual version: {}\n    help: {}\n", store.line, store.reason, store.help);
    }
    for ring in &version.rings {
        text += &format!("  ring           {} slots of {} B, for line {}\n", ring.slots, ring.slot_bytes, ring.line);
    }
    let staging = if version.staging_bytes > 0 { format!(", of which stores take {}", version.staging_bytes) } else { String::new() };
    text += &format!("  shared memory  {} B a CTA{staging}\n", version.shared_bytes);
    text += &format!(
        "  producer       one of {} threads, with {} registers each\n  consumers      {} threads, with {} registers each\n",
        version.producer_threads, version.producer_registers, version.consumer_threads, version.consumer_registers
    );
    text += &format!("  workers        {} a multiprocessor, which take one program after another\n", version.workers_per_multiprocessor);
    text += &format!("  order          groups of {} programs along the first axis of the grid\n", version.group);
    text + &version.estimate.as_ref().map_or(String::new(), estimate)
}

fn copy(copy: &Copy) -> String {
    let [columns, rows] = copy.block;
    let s = if copy.instructions == 1 { "" } else { "s" };
    let direction = if copy.builtin == "load" { "to" } else { "from" };
    let mut text = format!("  {} {}, line {}\n", copy.builtin, copy.tensor, copy.line);
    text += &format!(
        "    tensor copy {direction} shared memory: {} instruction{s} a tile, box {columns}x{rows} of {}, swizzle {} B\n",
        copy.instructions, copy.dtype, copy.swizzle
    );
    if !copy.conditions.is_empty() {
        text += "    as in the usual version, unless\n";
        text += &copy.conditions.iter().map(|condition| format!("      {condition}\n")).collect::<String>();
    }
    text
}

fn estimate(cost: &Cost) -> String {
    let rows = [
        ("tensor cores", cost.tensor_us, format!("{:.0} % of the multiprocessors are busy on average", 100.0 * cost.busy)),
        ("shared memory", cost.shared_us, "copies write slots, instructions read them".to_owned()),
        ("L2", cost.l2_us, "each program reads its operands".to_owned()),
        ("memory", cost.memory_us, "different sectors".to_owned()),
        ("epilogue", cost.epilogue_us, "stores during which no worker multiplies".to_owned()),
        ("launch", cost.launch_us, "of a kernel that does nothing".to_owned()),
    ];
    let mut text = format!("\nestimated time with roles\n  {:<14} {:>8.2} us, limited by {}\n", "predicted", cost.predicted_us, cost.bound);
    for (name, time, of) in rows {
        text += &format!("  {name:<14} {time:>8.2} us: {of}\n");
    }
    text
}
