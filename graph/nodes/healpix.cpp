// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/healpix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/check.h"

namespace aifs::graph {

namespace {

void check_resolution(int64_t resolution) {
  if (resolution >= 1 && resolution <= kMaxHealpixResolution) return;
  throw Error(concat("a HEALPix resolution must be from 1 to ", kMaxHealpixResolution, ", got ",
                     resolution));
}

// A pixel by its base face and its position in it: x grows to the north-east, y to the north-west.
struct Pixel {
  int64_t face, x, y;
};

// Every second bit of `bits`, packed.
int64_t even_bits(int64_t bits) {
  int64_t packed = 0;
  for (int bit = 0; (bits >> (2 * bit)) != 0; ++bit)
    packed |= ((bits >> (2 * bit)) & 1) << bit;
  return packed;
}

int64_t spread_bits(int64_t packed) {
  int64_t bits = 0;
  for (int bit = 0; (packed >> bit) != 0; ++bit)
    bits |= ((packed >> bit) & 1) << (2 * bit);
  return bits;
}

Pixel pixel_of(int64_t number, int64_t resolution) {
  const int64_t within = number & ((int64_t{1} << (2 * resolution)) - 1);
  return {number >> (2 * resolution), even_bits(within), even_bits(within >> 1)};
}

int64_t number_of(const Pixel& pixel, int64_t resolution) {
  return (pixel.face << (2 * resolution)) | spread_bits(pixel.x) | (spread_bits(pixel.y) << 1);
}

// Latitude and longitude of a pixel's centre; section 4.1 of the paper.
std::array<double, 2> centre_deg(const Pixel& pixel, int64_t side) {
  constexpr std::array<int64_t, 12> kSouthRow{2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4};
  constexpr std::array<int64_t, 12> kMeridian{1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7};
  const auto face = static_cast<size_t>(pixel.face);
  const int64_t ring = kSouthRow[face] * side - pixel.x - pixel.y - 1;
  const auto n = static_cast<double>(side);
  int64_t pixels_per_quarter = side, shift = 0;
  double z = 0.0;
  if (ring < side) {
    pixels_per_quarter = ring;
    z = 1 - static_cast<double>(ring * ring) / (3 * n * n);
  } else if (ring > 3 * side) {
    pixels_per_quarter = 4 * side - ring;
    z = -1 + static_cast<double>(pixels_per_quarter * pixels_per_quarter) / (3 * n * n);
  } else {
    z = 2 * static_cast<double>(2 * side - ring) / (3 * n);
    shift = (ring - side) & 1;
  }
  int64_t position = (kMeridian[face] * pixels_per_quarter + pixel.x - pixel.y + 1 + shift) / 2;
  const int64_t pixels = 4 * pixels_per_quarter;
  if (position > pixels) position -= pixels;
  if (position < 1) position += pixels;
  const double lon = (static_cast<double>(position) - static_cast<double>(shift + 1) / 2) * 90 /
                     static_cast<double>(pixels_per_quarter);
  return {std::asin(z) * 180 / kPi, lon};
}

// Where one leaves a face through a side, with `i` the position along it.
enum class Side { kNorthEast, kNorthWest, kSouthWest, kSouthEast };

Pixel across_side(int64_t face, Side side, int64_t i, int64_t last) {
  const int64_t j = face % 4, east = (j + 1) % 4, west = (j + 3) % 4;
  if (face < 4) {
    switch (side) {
      case Side::kNorthEast:
        return {east, i, last};
      case Side::kNorthWest:
        return {west, last, i};
      case Side::kSouthWest:
        return {4 + j, last, i};
      case Side::kSouthEast:
        return {4 + east, i, last};
    }
  }
  if (face < 8) {
    switch (side) {
      case Side::kNorthEast:
        return {j, 0, i};
      case Side::kNorthWest:
        return {west, i, 0};
      case Side::kSouthWest:
        return {8 + west, last, i};
      case Side::kSouthEast:
        return {8 + j, i, last};
    }
  }
  switch (side) {
    case Side::kNorthEast:
      return {4 + east, 0, i};
    case Side::kNorthWest:
      return {4 + j, i, 0};
    case Side::kSouthWest:
      return {8 + west, i, 0};
    case Side::kSouthEast:
      return {8 + east, 0, i};
  }
  throw Error("unknown side of a HEALPix face");
}

constexpr Pixel kMissing{-1, 0, 0};

// The face that only touches a corner; x, y are -1 or `last` + 1.
Pixel across_corner(int64_t face, int64_t x, int64_t y, int64_t last) {
  const int64_t j = face % 4;
  const bool north = x > last && y > last, south = x < 0 && y < 0;
  if (face < 4) {
    if (north) return {(j + 2) % 4, last, last};
    return south ? Pixel{8 + j, last, last} : kMissing;
  }
  if (face >= 8) {
    if (north) return {j, 0, 0};
    return south ? Pixel{8 + (j + 2) % 4, 0, 0} : kMissing;
  }
  if (north || south) return kMissing;
  return x < 0 ? Pixel{4 + (j + 3) % 4, last, 0} : Pixel{4 + (j + 1) % 4, 0, last};
}

Pixel neighbour(const Pixel& pixel, int64_t dx, int64_t dy, int64_t last) {
  const int64_t x = pixel.x + dx, y = pixel.y + dy;
  const bool x_inside = x >= 0 && x <= last, y_inside = y >= 0 && y <= last;
  if (x_inside && y_inside) return {pixel.face, x, y};
  if (!x_inside && !y_inside) return across_corner(pixel.face, x, y, last);
  if (!x_inside) {
    return across_side(pixel.face, x < 0 ? Side::kSouthWest : Side::kNorthEast, y, last);
  }
  return across_side(pixel.face, y < 0 ? Side::kSouthEast : Side::kNorthWest, x, last);
}

}  // namespace

Coordinates healpix_coordinates(int64_t resolution) {
  check_resolution(resolution);
  Coordinates coordinates;
  for (int64_t p = 0; p < healpix_pixels(resolution); ++p) {
    const auto [lat, lon] = centre_deg(pixel_of(p, resolution), int64_t{1} << resolution);
    coordinates.lat_deg.push_back(lat);
    coordinates.lon_deg.push_back(lon);
  }
  return coordinates;
}

EdgeList healpix_multi_scale_edges(std::vector<int64_t> levels) {
  // SW, W, NW, N, NE, E, SE, S
  constexpr std::array<std::array<int64_t, 2>, 8> kSteps{
      {{-1, 0}, {-1, 1}, {0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}}};
  if (levels.empty()) throw Error("multi-scale edges need at least one level");
  std::sort(levels.begin(), levels.end());
  EdgeList edges;
  for (const int64_t level : levels) {
    check_resolution(level);
    const int64_t scale = int64_t{1} << (2 * (levels.back() - level));
    const int64_t last = (int64_t{1} << level) - 1;
    for (int64_t p = 0; p < healpix_pixels(level); ++p) {
      const Pixel pixel = pixel_of(p, level);
      for (const auto& [dx, dy] : kSteps) {
        const Pixel other = neighbour(pixel, dx, dy, last);
        const int64_t number = other.face < 0 ? -1 : number_of(other, level);
        edges.add(static_cast<int32_t>(p * scale), static_cast<int32_t>(number * scale));
      }
    }
  }
  return edges;
}

}  // namespace aifs::graph
