// SPDX-License-Identifier: Apache-2.0
// One table per enum: the names that configurations and logs use, in the order they are documented.
// It is a function in the namespace of the enum:
//
//   enum class Clip { kNone, kValue, kNorm };
//   constexpr auto enum_table(Clip) {
//     using enum Clip;
//     return std::to_array<EnumName<Clip>>({{kNone, "none"}, {kValue, "value"}, {kNorm, "norm"}});
//   }
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"

namespace aifs {

template <class E>
using EnumName = std::pair<E, const char*>;

template <class E>
struct EnumNames {
  static constexpr auto table = enum_table(E{});
};

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
