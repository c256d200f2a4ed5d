// SPDX-License-Identifier: Apache-2.0
#include "verify/forecast_reader.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::verify {

ForecastReader::ForecastReader(const fs::path& path)
    : source_(folder_exists(path) ? open_zarr_forecast(path) : open_netcdf_forecast(path)) {}

void ForecastReader::read(const std::string& name, size_t lead_time, std::span<float> out) const {
  const std::vector<std::string>& known = variables();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw DataError(concat("'", path(), "' has no variable '", name, "'"),
                    "choose variables that all forecasts have: --variables");
  AIFS_CHECK(static_cast<int64_t>(out.size()) == num_members() * num_cells(), "another size");
  source_->read(name, lead_time, out);
}

std::vector<fs::path> forecast_files(const fs::path& given) {
  if (!path_exists(given))
    throw DataError(concat("'", given.string(), "' does not exist"), kForecastHint);
  if (!folder_exists(given) || path_exists(given / ".zgroup")) return {given};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(given)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("forecast-") && (name.ends_with(".nc") || name.ends_with(".zarr")))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw DataError(
        concat("'", given.string(), "' has no files called forecast-*.nc or forecast-*.zarr"),
        kForecastHint);
  return files;
}

}  // namespace aifs::verify
