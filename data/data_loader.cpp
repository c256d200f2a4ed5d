// SPDX-License-Identifier: Apache-2.0
#include "data/data_loader.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "core/log.h"
#include "data/field_kernels.h"
#include "data/row_assembly.h"
#include "data/zarr/store.h"

namespace aifs::data {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAutoBatches = 4;  // read ahead where nobody says how many
// Fields beyond this are written past the caches.
constexpr int64_t kCachedBytes = int64_t{8} << 20;
constexpr int64_t kTurnedCells = 8192;  // of one task

// Sizes of a batch.
struct Sizes {
  int64_t samples = 0, times = 0, members = 1, nodes = 0, variables = 0;

  int64_t rows() const { return samples * times; }
  int64_t row_values() const { return members * nodes * variables; }
  int64_t values() const { return rows() * row_values(); }
  std::vector<int64_t> shape(BatchLayout layout) const {
    if (layout == BatchLayout::kCells) return {samples, times, members, nodes, variables};
    return {samples, times, members, variables, nodes};
  }
};

Sizes sizes_of(const SampleSource& source, const LoaderOptions& options,
               const BatchRequest& request) {
  const DatasetInfo& info = source.dataset->info();
  return {.samples = static_cast<int64_t>(request.anchors.size()),
          .times = static_cast<int64_t>(request.offsets.size()),
          .members = info.ensemble_size,
          .nodes = options.nodes.size(),
          .variables = info.num_variables()};
}

// Memory of one batch.
struct Slot {
  at::Tensor fields, cells, mask;  // cells: only in their layout; mask: only if NaN are filled

  Slot(const Sizes& largest, const LoaderOptions& options, bool fills) {
    const auto type = at::TensorOptions(at::kFloat).pinned_memory(options.pin_memory);
    fields = at::empty({largest.values()}, type);
    if (options.layout == BatchLayout::kCells) cells = at::empty({largest.values()}, type);
    const int64_t marks = largest.samples * largest.nodes * largest.variables;
    if (fills) mask = at::empty({marks}, type.dtype(at::kByte));
  }
};

int64_t slot_bytes(const Sizes& largest, const LoaderOptions& options, bool fills) {
  const int64_t copies = options.layout == BatchLayout::kCells ? 2 : 1;
  return copies * largest.values() * static_cast<int64_t>(sizeof(float)) +
         (fills ? largest.samples * largest.nodes * largest.variables : 0);
}

// A batch on its way: its rows are opened, read in pieces, and turned over.
struct Job {
  enum class Kind { kOpen, kPiece, kTurn };
  struct Task {
    Kind kind;
    int64_t row = 0;    // of the batch: sample * times + time
    int64_t first = 0;  // piece, or first cell
  };
  struct Row {
    std::unique_ptr<RowReader> reader;
    std::unique_ptr<RowAssembly> assembly;
  };

  size_t number = 0;
  Sizes sizes;
  std::unique_ptr<Slot> slot;
  std::vector<Row> rows;
  std::deque<Task> tasks;  // that wait for a thread
  int64_t running = 0;     // tasks that threads are at
  bool turned = false, done = false;
  std::exception_ptr error;  // the first one, in the order of rows
  int64_t error_row = 0;

  float* fields_of(int64_t row) const {
    return slot->fields.data_ptr<float>() + row * sizes.row_values();
  }
  std::span<uint8_t> mask_of(int64_t row) const {
    // Only the first time of a sample is marked.
    if (!slot->mask.defined() || row % sizes.times != 0) return {};
    const int64_t marks = sizes.nodes * sizes.variables;
    return {slot->mask.data_ptr<uint8_t>() + row / sizes.times * marks, static_cast<size_t>(marks)};
  }
};

// What threads and the calling thread of read_batch() do alike.
class BatchReader {
 public:
  BatchReader(const SampleSource& source, const LoaderOptions& options)
      : source_(source), options_(options), maps_(source) {}

  bool fills() const { return !source_.imputer.empty(); }
  void prepare(Job& job, const BatchRequest& request) const {
    job.sizes = sizes_of(source_, options_, request);
    job.rows.resize(static_cast<size_t>(job.sizes.rows()));
    for (int64_t row = 0; row < job.sizes.rows(); ++row)
      job.tasks.push_back({Job::Kind::kOpen, row});
  }
  // Carries out a task; gives those that follow from it.
  std::vector<Job::Task> run(Job& job, const BatchRequest& request, Job::Task task,
                             ReadScratch& scratch) const;
  // The tasks that follow when all rows are read.
  std::vector<Job::Task> turns(const Job& job) const;

 private:
  RowPlace place_of(const Job& job, const BatchRequest& request, int64_t row) const;

