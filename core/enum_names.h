// SPDX-License-Identifier: Apache-2.0
// One table per enum: the names that configurations and logs use, in the order they are documented.
//
//   enum class Clip { kNone, kValue, kNorm };
//   template <> struct aifs::EnumNames<Clip> {
//     static constexpr std::array<std::pair<Clip, const char*>, 3> table{{...}};
//   };
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"

namespace aifs {

template <class E>
struct EnumNames;  // specialised beside each enum

// The name of `value`; it must be in the table.
template <class E>
std::string enum_name(E value) {
  for (const auto& [entry, name] : EnumNames<E>::table) {
    if (entry == value) return name;
  }
  throw Error(concat("enum value ", static_cast<int>(value), " has no name"));
}

// All names, in documented order.
template <class E>
std::vector<std::string> enum_names() {
  std::vector<std::string> names;
  for (const auto& entry : EnumNames<E>::table)
    names.emplace_back(entry.second);
  return names;
}

}  // namespace aifs
