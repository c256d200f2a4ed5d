// SPDX-License-Identifier: Apache-2.0
// The full reference data, where AIFS_SHARED names their folder, and changes to cases that are too
// large for the small set.
#include <span>

#include "data/sources/anemoi_dataset.h"
#include "tests/conformance/conformance_program.h"
#include "tests/support/full_reference.h"

using namespace aifs;
using test::Copy;

TEST_CASE("no case of the full reference data fails", "[conformance]") {
  test::require_no_failure(test::full_reference() / "golden");
}

TEST_CASE("no case of the full datasets fails", "[conformance]") {
  test::require_no_failure(test::full_reference() / "datasets");
}

TEST_CASE("a residual of one time stands for every time", "[conformance]") {
  const Copy models("models_more", test::full_reference() / "golden");
  const std::string name = "gnn_scalar_ornstein";
  for (const auto& entry : fs::directory_iterator(models.path())) {
    const std::string file = entry.path().filename().string();
    if (file != name + ".json" && file != name + ".safetensors") fs::remove(entry.path());
  }
  fs::copy(test::full_reference() / "golden" / "graphs", models.path() / "graphs");
  for (const auto& entry : fs::directory_iterator(models.path() / "graphs")) {
    if (entry.path().extension() == ".json") fs::remove(entry.path());
  }
  REQUIRE(models.counts().passed == 1);
  models.rewrite(name + ".safetensors", [](Copy::Tensors& tensors) {
    Copy::Tensor& residual = tensors.at("residual_output");  // (B, 1, 1, N, V): two times of it
    const size_t sample = residual.bytes.size() / static_cast<size_t>(residual.shape[0]);
    std::vector<std::byte> twice;
    for (size_t at = 0; at < residual.bytes.size(); at += sample) {
      for (int time = 0; time < 2; ++time)
        twice.insert(twice.end(), residual.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     residual.bytes.begin() + static_cast<std::ptrdiff_t>(at + sample));
    }
    residual.shape[1] = 2;
    residual.bytes = std::move(twice);
  });
  REQUIRE(models.counts().passed == 1);
  models.change(name + ".safetensors", "residual_output", 1e-3f, /*index=*/1);  // 0 is a forcing
  models.require_failures({name});
}

TEST_CASE("graphs before post-processing come from any case that has them", "[conformance]") {
  const Copy builders("graph_builders", test::full_reference() / "golden");
  for (const auto& entry : fs::directory_iterator(builders.path())) {
    if (entry.path().stem() != "post_processors") fs::remove(entry.path());
  }
  const test::Counts counts = builders.counts();
  REQUIRE(counts.failed == 0);
  builders.rename("post_processors", "none_full", "plain");
  builders.rename("post_processors", "none_encoder_only", "plain_encoder");
  builders.rename("post_processors", "truncation_grid_o4_defaults", "truncation_of_o4");
  const test::Counts renamed = builders.counts();
  REQUIRE(renamed.failed == 0);
  REQUIRE(renamed.passed == counts.passed);
}

TEST_CASE("orders of edges, and nodes that are refused, follow from data and not from names",
          "[conformance]") {
  const Copy builders("graph_builders", test::full_reference() / "golden");
  for (const auto& entry : fs::directory_iterator(builders.path())) {
    const fs::path stem = entry.path().stem();
    if (stem != "post_processors" && stem != "edges") fs::remove(entry.path());
  }
  const test::Counts counts = builders.counts();
  REQUIRE(counts.failed == 0);
  int number = 0;
  for (const char* end : {"Source", "Target"}) {
    for (const char* order : {"ascending", "descending"})
      builders.rename("post_processors",
                      concat("SortEdgeIndexBy", end, "Nodes_", order, "_called_directly"),
                      concat("case_", ++number));
  }
  for (const char* name : {"multiscale_on_latlon_nodes", "healpix_edges_on_latlon_nodes",
                           "multiscale_tri2_hops1_levels_3", "multiscale_two_sets"})
    builders.replace("edges.json", concat("\"", name, "\":"), concat("\"case_", ++number, "\":"));
  const test::Counts renamed = builders.counts();
  REQUIRE(renamed.failed == 0);
  REQUIRE(renamed.passed == counts.passed);
  // Says that something is refused which is not.
  builders.replace("edges.json", "\"num_nearest_neighbours\": 73", "\"num_nearest_neighbours\": 2");
  REQUIRE(builders.counts().failed == 1);
}

namespace {

// Stores of trained cases: speedy.zarr with wrong means, and rightful.zarr as it should be.
void make_stores(const fs::path& folder) {
  fs::create_directories(folder / "speedy.zarr");
  const std::string archive = (test::full_reference() / "datasets" / "speedy.tar").string();
  fs::create_directories(folder / "unpacked");
  const auto result =
      test::run_command("tar xf " + archive + " -C " + (folder / "unpacked").string());
  REQUIRE(result.exit_code == 0);
  fs::rename(folder / "unpacked" / "speedy.zarr", folder / "rightful.zarr");
  for (const auto& entry : fs::directory_iterator(folder / "rightful.zarr")) {
    const fs::path copy = folder / "speedy.zarr" / entry.path().filename();
    if (entry.path().filename() == "mean") {
      fs::create_directory_symlink(folder / "rightful.zarr" / "minimum", copy);
    } else if (entry.is_directory()) {
      fs::create_directory_symlink(entry.path(), copy);
    } else {
      fs::copy(entry.path(), copy);
    }
  }
}

}  // namespace

TEST_CASE("trained weights are normalised with the tables of their own store", "[conformance]") {
  const Copy trained("trained", test::full_reference() / "golden");
  fs::remove(trained.path() / "speedy_gt.json");
  const std::string name = "speedy_gnn", of_store = R"("statistics_store": "speedy.zarr")";
  make_stores(trained.path());
  trained.require_failures({name});  // the wrong means
  trained.replace(name + ".json", of_store, R"("statistics_store": "rightful.zarr")");
  REQUIRE(trained.counts().passed == 1);
  // Without a store of their own the case's tables count, and without these its dataset.
  trained.replace(name + ".json", R"("statistics_store": "rightful.zarr")", R"("unused": 0)");
  trained.require_failures({name});
  const data::AnemoiDataset rightful({.dataset = (trained.path() / "rightful.zarr").string()});
  const auto& statistics = rightful.info().statistics;
  const auto add_tables = [&](Copy::Tensors& tensors) {
    for (const auto& [what, values] : {std::pair("mean", &statistics.mean),
                                       {"stdev", &statistics.stdev},
                                       {"minimum", &statistics.minimum},
                                       {"maximum", &statistics.maximum}}) {
      const auto bytes = std::as_bytes(std::span(*values));
      tensors[std::string("statistics/") + what] = {
          DType::kF64, {std::ssize(*values)}, {bytes.begin(), bytes.end()}};
    }
  };
  trained.rewrite(name + ".safetensors", add_tables);
  REQUIRE(trained.counts().passed == 1);
  trained.rewrite(name + ".safetensors", [](Copy::Tensors& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.first.starts_with("statistics/"); });
  });
  trained.require_failures({name});
  trained.replace(name + ".json", R"("store": "speedy.zarr")", R"("store": "rightful.zarr")");
  REQUIRE(trained.counts().passed == 1);
}
