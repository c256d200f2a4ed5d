// SPDX-License-Identifier: Apache-2.0
#include "app/hang_tools/hang_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "core/json_read.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

// Records of one hang are written within the time limit of waits; other runs begin later.
constexpr double kOneHang_s = 600.0;
constexpr int64_t kMostRanks = 1 << 20;

// Seconds since 1970 that a date can be made of.
double time_at(const JsonPlace& place, const char* key) {
  constexpr double kMost_s = 1e11;
  const double seconds = place.at(key).number();
  return seconds >= 0.0 && seconds <= kMost_s ? seconds : 0.0;
}

HangRecord::Group group_of(const JsonPlace& place) {
  HangRecord::Group group{.name = place.at("name").text(),
                          .size = place.at("size").integer(1, kMostRanks),
                          .rank = place.at("rank").integer(0),
                          .collectives = place.at("collectives").integer(0),
                          .sent = {}};
  if (const auto sent = place.find("sent")) {
    for (const Json& count : sent->list())
      group.sent.push_back(count.is_number_integer() ? count.get<int64_t>() : 0);
  }
  return group;
}

HangRecord::Operation operation_of(const JsonPlace& place, int64_t num_groups) {
  HangRecord::Operation operation{
      .group = static_cast<size_t>(place.at("group").integer(0, num_groups - 1)),
      .number = place.at("number").integer(0),
      .name = place.at("operation").text(),
      .bytes = place.at("bytes").integer(0),
      .peer = {},
      .place = place.at("place").text(),
      .begun_s = time_at(place, "begun_s"),
      .ended_s = {}};
  if (const auto peer = place.find("peer")) operation.peer = peer->integer(0);
  if (place.find("ended_s")) operation.ended_s = time_at(place, "ended_s");
  return operation;
}

// The operation of that number in a group, if the record still has it.
const HangRecord::Operation* operation_numbered(const HangRecord& record, const std::string& group,
                                                int64_t number) {
  for (const HangRecord::Operation& o : record.operations)
    if (!o.peer && o.number == number && record.groups[o.group].name == group) return &o;
  return nullptr;
}

bool is_alike(const HangRecord::Operation& a, const HangRecord::Operation& b) {
  // Of rows each rank hands over as many as it has.
  const bool has_one_size = a.name == "all-reduce" || a.name == "broadcast";
  return a.name == b.name && (!has_one_size || a.bytes == b.bytes);
}

// When the first rank gave up; else when the first one was asked to end.
double time_of(const std::vector<HangRecord>& records) {
  double given_up_s = 1e12, asked_s = 1e12;
  for (const HangRecord& record : records) {
    double& first = record.reason.starts_with("has waited") ? given_up_s : asked_s;
    first = std::min(first, record.written_s);
  }
  return given_up_s < 1e12 ? given_up_s : asked_s;
}

Wait wait_for_message(const Hang& hang, const HangRecord& record,
                      const HangRecord::Operation& message) {
  Wait wait;
  const HangRecord::Group& group = record.groups[message.group];
  for (const HangRecord& other : hang.records) {
    const HangRecord::Group* theirs = other.group_called(group.name);
    if (!theirs || theirs->rank != *message.peer || other.rank == record.rank) continue;
    const auto own = static_cast<size_t>(group.rank);
    const int64_t sent = own < theirs->sent.size() ? theirs->sent[own] : 0;
    if (message.name == "receive" && sent < message.number) wait.ranks.push_back(other.rank);
    return wait;
  }
  wait.for_silent = true;
  return wait;
}

}  // namespace

const HangRecord::Operation* HangRecord::waiting() const {
  for (auto o = operations.rbegin(); o != operations.rend(); ++o)
    if (!o->ended_s) return &*o;
  return nullptr;
}

const HangRecord::Group* HangRecord::group_called(const std::string& name) const {
  for (const Group& group : groups)
    if (group.name == name) return &group;
  return nullptr;
}

void HangRecord::rewind(double time_s) {
  for (Operation& o : operations)
    if (o.ended_s && *o.ended_s > time_s) o.ended_s.reset();
  while (!operations.empty() && operations.back().begun_s > time_s) {
    const Operation& o = operations.back();
    Group& counts = groups[o.group];
    if (!o.peer) {
      counts.collectives = std::min(counts.collectives, o.number - 1);
    } else if (const auto p = static_cast<size_t>(*o.peer);
               o.name == "send" && p < counts.sent.size()) {
      counts.sent[p] = std::min(counts.sent[p], o.number - 1);
    }
    operations.pop_back();
  }
}

bool HangRecord::stood_still_at(double time_s) const {
  return stopped_s && woken_s && *stopped_s <= time_s && time_s <= *woken_s;
}

