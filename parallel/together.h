// SPDX-License-Identifier: Apache-2.0
// Steps that may fail on one rank only, taken so that no rank waits for one that has given up.
#pragma once

#include <exception>
#include <functional>

#include "core/check.h"
#include "parallel/communicator.h"

namespace aifs::parallel {

// Thrown on all ranks when a step failed on some; what is wrong has been reported.
class FailedTogether : public Error {
 public:
  explicit FailedTogether(int code) : Error("a step failed on some rank"), code_(code) {}
  // Returns what `code_of` gave for the failure (the largest, if several ranks failed).
  int code() const { return code_; }

 private:
  int code_;
};

// Describes what to do with the exception of a step.
struct FailureHandling {
  std::function<int(const std::exception&)> code_of;  // > 0
  std::function<void(const std::exception&)> report;  // called on the first rank that failed only
};

// Runs `action` on every rank and waits for all. If it throws anywhere, FailedTogether is thrown
// everywhere. `action` must not use the group.
void together(Communicator& group, const std::function<void()>& action,
              const FailureHandling& failure);

}  // namespace aifs::parallel
