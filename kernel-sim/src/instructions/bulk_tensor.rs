//! `cp.async.bulk.tensor` and related instructions: copy boxes of a tensor between global and shared memory (PTX ISA, "Tensors", "Data
//! Movement and Conversion Instructions: Tensor copy").

use super::async_access::{self, SharedLocation};
use super::atomic::Reduction;
use super::bulk::{self, Combine, Mbarriers, Parts, Piece, Source};
use super::{Address, Form, Instruction, Progress, Unsupported, Value};
use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::lanes::Row;
use crate::machine::{Access, Cx};
use crate::ptx::{Space, Type};
use crate::tensor_map::{BoxRow, ElementType, Field, TENSOR_MAP_BYTES, TensorMap};

/// The alignment of a tensor map.
const MAP_ALIGNMENT: u64 = 64;

/// The alignment of a box in shared memory.
const BOX_ALIGNMENT: u32 = 128;

/// Decodes the rest of `cp.async.bulk.tensor` or `cp.reduce.async.bulk.tensor`.
pub(super) fn decode(form: &mut Form<'_>, is_reduction: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    if form.modifier_where(|modifier| modifier.starts_with("im2col")).is_some() {
        return Err(form.error("the simulator knows `.tile` only, not `.im2col`"));
    }
    if form.modifier_where(|modifier| modifier.starts_with("tile::")).is_some() {
        return Err(form.error("the simulator knows `.tile` only, without `::gather4` and `::scatter4`"));
    }
    form.flag("tile");
    let is_prefetch = !is_reduction && form.flag("prefetch");
    let choices = [("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];
    let rank = form.one_of(&choices).ok_or_else(|| form.error("the number of dimensions is missing, such as `.2d`"))?;
    let first = form.next_modifier().unwrap_or_default();
    let second = form.next_modifier().unwrap_or_default();
    match (first, second) {
        ("L2", "global") if is_prefetch => prefetch(form, rank),
        ("global", "shared::cta") if !is_prefetch => store(form, rank, is_reduction),
        ("shared::cluster", "global") if !is_prefetch && !is_reduction => load(form, rank, Space::SharedCluster),
        ("shared::cta", "global") if !is_prefetch && !is_reduction => load(form, rank, Space::Shared),
        _ => Err(form.error(format!("a tensor copy can not go to `.{first}` from `.{second}`"))),
    }
}

/// The operand `[map, {x, y, ..}]`.
struct Tensor {
    map: Address,
    coordinates: Vec<Value>,
}

/// The values of the operand in each lane.
struct Boxes {
    maps: Row,
    coordinates: Vec<Row>,
}

fn tensor(form: &mut Form<'_>, rank: usize) -> Result<Tensor, Unsupported> {
    let (map, coordinates) = form.address_with_coordinates(Space::Generic, Type::S32)?;
    if coordinates.len() != rank {
        return Err(form.error(format!("{rank} coordinates are wanted, not {}", coordinates.len())));
    }
    Ok(Tensor { map, coordinates })
}

impl Tensor {
    fn read(&self, cx: &Cx<'_>) -> Result<Boxes, Trap> {
        let coordinates = self.coordinates.iter().map(|&value| cx.read(value)).collect::<Result<_, _>>()?;
        Ok(Boxes { maps: cx.addresses(self.map)?, coordinates })
    }
}

impl Boxes {
    /// The tensor map of a lane, and the coordinates of its box.
    fn of(&self, cx: &Cx<'_>, lane: usize) -> Result<(TensorMap, Vec<i32>), Trap> {
        let map = load_map(cx, lane, self.maps[lane])?;
        if map.rank() != self.coordinates.len() {
            let reason = format!("the tensor map has {} dimensions, and the instruction {}", map.rank(), self.coordinates.len());
            return Err(cx.illegal(lane, reason));
        }
        Ok((map, self.coordinates.iter().map(|row| row[lane] as i32).collect()))
    }
}

fn load_map(cx: &Cx<'_>, lane: usize, address: u64) -> Result<TensorMap, Trap> {
    if !address.is_multiple_of(MAP_ALIGNMENT) {
        return Err(Trap::new(lane, FaultKind::Misaligned { space: Space::Generic, address, alignment: MAP_ALIGNMENT as u32 }));
    }
    let mut bytes = [0; TENSOR_MAP_BYTES];
    async_access::load_generic(cx, address, &mut bytes).map_err(|kind| Trap::new(lane, kind))?;
    TensorMap::decode(&bytes).map_err(|reason| cx.illegal(lane, reason))
}

/// The pieces of a box at this shared offset. Each piece has its swizzled offset, and is completely inside or completely outside the
/// tensor.
fn pieces(map: &TensorMap, coordinates: &[i32], shared: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for BoxRow { shared: row, before, inside, after, global } in map.rows(coordinates) {
        let total = before + inside + after;
        let mut at = 0;
        while at < total {
            // A swizzle moves units of 16 bytes. A piece also ends at the edges of the tensor.
            let unit_end = at - at % 16 + 16;
            let (end, other) = if at < before {
                (before, None)
            } else if at < before + inside {
                (before + inside, Some(global + u64::from(at - before)))
            } else {
                (total, None)
            };
            let end = end.min(unit_end);
            pieces.push(Piece { shared: map.swizzle.apply(shared + row + at), other, bytes: end - at });
            at = end;
        }
    }
    pieces
}

struct TensorLoad {
    target: Address,
    tensor: Tensor,
    mbarrier: Address,
    multicast: Option<Value>,
    policy: Option<Value>,
}

fn load(form: &mut Form<'_>, rank: usize, target: Space) -> Result<Box<dyn Instruction>, Unsupported> {
    bulk::completion(form, "mbarrier::complete_tx::bytes")?;
    let is_multicast = target == Space::SharedCluster && form.flag("multicast::cluster");
    let has_policy = form.flag("L2::cache_hint");
    Ok(Box::new(TensorLoad {
        target: form.address(target)?,
        tensor: tensor(form, rank)?,
        mbarrier: form.address(target)?,
        multicast: if is_multicast { Some(form.source(Type::U16)?) } else { None },
        policy: if has_policy { Some(form.source(Type::B64)?) } else { None },
    }))
}

impl Instruction for TensorLoad {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let targets = cx.addresses(self.target)?;
        let boxes = self.tensor.read(cx)?;
        let mbarriers = Mbarriers { space: self.mbarrier.space, addresses: cx.addresses(self.mbarrier)? };
        let masks = self.multicast.map(|mask| cx.read(mask)).transpose()?;
        async_access::read_unused(cx, self.policy)?;
        for lane in cx.lanes {
            let (map, coordinates) = boxes.of(cx, lane)?;
            let target = shared_box(cx, lane, self.target.space, targets[lane], &map)?;
            let parts = Parts {
                target,
                span: map.box_span(),
                transaction_bytes: map.transaction_bytes(),
                pieces: pieces(&map, &coordinates, target.offset),
                fill: map.fill_bytes(),
                rounds: matches!(map.element, ElementType::Tf32 | ElementType::Tf32Ftz),
            };
            bulk::issue_load(cx, lane, parts, Source::Global, None, &mbarriers, masks.as_ref().map(|masks| masks[lane]))?;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

struct TensorStore {
    tensor: Tensor,
    source: Address,
    policy: Option<Value>,
    reduction: Option<Reduction>,
}

fn store(form: &mut Form<'_>, rank: usize, is_reduction: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    bulk::completion(form, "bulk_group")?;
    let reduction = if is_reduction { Some(bulk::reduction(form)?) } else { None };
    let has_policy = form.flag("L2::cache_hint");
    Ok(Box::new(TensorStore {
        tensor: tensor(form, rank)?,
        source: form.address(Space::Shared)?,
        policy: if has_policy { Some(form.source(Type::B64)?) } else { None },
        reduction,
    }))
}

impl Instruction for TensorStore {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let boxes = self.tensor.read(cx)?;
        let sources = cx.addresses(self.source)?;
        async_access::read_unused(cx, self.policy)?;
        for lane in cx.lanes {
            let (map, coordinates) = boxes.of(cx, lane)?;
            let source = shared_box(cx, lane, self.source.space, sources[lane], &map)?;
            let combine = self.reduction.map(|reduction| combine(cx, lane, reduction, map.element)).transpose()?;
            let pieces = pieces(&map, &coordinates, source.offset);
            bulk::issue_store(cx, lane, source, map.box_span(), pieces, combine);
        }
        Ok(Progress::Done)
    }

    fn crosses_ctas(&self) -> bool {
        self.reduction.is_some()
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

/// The type in which a reduction combines a tensor's elements.
fn combine(cx: &Cx<'_>, lane: usize, reduction: Reduction, element: ElementType) -> Result<Combine, Trap> {
    let is_bitwise = matches!(reduction, Reduction::And | Reduction::Or | Reduction::Xor);
    let ty = match element {
        ElementType::U32 | ElementType::S32 if is_bitwise => Type::B32,
        ElementType::U64 | ElementType::S64 if is_bitwise => Type::B64,
        ElementType::U32 => Type::U32,
        ElementType::S32 => Type::S32,
        ElementType::U64 => Type::U64,
        // In two's complement, signed and unsigned sums have the same bits.
        ElementType::S64 if reduction == Reduction::Add => Type::U64,
        ElementType::S64 => Type::S64,
        ElementType::F16 => Type::F16,
        ElementType::Bf16 => Type::Bf16,
        ElementType::F64 => Type::F64,
        ElementType::F32 | ElementType::F32Ftz | ElementType::Tf32 | ElementType::Tf32Ftz => Type::F32,
        ElementType::U8 | ElementType::U16 => return Err(cx.illegal(lane, format!("elements of type {element:?} can not be combined"))),
    };
    if ty.is_global_reducible(reduction) {
        Ok(Combine { reduction, ty })
    } else {
        Err(cx.illegal(lane, format!("the reduction can not combine elements of type `{ty}`")))
    }
}

struct TensorPrefetch {
    tensor: Tensor,
    policy: Option<Value>,
}

fn prefetch(form: &mut Form<'_>, rank: usize) -> Result<Box<dyn Instruction>, Unsupported> {
    let has_policy = form.flag("L2::cache_hint");
    Ok(Box::new(TensorPrefetch { tensor: tensor(form, rank)?, policy: if has_policy { Some(form.source(Type::B64)?) } else { None } }))
}

impl Instruction for TensorPrefetch {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let boxes = self.tensor.read(cx)?;
        async_access::read_unused(cx, self.policy)?;
        for lane in cx.lanes {
            boxes.of(cx, lane)?;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

/// The address of a box in shared memory.
fn shared_box(cx: &Cx<'_>, lane: usize, space: Space, address: u64, map: &TensorMap) -> Result<SharedLocation, Trap> {
    async_access::shared_location(cx, lane, space, address, map.box_span(), BOX_ALIGNMENT)
}

struct Replace {
    map: Address,
    field: Field,
    value: Value,
}

/// Decodes `tensormap.replace`.
pub(super) fn decode_replace(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("replace") || !form.flag("tile") {
        return Err(form.error("`tensormap.replace.tile` is wanted"));
    }
    let name = form.next_modifier().unwrap_or_default();
    let space = form.space();
    if !matches!(space, Space::Global | Space::Shared | Space::Generic) {
        return Err(form.error("a tensor map to change lies in `.global` or `.shared::cta` memory"));
    }
    if !form.flag("b1024") {
        return Err(form.error("`.b1024` is missing"));
    }
    let wide = matches!(name, "global_address" | "global_stride");
    if !form.flag(if wide { "b64" } else { "b32" }) {
        return Err(form.error(format!("`.{name}` is of `.{}`", if wide { "b64" } else { "b32" })));
    }
    let map = form.address(space)?;
    let dimension = if matches!(name, "box_dim" | "global_dim" | "global_stride" | "element_stride") {
        let ordinal = form.immediate()?;
        let limit = if name == "global_stride" { 4 } else { 5 };
        usize::try_from(ordinal)
            .ok()
            .filter(|&ordinal| ordinal < limit)
            .ok_or_else(|| form.error(format!("there is no dimension {ordinal}")))?
    } else {
        0
    };
    let field = match name {
        "global_address" => Field::GlobalAddress,
        "rank" => Field::Rank,
        "box_dim" => Field::BoxExtent(dimension),
        "global_dim" => Field::Extent(dimension),
        "global_stride" => Field::Stride(dimension),
        "element_stride" => Field::ElementStride(dimension),
        "elemtype" => Field::Element,
        "interleave_layout" => Field::Interleave,
        "swizzle_mode" => Field::Swizzle,
        "fill_mode" => Field::Fill,
        _ => return Err(form.error(format!("a tensor map has no field `.{name}`"))),
    };
    Ok(Box::new(Replace { map, field, value: form.source(if wide { Type::B64 } else { Type::B32 })? }))
}

impl Instruction for Replace {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let addresses = cx.addresses(self.map)?;
        let values = cx.read(self.value)?;
        let access = Access::plain("tensormap.replace", self.map.space, 16);
        let part = |number: usize| addresses.map(|address| address + 16 * number as u64);
        let mut parts = (0..TENSOR_MAP_BYTES / 16).map(|number| cx.load(access, &part(number))).collect::<Result<Vec<_>, _>>()?;
        for lane in cx.lanes {
            let mut bytes = [0; TENSOR_MAP_BYTES];
            for (bytes, part) in bytes.chunks_exact_mut(16).zip(&parts) {
                bytes.copy_from_slice(&part[lane].to_le_bytes());
            }
            self.field.replace(&mut bytes, values[lane]);
            for (bytes, part) in bytes.chunks_exact(16).zip(&mut parts) {
                part[lane] = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
            }
        }
        for (number, values) in parts.iter().enumerate() {
            cx.store(access, &part(number), values)?;
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::{Fill, Interleave, Promotion, Swizzle};

    fn map() -> TensorMap {
        TensorMap {
            element: ElementType::U16,
            global_address: 0x10_0000_0000,
            extents: vec![100, 4],
            strides: vec![208],
            box_extents: vec![32, 4],
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::Bytes64,
            promotion: Promotion::None,
            fill: Fill::Zero,
        }
    }

    #[test]
    fn pieces_are_swizzled_by_their_shared_address() {
        let pieces = pieces(&map(), &[0, 0], 1024);
        let piece = |shared, other: u64, bytes| Piece { shared, other: Some(0x10_0000_0000 + other), bytes };
        assert_eq!(pieces.len(), 16);
        assert_eq!(pieces[..2], [piece(1024, 0, 16), piece(1040, 16, 16)]);
        // Row 2 begins at byte 128, where the first two chunks are exchanged.
        assert_eq!(pieces[8..10], [piece(1024 + 128 + 16, 2 * 208, 16), piece(1024 + 128, 2 * 208 + 16, 16)]);
    }

    #[test]
    fn pieces_end_at_the_edges_of_the_tensor() {
        let pieces = pieces(&map(), &[-3, 3], 0);
        let inside = |shared, other: u64, bytes| Piece { shared, other: Some(0x10_0000_0000 + 3 * 208 + other), bytes };
        assert_eq!(pieces[..3], [Piece { shared: 0, other: None, bytes: 6 }, inside(6, 0, 10), inside(16, 10, 16)]);
        assert!(pieces[5..].iter().all(|piece| piece.other.is_none()), "{pieces:?}");
        assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u32>(), 256);
    }
}
