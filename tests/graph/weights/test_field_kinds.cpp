// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/field_kinds.h"

#include <limits>

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

using Values = std::vector<double>;

// Four cells of a dataset with a variable "sst".
MeshNodes cells() {
  MeshNodes nodes = at_degrees("data", {{0, 1, 2, 3}, {0, 0, 0, 0}});
  nodes.field = [](const std::string& variable, const std::string& path) {
    if (variable == "lsm") return std::vector<float>{0.0F, 0.25F, 1.0F, 0.0F};
    if (variable != "sst") throw ConfigError(path, concat("no variable '", variable, "'"));
    return std::vector<float>{290.0F, 0.0F, std::numeric_limits<float>::quiet_NaN(), -1.5F};
  };
  return nodes;
}

Values raw(const MeshNodes& nodes, const char* text) {
  return section<NodeAttributeOptions>(text, "p").kind->raw(nodes, 1, "p");
}

}  // namespace

TEST_CASE("a mask tells where a variable is there, or not zero", "[field_kinds]") {
  REQUIRE(raw(cells(), R"({"kind": "nonmissing", "variable": "sst"})") == Values{1, 1, 0, 1});
  REQUIRE(raw(cells(), R"({"kind": "nonzero", "variable": "sst"})") == Values{1, 0, 1, 1});
  REQUIRE(raw(cells(), R"({"kind": "nonzero", "variable": "lsm"})") == Values{0, 1, 1, 0});
  REQUIRE(section<NodeAttributeOptions>(R"({"kind": "nonzero", "variable": "lsm"})", "p")
              .kind->is_mask());
}

TEST_CASE("weights are the values of a variable, scaled", "[field_kinds]") {
  REQUIRE(raw(cells(), R"({"kind": "variable", "variable": "lsm"})") == Values{0, 0.25, 1, 0});
  const auto options = section<NodeAttributeOptions>(
      R"({"kind": "variable", "variable": "lsm", "norm": "l1"})", "p");
  REQUIRE(node_values<float>(*options.kind, cells(), 1, "p") ==
          std::vector<float>{0.0F, 0.2F, 0.8F, 0.0F});
  REQUIRE_THROWS_WITH(raw(cells(), R"({"kind": "variable", "variable": "sst"})"),
                      ContainsSubstring("'sst' is missing in cell 2"));
}

TEST_CASE("a variable must be named, and be there", "[field_kinds]") {
  for (const char* kind : {"variable", "nonmissing", "nonzero"}) {
    const std::string none = concat(R"({"kind": ")", kind, R"("})");
    const std::string some = concat(R"({"kind": ")", kind, R"(", "variable": "q"})");
    REQUIRE_THROWS_WITH(raw(cells(), none.c_str()), ContainsSubstring("'p.variable': names no"));
    REQUIRE_THROWS_WITH(raw(cells(), some.c_str()), ContainsSubstring("'p.variable': no variable"));
    const MeshNodes mesh = at_degrees("hidden", {{0}, {0}});
    REQUIRE_THROWS_WITH(raw(mesh, some.c_str()), ContainsSubstring("are no cells of a dataset"));
  }
}
