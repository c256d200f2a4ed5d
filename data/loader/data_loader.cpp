// SPDX-License-Identifier: Apache-2.0
#include "data/loader/data_loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/seconds_since.h"
#include "data/host_share.h"
#include "data/loader/batch_reader.h"
#include "data/loader/buffer_pool.h"
#include "data/zarr/store.h"

namespace aifs::data {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAutoBatches = 4;    // read ahead where nobody says how many
constexpr int64_t kShareOfMemory = 4;  // all buffers of a machine: one in so many bytes
constexpr int64_t kMib = int64_t{1} << 20;
constexpr auto kLook = std::chrono::microseconds(500);     // at counters in shared memory
constexpr auto kRollCall = std::chrono::milliseconds(50);  // a system call for each rank

}  // namespace

int64_t automatic_memory(int64_t processes) {
  return usable_memory() / kShareOfMemory / std::max<int64_t>(1, processes);
}

int64_t num_buffers(const LoaderOptions& options, int64_t batch_bytes) {
  const bool is_limited = options.memory_bytes > 0;
  const int64_t memory = is_limited ? options.memory_bytes : automatic_memory(options.processes);
  const int64_t fit = memory / std::max<int64_t>(1, batch_bytes);
  if (is_limited && fit == 0) {
    throw ConfigError("data.memory_mib",
                      concat("has no room for a batch of ", batch_bytes / kMib + 1, " MiB"),
                      "give at least twice as much, so that one is read while another is used");
  }
  const int64_t room = is_limited ? fit : std::max<int64_t>(fit, 2);
  if (options.prefetch_batches > 0) return std::min(room, options.prefetch_batches + 1);
  return is_limited ? room : std::min(room, kAutoBatches + 1);
}

Batch read_batch(const SampleSource& source, const LoaderOptions& options,
                 const BatchRequest& request) {
  LoaderOptions alone = options;  // of ranks that read together: not in step with the others
  alone.share = nullptr;
  const BatchReader reader(source, alone);
  BufferPool own_pool(options.device);
  BufferPool& pool = options.pool ? *options.pool : own_pool;
  BatchJob job;
  job.request = request;
  reader.prepare(job);
  job.slot = reader.make_slot(job.sizes, nullptr, pool);
  ReadScratch scratch;
  const auto run_all = [&] {
    while (!job.tasks.empty()) {
      const BatchJob::Task task = job.tasks.front();
      job.tasks.pop_front();
      for (const BatchJob::Task& next : reader.run(job, task, scratch))
        job.tasks.push_back(next);
    }
  };
  run_all();
  for (const BatchJob::Task& task : reader.turns(job))
    job.tasks.push_back(task);
  run_all();
  return reader.batch_of(job, std::shared_ptr<BatchSlot>(std::move(job.slot)));
}

struct DataLoader::State : std::enable_shared_from_this<DataLoader::State> {
  const LoaderOptions options;
  const BatchReader reader;
  const std::shared_ptr<BufferPool> pool;

  std::mutex mutex;
  std::condition_variable work, ready, leaving;
  std::deque<BatchRequest> requests;           // not begun
  std::deque<std::unique_ptr<BatchJob>> jobs;  // begun and not delivered, in order
  size_t num_started = 0, num_delivered = 0;
  BatchSizes largest;
  int64_t first_number = 0;  // of the batches, where ranks read together
  int64_t most_slots = 1, num_slots = 0;
  bool stopping = false, is_waited_for = false, is_looking = false;
  Clock::time_point next_roll_call;  // not before: of the ranks that read together
  double waited_s = 0.0, busy_s = 0.0;
  std::vector<std::jthread> threads;

  State(const SampleSource& source, LoaderOptions options_)
      : options(std::move(options_)),
        reader(source, options),
        pool(options.pool ? options.pool : std::make_shared<BufferPool>(options.device)),
        largest(reader.sizes_of({})) {}

