// SPDX-License-Identifier: Apache-2.0
// Checkpoints that anemoi-training 0.17.1 wrote (tools/reference/anemoi_checkpoints.py), as runs.
// Each has a listing of its tensors, which torch.load() and tools/anemoi_checkpoint.py gave.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

// The checkpoints, unpacked, and the program with their dataset.
struct Checkpoints {
  Checkpoints() {
    const auto result = test::run_command(
        concat("tar -xzf '", test::fixture("checkpoints/checkpoints.tar.gz").string(), "' -C '",
               folder.path().string(), "'"));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  fs::path operator/(const std::string& name) const { return folder.path() / name; }

  test::CommandResult import(const std::string& file, const std::string& more = "") const {
    return program(concat("import --format anemoi '", (*this / file).string(), "' '", run.string(),
                          "' ", of_data, " ", more));
  }
  static test::CommandResult program(const std::string& arguments) {
    return test::run_command(concat("'", test::program("aifs-train").string(), "' ", arguments));
  }
  void require_import(const std::string& file, const std::string& more = "") const {
    fs::remove_all(run);
    const auto result = import(file, more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  // The parameters of the only checkpoint of the run.
  SafetensorsFile parameters() const {
    std::string name = read_file(run / "checkpoints/latest");
    name = name.substr(0, name.find('\n'));
    return SafetensorsFile(run / "checkpoints" / name / "parameters.safetensors");
  }

  test::TemporaryFolder folder;
  fs::path run = folder.path() / "run";
  std::string of_data =
      concat("--set data.dataset.dataset='", (*this / "globe.zarr").string(), "'");
};

// "name F32 [2, 3] sha256" of a tensor, as the listings have it.
std::string line_of(const std::string& name, const TensorEntry& entry) {
  std::string shape;
  for (const int64_t length : entry.shape)
    shape += concat(shape.empty() ? "" : ", ", length);
  return concat(name, " ", dtype_name(entry.dtype), " [", shape, "] ", sha256_hex(entry.bytes));
}

std::vector<std::string> lines_of(const fs::path& file, const std::string& beginning) {
  std::istringstream lines(read_file(file));
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning)) found.push_back(line);
  }
  return found;
}

std::vector<double> losses_of(const fs::path& run) {
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);)
    losses.push_back(nlohmann::json::parse(line).at("loss").get<double>());
  return losses;
}

}  // namespace

TEST_CASE("weights and graph of a checkpoint are Anemoi's to the bit", "[import]") {
  const Checkpoints checkpoints;
  for (const std::string name : {"aifs/training", "ensemble/inference"}) {
    INFO(name);
    const std::string kind = name.substr(0, name.find('/'));
    checkpoints.require_import(name + ".ckpt");
    const SafetensorsFile weights = checkpoints.parameters();
    const fs::path listing = checkpoints / (kind + "/tensors.txt");
    const std::vector<std::string> wanted = lines_of(listing, "model.");
    REQUIRE(wanted.size() == weights.names().size());
    for (const std::string& line : wanted) {
      const std::string tensor = line.substr(6, line.find(' ') - 6);
      REQUIRE(line_of("model." + tensor, weights.at(tensor)) == line);
    }
    const auto exported =
        Checkpoints::program(concat("export '", checkpoints.run.string(), "' '",
                                    (checkpoints / (kind + "/out")).string(), "'"));
    INFO(exported.err);
    REQUIRE(exported.exit_code == 0);
    const SafetensorsFile graph(checkpoints / (kind + "/out/graph.safetensors"));
    for (const char* part : {"nodes/", "edges/"}) {
      for (const std::string& line : lines_of(listing, part)) {
        const std::string tensor = line.substr(0, line.find(' '));
        REQUIRE(line_of(tensor, graph.at(tensor)) == line);
      }
    }
  }
}

TEST_CASE("a training goes on where it was: the losses are Anemoi's", "[import]") {
  const Checkpoints checkpoints;
  checkpoints.require_import("aifs/training.ckpt");
  const auto resumed =
      Checkpoints::program(concat("--config '", (checkpoints.run / "config.json").string(),
                                  "' --resume --set run.device=cpu --set log.every_steps=1"));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE_THAT(resumed.err, ContainsSubstring("resuming at step 4"));
  const auto anemoi = nlohmann::json::parse(read_file(checkpoints / "aifs/losses.json"));
  const auto reference = anemoi.at("behind").get<std::vector<double>>();
  const std::vector<double> losses = losses_of(checkpoints.run);
  REQUIRE(losses.size() == reference.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    INFO(i << ": " << losses[i] << " and " << reference[i]);
    REQUIRE(std::abs(losses[i] / reference[i] - 1) < 1e-6);
  }
}

TEST_CASE("only the weights of a training, for a new one", "[import]") {
  const Checkpoints checkpoints;
  checkpoints.require_import("aifs/training.ckpt", "--weights-only");
  REQUIRE(fs::exists(checkpoints.run / "checkpoints/step-00000000"));
  REQUIRE_FALSE(fs::exists(checkpoints.run / "checkpoints/step-00000004"));
}

TEST_CASE("another model than the checkpoint's is refused by name, and leaves nothing behind",
          "[import]") {
  const Checkpoints checkpoints;
  checkpoints.require_import("aifs/training.ckpt");
  const fs::path own = checkpoints / "own.json";
  fs::copy_file(checkpoints.run / "config.json", own);
  const auto import = [&](const std::string& more) {
    fs::remove_all(checkpoints.run);
    return checkpoints.import("aifs/training.ckpt", concat("--config '", own.string(), "' ", more));
  };
  const auto same = import("");
  INFO(same.err);
  REQUIRE(same.exit_code == 0);
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"model.processor.window", "4"},
                                          {"model.processor.heads", "4"},
                                          {"model.bounding", "[]"},
                                          {"data.diagnostic", R"('["tp"]')"}}) {
    const auto refused = import(concat("--set ", key, "=", value));
    INFO(key << refused.err);
    REQUIRE(refused.exit_code == 2);
    REQUIRE_THAT(refused.err, ContainsSubstring(key) && ContainsSubstring("--allow-differences"));
    REQUIRE_FALSE(fs::exists(checkpoints.run));
  }
  const auto allowed = import("--set model.processor.window=4 --allow-differences");
  REQUIRE(allowed.exit_code == 0);
  REQUIRE_THAT(allowed.err, ContainsSubstring("model.processor.window"));
  const auto wider = import("--set model.channels=16 --allow-differences");
  REQUIRE(wider.exit_code == 3);
  REQUIRE_THAT(wider.err, ContainsSubstring("has shape"));
  REQUIRE_FALSE(fs::exists(checkpoints.run));
}

TEST_CASE("files that are no checkpoints, or damaged, are refused by name", "[import]") {
  const Checkpoints checkpoints;
  const std::string whole = read_file(checkpoints / "aifs/training.ckpt");
  const auto refused = [&](const std::string& bytes) {
    write_file_atomic(checkpoints / "bad.ckpt", bytes);
    const auto result = checkpoints.import("bad.ckpt");
    INFO(result.err);
    REQUIRE(result.exit_code == 3);
    REQUIRE_THAT(result.err, ContainsSubstring("bad.ckpt'"));
    REQUIRE_FALSE(fs::exists(checkpoints.run));
  };
  refused("a line of text");
  refused(whole.substr(0, whole.size() / 2));
  std::string spoilt = whole;
  spoilt[whole.size() / 2] = static_cast<char>(spoilt[whole.size() / 2] ^ 1);
  refused(spoilt);
}
