// SPDX-License-Identifier: Apache-2.0
// Reference cases of datasets with other expectations, names and types than the stored ones.
#include <fstream>

#include "conformance/cases.h"
#include "conformance/dataset_stores.h"
#include "conformance/field_hash.h"
#include "conformance/tar_file.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::conformance;

namespace {

struct Counts {
  int passed, failed, skipped;
  bool operator==(const Counts&) const = default;
};

// The stores of the small reference data, and what their JSON says of "base".
class Stores {
 public:
  Stores() {
    unpack_tar(test::fixture("datasets/variants.tar"), folder_.path() / "variants");
    base_ = CaseFile(test::fixture("datasets/variants.json")).json["variants"]["base"];
  }

  const Json& base() const { return base_; }
  fs::path store(const std::string& name) const { return folder_.path() / "variants" / name; }

  // Runs a file with this content beside a folder of these stores (case name -> store).
  Counts run(const Json& json, const std::map<std::string, std::string>& stores) const {
    const fs::path folder = folder_.path() / "cases";
    fs::remove_all(folder);
    fs::create_directories(folder / "own");
    for (const auto& [name, source] : stores)
      fs::create_directory_symlink(store(source), folder / "own" / (name + ".zarr"));
    write_file_atomic(folder / "own.json", json.dump());
    Report report;
    run_dataset_cases(CaseFile(folder / "own.json"), report);
    return {report.num_passed(), report.num_failed(), report.num_skipped()};
  }

  // One variant: base with some keys changed.
  Counts run_variant(const Json& changes) const {
    Json entry = base_;
    entry.update(changes);
    return run({{"about", ""}, {"variants", {{"one", entry}}}}, {{"one", "base.zarr"}});
  }

  // One hostile case, whose good store has the rows of "base" that are given by number.
  Counts run_hostile(const Json& expected, const std::map<int64_t, int64_t>& rows,
                     const std::string& other = "base.zarr") const {
    const data::AnemoiDataset dataset({.dataset = store("base.zarr").string()});
    Json good{{"variables", dataset.info().variables}, {"rows", Json::object()}};
    for (const auto& [number, row] : rows)
      good["rows"][std::to_string(number)] = {{"sha256", hash_of(read_fields(dataset, row))}};
    return run({{"about", ""}, {"good", good}, {"cases", {{"one", expected}}}},
               {{"one", other}, {"good", "base.zarr"}});
  }

 private:
  test::TemporaryFolder folder_;
  Json base_;
};

constexpr Counts kPassed{1, 0, 0}, kFailed{0, 1, 0}, kSkipped{0, 0, 1};

}  // namespace

TEST_CASE("stored types are equal in kind, width and order of bytes", "[conformance]") {
  const Stores stores;
  for (const char* type : {"float32", "<f4", "=f4"}) {
    INFO(type);
    REQUIRE(stores.run_variant({{"stored_dtype", type}}) == kPassed);
  }
  for (const char* type : {"float64", "<f8", ">f4", "<i4", "float16"}) {
    INFO(type);
    REQUIRE(stores.run_variant({{"stored_dtype", type}}) == kFailed);
  }
}

TEST_CASE("what the package refuses may be refused, and need not be", "[conformance]") {
  const Stores stores;
  REQUIRE(stores.run_variant({{"open_dataset", "ValueError"}}) == kPassed);
  REQUIRE(stores.run_variant({{"slices", "KeyError"}}) == kPassed);
  REQUIRE(stores.run_variant({{"must", "read or error"}}) == kPassed);
  REQUIRE(stores.run_variant({{"must", "error or read within a memory limit"}}) == kPassed);
  REQUIRE(stores.run_variant({{"must", "refuse"}}) == kFailed);
  REQUIRE(stores.run_variant({{"must", "whistle"}}) == kSkipped);
  // No dataset at all: refused, but not with the name of an array's file.
  const auto run = [&](const Json& entry, const std::map<std::string, std::string>& where) {
    return stores.run({{"about", ""}, {"variants", {{"one", entry}}}}, where);
  };
  const Json either{{"must", "read or refuse"}};
  REQUIRE(run(either, {{"one", "base.zarr/data"}}) == kFailed);
  const Json refused_by_package{{"must", "read"}, {"open_dataset", "ValueError"}};
  REQUIRE(run(refused_by_package, {{"one", "base.zarr/data"}}) == kPassed);
  REQUIRE(run(refused_by_package, {}) == kFailed);  // there is no store
}