HangRecord read_hang_record(const fs::path& file) {
  const std::string name = file.string();
  const Json json = parse_json_file(read_file(file), name);
  const JsonPlace place(json, name);
  HangRecord record{.rank = place.at("rank").integer(0, kMostRanks - 1),
                    .who = place.at("who").text(),
                    .reason = place.at("reason").text(),
                    .written_s = time_at(place, "written_s"),
                    .stopped_s = {},
                    .woken_s = {},
                    .groups = {},
                    .operations = {}};
  if (const auto still = place.find("stood_still")) {
    record.stopped_s = time_at(*still, "from_s");
    record.woken_s = time_at(*still, "to_s");
  }
  for (const Json& group : place.at("groups").list())
    record.groups.push_back(group_of(JsonPlace(group, name)));
  if (record.groups.empty()) throw DataError(concat("'", name, "' names no group of ranks"));
  for (const Json& operation : place.at("operations").list())
    record.operations.push_back(
        operation_of(JsonPlace(operation, name), std::ssize(record.groups)));
  return record;
}

const HangRecord* Hang::of(int64_t rank) const {
  for (const HangRecord& record : records)
    if (record.rank == rank) return &record;
  return nullptr;
}

Hang read_hang(const fs::path& folder) {
  Hang hang;
  std::vector<HangRecord> all;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("rank-") || !name.ends_with(".json")) continue;
    try {
      all.push_back(read_hang_record(entry->path()));
    } catch (const Error& damage) {
      hang.damaged.emplace_back(damage.what());
    }
  }
  if (all.empty() && !hang.damaged.empty()) throw DataError(hang.damaged.front());
  if (all.empty())
    throw DataError(concat("there are no records of a hang in '", folder.string(), "'"),
                    "ranks leave them when one has waited for parallel.timeout_s, or when they are "
                    "asked to end while nothing moves");
  const auto newest = std::max_element(
      all.begin(), all.end(),
      [](const HangRecord& a, const HangRecord& b) { return a.written_s < b.written_s; });
  const double last_s = newest->written_s;
  hang.num_ranks = newest->groups.front().size;
  for (HangRecord& record : all) {
    const bool is_of_it = record.written_s >= last_s - kOneHang_s &&
                          record.groups.front().size == hang.num_ranks &&
                          record.rank < hang.num_ranks && !hang.of(record.rank);
    is_of_it ? hang.records.push_back(std::move(record)) : void(++hang.num_left_out);
  }
  hang.time_s = time_of(hang.records);
  for (HangRecord& record : hang.records)
    record.rewind(hang.time_s);
  std::sort(hang.records.begin(), hang.records.end(),
            [](const HangRecord& a, const HangRecord& b) { return a.rank < b.rank; });
  for (int64_t rank = 0; rank < hang.num_ranks; ++rank)
    if (!hang.of(rank)) hang.silent.push_back(rank);
  return hang;
}

std::optional<Wait> wait_of(const Hang& hang, const HangRecord& record) {
  const HangRecord::Operation* operation = record.waiting();
  if (!operation) return std::nullopt;
  if (operation->peer) return wait_for_message(hang, record, *operation);
  const HangRecord::Group& group = record.groups[operation->group];
  Wait wait;
  int64_t members = 0;
  for (const HangRecord& other : hang.records) {
    const HangRecord::Group* theirs = other.group_called(group.name);
    if (!theirs) continue;
    ++members;
    if (theirs->collectives < operation->number) wait.ranks.push_back(other.rank);
    wait.others_left = wait.others_left || theirs->collectives > operation->number;
    const auto* same = operation_numbered(other, group.name, operation->number);
    wait.others_left = wait.others_left || (same && same->ended_s);
    if (same && !is_alike(*same, *operation)) wait.differs.push_back(other.rank);
  }
  wait.for_silent = members < group.size;
  return wait;
}

std::vector<int64_t> origins(const Hang& hang) {
  std::set<int64_t> waited_for, found;
  for (const HangRecord& record : hang.records)
    if (record.stood_still_at(hang.time_s)) found.insert(record.rank);
  if (!found.empty()) return {found.begin(), found.end()};
  bool for_silent = false;
  for (const HangRecord& record : hang.records) {
    const auto wait = wait_of(hang, record);
    if (!wait) continue;
    waited_for.insert(wait->ranks.begin(), wait->ranks.end());
    for_silent = for_silent || wait->for_silent;
  }
  for (const int64_t rank : waited_for) {
    const auto wait = wait_of(hang, *hang.of(rank));
    if (!wait || (wait->ranks.empty() && !wait->for_silent)) found.insert(rank);
  }
  if (for_silent) found.insert(hang.silent.begin(), hang.silent.end());
  return {found.begin(), found.end()};
}

}  // namespace aifs::app
