// SPDX-License-Identifier: Apache-2.0
#include "verify/scores.h"

#include <algorithm>
#include <future>
#include <memory>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"

namespace aifs::verify {

namespace {

using Fields = std::shared_ptr<const std::vector<float>>;

// The fields of one lead time, all variables.
struct LeadTime {
  size_t number = 0;  // among the parts
  int64_t valid_s = 0;
  Fields start, truth;
};

// Scores one variable in every region.
void score_variable(const ForecastReader& forecast, const ScoreSetup& setup,
                    const ScoredParts& parts, const LeadTime& lead, size_t v,
                    ForecastScores& result) {
  const auto n = static_cast<size_t>(forecast.num_cells());
  std::vector<float> values(static_cast<size_t>(forecast.num_members()) * n), usual;
  forecast.read(parts.variables[v], lead_time_in(forecast, parts.lead_times_s[lead.number]),
                values);
  if (setup.climatology) {
    usual.resize(n);
    setup.climatology->read(parts.variables[v], lead.valid_s, usual);
  }
  const ComparedFields fields{values, std::span(*lead.truth).subspan(v * n, n),
                              std::span(*lead.start).subspan(v * n, n), usual};
  const std::vector<double> none;
  const std::vector<double>& thresholds = parts.thresholds.empty() ? none : parts.thresholds[v];
  for (size_t r = 0; r < setup.weights.size(); ++r)
    result.scores[parts.place(v, lead.number, r)] =
        score_field(fields, setup.weights[r], thresholds);
}

}  // namespace

size_t lead_time_in(const ForecastReader& forecast, int64_t lead_s) {
  const std::vector<int64_t>& known = forecast.lead_times_s();
  const auto found = std::find(known.begin(), known.end(), lead_s);
  if (found == known.end())
    throw DataError(concat("'", forecast.path(), "' has no fields at ", format_lead_time(lead_s)),
                    "choose lead times that all forecasts have: --lead-times");
  return static_cast<size_t>(found - known.begin());
}

ForecastScores score_forecast(const ForecastReader& forecast, const ScoreSetup& setup,
                              const ScoredParts& parts) {
  setup.truth.check_cells(forecast);
  ForecastScores result{forecast.start_s(), {}, 0};
  result.scores.resize(parts.size());
  const Fields start = setup.truth.at(forecast.start_s());
  const auto truth_at = [&](size_t t) {
    return setup.truth.at(forecast.start_s() + parts.lead_times_s[t]);
  };
  const size_t num_leads = parts.lead_times_s.size();
  Fields next = num_leads > 0 && start ? truth_at(0) : nullptr;
  for (size_t t = 0; t < num_leads; ++t) {
    lead_time_in(forecast, parts.lead_times_s[t]);  // says what is not there
    const LeadTime lead{t, forecast.start_s() + parts.lead_times_s[t], start, next};
    std::future<Fields> reading;
    if (start && t + 1 < num_leads) reading = std::async(std::launch::async, truth_at, t + 1);
    if (start && lead.truth)
      run_on_threads(static_cast<int64_t>(parts.variables.size()), setup.threads, [&](int64_t v) {
        score_variable(forecast, setup, parts, lead, static_cast<size_t>(v), result);
      });
    else
      ++result.num_without_truth;
    if (reading.valid()) next = reading.get();
  }
  return result;
}

std::vector<MeanScores> mean_scores(std::span<const ForecastScores> forecasts, size_t num_parts) {
  std::vector<MeanScores> means(num_parts);
  for (size_t i = 0; i < num_parts; ++i) {
    std::vector<const FieldScores*> scores;
    for (const ForecastScores& forecast : forecasts)
      if (forecast.scores[i]) scores.push_back(&*forecast.scores[i]);
    if (!scores.empty()) means[i] = {mean_of(scores), static_cast<int64_t>(scores.size())};
  }
  return means;
}

}  // namespace aifs::verify
