// SPDX-License-Identifier: Apache-2.0
#include "verify/score_netcdf.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/check.h"
#include "verify/netcdf_output.h"

namespace aifs::verify {

namespace {

using Json = nlohmann::ordered_json;

// A coordinate of the figures, by the texts of its values.
struct Axis {
  std::string name;
  std::vector<std::string> values;

  size_t find(const std::string& value) const {
    const auto found = std::find(values.begin(), values.end(), value);
    AIFS_CHECK(found != values.end(), "no such ", name);
    return static_cast<size_t>(found - values.begin());
  }
};

// Figures that share their dimensions.
class Figures {
 public:
  Figures(std::vector<std::string> dimensions, size_t num_places, size_t length = 1)
      : dimensions_(std::move(dimensions)), num_items_(num_places * length) {}

  void put(const std::string& name, size_t place, const Json& value) {
    auto& values = values_.try_emplace(name, num_items_, NAN).first->second;
    if (value.is_number()) values[place] = value.get<double>();
  }
  void write(const std::string& prefix, NetcdfOutput& file) const {
    for (const auto& [name, values] : values_)
      file.numbers(prefix + name, dimensions_, values);
  }

 private:
  std::vector<std::string> dimensions_;
  size_t num_items_;
  std::map<std::string, std::vector<double>> values_;
};

// A threshold of a variable, as an axis of its own.
struct Event {
  std::string variable;
  double threshold;
};

std::vector<Event> events_of(const ScoredParts& parts) {
  std::vector<Event> events;
  for (size_t v = 0; v < parts.thresholds.size(); ++v)
    for (const double threshold : parts.thresholds[v])
      events.push_back({parts.variables[v], threshold});
  return events;
}

// What the rows of a verification are written by.
class ScoreWriter {
 public:
  explicit ScoreWriter(const Verification& v)
      : num_leads_(v.parts.lead_times_s.size()), events_(events_of(v.parts)) {
    variables_ = {"variable", v.parts.variables};
    for (const Region& region : v.parts.regions)
      regions_.values.push_back(region.name);
    for (const SeasonScores& season : v.seasons)
      seasons_.values.push_back(season.name);
    for (const int64_t lead_s : v.parts.lead_times_s)
      lead_times_h_.push_back(static_cast<double>(lead_s) / 3600.0);
    num_ranks_ = static_cast<size_t>(v.num_members) + 1;
  }

  void write(const std::vector<Json>& rows, NetcdfOutput& file) const {
    std::vector<std::string> tail{"lead_time", "region"};
    if (seasons_.values.size() > 1) tail.push_back("season");
    const auto with = [&](const char* first, std::vector<std::string> last = {}) {
      std::vector<std::string> dimensions{first};
      dimensions.insert(dimensions.end(), tail.begin(), tail.end());
      dimensions.insert(dimensions.end(), last.begin(), last.end());
      return dimensions;
    };
    Figures figures(with("variable"), places(variables_.values.size()));
    Figures events(with("event"), places(events_.size()));
    Figures ranks(with("variable", {"rank"}), places(variables_.values.size()), num_ranks_);
    for (const Json& row : rows)
      put_row(row, figures, events, ranks);
    figures.write("", file);
    events.write("threshold_", file);
    ranks.write("", file);
  }

  void define(NetcdfOutput& file) const {
    for (const Axis* axis : {&variables_, &regions_, &seasons_}) {
      if (axis == &seasons_ && seasons_.values.size() == 1) continue;
      file.dimension(axis->name, axis->values.size());
      file.texts(axis->name, axis->name, axis->values);
    }
    file.dimension("lead_time", num_leads_);
    // Words in place of "hours": xarray would turn numbers of those into durations.
    file.numbers("lead_time", {"lead_time"}, lead_times_h_,
                 {{"long_name", "hours from the start of the forecast"}});
    if (num_ranks_ > 2) file.dimension("rank", num_ranks_);
    if (events_.empty()) return;
    std::vector<std::string> names;
    std::vector<double> thresholds;
    for (const Event& event : events_) {
      names.push_back(event.variable);
      thresholds.push_back(event.threshold);
    }
    file.dimension("event", events_.size());
    file.texts("event_variable", "event", names);
    file.numbers("event_threshold", {"event"}, thresholds);
  }

 private:
  size_t places(size_t first) const {
    return first * num_leads_ * regions_.values.size() * seasons_.values.size();
  }

  // The place of a row, without its first dimension.
  size_t place_of(const Json& row) const {
    const double lead_h = row["lead_time_h"].get<double>();
    const auto lead = std::find(lead_times_h_.begin(), lead_times_h_.end(), lead_h);
    const size_t region = regions_.find(row["region"].get<std::string>());
    const size_t season =
        row.contains("season") ? seasons_.find(row["season"].get<std::string>()) : 0;
    return (static_cast<size_t>(lead - lead_times_h_.begin()) * regions_.values.size() + region) *
               seasons_.values.size() +
           season;
  }

  void put_row(const Json& row, Figures& figures, Figures& events, Figures& ranks) const {
    const std::string variable = row["variable"].get<std::string>();
    const size_t place = variables_.find(variable) * places(1) + place_of(row);
    for (const auto& [key, value] : row.items()) {
      if (key == "lead_time_h" || value.is_string()) continue;
      if (!value.is_array()) figures.put(key, place, value);
    }
    if (row.contains("rank_histogram"))
      for (size_t r = 0; r < num_ranks_; ++r)
        ranks.put("rank_histogram", place * num_ranks_ + r, row["rank_histogram"][r]);
    if (!row.contains("thresholds")) return;
    size_t event = 0;
    while (events_[event].variable != variable)
      ++event;
    for (const Json& one : row["thresholds"]) {
      for (const auto& [key, value] : one.items())
        if (key != "threshold") events.put(key, event * places(1) + place_of(row), value);
      ++event;
    }
  }

  size_t num_leads_, num_ranks_ = 0;
  Axis variables_, regions_{"region", {}}, seasons_{"season", {}};
  std::vector<double> lead_times_h_;
  std::vector<Event> events_;
};

}  // namespace

void write_score_netcdf(const fs::path& path, const Verification& verification,
                        const std::vector<Json>& rows) {
  NetcdfOutput file(path);
  file.attribute("title", "scores of forecasts");
  const ScoreWriter writer(verification);
  writer.define(file);
  writer.write(rows, file);
  file.finish();
}

}  // namespace aifs::verify
