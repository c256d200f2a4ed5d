// SPDX-License-Identifier: Apache-2.0
#include "train/validation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/rng.h"
#include "core/time.h"
#include "data/fields/bad_input.h"
#include "parallel/gather_text.h"
#include "train/error_text.h"
#include "train/loss/loss_setup.h"
#include "train/scores/field_sums.h"
#include "train/scores/named_scores.h"

namespace aifs::train {

namespace {

std::vector<int64_t> parse_lead_times(const ValidationOptions& options, int64_t timestep_s) {
  std::vector<int64_t> leads;
  for (size_t i = 0; i < options.lead_times.size(); ++i) {
    const int64_t lead = parse_duration(options.lead_times[i]);
    if (lead % timestep_s != 0) {
      throw ConfigError(concat("train.validation.lead_times.", i),
                        concat(format_duration(lead), " is not a multiple of data.timestep, ",
                               format_duration(timestep_s)));
    }
    leads.push_back(lead);
  }
  if (leads.empty()) leads.push_back(timestep_s);
  std::sort(leads.begin(), leads.end());
  leads.erase(std::unique(leads.begin(), leads.end()), leads.end());
  return leads;
}

// How many model steps can be verified from a row: every row in between must be there.
int64_t verifiable_steps(const data::DatasetInfo& info, const Window& window, int64_t row,
                         int64_t most) {
  const auto usable = [&](int64_t at) {
    return at >= 0 && at < info.num_rows() &&
           !std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), at);
  };
  for (int64_t t = 1 - window.times_in; t <= 0; ++t) {
    if (!usable(row + t * window.row_step)) return 0;
  }
  for (int64_t step = 0; step < most; ++step) {
    for (int64_t t = 1; t <= window.times_out; ++t) {
      if (!usable(row + (step * window.times_out + t) * window.row_step)) return step;
    }
  }
  return most;
}

// Evenly spread choice of at most `most` of n positions.
std::vector<size_t> spread(size_t n, int64_t most) {
  std::vector<size_t> chosen;
  const size_t count = most == 0 ? n : std::min(n, static_cast<size_t>(most));
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(i * n / count);
  return chosen;
}

}  // namespace

struct Validation::Sums {
  std::vector<std::vector<FieldSums>> datasets;  // per lead time
  std::vector<int64_t> num_dates;                // per lead time
  double loss = 0.0;
  int64_t loss_dates = 0;

  void add(const Sums& other) {
    for (size_t d = 0; d < datasets.size(); ++d) {
      for (size_t i = 0; i < num_dates.size(); ++i)
        datasets[d][i].add(other.datasets[d][i]);
    }
    for (size_t i = 0; i < num_dates.size(); ++i)
      num_dates[i] += other.num_dates[i];
    loss += other.loss;
    loss_dates += other.loss_dates;
  }

  // True if any figure is beyond what a forecast that means anything has, not finite included.
  bool are_absurd() const {
    constexpr double kAbsurd = 1e12;  // squares of normalised errors
    const auto are_sound = [&](const std::vector<FieldSums>& lead_times) {
      return std::all_of(lead_times.begin(), lead_times.end(),
                         [](const FieldSums& sums) { return sums.are_below(kAbsurd); });
    };
    return !std::isfinite(loss) || !std::all_of(datasets.begin(), datasets.end(), are_sound);
  }
};

// Describes what ranks tell each other before each turn and between the steps of one, so that none
// waits for one that has left.
class Validation::Agreement {
 public:
  Agreement(parallel::Communicator& world, const std::function<bool()>& should_stop)
      : world_(world), should_stop_(should_stop) {}

  // Stops for this rank; told to all when they agree next.
  void stop() { stop_ = true; }
  void fail(const std::string& why) { failure_ = why; }

  // False, for good, once a rank is to stop or has failed. Collective.
  bool goes_on() {
    stop_ = stop_ || (should_stop_ && should_stop_());
    const std::vector<double> counts = parallel::sum_over(
        world_, {static_cast<double>(stop_), static_cast<double>(!failure_.empty())});
    if (counts[1] > 0) {
      const std::vector<std::string> texts = parallel::gather_text(world_, failure_);
      const auto first = std::find_if(texts.begin(), texts.end(),
                                      [](const std::string& text) { return !text.empty(); });
      result_.failure = first == texts.end() ? "unknown" : *first;
    }
    result_.stopped = counts[1] == 0 && counts[0] > 0;
    return result_.has_scores();
  }

