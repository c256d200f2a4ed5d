// SPDX-License-Identifier: Apache-2.0
// The hash of a graph, fed with one part after the other: Graph::content_hash() of a whole one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/file_io.h"

namespace aifs::graph {

// Parts in this order: of each node set its name, latitudes, longitudes and attributes by name; of
// each edge set source, target, both indices and attributes. Of an attribute name, width, values.
class ContentHash {
 public:
  void text(const std::string& text) { values(std::span(text.data(), text.size())); }
  void width(int64_t columns) { hash_.update(&columns, sizeof columns); }
  template <class T>
  void values(std::span<const T> values) {
    count(static_cast<int64_t>(values.size()));
    more(values);
  }
  // values() of an array that comes in pieces: how many there are of all, then each piece.
  void count(int64_t num_values) {
    const auto number = static_cast<uint64_t>(num_values);
    hash_.update(&number, sizeof number);
  }
  template <class T>
  void more(std::span<const T> piece) {
    hash_.update(piece.data(), piece.size_bytes());
  }
  std::string finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

}  // namespace aifs::graph
