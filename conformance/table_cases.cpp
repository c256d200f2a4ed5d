// SPDX-License-Identifier: Apache-2.0
// Tables without tensors: learning rates, rollout lengths, seeds, sample orders, balanced splits.
#include <algorithm>
#include <numeric>

#include "conformance/cases.h"
#include "conformance/tensors.h"
#include "core/rng.h"
#include "data/loader/sampler.h"
#include "train/optim/schedule.h"

namespace aifs::conformance {

namespace {

using Indices = std::vector<int64_t>;
using Batches = std::vector<Indices>;

constexpr double kRelativeRate = 1e-12;

// "0", "1", ...: names of the elements of a list, in the file's name.
std::string element(const CaseFile& file, size_t index) {
  return concat(file.name, "/", index);
}

void check_learning_rates(const Json& table, Comparison& comparison) {
  require_known_keys(table, {"lr", "lr_min", "t_initial", "warmup_t", "lr_right_after_construction",
                             "step", "lr_at_step"});
  const train::ScheduleOptions options{.kind = train::ScheduleKind::kCosine,
                                       .lr = table.at("lr").get<double>(),
                                       .lr_min = table.at("lr_min").get<double>(),
                                       .warmup_steps = table.at("warmup_t").get<int64_t>(),
                                       .total_steps = table.at("t_initial").get<int64_t>()};
  const auto check = [&](int64_t step, double expected) {
    comparison.add(concat("step ", step),
                   relative_difference(train::learning_rate(options, step), expected),
                   kRelativeRate);
  };
  const Json& steps = table.at("step");
  for (size_t i = 0; i < steps.size(); ++i)
    check(steps[i].get<int64_t>(), table.at("lr_at_step").at(i).get<double>());
  check(0, table.value("lr_right_after_construction", train::learning_rate(options, 0)));
}

// The last epoch (<= `epoch`) after which the rollout grew, or -1.
int64_t last_growth(const train::RolloutOptions& options, int64_t epoch) {
  for (int64_t e = epoch; e >= 0; --e) {
    if (train::rollout_at(options, e + 1, 0) > train::rollout_at(options, e, 0)) return e;
  }
  return -1;
}

void check_rollout_lengths(const Json& table, Comparison& comparison) {
  const std::string state = "state_after_epoch_";
  const train::RolloutOptions options{table.at("start").get<int64_t>(),
                                      table.at("epoch_increment").get<int64_t>(),
                                      table.at("maximum").get<int64_t>()};
  const Json& lengths = table.at("rollout_during_epoch");
  for (size_t epoch = 0; epoch < lengths.size(); ++epoch) {
    comparison.require(train::rollout_at(options, static_cast<int64_t>(epoch), 0) == lengths[epoch],
                       concat("epoch ", epoch));
  }
  for (const auto& [key, value] : table.items()) {
    if (!key.starts_with(state)) continue;
    const int64_t epoch = std::stoll(key.substr(state.size()));
    comparison.require(train::rollout_at(options, epoch + 1, 0) == value.at("step"),
                       key + ": step");
    comparison.require(last_growth(options, epoch) == value.at("last_increased_epoch"),
                       key + ": last_increased_epoch");
  }
}

void check_derived_seed(const Json& row, Comparison& comparison) {
  const auto context = row.at("context_number").get<uint32_t>();
  if (context > static_cast<uint32_t>(SeedContext::kDataLoader)) {
    throw NotSupported(concat("seed context ", context));
  }
  const auto keys = row.at("keys").get<std::vector<uint32_t>>();
  const uint32_t seed =
      derive_seed(row.at("base_seed").get<uint64_t>(), static_cast<SeedContext>(context), keys);
  comparison.require(seed == row.at("derived_seed"), concat("derived seed ", row.dump()));
}

void check_generator(const Json& row, Comparison& comparison) {
  const auto seed = row.at("seed").get<uint64_t>();
  Pcg64 running(seed);
  comparison.require(running.next_double() == row.at("first_double"), "first double");
  for (const Json& permutation : row.at("then_permutations_of")) {
    const auto n = permutation.at("n").get<int64_t>();
    const Json note = permutation.value("note", Json());
    if (!note.is_null() && !note.get<std::string>().starts_with("fresh generator seeded with")) {
      throw NotSupported("note: " + note.get<std::string>());
    }
    Pcg64 fresh(seed + static_cast<uint64_t>(n));
    const Indices order = (note.is_null() ? running : fresh).permutation(n);
    const Json& expected =
        permutation.at("values").is_null() ? permutation.at("first_12") : permutation["values"];
    const Indices first(order.begin(), order.begin() + static_cast<int64_t>(expected.size()));
    comparison.require(first == expected.get<Indices>(), concat("permutation of ", n));
  }
}

// The `pass`-th permutation of n that a generator seeded for the data loader draws.
Indices drawn_order(uint64_t base_seed, uint32_t epoch_in_seed, int64_t n, int64_t pass) {
  Pcg64 generator(derive_seed(base_seed, SeedContext::kDataLoader, {{epoch_in_seed}}));
  generator.next_double();
  Indices order;
  for (int64_t i = 0; i <= pass; ++i)
    order = generator.permutation(n);
  return order;
}

// Sample orders of every worker of every group.
class WorkerOrders {
 public:
  explicit WorkerOrders(const Json& json)
      : json_(json),
        anchors_(data::usable_anchors(json.at("time_positions").get<int64_t>(),
                                      json.at("missing").get<Indices>(),
                                      json.at("relative_positions").get<Indices>())),
        shuffle_(json.at("shuffle").get<bool>()) {
    options_.seed = json.at("base_seed").get<uint64_t>();
    options_.shuffle = shuffle_;
    options_.num_groups = json.at("sample_groups").get<int64_t>();
    options_.workers = json.at("workers").get<int64_t>();
    options_.batch_size = num_samples();  // one batch per worker
  }