  // Why all have left, once they have.
  const ValidationResult& result() const { return result_; }

 private:
  parallel::Communicator& world_;
  const std::function<bool()>& should_stop_;
  bool stop_ = false;
  std::string failure_;
  ValidationResult result_;
};

namespace {

// (n, 1) fp64 of the own cells; those of all cells sum to 1.
at::Tensor shares_of(const std::vector<float>& cell_weights, data::NodeRange nodes,
                     at::Device device) {
  const at::Tensor weights =
      at::tensor(at::ArrayRef<float>(cell_weights), at::kFloat).to(at::kDouble);
  return (weights / weights.sum()).narrow(0, nodes.begin, nodes.size()).unsqueeze(1).to(device);
}

// Throws ConfigError for a region whose cells all weigh nothing.
template <class Region>
std::vector<Region> regions_of(const FurtherValidation& d, at::Device device) {
  std::vector<Region> regions;
  const at::Tensor weights =
      at::tensor(at::ArrayRef<float>(d.cell_weights), at::kFloat).to(at::kDouble);
  const auto add = [&](const std::string& name, const at::Tensor& cells, const char* option) {
    const at::Tensor own = weights * cells;
    const double share = (own.sum() / weights.sum()).item<double>();
    if (share > 0.0) {
      regions.push_back(
          {name, share,
           (own / own.sum()).narrow(0, d.nodes.begin, d.nodes.size()).unsqueeze(1).to(device)});
    } else if (option) {
      throw ConfigError(option, concat("'", name, "': none of its cells counts in the scores"),
                        "name a region of cells that the network decides, with "
                        "train.validation.weights above 0");
    }
  };
  if (d.region.defined()) {
    add("inside_lam", d.region, "train.validation.region");
    add("outside_lam", at::logical_not(d.region), nullptr);
  }
  for (const NamedCells& named : d.regions)
    add(named.name, named.cells, "train.validation.regions");
  return regions;
}

data::LoaderOptions reading(data::LoaderOptions loading, data::NodeRange nodes) {
  loading.nodes = nodes;
  return loading;
}

}  // namespace

Validation::Scored Validation::scored(const FurtherValidation& d, at::Device device) {
  return {d.source,
          d.variables,
          d.nodes,
          reading(d.loading, d.nodes),
          d.loss.get(),
          d.loss_nodes,
          shares_of(d.cell_weights, d.nodes, device),
          OutputChain(d.source.normaliser, d.source.remapper, d.post_processor,
                      d.variables.output_columns()),
          regions_of<ScoredRegion>(d, device)};
}

std::vector<Validation::Date> Validation::candidates(int64_t most) const {
  std::vector<Date> dates;
  for (int64_t row = 0; row < setup_.source.dataset->info().num_rows(); ++row) {
    int64_t steps = most;
    for (const Scored& d : datasets_)
      steps = std::min(steps, verifiable_steps(d.source.dataset->info(), setup_.window, row, most));
    if (steps > 0) dates.push_back({row, steps});
  }
  return dates;
}

Validation::Validation(const ValidationOptions& options, const ValidationSetup& setup)
    : setup_(setup), lead_times_s_(parse_lead_times(options, setup.timestep_s)) {
  const FurtherValidation first{.name = setup_.name,
                                .source = setup_.source,
                                .variables = setup_.variables,
                                .cell_weights = setup_.cell_weights,
                                .region = setup_.region,
                                .regions = setup_.regions,
                                .post_processor = setup_.post_processor,
                                .nodes = setup_.nodes,
                                .loading = setup_.loading,
                                .loss = nullptr,  // run() is given it
                                .loss_nodes = setup_.loss_nodes};
  datasets_.push_back(scored(first, setup_.device));
  for (const FurtherValidation& further : setup_.further)
    datasets_.push_back(scored(further, setup_.device));
  const data::DatasetInfo& info = setup.source.dataset->info();
  const int64_t step_s = setup.timestep_s * setup.window.times_out;
  lead_steps_ = (lead_times_s_.back() + step_s - 1) / step_s;
  const std::vector<Date> candidates =
      this->candidates(std::max(lead_steps_, setup.longest_rollout));
  if (candidates.empty()) {
    throw DataError(concat("'", info.name, "'",
                           setup.further.empty() ? " has" : " and the datasets beside it have",
                           " no validation sample: ", info.num_rows(), " dates, of which ",
                           setup.window.times_in, " inputs and ", setup.window.times_out,
                           " outputs must follow each other"),
                    "widen data.validation.start and end");
  }
  const std::vector<size_t> chosen = spread(candidates.size(), options.max_dates);
  num_dates_ = static_cast<int64_t>(chosen.size());
  for (const size_t i : chosen)
    longest_steps_ = std::max(longest_steps_, candidates[i].steps);
  for (size_t k = 0; k < chosen.size(); ++k) {
    if (k % static_cast<size_t>(setup.mesh.sizes().data) == 0) turn_steps_.push_back(0);
    turn_steps_.back() = std::max(turn_steps_.back(), candidates[chosen[k]].steps);
  }
  const int64_t reached_s = longest_steps_ * step_s;
  const auto replicas = static_cast<size_t>(setup.mesh.sizes().data);
  for (size_t k = static_cast<size_t>(setup.mesh.replica()); k < chosen.size(); k += replicas)
    dates_.push_back(candidates[chosen[k]]);
  // A lead time that no forecast reaches would be missing from every table without a word.
  for (const int64_t lead_s : lead_times_s_) {
    if (lead_s <= reached_s) continue;
    throw DataError(
        concat("'", info.name, "' has no validation forecast of ", format_lead_time(lead_s),
               ": its ", info.num_rows(), " dates allow at most ", format_lead_time(reached_s)),
        "widen data.validation, or shorten train.validation.lead_times");
  }
}

