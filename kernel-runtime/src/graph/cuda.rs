//! A graph as CUDA has it: made node by node, changed in place, and launched on a stream.
//!
//! Streams of CUDA's could write a graph down themselves (`cuStreamBeginCapture`). That forbids half of the driver meanwhile, to other threads too in its
//! global mode, is made invalid by any call that it forbids, and drags along whatever a stream waits for. Here the nodes are known, so they are added one by one.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUresult};

use super::lent::{Item, Known};
use super::node::{Code, Fill, KernelNode, Node};
use crate::args::Guards;
use crate::device::Cuda;
use crate::driver::{self, check, launch_error};
use crate::stream::Queue;
use crate::{Error, Result, grid, slice};

/// An executable graph, and what it was made of.
pub(super) struct Executable {
    cuda: &'static Cuda,
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    /// The driver's nodes for each of ours.
    nodes: Vec<Nodes>,
}

/// The version of CUDA that has edges between kernels of which the second begins early.
const EARLY_EDGES: i32 = 12_030;

/// One node, or two for elements of 8 bytes whose halves differ.
type Nodes = [sys::CUgraphNode; 2];

// SAFETY: handles of graphs may be used from any thread, by one at a time: whoever changes or launches one has `&mut Graph`.
unsafe impl Send for Executable {}
// SAFETY: as above; `&Executable` is only looked at through `&mut Graph`.
unsafe impl Sync for Executable {}

/// What a node is added behind.
#[derive(Clone, Copy)]
struct Last {
    node: sys::CUgraphNode,
    is_kernel: bool,
}

impl Executable {
    /// A graph whose nodes run one after the other.
    pub(super) fn new(cuda: &'static Cuda, nodes: &[Node]) -> Result<Executable> {
        // Launches that begin early are an option, which a driver may not know in graphs.
        if nodes.iter().any(|node| matches!(node, Node::Kernel(KernelNode { is_early: true, .. })))
            && driver::cuda_version() >= EARLY_EDGES
            && let Ok(made) = Executable::of(cuda, nodes, true)
        {
            return Ok(made);
        }
        Executable::of(cuda, nodes, false)
    }

    fn of(cuda: &'static Cuda, nodes: &[Node], early: bool) -> Result<Executable> {
        cuda.bind()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: `graph` is a valid place for the answer.
        check(unsafe { sys::cuGraphCreate(&mut graph, 0) }, "make a graph")?;
        let mut made = Executable { cuda, graph, executable: std::ptr::null_mut(), nodes: Vec::with_capacity(nodes.len()) };
        let mut last = None;
        for node in nodes {
            let added = made.add(node, &mut last, early)?;
            made.nodes.push(added);
        }
        // SAFETY: the graph is whole, and nobody else has it.
        check(unsafe { sys::cuGraphInstantiateWithFlags(&mut made.executable, graph, 0) }, "make a graph executable")?;
        Ok(made)
    }

    /// Adds nodes behind the last.
    fn add(&self, node: &Node, last: &mut Option<Last>, early: bool) -> Result<Nodes> {
        let mut added: Nodes = [std::ptr::null_mut(); 2];
        let context = self.cuda.context.cu_ctx();
        let behind =
            |last: &Option<Last>| (last.as_ref().map_or(std::ptr::null(), |last| &raw const last.node), usize::from(last.is_some()));
        match node {
            Node::Kernel(node) => {
                let overlapped = last.filter(|last| early && node.is_early && last.is_kernel);
                let (dependencies, count) = if overlapped.is_some() { (std::ptr::null(), 0) } else { behind(last) };
                let add = |params: &sys::CUDA_KERNEL_NODE_PARAMS| {
                    // SAFETY: graph and dependency are alive, and the parameters are those of the function, which the driver copies.
                    unsafe { sys::cuGraphAddKernelNode_v2(&mut added[0], self.graph, dependencies, count, params) }
                };
                with_params(node, add)?;
                if let Some(last) = overlapped {
                    self.begin_early(last.node, added[0])?;
                }
                *last = Some(Last { node: added[0], is_kernel: true });
            }
            Node::Copy { from, to, bytes } => {
                let (dependencies, count) = behind(last);
                let params = copy(*from, *to, *bytes);
                // SAFETY: graph and dependency are alive, and the parameters describe a copy inside the context.
                let code = unsafe { sys::cuGraphAddMemcpyNode(&mut added[0], self.graph, dependencies, count, &params, context) };
                check(code, "add a copy to a graph")?;
                *last = Some(Last { node: added[0], is_kernel: false });
            }
            Node::Fill(fill) => {
                for (place, params) in added.iter_mut().zip(fills(fill).into_iter().flatten()) {
                    let (dependencies, count) = behind(last);
                    // SAFETY: graph and dependency are alive, and the parameters describe memory of the context.
                    let code = unsafe { sys::cuGraphAddMemsetNode(place, self.graph, dependencies, count, &params, context) };
                    check(code, "add a fill to a graph")?;
                    *last = Some(Last { node: *place, is_kernel: false });
                }
            }
        }
        Ok(added)
    }

