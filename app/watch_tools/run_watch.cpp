// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/run_watch.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/join.h"
#include "verify/table_text.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRecentSteps = 100;
// "2026-12-01 10:20:30.123 info step 10/40 ..."
constexpr size_t kTimeAt = 11, kLevelAt = 24;

std::optional<double> number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

int64_t count_at(const Json& json, const char* key, int64_t otherwise = 0) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

// Null unless the line is an object with a step.
Json step_object(const std::string& line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || count_at(json, "step", -1) < 0) return nullptr;
  return json;
}

std::vector<GpuView> gpus_of(const Json& list) {
  std::vector<GpuView> gpus;
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("gpu") || !entry["gpu"].is_string()) continue;
    GpuView gpu{.address = entry["gpu"].get<std::string>(),
                .use = number_at(entry, "use"),
                .memory_gib = number_at(entry, "memory_gib"),
                .memory_total_gib = number_at(entry, "memory_total_gib"),
                .power_w = number_at(entry, "power_w"),
                .temperature_c = number_at(entry, "temperature_c"),
                .slowed_by = {}};
    if (const auto why = entry.find("slowed_by"); why != entry.end() && why->is_array()) {
      for (const Json& text : *why)
        if (text.is_string()) gpu.slowed_by.push_back(text.get<std::string>());
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// Mean ratios by lead time of {"6h": {"mean_ratio": 0.25, ...}, ...}.
void add_ratios(const Json& lead_times, const std::string& dataset,
                std::vector<std::string>& ratios) {
  if (!lead_times.is_object()) return;
  for (const auto& [lead, scores] : lead_times.items()) {
    const std::optional<double> ratio =
        scores.is_object() ? number_at(scores, "mean_ratio") : std::nullopt;
    ratios.push_back(concat(dataset, lead, " ", ratio ? verify::formatted("%.3f", *ratio) : "nan"));
  }
}

// 40 of "step 10/40  loss ...", 0 of another text.
int64_t last_step_in(const std::string& text) {
  const size_t slash = text.find('/');
  if (!text.starts_with("step ") || slash == std::string::npos) return 0;
  if (text.find_first_not_of("0123456789", 5) != slash) return 0;
  const std::string digits = text.substr(slash + 1, text.find(' ', slash) - slash - 1);
  const bool is_number = !digits.empty() && digits.size() <= 18 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoll(digits) : 0;
}

bool is_run(const fs::path& folder) {
  static constexpr const char* kSigns[] = {"metrics.jsonl", "train.log", "validation.jsonl",
                                           "checkpoints", "lock"};
  std::error_code ignored;
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](const char* name) { return fs::exists(folder / name, ignored); });
}

// Names the runs inside a folder, for a hint.
std::string runs_inside(const fs::path& folder) {
  constexpr size_t kMost = 5;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_run(entry->path())) found.push_back(concat("'", entry->path().string(), "'"));
  }
  std::sort(found.begin(), found.end());
  if (found.size() > kMost) found.resize(kMost);
  return found.empty() ? "name the run.dir of a configuration"
                       : "there are runs inside: " + join(found);
}

}  // namespace

std::optional<double> RunView::mean_step_s() const {
  if (recent.empty()) return std::nullopt;
  double sum = 0.0;
  for (const StepView& one : recent)
    sum += one.step_s;
  return sum / static_cast<double>(recent.size());
}

std::optional<double> RunView::share_of_waiting() const {
  double all = 0.0, waited = 0.0;
  for (const StepView& one : recent)
    all += one.step_s, waited += one.data_wait_s;
  if (all <= 0.0) return std::nullopt;
  return waited / all;
}

std::optional<double> RunView::left_s() const {
  const std::optional<double> step_s = mean_step_s();
  if (!step_s || last_step <= 0 || step > last_step) return std::nullopt;
  return *step_s * static_cast<double>(last_step - step);
}

RunWatch::RunWatch(const fs::path& folder)
    : goodput_(folder / "goodput.json"),
      metrics_(folder / "metrics.jsonl"),
      validations_(folder / "validation.jsonl"),
      log_(folder / "train.log") {
  const std::string name = folder.string();
  if (!path_exists(folder))
    throw DataError(concat("there is no run folder '", name, "'", dangling_link_text(folder)),
                    "name the run.dir of a configuration");
  if (!folder_exists(folder))
    throw DataError(concat("'", name, "' is a file, not a run folder"),
                    folder.has_parent_path() && is_run(folder.parent_path())
                        ? concat("name its folder: '", folder.parent_path().string(), "'")
                        : "name the run.dir of a configuration");
  if (!is_run(folder))
    throw DataError(
        concat("'", name, "' is no run folder: it has neither metrics.jsonl nor ", "train.log"),
        runs_inside(folder));
  view_.name = name;
}

