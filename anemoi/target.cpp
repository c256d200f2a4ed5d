// SPDX-License-Identifier: Apache-2.0
#include "anemoi/target.h"

namespace aifs::anemoi {

void Target::set(const Keys& section, const std::string& key, Json value, const Place& origin) {
  Json* place = &config_;
  std::string path;
  for (const std::string& name : section) {
    place = &(*place)[name];
    path += name + ".";
  }
  (*place)[key] = std::move(value);
  if (!origin.path().empty()) origins_[path + key] = origin.path();
}

const Json* Target::find(const Keys& path) const {
  const Json* place = &config_;
  for (const std::string& name : path) {
    if (!place->is_object() || !place->contains(name)) return nullptr;
    place = &place->at(name);
  }
  return place;
}

void Target::order(const Keys& sections) {
  Json ordered = Json::object();
  for (const std::string& name : sections)
    if (config_.contains(name)) ordered[name] = config_[name];
  for (const auto& [name, section] : config_.items())
    if (!ordered.contains(name)) ordered[name] = section;
  config_ = ordered;
}

std::string Target::origin_of(std::string path) const {
  while (true) {
    if (const auto found = origins_.find(path); found != origins_.end()) return found->second;
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) return "";
    path.resize(dot);
  }
}

Section Section::operator[](const std::string& key) const {
  Target::Keys path = path_;
  path.push_back(key);
  return {*target_, std::move(path)};
}

const Json* Section::find(const std::string& key) const {
  return (*this)[key].target_->find((*this)[key].path_);
}

}  // namespace aifs::anemoi
