// SPDX-License-Identifier: Apache-2.0
#include "parallel/stage_links.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "core/check.h"

namespace aifs::parallel {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Says what must be known of a tensor before it arrives, one row each: its type, whether its
// gradient goes back, its dimensions and sizes.
constexpr int64_t kMostDimensions = 5, kHeaderWidth = 3 + kMostDimensions;

struct Header {
  at::ScalarType type;
  bool wants_gradient;
  std::vector<int64_t> sizes;

  static Header of(const at::Tensor& tensor) {
    AIFS_CHECK(tensor.dim() <= kMostDimensions, "a tensor of shape ", tensor.sizes(),
               " between stages");
    return {tensor.scalar_type(), at::GradMode::is_enabled() && tensor.requires_grad(),
            tensor.sizes().vec()};
  }
  static Header from(const int64_t* row) {
    return {static_cast<at::ScalarType>(row[0]), row[1] != 0, {row + 3, row + 3 + row[2]}};
  }
  void write(int64_t* row) const {
    row[0] = static_cast<int64_t>(type);
    row[1] = wants_gradient ? 1 : 0;
    row[2] = static_cast<int64_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), row + 3);
  }
  at::Tensor empty(at::Device device) const {
    return at::empty(sizes, at::TensorOptions(type).device(device));
  }
};
using Headers = std::vector<Header>;

Headers headers_of(const at::Tensor& rows) {
  Headers headers;
  for (int64_t i = 0; i < rows.size(0); ++i)
    headers.push_back(Header::from(rows.const_data_ptr<int64_t>() + i * kHeaderWidth));
  return headers;
}

at::Tensor rows_of(const variable_list& tensors) {
  at::Tensor rows = at::zeros({static_cast<int64_t>(tensors.size()), kHeaderWidth}, at::kLong);
  auto* row = rows.mutable_data_ptr<int64_t>();
  for (const at::Tensor& tensor : tensors) {
    Header::of(tensor).write(row);
    row += kHeaderWidth;
  }
  return rows;
}

Connection& saved_connection(AutogradContext* ctx) {
  return *reinterpret_cast<Connection*>(ctx->saved_data["connection"].toInt());
}

void save(AutogradContext* ctx, Connection& connection, const at::Tensor& headers) {
  ctx->saved_data["connection"] = reinterpret_cast<int64_t>(&connection);
  ctx->saved_data["headers"] = headers;
}

struct Send : Function<Send> {
  static at::Tensor forward(AutogradContext* ctx, at::TensorList tensors, Connection* to,
                            const at::Tensor& headers) {
    save(ctx, *to, headers);
    to->send(at::full({1}, headers.size(0), at::kLong));
    to->send(headers);
    for (const at::Tensor& tensor : tensors)
      to->send(tensor);
    return at::zeros({}, tensors[0].options());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    variable_list arrived;
    for (const Header& header : headers_of(ctx->saved_data["headers"].toTensor())) {
      at::Tensor& gradient = arrived.emplace_back();
      if (!header.wants_gradient) continue;
      gradient = header.empty(gradients[0].device());
      saved_connection(ctx).receive(gradient);
    }
    arrived.insert(arrived.end(), 2, at::Tensor());  // of connection and headers
    return arrived;
  }
};

struct Receive : Function<Receive> {
  // The anchor requires a gradient, so that the results can.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& anchor, Connection* from) {
    const at::Tensor count = at::empty({1}, at::kLong);
    from->receive(count);
    const at::Tensor headers = at::empty({count.item<int64_t>(), kHeaderWidth}, at::kLong);
    from->receive(headers);
    save(ctx, *from, headers);
    variable_list tensors, constants;
    for (const Header& header : headers_of(headers)) {
      const at::Tensor& tensor = tensors.emplace_back(header.empty(anchor.device()));
      from->receive(tensor);
      if (!header.wants_gradient) constants.push_back(tensor);
    }
    // A zero through which gradients go back even if nothing else of this is used.
    tensors.push_back(at::zeros({}, anchor.options().requires_grad(false)));
    if (constants.size() + 1 == tensors.size()) constants.push_back(tensors.back());
    ctx->mark_non_differentiable(constants);
    return tensors;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Headers headers = headers_of(ctx->saved_data["headers"].toTensor());
    for (size_t i = 0; i < headers.size(); ++i) {
      if (headers[i].wants_gradient) saved_connection(ctx).send(gradients[i]);
    }
    return {{}, {}};
  }
};

}  // namespace

