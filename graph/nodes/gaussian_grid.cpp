// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/gaussian_grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "graph/base/parallel_for.h"
#include "graph/nodes/gaussian_rows.h"

namespace aifs::graph {

namespace {

constexpr int64_t kMaxNumber = 16000;  // 1 G points on an octahedral grid
constexpr int64_t kOctahedralFirstRow = 20;
constexpr long double kPiLong = 3.14159265358979323846264338327950288L;

std::string classic_names() {
  std::string names;
  for (const int64_t number : classic_gaussian_numbers())
    names += concat(names.empty() ? "n" : ", n", number);
  return names;
}

int64_t northern_row_length(const GaussianGrid& grid, int64_t row) {
  switch (grid.kind) {
    case GaussianKind::kOctahedral:
      return kOctahedralFirstRow + 4 * row;
    case GaussianKind::kRegular:
      return 4 * grid.number;
    case GaussianKind::kClassic:
      return classic_gaussian_rows(grid.number)[static_cast<size_t>(row)];
  }
  throw Error("unknown kind of Gaussian grid");
}

// A root of the Legendre polynomial of this degree, by Newton's method from `x`.
long double legendre_root(int64_t degree, long double x) {
  const auto n = static_cast<long double>(degree);
  for (int iteration = 0; iteration < 20; ++iteration) {
    long double previous = 1.0L, value = x;
    for (int64_t k = 2; k <= degree; ++k) {
      const auto m = static_cast<long double>(k);
      const long double next = ((2 * m - 1) * x * value - (m - 1) * previous) / m;
      previous = value;
      value = next;
    }
    const long double slope = n * (x * value - previous) / (x * x - 1);
    const long double step = value / slope;
    x -= step;
    if (std::abs(step) < 1e-18L) break;
  }
  return x;
}

}  // namespace

std::vector<int64_t> GaussianGrid::row_lengths() const {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < number; ++row)
    rows.push_back(northern_row_length(*this, row));
  rows.insert(rows.end(), rows.rbegin(), rows.rend());
  return rows;
}

int64_t GaussianGrid::num_points() const {
  const auto rows = row_lengths();
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

GaussianGrid parse_gaussian_grid(std::string_view name) {
  const std::string help = concat("grids are o<N> (octahedral), f<N> (regular) for any N up to ",
                                  kMaxNumber, ", and ", classic_names(), " (classic reduced)");
  GaussianGrid grid;
  const char letter = name.empty() ? ' ' : name.front();
  if (letter == 'o' || letter == 'O') {
    grid.kind = GaussianKind::kOctahedral;
  } else if (letter == 'n' || letter == 'N') {
    grid.kind = GaussianKind::kClassic;
  } else if (letter == 'f' || letter == 'F') {
    grid.kind = GaussianKind::kRegular;
  } else {
    throw Error(concat("'", name, "' is not the name of a Gaussian grid"), help);
  }
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 1, end, grid.number);
  if (error != std::errc() || stop != end || grid.number < 1 || grid.number > kMaxNumber) {
    throw Error(concat("'", name, "' is not the name of a Gaussian grid"), help);
  }
  if (grid.kind == GaussianKind::kClassic && classic_gaussian_rows(grid.number).empty()) {
    throw Error(concat("there is no table of the classic Gaussian grid '", name, "'"), help);
  }
  return grid;
}

std::vector<double> gaussian_latitudes(int64_t number, int64_t num_threads) {
  constexpr int64_t kRootsAtATime = 16;
  const int64_t degree = 2 * number;
  std::vector<double> latitudes(static_cast<size_t>(degree));
  const auto find_root = [&](int64_t k) {
    // First guess of the colatitude, good to a few per cent of the spacing (Atlas uses it too).
    const long double z =
        static_cast<long double>(4 * k + 3) * kPiLong / static_cast<long double>(4 * degree + 2);
    const auto n = static_cast<long double>(degree);
    const long double colatitude = z + 1 / (std::tan(z) * 8 * n * n);
    const long double root = legendre_root(degree, std::cos(colatitude));
    const auto latitude = static_cast<double>(std::asin(root) * 180 / kPiLong);
    latitudes[static_cast<size_t>(k)] = latitude;
    latitudes[static_cast<size_t>(degree - 1 - k)] = -latitude;
  };
  run_on_threads((number + kRootsAtATime - 1) / kRootsAtATime, effective_threads(num_threads),
                 [&](int64_t block) {
                   const int64_t begin = block * kRootsAtATime;
                   for (int64_t k = begin; k < std::min(number, begin + kRootsAtATime); ++k)
                     find_root(k);
                 });
  return latitudes;
}

Coordinates gaussian_coordinates(const GaussianGrid& grid, int64_t num_threads) {
  const auto rows = grid.row_lengths();
  const auto latitudes = gaussian_latitudes(grid.number, num_threads);
  Coordinates result;
  const auto count = static_cast<size_t>(grid.num_points());
  result.lat_deg.reserve(count);
  result.lon_deg.reserve(count);
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int64_t i = 0; i < rows[row]; ++i) {
      result.lat_deg.push_back(latitudes[row]);
      result.lon_deg.push_back(360.0 * static_cast<double>(i) / static_cast<double>(rows[row]));
    }
  }
  return result;
}

}  // namespace aifs::graph
