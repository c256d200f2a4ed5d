// SPDX-License-Identifier: Apache-2.0
// Work that is done in order by a thread of its own while its caller goes on, a few pieces behind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace aifs::forecast {

class WriteBehind {
 public:
  // `most`: pieces that wait, the one that is being done included; more make add() wait.
  explicit WriteBehind(int64_t most);
  // Drops what has not begun, and waits for what has.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // Rethrows the error of an earlier piece, after which nothing more is done.
  void add(std::function<void()> piece);
  // Waits for all pieces; rethrows the error of one.
  void finish();
  // Seconds that add() and finish() have waited.
  double wait_s() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aifs::forecast