  // With the mutex held, or before there are threads.
  void add(std::vector<BatchRequest> more) {
    BatchSizes sizes = largest;
    for (const BatchRequest& request : more)
      reader.grow(sizes, request);
    const int64_t slots =
        options.share ? options.share->num_slots() : num_buffers(options, reader.slot_bytes(sizes));
    if (options.share) {
      const int64_t number = options.share->take_numbers(static_cast<int64_t>(more.size()));
      if (num_started + requests.size() == 0) first_number = number;
    }
    largest = sizes;
    most_slots = slots;
    for (BatchRequest& request : more)
      requests.push_back(std::move(request));
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
    return !requests.empty() &&
           num_started < num_delivered + static_cast<size_t>(std::max<int64_t>(1, most_ahead())) &&
           has_slot();
  }
  int64_t most_ahead() const {
    return options.prefetch_batches > 0 ? options.prefetch_batches : most_slots - 1;
  }
  bool has_slot() const {
    if (options.share) return options.share->is_free(share_number(num_started));
    return num_slots < most_slots || (is_waited_for && jobs.empty());
  }
  int64_t share_number(size_t number) const { return first_number + static_cast<int64_t>(number); }
  BatchJob* job_with_work() const {
    for (const auto& job : jobs) {
      if (!job->tasks.empty()) return job.get();
    }
    return nullptr;
  }

  void run_threads();
  void start_job(std::unique_lock<std::mutex>& lock);
  void work_on(std::unique_lock<std::mutex>& lock, BatchJob& job, ReadScratch& scratch);
  bool wait_to_retry(int64_t attempt, const Error& failure);
  void advance(BatchJob& job);
  void finish_reading(BatchJob& job);
  bool is_waiting(const BatchJob& job) const {
    return job.phase == BatchJob::Phase::kWaitingForOthers;
  }
  // Both may give up the lock for a while.
  void look_at_others(std::unique_lock<std::mutex>& lock);
  void call_the_roll(std::unique_lock<std::mutex>& lock);
  void give_back(const BatchJob& job, std::unique_ptr<BatchSlot> slot);
};

void DataLoader::State::give_back(const BatchJob& job, std::unique_ptr<BatchSlot> slot) {
  if (options.share) {
    reader.clear_own_mask(job, *slot);
    options.share->release(share_number(job.number));
  }
  slot.reset();  // to the pool, before it is asked for another one
  {
    const std::lock_guard lock(mutex);
    --num_slots;
  }
  work.notify_one();
}