  const SampleSource& source_;
  const LoaderOptions& options_;
  ColumnMaps maps_;
};

RowPlace BatchReader::place_of(const Job& job, const BatchRequest& request, int64_t row) const {
  const auto sample = static_cast<size_t>(row / job.sizes.times);
  const auto time = static_cast<size_t>(row % job.sizes.times);
  const auto bytes = job.sizes.values() * static_cast<int64_t>(sizeof(float));
  return {.row = request.anchors[sample] + request.offsets[time],
          .nodes = options_.nodes,
          .fields = {job.fields_of(row), static_cast<size_t>(job.sizes.row_values())},
          .nan_mask = job.mask_of(row),
          .streams = bytes > kCachedBytes};
}

std::vector<Job::Task> BatchReader::run(Job& job, const BatchRequest& request, Job::Task task,
                                        ReadScratch& scratch) const {
  const Sizes& sizes = job.sizes;
  std::vector<Job::Task> following;
  Job::Row& row = job.rows[static_cast<size_t>(task.row)];
  switch (task.kind) {
    case Job::Kind::kOpen: {
      const RowPlace place = place_of(job, request, task.row);
      std::fill(place.nan_mask.begin(), place.nan_mask.end(), uint8_t{0});
      if (!maps_.are_independent()) {
        read_whole_row(source_, maps_, place, scratch);
        break;
      }
      row.reader = source_.dataset->open_row(place.row, place.nodes);
      row.assembly = std::make_unique<RowAssembly>(source_, maps_, place);
      const auto count = static_cast<int64_t>(row.reader->num_pieces());
      for (int64_t piece = 0; piece < count; ++piece)
        following.push_back({Job::Kind::kPiece, task.row, piece});
      break;
    }
    case Job::Kind::kPiece:
      row.reader->read_piece(static_cast<size_t>(task.first), *row.assembly, scratch);
      break;
    case Job::Kind::kTurn: {
      const int64_t count = std::min(kTurnedCells, sizes.nodes - task.first);
      for (int64_t e = 0; e < sizes.members; ++e) {
        const float* fields =
            job.fields_of(task.row) + e * sizes.variables * sizes.nodes + task.first;
        float* cells = job.slot->cells.data_ptr<float>() + task.row * sizes.row_values() +
                       (e * sizes.nodes + task.first) * sizes.variables;
        fields_to_cells(fields, sizes.nodes, sizes.variables, count, cells, sizes.variables);
      }
      break;
    }
  }
  return following;
}

std::vector<Job::Task> BatchReader::turns(const Job& job) const {
  std::vector<Job::Task> tasks;
  if (options_.layout == BatchLayout::kFields) return tasks;
  for (int64_t row = 0; row < job.sizes.rows(); ++row) {
    for (int64_t cell = 0; cell < job.sizes.nodes; cell += kTurnedCells)
      tasks.push_back({Job::Kind::kTurn, row, cell});
  }
  return tasks;
}

// Tensors over the memory of a slot, which `keep` holds.
template <class Keep>
Batch batch_of(const Job& job, const BatchRequest& request, const LoaderOptions& options,
               const Slot& slot, const Keep& keep) {
  const Sizes& sizes = job.sizes;
  const auto view = [&](const at::Tensor& memory, const std::vector<int64_t>& shape) {
    return at::from_blob(
        memory.data_ptr(), shape, [keep](void*) {}, memory.options());
  };
  Batch batch;
  batch.anchors = request.anchors;
  batch.values = view(options.layout == BatchLayout::kCells ? slot.cells : slot.fields,
                      sizes.shape(options.layout));
  if (slot.mask.defined())
    batch.nan_mask = view(slot.mask, {sizes.samples, sizes.nodes, sizes.variables});
  return batch;
}

}  // namespace

Batch read_batch(const SampleSource& source, const LoaderOptions& options,
                 const BatchRequest& request) {
  const BatchReader reader(source, options);
  Job job;
  reader.prepare(job, request);
  const auto slot = std::make_shared<Slot>(job.sizes, options, reader.fills());
  job.slot = std::make_unique<Slot>(*slot);  // the same memory
  ReadScratch scratch;
  const auto run_all = [&] {
    while (!job.tasks.empty()) {
      const Job::Task task = job.tasks.front();
      job.tasks.pop_front();
      for (const Job::Task& next : reader.run(job, request, task, scratch))
        job.tasks.push_back(next);
    }
  };
  run_all();
  for (const Job::Task& task : reader.turns(job))
    job.tasks.push_back(task);
  run_all();
  return batch_of(job, request, options, *slot, slot);
}

struct DataLoader::State : std::enable_shared_from_this<DataLoader::State> {
  const LoaderOptions options;
  const std::vector<BatchRequest> requests;
  const BatchReader reader;

