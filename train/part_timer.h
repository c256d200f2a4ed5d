// SPDX-License-Identifier: Apache-2.0
// Wall-clock seconds per part of the training loop.
#pragma once

#include <array>
#include <chrono>
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
  // Adds the seconds of its lifetime to a part.
  class Scope {
   public:
    Scope(PartTimer& timer, Part part)
        : timer_(timer), part_(part), start_(std::chrono::steady_clock::now()) {}
    ~Scope() {
      timer_.seconds_[static_cast<size_t>(part_)] +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PartTimer& timer_;
    Part part_;
    std::chrono::steady_clock::time_point start_;
  };

  double seconds(Part part) const { return seconds_[static_cast<size_t>(part)]; }
  // A table: part, total seconds, milliseconds per step, share.
  std::string table(int64_t num_steps) const;

 private:
  std::array<double, static_cast<size_t>(Part::kCount)> seconds_{};
};

}  // namespace aifs::train
