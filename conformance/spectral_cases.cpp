// SPDX-License-Identifier: Apache-2.0
// Spectral transforms with their gradients, and the tables they are made of. The cases give shapes
// only: which transform it is follows from them, and rings, truncation and patches as far as they
// tell. Where several grids have such shapes, the stored result says which one it was.
#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "conformance/cases.h"
#include "conformance/spectral_plane.h"
#include "conformance/tensors.h"
#include "graph/nodes/gaussian_grid.h"
#include "model/kernels/spectral_transform.h"

namespace aifs::conformance {

namespace {

// Shares of the largest element.
constexpr double kSingleLimit = 1e-6, kDoubleLimit = 1e-12;
constexpr double kTable = 1e-12, kRoundTrip = 1e-12;
constexpr double kRecognised = 1e-3;  // of the largest element: it was this grid

using Shape = std::vector<int64_t>;
using Transform = std::function<at::Tensor(const at::Tensor&)>;

struct SpectralCase {
  std::string name;
  Shape input, output;  // without a last axis (re, im) of the output
  bool complex_output = false;
  std::vector<int64_t> octahedral_rows;

  // Counted from the end, 1 for the last.
  int64_t in(size_t axis) const { return input.at(input.size() - axis); }
  int64_t out(size_t axis) const { return output.at(output.size() - axis); }
};

int64_t points_of(const std::vector<int64_t>& rows) {
  int64_t sum = 0;
  for (const int64_t length : rows)
    sum += length;
  return sum;
}

// Grids of so many points, the likely ones first: the octahedral one of the file, octahedral and
// classic ones, regular ones of n x 2n and of other shapes.
std::vector<std::vector<int64_t>> grids_of(int64_t points, int64_t truncation,
                                           const SpectralCase& c) {
  std::vector<std::vector<int64_t>> grids;
  if (points == points_of(c.octahedral_rows)) grids.push_back(c.octahedral_rows);
  for (int64_t number = 1; 2 * number * number <= points; ++number) {
    for (const char kind : {'o', 'n'}) {
      try {
        const auto grid = graph::parse_gaussian_grid(concat(kind, number));
        if (grid.num_points() == points) grids.push_back(grid.row_lengths());
      } catch (const Error&) {
        continue;  // not a classic grid we have
      }
    }
  }
  const auto rings = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(points) / 2)));
  if (2 * rings * rings == points) grids.emplace_back(static_cast<size_t>(rings), 2 * rings);
  for (int64_t other = truncation + 1; other * other <= 2 * points; ++other) {
    const bool rectangle = points % other == 0 && points / other <= 8 * other;
    if (rectangle && other != rings) grids.emplace_back(static_cast<size_t>(other), points / other);
  }
  return grids;
}

using Transforms = std::vector<Transform>;

// (..., N) -> (..., l, m), or with variables at the end of both.
Transforms analyses(const SpectralCase& c) {
  const bool variables = c.output.size() > 3 && c.out(1) == c.in(1) && c.out(2) == c.out(3);
  const int64_t points = c.in(variables ? 2 : 1), size = c.out(variables ? 2 : 1);
  Transforms transforms;
  for (const auto& rows : grids_of(points, size - 1, c)) {
    if (std::ssize(rows) < size) continue;
    const auto sphere = std::make_shared<const model::SphericalTransform>(rows, size - 1);
    transforms.emplace_back([sphere, variables](const at::Tensor& x) {
      const at::Tensor waves = sphere->analyse(variables ? x.transpose(-1, -2) : x);
      return at::view_as_real((variables ? waves.movedim(-3, -1) : waves).contiguous());
    });
  }
  return transforms;
}

// Complex (..., l, m) -> (..., N).
Transforms syntheses(const SpectralCase& c) {
  const int64_t size = c.in(2);
  Transforms transforms;
  for (const auto& rows : grids_of(c.out(1), size - 1, c)) {
    if (std::ssize(rows) < size) continue;
    const auto sphere = std::make_shared<const model::SphericalTransform>(rows, size - 1);
    transforms.emplace_back([sphere](const at::Tensor& x) {
      return sphere->synthesise(at::view_as_complex(x.contiguous()));
    });
  }
  return transforms;
}

