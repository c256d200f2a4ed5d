// SPDX-License-Identifier: Apache-2.0
#include "tests/parallel/communicator_laws.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/check.h"
#include "parallel/autograd.h"
#include "parallel/gather_text.h"
#include "parallel/overlapped_exchange.h"
#include "parallel/stage_links.h"
#include "tests/support/tensors.h"

namespace aifs::test {

namespace {

using parallel::Communicator;
using parallel::Counts;
using parallel::Reduction;

void expect(bool holds, const std::string& what) {
  if (!holds) throw Error(what);
}

void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(got.sizes() == wanted.sizes() && at::equal(got, wanted), what);
}

at::Device device = at::kCPU;  // of all tensors

at::TensorOptions of(at::ScalarType type) {
  return at::TensorOptions(type).device(device);
}

// Rows of rank p that everybody can compute: what p is going to send.
at::Tensor rows_of(int rank, int64_t rows, at::ScalarType type = at::kFloat) {
  return random_tensor({rows, 3}, 100 + static_cast<uint64_t>(rank)).to(device, type);
}

// Shares of rows: even, uneven, and with ranks that have none.
std::vector<Counts> shares(int size) {
  Counts even(static_cast<size_t>(size), 4), uneven, gaps;
  for (int p = 0; p < size; ++p) {
    uneven.push_back(3 * p + 1);
    gaps.push_back(p % 2 == 0 ? 0 : p + 2);
  }
  return {even, uneven, gaps, Counts(static_cast<size_t>(size), 0)};
}

void all_reduce_is_the_sum(Communicator& group) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong, at::kBFloat16}) {
    at::Tensor mine = (rows_of(group.rank(), 5, at::kDouble) * 8).round().to(type);
    at::Tensor sum = at::zeros({5, 3}, of(at::kDouble)),
               most = at::full({5, 3}, -1e30, of(at::kDouble));
    for (int p = 0; p < group.size(); ++p) {
      const at::Tensor part = (rows_of(p, 5, at::kDouble) * 8).round();
      sum += part;
      most = at::maximum(most, part);
    }
    at::Tensor again = mine.clone();
    group.all_reduce(mine, Reduction::kSum);
    expect_equal(mine.to(at::kDouble), sum, "all-reduce gave another sum");
    group.all_reduce(again, Reduction::kMax);
    expect_equal(again.to(at::kDouble), most, "all-reduce gave another maximum");
  }
}

// Sums pieces of the memory for it, with and without equal parts for all, and of other tensors.
void sums_in_the_background_are_sums(Communicator& group) {
  constexpr int64_t kMostRows = 12000;
  const at::Tensor memory = group.background_memory(5 * kMostRows, 3 * kMostRows, of(at::kFloat));
  if (std::string(group.backend()) == "NCCL" && device.is_cuda() && group.size() > 1)
    expect(memory.defined(), "cards of one host do not reach each other's memory");
  for (const int64_t rows : {int64_t{5}, int64_t{12}, kMostRows}) {
    for (const double factor : {1.0, 0.5, 1.0 / group.size()}) {
      const at::Tensor mine = (rows_of(group.rank(), rows) * 8).round();
      at::Tensor sum = at::zeros({rows, 3}, of(at::kFloat));
      for (int p = 0; p < group.size(); ++p)
        sum += (rows_of(p, rows) * 8).round();
      const auto check = [&](const at::Tensor& tensor) {
        group.all_reduce_in_background(tensor, factor);
        expect(max_difference(tensor, sum * factor) < 1e-5, "a sum in the background is another");
      };
      if (memory.defined())
        check(memory.narrow(0, 2 * rows, mine.numel()).view_as(mine).copy_(mine));
      check(mine);
    }
  }
}

void broadcast_gives_the_values_of_the_root(Communicator& group) {
  for (int root = 0; root < group.size(); ++root) {
    at::Tensor mine = rows_of(group.rank(), 4);
    group.broadcast(mine, root);
    expect_equal(mine, rows_of(root, 4), "broadcast gave other values");
  }
}

