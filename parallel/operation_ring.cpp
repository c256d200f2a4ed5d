// SPDX-License-Identifier: Apache-2.0
#include "parallel/operation_ring.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace aifs::parallel {

namespace {

double now_s() {
  using std::chrono::system_clock;
  return std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
}

double rounded_ms(double seconds) {
  return std::round(seconds * 1e3) / 1e3;
}

}  // namespace

OperationRing::OperationRing(size_t capacity) : entries_(capacity), last_s_(now_s()) {}

int64_t OperationRing::add_group(int64_t parent, int colour, int size, int rank) {
  const std::lock_guard lock(mutex_);
  std::string name = "all";
  if (parent >= 0) {
    const auto p = static_cast<size_t>(parent);
    name = concat(groups_[p].name, ".", splits_[p]++, ".", colour);
  }
  const std::vector<int64_t> none(static_cast<size_t>(size), 0);
  groups_.push_back({std::move(name), size, rank, 0, none, none});
  splits_.push_back(0);
  return std::ssize(groups_) - 1;
}

void OperationRing::set_place(std::string place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

int64_t OperationRing::begin(int64_t group, const char* operation, int64_t bytes, int peer) {
  const std::lock_guard lock(mutex_);
  RingGroup& counts = groups_[static_cast<size_t>(group)];
  const auto p = static_cast<size_t>(std::max(peer, 0));
  const bool sends = std::string_view(operation) == "send";
  int64_t& count = peer < 0 ? counts.collectives : sends ? counts.sent[p] : counts.received[p];
  last_s_ = now_s();
  entries_[static_cast<size_t>(next_) % entries_.size()] = {group, ++count, operation, bytes,
                                                            peer,  place_,  last_s_,   0.0};
  return next_++;
}

void OperationRing::end(int64_t ticket) {
  const std::lock_guard lock(mutex_);
  last_s_ = now_s();
  if (next_ - ticket <= std::ssize(entries_))
    entries_[static_cast<size_t>(ticket) % entries_.size()].ended_s = last_s_;
}

void OperationRing::note_stop(double seconds) {
  const std::lock_guard lock(mutex_);
  woken_s_ = now_s();
  stopped_s_ = woken_s_ - seconds;
}

double OperationRing::seconds_since_last() const {
  const std::lock_guard lock(mutex_);
  return now_s() - last_s_;
}

std::vector<RingEntry> OperationRing::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<RingEntry> last;
  for (int64_t i = std::max<int64_t>(0, next_ - std::ssize(entries_)); i < next_; ++i)
    last.push_back(entries_[static_cast<size_t>(i) % entries_.size()]);
  return last;
}

std::vector<RingGroup> OperationRing::groups() const {
  const std::lock_guard lock(mutex_);
  return groups_;
}

std::string OperationRing::to_json(int rank, const std::string& who,
                                   const std::string& reason) const {
  using Json = nlohmann::ordered_json;
  Json json{{"rank", rank},
            {"who", who},
            {"reason", reason},
            {"written_s", rounded_ms(now_s())},
            {"groups", Json::array()},
            {"operations", Json::array()}};
  for (const RingGroup& group : groups()) {
    Json counted{{"name", group.name},
                 {"size", group.size},
                 {"rank", group.rank},
                 {"collectives", group.collectives}};
    const auto any = [](const std::vector<int64_t>& counts) {
      return std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
    };
    if (any(group.sent)) counted["sent"] = group.sent;
    json["groups"].push_back(std::move(counted));
  }
  {
    const std::lock_guard lock(mutex_);
    if (woken_s_ > 0.0)
      json["stood_still"] = {{"from_s", rounded_ms(stopped_s_)}, {"to_s", rounded_ms(woken_s_)}};
  }
  for (const RingEntry& entry : entries()) {
    Json operation{{"group", entry.group},         {"number", entry.number},
                   {"operation", entry.operation}, {"bytes", entry.bytes},
                   {"place", entry.place},         {"begun_s", rounded_ms(entry.begun_s)}};
    if (entry.peer >= 0) operation["peer"] = entry.peer;
    if (entry.ended_s > 0.0) operation["ended_s"] = rounded_ms(entry.ended_s);
    json["operations"].push_back(std::move(operation));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace aifs::parallel
