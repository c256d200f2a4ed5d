// SPDX-License-Identifier: Apache-2.0
// Every value in every metadata file of small stores, replaced by values of every JSON type: the
// dataset opens, or is refused with an error that names the file, in no library's words.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using Json = nlohmann::ordered_json;

namespace {

const std::vector<std::string>& wrong_values() {
  static const std::vector<std::string> values{"null",
                                               "true",
                                               "false",
                                               "0",
                                               "3",
                                               "-3",
                                               "0.5",
                                               "1e300",
                                               "9223372036854775807",
                                               "18446744073709551615",
                                               "-9223372036854775808",
                                               "\"\"",
                                               "\"x\"",
                                               "\"<i8\"",
                                               "\"2020-01-01\"",
                                               "\"" + std::string(100000, '9') + "\"",
                                               "[]",
                                               "[null]",
                                               "[1]",
                                               "[-1,0,1,2]",
                                               "[\"x\",\"x\"]",
                                               "[[[[{}]]]]",
                                               "{}",
                                               "{\"id\":3}",
                                               "{\"name\":\"x\",\"configuration\":[]}",
                                               "{\"name\":{},\"configuration\":null}"};
  return values;
}

bool is_metadata(const std::string& key) {
  const std::string name = key.substr(key.rfind('/') + 1);
  return name.starts_with(".z") || name == "zarr.json";
}

// Calls visit(mutated text, what was done) for every place of a tree.
void for_each_mutation(const Json& json,
                       const std::function<void(const std::string&, const std::string&)>& visit) {
  const Json flat = json.flatten();
  std::set<std::string> places{""};
  for (const auto& [pointer, value] : flat.items()) {
    for (size_t end = pointer.find('/', 1); end != std::string::npos;
         end = pointer.find('/', end + 1)) {
      places.insert(pointer.substr(0, end));
    }
    if (!pointer.empty()) places.insert(pointer);
  }
  for (const std::string& place : places) {
    for (const std::string& value : wrong_values()) {
      Json mutated = json;
      mutated[Json::json_pointer(place)] = Json::parse(value);
      visit(mutated.dump(), concat(place, " = ", value.substr(0, 50)));
    }
    if (place.empty()) continue;
    Json mutated = json;
    const Json::json_pointer pointer(place);
    Json& parent = mutated[pointer.parent_pointer()];
    if (!parent.is_object()) continue;
    parent.erase(pointer.back());
    visit(mutated.dump(), concat(place, " erased"));
  }
}

// Opens the store and reads all there is of it. True if that went well.
bool opens(const std::shared_ptr<zarr::MemoryStore>& store, const std::string& file) {
  try {
    const AnemoiDataset dataset(store, {});
    (void)dataset.warnings();
    const DatasetInfo& info = dataset.info();
    const int64_t row_size = info.ensemble_size * info.num_nodes() * info.num_variables();
    REQUIRE(row_size < 100000);
    std::vector<float> out(static_cast<size_t>(row_size));
    for (int64_t row = 0; row < info.num_rows(); ++row) {
      if (std::find(info.missing_rows.begin(), info.missing_rows.end(), row) ==
          info.missing_rows.end()) {
        dataset.read(row, {0, info.num_nodes()}, out);
      }
    }
    return true;
  } catch (const DataError& error) {
    const std::string text = concat(error.what(), " / ", error.hint());
    INFO(text);
    REQUIRE_THAT(text, ContainsSubstring(file));
    REQUIRE(text.size() < 1000);
    for (const char* foreign : {"exception", "filesystem error", "type must be", "parse error",
                                "std::", "basic_", "cannot use", "regex"}) {
      REQUIRE_THAT(text, !ContainsSubstring(foreign));
    }
    return false;
  }
}

struct Tally {
  int64_t opened = 0, refused = 0;
};

Tally mutate_all(const zarr::MemoryStore& good) {
  Tally tally;
  for (const auto& [key, original] : good.values()) {
    if (!is_metadata(key)) continue;
    const std::string& file = key;
    for_each_mutation(Json::parse(original), [&](const std::string& text, const std::string& what) {
      INFO(file << ": " << what);
      const auto store = std::make_shared<zarr::MemoryStore>(good);
      store->put(file, text);
      (opens(store, file) ? tally.opened : tally.refused) += 1;
    });
  }
  return tally;
}

std::shared_ptr<zarr::MemoryStore> small_store(const std::string& compressor) {
  const auto store = test::write_anemoi({.variables = {"2t", "tp"},
                                         .num_dates = 3,
                                         .num_cells = 4,
                                         .compressor = compressor,
                                         .missing = {1},
                                         .tendencies = {"6h"}});
  Json attributes = Json::parse(store->values().at(".zattrs"));
  attributes["constant_fields"] = {"tp"};
  attributes["layout"] = "gridded";
  attributes["variables_metadata"] = {{"2t", {{"mars", {{"param", "2t"}}}, {"units", "K"}}},
                                      {"tp", {{"constant_in_time", true}}}};
  attributes["start_date"] = "2020-01-01T00:00:00";
  store->put(".zattrs", attributes.dump());
  return store;
}

// Returns these arrays in format 3: chunks keep their names and bytes, those of data become shards
// of one chunk each. Precondition: they are not compressed.
std::shared_ptr<zarr::MemoryStore> in_format_3(const zarr::MemoryStore& old) {
  auto store = std::make_shared<zarr::MemoryStore>("memory");
  const Json bytes{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
  for (const auto& [key, value] : old.values()) {
    if (key == ".zgroup") {
      store->put("zarr.json", Json{{"zarr_format", 3},
                                   {"node_type", "group"},
                                   {"attributes", Json::parse(old.values().at(".zattrs"))}}
                                  .dump());
    } else if (key.ends_with("/.zarray")) {
      const Json meta = Json::parse(value);
      const auto type = meta["dtype"].get<std::string>();
      Json data_type = type == "<f4" ? "float32" : "float64";
      if (type == "<M8[s]") {
        data_type = {{"name", "numpy.datetime64"},
                     {"configuration", {{"unit", "s"}, {"scale_factor", 1}}}};
      }
      Json codecs = Json::array({bytes});
      if (!meta["compressor"].is_null()) {
        codecs.push_back({{"name", "blosc"}, {"configuration", {{"cname", "lz4"}}}});
      }
      if (key.starts_with("data/")) {
        codecs = Json::array({{{"name", "sharding_indexed"},
                               {"configuration",
                                {{"chunk_shape", meta["chunks"]},
                                 {"codecs", Json::array({bytes})},
                                 {"index_codecs", Json::array({bytes})},
                                 {"index_location", "end"}}}}});
      }
      store->put(
          key.substr(0, key.size() - 7) + "zarr.json",
          Json{{"zarr_format", 3},
               {"node_type", "array"},
               {"shape", meta["shape"]},
               {"data_type", data_type},
               {"chunk_grid",
                {{"name", "regular"}, {"configuration", {{"chunk_shape", meta["chunks"]}}}}},
               {"chunk_key_encoding", {{"name", "v2"}, {"configuration", {{"separator", "."}}}}},
               {"fill_value", meta["fill_value"]},
               {"codecs", codecs},
               {"attributes", Json::object()}}
              .dump());
    } else if (key.starts_with("data/")) {
      const uint64_t entry[] = {0, value.size()};
      store->put(key, value + std::string(reinterpret_cast<const char*>(entry), sizeof entry));
    } else if (!is_metadata(key)) {
      store->put(key, value);
    }
  }
  return store;
}

}  // namespace

TEST_CASE("wrong types anywhere in metadata of format 2 are named or harmless", "[mutations]") {
  const auto good = small_store("blosc");
  good->put(".zmetadata", R"({"metadata": {".zgroup": {"zarr_format": 2}}})");
  REQUIRE(opens(good, "memory"));
  const Tally tally = mutate_all(*good);
  REQUIRE(tally.opened > 500);  // what nobody looks at, and what is right by chance
  REQUIRE(tally.refused > 1500);
}

TEST_CASE("wrong types anywhere in metadata of format 3 are named or harmless", "[mutations]") {
  const auto good = in_format_3(*small_store("null"));
  REQUIRE(opens(good, "memory"));
  const Tally tally = mutate_all(*good);
  REQUIRE(tally.opened > 500);
  REQUIRE(tally.refused > 1500);
}

TEST_CASE("metadata cut anywhere, or with a byte changed, are named or harmless", "[mutations]") {
  for (const auto& good : {small_store("blosc"), in_format_3(*small_store("null"))}) {
    int64_t refused = 0;
    for (const auto& [key, original] : good->values()) {
      if (!is_metadata(key)) continue;
      for (size_t at = 0; at < original.size(); at += 3) {
        for (const char* replacement : {"", "\xff", "{", "9", "-", "\"", "N"}) {
          std::string text = original;
          if (*replacement == '\0') {
            text.resize(at);
          } else {
            text[at] = *replacement;
          }
          INFO(key << " at " << at << ": " << replacement);
          const auto store = std::make_shared<zarr::MemoryStore>(*good);
          store->put(key, text);
          // The names of other files may come of it: "latitudes" has not the shape of "data".
          refused += opens(store, "memory") ? 0 : 1;
        }
      }
    }
    REQUIRE(refused > 1000);
  }
}
