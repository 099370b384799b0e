// training: just enough SVG to draw two charts.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_SVG_HPP
#define HERRING_EXAMPLES_TRAINING_SVG_HPP

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace training {

/// A number as short as it can be with `digits` behind the point.
inline std::string number(double value, int digits = 1) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/// A drawing on white; lengths in pixels, the origin at the top left.
class svg {
  public:
    enum class anchor { start, middle, end };

    svg(double width, double height, std::string_view title) {
        std::string const size = number(width, 0) + " " + number(height, 0);
        body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" +
                number(width, 0) + "\" height=\"" + number(height, 0) +
                "\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
                "role=\"img\">\n<title>" +
                escaped(title) + "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    }

    /// `hint` is what a browser shows when the pointer rests there.
    void rect(double x, double y, double width, double height, std::string_view fill,
              std::string_view hint = {}, double radius = 0) {
        body_ += "<rect x=\"" + number(x, 2) + "\" y=\"" + number(y, 2) + "\" width=\"" + number(width, 2) +
                 "\" height=\"" + number(height, 2) + "\" rx=\"" + number(radius) + "\" fill=\"" +
                 std::string(fill) + "\"";
        body_ += hint.empty() ? "/>\n" : "><title>" + escaped(hint) + "</title></rect>\n";
    }

    void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1,
              std::string_view dashes = {}) {
        body_ += "<line x1=\"" + number(x1, 2) + "\" y1=\"" + number(y1, 2) + "\" x2=\"" + number(x2, 2) +
                 "\" y2=\"" + number(y2, 2) + "\" stroke=\"" + std::string(colour) + "\" stroke-width=\"" +
                 number(width) + "\"";
        if (!dashes.empty()) body_ += " stroke-dasharray=\"" + std::string(dashes) + "\"";
        body_ += "/>\n";
    }

    void curve(std::vector<std::pair<double, double>> const& points, std::string_view colour) {
        body_ += "<polyline fill=\"none\" stroke=\"" + std::string(colour) +
                 "\" stroke-width=\"2\" stroke-linejoin=\"round\" stroke-linecap=\"round\" points=\"";
        for (auto const& [x, y] : points) body_ += number(x, 2) + "," + number(y, 2) + " ";
        body_ += "\"/>\n";
    }

    void dot(double x, double y, std::string_view colour, std::string_view hint = {}) {
        body_ += "<circle cx=\"" + number(x, 2) + "\" cy=\"" + number(y, 2) + "\" r=\"4\" fill=\"" +
                 std::string(colour) + "\" stroke=\"#ffffff\" stroke-width=\"1.5\"><title>" + escaped(hint) +
                 "</title></circle>\n";
    }

    void text(double x, double y, std::string_view words, anchor at = anchor::start, double size = 12,
              std::string_view colour = "#333333", bool bold = false) {
        static constexpr char const* anchors[] = {"start", "middle", "end"};
        body_ += "<text x=\"" + number(x, 2) + "\" y=\"" + number(y, 2) + "\" font-size=\"" + number(size) +
                 "\" text-anchor=\"" + anchors[static_cast<int>(at)] + "\" fill=\"" + std::string(colour) +
                 "\"" + (bold ? " font-weight=\"600\"" : "") + ">" + escaped(words) + "</text>\n";
    }

    void save(std::string const& path) const {
        std::ofstream file(path);
        file << body_ << "</svg>\n";
        file.close();
        if (!file) throw std::runtime_error("cannot write " + path);
    }

  private:
    static std::string escaped(std::string_view words) {
        std::string out;
        for (char const c : words) {
            if (c == '<')
                out += "&lt;";
            else if (c == '>')
                out += "&gt;";
            else if (c == '&')
                out += "&amp;";
            else
                out += c;
        }
        return out;
    }

    std::string body_;
};

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_SVG_HPP
