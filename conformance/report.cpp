// SPDX-License-Identifier: Apache-2.0
#include "conformance/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/first_line.h"

namespace aifs::conformance {

namespace {

constexpr size_t kMostTexts = 5;  // shown in one line
// Graphs that are still to come: cases that ask for them are skipped.
constexpr std::array kPartlyBuilt{"graph",          "nodes",          "edges",
                                  "node attribute", "edge attribute", "post-processor"};

void print_line(const std::string& kind, const std::string& name, const std::string& verdict,
                const std::string& detail) {
  std::printf("%-16s %-44s %-8s %s\n", kind.c_str(), name.c_str(), verdict.c_str(), detail.c_str());
  std::fflush(stdout);
}

// Returns what is wrong with a case whose JSON is not built as this program expects. The texts of
// the JSON library speak of its types, not of the case.
std::string form_of(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  constexpr int kMissingKey = 403;
  const size_t open = text.find('\''), close = text.find('\'', open + 1);
  if (error.id == kMissingKey && close != std::string::npos)
    return concat("the case has no key ", text.substr(open, close + 1 - open));
  return "a value of the case is of another type than in the cases that are known";
}

// The first few of a list of texts, and how many more there are.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (size_t i = 0; i < texts.size() && i < kMostTexts; ++i)
    all += concat(i == 0 ? "" : "; ", texts[i]);
  if (texts.size() > kMostTexts) all += concat("; and ", texts.size() - kMostTexts, " more");
  return all;
}

std::string detail_of(const Comparison& comparison) {
  std::string detail = concat(comparison.num_checks(), " checks");
  if (comparison.worst_ratio() >= 0) {
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, "; %.2e of %.1e in ", comparison.worst_error(),
                  comparison.worst_limit());
    detail += numbers + comparison.worst_name();
  }
  if (comparison.num_beyond() > 0) {
    detail += concat("; ", comparison.num_beyond(),
                     " beyond the limit, within 4 times the reference's own error");
  }
  if (!comparison.remarks().empty()) detail += "; " + joined(comparison.remarks());
  return detail;
}

}  // namespace

void Comparison::add(const std::string& what, double error, double limit, double own_error) {
  ++num_checks_;
  const double ratio = std::isnan(error) ? INFINITY
                       : limit > 0       ? error / limit
                       : error > 0       ? 2.0
                                         : 0.0;
  if (ratio > worst_ratio_) {
    worst_ratio_ = ratio;
    worst_name_ = what;
    worst_error_ = error;
    worst_limit_ = limit;
  }
  if (error > limit && error <= std::min(kOwnErrors * own_error, kMostLimits * limit)) {
    ++num_beyond_;
    return;
  }
  if (!(error <= limit)) failures_.push_back(concat(what, ": ", error, " > ", limit));
}

void Comparison::require(bool holds, const std::string& what) {
  ++num_checks_;
  if (!holds) failures_.push_back(what);
}

void Report::run(const std::string& kind, const std::string& name,
                 const std::function<void(Comparison&)>& body) {
  Comparison comparison;
  const auto fail = [&](const std::string& why) {
    ++num_failed_;
    print_line(kind, name, "FAILED", why);
  };
  try {
    body(comparison);
  } catch (const NotSupported& reason) {
    if (std::find(kPartlyBuilt.begin(), kPartlyBuilt.end(), kind) != kPartlyBuilt.end())
      return skip(kind, name, concat("not supported yet: ", reason.what()));
    return fail(concat("not supported: ", reason.what()));
  } catch (const NotUnderstood& words) {
    return skip(kind, name, concat("not understood: ", words.what()));
  } catch (const nlohmann::json::exception& error) {
    return fail(form_of(error));
  } catch (const Error& error) {
    return fail(concat(error.what(), error.hint().empty() ? "" : " — ", error.hint()));
  } catch (const std::exception& error) {
    return fail(first_line(error.what()));
  }
  if (comparison.passed()) {
    ++num_passed_;
    return print_line(kind, name, "passed", detail_of(comparison));
  }
  fail(comparison.num_checks() == 0 ? "nothing was compared" : joined(comparison.failures()));
}

void Report::skip(const std::string& kind, const std::string& name, const std::string& reason) {
  ++num_skipped_;
  print_line(kind, name, "skipped", reason);
}

void Report::print_summary() const {
  std::printf("%d passed, %d failed, %d skipped\n", num_passed_, num_failed_, num_skipped_);
}

}  // namespace aifs::conformance
