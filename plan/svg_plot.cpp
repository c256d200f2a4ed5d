// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "plan/report.h"

namespace aifs::plan {

namespace {

constexpr double kWidth = 640, kHeight = 400, kLeft = 60, kRight = 20, kTop = 40, kBottom = 50;
constexpr std::array<const char*, 4> kColours{"#1f6feb", "#d1242f", "#1a7f37", "#9a6700"};

// Ranks by their logarithm to the width, efficiencies from 0 to 1 to the height.
struct Axes {
  double first = 0.0, last = 1.0;  // logarithms to base 2

  double x(int64_t ranks) const {
    const double place = (std::log2(static_cast<double>(ranks)) - first) / (last - first);
    return kLeft + place * (kWidth - kLeft - kRight);
  }
  static double y(double efficiency) {
    return kHeight - kBottom - efficiency * (kHeight - kTop - kBottom);
  }
};

Axes axes_of(const std::vector<Scaling>& scalings) {
  Axes axes{.first = 64.0, .last = 0.0};
  for (const Scaling& scaling : scalings) {
    for (const ScalingPoint& p : scaling.points) {
      const double place = std::log2(static_cast<double>(p.ranks));
      axes.first = std::min(axes.first, place);
      axes.last = std::max(axes.last, place);
    }
  }
  if (axes.last <= axes.first) axes.last = axes.first + 1.0;
  return axes;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor) {
  return concat("<text x='", x, "' y='", y, "' text-anchor='", anchor, "'>", text, "</text>\n");
}

std::string grid(const Axes& axes) {
  std::string svg;
  for (int tenth = 0; tenth <= 10; tenth += 2) {
    const double y = Axes::y(0.1 * tenth);
    svg += concat("<path d='M", kLeft, " ", y, " H", kWidth - kRight, "' stroke='#ddd'/>\n");
    svg += text_at(kLeft - 8, y + 4, concat(10 * tenth, " %"), "end");
  }
  for (int power = static_cast<int>(std::ceil(axes.first)); power <= axes.last; power += 2) {
    const int64_t ranks = int64_t{1} << power;
    svg += text_at(axes.x(ranks), kHeight - kBottom + 18, concat(ranks), "middle");
  }
  return svg + text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "ranks", "middle");
}

std::string curve(const Scaling& scaling, const Axes& axes, const char* colour) {
  std::string path, dots;
  for (const ScalingPoint& p : scaling.points) {
    const double x = axes.x(p.ranks), y = Axes::y(std::min(1.0, p.efficiency));
    path += concat(path.empty() ? "M" : " L", x, " ", y);
    dots += concat("<circle cx='", x, "' cy='", y, "' r='3' fill='", colour, "'/>\n");
  }
  return concat("<path d='", path, "' fill='none' stroke-width='2' stroke='", colour, "'/>\n",
                dots);
}

}  // namespace

std::string to_svg(const std::vector<Scaling>& scalings, const std::string& title) {
  const Axes axes = axes_of(scalings);
  std::string svg =
      concat("<svg xmlns='http://www.w3.org/2000/svg' width='", kWidth, "' height='", kHeight,
             "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' "
             "fill='white'/>\n");
  svg += text_at(kLeft, 20, title, "start") + grid(axes);
  for (size_t i = 0; i < scalings.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    const double y = kHeight - kBottom - 40 + 16.0 * static_cast<double>(i);
    svg += curve(scalings[i], axes, colour);
    svg += concat("<rect x='", kLeft + 16, "' y='", y - 10, "' width='10' height='10' fill='",
                  colour, "'/>\n");
    svg += text_at(kLeft + 32, y, scalings[i].name + " scaling", "start");
  }
  return svg + "</svg>\n";
}

}  // namespace aifs::plan