  void check(Comparison& comparison) const {
    comparison.require(anchors_ == json_.at("anchors").get<Indices>(), "anchors");
    for (const Json& row : json_.at("rows"))
      check_row(row, comparison);
  }

 private:
  int64_t num_samples() const { return static_cast<int64_t>(anchors_.size()); }

  void check_row(const Json& row, Comparison& comparison) const {
    const auto epoch = row.at("epoch_in_seed").get<uint32_t>();
    const auto group = row.at("group").get<int64_t>();
    const auto worker = row.at("worker").get<size_t>();
    const std::string where = concat("epoch ", epoch, " group ", group, " worker ", worker, ": ");
    comparison.require(derive_seed(options_.seed, SeedContext::kDataLoader, {{epoch}}) ==
                           row.at("seed").get<uint32_t>(),
                       where + "seed");
    const int64_t share = num_samples() / options_.num_groups;
    const Indices parts = data::balanced_offsets(share, options_.workers);
    const int64_t begin = group * share + parts.at(worker);
    const int64_t end = group * share + parts.at(worker + 1);
    comparison.require(Indices{begin, end} == row.at("index_range").get<Indices>(),
                       where + "index range");
    const Json& passes = row.at("iterations");
    for (size_t pass = 0; pass < passes.size(); ++pass) {
      const auto expected = passes[pass].get<Indices>();
      const std::string what = concat(where, "pass ", pass);
      comparison.require(part_of_pass(epoch, static_cast<int64_t>(pass), begin, end) == expected,
                         what);
      // The sampler can be asked for: passes of one generator started at epoch 0, and the
      // first pass of a generator started at any epoch.
      if (epoch == 0) {
        comparison.require(sampled(group, worker, static_cast<int64_t>(pass), false) == expected,
                           what + " (sampler)");
      }
      if (pass == 0) {
        comparison.require(sampled(group, worker, epoch, true) == expected,
                           what + " (sampler, reseeded)");
      }
    }
  }

