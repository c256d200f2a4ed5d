// SPDX-License-Identifier: Apache-2.0
// Spectral transforms with their gradients, and the tables they are made of. The cases give shapes
// only: rings, truncation and patches follow from them.
#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "app/conformance/cases.h"
#include "app/conformance/tensors.h"
#include "graph/gaussian_grid.h"
#include "model/kernels/spectral_transform.h"

namespace aifs::conformance {

namespace {

// Of the largest element.
constexpr double kSingle = 1e-6, kDouble = 1e-12;
constexpr double kTable = 1e-12, kRoundTrip = 1e-12;

using Shape = std::vector<int64_t>;
using Transform = std::function<at::Tensor(const at::Tensor&)>;

struct SpectralCase {
  std::string name;
  Shape input, output;  // without a last axis (re, im)
  std::vector<int64_t> octahedral_rows;
};

int64_t points_of(const std::vector<int64_t>& rows) {
  int64_t sum = 0;
  for (const int64_t length : rows)
    sum += length;
  return sum;
}

// The grid of so many points: the octahedral one of the file, a regular one of n x 2n, or the
// classic reduced one.
std::vector<int64_t> rows_of(int64_t points, const SpectralCase& c) {
  if (points == points_of(c.octahedral_rows)) return c.octahedral_rows;
  const auto rings = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(points) / 2)));
  if (2 * rings * rings == points) return Shape(static_cast<size_t>(rings), 2 * rings);
  for (const int64_t number : {16, 24, 32, 48, 64, 80, 96, 128, 160, 200, 256, 320}) {
    const graph::GaussianGrid grid{graph::GaussianKind::kClassic, number};
    try {
      if (grid.num_points() == points) return grid.row_lengths();
    } catch (const Error&) {
      continue;  // not a classic grid we have
    }
  }
  throw NotSupported(concat("a grid of ", points, " points"));
}

Transform analysis(const SpectralCase& c) {
  // (..., N) -> (..., l, m), or with variables at the end of both.
  const bool variables = c.input.size() > 1 && c.input[c.input.size() - 2] > c.input.back();
  const int64_t points = c.input[c.input.size() - (variables ? 2 : 1)];
  const int64_t size = c.output[c.output.size() - (variables ? 2 : 1)];
  const auto sphere =
      std::make_shared<const model::SphericalTransform>(rows_of(points, c), size - 1);
  const Transform transform = [sphere](const at::Tensor& x) {
    return at::view_as_real(sphere->analyse(x).contiguous());
  };
  if (!variables) return transform;
  return [sphere](const at::Tensor& x) {
    const at::Tensor waves = sphere->analyse(x.transpose(-1, -2));
    return at::view_as_real(waves.movedim(-3, -1).contiguous());
  };
}

Transform synthesis(const SpectralCase& c) {
  const auto sphere = std::make_shared<const model::SphericalTransform>(
      rows_of(c.output.back(), c), c.input[c.input.size() - 2] - 1);
  return [sphere](const at::Tensor& x) {
    return sphere->synthesise(at::view_as_complex(x.contiguous()));
  };
}

// Patch size, number and the rectangle give the stride: the patches lie side by side (the last ones
// over the end), or overlap evenly.
int64_t stride_of(int64_t length, int64_t patch, int64_t count, bool overlap) {
  if (!overlap || count == 1) return patch;
  return (length - patch) / (count - 1);
}

// Coefficients (..., y, x, V) of a Fourier transform whose filtered ones are all 0.
bool is_filtered(const at::Tensor& output) {
  const at::Tensor coefficients = at::view_as_complex(output.contiguous()).movedim(-1, 0);
  const at::Tensor kept = model::fourier_filter(output.size(-4), output.size(-3));
  return max_abs(at::view_as_real(coefficients * at::logical_not(kept)).contiguous()) == 0.0;
}

