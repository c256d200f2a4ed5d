// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/power_sgd.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace aifs::train {

namespace {

// One all-reduce for many tensors, in place.
void all_reduce_together(const std::vector<at::Tensor>& tensors, parallel::Communicator& group) {
  if (tensors.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors)
    flat.push_back(tensor.reshape({-1}));
  const at::Tensor all = at::cat(flat);
  group.all_reduce(all, parallel::Reduction::kSum);
  int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(all.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

}  // namespace

PowerSgd::PowerSgd(const model::ParameterSet& parameters, const ReductionOptions& options,
                   uint64_t seed)
    : parameters_(parameters), options_(options), seed_(seed) {}

PowerSgd::Plan PowerSgd::plan_of(const ShardBucket& bucket) const {
  Plan plan;
  int64_t done = 0;
  for (const size_t i : bucket.parameters) {
    const model::Parameter& parameter = parameters_.entries()[i];
    const at::Tensor& tensor = parameter.tensor;
    if (tensor.dim() < 2 || tensor.numel() == 0) continue;
    Matrix matrix{.begin = parameter.offset - bucket.begin,
                  .rows = tensor.size(0),
                  .columns = tensor.numel() / tensor.size(0)};
    matrix.rank = std::min({options_.rank, matrix.rows, matrix.columns});
    if ((matrix.rows + matrix.columns) * matrix.rank >= tensor.numel()) continue;
    if (matrix.begin > done) plan.rest.emplace_back(done, matrix.begin - done);
    done = matrix.begin + tensor.numel();
    plan.matrices.push_back(matrix);
  }
  if (bucket.size() > done) plan.rest.emplace_back(done, bucket.size() - done);
  return plan;
}

int64_t PowerSgd::elements_sent(const ShardBucket& bucket) const {
  const Plan plan = plan_of(bucket);
  int64_t elements = 0;
  for (const Matrix& matrix : plan.matrices)
    elements += (matrix.rows + matrix.columns) * matrix.rank;
  for (const auto& [begin, size] : plan.rest)
    elements += size;
  return elements;
}

void PowerSgd::reduce(const ShardBucket& bucket, const at::Tensor& gradients,
                      parallel::Communicator& group) {
  const auto [found, is_new] = plans_.try_emplace(bucket.begin);
  Plan& plan = found->second;
  if (is_new) plan = plan_of(bucket);
  const auto in_matrix = [&](const Matrix& matrix) {
    return gradients.narrow(0, matrix.begin, matrix.rows * matrix.columns)
        .view({matrix.rows, matrix.columns});
  };
  std::vector<at::Tensor> first, second;  // what travels: the P and all that stays whole; the Q
  for (Matrix& matrix : plan.matrices) {
    const at::Tensor m = in_matrix(matrix);
    if (options_.error_feedback) {
      if (matrix.error.defined()) m.add_(matrix.error);
      matrix.error = m.clone();
    }
    if (!matrix.q.defined() || !options_.warm_start) {
      at::Generator random = at::make_generator<at::CPUGeneratorImpl>(
          seed_ + static_cast<uint64_t>(bucket.begin + matrix.begin));
      matrix.q = at::empty({matrix.columns, matrix.rank}, m.options().device(at::kCPU))
                     .normal_(0.0, 1.0, random)
                     .to(m.device());
    }
    matrix.q = std::get<0>(at::linalg_qr(matrix.q));
    first.push_back(m.matmul(matrix.q));
  }
  for (const auto& [begin, size] : plan.rest)
    first.push_back(gradients.narrow(0, begin, size));
  all_reduce_together(first, group);
  for (size_t i = 0; i < plan.matrices.size(); ++i) {
    first[i] = std::get<0>(at::linalg_qr(first[i]));
    plan.matrices[i].q = in_matrix(plan.matrices[i]).t().matmul(first[i]);
    second.push_back(plan.matrices[i].q);
  }
  all_reduce_together(second, group);
  for (size_t i = 0; i < plan.matrices.size(); ++i) {
    Matrix& matrix = plan.matrices[i];
    const at::Tensor m = in_matrix(matrix);
    at::matmul_out(const_cast<at::Tensor&>(m), first[i], matrix.q.t());
    if (options_.error_feedback) matrix.error.sub_(m, 1.0 / static_cast<double>(group.size()));
  }
}

}  // namespace aifs::train