Connection::Connection(std::unique_ptr<Communicator> up, std::unique_ptr<Communicator> down)
    : up_(std::move(up)), down_(std::move(down)) {}

void Connection::send(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  if (tensor.is_cpu()) return out().send(whole, other());
  start(tensor);
  if (!side_) side_ = std::make_unique<SideStream>(out(), tensor.device());
  side_->keep(whole);
  side_->run([&] { out().send(whole, other()); });
}

// NCCL starts a communicator with its first operation and connects two ranks with their first
// message, and waits for the other one in both: here, whichever direction each rank needs first.
void Connection::start(const at::Tensor& tensor) {
  if (std::exchange(started_, true)) return;
  const at::Tensor nothing = at::zeros({1}, tensor.options().dtype(at::kFloat));
  for (Communicator* direction : {up_.get(), down_.get()}) {
    if (direction == &out()) {
      direction->send(nothing, other());
    } else {
      direction->receive(nothing, other());
    }
  }
}

void Connection::receive(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) start(tensor);
  in().receive(tensor, other());
}

StageLinks::StageLinks(Communicator& stages)
    : group_(stages.size() > 1 ? &stages : nullptr), stage_(stages.rank()), count_(stages.size()) {
  // All ranks take part in the making of every connection.
  const auto connect = [&](int a, int b) -> std::unique_ptr<Connection> {
    const bool mine = stage_ == a || stage_ == b;
    auto up = stages.split(mine ? 1 : 0), down = stages.split(mine ? 1 : 0);
    if (!mine) return nullptr;
    return std::make_unique<Connection>(std::move(up), std::move(down));
  };
  for (int stage = 0; stage + 1 < count_; ++stage) {
    auto connection = connect(stage, stage + 1);
    if (connection) (stage == stage_ ? next_ : previous_) = std::move(connection);
  }
  if (count_ > 1) other_end_ = connect(0, count_ - 1);
}

void StageLinks::keep(const at::Tensor& zero) {
  if (!zero.requires_grad()) return;
  const at::Tensor more = zero.to(at::kFloat);
  passed_ = passed_.defined() ? passed_ + more : more;
}

void StageLinks::send(const Tensors& tensors, Connection& to) {
  keep(Send::apply(at::TensorList(tensors), &to, rows_of(tensors)));
}

StageLinks::Tensors StageLinks::receive(Connection& from, at::Device device) {
  Tensors tensors = Receive::apply(at::zeros({}, device).set_requires_grad(true), &from);
  keep(tensors.back());
  tensors.pop_back();
  return tensors;
}

void StageLinks::to_next(const Tensors& tensors) {
  send(tensors, *next_);
}

StageLinks::Tensors StageLinks::from_previous(at::Device device) {
  return receive(*previous_, device);
}

StageLinks::Tensors StageLinks::first_to_last(const Tensors& tensors, at::Device device) {
  if (count_ == 1) return tensors;
  if (is_first()) send(tensors, *other_end_);
  if (is_last()) return receive(*other_end_, device);
  return is_first() ? tensors : Tensors();
}

StageLinks::Tensors StageLinks::last_to_first(const Tensors& tensors, at::Device device) {
  if (count_ == 1) return tensors;
  if (is_last()) send(tensors, *other_end_);
  if (is_first()) return receive(*other_end_, device);
  return is_last() ? tensors : Tensors();
}

at::Tensor StageLinks::with_sent(const at::Tensor& total) {
  const at::Tensor passed = std::exchange(passed_, at::Tensor());
  if (!total.defined() || !passed.defined()) return total.defined() ? total : passed;
  return total + passed;
}

}  // namespace aifs::parallel
