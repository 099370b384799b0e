// herring: writing and reading the text of a manifest.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_MANIFEST_IMPL_HPP
#define HERRING_CHECKPOINT_MANIFEST_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/base/text.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/replica.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace HERRING_NAMESPACE::detail::checkpoints {

inline constexpr std::string_view first_words = "herring checkpoint ", version = "1";
inline constexpr std::string_view crc_words = "crc32c ", front_words = "herring-";
inline constexpr std::size_t crc_line_bytes = crc_words.size() + 9;

inline constexpr char hex_digits[] = "0123456789abcdef";

HERRING_SETUP inline std::string crc_text(std::uint32_t crc) {
    std::string text(8, '0');
    for (std::size_t i = 0; i < 8; ++i) text[i] = hex_digits[crc >> (28 - 4 * i) & 15];
    return text;
}

/// Escapes control bytes and backslashes as \xHH.
HERRING_SETUP inline std::string escaped(std::string_view text) {
    std::string out;
    for (char const letter : text) {
        auto const byte = static_cast<unsigned char>(letter);
        if (byte >= 0x20 && byte != 0x7f && letter != '\\')
            out += letter;
        else
            (((out += "\\x") += hex_digits[byte >> 4]) += hex_digits[byte & 15]);
    }
    return out;
}

/// Returns the shortest text that reads back as the same number.
HERRING_SETUP inline std::string number_text(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

HERRING_SETUP inline void append_file(std::string& to, file_entry const& file) {
    append(to, {" ", file.data_bytes, " ", file.table_bytes, " ", crc_text(file.table_crc), " ", file.name,
                "\n"});
}

HERRING_SEPARABLE std::string write_manifest(manifest const& from) {
    std::string text;
    append(text,
           {first_words, version, "\ngeneration ", from.generation, "\nsteps ", from.steps, "\nelement ",
            escaped(from.element), "\noptimizer ", from.states, " ", escaped(from.optimizer), "\n"});
    for (auto const& group : from.groups) {
        text += "hyper";
        for (double const value : group) append(text, {" ", number_text(value)});
        text += '\n';
    }
    for (saved_tensor const& one : from.tensors)
        append(text, {"tensor ", one.elements, " ", one.group, " ", escaped(one.name), "\n"});
    for (file_entry const& one : from.parts) {
        text += "part";
        append_file(text, one);
    }
    for (section const& one : from.sections) {
        append(text, {"section ", one.name});
        append_file(text, one.file);
    }
    return text + std::string(crc_words) + crc_text(crc32c(std::as_bytes(std::span(text)))) + "\n";
}

/// Reads the lines of a manifest, word by word. Unexpected input sets `ok` to false, and reads as an empty
/// value.
class manifest_lines {
  public:
    explicit manifest_lines(std::string_view text) noexcept : rest_(text) {}

    bool ok = true;

    /// True if the next line begins with this word; goes on behind the word.
    bool begins(std::string_view word) noexcept {
        std::size_t const end = rest_.find('\n');
        if (end == rest_.npos || !rest_.starts_with(word)) return false;
        std::string_view const found = rest_.substr(word.size(), end - word.size());
        if (!found.empty() && found[0] != ' ') return false;
        line_ = found.substr(found.empty() ? 0 : 1);
        rest_.remove_prefix(end + 1);
        return true;
    }
    void must_begin(std::string_view word) noexcept { ok = begins(word) && ok; }
    bool at_end_of_line() const noexcept { return line_.empty(); }
    bool at_end() const noexcept { return rest_.empty(); }

    std::string_view word() noexcept {
        std::string_view const found = line_.substr(0, line_.find(' '));
        line_.remove_prefix(found.size() < line_.size() ? found.size() + 1 : found.size());
        return found;
    }
    template <class Number, class... Base> Number number(Base... base) noexcept {
        Number value = 0;
        std::string_view const digits = word();
        auto const read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base...);
        ok = ok && read.ec == std::errc() && read.ptr == digits.data() + digits.size();
        return value;
    }
    std::string text() {
        std::string out;
        for (std::string_view from = std::exchange(line_, {}); !from.empty();) {
            std::uint8_t byte = static_cast<std::uint8_t>(from[0]);
            bool const escape = from[0] == '\\';
            if (escape) {
                std::string_view const digits = from.substr(0, 4);
                ok = ok && digits.size() == 4 && digits[1] == 'x' &&
                     std::from_chars(digits.data() + 2, digits.data() + 4, byte, 16).ptr == digits.data() + 4;
                if (!ok) return {};
            }
            out += static_cast<char>(byte);
            from.remove_prefix(escape ? 4 : 1);
        }
        return out;
    }
    file_entry file() {
        file_entry one;
        one.data_bytes = number<std::uint64_t>();
        one.table_bytes = number<std::uint64_t>();
        one.table_crc = number<std::uint32_t>(16);
        one.name = word();
        std::uint64_t generation = 0;
        ok = ok && is_file_name(one.name, generation);
        return one;
    }

  private:
    std::string_view rest_, line_;
};

