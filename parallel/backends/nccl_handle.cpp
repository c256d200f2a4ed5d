// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/nccl_handle.h"

#include <ATen/ATen.h>

#include <cstring>

#include "core/check.h"

namespace aifs::parallel {

void check_nccl(ncclResult_t status, const char* operation) {
  if (status == ncclSuccess) return;
  throw Error(concat("NCCL ", operation, ": ", ncclGetErrorString(status)),
              "set NCCL_DEBUG=INFO to see why");
}

ncclDataType_t nccl_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kHalf:
      return ncclFloat16;
    case at::kLong:
      return ncclInt64;
    case at::kInt:
      return ncclInt32;
    case at::kByte:
      return ncclUint8;
    default:
      throw Error(concat("NCCL cannot carry ", tensor.scalar_type()));
  }
}

NcclHandle start_nccl(Communicator& host, ncclConfig_t config) {
  ncclUniqueId id{};
  if (host.rank() == 0) check_nccl(ncclGetUniqueId(&id), "start");
  const at::Tensor bytes = at::empty({static_cast<int64_t>(sizeof id)}, at::kByte);
  std::memcpy(bytes.data_ptr(), &id, sizeof id);
  host.broadcast(bytes, 0);
  std::memcpy(&id, bytes.data_ptr(), sizeof id);
  ncclComm_t comm = nullptr;
  check_nccl(ncclCommInitRankConfig(&comm, host.size(), id, host.rank(), &config), "start");
  return NcclHandle(comm);
}

}  // namespace aifs::parallel
