// SPDX-License-Identifier: Apache-2.0
#include "train/output/checkpoint.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/missing_operations.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"
#include "train/run_checkpoints.h"

using namespace aifs;
using namespace aifs::train;
using test::random_tensor;

namespace {

// Two trainable tensors, a buffer, an alias, and an optimiser that has done two steps.
struct Model {
  model::ParameterSet set;
  std::unique_ptr<AdamW> optimizer;

  explicit Model(uint64_t seed, int64_t width = 5, at::ScalarType dtype = at::kFloat)
      : set(dtype, seed) {
    set.add("layer.weight", {3, width}, model::Init::zeros());
    set.add("layer.bias", {3}, model::Init::zeros());
    set.add_buffer("mean", random_tensor({2}, seed + 7).to(dtype));
    set.add_alias("again", "layer.bias");
    set.flatten(at::kCPU);
    set.assign("layer.weight", random_tensor({3, width}, seed + 1).to(dtype));
    set.assign("layer.bias", random_tensor({3}, seed + 2).to(dtype));
    optimizer = std::make_unique<AdamW>(set, AdamWOptions{});
    for (int step = 0; step < 2; ++step) {
      set.gradient(set.at("layer.weight")).copy_(random_tensor({3, width}, seed + 3));
      optimizer->step(0.01);
    }
  }

