// SPDX-License-Identifier: Apache-2.0
#include "app/run/period_overlap.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/check.h"
#include "core/time.h"
#include "data/loader/sampler.h"

namespace aifs::app {

namespace {

// The dates that every sample is compared with, in the order of the samples.
std::vector<std::vector<int64_t>> truths_of(const data::DatasetInfo& info,
                                            const train::Window& window) {
  std::vector<std::vector<int64_t>> truths;
  for (const int64_t row :
       data::usable_anchors(info.num_rows(), info.missing_rows, window.offsets(1))) {
    std::vector<int64_t>& dates = truths.emplace_back();
    for (int64_t t = 1; t <= window.times_out; ++t)
      dates.push_back(info.dates_s[static_cast<size_t>(row + t * window.row_step)]);
  }
  return truths;
}

}  // namespace

std::string overlap_warning(const data::DatasetInfo& training, const data::DatasetInfo& validation,
                            const train::Window& window) {
  std::set<int64_t> trained;
  for (const std::vector<int64_t>& dates : truths_of(training, window))
    trained.insert(dates.begin(), dates.end());
  const std::vector<std::vector<int64_t>> validated = truths_of(validation, window);
  const auto num_seen =
      std::count_if(validated.begin(), validated.end(), [&](const std::vector<int64_t>& dates) {
        return std::any_of(dates.begin(), dates.end(),
                           [&](int64_t date) { return trained.count(date) > 0; });
      });
  if (num_seen == 0) return "";
  std::vector<int64_t> shared;
  std::set_intersection(training.dates_s.begin(), training.dates_s.end(),
                        validation.dates_s.begin(), validation.dates_s.end(),
                        std::back_inserter(shared));
  return concat("the training and validation periods share ", shared.size(), " dates, ",
                format_date(shared.front()), " to ", format_date(shared.back()), ": ", num_seen,
                " of ", validated.size(),
                " validation samples have a truth that is trained on; see data.training and "
                "data.validation");
}

}  // namespace aifs::app
