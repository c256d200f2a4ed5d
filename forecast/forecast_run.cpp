// SPDX-License-Identifier: Apache-2.0
#include "forecast/forecast_run.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/seconds_since.h"
#include "core/time.h"
#include "data/loader/joint_feed.h"
#include "data/sources/forecast_rows.h"
#include "forecast/write_behind.h"
#include "train/output/host_copies.h"
#include "train/output_chain.h"

namespace aifs::forecast {

namespace {

constexpr int64_t kFieldsBehind = 2;  // lead times that wait to be written

// The columns that a forecast needs at times to come.
std::vector<int64_t> needed_columns(const ForecastDataset& dataset) {
  std::vector<int64_t> columns = dataset.variables.forcing_columns();
  if (dataset.output_mask.defined()) {
    const std::vector<int64_t>& prognostic = dataset.variables.prognostic_columns();
    columns.insert(columns.end(), prognostic.begin(), prognostic.end());
  }
  return columns;
}

int64_t num_steps(const ForecastSetup& setup, const ForecastRequest& request) {
  const int64_t num_times = request.lead_time_s / setup.timestep_s;
  return (num_times + setup.window.times_out - 1) / setup.window.times_out;
}

// The rows of a forecast that `dataset` gives.
std::shared_ptr<const data::ForecastRows> rows_of(const ForecastSetup& setup,
                                                  const ForecastDataset& dataset,
                                                  const ForecastRequest& request) {
  // Those of the last step need no forcings.
  const int64_t num_times_to_come = (num_steps(setup, request) - 1) * setup.window.times_out;
  return std::make_shared<data::ForecastRows>(
      dataset.source.dataset, data::ForecastRowsOptions{.start_s = request.start_s,
                                                        .timestep_s = setup.timestep_s,
                                                        .num_states = setup.window.times_in,
                                                        .num_times = num_times_to_come,
                                                        .needed = needed_columns(dataset),
                                                        .constant = request.constant});
}

class ForecastRun {
 public:
  ForecastRun(const ForecastSetup& setup, const ForecastRequest& request,
              const std::vector<std::shared_ptr<ForecastFile>>& files,
              const std::vector<std::vector<int64_t>>& outputs)
      : setup_(setup),
        files_(files),
        restarts_(request.restarts),
        num_times_(request.lead_time_s / setup.timestep_s),
        num_steps_(num_steps(setup, request)),
        first_step_(restarts_.from ? restarts_.from->steps : 0),
        copies_(setup.datasets.size()),
        turn_(setup.datasets.size()),
        writer_(kFieldsBehind) {
    for (size_t d = 0; d < setup.datasets.size(); ++d) {
      const ForecastDataset& dataset = setup.datasets[d];
      data::SampleSource source = dataset.source;
      source.dataset = rows_of(setup, dataset, request);
      sources_.push_back(std::move(source));
      chains_.emplace_back(dataset.source.normaliser, dataset.source.remapper,
                           dataset.post_processor, dataset.variables.output_columns());
      chosen_.push_back(at::tensor(at::ArrayRef<int64_t>(outputs[d]), at::kLong));
      on_device_.emplace_back();
      if (chains_[d].is_affine()) on_device_[d] = chains_[d].choose(chosen_[d], setup.device);
      cells_.emplace_back();
      if (dataset.output_mask.defined())
        cells_[d] =
            at::tensor(at::ArrayRef<int64_t>(written_cells(dataset)), at::kLong).to(place_of(d));
    }
  }

