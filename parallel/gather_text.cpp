// SPDX-License-Identifier: Apache-2.0
#include "parallel/gather_text.h"

#include <ATen/ATen.h>

#include <cstring>

#include "core/check.h"

namespace aifs::parallel {

std::vector<std::string> gather_text(Communicator& group, const std::string& text) {
  const Counts ones(static_cast<size_t>(group.size()), 1);
  const auto length = static_cast<int64_t>(text.size());
  const at::Tensor lengths = group.all_gather_rows(at::full({1}, length, at::kLong), ones);
  const Counts counts(lengths.const_data_ptr<int64_t>(),
                      lengths.const_data_ptr<int64_t>() + lengths.numel());
  const at::Tensor mine = at::empty({length}, at::kByte);
  std::memcpy(mine.data_ptr(), text.data(), text.size());
  const at::Tensor all = group.all_gather_rows(mine, counts);
  std::vector<std::string> texts;
  const char* at = static_cast<const char*>(all.const_data_ptr());
  for (const int64_t count : counts) {
    texts.emplace_back(at, static_cast<size_t>(count));
    at += count;
  }
  return texts;
}

void require_same(Communicator& group, const std::string& what, const std::string& text) {
  const std::vector<std::string> texts = gather_text(group, text);
  std::string different;
  for (size_t r = 1; r < texts.size(); ++r) {
    if (texts[r] != texts[0]) different += concat(different.empty() ? "" : ", ", r);
  }
  if (different.empty()) return;
  throw ConfigError("parallel",
                    concat("the ", what, " of rank ", different, " differs from that of rank 0"),
                    "start the same program with the same files and options everywhere");
}

}  // namespace aifs::parallel
