// SPDX-License-Identifier: Apache-2.0
// Reads pickles of Python as plain data: nothing that a file names is ever looked up or called.
// Classes are names, and objects are records of what they would have been made by: a callable, its
// arguments, a state, and what was put into them. Protocols 2 to 5 (as pickletools of Python has
// them), with bounds on values and operations; values may be shared, and may even contain
// themselves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aifs {

enum class PickleKind {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kBytes,
  kLongInteger,  // of more than 64 bits: only its bytes are known
  kList,
  kTuple,
  kSet,
  kDict,
  kClass,
  kObject,
  kStored,  // what a file keeps elsewhere, under an id (persistent_id)
};

struct PickleLimits {
  size_t values = 2'000'000;
  size_t operations = 20'000'000;
};

class PickleTree;

// A value in a tree, which outlives it. Functions for another kind throw DataError.
class PickleValue {
 public:
  PickleKind kind() const;
  bool is(PickleKind kind) const { return this->kind() == kind; }
  // "a list", "an object of torch.nn.modules.linear.Linear".
  std::string describe() const;

  bool boolean() const;
  int64_t integer() const;
  double number() const;
  std::string_view text() const;  // of texts and bytes; valid as long as the bytes of the pickle
  PickleValue stored_id() const;

  // Lists, tuples and sets, and objects that are lists.
  size_t size() const;
  PickleValue operator[](size_t position) const;
  // Dictionaries, and objects that are some, in order.
  std::vector<std::pair<PickleValue, PickleValue>> entries() const;
  // The last value of a key that is a text.
  std::optional<PickleValue> find(std::string_view key) const;
  PickleValue at(std::string_view key) const;

  // "module.name" of a class, or of what an object was made by; "" for others.
  std::string class_name() const;
  PickleValue callable() const;
  PickleValue arguments() const;
  std::optional<PickleValue> state() const;
  // An attribute of an object whose state is a dictionary, or a pair of one and another.
  std::optional<PickleValue> attribute(std::string_view name) const;

  // Equal for one value that stands in several places.
  uint32_t id() const { return index_; }

 private:
  friend class PickleTree;
  PickleValue(const PickleTree* tree, uint32_t index) : tree_(tree), index_(index) {}
  [[noreturn]] void wrong(const char* expected) const;

  const PickleTree* tree_;
  uint32_t index_;
};

class PickleTree {
 public:
  // Reads `bytes`, which outlive the tree; `name` is for messages. Throws DataError for anything
  // that is no pickle, cut short, of protocol 0 or 1, or beyond the limits.
  PickleTree(std::string_view bytes, std::string name, const PickleLimits& limits = {});

  PickleValue root() const { return {this, root_}; }
  const std::string& name() const { return name_; }

 private:
  friend class PickleValue;
  friend class PickleReader;
  struct Node {
    PickleKind kind = PickleKind::kNone;
    int64_t integer = 0;
    double number = 0;
    std::string_view text, second;  // module and name of a class
    // Elements, or keys and values in turn. Of an object: callable, arguments, then elements.
    std::vector<uint32_t> items;
    std::vector<uint32_t> entries;  // of an object: keys and values in turn
    std::optional<uint32_t> state;
  };

  std::string name_;
  std::vector<Node> nodes_;
  uint32_t root_ = 0;
};

}  // namespace aifs