  ForecastTimes run(const train::Forecaster& forecaster) {
    const auto start = std::chrono::steady_clock::now();
    // Other replicas may wait for this one longer than they would for a lost one.
    const parallel::MeshSizes& sizes = setup_.mesh.sizes();
    std::shared_ptr<void> work;
    if (sizes.model * sizes.tensor * sizes.pipeline == 1)
      work = setup_.mesh.world().at_work("making a forecast");
    std::vector<data::FeedSource> feeds;
    for (size_t d = 0; d < sources_.size(); ++d)
      feeds.push_back({sources_[d], setup_.datasets[d].loading});
    data::JointFeed feed(feeds, requests(), setup_.device);
    std::vector<data::Batch> batches;
    {
      const auto reading = setup_.mesh.world().at_work("reading states of a forecast");
      feed.next(batches);
    }
    std::vector<at::Tensor> inputs;
    for (size_t d = 0; d < batches.size(); ++d) {
      inputs.push_back(batches[d].values.to(setup_.device, setup_.dtype));
      imputed_.push_back(imputed_outputs(d, batches[d].nan_mask));  // collective
      if (imputed_[d].defined()) imputed_[d] = imputed_[d].to(place_of(d));
    }
    if (restarts_.from) take_restart(inputs);
    last_kept_ = std::chrono::steady_clock::now();
    const auto later = [&](int64_t step, size_t dataset) {
      if (step != fetched_) {
        const auto reading = setup_.mesh.world().at_work("reading forcings of a forecast");
        feed.next(batches);
      }
      fetched_ = step;
      return batches[dataset].values.to(setup_.device, setup_.dtype);
    };
    forecaster.run_from(
        inputs, num_steps_ - first_step_, later,
        [&](const train::ForecastStep& step) { visit(step); },
        [&](int64_t step, const std::vector<at::Tensor>& next) { save_or_stop(step, next); });
    const auto writing = setup_.mesh.world().at_work("writing a forecast");
    writer_.finish();
    return {seconds_since(start), feed.wait_s(), writer_.wait_s()};
  }

 private:
  // Where fields of a dataset become what is written.
  at::Device place_of(size_t dataset) const {
    return chains_[dataset].is_affine() ? setup_.device : at::Device(at::kCPU);
  }

  // The states, then the times of each step but the last.
  std::vector<data::BatchRequest> requests() const {
    std::vector<data::BatchRequest> requests;
    int64_t row = 0;
    const auto add = [&](int64_t count) {
      data::BatchRequest request{{0}, {}};
      for (int64_t i = 0; i < count; ++i)
        request.offsets.push_back(row++);
      requests.push_back(std::move(request));
    };
    add(setup_.window.times_in);
    row += first_step_ * setup_.window.times_out;
    for (int64_t step = first_step_; step + 1 < num_steps_; ++step)
      add(setup_.window.times_out);
    return requests;
  }

  // Puts the inputs of a restart into `inputs`, (1, T, E, N, V) of each dataset.
  void take_restart(std::vector<at::Tensor>& inputs) const {
    for (size_t d = 0; d < inputs.size(); ++d) {
      const train::ForecastColumns columns(setup_.datasets[d].variables, setup_.device);
      std::vector<int64_t> sizes = inputs[d].sizes().vec();
      sizes.back() = columns.inputs.numel();
      const at::Tensor saved = at::empty(sizes, setup_.dtype);
      const std::vector<std::byte>& bytes = restarts_.from->inputs.at(d);
      AIFS_CHECK(bytes.size() == saved.nbytes(), "inputs of a restart have ", bytes.size(),
                 " bytes, of the network ", saved.nbytes());
      std::memcpy(saved.data_ptr(), bytes.data(), bytes.size());
      inputs[d] = inputs[d].index_copy(-1, columns.inputs, saved.to(setup_.device));
    }
  }

  // Writes a restart file, from which step + 1 begins with the inputs `next`, if it is time. Throws
  // InterruptedError if the program is to stop.
  void save_or_stop(int64_t step, const std::vector<at::Tensor>& next) {
    const bool stops = restarts_.should_stop && restarts_.should_stop();
    if (restarts_.path.empty()) {
      if (!stops) return;
      throw InterruptedError("stopped while another process makes the same forecast",
                             "the same command begins it anew if that one has not made it");
    }
    if (!stops && seconds_since(last_kept_) < restarts_.every_s) return;
    const int64_t done = first_step_ + step + 1;
    keep(done, next, stops);
    if (!stops) return;
    writer_.finish();
    throw InterruptedError(
        concat("stopped after ", done * setup_.window.times_out, " of ", num_times_, " lead times"),
        "the same command goes on from there");
  }

