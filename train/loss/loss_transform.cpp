// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_transform.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "graph/nodes/gaussian_grid.h"

namespace aifs::train {

int64_t SpectralTransform::num_coefficients() const {
  return on_sphere() ? sphere->size() * sphere->size() : x_dim * y_dim;
}

at::Tensor SpectralTransform::operator()(const at::Tensor& field) const {
  at::Tensor x = projection ? projection->apply(field) : field;
  if (subgrid) x = x.narrow(kGrid, subgrid->first, subgrid->second - subgrid->first);
  const int64_t points = on_sphere() ? sphere->num_points() : x_dim * y_dim;
  AIFS_CHECK(x.size(kGrid) == points, "a transform of ", points, " points got ", x.size(kGrid));
  x = x.transpose(kGrid, kVariable);  // (B, T, E, V, N)
  switch (kind) {
    case TransformKind::kFft2d:
      x = model::fourier_2d(x, y_dim, x_dim, filter);
      break;
    case TransformKind::kDct2d:
      x = model::cosine_2d(x, y_dim, x_dim);
      break;
    case TransformKind::kOctahedralSht:
    case TransformKind::kReducedSht:
      x = sphere->analyse(x);
      break;
  }
  return x.movedim(3, -1);
}

// --------------------------------------------------------------------------------- options ---

void ProjectionOptions::bind(config::Binder& b) {
  b.text("grid", grid,
         {"Gaussian grid to which fields are brought first, as \"o32\"; empty: none"});
  b.integer("neighbours", neighbours, {.min = 1, .max = 4096}, {"nearest nodes that are averaged"});
  b.number("sigma", sigma, {.min = 1e-9}, {"width of the Gaussian that weighs them", "rad"});
}

void TransformOptions::bind(config::Binder& b) {
  b.tag("kind", kind, {"Fourier or cosine transform of a rectangle, or spherical harmonics"});
  b.text("grid", grid,
         {"the Gaussian grid, octahedral (o96) or reduced (n320); empty: graph.grid"});
  b.read_by({"octahedral_sht", "reduced_sht"});
  b.integer("truncation", truncation, {.min = -1}, {"largest degree; -1: half the rings less one"});
  b.read_by({"octahedral_sht", "reduced_sht"});
  b.integer("x_dim", x_dim, {.min = 0}, {"points in the direction that runs fastest"});
  b.read_by({"fft2d", "dct2d"});
  b.integer("y_dim", y_dim, {.min = 0}, {"points in the other direction"});
  b.read_by({"fft2d", "dct2d"});
  b.boolean("filter", filter, {"leave out waves shorter than two points"});
  b.read_by({"fft2d"});
  b.integer_list("subgrid", subgrid, {.min = 0},
                 {"first node and the one after the last; empty: all nodes"});
  b.read_by({"fft2d", "dct2d"});
  b.section("projection", projection, {"another grid for the transform"});
}

void TransformOptions::validate(const std::string& path) const {
  if (!subgrid.empty() && (subgrid.size() != 2 || subgrid[0] >= subgrid[1])) {
    throw ConfigError(path + ".subgrid", "needs two numbers, the first less than the second");
  }
}

namespace {

graph::NodeSet gaussian_nodes(const graph::GaussianGrid& grid) {
  const graph::Coordinates points = graph::gaussian_coordinates(grid);
  graph::NodeSet nodes;
  nodes.lat_rad = graph::radians_from_degrees(points.lat_deg);
  nodes.lon_rad = graph::radians_from_degrees(points.lon_deg);
  return nodes;
}

graph::GaussianGrid gaussian_grid(const std::string& name, const std::string& path) {
  try {
    return graph::parse_gaussian_grid(name);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

// The grid of a transform on the sphere.
graph::GaussianGrid sphere_grid(const TransformOptions& options, const LossInputs& inputs,
                                const std::string& path) {
  const std::string name = !options.grid.empty()              ? options.grid
                           : !options.projection.grid.empty() ? options.projection.grid
                                                              : inputs.grid_name;
  const graph::GaussianGrid grid = gaussian_grid(name, path + ".grid");
  const bool octahedral = grid.kind == graph::GaussianKind::kOctahedral;
  if (octahedral != (options.kind == TransformKind::kOctahedralSht)) {
    throw ConfigError(path + ".kind",
                      concat("'", enum_name(options.kind), "' on the grid '", name, "'"));
  }
  if (options.truncation >= 2 * grid.number) {
    throw ConfigError(path + ".truncation",
                      concat("must be less than the ", 2 * grid.number, " rings of '", name, "'"));
  }
  return grid;
}

// Fields outside the mask are no forecast: waves of them mean nothing.
void check_mask(const TransformOptions& options, const at::Tensor& mask, const std::string& path) {
  if (!options.projection.grid.empty()) {
    throw ConfigError(path + ".projection.grid",
                      "takes cells outside model.output_mask, too, which are not predicted",
                      "use a transform of the cells themselves, with a subgrid");
  }
  const std::vector<int64_t>& rows = options.subgrid;
  const at::Tensor covered = rows.empty() ? mask : mask.slice(0, rows[0], rows[1]);
  if (covered.all().item<bool>()) return;
  const at::Tensor inside = at::nonzero(mask).flatten();
  const int64_t first = inside[0].item<int64_t>(), last = inside[-1].item<int64_t>() + 1;
  throw ConfigError(
      path + ".subgrid",
      concat("the transform covers ", covered.size(0), " cells, of which ",
             at::logical_not(covered).sum().item<int64_t>(), " are outside model.output_mask"),
      last - first == inside.size(0)
          ? concat("use [", first, ", ", last, "], the cells inside")
          : "the cells inside are not in a row: waves need a rectangle of them");
}

}  // namespace

void TransformOptions::check(const LossInputs& inputs, const std::string& path) const {
  int64_t points = x_dim * y_dim, given = inputs.nodes.num_nodes();
  if (on_sphere()) points = sphere_grid(*this, inputs, path).num_points();
  if (!projection.grid.empty()) {
    given = gaussian_grid(projection.grid, path + ".projection.grid").num_points();
  }
  if (!subgrid.empty()) {
    if (subgrid[1] > given) {
      throw ConfigError(path + ".subgrid", concat("ends beyond the ", given, " nodes"));
    }
    given = subgrid[1] - subgrid[0];
  }
  if (inputs.output_mask.defined()) check_mask(*this, inputs.output_mask, path);
  if (given != points) {
    throw ConfigError(path, concat("a transform of ", points, " points for a field of ", given));
  }
}

SpectralTransform TransformOptions::make(const LossInputs& inputs, const std::string& path) const {
  check(inputs, path);
  SpectralTransform transform;
  transform.kind = kind;
  transform.x_dim = x_dim;
  transform.y_dim = y_dim;
  transform.filter = filter;
  if (!subgrid.empty()) transform.subgrid = {subgrid[0], subgrid[1]};
  if (on_sphere()) {
    const graph::GaussianGrid gaussian = sphere_grid(*this, inputs, path);
    transform.sphere = std::make_shared<const model::SphericalTransform>(
        gaussian.row_lengths(),
        truncation < 0 ? default_truncation(2 * gaussian.number) : truncation);
  }
  if (!projection.grid.empty()) {
    const auto target = gaussian_nodes(gaussian_grid(projection.grid, path + ".projection.grid"));
    transform.projection = inputs.used(
        gaussian_smoother(inputs.nodes, target, projection.neighbours, projection.sigma));
  }
  return transform;
}

}  // namespace aifs::train