at::Tensor own_rows(const at::Tensor& all, const Counts& counts, const Communicator& group) {
  const auto me = static_cast<size_t>(group.rank());
  return all.narrow(0, starts_of(counts)[me], counts[me]);
}

void all_gather_joins_in_rank_order(Communicator& group) {
  for (const Counts& counts : shares(group.size())) {
    std::vector<at::Tensor> parts;
    for (int p = 0; p < group.size(); ++p)
      parts.push_back(rows_of(p, counts[static_cast<size_t>(p)], at::kDouble));
    const at::Tensor all = group.all_gather_rows(parts[static_cast<size_t>(group.rank())], counts);
    expect_equal(all, at::cat(parts), "all-gather gave other rows");
    at::Tensor in_place = at::zeros_like(all);
    const at::Tensor own = own_rows(in_place, counts, group);
    own.copy_(parts[static_cast<size_t>(group.rank())]);
    group.all_gather_rows_into(in_place, own, counts);
    expect_equal(in_place, all, "all-gather in place gave other rows");
  }
}

void reduce_scatter_sums_each_share(Communicator& group) {
  for (const Counts& counts : shares(group.size())) {
    const Counts starts = starts_of(counts);
    at::Tensor sum = at::zeros({starts.back(), 3}, of(at::kDouble));
    for (int p = 0; p < group.size(); ++p)
      sum += rows_of(p, starts.back(), at::kDouble);
    const auto me = static_cast<size_t>(group.rank());
    const at::Tensor all = rows_of(group.rank(), starts.back(), at::kDouble);
    const at::Tensor mine = group.reduce_scatter_rows(all, counts);
    expect(mine.size(0) == counts[me], "reduce-scatter gave a share of another size");
    expect(counts[me] == 0 || max_difference(mine, sum.narrow(0, starts[me], counts[me])) < 1e-14,
           "reduce-scatter gave another sum");
    const at::Tensor own = own_rows(all, counts, group);
    group.reduce_scatter_rows_into(own, all, counts);
    expect_equal(own, mine, "reduce-scatter in place gave another sum");
  }
}

// Rank p sends (2 p + q) % 3 rows to q.
int64_t rows_sent(int from, int to) {
  return (2 * from + to) % 3;
}

struct Routes {
  Counts send, receive;
  explicit Routes(const Communicator& group) {
    for (int p = 0; p < group.size(); ++p) {
      send.push_back(rows_sent(group.rank(), p));
      receive.push_back(rows_sent(p, group.rank()));
    }
  }
};

void all_to_all_delivers_every_row(Communicator& group) {
  const Routes routes(group);
  const at::Tensor got = group.all_to_all_rows(rows_of(group.rank(), starts_of(routes.send).back()),
                                               routes.send, routes.receive);
  std::vector<at::Tensor> wanted;
  for (int p = 0; p < group.size(); ++p) {
    int64_t total = 0, before = 0;
    for (int q = 0; q < group.size(); ++q) {
      if (q < group.rank()) before += rows_sent(p, q);
      total += rows_sent(p, q);
    }
    wanted.push_back(rows_of(p, total).narrow(0, before, rows_sent(p, group.rank())));
  }
  expect_equal(got, at::cat(wanted), "all-to-all gave other rows");
}

void point_to_point_passes_round_a_ring(Communicator& group) {
  if (group.size() == 1) return;
  const int next = (group.rank() + 1) % group.size();
  const int previous = (group.rank() + group.size() - 1) % group.size();
  at::Tensor got = at::empty({6, 3}, of(at::kFloat));
  const auto send = [&] { group.send(rows_of(group.rank(), 6), next); };
  if (group.rank() % 2 == 0) send();
  group.receive(got, previous);
  if (group.rank() % 2 != 0) send();
  expect_equal(got, rows_of(previous, 6), "the neighbour sent something else");
}

