// SPDX-License-Identifier: Apache-2.0
// Runs the conformance program on reference cases, and on copies of them that were spoilt: the
// program must be able to fail.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/check.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

test::CommandResult conformance(const std::string& arguments) {
  return test::run_command(test::program("aifs-conformance").string() + " " + arguments);
}

struct Counts {
  int passed = -1, failed = -1, skipped = -1;
};

// The last line of a run.
Counts counts_of(const test::CommandResult& result) {
  std::smatch match;
  static const std::regex summary("(\\d+) passed, (\\d+) failed, (\\d+) skipped\n$");
  if (!std::regex_search(result.out, match, summary)) return {};
  return {std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3])};
}

void require_no_failure(const fs::path& folder) {
  const test::CommandResult result = conformance(folder.string());
  std::string failures;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" FAILED ") != std::string::npos) failures += line + "\n";
  }
  INFO(failures << result.err);
  const Counts counts = counts_of(result);
  REQUIRE(counts.failed == 0);
  REQUIRE(counts.passed > 50);
  REQUIRE(result.exit_code == 0);
}

// A copy of one folder of the small reference data, to be spoilt.
class Copy {
 public:
  explicit Copy(const std::string& folder) : path_(temporary_.path() / folder) {
    fs::copy(test::fixture("golden/" + folder), path_, fs::copy_options::recursive);
  }

  const fs::path& path() const { return path_; }

  void replace(const std::string& file, const std::string& text, const std::string& other) const {
    std::string content = read_file(path_ / file);
    const size_t at = content.find(text);
    AIFS_CHECK(at != std::string::npos, "'", file, "' does not contain '", text, "'");
    content.replace(at, text.size(), other);
    write_file_atomic(path_ / file, content);
  }

  void cut(const std::string& file, size_t bytes) const {
    const std::string content = read_file(path_ / file);
    write_file_atomic(path_ / file, content.substr(0, content.size() - bytes));
  }

  // Adds `change` to the first number of a tensor.
  void change(const std::string& file, const std::string& tensor, float change) const {
    std::map<std::string, std::vector<std::byte>> bytes;
    std::vector<SafetensorsItem> items;
    {
      const SafetensorsFile old(path_ / file);
      for (const auto& [name, entry] : old.entries()) {
        std::vector<std::byte>& copy = bytes[name];
        copy.assign(entry.bytes.begin(), entry.bytes.end());
        items.push_back({name, entry.dtype, entry.shape, copy.data()});
      }
      AIFS_CHECK(old.at(tensor).dtype == DType::kF32, "'", tensor, "' is not fp32");
    }
    float first = 0.0f;
    std::memcpy(&first, bytes[tensor].data(), sizeof first);
    first += change;
    std::memcpy(bytes[tensor].data(), &first, sizeof first);
    write_safetensors(path_ / file, items);
  }

  // Runs the copy: exactly these cases must fail.
  void require_failures(const std::vector<std::string>& cases) const {
    const test::CommandResult result = conformance(path_.string());
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 1);
    REQUIRE(counts_of(result).failed == static_cast<int>(cases.size()));
    for (const std::string& name : cases)
      REQUIRE(std::regex_search(result.out, std::regex(" " + name + " +FAILED ")));
  }

 private:
  test::TemporaryFolder temporary_;
  fs::path path_;
};

}  // namespace

TEST_CASE("the small reference data are those of their manifest", "[conformance]") {
  const auto manifest =
      nlohmann::json::parse(read_file(test::fixture("golden/MANIFEST.json"))).at("files");
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::fixture("golden"))) {
    if (!entry.is_regular_file() || entry.path().filename() == "MANIFEST.json") continue;
    const std::string name = entry.path().lexically_relative(test::fixture("golden")).string();
    INFO(name);
    REQUIRE(manifest.at(name).at("sha256") == sha256_hex(read_file(entry.path())));
    ++files;
  }
  REQUIRE(files == manifest.size());
}

TEST_CASE("no case of the small reference data fails", "[conformance]") {
  require_no_failure(test::fixture("golden"));
}

TEST_CASE("no case of the full reference data fails", "[conformance]") {
  if (!test::shared_folder()) {
    WARN("AIFS_SHARED is not set: the full reference data are not run");
    return;
  }
  require_no_failure(*test::shared_folder() / "golden");
}