  void load(const CheckpointInfo& info) {
    OptimizerState state{.flats = optimizer->states()};
    load_optimizer(info, set, state);
    optimizer->set_num_steps(state.num_steps);
  }
};

CheckpointMeta some_meta() {
  return {"program", "torch", R"({"a": 1})", "config-hash", "graph-hash", "", "now"};
}

fs::path write(const fs::path& folder, int64_t step, const Model& model,
               const KeptSteps& kept = std::nullopt) {
  return write_checkpoint(folder, {step, 2, 3}, gather_tensors(model.set, *model.optimizer),
                          some_meta(), kept);
}

KeptSteps only(std::vector<int64_t> steps) {
  return steps;
}

void require_equal(const Model& a, const Model& b) {
  REQUIRE(at::equal(a.set.flat_values(), b.set.flat_values()));
  REQUIRE(at::equal(a.optimizer->moment1(), b.optimizer->moment1()));
  REQUIRE(at::equal(a.optimizer->moment2(), b.optimizer->moment2()));
  REQUIRE(a.optimizer->num_steps() == b.optimizer->num_steps());
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Replaces the manifest by one that its own checksum vouches for.
void forge(const fs::path& checkpoint, const std::string& manifest) {
  write_file_atomic(checkpoint / "manifest.json", manifest);
  write_file_atomic(checkpoint / "COMPLETE", sha256_hex(std::string_view(manifest)) + "\n");
}

}  // namespace

TEST_CASE("weights, moments and position come back to the bit", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto dtype = GENERATE(at::kFloat, at::kDouble);
  const Model written(1, 5, dtype);
  Model read(100, 5, dtype);
  const CheckpointInfo info = inspect_checkpoint(write(folder.path(), 60, written));
  load_parameters(info, read.set);
  read.load(info);
  require_equal(written, read);
  REQUIRE(at::equal(read.set.at("mean").tensor, written.set.at("mean").tensor));
  REQUIRE(info.path.filename() == "step-00000060");
  REQUIRE((info.state.step == 60 && info.state.epoch == 2 && info.state.batch_in_epoch == 3));
  REQUIRE(info.meta.config_hash == "config-hash");
  REQUIRE(info.meta.graph_hash == "graph-hash");
  REQUIRE(nlohmann::json::parse(info.meta.config_json) == nlohmann::json{{"a", 1}});
}

TEST_CASE("only those asked for are kept, and what crashed writers left goes", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  make_directories(folder.path() / ".partial-step-00000003-77");
  for (const int64_t step : {7, 14, 21})
    write(folder.path(), step, model, only({step - 7, step}));
  REQUIRE(names_in(folder.path()) ==
          std::vector<std::string>{"latest", "step-00000014", "step-00000021"});
  REQUIRE(read_file(folder.path() / "latest") == "step-00000021\n");
}

TEST_CASE("a run that went on from an earlier checkpoint keeps its own and finds it again",
          "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  for (const int64_t step : {7, 35, 40})
    write(folder.path(), step, model);
  write(folder.path(), 14, model, only({14}));  // resumed at 7: 35 and 40 are of a former course
  REQUIRE(find_latest_checkpoint(folder.path())->state.step == 14);
  REQUIRE(names_in(folder.path()) ==
          std::vector<std::string>{"latest", "step-00000014", "step-00000035", "step-00000040"});
  // Its own earlier ones come before those of the former course.
  write(folder.path(), 21, model, only({14, 21}));
  fs::remove(folder.path() / "step-00000021" / "COMPLETE");
  REQUIRE(find_latest_checkpoint(folder.path())->state.step == 14);
  // Once it has passed them they go.
  write(folder.path(), 42, model, only({14, 42}));
  REQUIRE(names_in(folder.path()) ==
          std::vector<std::string>{"latest", "step-00000014", "step-00000042"});
}

TEST_CASE("a checkpoint knows the course that led to it", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  const auto write_with = [&](int64_t step, const std::optional<CheckpointCourse>& course) {
    CheckpointMeta meta = some_meta();
    meta.course = course;
    return inspect_checkpoint(write_checkpoint(folder.path(), {step, 2, 3},
                                               gather_tensors(model.set, *model.optimizer), meta));
  };
  write_with(7, std::nullopt);
  write_with(10, std::nullopt);  // of a former course
  const CheckpointCourse course{{3, 50}, {7, 100}, {14, 200}};
  const CheckpointInfo told = write_with(14, course);
  CHECK((told.meta.course == course));
  // One that is not there any more does not count.
  CHECK(steps_of(course_until(told, folder.path())) == std::vector<int64_t>{7, 14});
  // An older program did not say: all that are there, up to its step.
  const CheckpointInfo untold = write_with(12, std::nullopt);
  CHECK_FALSE(untold.meta.course);
  CHECK(steps_of(course_until(untold, folder.path())) == std::vector<int64_t>{7, 10, 12});
  CHECK(course_until(untold, folder.path()).back().time_s > 1700000000);
}

TEST_CASE("a lost or stale pointer does not hide checkpoints", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  REQUIRE_FALSE(has_checkpoints(folder.path()));
  write(folder.path(), 7, model);
  write(folder.path(), 14, model);
  const std::string pointer = GENERATE("", "step-00000099\n", "nonsense", "step-");
  write_file_atomic(folder.path() / "latest", pointer);
  if (pointer.empty()) fs::remove(folder.path() / "latest");
  REQUIRE(has_checkpoints(folder.path()));
  REQUIRE(find_latest_checkpoint(folder.path())->state.step == 14);
}

TEST_CASE("folders that only look like checkpoints are no trouble", "[checkpoint]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "step-99999999999999999999999999");
  make_directories(folder.path() / "step-x");
  write_file_atomic(folder.path() / "step-00000003", "a file");
  REQUIRE_FALSE(has_checkpoints(folder.path()));
  REQUIRE_FALSE(find_latest_checkpoint(folder.path()));
  REQUIRE_FALSE(find_latest_checkpoint(folder.path() / "nowhere"));
  REQUIRE_THROWS_AS(has_checkpoints(folder.path() / "step-00000003"), DataError);
}

TEST_CASE("any damage is found, named, and passed over", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  write(folder.path(), 7, model);
  const fs::path newest = write(folder.path(), 14, model);
  const std::string file =
      GENERATE("parameters.safetensors", "optimizer.safetensors", "manifest.json", "COMPLETE");
  const int kind = GENERATE(0, 1, 2);
  INFO(file << " damaged in way " << kind);
  std::string bytes = read_file(newest / file);
  if (kind == 0) fs::remove(newest / file);
  if (kind == 1) write_file_atomic(newest / file, bytes.substr(0, bytes.size() / 2));
  if (kind == 2) {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file_atomic(newest / file, bytes);
  }
  REQUIRE_THROWS_AS(inspect_checkpoint(newest), DataError);
  REQUIRE_THROWS_WITH(inspect_checkpoint(newest), ContainsSubstring("step-00000014"));
  REQUIRE(find_latest_checkpoint(folder.path())->state.step == 7);
  fs::remove_all(folder.path() / "step-00000007");
  REQUIRE_THROWS_AS(find_latest_checkpoint(folder.path()), DataError);
}

TEST_CASE("a manifest of another shape or version is refused, not trusted", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path path = write(folder.path(), 7, Model(1));
  const auto manifest = nlohmann::ordered_json::parse(read_file(path / "manifest.json"));
  auto other = manifest;
  SECTION("no object") {
    other = nlohmann::ordered_json::array();
  }
  SECTION("no files") {
    other.erase("files");
  }
  SECTION("files that are none") {
    other["files"] = {1, 2};
  }
  SECTION("one file short") {
    other["files"].erase("optimizer.safetensors");
  }
  SECTION("a step that is a text") {
    other["step"] = "7";
  }
  SECTION("a later format") {
    other["format_version"] = 2;
  }
  forge(path, other.dump());
  REQUIRE_THROWS_AS(inspect_checkpoint(path), DataError);
}

TEST_CASE("a wrongly typed manifest is refused with file and key, in no library's words",
          "[checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path path = write(folder.path(), 7, Model(1));
  const auto manifest = nlohmann::ordered_json::parse(read_file(path / "manifest.json"));
  int64_t refused = 0;
  for (const auto& [key, value] : manifest.items()) {
    for (const char* text : {"null", "\"x\"", "7", "-7", "1e300", "18446744073709551615", "[]",
                             "{}", "true", "[[{}]]"}) {
      auto other = manifest;
      other[key] = nlohmann::ordered_json::parse(text);
      INFO(key << " = " << text);
      forge(path, other.dump());
      try {
        inspect_checkpoint(path);
      } catch (const DataError& error) {
        ++refused;
        const std::string what = error.what();
        REQUIRE_THAT(what, ContainsSubstring(path.string()));
        REQUIRE_THAT(what, !ContainsSubstring("exception") && !ContainsSubstring("type must be"));
      }
    }
  }
  REQUIRE(refused > 8 * static_cast<int64_t>(manifest.size()) / 2);
  forge(path, std::string(1000000, '['));
  REQUIRE_THROWS_WITH(inspect_checkpoint(path), ContainsSubstring("manifest.json"));
  auto other = manifest;
  other["step"] = "7";
  forge(path, other.dump());
  REQUIRE_THROWS_WITH(
      inspect_checkpoint(path),
      ContainsSubstring("manifest.json': step must be an integer >= 0, not a text"));
}

TEST_CASE("a checkpoint of another model is refused and changes nothing", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const CheckpointInfo info = inspect_checkpoint(write(folder.path(), 7, Model(1, 5)));
  Model wider(2, 6);
  const at::Tensor before = wider.set.flat_values().clone();
  REQUIRE_THROWS_WITH(load_parameters(info, wider.set),
                      ContainsSubstring("'layer.weight' has shape [3, 5] in the checkpoint and "
                                        "[3, 6] in this model"));
  REQUIRE_THROWS_WITH(wider.load(info), ContainsSubstring("moment1/layer.weight"));
  REQUIRE(at::equal(wider.set.flat_values(), before));
}

TEST_CASE("a full disk loses the new checkpoint only", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  write(folder.path(), 7, model);
  {
    const test::FileSizeLimit limit(100);
    REQUIRE_THROWS_AS(write(folder.path(), 14, model), Error);
    REQUIRE_THROWS_AS(write(folder.path(), 7, model), Error);
  }
  REQUIRE(names_in(folder.path()) == std::vector<std::string>{"latest", "step-00000007"});
  REQUIRE(find_latest_checkpoint(folder.path())->state.step == 7);
}

TEST_CASE("checkpoints are written where folders cannot be flushed or renamed", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto missing =
      GENERATE(test::MissingOperations{.flush_file = EINVAL, .flush_folder = EINVAL},
               test::MissingOperations{.flush_folder = EOPNOTSUPP, .map = ENODEV},
               test::MissingOperations{.rename_folder = ENOSYS},
               test::MissingOperations{.rename_folder = EXDEV},
               test::MissingOperations{.rename_file = ENOSYS, .rename_folder = ENOSYS});
  const test::WithoutOperations without(missing);
  const Model first(1), second(2);
  write(folder.path(), 7, first);
  write(folder.path(), 14, first);
  const CheckpointInfo info = inspect_checkpoint(write(folder.path(), 14, second));
  Model read(3);
  load_parameters(info, read.set);
  read.load(info);
  require_equal(second, read);
  REQUIRE(find_latest_checkpoint(folder.path())->state.step == 14);
  REQUIRE(names_in(folder.path()) ==
          std::vector<std::string>{"latest", "step-00000007", "step-00000014"});
}

TEST_CASE("a full disk leaves no half of a checkpoint where folders cannot be renamed",
          "[checkpoint]") {
  const test::TemporaryFolder folder;
  const Model model(1);
  write(folder.path(), 7, model);
  {
    const test::WithoutOperations without({.rename_file = EIO, .rename_folder = ENOSYS});
    REQUIRE_THROWS_AS(write(folder.path(), 14, model), Error);
  }
  REQUIRE(names_in(folder.path()) == std::vector<std::string>{"latest", "step-00000007"});
}

TEST_CASE("the size of a checkpoint is known before it is written", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto dtype = GENERATE(at::kFloat, at::kDouble);
  const Model model(1, 50000, dtype);
  const fs::path path = write(folder.path(), 7, model);
  const std::vector<int64_t> sizes = checkpoint_file_bytes(model.set, 2);
  REQUIRE(sizes.size() == 2);
  const auto real = [&](const char* name) {
    return static_cast<double>(fs::file_size(path / name));
  };
  for (const auto& [index, name] : {std::pair<size_t, const char*>{0, "parameters.safetensors"},
                                    {1, "optimizer.safetensors"}}) {
    REQUIRE(static_cast<double>(sizes[index]) >= real(name));
    REQUIRE(static_cast<double>(sizes[index]) <= 1.01 * real(name));
  }
}

TEST_CASE("a checkpoint of the same step is replaced whole", "[checkpoint]") {
  const test::TemporaryFolder folder;
  write(folder.path(), 7, Model(1));
  const Model second(2);
  const CheckpointInfo info = inspect_checkpoint(write(folder.path(), 7, second));
  Model read(3);
  load_parameters(info, read.set);
  read.load(info);
  require_equal(second, read);
  REQUIRE(names_in(folder.path()) == std::vector<std::string>{"latest", "step-00000007"});
}