  // `required`: the program ends behind it.
  void keep(int64_t steps, const std::vector<at::Tensor>& next, bool required) {
    last_kept_ = std::chrono::steady_clock::now();
    Restart restart{.steps = steps, .files = {}, .inputs = {}};
    for (const at::Tensor& x : next) {
      const at::Tensor at_hand = x.to(at::kCPU).contiguous();
      const auto* begin = static_cast<const std::byte*>(at_hand.data_ptr());
      restart.inputs.emplace_back(begin, begin + at_hand.nbytes());
    }
    writer_.add([this, required, restart = std::move(restart)]() mutable {
      for (const std::shared_ptr<ForecastFile>& file : files_)
        restart.files.push_back(file ? file->keep() : "");
      try {
        write_restart(restarts_.path, restarts_.identity, restart);
      } catch (const Error& error) {
        if (required) throw;
        // The forecast may fit on a disk where its inputs do not.
        if (!std::exchange(is_told_, true))
          log::warning("the forecast cannot go on where it is interrupted: ", error.what());
      }
    });
  }

  // (N, V) bool of the chosen outputs at the cells of all ranks, undefined if nothing is imputed.
  at::Tensor imputed_outputs(size_t dataset, const at::Tensor& nan_mask) const {
    if (!nan_mask.defined()) return {};
    const std::vector<int64_t>& columns = setup_.datasets[dataset].variables.output_columns();
    const at::Tensor all = at::tensor(at::ArrayRef<int64_t>(columns), at::kLong);
    const at::Tensor chosen =
        nan_mask.select(0, 0).cpu().index_select(-1, all.index_select(0, chosen_[dataset]));
    return all_rows(dataset, chosen.to(setup_.device)).cpu().to(at::kBool);
  }

  // Rows of all ranks that share the forecast, (N, ...), from this rank's (n, ...).
  at::Tensor all_rows(size_t dataset, const at::Tensor& own) const {
    parallel::Communicator& group = setup_.mesh.model();
    if (group.size() == 1) return own;
    return group.all_gather_rows(own.contiguous(), setup_.datasets[dataset].cells_per_rank);
  }

  void visit(const train::ForecastStep& step) {
    const size_t d = step.dataset;
    // (1, T', E, n, V) -> (n, T', E, V); where nothing but a factor and a constant is between
    // normalised and physical values, the device turns the chosen ones alone.
    at::Tensor own = step.prediction.detach().select(0, 0).permute({2, 0, 1, 3});
    const bool on_device = chains_[d].is_affine();
    if (on_device) own = train::OutputChain::affine_physical(own, on_device_[d]);
    const at::Tensor fields = all_rows(d, own);
    setup_.mesh.world().moves_on("forecasting");  // other replicas may wait for it
    if (!files_[d]) return;
    const int64_t first = (first_step_ + step.step) * setup_.window.times_out;
    if (on_device) {
      write_behind(d, written(d, fields), first);
    } else {
      const at::Tensor here = fields.to(at::kCPU);
      add_piece([this, d, here, first] { write(d, written_on_cpu(d, here), first); });
    }
  }

  // Gives fields of the device, (T', E, V, N), to the writer: by memory that is used in turn, since
  // the one that was filled kFieldsBehind + 1 pieces ago has been written.
  void write_behind(size_t d, const at::Tensor& fields, int64_t first) {
    std::unique_ptr<train::HostCopies>& copies = copies_[d][turn_[d]++ % copies_[d].size()];
    if (!copies)
      copies =
          std::make_unique<train::HostCopies>(static_cast<int64_t>(fields.nbytes()), setup_.device);
    copies->clear();
    const at::Tensor here = copies->copy(fields);
    copies->end();
    add_piece([this, d, here, first, arriving = copies.get()] {
      arriving->wait();
      write(d, here, first);
    });
  }

  void add_piece(std::function<void()> piece) {
    const auto writing = setup_.mesh.world().at_work("writing a forecast");
    writer_.add(std::move(piece));
  }

  // Physical values of the chosen outputs (N, T', E, V) as they are written: (T', E, V, cells).
  at::Tensor written(size_t d, at::Tensor physical) const {
    if (imputed_[d].defined())
      physical.masked_fill_(imputed_[d].unsqueeze(1).unsqueeze(1),
                            std::numeric_limits<float>::quiet_NaN());
    if (cells_[d].defined()) physical = physical.index_select(0, cells_[d]);
    return physical.permute({1, 2, 3, 0}).contiguous();
  }

  // The same from normalised values of all outputs, on the CPU.
  at::Tensor written_on_cpu(size_t d, const at::Tensor& normalised) const {
    return written(d, chains_[d].physical(normalised).index_select(-1, chosen_[d]));
  }

