// herring: what tests of checkpoints use: a folder of their own, and its files as bytes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CHECKPOINT_FILES_HPP
#define HERRING_TESTS_CHECKPOINT_FILES_HPP

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace herring::tests {

/// A new folder, removed with all that is in it.
class scratch_folder {
  public:
    scratch_folder() : path_((std::filesystem::temp_directory_path() / "herring_XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder for a test");
    }
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    scratch_folder(scratch_folder const&) = delete;
    scratch_folder& operator=(scratch_folder const&) = delete;
    std::string const& path() const noexcept { return path_; }

  private:
    std::string path_;
};

inline std::string bytes_of(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
inline void put_bytes(std::string const& path, std::string const& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

using files = std::map<std::string, std::string>; // name → bytes

inline files files_of(std::string const& folder) {
    files all;
    for (auto const& one : std::filesystem::directory_iterator(folder))
        if (one.is_regular_file()) all[one.path().filename().string()] = bytes_of(one.path().string());
    return all;
}
/// The folder has these files, and no others.
inline void put_files(std::string const& folder, files const& all) {
    for (auto const& one : std::filesystem::directory_iterator(folder))
        std::filesystem::remove_all(one.path());
    for (auto const& [name, bytes] : all) put_bytes(folder + "/" + name, bytes);
}

} // namespace herring::tests

#endif // HERRING_TESTS_CHECKPOINT_FILES_HPP
