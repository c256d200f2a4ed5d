// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/edge_attributes.h"

#include <cmath>
#include <numeric>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/weights/normalisation.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

// Edge e joins node e of `source` with node e of `target`.
struct PairedNodes {
  NodeSet source{"s", {}, {}, {}}, target{"t", {}, {}, {}};
  std::vector<int32_t> index;

  void add(float source_lat, float source_lon, float target_lat, float target_lon) {
    source.lat_rad.push_back(source_lat);
    source.lon_rad.push_back(source_lon);
    target.lat_rad.push_back(target_lat);
    target.lon_rad.push_back(target_lon);
    index.push_back(static_cast<int32_t>(index.size()));
  }
  EdgeEnds ends() const { return {source, target, index, index, 1}; }
};

PairedNodes reference_pairs(const nlohmann::json& mini) {
  PairedNodes nodes;
  for (size_t e = 0; e < mini["src_latlon"].size(); ++e) {
    nodes.add(mini["src_latlon"][e][0].get<float>(), mini["src_latlon"][e][1].get<float>(),
              mini["tgt_latlon"][e][0].get<float>(), mini["tgt_latlon"][e][1].get<float>());
  }
  return nodes;
}

template <class Real>
void require_rows(const std::vector<Real>& values, const nlohmann::json& rows, double limit) {
  size_t i = 0;
  for (const auto& row : rows) {
    for (const auto& value : row)
      REQUIRE(std::abs(static_cast<double>(values.at(i++)) - value.get<double>()) <= limit);
  }
  REQUIRE(i == values.size());
}

// Rotates the sphere so that `target` comes to the north pole, along the great circle through both
// (Rodrigues' formula), and returns where `source` goes.
Point<double> rotated_to_pole(const Point<double>& source, const Point<double>& target) {
  const double sine = std::hypot(target[0], target[1]), cosine = target[2];
  const Point<double> k{target[1] / sine, -target[0] / sine, 0.0};
  const double along = k[0] * source[0] + k[1] * source[1];
  const Point<double> cross{k[1] * source[2], -k[0] * source[2],
                            k[0] * source[1] - k[1] * source[0]};
  Point<double> result;
  for (size_t d = 0; d < 3; ++d)
    result[d] = source[d] * cosine + cross[d] * sine + k[d] * along * (1 - cosine);
  return result;
}

}  // namespace

TEST_CASE("eight edges across date line, poles and short distances are those of the reference",
          "[edge_attributes]") {
  const auto mini = samples::reference_json("golden_graphs.json")["mini"];
  const PairedNodes nodes = reference_pairs(mini);
  const EdgeEnds ends = nodes.ends();
  require_rows(edge_length<float>(ends), mini["EdgeLength"], 3e-7);
  require_rows(edge_azimuth<float>(ends), mini["Azimuth"], 3e-4);  // one edge is 3e-4 rad long
  // Directions of the reference have an error of 3e-8 / length.
  require_rows(edge_direction<float>(ends), mini["EdgeDirection"], 3e-4);
  require_rows(directional_harmonics<float>(ends, 3), mini["DirectionalHarmonics3"], 1e-3);
  auto length = edge_length<float>(ends);
  normalise(Norm::kUnitStd, length);
  require_rows(length, mini["EdgeLength_unit_std"], 1e-6);
}

TEST_CASE("directions are the source after rotating the target to the pole", "[edge_attributes]") {
  PairedNodes nodes;
  const NodeSet a = samples::random_nodes("a", 500, 1), b = samples::random_nodes("b", 500, 2);
  for (size_t i = 0; i < a.lat_rad.size(); ++i)
    nodes.add(a.lat_rad[i], a.lon_rad[i], b.lat_rad[i], b.lon_rad[i]);
  const auto source = unit_vectors<double>(a.lat_rad, a.lon_rad);
  const auto target = unit_vectors<double>(b.lat_rad, b.lon_rad);
  const auto dirs = edge_direction<double>(nodes.ends());
  const auto azimuth = edge_azimuth<double>(nodes.ends());
  for (size_t e = 0; e < source.size(); ++e) {
    const auto rotated = rotated_to_pole(source[e], target[e]);
    const double length = std::hypot(rotated[0], rotated[1]);
    REQUIRE(dirs[2 * e] == Approx(rotated[0] / length).margin(1e-12));
    REQUIRE(dirs[2 * e + 1] == Approx(rotated[1] / length).margin(1e-12));
    const double turned = static_cast<double>(b.lon_rad[e]) - azimuth[e];
    REQUIRE(dirs[2 * e] == Approx(-std::cos(turned)).margin(1e-12));
    REQUIRE(dirs[2 * e + 1] == Approx(-std::sin(turned)).margin(1e-12));
  }
}

