// SPDX-License-Identifier: Apache-2.0
#include "forecast/zarr_forecast.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"
#include "data/fields/moments.h"
#include "data/fields/work_threads.h"
#include "data/tools/store_parts.h"
#include "data/zarr/array_writer.h"

namespace aifs::forecast {

namespace {

class ZarrForecast : public ForecastFile {
 public:
  ZarrForecast(fs::path path, ForecastContents contents)
      : path_(std::move(path)),
        contents_(std::move(contents)),
        temporary_(contents_.partial.path.empty() ? temporary_name(path_) : contents_.partial.path),
        staging_(temporary_ / data::kBuildFolder / "staging"),
        moments_(contents_.variables.size()) {
    if (!contents_.partial.state.empty()) {
      open_kept();
    } else {
      std::error_code ignored;
      fs::remove_all(temporary_, ignored);  // of another forecast, if it is there
    }
    make_directories(staging_);
    writer_ = std::make_unique<zarr::ArrayWriter>(temporary_, "data", field_settings(), staging_);
  }
  ~ZarrForecast() override {
    if (storing_.valid()) storing_.wait();
    std::error_code ignored;
    if (!finished_ && !is_kept_) fs::remove_all(temporary_, ignored);
  }

  void write(int64_t lead_time, std::span<const float> fields) override {
    const auto members = static_cast<size_t>(contents_.num_members);
    const size_t variables = contents_.variables.size(), cells = contents_.latitudes_deg.size();
    AIFS_CHECK(fields.size() == members * variables * cells, "fields of another size");
    for (size_t e = 0; e < members; ++e) {
      // The fields of a member are those of a chunk.
      const std::span<const float> own = fields.subspan(e * variables * cells, variables * cells);
      zarr::ItemBlock block{zarr::Region::whole(writer_->files().shape()), std::as_bytes(own), {}};
      block.region.begin[0] = lead_time, block.region.end[0] = lead_time + 1;
      block.region.begin[2] = static_cast<int64_t>(e);
      block.region.end[2] = static_cast<int64_t>(e) + 1;
      const std::vector<int64_t> chunk{lead_time, 0, static_cast<int64_t>(e), 0};
      std::future<void> counted =
          std::async(std::launch::async, [&] { add_moments(own, variables, cells); });
      // The bytes of the chunk before are written meanwhile.
      zarr::WriteScratch& scratch = scratch_[turn_++ % scratch_.size()];
      writer_->encode_file(chunk, block, scratch);
      wait_for_store();
      storing_ = std::async(std::launch::async,
                            [this, chunk, &scratch] { writer_->write_encoded(chunk, scratch); });
      counted.get();
    }
  }

  // The chunks are in files of their own; statistics are not.
  std::string keep() override {
    wait_for_store();
    zarr::sync_store(temporary_);
    is_kept_ = !contents_.partial.path.empty();
    std::string state(moments_.size() * sizeof(data::Moments), '\0');
    std::memcpy(state.data(), moments_.data(), state.size());
    std::string digits;
    for (const char c : state)
      for (const int half : {static_cast<unsigned char>(c) >> 4, c & 15})
        digits += kDigits[half];
    return digits;
  }

  void finish() override {
    wait_for_store();
    writer_->write_metadata();
    std::vector<int64_t> dates_s;
    for (const int64_t lead_s : contents_.lead_times_s)
      dates_s.push_back(contents_.start_s + lead_s);
    const data::VectorWriter vectors(temporary_, kFormat, staging_);
    vectors.write_dates(dates_s);
    vectors.write_cells(contents_.latitudes_deg, contents_.longitudes_deg);
    vectors.write_statistics("", data::to_statistics(moments_));
    for (const auto& [key, json] : zarr::group_metadata(kFormat, attributes(dates_s)))
      zarr::write_staged_json(staging_, temporary_ / key, json);
    std::error_code error;
    fs::remove_all(temporary_ / data::kBuildFolder, error);
    if (error) throw Error(concat("cannot remove '", staging_.string(), "': ", error.message()));
    zarr::sync_store(temporary_);
    fs::rename(temporary_, path_, error);
    if (error) throw Error(concat("cannot write '", path_.string(), "': ", error.message()));
    finished_ = true;
  }