void split_makes_groups_of_their_own(Communicator& group) {
  const int colour = group.rank() % 2;
  const std::unique_ptr<Communicator> part = group.split(colour);
  expect(part->size() == (group.size() + 1 - colour) / 2, "the part has another size");
  expect(part->rank() == group.rank() / 2, "the part has another order");
  at::Tensor mine = at::full({1}, group.rank(), of(at::kLong));
  part->all_reduce(mine, Reduction::kSum);
  int64_t sum = 0;
  for (int p = colour; p < group.size(); p += 2)
    sum += p;
  expect(mine.item<int64_t>() == sum, "the part sums over others");
  part->barrier();
}

// <y_bar, f(x)> and <f*(y_bar), x>, both summed over ranks.
void expect_adjoint(Communicator& group, const at::Tensor& x,
                    const std::function<at::Tensor(const at::Tensor&)>& f,
                    const std::string& what) {
  const at::Tensor input = x.clone().set_requires_grad(true);
  const at::Tensor y = f(input);
  const at::Tensor y_bar = random_tensor(y.sizes(), 900 + static_cast<uint64_t>(group.rank()))
                               .to(device, y.scalar_type());
  const at::Tensor x_bar = torch::autograd::grad({y}, {input}, {y_bar})[0];
  at::Tensor products = at::stack({(y_bar * y.detach()).sum(), (x_bar * x).sum()});
  expect(x_bar.sizes() == x.sizes(), what + ": the gradient has another shape");
  group.all_reduce(products, Reduction::kSum);
  const double a = products[0].item<double>(), b = products[1].item<double>();
  expect(std::abs(a - b) <= 1e-12 * (1 + std::abs(a)), concat(what, ": ", a, " and ", b));
}

void gradients_are_adjoints(Communicator& group) {
  const auto me = static_cast<size_t>(group.rank());
  const auto fresh = [&](int64_t rows) { return rows_of(group.rank(), rows, at::kDouble); };
  for (const Counts& counts : shares(group.size())) {
    const int64_t total = starts_of(counts).back();
    expect_adjoint(
        group, fresh(counts[me]),
        [&](const at::Tensor& x) { return parallel::all_gather_rows(x, counts, group); },
        "all-gather");
    expect_adjoint(
        group, fresh(total),
        [&](const at::Tensor& x) { return parallel::reduce_scatter_rows(x, counts, group); },
        "reduce-scatter");
  }
  const Routes routes(group);
  expect_adjoint(
      group, fresh(starts_of(routes.send).back()),
      [&](const at::Tensor& x) {
        return parallel::all_to_all_rows(x, routes.send, routes.receive, group);
      },
      "all-to-all");
  expect_adjoint(
      group, fresh(5), [&](const at::Tensor& x) { return parallel::all_reduce_sum(x, group); },
      "all-reduce");
  expect_adjoint(
      group, fresh(5),
      [&](const at::Tensor& x) { return parallel::broadcast(x, group.size() - 1, group); },
      "broadcast");
}

// Rank p owns p + 2 rows and sends row (q + k) mod (p + 2) to q, k = 0, 1: repeated rows too.
void received_rows_and_their_adjoint(Communicator& group) {
  const int64_t own = group.rank() + 2;
  ExchangePlan plan;
  for (int q = 0; q < group.size(); ++q) {
    const bool self = q == group.rank();
    plan.send_counts.push_back(self ? 0 : 2);
    plan.recv_counts.push_back(self ? 0 : 2);
    if (self) continue;
    plan.send_rows.push_back(q % own);
    plan.send_rows.push_back((q + 1) % own);
  }
  const auto exchange = parallel::RowExchange::create(plan, group, device);
  std::vector<at::Tensor> wanted{rows_of(group.rank(), own, at::kDouble)};
  for (int p = 0; p < group.size(); ++p) {
    if (p == group.rank()) continue;
    const at::Tensor theirs = rows_of(p, p + 2, at::kDouble);
    for (const int k : {0, 1})
      wanted.push_back(theirs.narrow(0, (group.rank() + k) % (p + 2), 1));
  }
  const auto f = [&](const at::Tensor& x) { return parallel::with_received_rows(x, exchange); };
  expect_equal(f(wanted[0]), at::cat(wanted), "other rows were received");
  expect_adjoint(group, wanted[0], f, "received rows");

  parallel::OverlappedExchange halves(exchange);
  const int64_t received = plan.num_received();
  for (int round = 0; round < 2; ++round) {
    const at::Tensor rows = halves.send(wanted[0]);
    halves.wait();
    expect_equal(at::cat({wanted[0], rows}), at::cat(wanted), "other rows came beside");
  }
  const at::Tensor x = wanted[0].clone().set_requires_grad(true);
  const at::Tensor g = rows_of(group.rank() + 7, own + received, at::kDouble);
  f(x).backward(g);
  const at::Tensor returned = halves.send_back(g.narrow(0, own, received));
  const at::Tensor sum = g.narrow(0, 0, own).clone();
  halves.wait();
  halves.add_returned(sum, returned);
  expect_equal(sum, x.grad(), "other gradients came back");
}

