//! `st.async` and `red.async`: stores and reductions in the shared memory of another CTA that complete on an mbarrier there (PTX ISA, "Data
//! Movement and Conversion Instructions: st.async", "Parallel Synchronization and Communication Instructions: red.async").

use std::any::Any;

use super::async_access::{self, Held, SharedLocation};
use super::atomic::{self, Reduction};
use super::bulk::Combine;
use super::{Address, Form, Instruction, Progress, Unsupported, Value, access, bulk, mbarrier};
use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::lanes::WARP;
use crate::machine::{AsyncOperation, Cluster, Cx, Grid, InFlight, Issuer};
use crate::memory::{Operation, Proxy, Queue};
use crate::ptx::{Space, Type};

/// Decodes `st`: `st.async` here, other forms in `access`.
pub(super) fn decode_store(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("async") {
        return access::decode_store(form);
    }
    form.flag("weak");
    let count = form.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    decode(form, count, None)
}

/// Decodes `red`: `red.async` here, other forms in `atomic`.
pub(super) fn decode_reduction(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("async") {
        return atomic::decode_reduction(form);
    }
    if !form.flag("relaxed") || !form.flag("cluster") {
        return Err(form.error("`red.async` is `.relaxed.cluster`"));
    }
    let reduction = bulk::reduction(form)?;
    decode(form, 1, Some(reduction))
}

/// `st.async` or `red.async`.
struct StoreAsync {
    target: Address,
    values: Vec<Value>,
    mbarrier: Address,
    ty: Type,
    combine: Option<Combine>,
}

fn decode(form: &mut Form<'_>, count: usize, reduction: Option<Reduction>) -> Result<Box<dyn Instruction>, Unsupported> {
    form.flag("shared::cluster");
    bulk::completion(form, "mbarrier::complete_tx::bytes")?;
    let ty = form.ty()?;
    let is_legal = match reduction {
        None => matches!(ty, Type::B32 | Type::B64 | Type::U32 | Type::U64 | Type::S32 | Type::S64 | Type::F32 | Type::F64),
        Some(reduction) => ty.is_shared_reducible(reduction),
    };
    if !is_legal {
        return Err(form.error(format!("`{}.async` has no type `{ty}` here", form.opcode())));
    }
    Ok(Box::new(StoreAsync {
        target: form.address(Space::SharedCluster)?,
        values: form.sources(count, ty)?,
        mbarrier: form.address(Space::SharedCluster)?,
        ty,
        combine: reduction.map(|reduction| Combine { reduction, ty }),
    }))
}

impl Instruction for StoreAsync {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let targets = cx.addresses(self.target)?;
        let mbarriers = cx.addresses(self.mbarrier)?;
        let values = self.values.iter().map(|&value| cx.read(value)).collect::<Result<Vec<[u64; WARP]>, _>>()?;
        let size = self.ty.bytes();
        let bytes = size * values.len() as u32;
        for lane in cx.lanes {
            let target = async_access::shared_location(cx, lane, Space::SharedCluster, targets[lane], bytes, bytes)?;
            let mbarrier = async_access::shared_location(cx, lane, Space::SharedCluster, mbarriers[lane], 8, 8)?;
            if target.rank != mbarrier.rank {
                return Err(cx.illegal(lane, "the bytes go to one program of the cluster, and their mbarrier is in another"));
            }
            mbarrier::check_issue(cx, lane, mbarrier).map_err(|kind| Trap::new(lane, kind))?;
            let operation = async_access::issue(cx, lane, Proxy::Generic, Queue::Mbarrier);
            let owner = cx.issuer(lane);
            let line = cx.line.line;
            let start = u64::from(target.offset);
            let held = Held { range: start..start + u64::from(bytes), owner };
            cx.cluster.ctas[target.rank].shared.mark_pending(held.range.clone(), "an asynchronous store", line, owner);
            let data = values.iter().flat_map(|row| row[lane].to_le_bytes().into_iter().take(size as usize)).collect();
            let flying = Flying { target, mbarrier, data, combine: self.combine, held, operation, line };
            cx.cluster.in_flight.push_back(InFlight { issuer: owner, operation: Box::new(flying) });
        }
        let line = cx.line;
        cx.cluster.counters.asynchronous(line, u64::from(bytes * cx.lanes.count()));
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Shared
    }
}

/// The store or reduction of one lane, in flight.
struct Flying {
    target: SharedLocation,
    mbarrier: SharedLocation,
    data: Vec<u8>,
    combine: Option<Combine>,
    held: Held,
    operation: Operation,
    line: u32,
}

impl AsyncOperation for Flying {
    fn complete(&mut self, cluster: &mut Cluster, _grid: &Grid, issuer: Issuer) -> Result<(), Trap> {
        self.arrive(cluster).map_err(|kind| Trap::new(issuer.lane, kind))
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Flying {
    fn arrive(&self, cluster: &mut Cluster) -> Result<(), FaultKind> {
        bulk::put(cluster, &self.operation, self.target, &self.data, self.combine, self.line)?;
        let done = self.operation.done();
        mbarrier::complete_bytes(cluster, self.mbarrier, self.data.len() as u32, std::slice::from_ref(&self.held), &done)?;
        cluster.happened();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::instructions::Progress;
    use crate::instructions::harness::{refusal, with_registers};
    use crate::lanes::Lanes;
    use crate::ptx::Space;

    #[test]
    fn bytes_arrive_and_are_counted() {
        let mut harness = with_registers();
        harness.variable("bar", Space::Shared, 8);
        harness.variable("tile", Space::Shared, 1024);
        harness.lanes = Lanes::of(0);
        harness.run("mbarrier.init.shared::cta.b64 [bar], 1;").unwrap();
        harness.run("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 12;").unwrap();
        harness.run("mapa.shared::cluster.u32 %r1, tile, 0;").unwrap();
        harness.run("mapa.shared::cluster.u32 %r2, bar, 0;").unwrap();
        harness.run("getctarank.shared::cluster.u32 %r3, %r1;").unwrap();
        assert_eq!((harness.value("%r1")[0], harness.value("%r3")[0]), (1 << 24 | 1024, 0));
        harness.run("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r1], {5, 6}, [%r2];").unwrap();
        harness.run("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], 10, [%r2];").unwrap();
        assert_eq!(harness.run("mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0;"), Ok(Progress::Yield));
        // The reduction is not ordered after the store. Two strong accesses would not race, but the store is weak.
        let mut store = harness.cluster.in_flight.pop_front().expect("the store is in flight");
        store.operation.complete(&mut harness.cluster, &harness.grid, store.issuer).unwrap();
        let mut reduction = harness.cluster.in_flight.pop_front().expect("the reduction is in flight");
        assert!(reduction.operation.complete(&mut harness.cluster, &harness.grid, reduction.issuer).is_err());
    }

    #[test]
    fn types_are_checked() {
        let refused = |text: &str| refusal(&format!("{text} [%r0], %r1, [%r2];"));
        let store = "st.async.shared::cluster.mbarrier::complete_tx::bytes";
        assert_eq!(refused(&format!("{store}.b16")), Some("`st.async` has no type `.b16` here".to_owned()));
        let reduction = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes";
        assert_eq!(refused(&format!("{reduction}.min.b32")), Some("`red.async` has no type `.b32` here".to_owned()));
    }
}
