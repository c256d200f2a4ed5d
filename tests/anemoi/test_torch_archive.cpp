// SPDX-License-Identifier: Apache-2.0
#include "anemoi/torch_archive.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/anemoi/torch_samples.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using anemoi::TorchArchive;
using test::pickled_tensor;
using test::TensorSample;

namespace {

const std::map<std::string, std::string> kSix{{"0", test::bytes_of<float>({0, 1, 2, 3, 4, 5})}};

fs::path written(const test::TemporaryFolder& folder, const std::string& bytes) {
  write_file_atomic(folder.path() / "file.ckpt", bytes);
  return folder.path() / "file.ckpt";
}

// The values of a tensor that is all that a file holds.
std::vector<double> values(const TensorSample& sample,
                           const std::map<std::string, std::string>& storages = kSix) {
  const test::TemporaryFolder folder;
  TorchArchive archive(written(folder, test::torch_bytes(pickled_tensor(sample), storages)));
  NamedTensors tensors(archive.path());
  tensors.add("t", archive.tensor(archive.root(), "t"));
  return tensors.doubles("t");
}

void refuse(const std::string& bytes, const std::string& why) {
  const test::TemporaryFolder folder;
  const auto read = [&] {
    TorchArchive archive(written(folder, bytes));
    archive.tensor(archive.root(), "t");
    archive.metadata();
  };
  INFO(why);
  REQUIRE_THROWS_AS(read(), DataError);
  REQUIRE_THROWS_WITH(read(), ContainsSubstring("file.ckpt'") && ContainsSubstring(why));
}

void refuse(const TensorSample& sample, const std::string& why) {
  refuse(test::torch_bytes(pickled_tensor(sample), kSix), why);
}

}  // namespace

TEST_CASE("tensors are parts of storages, in any order") {
  REQUIRE(values({}) == std::vector<double>{0, 1, 2, 3, 4, 5});
  REQUIRE(values({.shape = {3, 2}, .strides = {1, 3}}) == std::vector<double>{0, 3, 1, 4, 2, 5});
  REQUIRE(values({.offset = 4, .shape = {2}, .strides = {1}}) == std::vector<double>{4, 5});
  REQUIRE(values({.offset = 1, .shape = {3}, .strides = {2}}) == std::vector<double>{1, 3, 5});
  REQUIRE(values({.shape = {2, 2}, .strides = {0, 1}}) == std::vector<double>{0, 1, 0, 1});
  REQUIRE(values({.offset = 5, .shape = {}, .strides = {}}) == std::vector<double>{5});
  REQUIRE(values({.offset = 6, .shape = {0, 3}, .strides = {3, 1}}).empty());
}

TEST_CASE("all types of numbers that there are here") {
  const auto one = [](const std::string& storage, const std::string& bytes) {
    return values({.storage = storage, .elements = 1, .shape = {1}, .strides = {1}},
                  {{"0", bytes}});
  };
  REQUIRE(one("DoubleStorage", test::bytes_of<double>({0.1})) == std::vector<double>{0.1});
  REQUIRE(one("HalfStorage", test::bytes_of<uint16_t>({0x3e00})) == std::vector<double>{1.5});
  REQUIRE(one("BFloat16Storage", test::bytes_of<uint16_t>({0x3fc0})) == std::vector<double>{1.5});
  REQUIRE(one("LongStorage", test::bytes_of<int64_t>({-3})) == std::vector<double>{-3});
  REQUIRE(one("IntStorage", test::bytes_of<int32_t>({-3})) == std::vector<double>{-3});
  REQUIRE(one("ShortStorage", test::bytes_of<int16_t>({-3})) == std::vector<double>{-3});
  REQUIRE(one("CharStorage", test::bytes_of<int8_t>({-3})) == std::vector<double>{-3});
  REQUIRE(one("ByteStorage", test::bytes_of<uint8_t>({253})) == std::vector<double>{253});
  REQUIRE(one("BoolStorage", test::bytes_of<uint8_t>({1})) == std::vector<double>{1});
  refuse(TensorSample{.storage = "ComplexFloatStorage"}, "of type torch.ComplexFloatStorage");
}

