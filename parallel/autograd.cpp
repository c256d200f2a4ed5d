// SPDX-License-Identifier: Apache-2.0
#include "parallel/autograd.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/check.h"

namespace aifs::parallel {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Communicators are not owned by the graph.
void save_group(AutogradContext* ctx, Communicator& group) {
  ctx->saved_data["group"] = reinterpret_cast<int64_t>(&group);
}
Communicator& saved_group(AutogradContext* ctx) {
  return *reinterpret_cast<Communicator*>(ctx->saved_data["group"].toInt());
}

struct AllGatherRows : Function<AllGatherRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& own, const Counts& counts,
                            Communicator* group) {
    save_group(ctx, *group);
    ctx->saved_data["counts"] = counts;
    return group->all_gather_rows(own, counts);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Counts counts = ctx->saved_data["counts"].toIntVector();
    return {saved_group(ctx).reduce_scatter_rows(gradients[0].contiguous(), counts), {}, {}};
  }
};

struct ReduceScatterRows : Function<ReduceScatterRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& all, const Counts& counts,
                            Communicator* group) {
    save_group(ctx, *group);
    ctx->saved_data["counts"] = counts;
    return group->reduce_scatter_rows(all, counts);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Counts counts = ctx->saved_data["counts"].toIntVector();
    return {saved_group(ctx).all_gather_rows(gradients[0].contiguous(), counts), {}, {}};
  }
};

struct AllToAllRows : Function<AllToAllRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, const Counts& send_counts,
                            const Counts& recv_counts, Communicator* group) {
    save_group(ctx, *group);
    ctx->saved_data["send"] = send_counts;
    ctx->saved_data["recv"] = recv_counts;
    return group->all_to_all_rows(rows, send_counts, recv_counts);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Counts send = ctx->saved_data["send"].toIntVector();
    const Counts recv = ctx->saved_data["recv"].toIntVector();
    return {saved_group(ctx).all_to_all_rows(gradients[0].contiguous(), recv, send), {}, {}, {}};
  }
};

struct AllReduceSum : Function<AllReduceSum> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& tensor, Communicator* group) {
    save_group(ctx, *group);
    at::Tensor sum = tensor.detach().clone(at::MemoryFormat::Contiguous);
    group->all_reduce(sum, Reduction::kSum);
    return sum;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    at::Tensor sum = gradients[0].detach().clone(at::MemoryFormat::Contiguous);
    saved_group(ctx).all_reduce(sum, Reduction::kSum);
    return {sum, {}};
  }
};

struct Broadcast : Function<Broadcast> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& tensor, int64_t root,
                            Communicator* group) {
    save_group(ctx, *group);
    ctx->saved_data["root"] = root;
    at::Tensor copy = tensor.detach().clone(at::MemoryFormat::Contiguous);
    group->broadcast(copy, static_cast<int>(root));
    return copy;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    Communicator& group = saved_group(ctx);
    at::Tensor sum = gradients[0].detach().clone(at::MemoryFormat::Contiguous);
    group.all_reduce(sum, Reduction::kSum);
    if (group.rank() != static_cast<int>(ctx->saved_data["root"].toInt())) sum.zero_();
    return {sum, {}, {}};
  }
};

struct WholeRows : Function<WholeRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& own, const Counts& counts,
                            Communicator* group) {
    const int64_t first = starts_of(counts)[static_cast<size_t>(group->rank())];
    ctx->saved_data["first"] = first;
    ctx->saved_data["size"] = own.size(0);
    return group->all_gather_rows(own.contiguous(), counts);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {
        gradients[0].narrow(0, ctx->saved_data["first"].toInt(), ctx->saved_data["size"].toInt()),
        {},
        {}};
  }
};

struct TotalOverRanks : Function<TotalOverRanks> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& partial, Communicator* group) {
    at::Tensor sum = partial.detach().clone(at::MemoryFormat::Contiguous);
    group->all_reduce(sum, Reduction::kSum);
    return sum;
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    return {gradients[0], {}};
  }
};

struct CopiedToRanks : Function<CopiedToRanks> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& tensor, Communicator* group) {
    save_group(ctx, *group);
    return tensor;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    at::Tensor sum = gradients[0].detach().clone(at::MemoryFormat::Contiguous);
    saved_group(ctx).all_reduce(sum, Reduction::kSum);
    return {sum, {}};
  }
};

