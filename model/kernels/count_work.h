// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include "core/work_log.h"

namespace aifs::model {

// Tells a log, if there is one, of a kernel that reads or writes each of these tensors (those that
// are defined) once.
inline void count_work(const char* kind, at::ArrayRef<at::Tensor> tensors,
                       double operations = 0.0) {
  if (!WorkLog::is_wanted()) return;
  WorkOfCall work{.kind = kind, .operations = operations};
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) work.bytes += static_cast<double>(tensor.nbytes());
  }
  WorkLog::add(std::move(work));
}

}  // namespace aifs::model