void RunWatch::take_step(const std::string& line) {
  const Json json = step_object(line);
  if (json.is_null()) {
    ++damaged_metrics_;
    return;
  }
  view_.step = count_at(json, "step");
  view_.epoch = count_at(json, "epoch");
  view_.rollout = count_at(json, "rollout", 1);
  view_.lr = number_at(json, "lr");
  view_.gradient_norm = number_at(json, "gradient_norm");
  if (const auto rates = json.find("rates"); rates != json.end() && rates->is_object()) {
    view_.tflops_per_s = number_at(*rates, "tflops_per_s");
    view_.mfu = number_at(*rates, "mfu");
  }
  if (const auto gpus = json.find("gpus"); gpus != json.end() && gpus->is_array())
    view_.gpus = gpus_of(*gpus);
  view_.skipped += json.contains("skipped") ? 1 : 0;
  view_.losses.push_back(
      number_at(json, "loss").value_or(std::numeric_limits<double>::quiet_NaN()));
  view_.recent.push_back(
      {number_at(json, "step_s").value_or(0.0), number_at(json, "data_wait_s").value_or(0.0)});
  if (view_.recent.size() > kRecentSteps) view_.recent.pop_front();
}

void RunWatch::read_metrics() {
  const std::vector<std::string> lines = metrics_.next();
  if (metrics_.is_at_start()) {  // a resumed run takes back what it does again
    view_.losses.clear();
    view_.recent.clear();
    view_.step = view_.epoch = view_.skipped = damaged_metrics_ = 0;
  }
  for (const std::string& line : lines)
    take_step(line);
}

void RunWatch::take_validation(const std::string& line) {
  const Json json = step_object(line);
  if (json.is_null()) {
    ++damaged_validations_;
    return;
  }
  ValidationView validation{
      .step = count_at(json, "step"), .failure = {}, .loss = {}, .ratios = {}};
  if (const auto failure = json.find("failure"); failure != json.end() && failure->is_string()) {
    validation.failure = failure->get<std::string>();
    ++view_.failed_validations;
  }
  validation.loss = number_at(json, "loss");
  if (json.contains("lead_times")) add_ratios(json["lead_times"], "", validation.ratios);
  if (const auto datasets = json.find("datasets");
      datasets != json.end() && datasets->is_object()) {
    for (const auto& [name, dataset] : datasets->items()) {
      if (dataset.is_object() && dataset.contains("lead_times"))
        add_ratios(dataset["lead_times"], name + " ", validation.ratios);
    }
  }
  view_.validation = std::move(validation);
}

void RunWatch::read_validations() {
  const std::vector<std::string> lines = validations_.next();
  if (validations_.is_at_start()) {
    view_.validation.reset();
    view_.failed_validations = damaged_validations_ = 0;
  }
  for (const std::string& line : lines)
    take_validation(line);
}

void RunWatch::take_log_line(const std::string& line) {
  if (line.size() <= kLevelAt || line[4] != '-' || line[kTimeAt + 2] != ':') return;
  const size_t end = line.find(' ', kLevelAt);
  if (end == std::string::npos) return;
  const std::string level = line.substr(kLevelAt, end - kLevelAt), text = line.substr(end + 1);
  if (text.starts_with("hint: ")) return;  // belongs to the error before
  const bool is_error = level == "error";
  log_end_ = is_error ? LogEnd::kError : LogEnd::kNone;
  if (text.starts_with("stopped after a checkpoint")) log_end_ = LogEnd::kStopped;
  if (text.starts_with("training has ended")) log_end_ = LogEnd::kFinished;
  if (is_error || level == "warning") {
    ++(is_error ? view_.num_errors : view_.num_warnings);
    view_.last_remark = concat(line.substr(kTimeAt, 8), " ", level, ": ", text);
  }
  if (const int64_t last = last_step_in(text); last > 0) view_.last_step = last;
}

void RunWatch::read_log() {
  const std::vector<std::string> lines = log_.next();
  if (log_.is_at_start()) {
    view_.num_warnings = view_.num_errors = 0;
    view_.last_remark.clear();
    view_.last_step = 0;
    log_end_ = LogEnd::kNone;
  }
  for (const std::string& line : lines)
    take_log_line(line);
}

RunView::State RunWatch::state_at(double now_s) const {
  using State = RunView::State;
  if (log_end_ == LogEnd::kFinished) return State::kFinished;
  if (log_end_ == LogEnd::kStopped) return State::kStopped;
  // Errors that training goes on after are followed by steps.
  if (log_end_ == LogEnd::kError && metrics_.written_s() <= log_.written_s()) return State::kFailed;
  constexpr double kPatience_s = 30.0, kPatienceInSteps = 5.0;
  const double written_s = std::max(metrics_.written_s(), log_.written_s());
  if (now_s - written_s > std::max(kPatience_s, kPatienceInSteps * view_.mean_step_s().value_or(0)))
    return State::kSilent;
  return view_.step > 0 ? State::kRunning : State::kStarting;
}

const RunView& RunWatch::update(double now_s) {
  view_.faults.clear();
  const auto read = [&](void (RunWatch::*part)()) {
    try {
      (this->*part)();
    } catch (const std::exception& error) {
      view_.faults.emplace_back(error.what());
    }
  };
  read(&RunWatch::read_log);
  read(&RunWatch::read_metrics);
  read(&RunWatch::read_validations);
  view_.goodput = report::read_goodput(goodput_);
  view_.damaged_lines = damaged_metrics_ + damaged_validations_;
  const double written_s =
      std::max({metrics_.written_s(), log_.written_s(), validations_.written_s()});
  view_.quiet_s = std::max(0.0, now_s - written_s);  // clocks of other hosts may be ahead
  view_.state = state_at(now_s);
  return view_;
}

}  // namespace aifs::app
