// SPDX-License-Identifier: Apache-2.0
// Decodes every chunk of an Anemoi dataset and looks at every value.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/fields/work_threads.h"
#include "data/zarr/json_text.h"
#include "data/zarr/store.h"

namespace aifs::data {

struct CheckOptions {
  // A value is an outlier if it is further beyond the stored minimum or maximum of its variable
  // than so many times the range between them.
  double margin = 1.0;
  int64_t threads = 0;  // 0: as many as there are cores
};

// Goes on after everything that is damaged, and gives
//   "faults"     texts of what is wrong, one for each damaged file or attribute
//   "absent"     chunks that are not there, of dates that are not declared missing
//   "variables"  one object each: values, nan, infinite, outliers, wrong, minimum, maximum
//   "findings"   the same by date and variable, where there is an infinity, an outlier, a wrong
//                value, or NaN in a variable that should have none; in order of dates
//   "chunks", "bytes" that were decoded;  "sound": whether nothing is wrong
// Whether NaN is to be expected say the attributes allow_nans and variables_with_nans; if there are
// neither, it is. Wrong values are such of a store of `data synth` that are not what their place
// says. Throws DataError if there is no store.
zarr::Json check_store(const std::shared_ptr<const zarr::Store>& store, const CheckOptions& options,
                       ProgressSink* progress);

// For people, as lines.
std::string check_text(const zarr::Json& report);

}  // namespace aifs::data