Transform rectangle(const SpectralCase& c, const at::Tensor& expected) {
  const size_t n = c.output.size();
  const int64_t points = c.input[c.input.size() - 2];
  const int64_t rows = c.output[n - 3], columns = c.output[n - 2];
  if (c.name.starts_with("dct2d")) {
    return [=](const at::Tensor& f) {
      return model::cosine_2d(f.transpose(-1, -2), rows, columns).movedim(-3, -1);
    };
  }
  const bool filter = is_filtered(expected);
  const auto real = [](const at::Tensor& waves) { return at::view_as_real(waves.contiguous()); };
  if (c.name.find("patches") == std::string::npos) {
    return [=](const at::Tensor& f) {
      return real(model::fourier_2d(f.transpose(-1, -2), rows, columns, filter).movedim(-3, -1));
    };
  }
  // The rectangle is that of the file, 6 x 8 in shape: y / x = 3 / 4.
  const auto y = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(points) * 0.75)));
  const int64_t x = points / y;
  if (y * x != points) throw NotSupported(concat("a rectangle of ", points, " points"));
  const bool overlap = c.name.find("overlap") != std::string::npos;
  model::Patches cut{.size_y = rows, .size_x = columns};
  cut.stride_y = stride_of(y, rows, c.output[n - 5], overlap);
  cut.stride_x = stride_of(x, columns, c.output[n - 4], overlap);
  return [=](const at::Tensor& f) {
    const at::Tensor pieces = model::cut_patches(f.transpose(-1, -2), y, x, cut);
    return real(model::fourier_2d(pieces, rows, columns, filter).movedim(-5, -1));
  };
}

Transform transform_of(const SpectralCase& c, const at::Tensor& expected) {
  if (c.name.starts_with("fft2d") || c.name.starts_with("dct2d")) return rectangle(c, expected);
  if (c.name.starts_with("inverse")) return synthesis(c);
  return analysis(c);
}

void check_transform(const SafetensorsFile& tensors, const SpectralCase& c,
                     Comparison& comparison) {
  const Transform transform = transform_of(c, read_tensor(tensors, c.name + "/output"));
  for (const bool f64 : {false, true}) {
    const auto read = [&](const std::string& what) {
      return read_tensor(tensors, c.name + "/" + what + (f64 ? "_f64" : ""));
    };
    const at::Tensor input = read("input").set_requires_grad(true);
    const at::Tensor output = transform(input);
    const std::string suffix = f64 ? "_f64" : "";
    const double limit = f64 ? kDouble : kSingle;
    const at::Tensor expected = read("output"), expected_gradient = read("grad");
    comparison.add("output" + suffix, max_difference(output, expected) / max_abs(expected), limit);
    const at::Tensor cotangent = read_tensor(tensors, c.name + "/cotangent", output.scalar_type());
    (output * cotangent).sum().backward();
    // The cotangent is stored in float32 only, the twin's gradient is of the unrounded one.
    comparison.add("grad" + suffix,
                   max_difference(input.grad(), expected_gradient) / max_abs(expected_gradient),
                   kSingle);
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

void check_legendre(const SafetensorsFile& tensors, const std::string& name,
                    Comparison& comparison) {
  const at::Tensor expected = read_tensor(tensors, "legendre/" + name);
  const auto tensor_of = [](const std::vector<double>& values) {
    return at::tensor(at::ArrayRef<double>(values), at::kDouble);
  };
  at::Tensor ours;
  if (name.starts_with("table")) {
    const auto nodes = model::gauss_legendre(expected.size(2)).nodes;
    const bool inverse = name.find("inverse") != std::string::npos;
    ours = model::legendre_table(nodes, expected.size(1) - 1,
                                 inverse ? 1.0 / (4.0 * std::numbers::pi) : 1.0);
  } else {
    const model::GaussLegendre gauss = model::gauss_legendre(expected.size(0));
    // Stored from south to north.
    ours = tensor_of(name.starts_with("nodes") ? gauss.nodes : gauss.weights).flip({0});
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
    const SpectralCase c{.name = name,
                         .input = shape_of(json, "input_shape"),
                         .output = shape_of(json, "output_shape"),
                         .octahedral_rows = file.json.at("octahedral_rows").get<Shape>()};
    report.run("spectral", name, [&](Comparison& comparison) {
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
