// SPDX-License-Identifier: Apache-2.0
#include "app/hang_tools/explain_hang.h"

#include <cmath>
#include <cstdio>

#include "app/run/exit_codes.h"
#include "core/check.h"
#include "core/log.h"
#include "core/time.h"

namespace aifs::app {

namespace {

using Operation = HangRecord::Operation;

// "rank 3 on n1", or "rank 3" of one that left nothing.
std::string name_of(const Hang& hang, int64_t rank) {
  const HangRecord* record = hang.of(rank);
  return record ? record->who : concat("rank ", rank);
}

// "ranks 0, 1, 2 and 5 more".
std::string ranks_text(const std::vector<int64_t>& ranks) {
  constexpr size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(kShown, ranks.size()); ++i)
    text += concat(i > 0 ? ", " : "", ranks[i]);
  if (ranks.size() > kShown) text += concat(" and ", ranks.size() - kShown, " more");
  return text;
}

// "all-reduce 812 of all ranks".
std::string operation_text(const HangRecord& record, const Operation& o) {
  const HangRecord::Group& group = record.groups[o.group];
  const std::string where = group.name == "all" ? std::string("all ranks")
                                                : concat("group ", group.name, " of ", group.size);
  if (!o.peer) return concat(o.name, " ", o.number, " of ", where);
  return concat(o.name, " ", o.number, o.name == "send" ? " to" : " from", " rank ", *o.peer,
                " in ", where);
}

std::string place_text(const Operation& o) {
  return o.place.empty() ? std::string() : concat(", ", o.place);
}

std::string wait_text(const Hang& hang, const Wait& wait) {
  std::string text;
  if (!wait.ranks.empty()) text += concat("; waits for ", ranks_text(wait.ranks));
  if (wait.for_silent)
    text += concat(wait.ranks.empty() ? "; waits for " : ", and for ",
                   hang.silent.size() > 1 ? "some of " : "", ranks_text(hang.silent));
  if (text.empty())
    text = wait.others_left ? "; others have left it" : "; all have come, and nothing is delivered";
  if (!wait.differs.empty())
    text += concat("; ", ranks_text(wait.differs), " came with something else");
  return text;
}

std::string state_text(const Hang& hang, const HangRecord& record) {
  if (const Operation* o = record.waiting())
    return concat(record.who, ": ", format_elapsed(std::max(0.0, hang.time_s - o->begun_s)), " in ",
                  operation_text(record, *o), " (", o->bytes, " bytes)", place_text(*o),
                  wait_text(hang, *wait_of(hang, record)));
  if (record.operations.empty()) return concat(record.who, ": no operation with others yet");
  const Operation& last = record.operations.back();
  return concat(record.who, ": in no operation for ",
                format_elapsed(std::max(0.0, hang.time_s - *last.ended_s)), "; the last was ",
                operation_text(record, last), place_text(last));
}

std::string line_of(const Hang& hang, const HangRecord& record) {
  const std::string text = state_text(hang, record);
  if (!record.stood_still_at(hang.time_s)) return text;
  return concat(text, "; stood still for ",
                format_elapsed(std::max(0.0, hang.time_s - *record.stopped_s)));
}

// Why it begins with a rank.
std::string origin_text(const Hang& hang, int64_t rank) {
  const HangRecord* record = hang.of(rank);
  if (!record)
    return concat("rank ", rank,
                  ", which left nothing: it was killed, stands still, or its host is ",
                  "lost; its log and that of its host say more");
  if (record->stood_still_at(hang.time_s))
    return concat(record->who, ", which stood still as a whole: somebody or something has stopped ",
                  "the process, or its host; what it was at is no reason");
  if (const Operation* o = record->waiting()) {
    const bool is_behind = wait_of(hang, *record)->others_left;
    return concat(record->who, ": in ", operation_text(*record, *o), place_text(*o),
                  is_behind ? ", which others have left: it stands still, or gets nothing any more"
                            : ", to which all have come: the network does not deliver");
  }
  if (record->operations.empty()) return concat(record->who, ", which has not begun");
  const Operation& last = record->operations.back();
  return concat(record->who, ": after ", operation_text(*record, last), place_text(last),
                " it did not come to the next one: it reads, computes or stands still");
}

}  // namespace

std::string hang_text(const Hang& hang) {
  std::string text =
      concat(hang.records.size(), " of ", hang.num_ranks, " ranks left their last operations, at ",
             format_date(static_cast<int64_t>(hang.time_s)), " UTC\n\n");
  for (const HangRecord& record : hang.records)
    text += line_of(hang, record) + "\n";
  if (!hang.silent.empty()) text += concat(ranks_text(hang.silent), ": left nothing\n");
  std::vector<int64_t> begins = origins(hang);
  text += "\n";
  if (begins.empty())
    text +=
        "no rank is behind the others: either ranks wait for each other, or the network does not "
        "deliver\n";
  constexpr size_t kShown = 8;
  if (begins.size() > kShown) begins.resize(kShown);
  for (const int64_t rank : begins)
    text += concat("it begins with ", origin_text(hang, rank), "\n");
  for (const HangRecord& record : hang.records) {
    const auto wait = wait_of(hang, record);
    if (!wait || wait->differs.empty()) continue;
    text += concat(record.who, " and ", name_of(hang, wait->differs.front()),
                   " do different things at the same place: a fault of the program\n");
    break;
  }
  return text;
}

int explain_hang(const ExplainHangCommand& command) {
  const fs::path run(command.run);
  if (!folder_exists(run))
    throw DataError(concat("there is no run folder '", run.string(), "'"),
                    "name the run.dir of a configuration");
  const Hang hang = read_hang(folder_exists(run / "hang") ? run / "hang" : run);
  for (const std::string& damage : hang.damaged)
    log::warning(damage);
  if (hang.num_left_out > 0)
    log::info(hang.num_left_out, " records of an earlier hang are left out");
  std::fputs(hang_text(hang).c_str(), stdout);
  return kSuccess;
}

}  // namespace aifs::app
