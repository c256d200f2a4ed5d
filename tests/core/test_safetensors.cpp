// SPDX-License-Identifier: Apache-2.0
#include "core/safetensors.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

std::string sample_file(const fs::path& path) {
  static const std::vector<float> weights{1.5f, -2.0f, 0.25f, 8.0f, 1e-8f, 3.0f};
  static const std::vector<int64_t> index{7, -1};
  return write_safetensors(path,
                           {{"w", DType::kF32, {2, 3}, weights.data()},
                            {"i", DType::kI64, {2}, index.data()},
                            {"empty", DType::kF64, {0, 4}, weights.data()}},
                           {{"step", "60"}});
}

}  // namespace

TEST_CASE("tensors survive a round trip", "[safetensors]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.safetensors";
  const std::string digest = sample_file(path);
  REQUIRE(digest == sha256_hex(read_file(path)));
  const SafetensorsFile file(path);
  REQUIRE(file.entries().size() == 3);
  REQUIRE(file.at("w").shape == std::vector<int64_t>{2, 3});
  REQUIRE(file.doubles("w")[1] == -2.0);
  REQUIRE(file.integers("i") == std::vector<int64_t>{7, -1});
  REQUIRE(file.at("empty").num_elements() == 0);
  REQUIRE(file.metadata().at("step") == "60");
}

TEST_CASE("the header keeps the order of the items, and every tensor is aligned", "[safetensors]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.safetensors";
  const std::vector<float> odd{1.0f, 2.0f, 3.0f};
  const int64_t version = 1;
  write_safetensors(path, {{"odd", DType::kF32, {3}, odd.data()},
                           {"version", DType::kI64, {}, &version},
                           {"more", DType::kF32, {3}, odd.data()}});
  const SafetensorsFile file(path);
  REQUIRE(file.names() == std::vector<std::string>{"odd", "version", "more"});
  REQUIRE(file.integers("version") == std::vector<int64_t>{1});
  REQUIRE(file.doubles("more")[2] == 3.0);
  for (const auto& [name, entry] : file.entries()) {
    INFO(name);
    REQUIRE(reinterpret_cast<uintptr_t>(entry.bytes.data()) % dtype_bytes(entry.dtype) == 0);
  }
}

TEST_CASE("asking for what is not there names the file and near names", "[safetensors]") {
  const test::TemporaryFolder folder;
  sample_file(folder.path() / "a.safetensors");
  const SafetensorsFile file(folder.path() / "a.safetensors");
  REQUIRE_THROWS_WITH(file.at("v"), ContainsSubstring("no tensor 'v'"));
  REQUIRE_THROWS_WITH(file.integers("w"), ContainsSubstring("integers were expected"));
}

TEST_CASE("a file cut anywhere is refused", "[safetensors]") {
  const test::TemporaryFolder folder;
  sample_file(folder.path() / "a.safetensors");
  const std::string whole = read_file(folder.path() / "a.safetensors");
  for (size_t length = 0; length < whole.size(); length += 5) {
    write_file_atomic(folder.path() / "cut", whole.substr(0, length));
    REQUIRE_THROWS_AS(SafetensorsFile(folder.path() / "cut"), DataError);
  }
}

TEST_CASE("a file of another kind than safetensors is called by its kind", "[safetensors]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "w", "PK\x03\x04 and more of a zip archive");
  REQUIRE_THROWS_WITH(SafetensorsFile(folder.path() / "w"),
                      ContainsSubstring("is a zip archive, a safetensors file was expected"));
}

TEST_CASE("no wrongly typed header shows the words of a library", "[safetensors]") {
  const test::TemporaryFolder folder;
  const std::string entry = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  std::vector<std::string> headers{"5", "[]", "{", "{\"w\": }", std::string(1000000, '[')};
  for (const char* value : {"null", "5", "-5", "1e300", "\"x\"", "[]", "{}", "[null]", "true",
                            "18446744073709551615", "[[[[]]]]"}) {
    headers.push_back(concat("{\"w\":", value, "}"));
    headers.push_back(concat("{\"__metadata__\":{\"a\":", value, "},\"w\":{", entry, "}}"));
    headers.push_back(concat("{\"__metadata__\":", value, ",\"w\":{", entry, "}}"));
    for (const char* key : {"dtype", "shape", "data_offsets"})
      headers.push_back(concat("{\"w\":{", entry, ",\"", key, "\":", value, "}}"));
  }
  for (const std::string& header : headers) {
    INFO(header.substr(0, 200));
    std::string text(8, '\0');
    for (size_t i = 0; i < 8; ++i)
      text[i] = static_cast<char>(header.size() >> (8 * i));
    write_file_atomic(folder.path() / "w", text + header + std::string(8, 'x'));
    try {
      (void)SafetensorsFile(folder.path() / "w").doubles("w");
    } catch (const DataError& error) {
      const std::string what = error.what();
      REQUIRE_THAT(what, ContainsSubstring((folder.path() / "w").string()));
      REQUIRE_THAT(what, !ContainsSubstring("exception") && !ContainsSubstring("type must be"));
    }
  }
}

TEST_CASE("headers that lie are refused", "[safetensors]") {
  const test::TemporaryFolder folder;
  const auto refuse = [&](const std::string& header) {
    std::string text(8, '\0');
    text[0] = static_cast<char>(header.size());
    write_file_atomic(folder.path() / "lie", text + header + std::string(16, 'x'));
    REQUIRE_THROWS_AS(SafetensorsFile(folder.path() / "lie"), DataError);
  };
  refuse(R"([1,2])");
  refuse(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}})");
  refuse(R"({"a":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}})");
  refuse(R"({"a":{"dtype":"F33","shape":[4],"data_offsets":[0,16]}})");
  refuse(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})");
  refuse(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})");
  refuse(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})");
}