struct RowExchangeHolder : torch::CustomClassHolder {
  std::shared_ptr<const RowExchange> exchange;
};

struct WithReceivedRows : Function<WithReceivedRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& own,
                            const std::shared_ptr<const RowExchange>& exchange) {
    auto holder = c10::make_intrusive<RowExchangeHolder>();
    holder->exchange = exchange;
    ctx->saved_data["exchange"] = c10::IValue::make_capsule(std::move(holder));
    ctx->saved_data["num_own"] = own.size(0);
    const at::Tensor received =
        exchange->group->all_to_all_rows(own.detach().index_select(0, exchange->send_rows),
                                         exchange->send_counts, exchange->recv_counts);
    return at::cat({own.detach(), received}, 0);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder = c10::static_intrusive_pointer_cast<RowExchangeHolder>(
        ctx->saved_data["exchange"].toCapsule());
    const RowExchange& exchange = *holder->exchange;
    const int64_t num_own = ctx->saved_data["num_own"].toInt();
    const at::Tensor& g = gradients[0];
    const at::Tensor returned =
        exchange.group->all_to_all_rows(g.narrow(0, num_own, g.size(0) - num_own).contiguous(),
                                        exchange.recv_counts, exchange.send_counts);
    const at::Tensor own = g.narrow(0, 0, num_own).clone();
    exchange.add_returned(own, returned);
    return {own, {}};
  }
};

}  // namespace

at::Tensor all_gather_rows(const at::Tensor& own, const Counts& counts, Communicator& group) {
  return AllGatherRows::apply(own, counts, &group);
}

at::Tensor reduce_scatter_rows(const at::Tensor& all, const Counts& counts, Communicator& group) {
  return ReduceScatterRows::apply(all, counts, &group);
}

at::Tensor all_to_all_rows(const at::Tensor& rows, const Counts& send_counts,
                           const Counts& recv_counts, Communicator& group) {
  return AllToAllRows::apply(rows, send_counts, recv_counts, &group);
}

at::Tensor whole_rows(const at::Tensor& own, const Counts& counts, Communicator& group) {
  return WholeRows::apply(own, counts, &group);
}

at::Tensor all_reduce_sum(const at::Tensor& tensor, Communicator& group) {
  return AllReduceSum::apply(tensor, &group);
}

at::Tensor broadcast(const at::Tensor& tensor, int root, Communicator& group) {
  return Broadcast::apply(tensor, static_cast<int64_t>(root), &group);
}

at::Tensor total_over_ranks(const at::Tensor& partial, Communicator& group) {
  return TotalOverRanks::apply(partial, &group);
}

at::Tensor copied_to_ranks(const at::Tensor& tensor, Communicator& group) {
  return CopiedToRanks::apply(tensor, &group);
}

std::shared_ptr<const RowExchange> RowExchange::create(const ExchangePlan& plan,
                                                       Communicator& group, at::Device device) {
  auto exchange = std::make_shared<RowExchange>();
  exchange->send_rows = at::tensor(plan.send_rows, at::kLong).to(device);
  exchange->send_counts = plan.send_counts;
  exchange->recv_counts = plan.recv_counts;
  exchange->group = &group;
  AIFS_CHECK(static_cast<int>(plan.send_counts.size()) == group.size() &&
                 static_cast<int>(plan.recv_counts.size()) == group.size(),
             "an exchange among ", plan.send_counts.size(), " ranks in a group of ", group.size());
  return exchange;
}

void RowExchange::add_returned(const at::Tensor& own, const at::Tensor& returned) const {
  // A row may have gone to several ranks, to each once: rank by rank no sum depends on an order
  // that a GPU would choose.
  at::Tensor sum = own;
  int64_t begin = 0;
  for (const int64_t count : send_counts) {
    if (count > 0) {
      sum.index_add_(0, send_rows.narrow(0, begin, count), returned.narrow(0, begin, count));
    }
    begin += count;
  }
}

std::shared_ptr<const RowExchange> RowExchange::to(at::Device device) const {
  auto moved = std::make_shared<RowExchange>(*this);
  moved->send_rows = send_rows.to(device);
  return moved;
}

at::Tensor with_received_rows(const at::Tensor& own,
                              const std::shared_ptr<const RowExchange>& exchange) {
  return WithReceivedRows::apply(own, exchange);
}

}  // namespace aifs::parallel
