// SPDX-License-Identifier: Apache-2.0
#include "report/page_text.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/check.h"

namespace aifs::report {

std::string base64(std::string_view bytes) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k)
      text += k <= count ? kLetters[(group >> (18 - 6 * k)) & 63U] : '=';
  }
  return text;
}

std::string base64_floats(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string harmless(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json)
    c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string, std::string_view>>& texts) {
  std::string out;
  for (const auto& [name, text] : texts) {
    const size_t place = page.find(name);
    AIFS_CHECK(place != std::string_view::npos, "the page has no place for ", name);
    out += page.substr(0, place);
    out += text;
    page.remove_prefix(place + name.size());
  }
  return out.append(page);
}

}  // namespace aifs::report
