// SPDX-License-Identifier: Apache-2.0
#include "parallel/together.h"

#include <ATen/ATen.h>

namespace aifs::parallel {

void together(Communicator& group, const std::function<void()>& action,
              const FailureHandling& failure) {
  std::exception_ptr mine;
  int64_t code = 0;
  try {
    const std::shared_ptr<void> work = group.at_work("a step of its own");
    action();
  } catch (const std::exception& error) {
    mine = std::current_exception();
    code = failure.code_of(error);
  }
  // Takes the largest code and the first rank of the failures.
  const int64_t not_failed = -group.size();
  const at::Tensor worst =
      at::tensor(std::vector<int64_t>{code, mine ? -int64_t{group.rank()} : not_failed}, at::kLong);
  group.all_reduce(worst, Reduction::kMax);
  const int64_t worst_code = worst[0].item<int64_t>();
  if (worst_code == 0) return;
  if (mine && worst[1].item<int64_t>() == -group.rank()) {
    try {
      std::rethrow_exception(mine);
    } catch (const std::exception& error) {
      failure.report(error);
    }
  }
  group.barrier();  // a launcher ends all once one has left, and must not cut the message off
  throw FailedTogether(static_cast<int>(worst_code));
}

}  // namespace aifs::parallel
