// SPDX-License-Identifier: Apache-2.0
// Files with states to begin forecasts from, netCDF and GRIB, as lists of fields with the names
// that Anemoi gives variables: "2t", "t_500".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace aifs::data {

struct StateField {
  std::string name;
  std::string units;              // empty: the file does not say
  std::optional<int64_t> date_s;  // of validity; none: the same at all dates
  int64_t members = 1;
  size_t grid = 0;  // of StateFile::grids()
  // True for several fields that the file tells apart by what a name does not say, a kind of level
  // perhaps.
  bool is_ambiguous = false;
};

// Where the cells of fields are; no coordinates where a file does not say.
struct StateGrid {
  std::vector<double> latitudes_deg, longitudes_deg;
  int64_t num_cells = 0;
};

// Thread-safe. Errors are DataErrors that name the file and the field.
class StateFile {
 public:
  virtual ~StateFile() = default;
  virtual const std::string& path() const = 0;
  virtual const std::vector<StateField>& fields() const = 0;
  virtual const std::vector<StateGrid>& grids() const = 0;
  // Reads a field: `out` (members, cells), NaN where it has no value.
  virtual void read(size_t field, std::span<float> out) const = 0;
};

}  // namespace aifs::data
