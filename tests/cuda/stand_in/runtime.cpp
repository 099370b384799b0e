// herring: a stand-in for CUDA's runtime: its functions. Linked in place of libcudart; see process.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/stand_in/kernels.hpp"

using namespace stand_in;

namespace {

// Once a run.
[[maybe_unused]] bool const said = [] {
    std::fprintf(stderr, "%s: on a stand-in for CUDA's runtime, not on a GPU (%ld devices, seed %s%s%s%s)\n",
                 program_invocation_short_name, setting("HERRING_STAND_IN_DEVICES", 1),
                 std::getenv("HERRING_STAND_IN_SEED") ? std::getenv("HERRING_STAND_IN_SEED") : "of the time",
                 setting("HERRING_STAND_IN_PEERS", 1) != 0 ? "" : ", out of each other's reach",
                 std::getenv("HERRING_STAND_IN_SLIP") ? ", with a slip: " : "",
                 std::getenv("HERRING_STAND_IN_SLIP") ? std::getenv("HERRING_STAND_IN_SLIP") : "");
    return true;
}();

struct configuration {
    dim3 grid, block;
    std::size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<configuration> configurations;

cudaError_t device_call(int device, auto&& body) {
    return call([&] {
        return device < 0 || device >= static_cast<int>(here().devices.size()) ? cudaErrorInvalidDevice
                                                                               : body();
    });
}

} // namespace

extern "C" {

// ---- for tests --------------------------------------------------------------------------------------------------

/// Misuses, and objects that ranks left behind, of all processes of this run.
int herring_stand_in_complaints() { return counted->complaints; }
int herring_stand_in_left() { return counted->left; }
int herring_stand_in_copies() { return counted->copies; }
int herring_stand_in_opened() { return counted->opened; }

// Ranks end by it. Who ends well has released everything.
[[noreturn]] void _exit(int status) {
    if (process::used && status == 0 && here().id == ::getpid() && here().broken == cudaSuccess)
        if (std::string const text = left_over(); !text.empty()) {
            std::fprintf(stderr, "stand-in for CUDA: process %d: not released at its end: %s\n",
                         static_cast<int>(::getpid()), text.c_str());
            ++counted->left;
        }
    while (true) ::syscall(SYS_exit_group, status);
}

// ---- errors and devices -----------------------------------------------------------------------------------------

cudaError_t cudaGetLastError() {
    cudaError_t const broken = here().broken, last = mine().last;
    mine().last = cudaSuccess;
    return broken != cudaSuccess ? broken : last;
}
cudaError_t cudaPeekAtLastError() {
    cudaError_t const broken = here().broken;
    return broken != cudaSuccess ? broken : mine().last;
}
char const* cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define HERRING_NAMED(name)                                                                                  \
    case name:                                                                                               \
        return #name
        HERRING_NAMED(cudaSuccess);
        HERRING_NAMED(cudaErrorInvalidValue);
        HERRING_NAMED(cudaErrorMemoryAllocation);
        HERRING_NAMED(cudaErrorInitializationError);
        HERRING_NAMED(cudaErrorInvalidConfiguration);
        HERRING_NAMED(cudaErrorInvalidDeviceFunction);
        HERRING_NAMED(cudaErrorNoDevice);
        HERRING_NAMED(cudaErrorInvalidDevice);
        HERRING_NAMED(cudaErrorDeviceUninitialized);
        HERRING_NAMED(cudaErrorMapBufferObjectFailed);
        HERRING_NAMED(cudaErrorPeerAccessUnsupported);
        HERRING_NAMED(cudaErrorInvalidResourceHandle);
        HERRING_NAMED(cudaErrorIllegalState);
        HERRING_NAMED(cudaErrorNotReady);
        HERRING_NAMED(cudaErrorIllegalAddress);
        HERRING_NAMED(cudaErrorLaunchFailure);
        HERRING_NAMED(cudaErrorAssert);
        HERRING_NAMED(cudaErrorPeerAccessAlreadyEnabled);
        HERRING_NAMED(cudaErrorHostMemoryAlreadyRegistered);
        HERRING_NAMED(cudaErrorHostMemoryNotRegistered);
        HERRING_NAMED(cudaErrorStreamCaptureUnsupported);
        HERRING_NAMED(cudaErrorStreamCaptureInvalidated);
        HERRING_NAMED(cudaErrorStreamCaptureIsolation);
        HERRING_NAMED(cudaErrorStreamCaptureImplicit);
        HERRING_NAMED(cudaErrorStreamCaptureWrongThread);
        HERRING_NAMED(cudaErrorCapturedEvent);
#undef HERRING_NAMED
    default:
        return "cudaErrorUnknown";
    }
}
char const* cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : cudaGetErrorName(error);
}