// Coefficients (..., y, x, V) of a Fourier transform whose filtered ones are all 0.
bool is_filtered(const at::Tensor& output) {
  const at::Tensor coefficients = at::view_as_complex(output.contiguous()).movedim(-1, 0);
  const at::Tensor kept = model::fourier_filter(output.size(-4), output.size(-3));
  return max_abs(at::view_as_real(coefficients * at::logical_not(kept)).contiguous()) == 0.0;
}

at::Tensor as_real(const at::Tensor& waves) {
  return at::view_as_real(waves.contiguous());
}

// (..., y * x, V) -> (..., y, x, V), by cosines where the result is real.
Transforms plane_transforms(const SpectralCase& c, const at::Tensor& expected) {
  const int64_t rows = c.out(3), columns = c.out(2);
  if (!c.complex_output) {
    return {[=](const at::Tensor& f) {
      return model::cosine_2d(f.transpose(-1, -2), rows, columns).movedim(-3, -1);
    }};
  }
  const bool filter = is_filtered(expected);
  return {[=](const at::Tensor& f) {
    return as_real(model::fourier_2d(f.transpose(-1, -2), rows, columns, filter).movedim(-3, -1));
  }};
}

// (..., N, V) -> (..., rows of patches, columns of patches, y, x, V).
Transforms patch_transforms(const SpectralCase& c, const at::Tensor& expected) {
  const Extent size{c.out(3), c.out(2)}, count{c.out(5), c.out(4)};
  const bool filter = is_filtered(expected);
  Transforms transforms;
  for (const PatchedPlane& cut : planes_of_patches(c.in(2), size, count)) {
    const model::Patches patches{
        .size_y = size.y, .size_x = size.x, .stride_y = cut.stride.y, .stride_x = cut.stride.x};
    transforms.emplace_back([=](const at::Tensor& f) {
      const at::Tensor pieces =
          model::cut_patches(f.transpose(-1, -2), cut.plane.y, cut.plane.x, patches);
      return as_real(model::fourier_2d(pieces, size.y, size.x, filter).movedim(-5, -1));
    });
  }
  return transforms;
}

// All transforms that take such an input to such an output.
Transforms transforms_of(const SpectralCase& c, const at::Tensor& expected) {
  const size_t in = c.input.size(), out = c.output.size();
  if (!c.complex_output && in == out + 2 && c.in(1) == 2 && c.in(2) == c.in(3)) return syntheses(c);
  if (out == in + 3 && c.complex_output) return patch_transforms(c, expected);
  if (out == in + 1 && in >= 2 && c.out(3) * c.out(2) == c.in(2))
    return plane_transforms(c, expected);
  if (out == in + 1 && c.complex_output) return analyses(c);
  throw NotSupported(concat("a transform of ", in, " to ", out, " axes"));
}

Transform transform_of(const SafetensorsFile& tensors, const SpectralCase& c) {
  const at::Tensor expected = read_tensor(tensors, c.name + "/output");
  const at::Tensor input = read_tensor(tensors, c.name + "/input");
  const Transforms transforms = transforms_of(c, expected);
  if (transforms.empty()) throw NotSupported("a grid or plane with such shapes");
  for (const Transform& transform : transforms) {
    if (max_difference(transform(input), expected) <= kRecognised * max_abs(expected))
      return transform;
  }
  return transforms.front();
}

void check_transform(const SafetensorsFile& tensors, const SpectralCase& c,
                     Comparison& comparison) {
  const Transform transform = transform_of(tensors, c);
  const std::string start = c.name + "/";
  const bool has_twin = tensors.contains(start + "output_f64");
  // The reference in fp32 may be further from its twin than the limit.
  const auto own_error = [&](const std::string& what) {
    if (!tensors.contains(start + what + "_f64")) return 0.0;
    return max_difference(read_tensor(tensors, start + what),
                          read_tensor(tensors, start + what + "_f64"));
  };
  for (const bool f64 : {false, true}) {
    if (f64 && !has_twin) break;
    const std::string suffix = f64 ? "_f64" : "";
    const auto read = [&](const std::string& what) {
      return read_tensor(tensors, start + what + suffix);
    };
    const at::Tensor input = read("input").set_requires_grad(true);
    const at::Tensor output = transform(input);
    const at::Tensor expected = read("output"), expected_gradient = read("grad");
    const double scale = max_abs(expected), gradient_scale = max_abs(expected_gradient);
    comparison.add("output" + suffix, max_difference(output, expected) / scale,
                   f64 ? kDoubleLimit : kSingleLimit, f64 ? 0.0 : own_error("output") / scale);
    const at::Tensor cotangent = read_tensor(tensors, start + "cotangent", output.scalar_type());
    (output * cotangent).sum().backward();
    // The cotangent is stored in float32 only, the twin's gradient is of the unrounded one.
    comparison.add("grad" + suffix,
                   max_difference(input.grad(), expected_gradient) / gradient_scale, kSingleLimit,
                   f64 ? 0.0 : own_error("grad") / gradient_scale);
  }
}