TEST_CASE("simple directions are known", "[edge_attributes]") {
  const auto quarter = static_cast<float>(kPi / 2);
  PairedNodes nodes;
  nodes.add(0.0F, 0.0F, 0.5F, 0.0F);      // source to the south
  nodes.add(quarter, 0.0F, 0.0F, 0.0F);   // source at the north pole
  nodes.add(0.0F, 0.0F, 0.0F, quarter);   // source to the west
  nodes.add(0.3F, 0.5F, quarter, 0.0F);   // target at the north pole
  nodes.add(0.3F, 0.5F, -quarter, 0.0F);  // target at the south pole: float32 convention
  nodes.add(0.3F, 0.5F, 0.3F, 0.5F);      // no direction
  const auto dirs = edge_direction<float>(nodes.ends());
  const std::vector<double> expected{
      1, 0, -1, 0, 1, 0, std::cos(0.5), std::sin(0.5), -std::cos(0.5), std::sin(0.5), 0, 0};
  for (size_t i = 0; i < expected.size(); ++i)
    REQUIRE(static_cast<double>(dirs[i]) == Approx(expected[i]).margin(1e-6));
}

TEST_CASE("harmonics are sine and cosine of multiples of the direction's angle",
          "[edge_attributes]") {
  PairedNodes nodes;
  nodes.add(0.1F, 0.2F, 0.3F, 0.5F);
  nodes.add(-0.7F, 2.0F, 0.3F, -0.5F);
  const auto dirs = edge_direction<double>(nodes.ends());
  const auto harmonics = directional_harmonics<double>(nodes.ends(), 2);
  for (size_t e = 0; e < 2; ++e) {
    const double x = dirs[2 * e], y = dirs[2 * e + 1];
    REQUIRE(harmonics[4 * e] == Approx(y).margin(1e-12));
    REQUIRE(harmonics[4 * e + 1] == Approx(x).margin(1e-12));
    REQUIRE(harmonics[4 * e + 2] == Approx(2 * x * y).margin(1e-12));
    REQUIRE(harmonics[4 * e + 3] == Approx(x * x - y * y).margin(1e-12));
  }
}

TEST_CASE("radial and Gaussian features grouped by target are those of the reference",
          "[edge_attributes]") {
  const auto json = samples::reference_json("golden_graphs.json");
  const auto& grouped = json["mini_grouped"];
  // Lengths are given; nodes on the equator at these longitudes have them.
  PairedNodes nodes;
  for (const auto& length : grouped["EdgeLength"])
    nodes.add(0.0F, length[0].get<float>(), 0.0F, 0.0F);
  const auto targets = grouped["edge_index"][1].get<std::vector<int32_t>>();
  const EdgeEnds ends{nodes.source, nodes.target, nodes.index, targets, 1};
  auto radial = radial_basis<float>(ends, {});
  normalise_grouped(Norm::kL1, radial, 5, targets, 2);
  require_rows(radial, grouped["RadialBasisFeatures"], 1e-5);
  const std::vector<std::pair<const char*, Norm>> norms{
      {"GaussianDistanceWeights_sigma0.5", Norm::kL1},
      {"Gaussian_unit_max", Norm::kUnitMax},
      {"Gaussian_unit_range", Norm::kUnitRange},
      {"Gaussian_unit_std", Norm::kUnitStd},
      {"Gaussian_l2", Norm::kL2}};
  for (const auto& [name, norm] : norms) {
    auto weights = gaussian_distance_weights<float>(ends, 0.5);
    normalise_grouped(norm, weights, 1, targets, 2);
    require_rows(weights, grouped[name], 1e-5);
  }
}

