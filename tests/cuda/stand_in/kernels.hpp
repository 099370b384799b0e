// herring: a stand-in for CUDA's runtime: the kernels that it knows, as functions of the host that run over the same grid.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CUDA_STAND_IN_KERNELS_HPP
#define HERRING_TESTS_CUDA_STAND_IN_KERNELS_HPP

#include "cuda/stand_in/streams.hpp"

#include "herring/gpu/kernel/batched_copy.hpp"
#include "herring/gpu/kernel/fold.hpp"
#include "herring/gpu/kernel/inspection.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <cstddef>
#include <typeinfo>
#include <vector>

#include <cxxabi.h>

/// A kernel as the program registers it.
struct CUkern_st {
    std::string name; ///< in words, with its template's arguments, without those of the call
};

namespace stand_in {

struct launched {
    CUkern_st const& kernel;
    dim3 grid, block;
    void** arguments; ///< read at the launch only
    int device;

    template <class Argument> Argument const& at(int i) const noexcept {
        return *static_cast<Argument const*>(arguments[i]);
    }
};
using body = std::function<cudaError_t()>;
using maker = body (*)(launched const&);

inline std::string in_words(char const* mangled) {
    int status = 0;
    char* const text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    std::string const made = text != nullptr ? text : mangled;
    std::free(text);
    return made;
}

/// Herring's sum: the body that the device's kernel has, by every thread of the grid. Blocks begin anywhere.
template <class T, class Share> body sum(launched const& l) {
    using finisher = std::remove_cvref_t<decltype(Share::finish)>;
    return [given = l.at<herring::gpu::fold_args>(0), finish = l.at<finisher>(1), grid = l.grid,
            block = l.block.x, device = l.device] {
        herring::gpu::fold_args work = given;
        std::size_t const slices = work.where.count();
        if (slices == 0) return cudaSuccess;
        std::size_t const first = work.where.begin(0);
        std::size_t const count = work.where.begin(slices - 1) + work.where.size(slices - 1) - first;
        auto const there = [&](void const* base, std::size_t size) -> std::byte* {
            std::byte* const found = reach(device, static_cast<std::byte const*>(base) + first * size,
                                           count * size, "fold_kernel");
            return found == nullptr ? nullptr : found - first * size;
        };
        for (int s = 0; s < work.source_count; ++s)
            if ((work.sources[s] = there(work.sources[s], sizeof(T))) == nullptr)
                return cudaErrorIllegalAddress;
        for (int t = 0; t < work.target_count; ++t)
            if ((work.targets[t] = there(work.targets[t], sizeof(typename Share::target))) == nullptr)
                return cudaErrorIllegalAddress;
        Share const share{work, finish};
        std::size_t const threads = std::size_t{grid.x} * block;
        static std::atomic<std::size_t> turn{0};
        std::size_t const from = turn.fetch_add(7);
        for (std::size_t y = 0; y < grid.y; ++y)
            for (std::size_t i = 0; i < threads; ++i)
                for (std::size_t j = y; j < slices; j += grid.y) share.run(j, (i + from) % threads, threads);
        return cudaSuccess;
    };
}

template <class T> body inspection(launched const& l) {
    using herring::gpu::inspection_result;
    return [from = l.at<T const*>(0), count = l.at<std::size_t>(1), to = l.at<inspection_result*>(2),
            grid = l.grid, block = l.block.x, device = l.device] {
        auto* const data = reach(device, from, count * sizeof(T), "inspect_kernel");
        auto* const found = reach(device, to, grid.x * sizeof(inspection_result), "inspect_kernel");
        if (data == nullptr || found == nullptr) return cudaErrorIllegalAddress;
        for (std::size_t b = 0; b < grid.x; ++b) {
            inspection_result of_block;
            for (std::size_t t = 0; t < block; ++t) {
                inspection_result const one = herring::gpu::inspect(
                    reinterpret_cast<T const*>(data), count, b * block + t, std::size_t{grid.x} * block);
                of_block.not_finite += one.not_finite;
                of_block.squares += one.squares;
            }
            reinterpret_cast<inspection_result*>(found)[b] = of_block;
        }
        return cudaSuccess;
    };
}
/// The total, and behind it what the blocks found, as `herring::gpu::inspection_scratch` has them.
inline body join(launched const& l) {
    using herring::gpu::inspection_result;
    return [all = l.at<void*>(0), blocks = l.block.x, device = l.device] {
        auto* const found = reinterpret_cast<inspection_result*>(
            reach(device, all, (1 + blocks) * sizeof(inspection_result), "join_kernel"));
        if (found == nullptr) return cudaErrorIllegalAddress;
        found[0].squares = 0;
        for (std::size_t b = 1; b <= blocks; ++b) {
            found[0].not_finite += found[b].not_finite;
            found[0].squares += found[b].squares;
        }
        return cudaSuccess;
    };
}

/// Batched copies: the list is read when the kernel's turn comes, and chunks are copied by every thread of the grid.
inline body copies(launched const& l) {
    using herring::gpu::listed_copy;
    return [list = l.at<listed_copy const*>(0), count = l.at<std::size_t>(1), chunks = l.at<std::size_t>(2),
            grid = l.grid.x, block = l.block.x, device = l.device] {
        char const* const name = "batched_copy_kernel";
        auto* const there =
            reinterpret_cast<listed_copy const*>(reach(device, list, count * sizeof(listed_copy), name));
        if (there == nullptr) return cudaErrorIllegalAddress;
        std::vector<listed_copy> seen(there, there + count);
        std::size_t so_far = 0;
        for (listed_copy& one : seen) {
            if (one.end_chunk != so_far + herring::gpu::copy_chunks(one.to, one.bytes))
                complain("a list of copies whose chunks do not follow each other");
            so_far = one.end_chunk;
            one.from = reach(device, one.from, one.bytes, name);
            one.to = reach(device, one.to, one.bytes, name);
            if (one.from == nullptr || one.to == nullptr) return cudaErrorIllegalAddress;
        }
        if (so_far != chunks) complain("a list of copies with other chunks than the launch");
        for (std::size_t b = 0; b < grid; ++b)
            for (std::size_t t = 0; t < block; ++t)
                for (std::size_t c = b; c < std::min(chunks, so_far); c += grid)
                    herring::gpu::copy_chunk(seen.data(), count, c, t, block);
        return cudaSuccess;
    };
}

// ---- kernels of the tests' and the example's own ----------------------------------------------------------------

inline body faulty(launched const& l) {
    return [to = l.at<float*>(0), device = l.device] {
        return reach(device, to, sizeof *to, "faulty_kernel") == nullptr ? cudaErrorIllegalAddress
                                                                         : cudaSuccess;
    };
}
inline body beyond(launched const& l) {
    return [from = l.at<float const*>(0), threads = l.block.x, device = l.device] {
        return reach(device, from, threads * sizeof *from, "beyond_its_end") == nullptr
                   ? cudaErrorIllegalAddress
                   : cudaSuccess;
    };
}
inline body fill(launched const& l) {
    return [to = l.at<float*>(0), count = l.at<std::size_t>(1), value = l.at<float>(2), device = l.device] {
        auto* const there = reinterpret_cast<float*>(reach(device, to, count * sizeof(float), "backward"));
        if (there == nullptr) return cudaErrorIllegalAddress;
        std::fill(there, there + count, value);
        return cudaSuccess;
    };
}

/// All that it knows, by the beginning of their names up to the call's arguments.
class kernel_table {
  public:
    static kernel_table const& known() {
        static kernel_table const made;
        return made;
    }
    maker find(std::string const& name) const {
        auto const found = makers_.find(name.substr(0, name.find('(')));
        return found == makers_.end() ? nullptr : found->second;
    }