// Inverse and forward of the octahedral grid undo each other.
void check_round_trip(const SpectralCase& c, Comparison& comparison) {
  const auto size = static_cast<int64_t>(c.octahedral_rows.size()) / 2;
  const model::SphericalTransform sphere(c.octahedral_rows, size - 1);
  at::Tensor waves = at::zeros({size, size}, at::kComplexDouble);
  for (int64_t l = 0; l < size; ++l) {
    for (int64_t m = 0; m <= l; ++m) {
      const auto x = static_cast<double>(l + 1), y = static_cast<double>(m);
      waves[l][m] = c10::complex<double>(std::cos(x + 2.0 * y), m == 0 ? 0.0 : std::sin(x * y));
    }
  }
  const at::Tensor back = sphere.analyse(sphere.synthesise(waves));
  comparison.add("round trip", max_difference(at::view_as_real(back), at::view_as_real(waves)),
                 kRoundTrip);
}

// (m, l, k), or (k) of nodes or weights in either direction.
void check_legendre(const SafetensorsFile& tensors, const std::string& name,
                    Comparison& comparison) {
  const at::Tensor expected = read_tensor(tensors, "legendre/" + name);
  const auto tensor_of = [](const std::vector<double>& values) {
    return at::tensor(at::ArrayRef<double>(values), at::kDouble);
  };
  at::Tensor ours;
  if (expected.dim() == 3) {
    const auto nodes = model::gauss_legendre(expected.size(2)).nodes;
    const double first = expected.flatten()[0].item<double>();
    constexpr double kInverse = 1.0 / (4.0 * std::numbers::pi);
    ours =
        model::legendre_table(nodes, expected.size(1) - 1,
                              std::abs(first - kInverse) < std::abs(first - 1.0) ? kInverse : 1.0);
  } else {
    const model::GaussLegendre gauss = model::gauss_legendre(expected.size(0));
    const bool are_weights = expected.min().item<double>() > 0.0;  // half of the nodes are negative
    ours = tensor_of(are_weights ? gauss.weights : gauss.nodes);
    const bool from_south = !are_weights && expected[0].item<double>() < 0.0;
    if (from_south) ours = ours.flip({0});
  }
  comparison.add(name, max_difference(ours, expected) / max_abs(expected), kTable);
}

Shape shape_of(const Json& json, const char* key) {
  const std::string complex_key = std::string(key) + "_complex";
  if (json.contains(complex_key)) return json[complex_key].get<Shape>();
  return json.value(key, Shape{});
}

}  // namespace

void run_spectral_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("spectral", name, [&, &name = name, &json = json](Comparison& comparison) {
      require_described(json);
      const SpectralCase c{.name = name,
                           .input = shape_of(json, "input_shape"),
                           .output = shape_of(json, "output_shape"),
                           .complex_output = json.contains("output_shape_complex"),
                           .octahedral_rows = file.json.at("octahedral_rows").get<Shape>()};
      if (c.input.empty()) return check_round_trip(c, comparison);
      check_transform(tensors, c, comparison);
    });
  }
  for (const auto& [tensor, entry] : tensors.entries()) {
    const std::string prefix = "legendre/";
    if (!tensor.starts_with(prefix)) continue;
    report.run("spectral", tensor, [&, name = tensor.substr(prefix.size())](Comparison& c) {
      check_legendre(tensors, name, c);
    });
  }
}

}  // namespace aifs::conformance