TEST_CASE("a scale replaces the longest edge and divides the centres", "[edge_attributes]") {
  PairedNodes nodes;
  nodes.add(0.0F, 0.25F, 0.0F, 0.0F);
  const RadialBasis basis{0.5, {0.0, 0.25, 0.5}, 0.2};
  const auto values = radial_basis<double>(nodes.ends(), basis);
  REQUIRE(values[0] == Approx(std::exp(-6.25)).epsilon(1e-12));
  REQUIRE(values[1] == Approx(1.0).epsilon(1e-12));
  REQUIRE(values[2] == Approx(std::exp(-6.25)).epsilon(1e-12));
  REQUIRE_THROWS_WITH(radial_basis<float>(nodes.ends(), {0.5, {1.0}}),
                      ContainsSubstring("the centre 1 is not between 0 and 0.5"));
  REQUIRE_THROWS_WITH(radial_basis<float>(nodes.ends(), {{}, {0.5}, 0.0}),
                      ContainsSubstring("sigma"));
  REQUIRE_THROWS_WITH(gaussian_distance_weights<float>(nodes.ends(), 0.0),
                      ContainsSubstring("sigma"));
  REQUIRE_THROWS_WITH(directional_harmonics<float>(nodes.ends(), 0), ContainsSubstring("order"));
}

TEST_CASE("node attributes are copied to the ends", "[edge_attributes]") {
  const Attribute attribute{2, {1, 2, 3, 4, 5, 6}};
  const Attribute copied = attribute_of_ends(attribute, std::vector<int32_t>{2, 0, 2});
  REQUIRE(copied.width == 2);
  REQUIRE(copied.values == std::vector<float>{5, 6, 1, 2, 5, 6});
}

TEST_CASE("attributes of O8 to refinement 2 are those of the reference", "[edge_attributes]") {
  const auto tensors = samples::reference_tensors("graph_o8_tri2.safetensors");
  for (const auto& [source, target] :
       {std::pair{"data", "hidden"}, std::pair{"hidden", "hidden"}, std::pair{"hidden", "data"}}) {
    const std::string pair = concat(source, "_to_", target);
    const NodeSet from = samples::reference_nodes(tensors, source);
    const NodeSet to = samples::reference_nodes(tensors, target);
    const EdgeList edges = samples::reference_edges(tensors, pair);
    const EdgeEnds ends{from, to, edges.source_index, edges.target_index, 2};
    auto length = edge_length<float>(ends), dirs = edge_direction<float>(ends);
    normalise(Norm::kUnitStd, length);
    normalise(Norm::kUnitStd, dirs);
    const auto stored_length = tensors.doubles("edges/" + pair + "/edge_length");
    const auto stored_dirs = tensors.doubles("edges/" + pair + "/edge_dirs");
    for (size_t e = 0; e < length.size(); ++e) {
      REQUIRE(std::abs(static_cast<double>(length[e]) - stored_length[e]) < 5e-5);
      REQUIRE(std::abs(static_cast<double>(dirs[2 * e]) - stored_dirs[2 * e]) < 2e-4);
      REQUIRE(std::abs(static_cast<double>(dirs[2 * e + 1]) - stored_dirs[2 * e + 1]) < 2e-4);
    }
  }
}

TEST_CASE("statistics of O96 to refinement 5 are those of the reference", "[edge_attributes]") {
  const auto pair = samples::reference_json("golden_graphs.json")["pairs"]["o96->o48"];
  const NodeSet data = samples::gaussian_nodes("data", "o96");
  const NodeSet hidden = samples::gaussian_nodes("hidden", "o48");
  const EdgeList edges = cut_off_edges(data, hidden, {0.6, std::nullopt, 64}, 0);
  const auto length =
      edge_length<double>({data, hidden, edges.source_index, edges.target_index, 0});
  REQUIRE(samples::sum(length) == Approx(pair["sum_len_f64"].get<double>()).epsilon(1e-9));
}