TEST_CASE("keys are shared with any other entry", "[conformance]") {
  const Stores stores;
  Json shared{{"must", "read"}, {"same_as_first", {"shape", "variables"}}};
  const auto run = [&] {
    return stores.run({{"about", ""}, {"variants", {{"first", stores.base()}, {"one", shared}}}},
                      {{"first", "base.zarr"}, {"one", "v3_shard.zarr"}});
  };
  REQUIRE(run() == Counts{2, 0, 0});
  shared["shape"] = {1, 2, 3, 4};  // what is listed as shared counts
  REQUIRE(run() == Counts{2, 0, 0});
  shared["same_as_first"] = {"variables"};
  REQUIRE(run() == Counts{1, 1, 0});
}

TEST_CASE("a missing row keeps its number", "[conformance]") {
  const Stores stores;  // row 6 is declared missing and has no chunk
  const Json read{{"must", "read"}};
  REQUIRE(stores.run_hostile(read, {{5, 5}, {7, 7}, {12, 12}}) == kPassed);
  REQUIRE(stores.run_hostile(read, {{6, 7}}) == kPassed);  // is not read, so not compared
  REQUIRE(stores.run_hostile(read, {{7, 8}}) == kFailed);
  REQUIRE(stores.run_hostile(read, {{6, 7}, {7, 8}}) == kFailed);
}

TEST_CASE("hostile cases follow their expectation and notes", "[conformance]") {
  const Stores stores;
  const std::map<int64_t, int64_t> rows{{0, 0}, {1, 1}}, swapped{{0, 1}, {1, 0}};
  REQUIRE(stores.run_hostile({{"must", "read or error"}}, rows) == kPassed);
  REQUIRE(stores.run_hostile({{"must", "read"}}, swapped) == kFailed);
  REQUIRE(stores.run_hostile({{"must", "error or wrong values, no crash"}}, swapped) == kPassed);
  REQUIRE(stores.run_hostile({{"must", "error"}}, rows) == kFailed);
  REQUIRE(stores.run_hostile({{"must", "error"}, {"note", "reading it is as right"}}, rows) ==
          kPassed);
  REQUIRE(stores.run_hostile({{"must", "hum"}}, rows) == kSkipped);
  REQUIRE(stores.run_hostile("ValueError", rows) == kSkipped);
  // Values that a note gives in words that are not known cannot be judged.
  REQUIRE(stores.run_hostile({{"must", "read"}, {"note", "row 0 is that of row 1"}}, swapped) ==
          kSkipped);
  REQUIRE(stores.run_hostile({{"must", "read"}, {"note", "row 0 is 7 everywhere"}}, rows) ==
          kFailed);
  // A store that is no dataset: its file must be named.
  const Json refuse{{"must", "error"}, {"message_names", {"not a Zarr group"}}};
  REQUIRE(stores.run_hostile(refuse, rows, "base.zarr/data") == kPassed);
  const Json name{{"must", "error"}, {"message_names", {"data/5.0.0.0"}}};
  REQUIRE(stores.run_hostile(name, rows, "base.zarr/data") == kFailed);
}

TEST_CASE("options that are not known fail where they must open, unless a note lets us refuse",
          "[conformance]") {
  const Stores stores;
  const auto run = [&](const Json& arguments, const Json& other) {
    Json entry{{"open_dataset", arguments}};
    entry.update(other);
    return stores.run({{"about", ""}, {"cases", {{"one", entry}}}}, {{"base", "base.zarr"}});
  };
  const Json colour{{"dataset", "base.zarr"}, {"colour", "blue"}};
  REQUIRE(run(colour, {{"opens", true}}) == kFailed);
  REQUIRE(run(colour, {{"opens", false}}) == kPassed);
  REQUIRE(run(colour, {{"opens", true}, {"note", "refusing it is as right"}}) == kPassed);
  REQUIRE(run({{"dataset", "base.zarr"}, {"start", "nonsense"}}, {{"opens", false}}) == kPassed);
  const Json plain{{"dataset", "base.zarr"}};
  REQUIRE(run(plain, {{"opens", false}}) == kFailed);
  REQUIRE(run(plain, {{"opens", true}, {"length", 13}, {"statistics", "KeyError"}}) == kPassed);
  REQUIRE(run(plain, {{"opens", true}, {"length", 12}}) == kFailed);
  REQUIRE(run(plain, {{"opens", true}, {"length", 13}, {"samples", {{"[6]", "KeyError"}}}}) ==
          kPassed);
}

TEST_CASE("the only store of a file may have any name", "[conformance]") {
  const Stores stores;
  const auto run = [&](const Json& shape) {
    Json json = stores.base();
    json.update({{"about", ""}, {"sha256", Json::object()}, {"shape", shape}});
    return stores.run(json, {{"another", "base.zarr"}});
  };
  REQUIRE(run(stores.base()["shape"]) == kPassed);
  REQUIRE(run({1, 2, 3, 4}) == kFailed);
}