void Validation::add_errors(const ForecastStep& step, const at::Tensor& persistence,
                            const at::Tensor& valid, Sums& sums) const {
  const Scored& scored = datasets_[step.dataset];
  std::vector<at::Tensor> weights{scored.weights};
  for (const ScoredRegion& region : scored.regions)
    weights.push_back(region.weights);
  for (int64_t t = 0; t < setup_.window.times_out; ++t) {
    const int64_t lead_s = (step.step * setup_.window.times_out + t + 1) * setup_.timestep_s;
    const auto found = std::find(lead_times_s_.begin(), lead_times_s_.end(), lead_s);
    if (found == lead_times_s_.end()) continue;
    const auto lead = static_cast<size_t>(found - lead_times_s_.begin());
    const OutputChain& outputs = scored.outputs;
    sums.datasets[step.dataset][lead].add_date(
        {.forecast = outputs.comparable(step.prediction.select(1, t)),
         .truth = outputs.comparable(step.truth.select(1, t)),
         .persistence = outputs.comparable(persistence.select(1, 0)),
         .valid = valid},
        weights);
    if (step.dataset == 0) ++sums.num_dates[lead];
  }
}

// Sums over the cells of a model group and the dates of all replicas, from the last stage to all.
// The loss and the number of dates are the same on all ranks of a model group already.
void Validation::sum_over_ranks(Sums& sums) const {
  for (std::vector<FieldSums>& lead_times : sums.datasets) {
    for (FieldSums& at_lead : lead_times)
      at_lead.sum_over_ranks(setup_.mesh);
  }
  std::vector<double> figures{sums.loss, static_cast<double>(sums.loss_dates)};
  for (const int64_t dates : sums.num_dates)
    figures.push_back(static_cast<double>(dates));
  for (parallel::Communicator* group : {&setup_.mesh.data(), &setup_.mesh.pipeline()})
    figures = parallel::sum_over(*group, figures);
  sums.loss = figures[0];
  sums.loss_dates = static_cast<int64_t>(figures[1]);
  for (size_t i = 0; i < sums.num_dates.size(); ++i)
    sums.num_dates[i] = static_cast<int64_t>(figures[i + 2]);
}

Validation::Sums Validation::zero_sums() const {
  Sums sums;
  for (const Scored& d : datasets_) {
    const auto rows = 1 + static_cast<int64_t>(d.regions.size());
    std::vector<FieldSums>& lead_times = sums.datasets.emplace_back();
    for (size_t i = 0; i < lead_times_s_.size(); ++i)
      lead_times.emplace_back(rows, d.variables.num_outputs(), setup_.device);
  }
  sums.num_dates.assign(lead_times_s_.size(), 0);
  return sums;
}