TEST_CASE("places outside a storage are refused") {
  const std::string why = "of a shape that its storage has no room for";
  refuse(TensorSample{.offset = 1}, why);
  refuse(TensorSample{.offset = -1}, why);
  refuse(TensorSample{.offset = 7, .shape = {0}, .strides = {1}}, why);
  refuse(TensorSample{.strides = {4, 1}}, why);
  refuse(TensorSample{.strides = {-3, 1}}, why);
  refuse(TensorSample{.shape = {-2, 3}}, why);
  refuse(TensorSample{.strides = {1}}, why);
  const int32_t most = 0x7fffffff;
  refuse(TensorSample{.shape = {most, most, most}, .strides = {0, 0, 0}}, why);
  refuse(TensorSample{.shape = {2, 2}, .strides = {most, most}}, why);
  refuse(TensorSample{.shape = {most, most}, .strides = {0, 0}}, "larger than the file");
  refuse(TensorSample{.elements = 7}, "in 24 bytes, where 7 elements should be");
  refuse(TensorSample{.elements = -6}, "elements should be");
  refuse(TensorSample{.key = "9"}, "no member 'm/data/9'");
  refuse(TensorSample{.key = "../data.pkl"}, "no member");
}

TEST_CASE("what is no file of torch.save() is refused in words") {
  refuse("text", "file.ckpt'");
  refuse(test::zip_bytes({{"m/other", "x"}}), "no member data.pkl");
  refuse(test::zip_bytes({{"m/data.pkl", ""}}), "is cut short");
  refuse(test::zip_bytes({{"a/data.pkl", "\x80\x02N."}, {"b/data.pkl", "\x80\x02N."}}),
         "two models");
  refuse(test::torch_bytes("N", {}, {{"byteorder", "big"}}), "big-endian");
  refuse(test::torch_bytes("N"), "'t' as None");
  const std::string sparse = test::pickled_class("torch._utils", "_rebuild_sparse_tensor") + ")R";
  const test::TemporaryFolder folder;
  const TorchArchive archive(written(folder, test::torch_bytes(sparse)));
  REQUIRE_THROWS_WITH(archive.is_tensor(archive.root()),
                      ContainsSubstring("_rebuild_sparse_tensor"));
}

TEST_CASE("a parameter is its tensor, but not a parameter of itself") {
  const test::TemporaryFolder folder;
  const auto parameter = [](const std::string& inner) {
    return test::pickled_class("torch._utils", "_rebuild_parameter") + "(" + inner + "\x88)tR";
  };
  TorchArchive archive(written(folder, test::torch_bytes(parameter(pickled_tensor()), kSix)));
  REQUIRE(archive.tensor(archive.root(), "t").shape == std::vector<int64_t>{2, 3});
  refuse(test::torch_bytes(parameter(parameter(pickled_tensor())), kSix), "as a parameter of");
}

TEST_CASE("metadata is JSON as Python writes it, NaN included") {
  const test::TemporaryFolder folder;
  const std::string text = R"({"a": NaN, "b": [-Infinity, Infinity, 1], "NaN \" c": "NaN"})";
  for (const char* name : {"anemoi-metadata/anemoi.json", "x/ai-models.json"}) {
    const TorchArchive archive(written(folder, test::torch_bytes("N", {}, {{name, text}})));
    const auto json = archive.metadata();
    REQUIRE(json.has_value());
    REQUIRE(json->dump() == R"({"a":null,"b":[null,null,1],"NaN \" c":"NaN"})");
  }
  REQUIRE_FALSE(TorchArchive(written(folder, test::torch_bytes("N"))).metadata().has_value());
}
