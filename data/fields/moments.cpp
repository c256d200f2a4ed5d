// SPDX-License-Identifier: Apache-2.0
#include "data/fields/moments.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"

namespace aifs::data {

namespace {

constexpr int64_t kBlockRows = 32;

// The moments of all variables and lags over some rows.
template <class T>
class BlockPass {
 public:
  BlockPass(const StatisticsWindow& window, const FieldsOfRow& fields, RowFields<T> read)
      : window_(window), fields_(fields), read_(std::move(read)) {
    const int64_t most = window.lags.empty() ? 0 : window.lags.back();
    rows_.resize(static_cast<size_t>(most) + 1);
    held_.assign(rows_.size(), -1);
  }

  // (1 + lags, variables)
  std::vector<Moments> run(int64_t begin, int64_t end) {
    const int64_t most = static_cast<int64_t>(rows_.size()) - 1;
    std::vector<Moments> moments(static_cast<size_t>(fields_.variables) *
                                 (window_.lags.size() + 1));
    for (int64_t row = std::max(window_.first_row, begin - most); row < end; ++row) {
      if (std::ranges::binary_search(window_.missing_rows, row)) continue;
      std::vector<T>& values = rows_[slot(row)];
      values.resize(static_cast<size_t>(fields_.variables * fields_.values));
      read_(row, values);
      held_[slot(row)] = row;
      if (row >= begin) add(row, values, moments);
    }
    std::ranges::fill(held_, -1);
    return moments;
  }

 private:
  size_t slot(int64_t row) const {
    return static_cast<size_t>(row % static_cast<int64_t>(rows_.size()));
  }

  void add(int64_t row, const std::vector<T>& values, std::vector<Moments>& moments) {
    const auto count = static_cast<size_t>(fields_.values);
    for (size_t v = 0; v < static_cast<size_t>(fields_.variables); ++v) {
      const std::span<const T> own(values.data() + v * count, count);
      moments[v].join(Moments::of(own));
      for (size_t k = 0; k < window_.lags.size(); ++k) {
        const int64_t earlier = row - window_.lags[k];
        if (earlier < window_.first_row || held_[slot(earlier)] != earlier) continue;
        const T* before = rows_[slot(earlier)].data() + v * count;
        difference_.resize(count);
        for (size_t i = 0; i < count; ++i)
          difference_[i] = own[i] - before[i];
        moments[(k + 1) * static_cast<size_t>(fields_.variables) + v].join(
            Moments::of(std::span<const T>(difference_)));
      }
    }
  }

  const StatisticsWindow& window_;
  const FieldsOfRow& fields_;
  RowFields<T> read_;
  std::vector<std::vector<T>> rows_;  // the last ones
  std::vector<int64_t> held_;         // which these are
  std::vector<T> difference_;
};

}  // namespace

template <class T>
Moments Moments::of(std::span<const T> values) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums{}, squares{};
  std::array<int64_t, kLanes> counts{};
  Moments result;
  T least = std::numeric_limits<T>::infinity(), most = -least;
  for (size_t i = 0; i < values.size(); ++i) {
    const T x = values[i];
    const bool is_number = x == x;
    sums[i % kLanes] += is_number ? static_cast<double>(x) : 0.0;
    counts[i % kLanes] += is_number ? 1 : 0;
    least = x < least ? x : least;
    most = x > most ? x : most;
  }
  double sum = 0.0;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    sum += sums[lane];
    result.count += counts[lane];
  }
  if (result.count == 0) return result;
  result.mean = sum / static_cast<double>(result.count);
  for (size_t i = 0; i < values.size(); ++i) {
    const double distance = static_cast<double>(values[i]) - result.mean;
    squares[i % kLanes] += values[i] == values[i] ? distance * distance : 0.0;
  }
  for (const double square : squares)
    result.m2 += square;
  result.minimum = static_cast<double>(least);
  result.maximum = static_cast<double>(most);
  return result;
}