void a_total_passes_its_gradient_on(Communicator& group) {
  const at::Tensor part =
      at::full({2}, group.rank() + 1.0, of(at::kDouble)).set_requires_grad(true);
  const at::Tensor total = parallel::total_over_ranks(part, group);
  const double sum = group.size() * (group.size() + 1) / 2.0;
  expect_equal(total.detach(), at::full({2}, sum, of(at::kDouble)), "another total");
  total.square().sum().backward();
  expect_equal(part.grad(), at::full({2}, 2 * sum, of(at::kDouble)), "another gradient");
}

void a_copy_sums_the_gradients_of_ranks(Communicator& group) {
  const at::Tensor x = rows_of(0, 4, at::kDouble).set_requires_grad(true);
  const at::Tensor copy = parallel::copied_to_ranks(x, group);
  expect_equal(copy.detach(), x.detach(), "another copy");
  (copy * (group.rank() + 1.0)).sum().backward();
  const double sum = group.size() * (group.size() + 1) / 2.0;
  expect_equal(x.grad(), at::full({4, 3}, sum, of(at::kDouble)), "another sum of gradients");
}

// Both ends of a connection send before they receive, more than any buffer between them holds.
void connected_stages_do_not_wait_to_send(Communicator& group) {
  const int last = group.size() - 1;
  const bool end = group.rank() == 0 || group.rank() == last;
  auto up = group.split(end ? 1 : 0), down = group.split(end ? 1 : 0);
  if (!end || last == 0) return;
  parallel::Connection connection(std::move(up), std::move(down));
  const auto whole = [](int rank) { return rows_of(rank, 1 << 20); };
  connection.send(whole(group.rank()));
  const at::Tensor got = at::empty_like(whole(0));
  connection.receive(got);
  expect_equal(got, whole(last - group.rank()), "the other end sent something else");
}

// Two rounds through all stages. Each multiplies what it gets by x_s, the last adds twice the
// sum of that and x_0, and the first goes on from the result: f(u) = u x_0 ... x_last + 2 (u +
// x_0).
struct Rounds {
  at::Tensor x, sum;  // own factor; on the last stage what backward begins with

  Rounds(parallel::StageLinks& stages, const at::Tensor& factor) : x(factor) {
    at::Tensor u = at::ones({3, 2}, of(at::kDouble));
    const at::Tensor constant = at::full({4}, 5, of(at::kLong));
    for (int round = 0; round < 2; ++round) {
      const auto aside = stages.first_to_last({u + x}, device);
      const auto state =
          stages.is_first() ? std::vector{u, constant} : stages.from_previous(device);
      expect(!state[1].requires_grad() && at::equal(state[1], constant), "another constant");
      const at::Tensor y = state[0] * x;
      if (stages.is_last()) {
        u = y + 2 * aside[0];
        sum = sum.defined() ? sum + u.sum() : u.sum();
      } else {
        stages.to_next({y, state[1]});
      }
      if (round == 1) break;  // what is sent must be used
      const auto on = stages.last_to_first({u}, device);
      expect(on.empty() == !(stages.is_first() || stages.is_last()), "sent to a stage between");
      if (!on.empty()) u = on[0];
    }
  }
};

at::Tensor factor_of(int stage) {
  return at::full({1}, 1.0 + 0.25 * stage, of(at::kDouble)).set_requires_grad(true);
}

