// herring: all_reduce of the library alone, for tests/torch/bits.py: the bits that its backend must have.
// SPDX-License-Identifier: Apache-2.0
//
//   bits FOLDER RANKS ELEMENTS     FOLDER/TYPE.RANK: the input of a rank; writes FOLDER/TYPE.RULE: the result
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>
#include <herring/update/any.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace herring;

template <class Element, class... Rules>
void write(world& ranks, std::string const& folder, std::string const& type, std::size_t elements,
           std::initializer_list<char const*> names, Rules... rules) {
    std::vector<Element> in(elements), out(elements);
    auto const bytes = static_cast<std::streamsize>(elements * sizeof(Element));
    std::ifstream given(folder + "/" + type + "." + std::to_string(ranks.rank()), std::ios::binary);
    if (!given.read(reinterpret_cast<char*>(in.data()), bytes))
        throw std::runtime_error("no input in " + folder);
    reducer<Element, transport::tcp, intra_node::shared_memory, update::any<Rules...>> reduce(ranks);
    auto name = names.begin();
    auto const one = [&](auto rule) {
        reduce.all_reduce(std::span<Element const>(in), std::span<Element>(out), rule);
        std::string const path = folder + "/" + type + "." + *name++;
        if (ranks.rank() != 0) return;
        std::ofstream file(path, std::ios::binary);
        if (!file.write(reinterpret_cast<char const*>(out.data()), bytes).flush())
            throw std::runtime_error("cannot write " + path);
    };
    (one(rules), ...);
}

} // namespace

int main(int count, char** words) {
    if (count != 4) return 2;
    std::string const folder = words[1];
    std::size_t const elements = std::strtoul(words[3], nullptr, 10);
    return launch(std::atoi(words[2]), [&](world& ranks) {
        using namespace update;
        auto const of_floats = {"SUM", "AVG", "PRODUCT", "MAX"};
        write<float>(ranks, folder, "float32", elements, of_floats, sum{}, average{}, product{}, max{});
        write<bfloat16>(ranks, folder, "bfloat16", elements, of_floats, sum{}, average{}, product{}, max{});
        write<float16>(ranks, folder, "float16", elements, of_floats, sum{}, average{}, product{}, max{});
        write<std::int64_t>(ranks, folder, "int64", elements, {"SUM", "PRODUCT", "MAX"}, sum{}, product{},
                            max{});
    });
}