Validation::Sums Validation::sums_of_date(const std::vector<data::Batch>& batch, int64_t steps,
                                          const Pass& pass,
                                          const std::function<void()>& between) const {
  Sums sums = zero_sums();
  std::vector<at::Tensor> values, persistence, valid;
  std::vector<LossCall> calls;
  for (size_t d = 0; d < datasets_.size(); ++d) {
    values.push_back(batch[d].values.to(setup_.device, setup_.dtype));
    persistence.push_back(pass.forecaster.persistence(values[d], d));
    calls.push_back(call_of_batch(datasets_[d].loss_nodes, batch[d].nan_mask,
                                  datasets_[d].variables, values[d]));
    valid.push_back(calls[d].nan_mask ? calls[d].nan_mask->factor.select(1, 0) : at::Tensor());
  }
  if (pass.forecaster.draws_noise()) {  // noise of a date is the same in every validation of it
    const std::array<uint32_t, 1> date{static_cast<uint32_t>(batch[0].anchors[0])};
    at::manual_seed(derive_seed(0, SeedContext::kModel, date));
  }
  const bool has_loss = steps >= pass.rollout;
  const auto add = [&](const ForecastStep& step) {
    const size_t d = step.dataset;
    const Loss& loss = datasets_[d].loss ? *datasets_[d].loss : pass.loss;
    if (has_loss && step.step < pass.rollout)
      sums.loss += loss(step.prediction, step.truth, calls[d]).item<double>() /
                   static_cast<double>(pass.rollout);
    sums.loss_dates += has_loss && step.step == 0 && d == 0 ? 1 : 0;
    add_errors(step, persistence[d], valid[d], sums);
    setup_.mesh.world().moves_on("forecasting a validation date");  // replicas may wait for it
  };
  pass.forecaster.run(values, steps, add, between);
  return sums;
}

std::string Validation::fault_of_data(const Date& date, int64_t steps, const Sums& sums) const {
  if (!sums.are_absurd()) return "";
  const std::shared_ptr<void> work =
      setup_.mesh.world().at_work("reading absurd validation data again");
  std::vector<int64_t> rows;
  for (const int64_t offset : setup_.window.offsets(steps))
    rows.push_back(date.row + offset);
  for (const Scored& d : datasets_) {
    if (const auto bad = data::first_bad_input(*d.source.dataset, d.nodes, rows))
      return concat(bad->text, "; ", bad->hint);
  }
  return "";
}

bool Validation::run_turns(const Pass& pass, const ValidationCall& call, Agreement& agreement,
                           Sums& sums) const {
  struct Left {};  // thrown out of the forecasts of all ranks
  std::vector<data::BatchRequest> requests;
  for (const Date& date : dates_)
    requests.push_back({{date.row}, setup_.window.offsets(std::min(date.steps, pass.needed))});
  std::vector<data::FeedSource> sources;
  for (const Scored& d : datasets_)
    sources.push_back({d.source, d.loading});
  data::JointFeed loader(sources, requests, setup_.device);
  const parallel::MeshSizes& sizes = setup_.mesh.sizes();
  const bool works_alone = sizes.model * sizes.tensor * sizes.pipeline == 1;
  for (size_t turn = 0; turn < turn_steps_.size(); ++turn) {
    const bool has_date = turn < dates_.size();
    std::vector<data::Batch> batch;
    try {
      const std::shared_ptr<void> work = setup_.mesh.world().at_work("reading validation data");
      if (has_date) loader.next(batch, call.should_stop);
    } catch (const data::GivenUp&) {
      agreement.stop();
    } catch (const std::exception& error) {
      agreement.fail(error_text(error));
    }
    if (!agreement.goes_on()) return false;
    // As often on ranks whose forecast is shorter, or that have none.
    int64_t left = std::min(turn_steps_[turn], pass.needed) - 1;
    const auto between = [&] {
      --left;
      if (!agreement.goes_on()) throw Left();
    };
    try {
      if (has_date) {
        const Date& date = dates_[turn];
        const int64_t steps = std::min(date.steps, pass.needed);
        const Sums own = sums_of_date(batch, steps, pass, between);
        sums.add(own);
        if (const std::string fault = fault_of_data(date, steps, own); !fault.empty())
          agreement.fail(fault);
      }
    } catch (const Left&) {
      return false;
    } catch (const std::exception& error) {
      if (!works_alone) throw;
      agreement.fail(error_text(error));
    }
    while (left-- > 0) {
      if (!agreement.goes_on()) return false;
    }
    // The first stage is not to run ahead by more dates than there are stages.
    if ((static_cast<int64_t>(turn) + 1) % setup_.mesh.pipeline().size() == 0)
      setup_.mesh.pipeline().barrier();
  }
  return agreement.goes_on();
}

