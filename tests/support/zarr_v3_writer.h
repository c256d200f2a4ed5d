// SPDX-License-Identifier: Apache-2.0
// Copies an Anemoi store to Zarr format 3 with chunks of its own choice and no codec but bytes.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/check.h"
#include "data/zarr/array.h"
#include "data/zarr/node.h"
#include "tests/support/zarr_writer.h"

namespace aifs::test {

namespace v3 {

// Writes one array, a chunk at a time; what overhangs is zero.
template <class T>
void write(zarr::MemoryStore& store, const std::string& path, const zarr::Array& from,
           const std::string& data_type, const std::vector<int64_t>& chunks) {
  const std::vector<int64_t>& shape = from.meta().shape;
  const nlohmann::json meta{
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", shape},
      {"data_type", nlohmann::json::parse(data_type)},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", chunks}}}}},
      {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
      {"fill_value", 0},
      {"codecs", {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}}},
      {"attributes", nlohmann::json::object()}};
  store.put(path + "/zarr.json", meta.dump());
  std::vector<int64_t> chunk(shape.size(), 0);
  for (;;) {
    std::string key = path + "/c";
    zarr::Region region;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      key += concat("/", chunk[axis]);
      region.begin.push_back(chunk[axis] * chunks[axis]);
      region.end.push_back(std::min(region.begin[axis] + chunks[axis], shape[axis]));
    }
    const auto values = from.read<T>(region);
    size_t count = 1;
    for (const int64_t length : chunks)
      count *= static_cast<size_t>(length);
    std::vector<T> whole(count, T{});
    std::vector<int64_t> at(shape.size(), 0);
    for (const T& value : values) {
      size_t place = 0;
      for (size_t axis = 0; axis < shape.size(); ++axis)
        place = place * static_cast<size_t>(chunks[axis]) + static_cast<size_t>(at[axis]);
      whole[place] = value;
      for (size_t axis = shape.size(); axis-- > 0;) {
        if (++at[axis] < region.end[axis] - region.begin[axis]) break;
        at[axis] = 0;
      }
    }
    store.put(key, {reinterpret_cast<const char*>(whole.data()), count * sizeof(T)});
    size_t axis = shape.size();
    while (axis-- > 0) {
      if (++chunk[axis] * chunks[axis] < shape[axis]) break;
      chunk[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

}  // namespace v3

// `data_chunks`: of "data" (T, V, E, N).
inline std::shared_ptr<zarr::MemoryStore> to_format_3(
    const std::shared_ptr<const zarr::Store>& from, const std::vector<int64_t>& data_chunks) {
  auto store = std::make_shared<zarr::MemoryStore>("format 3");
  const auto group = zarr::read_root_group(*from);
  AIFS_CHECK(group.has_value(), from->name(), " has no root group");
  store->put(
      "zarr.json",
      nlohmann::json{{"zarr_format", 3}, {"node_type", "group"}, {"attributes", group->attributes}}
          .dump());
  for (const std::string& name : from->root_names()) {
    if (name[0] == '.' || name == "zarr.json") continue;
    const zarr::Array array(from, name);
    const int64_t length = array.meta().shape[0];
    if (name == "data") {
      v3::write<float>(*store, name, array, "\"float32\"", data_chunks);
    } else if (name == "dates") {
      v3::write<int64_t>(*store, name, array,
                         R"({"name": "numpy.datetime64",
                             "configuration": {"unit": "s", "scale_factor": 1}})",
                         {length});
    } else {
      v3::write<double>(*store, name, array, "\"float64\"", {length});
    }
  }
  return store;
}

}  // namespace aifs::test