  std::mutex mutex;
  std::condition_variable work, ready, leaving;
  std::deque<std::unique_ptr<Job>> jobs;  // begun and not delivered, in order
  std::vector<std::unique_ptr<Slot>> free_slots;
  size_t next_to_start = 0, next_to_deliver = 0;
  Sizes largest;
  int64_t most_slots = 1, num_slots = 0;
  bool stopping = false, is_waited_for = false;
  double waited_s = 0.0, busy_s = 0.0;
  std::vector<std::jthread> threads;

  State(const SampleSource& source, LoaderOptions options_, std::vector<BatchRequest> requests_)
      : options(std::move(options_)), requests(std::move(requests_)), reader(source, options) {
    for (const BatchRequest& request : requests) {
      const Sizes sizes = sizes_of(source, options, request);
      largest.samples = std::max(largest.samples, sizes.samples);
      largest.times = std::max(largest.times, sizes.times);
      largest.members = sizes.members;
      largest.nodes = sizes.nodes;
      largest.variables = sizes.variables;
    }
    most_slots = limit_of_slots();
  }

  int64_t batches_ahead() const {
    return options.prefetch_batches > 0 ? options.prefetch_batches : kAutoBatches;
  }

  // As many as are read ahead, one that the consumer holds, and no more than there is memory for.
  int64_t limit_of_slots() const {
    const int64_t bytes = slot_bytes(largest, options, reader.fills());
    const int64_t wanted = batches_ahead() + 1;
    if (bytes == 0) return wanted;
    if (options.memory_bytes > 0) {
      const int64_t fit = options.memory_bytes / bytes;
      if (fit == 0) {
        constexpr int64_t kMib = int64_t{1} << 20;
        throw ConfigError("data.memory_mib",
                          concat("has no room for a batch of ", bytes / kMib + 1, " MiB"),
                          "give at least twice as much, so that one is read while another is used");
      }
      return options.prefetch_batches > 0 ? std::min(fit, wanted) : fit;
    }
    const int64_t memory =
        static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
    return std::clamp<int64_t>(memory / 4 / bytes, 2, wanted);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    work.notify_all();
    leaving.notify_all();
    threads.clear();  // joins
  }

  // Both with the mutex held. A consumer that keeps all buffers gets one more when it waits.
  bool can_start() const {
    return next_to_start < requests.size() &&
           next_to_start < next_to_deliver + static_cast<size_t>(batches_ahead()) &&
           (!free_slots.empty() || num_slots < most_slots || (is_waited_for && jobs.empty()));
  }
  Job* job_with_work() const {
    for (const auto& job : jobs) {
      if (!job->tasks.empty()) return job.get();
    }
    return nullptr;
  }

  void run_threads();
  void start_job(std::unique_lock<std::mutex>& lock);
  void work_on(std::unique_lock<std::mutex>& lock, Job& job, ReadScratch& scratch);
  bool wait_to_retry(int64_t attempt, const Error& failure);
  void advance(Job& job);
  void give_back(std::unique_ptr<Slot> slot) {
    {
      const std::lock_guard lock(mutex);
      free_slots.push_back(std::move(slot));
    }
    work.notify_one();
  }
};

