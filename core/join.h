// SPDX-License-Identifier: Apache-2.0
// Lists of texts.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace aifs {

// Puts `between` between the texts: "a, b, c".
inline std::string join(const std::vector<std::string>& texts, std::string_view between = ", ") {
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) all += between;
    all += texts[i];
  }
  return all;
}

// True if one of the texts is `text`.
inline bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// True if one of the words is `text`.
inline bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// ASCII letters in lower case, the rest as it is.
inline std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace aifs