HERRING_SEPARABLE char const* read_manifest(std::string_view text, manifest& to) {
    if (!text.starts_with(first_words)) return "it is no manifest of a checkpoint";
    if (std::string_view const rest = text.substr(first_words.size());
        !rest.starts_with(version) || rest.substr(version.size(), 1) != "\n")
        return "its format is of another version of Herring, or damaged";
    if (text.size() < crc_line_bytes) return "it is cut short";
    std::string_view const body = text.substr(0, text.size() - crc_line_bytes);
    if (text.substr(body.size()) !=
        std::string(crc_words) + crc_text(crc32c(std::as_bytes(std::span(body)))) + "\n")
        return "its checksum is not that of its text: it is damaged or cut short";
    manifest read;
    manifest_lines in(body);
    in.must_begin("herring"); // the rest of this line was compared above
    in.must_begin("generation");
    read.generation = in.number<std::uint64_t>();
    in.must_begin("steps");
    read.steps = in.number<std::uint64_t>();
    in.must_begin("element");
    read.element = in.text();
    in.must_begin("optimizer");
    read.states = in.number<std::uint64_t>();
    read.optimizer = in.text();
    while (in.ok && in.begins("hyper")) {
        auto& group = read.groups.emplace_back();
        while (in.ok && !in.at_end_of_line()) group.push_back(in.number<double>());
    }
    while (in.ok && in.begins("tensor")) {
        auto& one = read.tensors.emplace_back();
        one.elements = in.number<std::uint64_t>();
        one.group = in.number<std::uint64_t>();
        one.name = in.text();
    }
    while (in.ok && in.begins("part")) read.parts.push_back(in.file());
    while (in.ok && in.begins("section")) {
        auto& one = read.sections.emplace_back();
        one.name = in.word();
        one.file = in.file();
    }
    // Refuses other spellings of the same values, such as 01 for 1.
    if (!in.ok || !in.at_end() || write_manifest(read) != text)
        return "its lines are not those of a manifest of this version";
    to = std::move(read);
    return nullptr;
}

HERRING_SEPARABLE std::string file_name(std::uint64_t steps, std::uint64_t generation,
                                        std::string_view what) {
    return text({front_words, steps, "-", generation, ".", what});
}

HERRING_SEPARABLE bool is_file_name(std::string_view name, std::uint64_t& generation) noexcept {
    if (!name.starts_with(front_words) || name.size() > 128) return false;
    std::uint64_t steps = 0;
    char const *at = name.data() + front_words.size(), *const end = name.data() + name.size();
    for (std::uint64_t* const number : {&steps, &generation}) {
        auto const read = std::from_chars(at, end, *number);
        if (read.ec != std::errc() || read.ptr == end || *read.ptr != (number == &steps ? '-' : '.'))
            return false;
        at = read.ptr + 1;
    }
    for (char const* letter = at; letter != end; ++letter)
        if (!((*letter >= 'a' && *letter <= 'z') || (*letter >= '0' && *letter <= '9'))) return false;
    return at != end;
}

HERRING_SEPARABLE bool is_saved_file(std::string_view name, std::uint64_t& generation) noexcept {
    if (!is_file_name(name, generation)) return false;
    auto const is_number = [](std::string_view digits) { // without leading zeros
        return !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos &&
               (digits[0] != '0' || digits.size() == 1);
    };
    name.remove_prefix(front_words.size());
    std::size_t const dash = name.find('-'), dot = name.find('.');
    if (!is_number(name.substr(0, dash)) || !is_number(name.substr(dash + 1, dot - dash - 1))) return false;
    std::string_view const what = name.substr(dot + 1);
    return what == user_section || what == manifest_draft || what == replica::section || is_number(what) ||
           (what.starts_with(replica::section) && is_number(what.substr(replica::section.size())));
}

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_MANIFEST_IMPL_HPP