void stages_pass_tensors_and_gradients(Communicator& group) {
  std::vector<at::Tensor> factors;
  at::Tensor u = at::ones({3, 2}, of(at::kDouble)), sum = at::zeros({}, of(at::kDouble));
  for (int stage = 0; stage < group.size(); ++stage)
    factors.push_back(factor_of(stage));
  for (int round = 0; round < 2; ++round) {
    at::Tensor y = u;
    for (const at::Tensor& factor : factors)
      y = y * factor;
    u = y + 2 * (u + factors[0]);
    sum = sum + u.sum();
  }
  sum.backward();

  parallel::StageLinks stages(group);
  // Passes overlap: the second one forward comes before the first one back.
  Rounds first(stages, factor_of(group.rank()));
  const at::Tensor first_total = stages.with_sent(first.sum);
  Rounds second(stages, factor_of(group.rank()));
  const at::Tensor second_total = stages.with_sent(second.sum);
  first_total.backward();
  second_total.backward();
  if (stages.is_last()) expect_equal(second.sum.detach(), sum.detach(), "another sum");
  for (const Rounds* rounds : {&first, &second}) {
    expect(
        max_difference(rounds->x.grad(), factors[static_cast<size_t>(group.rank())].grad()) < 1e-9,
        "another gradient");
  }
  // Nothing is expected back where nothing needs a gradient.
  Rounds frozen(stages, factor_of(group.rank()).detach());
  const at::Tensor total = stages.with_sent(frozen.sum);
  expect(!total.defined() || !total.requires_grad(), "a gradient is awaited in vain");
}

void wrong_counts_are_refused(Communicator& group) {
  Counts counts(static_cast<size_t>(group.size()), 2);
  bool refused = false;
  try {
    group.reduce_scatter_rows(at::zeros({2 * group.size() + 1, 3}, of(at::kFloat)), counts);
  } catch (const Error&) {
    refused = true;
  }
  expect(refused, "rows and counts differ, and nobody said so");
}

void texts_are_gathered_and_compared(Communicator& group) {
  const std::vector<std::string> texts =
      parallel::gather_text(group, std::string(static_cast<size_t>(group.rank()), 'x'));
  for (size_t r = 0; r < texts.size(); ++r)
    expect(texts[r] == std::string(r, 'x'), "another text arrived");
  parallel::require_same(group, "colour", "blue");
  if (group.size() == 1) return;
  std::string message;
  try {
    parallel::require_same(group, "colour", group.rank() == 1 ? "red" : "blue");
  } catch (const ConfigError& error) {
    message = error.what();
  }
  expect(message.find("the colour of rank 1 differs") != std::string::npos,
         "a difference went unseen: " + message);
}

}  // namespace

std::vector<std::pair<std::string, Law>> communicator_laws(const at::Device& where) {
  device = where;
  return {
      // first, so that a backend that starts with its first operation starts with a compound one
      {"all-to-all delivers every row", all_to_all_delivers_every_row},
      {"all-reduce is the sum or the maximum, in every type", all_reduce_is_the_sum},
      {"a sum in the background is the same", sums_in_the_background_are_sums},
      {"broadcast gives the values of the root", broadcast_gives_the_values_of_the_root},
      {"all-gather joins in rank order", all_gather_joins_in_rank_order},
      {"reduce-scatter sums each share", reduce_scatter_sums_each_share},
      {"point to point passes round a ring", point_to_point_passes_round_a_ring},
      {"split makes groups of their own", split_makes_groups_of_their_own},
      {"gradients are adjoints", gradients_are_adjoints},
      {"received rows and their adjoint", received_rows_and_their_adjoint},
      {"a total passes its gradient on", a_total_passes_its_gradient_on},
      {"a copy sums the gradients of ranks", a_copy_sums_the_gradients_of_ranks},
      {"point to point between stages does not wait to send", connected_stages_do_not_wait_to_send},
      {"point to point through stages is differentiable", stages_pass_tensors_and_gradients},
      {"texts are gathered and compared", texts_are_gathered_and_compared},
      {"wrong counts are refused", wrong_counts_are_refused}};
}

}  // namespace aifs::test