 private:
  static constexpr int kFormat = 2;
  static constexpr int64_t kMostThreads = 8;

  // Throws what the writing of the last chunk threw.
  void wait_for_store() {
    if (storing_.valid()) storing_.get();
  }

  // Of the fields of a member, beside the thread that compresses them.
  void add_moments(std::span<const float> fields, size_t variables, size_t cells) {
    const auto add = [&](int64_t variable) {
      const auto v = static_cast<size_t>(variable);
      moments_[v].join(data::Moments::of(fields.subspan(v * cells, cells)));
    };
    run_on_threads(static_cast<int64_t>(variables), data::threads_for(kMostThreads / 2, 1), add);
  }

  static constexpr const char* kDigits = "0123456789abcdef";

  void open_kept() {
    static_assert(std::is_trivially_copyable_v<data::Moments>);
    const std::string& digits = contents_.partial.state;
    if (digits.size() != 2 * moments_.size() * sizeof(data::Moments) ||
        digits.find_first_not_of(kDigits) != std::string::npos || !fs::exists(temporary_))
      refuse_partial(temporary_, "is not what it was");
    std::string state;
    for (size_t i = 0; i < digits.size(); i += 2)
      state += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    std::memcpy(moments_.data(), state.data(), state.size());
    is_kept_ = true;
  }

  zarr::ArraySettings field_settings() const {
    const auto cells = static_cast<int64_t>(contents_.latitudes_deg.size());
    const auto variables = static_cast<int64_t>(contents_.variables.size());
    zarr::ArraySettings settings{.format = kFormat,
                                 .shape = {static_cast<int64_t>(contents_.lead_times_s.size()),
                                           variables, contents_.num_members, cells},
                                 .chunks = {1, variables, 1, cells}};
    settings.compression.level = 1;
    settings.threads = static_cast<int>(data::threads_for(kMostThreads, 1));
    settings.fill.real = std::numeric_limits<double>::quiet_NaN();
    settings.attributes =
        zarr::Json{{"_ARRAY_DIMENSIONS", {"time", "variable", "ensemble", "cell"}}};
    return settings;
  }

  zarr::Json attributes(const std::vector<int64_t>& dates_s) const {
    data::StoreDescription store{
        .attribution = contents_.program,
        .description = contents_.model,
        .licence = "",
        .variables = {},
        .dates_s = dates_s,
        .frequency_s = dates_s.size() > 1 ? dates_s[1] - dates_s[0] : contents_.lead_times_s[0],
        .members = contents_.num_members,
        .cells = static_cast<int64_t>(contents_.latitudes_deg.size()),
        .field_shape = contents_.field_shape,
        .allow_nans = true};
    for (const ForecastVariable& variable : contents_.variables) {
      store.variables.push_back(variable.name);
      store.units.push_back(variable.units);
    }
    zarr::Json json = data::store_attributes(store, writer_->settings());
    json[kIdentityAttribute] = contents_.identity;
    json["forecast_reference_time"] = format_date(contents_.start_s);
    return json;
  }

  fs::path path_;
  ForecastContents contents_;
  fs::path temporary_, staging_;
  std::unique_ptr<zarr::ArrayWriter> writer_;
  std::array<zarr::WriteScratch, 2> scratch_;
  size_t turn_ = 0;
  std::future<void> storing_;  // the bytes of the last chunk
  std::vector<data::Moments> moments_;
  bool finished_ = false, is_kept_ = false;
};

}  // namespace

std::unique_ptr<ForecastFile> create_zarr_forecast(const fs::path& path,
                                                   ForecastContents contents) {
  return std::make_unique<ZarrForecast>(path, std::move(contents));
}

std::string zarr_forecast_identity(const fs::path& path) {
  const fs::path file = path / ".zattrs";
  const auto json = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw DataError(concat("'", file.string(), "' is no JSON object"),
                    "remove the folder, or choose another one for the forecasts");
  return json.value(kIdentityAttribute, "");
}

}  // namespace aifs::forecast