ValidationResult Validation::run(const Forecaster& forecaster, const Loss& loss,
                                 const ValidationCall& call) const {
  const at::NoGradGuard no_grad;
  const int64_t rollout = std::min(call.rollout, longest_steps_);
  const Pass pass{forecaster, loss, rollout, std::max(lead_steps_, rollout)};
  Agreement agreement(setup_.mesh.world(), call.should_stop);
  Sums sums = zero_sums();
  if (!run_turns(pass, call, agreement, sums)) return agreement.result();
  sum_over_ranks(sums);
  ValidationResult result = result_of(sums);
  result.rollout = rollout;
  result.loss_dates = sums.loss_dates;
  result.loss = sums.loss / static_cast<double>(sums.loss_dates);
  return result;
}

ValidationResult Validation::result_of(const Sums& sums) const {
  ValidationResult result;
  result.num_dates = num_dates_;
  result.lead_times = scores_of(sums, 0);
  if (datasets_.size() > 1) result.name = setup_.name;
  for (size_t d = 1; d < datasets_.size(); ++d) {
    result.further.push_back(
        {setup_.further[d - 1].name, &datasets_[d].variables, scores_of(sums, d)});
  }
  return result;
}

std::vector<LeadTimeScores> Validation::scores_of(const Sums& sums, size_t dataset) const {
  const Scored& scored = datasets_[dataset];
  std::vector<LeadTimeScores> all;
  for (size_t i = 0; i < lead_times_s_.size(); ++i) {
    if (sums.num_dates[i] == 0) continue;  // no date reaches that far
    LeadTimeScores scores{lead_times_s_[i], sums.num_dates[i], {}, {}};
    const FieldSums& own = sums.datasets[dataset][i];
    fill(own, 0, scores.num_dates, dataset, scores);
    for (const ScoredRegion& region : scored.regions) {
      scores.regions.push_back({region.name, region.share, {}, {}});
      fill(own, static_cast<int64_t>(scores.regions.size()), scores.num_dates, dataset,
           scores.regions.back());
    }
    all.push_back(std::move(scores));
  }
  return all;
}

template <class Scores>
void Validation::fill(const FieldSums& sums, int64_t row, int64_t num_dates, size_t dataset,
                      Scores& scores) const {
  const Scored& scored = datasets_[dataset];
  const data::Normaliser& norm = scored.source.normaliser;
  for (int64_t v = 0; v < scored.variables.num_outputs(); ++v) {
    const auto column =
        static_cast<size_t>(scored.variables.output_columns()[static_cast<size_t>(v)]);
    const double scale = 1.0 / static_cast<double>(norm.mul[column]);
    const auto mean = [&](const at::Tensor& sum) {
      return sum[row][v].item<double>() / static_cast<double>(num_dates);
    };
    const auto root = [&](const at::Tensor& sum) { return std::abs(scale) * std::sqrt(mean(sum)); };
    scores.rmse.push_back(root(sums.squared));
    scores.persistence_rmse.push_back(root(sums.persistence_squared));
    scores.bias.push_back(scale * mean(sums.error));
    scores.mae.push_back(std::abs(scale) * mean(sums.absolute));
    scores.activity.push_back(root(sums.activity));
    scores.truth_activity.push_back(root(sums.truth_activity));
  }
  const std::vector<std::string>& constant = scored.source.dataset->info().constant_fields;
  const std::vector<std::string> names = scored.variables.output_names();
  for (const int64_t v : scored.variables.output_prognostic()) {
    const bool said =
        std::count(constant.begin(), constant.end(), names[static_cast<size_t>(v)]) > 0;
    if (said || scores.persistence_rmse[static_cast<size_t>(v)] == 0.0)
      scores.constant.push_back(v);
  }
}

std::vector<std::string> Validation::score_names() const {
  Sums sums = zero_sums();
  sums.num_dates.assign(lead_times_s_.size(), 1);
  for (std::vector<FieldSums>& lead_times : sums.datasets) {
    for (FieldSums& at_lead : lead_times) {
      // On the CPU, where the figures are read one by one.
      at_lead = FieldSums(at_lead.squared.size(0), at_lead.squared.size(1), at::kCPU);
      at_lead.activity = at_lead.truth_activity = at_lead.squared;
    }
  }
  std::vector<std::string> names;
  for (const NamedScore& score : named_scores(to_json(result_of(sums), setup_.variables)))
    names.push_back(score.name);
  return names;
}

}  // namespace aifs::train
