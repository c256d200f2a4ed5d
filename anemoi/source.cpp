// SPDX-License-Identifier: Apache-2.0
#include "anemoi/source.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "anemoi/references.h"
#include "core/check.h"
#include "core/json_read.h"

namespace aifs::anemoi {

namespace {

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : concat(path, ".", key);
}

// Drops members of objects that are null, which mean "not given".
Json without_nulls(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& element : value)
      list.push_back(without_nulls(element));
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [key, member] : value.items()) {
    if (!member.is_null()) object[key] = without_nulls(member);
  }
  return object;
}

bool same(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() ? a.get<double>() == b.get<double>() : a == b;
}

}  // namespace

class SourceState {
 public:
  ResolvedTree resolved;
  std::set<std::string> seen;  // with all below
  std::vector<Remark> remarks;

  // Refuses a value that was never given, or is a reference to nothing.
  void check(const Json& value, const std::string& path) const {
    if (const auto failed = resolved.failures.find(path); failed != resolved.failures.end()) {
      throw ConfigError(path, concat(json_shown(value), " cannot be resolved: ", failed->second),
                        "resolve the configuration first, in Python with OmegaConf.resolve");
    }
    if (value.is_string() && value == Json("???")) {
      throw ConfigError(path, "is ???: Anemoi wants a value there",
                        "give it before the configuration is dumped");
    }
    if (!value.is_structured()) return;
    for (const auto& [key, member] : value.items())
      check(member, below(path, key));
  }

  // One remark for everything in `value` that nobody has looked at.
  void add_unseen(const Json& value, const std::string& path, std::vector<Remark>& out) const {
    if (is_seen(path)) return;
    if (value.is_structured() && !value.empty() && any_seen(value, path)) {
      for (const auto& [key, member] : value.items())
        add_unseen(member, below(path, key), out);
      return;
    }
    if (value.is_null()) {
      out.push_back({Verdict::kNoEffect, path, value, "is not set"});
    } else {
      out.push_back({Verdict::kNotHonoured, path, value, "is not known here"});
    }
  }

  bool is_seen(const std::string& path) const {
    return seen.contains(path) || resolved.referenced.contains(path);
  }

  bool any_seen(const Json& value, const std::string& path) const {
    if (is_seen(path)) return true;
    if (!value.is_structured()) return false;
    for (const auto& [key, member] : value.items()) {
      if (any_seen(member, below(path, key))) return true;
    }
    return false;
  }
};

std::string last_part(const std::string& dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

std::string Place::key() const {
  return last_part(path_);
}

Place Place::operator[](const std::string& key) const {
  if (!is_there()) return {state_, nullptr, below(path_, key)};
  if (!value_->is_object()) wrong("names and values");
  const auto found = value_->find(key);
  const Place member(state_, found == value_->end() ? nullptr : &*found, below(path_, key));
  if (found != value_->end() && found->is_null()) member.mark();
  return member;
}

Place Place::any_of(const std::vector<std::string>& keys) const {
  Place found;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const Place member = (*this)[*key];
    if (member.is_there() || !found.is_there()) found = member;
  }
  return found;
}

std::vector<std::pair<std::string, Place>> Place::members() const {
  std::vector<std::pair<std::string, Place>> all;
  if (!is_there()) return all;
  if (!value_->is_object()) wrong("names and values");
  if (value_->empty()) mark();
  for (const auto& [key, member] : value_->items())
    all.emplace_back(key, (*this)[key]);
  return all;
}

std::vector<Place> Place::elements() const {
  std::vector<Place> all;
  if (!is_there()) return all;
  if (!value_->is_array()) wrong("a list");
  if (value_->empty()) mark();
  for (size_t i = 0; i < value_->size(); ++i)
    all.push_back({state_, &(*value_)[i], below(path_, std::to_string(i))});
  return all;
}

const Json& Place::required(const char* what) const {
  if (!is_there()) throw ConfigError(path_, concat("is missing; expected is ", what));
  state_->check(*value_, path_);
  mark();
  return *value_;
}

