// SPDX-License-Identifier: Apache-2.0
// The conformance program on folders of reference cases, and on copies of them that were spoilt.
#pragma once

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/check.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

namespace aifs::test {

inline CommandResult conformance(const std::string& arguments) {
  return run_command(program("aifs-conformance").string() + " " + arguments);
}

struct Counts {
  int passed = -1, failed = -1, skipped = -1;
};

// The last line of a run.
inline Counts counts_of(const CommandResult& result) {
  std::smatch match;
  static const std::regex summary("(\\d+) passed, (\\d+) failed, (\\d+) skipped\n$");
  if (!std::regex_search(result.out, match, summary)) return {};
  return {std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3])};
}

inline void require_no_failure(const fs::path& folder) {
  const CommandResult result = conformance(folder.string());
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

// A copy of one folder of reference data (by default the small ones), to be spoilt.
class Copy {
 public:
  explicit Copy(const std::string& folder, const fs::path& from = fixture("golden"))
      : path_(temporary_.path() / folder) {
    fs::copy(from / folder, path_, fs::copy_options::recursive);
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

  struct Tensor {
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  using Tensors = std::map<std::string, Tensor>;

  // Writes a file of tensors again after `edit` changed them.
  void rewrite(const std::string& file, const std::function<void(Tensors&)>& edit) const {
    Tensors tensors;
    {
      const SafetensorsFile old(path_ / file);
      for (const auto& [name, entry] : old.entries())
        tensors[name] = {entry.dtype, entry.shape, {entry.bytes.begin(), entry.bytes.end()}};
    }
    edit(tensors);
    std::vector<SafetensorsItem> items;
    for (const auto& [name, tensor] : tensors)
      items.push_back({name, tensor.dtype, tensor.shape, tensor.bytes.data()});
    write_safetensors(path_ / file, items);
  }

  // Adds `change` to a number of a tensor.
  void change(const std::string& file, const std::string& tensor, float change,
              size_t index = 0) const {
    rewrite(file, [&](Tensors& tensors) {
      AIFS_CHECK(tensors.at(tensor).dtype == DType::kF32, "'", tensor, "' is not fp32");
      std::vector<std::byte>& bytes = tensors.at(tensor).bytes;
      float number = 0.0f;
      std::byte* place = bytes.data() + index * sizeof number;
      std::memcpy(&number, place, sizeof number);
      number += change;
      std::memcpy(place, &number, sizeof number);
    });
  }

  // Gives the tensors of a case, and the case, another name.
  void rename(const std::string& name, const std::string& from, const std::string& to) const {
    replace(name + ".json", "\"" + from + "\":", "\"" + to + "\":");
    rewrite(name + ".safetensors", [&](Tensors& tensors) {
      Tensors renamed;
      for (auto& [tensor, value] : tensors) {
        const bool of_case = tensor.starts_with(from + "/");
        renamed[of_case ? to + tensor.substr(from.size()) : tensor] = std::move(value);
      }
      tensors = std::move(renamed);
    });
  }

  Counts counts() const {
    const CommandResult result = conformance(path_.string());
    UNSCOPED_INFO(result.out << result.err);
    return counts_of(result);
  }

  // Runs the copy: exactly these cases must fail, and where there is a GPU what repeats them there.
  void require_failures(std::vector<std::string> cases) const {
    const CommandResult result = conformance(path_.string());
    INFO(result.out << result.err);
    for (size_t i = 0, count = cases.size(); i < count; ++i)
      if (result.out.find(" " + cases[i] + ".cuda ") != std::string::npos)
        cases.push_back(cases[i] + ".cuda");
    REQUIRE(result.exit_code == 1);
    REQUIRE(counts_of(result).failed == static_cast<int>(cases.size()));
    for (const std::string& name : cases)
      REQUIRE(std::regex_search(result.out, std::regex(" " + name + " +FAILED ")));
  }

 private:
  TemporaryFolder temporary_;
  fs::path path_;
};

}  // namespace aifs::test