// In a forked process, too, it answers as it did in the parent.
cudaError_t cudaGetDeviceCount(int* count) {
    *count = static_cast<int>(here().devices.size());
    return here().id != ::getpid() ? cudaSuccess : call([] { return cudaSuccess; });
}
cudaError_t cudaGetDevice(int* device) {
    *device = mine().device;
    return call([] { return cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
    return device_call(device, [&] {
        mine().device = device;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    return device_call(device, [&] {
        switch (attribute) {
        case cudaDevAttrMultiProcessorCount:
            return *value = 3, cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor:
            return *value = 9, cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
            return *value = 0, cudaSuccess;
        case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
            return *value = cudaFlushGPUDirectRDMAWritesOptionHost, cudaSuccess;
        case cudaDevAttrGPUDirectRDMAWritesOrdering:
            return *value = cudaGPUDirectRDMAWritesOrderingNone, cudaSuccess;
        default:
            std::fprintf(stderr, "stand-in for CUDA: it does not know attribute %d\n", attribute);
            return cudaErrorInvalidValue;
        }
    });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* facts, int device) {
    return device_call(device, [&] {
        *facts = {};
        std::snprintf(facts->name, sizeof facts->name, "a stand-in, no GPU: no figure here is one");
        facts->multiProcessorCount = 3;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    return device_call(device, [&] {
        std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0",
                      here().devices[static_cast<std::size_t>(device)] + 1);
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, char const* text) {
    return call([&] {
        unsigned bus = 0;
        if (std::sscanf(text, "0000:%x:00.0", &bus) != 1) return cudaErrorInvalidValue;
        auto const& all = here().devices;
        auto const found = std::find(all.begin(), all.end(), static_cast<int>(bus) - 1);
        if (found == all.end()) return cudaErrorInvalidDevice;
        *device = static_cast<int>(found - all.begin());
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    return device_call(device, [&] {
        *can = device != peer && here().peers ? 1 : 0;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
    return device_call(peer, [&] {
        std::lock_guard const lock(here().guard);
        bool& reaches = here().reaches[mine().device][peer];
        if (peer == mine().device || !here().peers) return cudaErrorInvalidDevice;
        if (reaches) return cudaErrorPeerAccessAlreadyEnabled;
        reaches = true;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
    return call([&] { return *least = 0, *most = -5, cudaSuccess; });
}
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget,
                                               cudaFlushGPUDirectRDMAWritesScope) {
    return call([] { return cudaSuccess; });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    return call([&] { return std::swap(*mode, mine().mode), cudaSuccess; });
}
cudaError_t cudaDeviceSynchronize() {
    std::vector<mark> due;
    cudaError_t const refused = with_objects([&](objects& all) {
        due = all.all_of_device(mine().device);
        return all.unsafe();
    });
    return refused != cudaSuccess ? refused : call([&] { return wait_for(due, "cudaDeviceSynchronize"); });
}

// ---- memory -----------------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
    return unsafe_call([&] { return allocate(made, bytes); });
}
// Waits for what is in the device's streams, as CUDA does.
cudaError_t cudaFree(void* at) {
    return unsafe_call([&] {
        if (at == nullptr) return cudaSuccess;
        std::vector<mark> due;
        {
            std::lock_guard const lock(here().guard);
            if (range const* const held = address_space::of_process().at(at); held != nullptr)
                due = objects::all().all_of_device(held->device);
        }
        cudaError_t const ended = wait_for(due, "cudaFree");
        return ended == cudaSuccess ? release(at) : ended;
    });
}
cudaError_t cudaMallocAsync(void** made, std::size_t bytes, cudaStream_t) {
    return call([&] { return allocate(made, bytes, true); });
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t) { return cudaFree(at); }
cudaError_t cudaMallocManaged(void** made, std::size_t bytes, unsigned) {
    return unsafe_call([&] { return allocate_of_host(made, bytes, memory_kind::managed); });
}
cudaError_t cudaGetDriverEntryPointByVersion(char const* symbol, void** at, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* how) {
    bool const known = std::strcmp(symbol, "cuPointerGetAttributes") == 0;
    *at = known ? reinterpret_cast<void*>(pointer_facts) : nullptr;
    *how = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned) {
    return unsafe_call([&] { return allocate_of_host(made, bytes); });
}
cudaError_t cudaMallocHost(void** made, std::size_t bytes) { return cudaHostAlloc(made, bytes, 0); }
// Both wait as well, for all devices.
static cudaError_t when_all_is_done(char const* name, auto&& body) {
    return unsafe_call([&] {
        std::vector<mark> due;
        {
            std::lock_guard const lock(here().guard);
            for (int d = 0; d < most_devices; ++d)
                for (mark& one : objects::all().all_of_device(d)) due.push_back(std::move(one));
        }
        cudaError_t const ended = wait_for(due, name);
        return ended == cudaSuccess ? body() : ended;
    });
}
cudaError_t cudaFreeHost(void* at) {
    return when_all_is_done("cudaFreeHost", [&] { return release_of_host(at); });
}
cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned) {
    return unsafe_call([&] { return lock_pages(at, bytes); });
}
cudaError_t cudaHostUnregister(void* at) {
    return when_all_is_done("cudaHostUnregister", [&] { return unlock_pages(at); });
}
cudaError_t cudaHostGetDevicePointer(void** seen, void* at, unsigned) {
    return call([&] {
        std::lock_guard const lock(here().guard);
        address_space& all = address_space::of_process();
        range const* const held = all.find(at);
        if (held == nullptr || !held->of_host()) return cudaErrorInvalidValue;
        *seen = held->seen == 0
                    ? at
                    : reinterpret_cast<void*>(
                          held->seen + static_cast<std::uintptr_t>(static_cast<std::byte*>(at) - held->real));
        return cudaSuccess;
    });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* facts, void const* at) {
    return call([&] {
        std::lock_guard const lock(here().guard);
        range const* const held = address_space::of_process().find(at);
        *facts = {};
        facts->type = held == nullptr                                        ? cudaMemoryTypeUnregistered
                      : held->kind == memory_kind::managed                   ? cudaMemoryTypeManaged
                      : held->of_host() || held->kind == memory_kind::mapped ? cudaMemoryTypeHost
                                                                             : cudaMemoryTypeDevice;
        facts->device = held == nullptr ? -1 : held->device;
        return cudaSuccess;
    });
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* made, void* at) {
    return unsafe_call([&] { return hand_out(made, at); });
}
cudaError_t cudaIpcOpenMemHandle(void** made, cudaIpcMemHandle_t from, unsigned flags) {
    return unsafe_call([&] { return take_in(made, from, flags); });
}
cudaError_t cudaIpcCloseMemHandle(void* at) {
    return unsafe_call([&] { return put_back(at); });
}
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t in) {
    counted->copies += kind == cudaMemcpyDeviceToDevice;
    return copy(to, from, bytes, kind, in, false);
}
cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
    return copy(to, from, bytes, kind, nullptr, true);
}
cudaError_t cudaMemset(void* at, int value, std::size_t bytes) { return set(at, value, bytes, nullptr); }
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t in) {
    return set(at, value, bytes, in);
}

// ---- streams ----------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int) {
    return with_objects([&](objects& all) {
        auto one = all.make_stream(mine().device, flags != cudaStreamNonBlocking, false);
        *made = one.get();
        all.streams.emplace(*made, std::move(one));
        return cudaSuccess;
    });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
    return cudaStreamCreateWithPriority(made, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* made) { return cudaStreamCreateWithPriority(made, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t given) {
    return in_stream(given, [&](objects& all, CUstream_st& in) {
        if (in.legacy) return cudaErrorInvalidResourceHandle;
        if (in.capturing) complain("cudaStreamDestroy of a stream that is being captured");
        in.close();
        all.streams.erase(given);
        return cudaSuccess;
    });
}
cudaError_t cudaStreamQuery(cudaStream_t given) {
    return in_stream(given, [&](objects& all, CUstream_st& in) {
        if (cudaError_t const refused = all.unsafe(); refused != cudaSuccess) return refused;
        return in.capturing ? cudaErrorStreamCaptureUnsupported : look_at(all.all_of(in));
    });
}
cudaError_t cudaStreamSynchronize(cudaStream_t given) {
    std::vector<mark> due;
    cudaError_t const refused = in_stream(given, [&](objects& all, CUstream_st& in) {
        due = all.all_of(in);
        bool implicit = false;
        if (in.legacy)
            all.blocking_streams(in.device, [&](CUstream_st& other) {
                if (!other.capturing) return;
                implicit = other.capturing->invalid = true;
            });
        if (implicit) return cudaErrorStreamCaptureImplicit;
        if (!in.capturing) return all.unsafe();
        in.capturing->invalid = true;
        return cudaErrorStreamCaptureUnsupported;
    });
    return refused != cudaSuccess ? refused : call([&] { return wait_for(due, "cudaStreamSynchronize"); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t given, cudaHostFn_t function, void* argument) {
    return in_stream(given, [&](objects& all, CUstream_st& in) {
        return all.put(in, {[=] { return function(argument), cudaSuccess; }});
    });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t in, cudaEvent_t event, unsigned) {
    return wait_event(in, event);
}

// ---- events -----------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) { return make_event(made, flags); }
cudaError_t cudaEventCreate(cudaEvent_t* made) { return make_event(made, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t given) {
    return with_event(given, [&](objects& all, CUevent_st&) { return all.events.erase(given), cudaSuccess; });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t in) { return record(event, in); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return query(event); }
cudaError_t cudaEventSynchronize(cudaEvent_t given) {
    std::vector<mark> due;
    cudaError_t const refused = with_event(given, [&](objects& all, CUevent_st& event) {
        due.push_back(event.last());
        return event.captured_in != nullptr ? cudaErrorCapturedEvent : all.unsafe();
    });
    return refused != cudaSuccess ? refused : call([&] { return wait_for(due, "cudaEventSynchronize"); });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
    return with_objects([&](objects& all) {
        CUevent_st const *const a = objects::known(all.events, from, "event"), *const b = objects::known(
                                                                                   all.events, to, "event");
        if (a == nullptr || b == nullptr) return cudaErrorInvalidResourceHandle;
        *ms = static_cast<float>(*b->when - *a->when) * 1e-6f;
        return cudaSuccess;
    });
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* made, cudaEvent_t event) {
    return hand_out(made, event);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* made, cudaIpcEventHandle_t from) {
    return take_in(made, from);
}

// ---- captures and graphs ----------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t in, cudaStreamCaptureMode mode) {
    return begin_capture(in, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t in, cudaGraph_t* made) { return end_capture(in, made); }
cudaError_t cudaStreamIsCapturing(cudaStream_t in, cudaStreamCaptureStatus* is) {
    return is_capturing(in, is);
}
cudaError_t cudaStreamGetDevice(cudaStream_t given, int* on) {
    return in_stream(given, [&](objects&, CUstream_st& in) {
        *on = in.device;
        return cudaSuccess;
    });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
    return instantiate(made, graph);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t in) { return launch_graph(graph, in); }
cudaError_t cudaGraphDestroy(cudaGraph_t given) {
    return with_objects(
        [&](objects& all) { return all.graphs.erase(given) ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t given) {
    return with_objects(
        [&](objects& all) { return all.launchable.erase(given) ? cudaSuccess : cudaErrorInvalidValue; });
}

// ---- kernels, as nvcc's code registers and launches them -------------------------------------------------------------

void** __cudaRegisterFatBinary(void*) {
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, char const*, int, std::size_t, int, int) {}
void __cudaRegisterFunction(void**, char const* function, char*, char const* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
    registered_kernels& all = registered_kernels::all();
    std::lock_guard const lock(all.guard);
    all.by_function[function] = {in_words(name)};
}
cudaError_t __cudaGetKernel(cudaKernel_t* made, void const* function) {
    *made = registered_kernels::all().find(function);
    return *made != nullptr ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t in) {
    configurations.push_back({grid, block, shared, in});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* in) {
    configuration const last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    *static_cast<cudaStream_t*>(in) = last.stream;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t,
                               cudaStream_t in) {
    return launch(kernel, grid, block, arguments, in);
}
cudaError_t cudaLaunchKernel(void const* function, dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t in) {
    return launch(registered_kernels::all().find(function), grid, block, arguments, in);
}
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* how, void const* function, void** arguments) {
    return launch(registered_kernels::all().find(function), how->gridDim, how->blockDim, arguments,
                  how->stream);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* facts, void const* function) {
    return call([&] {
        *facts = {};
        facts->maxThreadsPerBlock = 1024;
        facts->ptxVersion = facts->binaryVersion = 90;
        return registered_kernels::all().find(function) != nullptr ? cudaSuccess
                                                                   : cudaErrorInvalidDeviceFunction;
    });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void const* function, int,
                                                                   std::size_t, unsigned) {
    return call([&] {
        *blocks = 2;
        return registered_kernels::all().find(function) != nullptr ? cudaSuccess
                                                                   : cudaErrorInvalidDeviceFunction;
    });
}

} // extern "C"