  // In the thread of the writer, (T', E, V, cells).
  void write(size_t d, const at::Tensor& fields, int64_t first) const {
    for (int64_t t = 0; t < fields.size(0) && first + t < num_times_; ++t) {
      const at::Tensor field = fields.select(0, t);
      files_[d]->write(first + t, std::span<const float>(field.data_ptr<float>(),
                                                         static_cast<size_t>(field.numel())));
    }
  }

  const ForecastSetup& setup_;
  const std::vector<std::shared_ptr<ForecastFile>>& files_;
  const ForecastRestarts& restarts_;
  int64_t num_times_, num_steps_;
  int64_t first_step_;    // those before it are done
  int64_t fetched_ = -1;  // the step whose times to come are at hand
  std::vector<data::SampleSource> sources_;
  std::vector<train::OutputChain> chains_;
  std::vector<at::Tensor> chosen_;
  std::vector<train::ChosenOutputs> on_device_;  // of affine chains
  std::vector<at::Tensor> imputed_;
  std::vector<at::Tensor> cells_;                    // that are written; undefined: all
  std::chrono::steady_clock::time_point last_kept_;  // when a restart file was made, or the start
  bool is_told_ = false;                             // that no restart file can be written
  // Of each dataset: fields on their way from the device to the writer.
  std::vector<std::array<std::unique_ptr<train::HostCopies>, kFieldsBehind + 1>> copies_;
  std::vector<size_t> turn_;
  WriteBehind writer_;  // the last member: its thread ends before the others are gone
};

}  // namespace

std::vector<int64_t> chosen_outputs(const data::VariableTable& variables,
                                    const std::vector<std::string>& names) {
  std::vector<int64_t> chosen;
  if (names.empty()) {
    for (int64_t v = 0; v < variables.num_outputs(); ++v)
      chosen.push_back(v);
  }
  for (const std::string& name : names) {
    const int64_t v = variables.find_output(name);
    if (v < 0) {
      throw ConfigError("--variables", concat("the network has no output '", name, "'"),
                        nearest_names(name, variables.output_names()));
    }
    if (std::find(chosen.begin(), chosen.end(), v) == chosen.end()) chosen.push_back(v);
  }
  return chosen;
}

std::vector<int64_t> written_cells(const ForecastDataset& dataset) {
  std::vector<int64_t> cells;
  const int64_t count = dataset.source.dataset->info().num_nodes();
  for (int64_t i = 0; i < count; ++i)
    if (!dataset.output_mask.defined() || dataset.output_mask.data_ptr<bool>()[i])
      cells.push_back(i);
  return cells;
}

ForecastTimes run_forecast(const train::Forecaster& forecaster, const ForecastSetup& setup,
                           const ForecastRequest& request,
                           const std::vector<std::shared_ptr<ForecastFile>>& files,
                           const std::vector<std::vector<int64_t>>& outputs) {
  const at::NoGradGuard no_grad;
  if (forecaster.draws_noise()) {  // noise of a date is the same in every forecast of it
    const auto hours = static_cast<uint64_t>(request.start_s / 3600);
    const std::array<uint32_t, 2> date{static_cast<uint32_t>(hours >> 32),
                                       static_cast<uint32_t>(hours)};
    at::manual_seed(derive_seed(setup.seed, SeedContext::kModel, date));
  }
  return ForecastRun(setup, request, files, outputs).run(forecaster);
}

void check_request(const ForecastSetup& setup, const ForecastRequest& request) {
  for (const ForecastDataset& dataset : setup.datasets)
    rows_of(setup, dataset, request);
}

bool can_restart(const train::Forecaster& forecaster, const ForecastSetup& setup,
                 int64_t num_members) {
  const parallel::MeshSizes& sizes = setup.mesh.sizes();
  return sizes.model * sizes.tensor * sizes.pipeline == 1 && num_members == 1 &&
         !forecaster.draws_noise();
}

bool writes_forecasts(const parallel::ProcessMesh& mesh) {
  return mesh.model().rank() == 0 && mesh.tensor().rank() == 0 &&
         mesh.pipeline().rank() + 1 == mesh.pipeline().size();
}

}  // namespace aifs::forecast
