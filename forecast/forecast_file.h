// SPDX-License-Identifier: Apache-2.0
// A forecast from one date on its way to a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::forecast {

// Attribute of files that holds ForecastContents::identity.
inline constexpr const char* kIdentityAttribute = "aifs_train_identity";

// What a write that fails says besides the reason of the system.
inline constexpr const char* kFullDiskHint = "is the disk full or the quota used up?";

struct ForecastVariable {
  std::string name;             // as the dataset calls it
  std::string units;            // empty: the dataset does not say
  std::string level_type = {};  // "pl", "ml", ...; empty: the dataset does not say
  int64_t period_s = 0;         // that a value stands for; 0: an instant, or not known
};

// Where a file is until it is whole.
struct PartialFile {
  fs::path path = {};      // empty: a name of its own, and nothing is left of it without finish()
  std::string state = {};  // what keep() returned: the lead times until then are there
};

// Describes what a file holds: fields of V variables and E members at L lead times, on N cells.
struct ForecastContents {
  int64_t start_s = 0;                                // date of the newest input state
  std::vector<int64_t> lead_times_s;                  // (L) ascending
  std::vector<ForecastVariable> variables;            // (V)
  int64_t num_members = 1;                            // E
  std::vector<double> latitudes_deg, longitudes_deg;  // (N)
  std::vector<int64_t> field_shape;                   // {N}, or {rows, columns}
  std::string model;                                  // which weights, for people
  std::string program;                                // name and version
  std::string identity;                               // of what the forecast was made of
  PartialFile partial = {};
};

class ForecastFile {
 public:
  virtual ~ForecastFile() = default;

  // Writes the fields of one lead time, (E, V, N), physical units; NaN where there is no value.
  // Lead times come in order. Throws Error naming file, variable and lead time.
  virtual void write(int64_t lead_time, std::span<const float> fields) = 0;
  // Makes the lead times so far outlive the process, where the file has a PartialFile. Returns the
  // state that another one of the same contents goes on from. Throws Error.
  virtual std::string keep() = 0;
  // Gives the file its name, once all lead times are there. Without it nothing is left.
  virtual void finish() = 0;
};

// What a state that cannot be gone on from is.
[[noreturn]] inline void refuse_partial(const fs::path& path, const std::string& why) {
  throw DataError(concat("what there is of a forecast in '", path.string(), "' ", why));
}

}  // namespace aifs::forecast
