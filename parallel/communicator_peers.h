// SPDX-License-Identifier: Apache-2.0
// A communicator as what modules without LibTorch exchange arrays by (core/peers.h).
#pragma once

#include <memory>

#include "core/peers.h"
#include "parallel/communicator.h"

namespace aifs::parallel {

class CommunicatorPeers : public Peers {
 public:
  // `group` outlives it. With `work` ("building a graph") ranks that wait for this one know that
  // it is at work whenever it is not in an operation of this object.
  explicit CommunicatorPeers(Communicator& group, const char* work = nullptr);

  int64_t rank() const override { return group_.rank(); }
  int64_t size() const override { return group_.size(); }
  std::vector<int64_t> exchange_counts(const std::vector<int64_t>& counts) override;
  void exchange_items(const void* items, const std::vector<int64_t>& counts, void* received,
                      const std::vector<int64_t>& received_counts, int64_t width) override;
  void gather_items(const void* items, void* all, const std::vector<int64_t>& counts,
                    int64_t width) override;

 private:
  // Calls operation() as a rank that is not at work of its own.
  template <class Operation>
  void in_group(const Operation& operation);

  Communicator& group_;
  const char* work_;
  std::shared_ptr<void> at_work_;
};

}  // namespace aifs::parallel
