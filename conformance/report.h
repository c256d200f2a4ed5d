// SPDX-License-Identifier: Apache-2.0
// Collects what aifs-conformance finds: one line per case, a summary at the end.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/check.h"

namespace aifs::conformance {

// Thrown by a case that asks for something not built; its text names what.
class NotSupported : public Error {
 public:
  using Error::Error;
};

// Thrown where a case says what it expects in words that are not known: whether it holds cannot be
// said. Its text quotes the words. Such a case is skipped, whatever its kind.
class NotUnderstood : public Error {
 public:
  using Error::Error;
};

// Compares named quantities with their limits within one case and remembers the worst.
class Comparison {
 public:
  // Two computations in fp32 that are both as far from the truth as the reference's, with a margin;
  // and how far a limit may be stretched for it.
  static constexpr double kOwnErrors = 4.0, kMostLimits = 10.0;

  // `error` and `limit` in the same unit; a NaN error fails.
  // `own_error` is that of the reference itself, where it is known (its distance from a twin in a
  // wider type, in the unit of `error`): what is beyond the limit, but within kOwnErrors times that
  // and kMostLimits times the limit, passes and is counted in the line of the case.
  void add(const std::string& what, double error, double limit, double own_error = 0.0);
  // A condition that must hold exactly (integers, texts, orders).
  void require(bool holds, const std::string& what);
  // Something worth knowing of a case that is no fault, such as advice that was not followed.
  void remark(const std::string& text) { remarks_.push_back(text); }

  bool passed() const { return failures_.empty() && num_checks_ > 0; }
  int num_checks() const { return num_checks_; }
  // The quantity closest to (or furthest beyond) its limit, as error / limit.
  double worst_ratio() const { return worst_ratio_; }
  const std::string& worst_name() const { return worst_name_; }
  double worst_error() const { return worst_error_; }
  double worst_limit() const { return worst_limit_; }
  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  // Checks that passed only by that.
  int num_beyond() const { return num_beyond_; }

 private:
  int num_checks_ = 0, num_beyond_ = 0;
  double worst_ratio_ = -1.0;
  double worst_error_ = 0.0;
  double worst_limit_ = 0.0;
  std::string worst_name_;
  std::vector<std::string> failures_, remarks_;
};

class Report {
 public:
  // Runs one case and prints its line: kind, name, largest error against its limit, verdict.
  // An exception gives "failed" with its text; so does what is not supported, but for kinds of
  // which not everything is built. What is not understood is skipped.
  void run(const std::string& kind, const std::string& name,
           const std::function<void(Comparison&)>& body);
  // A case that is known to exist but cannot be run. The reason stands in its line.
  void skip(const std::string& kind, const std::string& name, const std::string& reason);
  // Figures of a case that somebody may want to look at, such as the loss of every step.
  void keep(const std::string& name, std::vector<double> figures) {
    AIFS_CHECK(!kept_.contains(name), "two cases are called ", name);
    kept_[name] = std::move(figures);
  }

  // "N passed, N failed, N skipped", alone on a line.
  void print_summary() const;
  int num_passed() const { return num_passed_; }
  int num_failed() const { return num_failed_; }
  int num_skipped() const { return num_skipped_; }
  const std::map<std::string, std::vector<double>>& kept() const { return kept_; }

 private:
  int num_passed_ = 0;
  int num_failed_ = 0;
  int num_skipped_ = 0;
  std::map<std::string, std::vector<double>> kept_;
};

}  // namespace aifs::conformance
