// herring: runs a fuzz target without libFuzzer: replays its corpus, then mutates it, from one seed.
// SPDX-License-Identifier: Apache-2.0
//
//   TARGET [--seconds N] [--rounds N] [--seed N] [--keep FILE] FILE_OR_FOLDER...     default: 2 s, seed 1
//
// One seed and --rounds give the same inputs on every machine. An input that ends the program is written to --keep first.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

using bytes = std::vector<std::uint8_t>;
constexpr std::size_t longest = 4096;

bytes current;
std::string keep;

// Only calls that a signal handler may make.
extern "C" void on_abort(int number) {
    int const file = ::open(keep.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (file >= 0 && ::write(file, current.data(), current.size()) >= 0) ::close(file);
    std::signal(number, SIG_DFL);
    std::raise(number);
}

void run(bytes const& one) {
    current = one; // a block of its own, so that a read past its end is seen
    current.shrink_to_fit();
    LLVMFuzzerTestOneInput(current.data(), current.size());
}

bytes mutated(std::vector<bytes> const& corpus, std::mt19937_64& random) {
    auto const below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
    bytes made = corpus[below(corpus.size())];
    auto const at = [&](std::size_t i) { return made.begin() + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t steps = 1 + below(6); steps > 0; --steps) {
        std::size_t const i = below(made.size());
        std::size_t const span = std::min(made.size() - i, 1 + below(16));
        switch (below(9)) {
        case 0: // a bit
            if (!made.empty()) made[i] ^= static_cast<std::uint8_t>(1u << below(8));
            break;
        case 1: // a byte
            if (!made.empty()) made[i] = static_cast<std::uint8_t>(random());
            break;
        case 2: { // a number at a limit
            constexpr std::uint64_t limits[] = {0,         1,          0x7F,       0x80,       0xFF,
                                                0xFFFF,    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1ull << 63,
                                                ~0ull - 7, ~0ull,      64,         4096};
            std::uint64_t const value = limits[below(std::size(limits))];
            std::size_t const size = std::size_t{1} << below(4);
            for (std::size_t b = 0; b < size && i + b < made.size(); ++b)
                made[i + b] = static_cast<std::uint8_t>(value >> (8 * b));
            break;
        }
        case 3: // some more
            for (std::size_t n = 1 + below(8); n > 0; --n)
                made.insert(at(i), static_cast<std::uint8_t>(random()));
            break;
        case 4: // some less
            made.erase(at(i), at(i + span));
            break;
        case 5: // an end
            made.resize(i);
            break;
        case 6: { // a piece twice
            bytes const piece(at(i), at(i + span));
            made.insert(at(below(made.size())), piece.begin(), piece.end());
            break;
        }
        case 7: { // the rest of another
            bytes const& other = corpus[below(corpus.size())];
            made.resize(i);
            made.insert(made.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())),
                        other.end());
            break;
        }
        default: { // another behind it
            bytes const& other = corpus[below(corpus.size())];
            made.insert(made.end(), other.begin(), other.end());
        }
        }
    }
    if (made.size() > longest) made.resize(longest);
    return made;
}

} // namespace

int main(int count, char** words) {
    double seconds = 2;
    std::uint64_t rounds = ~std::uint64_t{0}, seed = 1;
    std::vector<std::filesystem::path> files;
    keep = "crash-" + std::filesystem::path(words[0]).filename().string();
    for (int i = 1; i < count; ++i) {
        std::string const word = words[i];
        char const* const next = i + 1 < count ? words[i + 1] : "";
        if (word == "--seconds")
            seconds = std::atof(next), ++i;
        else if (word == "--rounds")
            rounds = std::strtoull(next, nullptr, 10), seconds = 1e9, ++i;
        else if (word == "--seed")
            seed = std::strtoull(next, nullptr, 10), ++i;
        else if (word == "--keep")
            keep = next, ++i;
        else if (std::filesystem::is_directory(word))
            for (auto const& entry : std::filesystem::directory_iterator(word)) files.push_back(entry.path());
        else
            files.emplace_back(word);
    }
    std::sort(files.begin(), files.end());
    std::vector<bytes> corpus{{}};
    for (auto const& file : files) {
        std::ifstream in(file, std::ios::binary);
        if (!in) return std::fprintf(stderr, "fuzz: cannot read %s\n", file.c_str()), 2;
        corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    std::signal(SIGABRT, on_abort);
    std::signal(SIGSEGV, on_abort);
    for (bytes const& one : corpus) run(one);
    auto const until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::mt19937_64 random(seed);
    std::uint64_t done = 0;
    for (; done < rounds && std::chrono::steady_clock::now() < until; ++done) run(mutated(corpus, random));
    std::printf("%s: %zu of the corpus, %llu mutated\n", std::filesystem::path(words[0]).filename().c_str(),
                corpus.size() - 1, static_cast<unsigned long long>(done));
}
