// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/anemoi_dataset.h"
#include "verify/forecast_source.h"

namespace aifs::verify {

namespace {

// A chunk holds all variables of a date, so these are read together and kept until another lead
// time is asked for.
class ZarrSource : public ForecastSource {
 public:
  explicit ZarrSource(const fs::path& path) : dataset_(options_of(path)) {
    const data::DatasetInfo& info = dataset_.info();
    description_ = {.path = path.string(),
                    .start_s = start_of(info),
                    .lead_times_s = {},
                    .variables = info.variables,
                    .num_members = info.ensemble_size,
                    .latitudes_deg = info.latitudes_deg,
                    .longitudes_deg = info.longitudes_deg,
                    .units = {}};
    for (const int64_t date_s : info.dates_s)
      description_.lead_times_s.push_back(date_s - description_.start_s);
    for (int64_t v = 0; v < info.num_variables(); ++v) {
      columns_.push_back(v);
      description_.units.push_back(info.kinds.empty() ? ""
                                                      : info.kinds[static_cast<size_t>(v)].units);
    }
  }

  const ForecastDescription& description() const override { return description_; }

  void read(const std::string& name, size_t lead_time, std::span<float> out) const override {
    const data::DatasetInfo& info = dataset_.info();
    const std::lock_guard lock(mutex_);
    const auto n = static_cast<size_t>(info.num_nodes()), num_variables = columns_.size();
    if (lead_time_ != lead_time) {
      fields_.resize(static_cast<size_t>(info.ensemble_size) * num_variables * n);
      lead_time_.reset();
      data::read_fields(dataset_, static_cast<int64_t>(lead_time), {0, info.num_nodes()}, columns_,
                        scratch_, fields_.data());
      lead_time_ = lead_time;
    }
    const auto column = static_cast<size_t>(info.column(name));
    for (size_t e = 0; e < static_cast<size_t>(info.ensemble_size); ++e) {
      const auto from = fields_.begin() + static_cast<int64_t>((e * num_variables + column) * n);
      std::copy(from, from + static_cast<int64_t>(n), out.begin() + static_cast<int64_t>(e * n));
    }
  }

 private:
  static data::DatasetOptions options_of(const fs::path& path) {
    data::DatasetOptions options;
    options.dataset = path.string();
    return options;
  }

  // What the file says; files that do not have one lead time after the other from the first step.
  int64_t start_of(const data::DatasetInfo& info) const {
    const auto attributes = dataset_.attributes();
    const auto found = attributes.find("forecast_reference_time");
    if (found == attributes.end()) return info.dates_s.front() - info.frequency_s;
    try {
      return parse_date(found->get<std::string>());
    } catch (const std::exception& error) {
      throw DataError(concat("'", info.name, "': forecast_reference_time: ", error.what()),
                      kForecastHint);
    }
  }

  data::AnemoiDataset dataset_;
  ForecastDescription description_;
  std::vector<int64_t> columns_;
  mutable std::mutex mutex_;
  mutable data::ReadScratch scratch_;
  mutable std::optional<size_t> lead_time_;  // of the fields
  mutable std::vector<float> fields_;        // (E, V, N)
};

}  // namespace

std::unique_ptr<ForecastSource> open_zarr_forecast(const fs::path& path) {
  return std::make_unique<ZarrSource>(path);
}

}  // namespace aifs::verify