void DataLoader::State::start_job(std::unique_lock<std::mutex>& lock) {
  Job& job = *jobs.emplace_back(std::make_unique<Job>());
  job.number = next_to_start++;
  if (!free_slots.empty()) {
    job.slot = std::move(free_slots.back());
    free_slots.pop_back();
  } else {
    ++num_slots;
    job.running = 1;  // until it has memory, which takes its time
    lock.unlock();
    std::exception_ptr error;
    try {
      job.slot = std::make_unique<Slot>(largest, options, reader.fills());
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    job.running = 0;
    job.error = error;
  }
  if (!job.error) reader.prepare(job, requests[job.number]);
  advance(job);  // a batch of no samples is done at once
  work.notify_all();
}

// When no task of a job waits or runs: what comes next.
void DataLoader::State::advance(Job& job) {
  if (job.done || job.running > 0 || !job.tasks.empty()) return;
  if (!job.turned && !job.error) {
    job.turned = true;
    for (const Job::Task& task : reader.turns(job))
      job.tasks.push_back(task);
    if (!job.tasks.empty()) {
      work.notify_all();
      return;
    }
  }
  job.done = true;
  job.rows.clear();  // closes files
  ready.notify_all();
}

void DataLoader::State::work_on(std::unique_lock<std::mutex>& lock, Job& job,
                                ReadScratch& scratch) {
  const Job::Task task = job.tasks.front();
  job.tasks.pop_front();
  ++job.running;
  lock.unlock();
  std::vector<Job::Task> following;
  std::exception_ptr error;
  const Clock::time_point start = Clock::now();
  for (int64_t attempt = 0;; ++attempt) {
    try {
      following = reader.run(job, requests[job.number], task, scratch);
    } catch (const zarr::ReadError& failure) {
      if (attempt < options.retries && wait_to_retry(attempt, failure)) continue;
      error = std::current_exception();
    } catch (...) {
      error = std::current_exception();
    }
    break;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  lock.lock();
  busy_s += seconds;
  --job.running;
  if (error && (!job.error || task.row < job.error_row)) {
    job.error = error;
    job.error_row = task.row;
  }
  // Rows before the one that failed may fail, too: the first error counts, whoever came first.
  if (job.error) {
    std::erase_if(job.tasks, [&](const Job::Task& t) { return t.row >= job.error_row; });
    std::erase_if(following, [&](const Job::Task& t) { return t.row >= job.error_row; });
  }
  job.tasks.insert(job.tasks.end(), following.begin(), following.end());
  if (following.size() > 1) work.notify_all();
  advance(job);
}

// Waits longer each time. False if the loader is left meanwhile.
bool DataLoader::State::wait_to_retry(int64_t attempt, const Error& failure) {
  const double seconds = std::min(0.2 * std::pow(4.0, static_cast<double>(attempt)), 60.0);
  log::warning(failure.what(), "; another try in ", seconds, " s");
  std::unique_lock lock(mutex);
  return !leaving.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return stopping; });
}

void DataLoader::State::run_threads() {
  ReadScratch scratch;
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (Job* job = job_with_work()) {
      work_on(lock, *job, scratch);
    } else if (can_start()) {
      start_job(lock);
    } else {
      work.wait(lock);
    }
  }
}

DataLoader::DataLoader(const SampleSource& source, LoaderOptions options,
                       std::vector<BatchRequest> requests) {
  AIFS_CHECK(options.threads > 0 && options.prefetch_batches >= 0 && options.memory_bytes >= 0,
             options.threads, " reader threads, ", options.prefetch_batches, " batches, ",
             options.memory_bytes, " bytes");
  state_ = std::make_shared<State>(source, std::move(options), std::move(requests));
  try {
    for (int64_t i = 0; i < state_->options.threads; ++i)
      state_->threads.emplace_back([state = state_.get()] { state->run_threads(); });
  } catch (const std::system_error& error) {
    state_->stop();
    throw Error(concat("cannot start ", state_->options.threads,
                       " reader threads: ", error.code().message()),
                "lower data.threads, or raise the limit of processes (ulimit -u)");
  }
}

DataLoader::~DataLoader() {
  if (!state_) return;
  state_->stop();
  // Slots of batches that were not taken go; tensors that were keep the state alive.
  state_->jobs.clear();
  state_->free_slots.clear();
}

bool DataLoader::next(Batch& batch, const GiveUp& give_up) {
  constexpr auto kPatience = std::chrono::milliseconds(200);
  State& state = *state_;
  batch = {};  // its buffer may be the one that is waited for
  std::unique_lock lock(state.mutex);
  if (state.next_to_deliver == state.requests.size()) return false;
  const Clock::time_point start = Clock::now();
  const auto is_there = [&] { return !state.jobs.empty() && state.jobs.front()->done; };
  bool given_up = false;
  state.is_waited_for = true;
  state.work.notify_one();
  while (!given_up && !state.ready.wait_for(lock, kPatience, is_there))
    given_up = give_up && give_up();
  state.is_waited_for = false;
  state.waited_s += std::chrono::duration<double>(Clock::now() - start).count();
  if (given_up) throw GivenUp();
  const std::unique_ptr<Job> job = std::move(state.jobs.front());
  state.jobs.pop_front();
  ++state.next_to_deliver;
  lock.unlock();
  // Goes back to the loader with the last tensor of the batch.
  if (!job->slot) std::rethrow_exception(job->error);
  Slot& slot = *job->slot;
  const std::shared_ptr<Slot> keep(job->slot.release(), [loader = state_](Slot* used) {
    loader->give_back(std::unique_ptr<Slot>(used));
  });
  state.work.notify_all();
  if (job->error) std::rethrow_exception(job->error);
  batch = batch_of(*job, state.requests[job->number], state.options, slot, keep);
  return true;
}

double DataLoader::wait_s() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waited_s;
}

double DataLoader::busy_s() const {
  const std::lock_guard lock(state_->mutex);
  return state_->busy_s;
}

int64_t DataLoader::buffer_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->num_slots * slot_bytes(state_->largest, state_->options, state_->reader.fills());
}

}  // namespace aifs::data
