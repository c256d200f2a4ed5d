// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/copy_reduction.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "core/host.h"
#include "parallel/backends/nccl_handle.h"
#include "parallel/gather_text.h"

namespace aifs::parallel {

namespace {

bool is_one_host(Communicator& host) {
  const std::vector<std::string> names = gather_text(host, host_name());
  return std::equal(names.begin() + 1, names.end(), names.begin());
}

// On any rank.
bool any_failed(Communicator& host, ncclResult_t result) {
  const at::Tensor failures = at::full({1}, result == ncclSuccess ? 0 : 1, at::kLong);
  host.all_reduce(failures, Reduction::kMax);
  return failures.item<int64_t>() > 0;
}

ncclConfig_t by_copy_engines() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  return config;
}

}  // namespace

// Memory of this rank that the others write into.
struct CopyReduction::Window {
  NcclHandle nccl;
  void* memory = nullptr;
  ncclWindow_t registered = nullptr;  // null: the cards do not reach each other's memory

  // Registered only if every rank has got its memory, and NCCL takes that of all.
  Window(Communicator& host, size_t bytes) : nccl(start_nccl(host, by_copy_engines())) {
    if (any_failed(host, ncclMemAlloc(&memory, bytes))) return;
    const ncclResult_t result =
        ncclCommWindowRegister(nccl.get(), memory, bytes, &registered, NCCL_WIN_COLL_SYMMETRIC);
    if (any_failed(host, result)) registered = nullptr;
  }
  ~Window() {
    cudaDeviceSynchronize();
    if (registered) ncclCommWindowDeregister(nccl.get(), registered);
    if (memory) ncclMemFree(memory);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};

std::unique_ptr<CopyReduction> CopyReduction::make(Communicator& host, int64_t elements,
                                                   int64_t largest,
                                                   const at::TensorOptions& options) {
  if (!is_one_host(host)) return nullptr;
  constexpr int64_t kAlignment = 256, kMostRoom = int64_t{1} << 24;  // elements
  const int64_t room = std::clamp<int64_t>(largest, host.size(), kMostRoom);
  const int64_t inbox = (elements + kAlignment - 1) / kAlignment * kAlignment;
  const auto bytes = static_cast<size_t>(inbox + room) * options.dtype().itemsize();
  auto window = std::make_shared<Window>(host, bytes);
  if (!window->registered) return nullptr;
  // Whoever still holds a piece keeps the memory.
  const at::Tensor all = at::from_blob(
                             window->memory, {inbox + room}, [window](void*) {}, options)
                             .zero_();
  return std::unique_ptr<CopyReduction>(new CopyReduction(std::move(window), host.rank(),
                                                          host.size(), all.narrow(0, 0, elements),
                                                          all.narrow(0, inbox, room)));
}

CopyReduction::CopyReduction(std::shared_ptr<Window> window, int rank, int size, at::Tensor memory,
                             at::Tensor inbox)
    : window_(std::move(window)),
      rank_(rank),
      size_(size),
      memory_(std::move(memory)),
      inbox_(std::move(inbox)) {}

CopyReduction::~CopyReduction() = default;

bool CopyReduction::can_sum(const at::Tensor& piece) const {
  return piece.is_alias_of(memory_) && piece.scalar_type() == memory_.scalar_type() &&
         piece.is_contiguous();
}

void CopyReduction::all_reduce(const at::Tensor& piece, double factor) {
  const at::Tensor flat = piece.view(-1);
  const int64_t equal = flat.numel() / size_ * size_, room = inbox_.numel() / size_ * size_;
  for (int64_t begin = 0; begin < equal; begin += room)
    sum_parts(flat.narrow(0, begin, std::min(room, equal - begin)), factor);
  if (equal < flat.numel()) sum_rest(flat.narrow(0, equal, flat.numel() - equal), factor);
}

// Fewer elements than ranks, by NCCL's kernel.
void CopyReduction::sum_rest(const at::Tensor& rest, double factor) {
  check_nccl(ncclAllReduce(rest.const_data_ptr(), rest.data_ptr(),
                           static_cast<size_t>(rest.numel()), nccl_type(rest), ncclSum,
                           window_->nccl.get(), at::cuda::getCurrentCUDAStream().stream()),
             "all-reduce by copies");
  if (factor != 1.0) rest.mul_(factor);
}

// Equal parts for all ranks.
void CopyReduction::sum_parts(const at::Tensor& piece, double factor) {
  const int64_t part = piece.numel() / size_;
  const at::Tensor come = inbox_.narrow(0, 0, piece.numel());
  at::Tensor own = piece.view(-1).narrow(0, rank_ * part, part);
  const auto elements = static_cast<size_t>(part);
  const ncclDataType_t type = nccl_type(piece);
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream().stream();
  check_nccl(ncclAlltoAll(piece.const_data_ptr(), come.data_ptr(), elements, type,
                          window_->nccl.get(), stream),
             "all-reduce by copies");
  const at::Tensor parts = come.view({size_, part});
  if (factor * size_ == 1.0) {
    at::mean_out(own, parts, 0);
  } else {
    at::sum_out(own, parts, 0);
    if (factor != 1.0) own.mul_(factor);
  }
  check_nccl(ncclAllGather(own.const_data_ptr(), piece.data_ptr(), elements, type,
                           window_->nccl.get(), stream),
             "all-reduce by copies");
}

}  // namespace aifs::parallel