    /// Lets a kernel begin when the programs of another have said that it may. It waits for that one's end itself, as in `module::start_early`.
    fn begin_early(&self, from: sys::CUgraphNode, to: sys::CUgraphNode) -> Result<()> {
        let edge = sys::CUgraphEdgeData {
            from_port: sys::CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
            to_port: 0,
            type_: sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
            reserved: [0; 5],
        };
        // SAFETY: both are kernels of this graph.
        check(unsafe { sys::cuGraphAddDependencies_v2(self.graph, &from, &to, &edge, 1) }, "let a launch in a graph begin early")
    }

    /// Gives a node other arguments. Launches that are queued already keep those that they have. False if another number of the driver's nodes is
    /// needed for it.
    pub(super) fn replace(&self, place: usize, node: &Node) -> Result<bool> {
        self.cuda.bind()?;
        let (context, doing) = (self.cuda.context.cu_ctx(), "change a graph");
        let known = self.nodes[place];
        match node {
            Node::Kernel(node) => with_params(node, |params| {
                // SAFETY: the node is a kernel's of this graph, and the parameters are those of the function, which the driver copies.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.executable, known[0], params) }
            })?,
            Node::Copy { from, to, bytes } => {
                let params = copy(*from, *to, *bytes);
                // SAFETY: the node is a copy of this graph.
                check(unsafe { sys::cuGraphExecMemcpyNodeSetParams(self.executable, known[0], &params, context) }, doing)?;
            }
            Node::Fill(fill) => {
                let params = fills(fill);
                if params.iter().flatten().count() != known.iter().filter(|node| !node.is_null()).count() {
                    return Ok(false);
                }
                params.into_iter().flatten().zip(known).try_for_each(|(params, node)| {
                    // SAFETY: the node is a fill of this graph.
                    check(unsafe { sys::cuGraphExecMemsetNodeSetParams(self.executable, node, &params, context) }, doing)
                })?;
            }
        }
        Ok(true)
    }

    /// Queues a launch behind all that its memory is used for.
    pub(super) fn launch(&self, cuda: &Cuda, stream: Queue<'_>, items: &[Item<'_>], known: &[Known]) -> Result<()> {
        let doing = "launch a graph";
        stream.forbid_capture(doing)?;
        let used = || items.iter().zip(known).filter_map(|(item, known)| Some((&item.pointer.owner, known.written?)));
        let mut guards = Guards::new();
        for (owner, writes) in used() {
            if let Some(guard) = owner.before(writes, stream)? {
                guards.push(guard);
            }
        }
        cuda.bind()?;
        // SAFETY: graph and stream are alive; what the nodes use is among the items, which are borrowed until the launch is ordered before every later use,
        // or over.
        check(unsafe { sys::cuGraphLaunch(self.executable, stream.raw()) }, doing)?;
        let ordered = slice::record(guards, stream).and_then(|()| used().try_for_each(|(owner, writes)| owner.after(writes, stream)));
        ordered.map_err(|error| stream.finish(error))
    }
}

impl Drop for Executable {
    /// The driver keeps what runs until it is done.
    fn drop(&mut self) {
        if self.cuda.bind().is_err() {
            return;
        }
        // SAFETY: both are this one's own, and nobody uses them any more.
        unsafe {
            if !self.executable.is_null() {
                let _ = sys::cuGraphExecDestroy(self.executable);
            }
            let _ = sys::cuGraphDestroy(self.graph);
        }
    }
}

/// Calls the driver with the parameters of a launch. PTX says itself how many CTAs a cluster has, so no attribute does.
fn with_params(node: &KernelNode, call: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult) -> Result<()> {
    let KernelNode { kernel, code, words, grid, .. } = node;
    let Code::Cuda(loaded) = code else { return Err(Error::NotCuda { what: "a captured launch" }) };
    let (threads, shared_bytes) = (loaded.schedule.threads(), loaded.shared_bytes);
    let [x, y, z] = grid::of_ctas(*grid, loaded.schedule.num_ctas, kernel.name())?;
    let mut params: Vec<*mut c_void> = words.iter().map(|word| std::ptr::from_ref(word).cast_mut().cast()).collect();
    let params = sys::CUDA_KERNEL_NODE_PARAMS {
        func: loaded.function,
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared_bytes,
        kernelParams: params.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    match call(&params) {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(launch_error(code, kernel.name(), threads, shared_bytes)),
    }
}

/// One row of bytes.
fn copy(from: u64, to: u64, bytes: usize) -> sys::CUDA_MEMCPY3D {
    let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

/// The driver fills with elements of 1, 2 and 4 bytes. Each half of one of 8 is a column, one word wide, of a picture with a pitch of 8 bytes.
fn fills(&Fill { address, count, width, bits }: &Fill) -> [Option<sys::CUDA_MEMSET_NODE_PARAMS>; 2] {
    let (low, high) = (bits as u32, (bits >> 32) as u32);
    let params = |dst: u64, value: u32, bytes: u32, width: usize, height: usize, pitch: usize| {
        Some(sys::CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize: bytes, width, height })
    };
    match width {
        8 if low == high => [params(address, low, 4, 2 * count, 1, 0), None],
        8 => [params(address, low, 4, 1, count, 8), params(address + 4, high, 4, 1, count, 8)],
        width => [params(address, low, width as u32, count, 1, 0), None],
    }
}