template Moments Moments::of(std::span<const float>);
template Moments Moments::of(std::span<const double>);

void Moments::join(const Moments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const auto n1 = static_cast<double>(count), n2 = static_cast<double>(other.count);
  const double distance = other.mean - mean;
  mean = (n1 * mean + n2 * other.mean) / (n1 + n2);
  m2 += other.m2 + distance * distance * n1 * n2 / (n1 + n2);
  count += other.count;
  minimum = std::min(minimum, other.minimum);
  maximum = std::max(maximum, other.maximum);
}

Statistics to_statistics(std::span<const Moments> variables) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Statistics result;
  for (const Moments& m : variables) {
    const bool any = m.count > 0;
    result.mean.push_back(any ? m.mean : kNone);
    result.stdev.push_back(any ? std::sqrt(m.m2 / static_cast<double>(m.count)) : kNone);
    result.minimum.push_back(any ? m.minimum : kNone);
    result.maximum.push_back(any ? m.maximum : kNone);
  }
  return result;
}

template <class T>
ComputedStatistics compute_statistics(const StatisticsWindow& window, const FieldsOfRow& fields,
                                      const RowFields<T>& read, int64_t threads,
                                      ProgressSink* progress) {
  const int64_t rows = window.end_row - window.first_row;
  const int64_t row_bytes = fields.variables * fields.values * static_cast<int64_t>(sizeof(T));
  const int64_t kept = 2 + (window.lags.empty() ? 0 : window.lags.back());
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  if (progress) progress->start("statistics", rows, "dates");
  std::vector<std::vector<Moments>> parts(static_cast<size_t>(blocks));
  run_on_threads(blocks, threads_for(threads, kept * row_bytes), [&](int64_t block) {
    const int64_t begin = window.first_row + block * kBlockRows;
    const int64_t end = std::min(begin + kBlockRows, window.end_row);
    BlockPass<T> pass(window, fields, [&](int64_t row, std::span<T> out) {
      read(row, out);
      if (progress && row >= begin) progress->add(1, row_bytes);
    });
    parts[static_cast<size_t>(block)] = pass.run(begin, end);
  });
  if (progress) progress->finish();
  const auto width = static_cast<size_t>(fields.variables);
  std::vector<Moments> all(width * (window.lags.size() + 1));
  for (const std::vector<Moments>& part : parts) {
    for (size_t i = 0; i < all.size(); ++i)
      all[i].join(part[i]);
  }
  ComputedStatistics result{to_statistics(std::span(all).first(width)), {}};
  for (size_t k = 1; k <= window.lags.size(); ++k)
    result.tendencies.push_back(to_statistics(std::span(all).subspan(k * width, width)));
  return result;
}

template ComputedStatistics compute_statistics(const StatisticsWindow&, const FieldsOfRow&,
                                               const RowFields<float>&, int64_t, ProgressSink*);
template ComputedStatistics compute_statistics(const StatisticsWindow&, const FieldsOfRow&,
                                               const RowFields<double>&, int64_t, ProgressSink*);

int64_t default_statistics_end(std::span<const int64_t> dates_s) {
  AIFS_CHECK(!dates_s.empty());
  const auto count = static_cast<int64_t>(dates_s.size());
  const int64_t last_s = dates_s.back();
  const double years =
      std::nearbyint(static_cast<double>(last_s - dates_s.front()) / (365.25 * 86400.0));
  if (count < 10 || years < 10.0) {
    const auto most = static_cast<int64_t>(0.8 * static_cast<double>(count));
    return dates_s[static_cast<size_t>(std::max<int64_t>(most, 1) - 1)];
  }
  const int64_t year = to_calendar(last_s).year - (years < 20.0 ? 1 : 3);
  int64_t end_s = dates_s.front();
  for (const int64_t date_s : dates_s) {
    if (to_calendar(date_s).year <= year) end_s = date_s;
  }
  return end_s;
}

}  // namespace aifs::data
