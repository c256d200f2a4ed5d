// SPDX-License-Identifier: Apache-2.0
#include "report/metric_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/check.h"

namespace aifs::report {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A curve before it is thinned.
struct Line {
  std::vector<double> step, value;
};

// All curves of a file, and its sums.
class Collector {
 public:
  void add(std::string_view text);
  Metrics result(size_t most_points) const;

 private:
  void add_number(const std::string& name, double step, double value) {
    constexpr size_t kMostCurves = 64;
    if (lines_.size() >= kMostCurves && lines_.count(name) == 0) return;
    lines_[name].step.push_back(step);
    lines_[name].value.push_back(value);
  }
  // What is no number is null in the file, and NaN here.
  void add_value(const std::string& name, double step, const nlohmann::json& value) {
    if (value.is_number() || value.is_null())
      add_number(name, step, value.is_null() ? kNone : value.get<double>());
  }
  void add_rates(double step, const nlohmann::json& line);
  void add_gpus(double step, const nlohmann::json& line);

  Metrics sums_;
  std::map<std::string, Line> lines_;
};

double number_of(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : kNone;
}

void Collector::add_rates(double step, const nlohmann::json& line) {
  const double step_s = number_of(line, "step_s"), wait_s = number_of(line, "data_wait_s");
  const double samples = number_of(line, "samples");
  if (!(step_s > 0.0)) return;
  sums_.steps_s += step_s;
  add_number("hours", step, sums_.steps_s / 3600.0);
  if (std::isfinite(samples)) {
    sums_.samples += samples;
    add_number("samples_per_s", step, samples / step_s);
  }
  if (std::isfinite(wait_s)) {
    sums_.waiting_s += wait_s;
    add_number("data_wait_share", step, wait_s / step_s);
  }
}

// Means over GPUs of use and power, the greatest of memory and temperature.
void Collector::add_gpus(double step, const nlohmann::json& line) {
  const auto gpus = line.find("gpus");
  if (gpus == line.end() || !gpus->is_array()) return;
  const auto add = [&](const std::string& name, const char* key, bool is_mean) {
    double sum = 0.0, most = kNone, count = 0.0;
    for (const nlohmann::json& gpu : *gpus) {
      const double value = gpu.is_object() ? number_of(gpu, key) : kNone;
      if (!std::isfinite(value)) continue;
      sum += value;
      most = count > 0.0 ? std::max(most, value) : value;
      ++count;
    }
    if (count > 0.0) add_number(name, step, is_mean ? sum / count : most);
  };
  add("gpu_use", "use", true);
  add("gpu_power_w", "power_w", true);
  add("gpu_memory_gib", "memory_gib", false);
  add("gpu_temperature_c", "temperature_c", false);
}

void Collector::add(std::string_view text) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const double step = line.is_object() ? number_of(line, "step") : kNone;
  if (!std::isfinite(step)) {
    ++sums_.num_damaged;
    return;
  }
  ++sums_.num_lines;
  sums_.last_step = static_cast<int64_t>(std::clamp(step, -9e15, 9e15));
  for (const auto& [name, value] : line.items()) {
    if (name == "skipped" && value == true) ++sums_.num_skipped;
    if (name != "step") add_value(name, step, value);
  }
  if (const auto rates = line.find("rates"); rates != line.end() && rates->is_object()) {
    for (const auto& [name, value] : rates->items())
      if (name != "samples_per_s") add_value(name, step, value);  // every step has its own
  }
  add_gpus(step, line);
  add_rates(step, line);
}

// Joins every so many neighbours.
Series thinned(const Line& line, size_t most_points) {
  Series series;
  const size_t count = line.step.size();
  const size_t every = std::max<size_t>(1, (count + most_points - 1) / most_points);
  for (size_t first = 0; first < count; first += every) {
    const size_t last = std::min(count, first + every);
    double low = kNone, high = kNone, sum = 0.0, finite = 0.0;
    for (size_t i = first; i < last; ++i) {
      const double value = line.value[i];
      if (!std::isfinite(value)) continue;
      low = finite > 0.0 ? std::min(low, value) : value;
      high = finite > 0.0 ? std::max(high, value) : value;
      sum += value;
      ++finite;
    }
    series.step.push_back(line.step[last - 1]);
    series.low.push_back(low);
    series.mean.push_back(finite > 0.0 ? sum / finite : kNone);
    series.high.push_back(high);
  }
  return series;
}

Metrics Collector::result(size_t most_points) const {
  Metrics metrics = sums_;
  for (const auto& [name, line] : lines_)
    metrics.series[name] = thinned(line, most_points);
  constexpr size_t kLast = 100;
  metrics.loss = kNone;
  if (const auto loss = lines_.find("loss"); loss != lines_.end()) {
    const std::vector<double>& values = loss->second.value;
    const size_t first = values.size() - std::min(kLast, values.size());
    double sum = 0.0;
    for (size_t i = first; i < values.size(); ++i)
      sum += values[i];
    metrics.loss = sum / static_cast<double>(values.size() - first);
  }
  return metrics;
}

}  // namespace

Metrics read_metrics(const fs::path& file, size_t most_points) {
  const std::string text = read_file(file);
  Collector collector;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    collector.add(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  Metrics metrics = collector.result(std::max<size_t>(1, most_points));
  if (metrics.num_lines == 0)
    throw DataError(concat("'", file.string(), "' has no metrics yet"),
                    "report when the run has made its first step");
  return metrics;
}

}  // namespace aifs::report
