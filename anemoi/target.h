// SPDX-License-Identifier: Apache-2.0
// The configuration of ours that grows while one of Anemoi's is translated, and where in that one
// each value comes from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "anemoi/source.h"

namespace aifs::anemoi {

class Target {
 public:
  using Keys = std::vector<std::string>;

  const Json& config() const { return config_; }
  // Puts a value, which comes from `origin`, into the section at `section`.
  void set(const Keys& section, const std::string& key, Json value, const Place& origin);
  const Json* find(const Keys& path) const;
  // Puts the sections of these names first, in this order.
  void order(const Keys& sections);
  // The path in Anemoi's configuration that decides about a key of ours, or "".
  std::string origin_of(std::string path) const;

 private:
  Json config_ = Json::object();
  std::map<std::string, std::string> origins_;
};

// One section of it.
class Section {
 public:
  Section(Target& target, Target::Keys path) : target_(&target), path_(std::move(path)) {}

  void set(const std::string& key, Json value, const Place& origin = {}) const {
    target_->set(path_, key, std::move(value), origin);
  }
  Section operator[](const std::string& key) const;
  const Json* find(const std::string& key) const;

 private:
  Target* target_;
  Target::Keys path_;
};

}  // namespace aifs::anemoi
