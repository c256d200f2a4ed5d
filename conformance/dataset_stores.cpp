// SPDX-License-Identifier: Apache-2.0
#include "conformance/dataset_stores.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "data/zarr/array.h"

namespace aifs::conformance {

// Takes a folder or an archive as the place of the stores.
bool DatasetStores::use(const fs::path& place) {
  if (fs::is_directory(place)) {
    folder_ = place;
    return true;
  }
  const fs::path archive = place.extension() == ".tar" ? place : fs::path(place.string() + ".tar");
  if (!fs::exists(archive)) return false;
  unpacked_.emplace();
  unpack_tar(archive, unpacked_->path());
  folder_ = unpacked_->path();
  return true;
}

DatasetStores::DatasetStores(const CaseFile& file) {
  const fs::path folder = file.json_path.parent_path();
  if (use(folder / file.name)) return;
  std::vector<fs::path> places;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool holds_stores = entry.is_directory() ? entry.path().extension() != ".zarr"
                                                   : entry.path().extension() == ".tar";
    if (holds_stores && entry.path().filename().string().starts_with(file.name + "_"))
      places.push_back(entry.path());
  }
  std::sort(places.begin(), places.end());
  if (!places.empty() && use(places.front())) return;
  const std::string beside = (folder / file.name).string();
  throw DataError(concat("neither '", beside, "' nor '", beside, ".tar' holds the stores"));
}

std::string DatasetStores::single(const std::string& name) const {
  const fs::path wanted = folder_ / (name + ".zarr");
  if (fs::exists(wanted)) return wanted.string();
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == ".zarr") found.push_back(entry.path().string());
  }
  if (found.size() == 1) return found.front();
  throw DataError(concat("there is no '", name, ".zarr' among ", found.size(), " stores"));
}

std::string text_of(const Error& error) {
  return error.hint().empty() ? error.what() : concat(error.what(), " (", error.hint(), ")");
}

bool is_refusal(const Json& value) {
  return value.is_string() || (value.is_object() && value.contains("python_error"));
}

std::vector<int64_t> stored_rows(const data::AnemoiDataset& dataset) {
  const data::DatasetInfo& info = dataset.info();
  const int64_t num_stored = dataset.data().meta().shape.at(0);
  std::vector<int64_t> rows(static_cast<size_t>(info.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  if (num_stored == info.num_rows()) return rows;
  const zarr::Array dates(data::open_store(info.name), "dates");
  std::map<int64_t, int64_t> number_of_date;
  for (const int64_t count : dates.read<int64_t>({{0}, {num_stored}})) {
    const auto number = static_cast<int64_t>(number_of_date.size());
    number_of_date.emplace(zarr::to_seconds(dates.meta().type.unit, count), number);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto found = number_of_date.find(info.dates_s[row]);
    rows[row] = found == number_of_date.end() ? -1 : found->second;
  }
  return rows;
}

}  // namespace aifs::conformance