  private:
    template <class Update, class T> void add_sum() {
        if constexpr (Update::template supports<T>)
            for (int const sources : {1, 2, 3, 4, 8})
                for (int const ranks : {0, 2, 3})
                    for (bool const wide : {false, true}) {
                        herring::gpu::fold_args work;
                        work.source_count = sources;
                        work.ranks = ranks;
                        work.in_accumulator = wide;
                        herring::gpu::detail::choose_share<Update, T>(work, [&](auto const& share) {
                            using chosen = std::remove_cvref_t<decltype(share)>;
                            std::string name = in_words(typeid(chosen).name());
                            name.replace(name.find("fold_share"), 10, "fold_kernel");
                            makers_["void " + name] = &sum<T, chosen>;
                        });
                    }
    }
    /// What the name of a kernel in namespace gpu begins with; the version is part of it.
    static std::string home() {
        std::string const type = in_words(typeid(herring::gpu::inspection_result).name());
        return "void " + type.substr(0, type.rfind("::") + 2);
    }
    template <class T> void add_type() {
        add_sum<herring::update::sum, T>();
        add_sum<herring::update::average, T>();
        add_sum<herring::update::max, T>();
        makers_[home() + "inspect_kernel<" + in_words(typeid(T).name()) + ">"] = &inspection<T>;
    }
    kernel_table() {
        add_type<float>();
        add_type<double>();
        add_type<herring::bfloat16>();
        add_type<herring::float16>();
        add_type<std::int32_t>();
        add_type<std::int64_t>();
        makers_[home() + "batched_copy_kernel<512>"] = &copies;
        makers_[home() + "join_kernel<512>"] = &join;
        makers_["faulty_kernel"] = &faulty;
        makers_["beyond_its_end"] = &beyond;
        makers_["backward"] = &fill;
    }
    std::map<std::string, maker> makers_;
};

/// What the program has registered, by the function of the host that stands for it. Before `main`, and so no call of CUDA's.
struct registered_kernels {
    std::mutex guard;
    std::map<void const*, CUkern_st> by_function;
    static registered_kernels& all() {
        static registered_kernels* const made = new registered_kernels;
        return *made;
    }
    CUkern_st* find(void const* function) {
        std::lock_guard const lock(guard);
        auto const found = by_function.find(function);
        return found == by_function.end() ? nullptr : &found->second;
    }
};

inline cudaError_t launch(CUkern_st const* kernel, dim3 grid, dim3 block, void** arguments,
                          cudaStream_t stream) {
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        // Drivers differ in the code: one for blocks and one for grids shows both.
        if (block.x == 0 || block.x > 1024) return cudaErrorInvalidValue;
        if (grid.x == 0 || grid.y == 0 || grid.y > 65535 || grid.z != 1) return cudaErrorInvalidConfiguration;
        if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
        if (in.device != mine().device) return cudaErrorInvalidResourceHandle;
        maker const make = kernel_table::known().find(kernel->name);
        if (make == nullptr) {
            std::fprintf(stderr, "stand-in for CUDA: it does not know the kernel %s\n", kernel->name.c_str());
            return setting("HERRING_STAND_IN_UNKNOWN", 1) != 0 ? cudaErrorInvalidDeviceFunction : cudaSuccess;
        }
        return all.put(in, {make({*kernel, grid, block, arguments, in.device})});
    });
}

} // namespace stand_in

#endif // HERRING_TESTS_CUDA_STAND_IN_KERNELS_HPP
