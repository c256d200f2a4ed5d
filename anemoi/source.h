// SPDX-License-Identifier: Apache-2.0
// A configuration of Anemoi that is being translated. It remembers which of its values were looked
// at, so that none is passed over in silence.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/enum_names.h"

namespace aifs::anemoi {

using Json = nlohmann::ordered_json;

// Tells what becomes of a key: it would change what is trained and cannot; it can, but with a
// difference that somebody should know; or it means nothing here.
enum class Verdict { kNotHonoured, kNote, kNoEffect };

struct Remark {
  Verdict verdict = Verdict::kNotHonoured;
  std::string path;  // of Anemoi's key
  Json value;
  std::string text;
};

// The part after the last dot: a class without its module, a key without its section.
std::string last_part(const std::string& dotted);

class SourceState;

// A value in the configuration, or the want of one. Values of a wrong type, "???" and references
// that could not be resolved throw ConfigError with the path, but only when they are asked for.
class Place {
 public:
  Place() = default;

  bool is_there() const { return value_ != nullptr && !value_->is_null(); }
  explicit operator bool() const { return is_there(); }
  bool is_given() const { return value_ != nullptr; }  // perhaps as null
  const std::string& path() const { return path_; }
  std::string key() const;  // the last one of the path

  // A member; absent if this is absent, or has none of that name.
  Place operator[](const std::string& key) const;
  // The first of these that is there.
  Place any_of(const std::vector<std::string>& keys) const;
  std::vector<std::pair<std::string, Place>> members() const;
  std::vector<Place> elements() const;
  bool is_object() const { return is_there() && value_->is_object(); }
  bool is_list() const { return is_there() && value_->is_array(); }
  bool is_text() const { return is_there() && value_->is_string(); }
  bool is_number() const { return is_there() && value_->is_number(); }
  bool is_float() const { return is_there() && value_->is_number_float(); }

  std::string text() const;
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::string text(const std::string& otherwise) const;
  int64_t integer(int64_t otherwise) const;
  double number(double otherwise) const;
  bool boolean(bool otherwise) const;
  // A list of texts, or one; empty if absent.
  std::vector<std::string> texts() const;
  std::vector<double> numbers() const;
  // All that is below, without nulls.
  Json whole() const;
  // Like whole(), but it does not count as looked at.
  Json unseen_whole() const;
  // The last part of the class that "_target_" names; "" if there is none.
  std::string class_name() const;

  // Says what becomes of this and all below.
  void not_honoured(const std::string& why) const { remark(Verdict::kNotHonoured, why); }
  void note(const std::string& why) const { remark(Verdict::kNote, why); }
  void no_effect(const std::string& why) const { remark(Verdict::kNoEffect, why); }
  // Not honoured if it is there and another value than the one that is meant here anyway.
  void expect(const Json& usual, const std::string& why) const;
  // Not honoured, also where it is absent or null, if it differs from `first`, which is meant for
  // both. What is in `first` still has to be looked at.
  void expect_like(const Place& first, const std::string& why) const;
  void mark() const;  // counts it and all below as looked at
  // no_effect for those parts that nobody has looked at yet.
  void leave(const std::string& why) const;

 private:
  friend class Source;
  Place(SourceState* state, const Json* value, std::string path)
      : state_(state), value_(value), path_(std::move(path)) {}
  const Json& required(const char* what) const;
  [[noreturn]] void wrong(const char* what) const;
  void remark(Verdict verdict, const std::string& why) const;

  SourceState* state_ = nullptr;
  const Json* value_ = nullptr;
  std::string path_;
};

class Source {
 public:
  // Resolves the references of `tree`.
  explicit Source(const Json& tree);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  Place root() const;
  // All remarks in the order of their paths in the document, and one for each value that nobody
  // has looked at.
  std::vector<Remark> remarks() const;

 private:
  std::unique_ptr<SourceState> state_;
};

constexpr auto enum_table(Verdict) {
  using enum Verdict;
  return std::to_array<EnumName<Verdict>>(
      {{kNotHonoured, "not_honoured"}, {kNote, "note"}, {kNoEffect, "no_effect"}});
}

}  // namespace aifs::anemoi