TEST_CASE("a call without a folder gets the usage, a missing folder is named", "[conformance]") {
  const test::CommandResult missing = conformance("/nowhere/at/all");
  REQUIRE(missing.exit_code == 2);
  REQUIRE_THAT(missing.err, ContainsSubstring("'/nowhere/at/all' is not a folder"));
  const test::TemporaryFolder empty;
  const test::CommandResult nothing = conformance(empty.path().string());
  REQUIRE(nothing.exit_code == 2);
  REQUIRE_THAT(nothing.err, ContainsSubstring("holds no case"));
  REQUIRE_THAT(conformance(". .").err, ContainsSubstring("'.' is a folder, not a file"));
  for (const char* arguments : {"", "--help", ". . ."}) {
    const test::CommandResult result = conformance(arguments);
    REQUIRE(result.exit_code == 2);
    REQUIRE_THAT(result.err, ContainsSubstring("usage: aifs-conformance DIR"));
  }
}

TEST_CASE("a spoilt result fails its own case", "[conformance]") {
  const Copy losses("losses");
  losses.change("losses.safetensors", "mae_node_time/value", 1e-5f);
  losses.change("losses.safetensors", "huber_delta/grad", 1e-3f);
  losses.require_failures({"mae_node_time", "huber_delta"});

  const Copy processors("processors");
  processors.change("processors.safetensors", "norm_mixed/forward", 1e-6f);
  processors.change("processors.safetensors", "bound_chain/grad", 1e-3f);
  processors.change("processors.safetensors", "imputer_copy/loss_mask", -1.0f);
  processors.require_failures({"norm_mixed", "bound_chain", "imputer_copy"});
}

TEST_CASE("a wrapper that ignores NaN has a loss that does, or is refused", "[conformance]") {
  const Copy losses("losses_more");
  const std::string file = "losses_more.json";
  losses.replace(file, "\"weights\": [0.5, 0.5],",
                 "\"weights\": [0.5, 0.3, 0.2], \"ignore_nans\": true,");
  REQUIRE(counts_of(conformance(losses.path().string())).failed == 0);
  losses.replace(file, "0.2], \"ignore_nans\": true,", "0.2], \"ignore_nans\": false,");
  losses.require_failures({"multiscale_wrong_number_of_weights"});
}

TEST_CASE("other options than those of the reference fail", "[conformance]") {
  const Copy losses("losses");
  losses.replace("losses.json", "\"delta\": 0.35", "\"delta\": 0.36");
  losses.require_failures({"huber_delta"});

  const Copy tables("tables");
  tables.replace("partition.json", "\"parts\": 4", "\"parts\": 5");
  tables.replace("rollout.json", "\"epoch_increment\": 3", "\"epoch_increment\": 4");
  tables.replace("learning_rate.json", "\"warmup_t\": 20", "\"warmup_t\": 21");
  tables.replace("seeds.json", "\"derived_seed\": 2684470948", "\"derived_seed\": 2684470949");
  tables.replace("sampler.json", "\"batch_size\": 2", "\"batch_size\": 3");
  tables.replace("optimizers.json", "clamped to +-32", "clamped to +-31");
  tables.require_failures(
      {"partition/0", "rollout/2", "learning_rate/0", "seeds", "sampler/0", "adamw_clip_value"});
}

TEST_CASE("an option that is not known fails its case by name", "[conformance]") {
  const Copy losses("losses");
  losses.replace("losses.json", "\"delta\": 0.35", "\"gamma\": 0.35");
  const test::CommandResult result = conformance(losses.path().string());
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.out, ContainsSubstring("FAILED   not supported: option gamma\n"));
  REQUIRE(counts_of(result).failed == 1);
}

TEST_CASE("a changed weight fails the model in both precisions", "[conformance]") {
  const Copy models("models");
  fs::copy(test::fixture("golden/graphs"), models.path() / "graphs");
  models.change("gnn.safetensors", "state/decoder.0.node_data_extractor.mlp.4.bias", 1e-3f);
  fs::remove(models.path() / "graphs" / "graph_o8_tri2.json");  // only its tensors are needed
  models.require_failures({"gnn", "gnn.f64"});
}

TEST_CASE("damaged files fail and do not stop the others", "[conformance]") {
  const Copy tables("tables");
  tables.cut("optimizers.safetensors", 4);
  tables.cut("seeds.json", 100);
  tables.require_failures({"optimizers.json", "seeds.json"});
}