  Indices part_of_pass(uint32_t epoch, int64_t pass, int64_t begin, int64_t end) const {
    Indices order(anchors_.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    if (shuffle_) order = drawn_order(options_.seed, epoch, num_samples(), pass);
    Indices samples;
    for (int64_t i = begin; i < end; ++i)
      samples.push_back(anchors_[static_cast<size_t>(order[static_cast<size_t>(i)])]);
    return samples;
  }

  Indices sampled(int64_t group, size_t worker, int64_t epoch, bool reseed) const {
    data::SamplerOptions options = options_;
    options.group = group;
    options.reseed_every_epoch = reseed;
    const Batches batches = data::Sampler(anchors_, options).epoch(epoch);
    return worker < batches.size() ? batches[worker] : Indices();  // empty shares come last
  }

  const Json& json_;
  const Indices anchors_;
  const bool shuffle_;
  data::SamplerOptions options_;
};

// The batches of successive epochs as one loader delivers them.
void check_loader(const Json& json, Comparison& comparison) {
  require_known_keys(json, {"time_positions", "batch_size", "workers", "base_seed", "epochs",
                            "missing", "relative_positions", "shuffle"});
  const Json& epochs = json.at("epochs");
  int64_t samples = 0;
  for (const Json& batch : epochs.at(0))
    samples += static_cast<int64_t>(batch.size());
  // If the window is not given, its length follows from the number of samples.
  const auto positions = json.at("time_positions").get<int64_t>();
  const Indices window =
      json.value("relative_positions", Indices{0, std::max<int64_t>(positions - samples, 0)});
  const Indices missing = json.value("missing", Indices());
  data::SamplerOptions options;
  options.seed = json.at("base_seed").get<uint64_t>();
  options.shuffle = json.value("shuffle", true);
  options.batch_size = json.at("batch_size").get<int64_t>();
  options.workers = json.at("workers").get<int64_t>();
  const data::Sampler sampler(data::usable_anchors(positions, missing, window), options);
  comparison.require(sampler.num_samples() == samples, "number of samples");
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    comparison.require(sampler.epoch(static_cast<int64_t>(epoch)) == epochs[epoch].get<Batches>(),
                       concat("epoch ", epoch));
  }
}

void check_usable_positions(const Json& json, Comparison& comparison) {
  require_known_keys(json, {"missing", "length", "relative", "usable"});
  comparison.require(
      data::usable_anchors(json.at("length").get<int64_t>(), json.at("missing").get<Indices>(),
                           json.at("relative").get<Indices>()) == json.at("usable").get<Indices>(),
      "usable positions");
}

void check_partition(const Json& json, Comparison& comparison) {
  const std::string ranges = "ranges_with_offset_";
  const auto parts = json.at("parts").get<size_t>();
  const Indices offsets =
      data::balanced_offsets(json.at("n").get<int64_t>(), static_cast<int64_t>(parts));
  comparison.require(offsets.size() == parts + 1, "number of parts");
  for (const auto& [key, value] : json.items()) {
    const bool is_ranges = key.starts_with(ranges);
    if (!is_ranges && key != "sizes") continue;
    const int64_t shift = is_ranges ? std::stoll(key.substr(ranges.size())) : 0;
    comparison.require(value.size() == parts, key);
    for (size_t p = 0; p < parts; ++p) {
      const int64_t begin = offsets[p], end = offsets[p + 1];
      const Json ours = is_ranges ? Json{begin + shift, end + shift} : Json(end - begin);
      comparison.require(value.at(p) == ours, concat(key, " of part ", p));
    }
  }
}

// One case per element of a list.
void run_list(const CaseFile& file, const std::string& kind, const Json& list, Report& report,
              void (*check)(const Json&, Comparison&)) {
  for (size_t i = 0; i < list.size(); ++i) {
    report.run(kind, element(file, i), [&](Comparison& comparison) { check(list[i], comparison); });
  }
}

}  // namespace

void run_learning_rate_cases(const CaseFile& file, Report& report) {
  run_list(file, "learning rate", file.json.at("tables"), report, check_learning_rates);
}

// Anchors that two datasets have in common, in the order of the package.
void check_common_anchors(const Json& json, Comparison& comparison) {
  const auto offsets = json.at("relative_positions").get<std::vector<int64_t>>();
  std::vector<std::vector<int64_t>> datasets;
  for (const std::string name : {"a", "b"}) {
    datasets.push_back(data::usable_anchors(json.at("positions_" + name).get<int64_t>(),
                                            json.at("missing_" + name).get<std::vector<int64_t>>(),
                                            offsets));
  }
  const std::vector<int64_t> common = data::common_anchors(datasets);
  comparison.require(static_cast<int64_t>(common.size()) == json.at("number").get<int64_t>(),
                     "another number of anchors");
  comparison.require(common == json.at("anchors").get<std::vector<int64_t>>(), "other anchors");
}

void run_rollout_length_cases(const CaseFile& file, Report& report) {
  run_list(file, "rollout length", file.json.at("tables"), report, check_rollout_lengths);
}

void run_seed_cases(const CaseFile& file, Report& report) {
  report.run("derived seeds", file.name, [&](Comparison& comparison) {
    for (const Json& row : file.json.at("derived"))
      check_derived_seed(row, comparison);
  });
  run_list(file, "generator", file.json.at("generators"), report, check_generator);
}

void run_sampler_cases(const CaseFile& file, Report& report) {
  for (const auto& [key, value] : file.json.items()) {
    if (key == "what" || key == "versions") continue;
    if (key == "cases") {
      run_list(file, "worker orders", value, report, [](const Json& json, Comparison& comparison) {
        WorkerOrders(json).check(comparison);
      });
    } else if (key == "loaders") {
      run_list(file, "loader order", value.at("cases"), report, check_loader);
    } else if (key == "usable_positions") {
      run_list(file, "usable positions", value, report, check_usable_positions);
    } else if (key == "two_datasets") {
      run_list(file, "common anchors", value.at("cases"), report, check_common_anchors);
    } else {
      report.skip("sampler", file.name + "/" + key, "samples of more than one store or sequence");
    }
  }
}

void run_partition_cases(const CaseFile& file, Report& report) {
  run_list(file, "partition", file.json.at("cases"), report, check_partition);
}

}  // namespace aifs::conformance
