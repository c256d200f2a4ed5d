// SPDX-License-Identifier: Apache-2.0
// Wall-clock seconds per part of the training loop.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

namespace aifs::train {

enum class Part {
  kData,
  kForward,
  kBackward,
  kCommunication,
  kOptimizer,
  kValidation,
  kCheckpoint,
  kCount
};

class PartTimer {
 public:
  // Adds the seconds of its lifetime to a part, which is a range of that name in timelines.
  class Scope {
   public:
    Scope(PartTimer& timer, Part part);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PartTimer& timer_;
    Part part_;
    std::chrono::steady_clock::time_point start_;
    struct Range;
    std::unique_ptr<Range> range_;
  };

  double seconds(Part part) const { return seconds_[static_cast<size_t>(part)]; }
  // A table: part, total seconds, milliseconds per step, share.
  std::string table(int64_t num_steps) const;

 private:
  std::array<double, static_cast<size_t>(Part::kCount)> seconds_{};
};

}  // namespace aifs::train