void Place::wrong(const char* what) const {
  state_->check(*value_, path_);
  throw ConfigError(path_, concat("got ", json_shown(*value_, 60), ", expected is ", what));
}

std::string Place::text() const {
  const Json& value = required("a text");
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();  // 2020, or 6 hours
  wrong("a text");
}

int64_t Place::integer() const {
  const Json& value = required("an integer");
  if (value.is_number_integer() && !(value.is_number_unsigned() && value > Json(INT64_MAX)))
    return value.get<int64_t>();
  if (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
      std::abs(value.get<double>()) < 9e15) {
    return static_cast<int64_t>(value.get<double>());
  }
  wrong("an integer");
}

double Place::number() const {
  const Json& value = required("a number");
  if (!value.is_number() || !std::isfinite(value.get<double>())) wrong("a number");
  return value.get<double>();
}

bool Place::boolean() const {
  const Json& value = required("true or false");
  if (!value.is_boolean()) wrong("true or false");
  return value.get<bool>();
}

std::string Place::text(const std::string& otherwise) const {
  return is_there() ? text() : otherwise;
}

int64_t Place::integer(int64_t otherwise) const {
  return is_there() ? integer() : otherwise;
}

double Place::number(double otherwise) const {
  return is_there() ? number() : otherwise;
}

bool Place::boolean(bool otherwise) const {
  return is_there() ? boolean() : otherwise;
}

std::vector<std::string> Place::texts() const {
  std::vector<std::string> all;
  if (is_there() && !value_->is_array()) all.push_back(text());
  if (is_list()) {
    for (const Place& element : elements())
      all.push_back(element.text());
  }
  return all;
}

std::vector<double> Place::numbers() const {
  std::vector<double> all;
  if (is_number()) all.push_back(number());
  if (is_there() && !is_number()) {
    for (const Place& element : elements())
      all.push_back(element.number());
  }
  return all;
}

Json Place::whole() const {
  if (!is_there()) return nullptr;
  return without_nulls(required("a value"));
}

Json Place::unseen_whole() const {
  if (!is_there()) return nullptr;
  state_->check(*value_, path_);
  return without_nulls(*value_);
}

std::string Place::class_name() const {
  if (!is_object()) return "";
  const Place target = (*this)["_target_"];
  if (!target) return "";
  return last_part(target.text());
}

void Place::expect(const Json& usual, const std::string& why) const {
  if (!is_there()) return;
  if (same(whole(), usual)) return;
  not_honoured(why);
}

void Place::expect_like(const Place& first, const std::string& why) const {
  if (path_ == first.path_) return;
  if (is_there() == first.is_there() && unseen_whole() == first.unseen_whole()) {
    mark();
  } else if (is_there()) {
    not_honoured(why);
  } else {
    mark();
    first.state_->remarks.push_back({Verdict::kNotHonoured, path_, nullptr, why});
  }
}

void Place::mark() const {
  if (value_) state_->seen.insert(path_);
}

void Place::leave(const std::string& why) const {
  if (!value_ || state_->is_seen(path_)) return;
  if (!state_->any_seen(*value_, path_)) return no_effect(why);
  for (const auto& [key, member] : value_->items())
    Place(state_, &member, below(path_, key)).leave(why);
}

void Place::remark(Verdict verdict, const std::string& why) const {
  mark();
  const bool is_elsewhere =
      verdict == Verdict::kNoEffect && state_->resolved.referenced.contains(path_);
  if (value_ && !value_->is_null() && !is_elsewhere)
    state_->remarks.push_back({verdict, path_, *value_, why});
}

Source::Source(const Json& tree) : state_(std::make_unique<SourceState>()) {
  state_->resolved = resolve_references(tree);
}

Source::~Source() = default;

Place Source::root() const {
  return {state_.get(), &state_->resolved.tree, ""};
}

std::vector<Remark> Source::remarks() const {
  std::vector<Remark> all = state_->remarks;
  for (const auto& [key, member] : state_->resolved.tree.items())
    state_->add_unseen(member, key, all);
  return all;
}

}  // namespace aifs::anemoi