void DataLoader::State::start_job(std::unique_lock<std::mutex>& lock) {
  BatchJob& job = *jobs.emplace_back(std::make_unique<BatchJob>());
  job.number = num_started++;
  job.request = std::move(requests.front());
  requests.pop_front();
  ++num_slots;
  job.running = 1;  // until it has memory, which may take its time
  const BatchSizes sizes = largest;
  lock.unlock();
  std::exception_ptr error;
  try {
    std::byte* shared = options.share ? options.share->slot(share_number(job.number)) : nullptr;
    job.slot = reader.make_slot(sizes, shared, *pool);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  job.running = 0;
  job.error = error;
  if (error)
    --num_slots;
  else
    reader.prepare(job);
  advance(job);  // a batch of no samples is done at once
  work.notify_all();
}

// This rank's part of a batch is read, or has failed.
void DataLoader::State::finish_reading(BatchJob& job) {
  job.rows.clear();
  job.phase = BatchJob::Phase::kWaitingForOthers;
  if (!options.share) return;
  const int64_t number = share_number(job.number);
  if (job.error) {
    try {
      std::rethrow_exception(job.error);
    } catch (const std::exception& error) {
      options.share->fail(number, error.what());
    }
  }
  options.share->finish(number);
}

// Takes a job on to its next phase when no task of this one waits or runs.
void DataLoader::State::advance(BatchJob& job) {
  using Phase = BatchJob::Phase;
  if (job.running > 0 || !job.tasks.empty()) return;
  if (job.phase == Phase::kReading) finish_reading(job);
  if (job.phase == Phase::kWaitingForOthers) {
    if (options.share && !options.share->is_finished(share_number(job.number))) return;
    const std::string failure =
        options.share ? options.share->failure(share_number(job.number)) : "";
    if (!failure.empty()) job.error = std::make_exception_ptr(DataError(failure));
    job.phase = Phase::kTurning;
    if (!job.error) {
      for (const BatchJob::Task& task : reader.turns(job))
        job.tasks.push_back(task);
    }
    if (!job.tasks.empty()) {
      work.notify_all();
      return;
    }
  }
  job.phase = Phase::kDone;
  ready.notify_all();
}

// Other ranks say nothing: whether they have finished, or are gone, has to be looked at.
void DataLoader::State::look_at_others(std::unique_lock<std::mutex>& lock) {
  for (const auto& job : jobs) {
    if (is_waiting(*job)) advance(*job);
  }
  const bool waits =
      std::any_of(jobs.begin(), jobs.end(), [this](const auto& job) { return is_waiting(*job); });
  if (waits && Clock::now() >= next_roll_call) call_the_roll(lock);
}

// The system is asked once for each rank, which takes too long to be done under the lock or often.
void DataLoader::State::call_the_roll(std::unique_lock<std::mutex>& lock) {
  next_roll_call = Clock::now() + kRollCall;  // of all threads
  lock.unlock();
  const std::optional<int64_t> lost = options.share->lost_rank();
  lock.lock();
  if (!lost) return;
  for (const auto& job : jobs) {
    // The rank may have finished its part before it went.
    if (!is_waiting(*job) || options.share->is_finished(share_number(job->number))) continue;
    job->error = std::make_exception_ptr(
        Error(concat("rank ", *lost, " of those that read samples together has ended"),
              "its own messages say why; go on with --resume"));
    job->phase = BatchJob::Phase::kDone;
    ready.notify_all();
  }
}

void DataLoader::State::work_on(std::unique_lock<std::mutex>& lock, BatchJob& job,
                                ReadScratch& scratch) {
  const BatchJob::Task task = job.tasks.front();
  job.tasks.pop_front();
  ++job.running;
  if (options.share) work.notify_one();  // somebody has to look at the others
  lock.unlock();
  std::vector<BatchJob::Task> following;
  std::exception_ptr error;
  const Clock::time_point start = Clock::now();
  for (int64_t attempt = 0;; ++attempt) {
    try {
      following = reader.run(job, task, scratch);
    } catch (const zarr::ReadError& failure) {
      if (attempt < options.retries && wait_to_retry(attempt, failure)) continue;
      error = std::current_exception();
    } catch (...) {
      error = std::current_exception();
    }
    break;
  }
  const double seconds = seconds_since(start);
  lock.lock();
  busy_s += seconds;
  --job.running;
  if (error && (!job.error || task.row < job.error_row)) {
    job.error = error;
    job.error_row = task.row;
  }
  // Rows before the one that failed may fail, too: the first error counts, whoever came first.
  if (job.error) {
    std::erase_if(job.tasks, [&](const BatchJob::Task& t) { return t.row >= job.error_row; });
    std::erase_if(following, [&](const BatchJob::Task& t) { return t.row >= job.error_row; });
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
    if (options.share) look_at_others(lock);
    if (stopping) break;  // meanwhile
    if (BatchJob* job = job_with_work()) {
      work_on(lock, *job, scratch);
    } else if (can_start()) {
      start_job(lock);
    } else if (options.share && !is_looking) {  // one of them is enough
      is_looking = true;
      work.wait_for(lock, kLook);
      is_looking = false;
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
  state_ = std::make_shared<State>(source, std::move(options));
  state_->add(std::move(requests));
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
}

void DataLoader::add(std::vector<BatchRequest> requests) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->add(std::move(requests));
  }
  state_->work.notify_all();
}

bool DataLoader::next(Batch& batch, const GiveUp& give_up) {
  constexpr auto kPatience = std::chrono::milliseconds(200);
  State& state = *state_;
  batch = {};  // its buffer may be the one that is waited for
  std::unique_lock lock(state.mutex);
  if (state.jobs.empty() && state.requests.empty()) return false;
  const Clock::time_point start = Clock::now();
  const auto is_there = [&] {
    return !state.jobs.empty() && state.jobs.front()->phase == BatchJob::Phase::kDone;
  };
  bool given_up = false;
  state.is_waited_for = true;
  state.work.notify_all();
  while (!given_up && !state.ready.wait_for(lock, kPatience, is_there))
    given_up = give_up && give_up();
  state.is_waited_for = false;
  state.waited_s += seconds_since(start);
  if (given_up) throw GivenUp();
  const std::shared_ptr<BatchJob> job = std::move(state.jobs.front());
  state.jobs.pop_front();
  ++state.num_delivered;
  lock.unlock();
  if (!job->slot) std::rethrow_exception(job->error);
  // Goes back to the loader with the last tensor of the batch.
  const std::shared_ptr<BatchSlot> slot(job->slot.release(), [loader = state_, job](BatchSlot* s) {
    loader->give_back(*job, std::unique_ptr<BatchSlot>(s));
  });
  state.work.notify_all();
  if (job->error) std::rethrow_exception(job->error);
  batch = state.reader.batch_of(*job, slot);
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
  return state_->num_slots * state_->reader.slot_bytes(state_->largest);
}

}  // namespace aifs::data
