// SPDX-License-Identifier: Apache-2.0
// Reads the graph that a page of `aifs-train graph plot` holds.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/check.h"

namespace aifs::test {

inline nlohmann::json graph_of_page(const std::string& page) {
  const std::string begin = "<script id=\"graph\" type=\"application/json\">";
  const size_t first = page.find(begin);
  const size_t last = page.find("</script>", first);
  AIFS_CHECK(first != std::string::npos && last != std::string::npos, "no graph in the page");
  return nlohmann::json::parse(page.substr(first + begin.size(), last - first - begin.size()));
}

inline std::string bytes_of_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const size_t value = letters.find(c);
    AIFS_CHECK(value != std::string::npos, "no base64: ", c);
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255U);
  }
  return bytes;
}

inline std::vector<float> floats_of_base64(const std::string& text) {
  const std::string bytes = bytes_of_base64(text);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

inline std::vector<int32_t> indices_of_base64(const std::string& text) {
  std::vector<int32_t> values;
  int64_t code = 0, last = 0;
  int shift = 0;
  for (const char c : bytes_of_base64(text)) {
    const auto byte = static_cast<uint8_t>(c);
    code |= static_cast<int64_t>(byte & 127U) << shift;
    shift += 7;
    if (byte & 128U) continue;
    last += code % 2 ? -(code + 1) / 2 : code / 2;
    values.push_back(static_cast<int32_t>(last));
    code = 0;
    shift = 0;
  }
  return values;
}

}  // namespace aifs::test
