// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_parts.h"

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

using zarr::Json;

Json store_attributes(const StoreDescription& store, const zarr::ArraySettings& fields) {
  AIFS_CHECK(!store.dates_s.empty(), "a dataset without dates");
  const std::string first = format_date(store.dates_s.front());
  const std::string last = format_date(store.dates_s.back());
  Json metadata = Json::object();
  for (size_t v = 0; v < store.variables.size(); ++v) {
    Json& own = metadata[store.variables[v]] = Json::object();
    if (!store.units.empty() && !store.units[v].empty()) own["units"] = store.units[v];
  }
  return {
      {"allow_nans", store.allow_nans},
      {"attribution", store.attribution},
      {"chunks", fields.chunks},
      {"constant_fields", Json::array()},
      {"data_request", Json::object()},
      {"description", store.description},
      {"dimensions", {"dates", "variables", "ensembles", "values"}},
      {"dtype", "float32"},
      {"end_date", last},
      {"ensemble_dimension", store.members},
      {"field_shape", store.field_shape.empty() ? Json({store.cells}) : Json(store.field_shape)},
      {"flatten_grid", true},
      {"frequency", format_duration(store.frequency_s)},
      {"last_date", last},
      {"licence", store.licence},
      {"missing_dates", Json::array()},
      {"order_by", {"valid_datetime", "param_level", "number"}},
      {"resolution", store.resolution.empty() ? Json() : Json(store.resolution)},
      {"shape", fields.shape},
      {"start_date", first},
      {"statistics_end_date", last},
      {"statistics_start_date", first},
      {"variables", store.variables},
      {"variables_metadata", metadata},
      {"variables_with_nans", store.allow_nans ? Json(store.variables) : Json::array()},
      {"version", "0.30"}};
}

void VectorWriter::write(const std::string& name, std::span<const std::byte> values, int64_t count,
                         const zarr::DataType& type, const char* dimension) const {
  zarr::ArraySettings settings{
      .format = format_, .shape = {count}, .chunks = {count}, .type = type};
  settings.attributes = Json{{"_ARRAY_DIMENSIONS", {dimension}}};
  const zarr::ArrayWriter writer(store_, name, settings, staging_);
  const int64_t first = 0;
  zarr::WriteScratch scratch;
  writer.write({&first, 1}, {{{0}, {count}}, values}, scratch);
  writer.write_metadata();
}

void VectorWriter::write_dates(const std::vector<int64_t>& dates_s) const {
  write("dates", std::as_bytes(std::span(dates_s)), static_cast<int64_t>(dates_s.size()),
        {.kind = zarr::Kind::kDate, .item_bytes = 8}, "time");
}

namespace {

constexpr zarr::DataType kReal{.kind = zarr::Kind::kFloat, .item_bytes = sizeof(double)};

}  // namespace

void VectorWriter::write_cells(const std::vector<double>& latitudes_deg,
                               const std::vector<double>& longitudes_deg) const {
  const auto cells = static_cast<int64_t>(latitudes_deg.size());
  write("latitudes", std::as_bytes(std::span(latitudes_deg)), cells, kReal, "cell");
  write("longitudes", std::as_bytes(std::span(longitudes_deg)), cells, kReal, "cell");
}

void VectorWriter::write_statistics(const std::string& prefix, const Statistics& s) const {
  const auto count = static_cast<int64_t>(s.mean.size());
  const auto put = [&](const char* name, const std::vector<double>& values) {
    write(prefix + name, std::as_bytes(std::span(values)), count, kReal, "variable");
  };
  put("mean", s.mean);
  put("stdev", s.stdev);
  put("minimum", s.minimum);
  put("maximum", s.maximum);
}

}  // namespace aifs::data
