// SPDX-License-Identifier: Apache-2.0
#include "train/output/best_checkpoints.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"
#include "core/log.h"
#include "train/output/checkpoint.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kList = "best.json";
constexpr const char* kBest = "best";

}  // namespace

BestCheckpoints::BestCheckpoints(const fs::path& folder, const KeepBestOptions& options,
                                 int64_t resume_step)
    : folder_(folder), options_(options) {
  try {
    if (resume_step >= 0 && path_exists(folder / kList)) read(resume_step);
  } catch (const Error& error) {
    kept_.clear();
    is_lost_ = true;
    log::warning("the best checkpoints so far are not known, so none is removed: ", error.what());
  }
}

void BestCheckpoints::read(int64_t resume_step) {
  const std::string file = (folder_ / kList).string();
  const Json json = parse_json_file(read_file(file), file);
  const JsonPlace list(json, file);
  if (list.at("score").text() != options_.by.score ||
      list.at("better").text() != enum_name(options_.by.better))
    return;
  for (const Json& entry : list.at("kept").list()) {
    const JsonPlace place(entry, file);
    const Kept kept{place.at("step").integer(0), place.at("value").number()};
    const bool is_here = folder_exists(checkpoint_path(folder_, kept.step));
    if (kept.step <= resume_step && is_here) kept_.push_back(kept);
  }
  shorten();
}

void BestCheckpoints::shorten() {
  const auto most = static_cast<size_t>(options_.number);
  if (kept_.size() > most) kept_.resize(most);
}

bool BestCheckpoints::would_keep(double score) const {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  if (static_cast<int64_t>(kept_.size()) < options_.number)
    return options_.by.is_better(score, kNothing);
  return options_.is_on() && options_.by.is_better(score, kept_.back().score);
}

void BestCheckpoints::add(int64_t step, double score) {
  std::erase_if(kept_, [&](const Kept& kept) { return kept.step == step; });
  const auto place = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return options_.by.is_better(score, kept.score);
  });
  kept_.insert(place, {step, score});
  shorten();
  try {
    write();
  } catch (const Error& error) {
    log::warning("the list of the best checkpoints was not written: ", error.what());
  }
}

void BestCheckpoints::write() const {
  Json list{{"score", options_.by.score},
            {"better", enum_name(options_.by.better)},
            {"kept", Json::array()}};
  for (const Kept& kept : kept_)
    list["kept"].push_back({{"step", kept.step}, {"value", kept.score}});
  write_file_atomic(folder_ / kList, list.dump(2) + "\n");
  if (!kept_.empty()) write_pointer(folder_ / kBest, kept_.front().step);
}

std::vector<int64_t> BestCheckpoints::steps() const {
  std::vector<int64_t> steps;
  for (const Kept& kept : kept_)
    steps.push_back(kept.step);
  return steps;
}

}  // namespace aifs::train
