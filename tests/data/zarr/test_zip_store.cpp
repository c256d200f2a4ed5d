// SPDX-License-Identifier: Apache-2.0
// Oracle: the store in memory that was packed, and what the format says of its records.
#include "data/zarr/zip_store.h"

#include <fstream>

#include "core/check.h"
#include "core/rng.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"
#include "tests/support/zip_writer.h"

using namespace aifs;
using test::ZipStyle;

namespace {

// A file that holds some bytes.
class File {
 public:
  explicit File(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string path() const { return (folder_.path() / "a.zarr.zip").string(); }

 private:
  test::TemporaryFolder folder_;
};

std::string text_of(const zarr::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

const std::map<std::string, std::string> kMembers{
    {".zgroup", R"({"zarr_format": 2})"}, {"data/.zarray", "{}"}, {"data/0", "0123456789"},
    {"data/10", std::string(5000, 'x')},  {"data/sub/1", ""},     {"dates/0", "d"}};

std::string fault_of(const std::string& bytes) {
  const File file(bytes);
  try {
    zarr::ZipStore store(file.path());
    for (const auto& [name, value] : kMembers) {
      zarr::Buffer out;
      store.get(name, 1 << 20, out);
    }
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// Replaces the number at a place.
template <class T>
std::string with_number(std::string bytes, size_t at, T value) {
  return bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

TEST_CASE("members are read whole, in ranges and by name, however they are packed", "[zip_store]") {
  for (const ZipStyle& style :
       {ZipStyle{}, ZipStyle{.deflated = true}, ZipStyle{.zip64 = true},
        ZipStyle{.deflated = true, .zip64 = true, .comment = "PK\x05\x06 not the end"}}) {
    const File file(test::zip_bytes(kMembers, style));
    const zarr::ZipStore store(file.path());
    for (const auto& [name, value] : kMembers) {
      zarr::Buffer out;
      REQUIRE(store.get(name, 5000, out));
      REQUIRE(text_of(out) == value);
      REQUIRE(store.size(name) == value.size());
      const auto opened = store.open(name);
      REQUIRE(opened->size() == value.size());
      std::string part(value.size() / 2, '\0');
      opened->read(value.size() - part.size(), part.size(),
                   reinterpret_cast<std::byte*>(part.data()));
      REQUIRE(part == value.substr(value.size() - part.size()));
      REQUIRE_THROWS_AS(opened->read(1, value.size(), nullptr), DataError);
    }
    zarr::Buffer out;
    REQUIRE(store.get_range("data/0", 3, 4, out));
    REQUIRE(text_of(out) == "3456");
    REQUIRE_THROWS_WITH(store.get_range("data/0", 8, 4, out), ContainsSubstring("data/0"));
    REQUIRE_THROWS_AS(store.get("data/10", 4999, out), zarr::TooLargeError);
    REQUIRE_FALSE(store.get("data/11", 10, out));
    REQUIRE_FALSE(store.size("data"));
    REQUIRE(store.open("data/1") == nullptr);
    REQUIRE(store.names_below("data") == std::vector<std::string>{".zarray", "0", "10", "sub"});
    REQUIRE(store.root_names() == std::vector<std::string>{".zgroup", "data", "dates"});
    REQUIRE(store.bytes_read() > 0);
  }
}

TEST_CASE("a dataset in a zip file is read as in a folder", "[zip_store]") {
  const test::AnemoiSpec spec{.num_members = 2, .chunks = {2, 3, 1, 5}};
  const auto memory = test::write_anemoi(spec);
  const data::AnemoiDataset expected(memory, {});
  for (const bool deflated : {false, true}) {
    const File file(test::zip_bytes(memory->values(), {.deflated = deflated}));
    const data::AnemoiDataset dataset({.dataset = file.path()});
    REQUIRE(dataset.info().dates_s == expected.info().dates_s);
    REQUIRE(dataset.warnings().empty());
    std::vector<float> ours(2 * 12 * 5), theirs(2 * 12 * 5);
    for (int64_t row = 0; row < 6; ++row) {
      dataset.read(row, {0, 12}, ours);
      expected.read(row, {0, 12}, theirs);
      REQUIRE(ours == theirs);
    }
  }
}

TEST_CASE("what is wrong with a zip file is said with its name", "[zip_store]") {
  const std::string good = test::zip_bytes(kMembers);
  REQUIRE(fault_of(good).empty());
  const size_t entry = good.find("PK\x01\x02"), end = good.find("PK\x05\x06");
  const auto fails = [&](const std::string& bytes, const std::string& words) {
    INFO(words);
    REQUIRE_THAT(fault_of(bytes), ContainsSubstring("a.zarr.zip") && ContainsSubstring(words));
  };
  fails(good.substr(0, good.size() - 30), "no zip file, or cut short");
  fails("", "no zip file");
  fails(with_number<uint16_t>(good, end + 4, 1), "several disks");
  fails(with_number<uint16_t>(good, entry + 8, 1), "encrypted");
  fails(with_number<uint16_t>(good, entry + 10, 14), "packed by method 14");
  fails(with_number<uint32_t>(good, entry + 24, 1000), "is stored in");
  fails(with_number<uint32_t>(good, entry + 42, 90000), "does not lie within the file");
  fails(with_number<uint32_t>(good, entry + 42, 4), "not where the directory says");
  fails(with_number<uint32_t>(good, entry + 16, 4), "checksum");
  fails(with_number<uint16_t>(good, end + 10, 60000), "longer than the file");
  fails(with_number<uint32_t>(good, end + 12, 0xfffffff0), "cut short");
  fails(with_number<uint32_t>(good, end + 16, 0xfffffff0), "cut short");
  const std::string deflated = test::zip_bytes(kMembers, {.deflated = true});
  const size_t packed = deflated.find("PK\x01\x02");
  fails(with_number<uint32_t>(deflated, packed + 24, 2000000000), "claims to have 2000000000");
  fails(with_number<uint32_t>(deflated, packed + 24, 19), "does not unpack");
  auto twice = kMembers;
  twice["data/9"] = "x";
  std::string two = test::zip_bytes(twice);
  for (size_t at = two.find("data/9"); at != std::string::npos; at = two.find("data/9", at))
    two.replace(at, 6, "data/0");
  fails(two, "two members called 'data/0'");
  fails(test::zip_bytes({{"x.zarr/.zgroup", "{}"}, {"x.zarr/data/0", "1"}}),
        "holds the folder 'x.zarr'");
}

TEST_CASE("any damage gives an error or the values as they were", "[zip_store]") {
  Pcg64 rng(6);
  for (const ZipStyle& style : {ZipStyle{}, ZipStyle{.deflated = true, .zip64 = true}}) {
    const std::string good = test::zip_bytes(kMembers, style);
    const File file(good);
    int num_faults = 0;
    for (int trial = 0; trial < 3000; ++trial) {
      std::string bytes = good;
      // Most of the records are behind the long member.
      const size_t back = trial % 2 == 0 ? good.size() : std::min<size_t>(good.size(), 700);
      const size_t at = good.size() - 1 - rng.next_bounded(static_cast<uint32_t>(back - 1));
      if (trial % 7 == 0)
        bytes.resize(at);
      else
        bytes[at] = static_cast<char>(rng.next_bounded(255));
      std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << bytes;
      try {
        const zarr::ZipStore store(file.path());
        for (const auto& [name, value] : kMembers) {
          zarr::Buffer out;
          if (store.get(name, 1 << 20, out)) REQUIRE(text_of(out) == value);
        }
      } catch (const DataError& error) {
        ++num_faults;
        REQUIRE_THAT(error.what(), ContainsSubstring("a.zarr.zip"));
      }
    }
    REQUIRE(num_faults > 1000);
  }
}

TEST_CASE("consolidated metadata that have grown old are not looked at", "[zip_store]") {
  const auto memory = test::write_anemoi({});
  memory->put(".zmetadata", R"({"zarr_consolidated_format": 1, "metadata": {"data/.zarray":
    {"shape": [1, 1, 1, 1], "chunks": [1, 1, 1, 1], "dtype": "<i2"}, ".zattrs": {}}})");
  const File file(test::zip_bytes(memory->values()));
  REQUIRE(data::AnemoiDataset({.dataset = file.path()}).info().num_variables() == 5);
}
