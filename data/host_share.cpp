// SPDX-License-Identifier: Apache-2.0
#include "data/host_share.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::data {

namespace {

constexpr size_t kPage = 4096;  // slots begin on pages
constexpr size_t kTextBytes = 2048;

// One byte of the file for each rank.
struct flock lock_of(int64_t rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

size_t round_up(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

// Counters that only grow: a batch n uses a slot for the (n / slots)-th time.
struct HostShare::Slot {
  std::atomic<int64_t> finished{0}, released{0};  // by all ranks since the beginning
  std::atomic<int64_t> failed_batch{-1};
  std::atomic<bool> has_text{false};
  char text[kTextBytes] = {};
  static_assert(std::atomic<int64_t>::is_always_lock_free);
};

HostShare::HostShare(std::string name, const Place& place, int64_t slots, int64_t slot_bytes)
    : name_(std::move(name)), place_(place), slots_(slots), slot_bytes_(slot_bytes) {
  AIFS_CHECK(slots > 0 && slot_bytes > 0 && place.rank < place.ranks, slots, " slots of ",
             slot_bytes, " bytes for rank ", place.rank, " of ", place.ranks);
  bytes_ = static_cast<size_t>(slots) *
           (round_up(sizeof(Slot)) + round_up(static_cast<size_t>(slot_bytes)));
}

bool HostShare::map(int descriptor) {
  descriptor_ = descriptor;
  struct flock own = lock_of(place_.rank);
  // Held by the open file, not by a process number that a container may not know: gone when the
  // last descriptor of it is, which is when the process ends.
  if (::fcntl(descriptor, F_OFD_SETLK, &own) != 0) return false;
  void* found =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (found == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(found);
  return true;
}

std::optional<int64_t> HostShare::lost_rank() const {
  for (int64_t rank = 0; rank < place_.ranks; ++rank) {
    if (rank == place_.rank) continue;
    struct flock other = lock_of(rank);
    if (::fcntl(descriptor_, F_OFD_GETLK, &other) == 0 && other.l_type == F_UNLCK) return rank;
  }
  return std::nullopt;
}

std::shared_ptr<HostShare> HostShare::create(const Place& place, int64_t slots,
                                             int64_t slot_bytes) {
  std::shared_ptr<HostShare> share(
      new HostShare("/aifs-" + unique_suffix(), place, slots, slot_bytes));
  const int descriptor = ::shm_open(share->name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) return nullptr;
  // Without real memory behind it, the first write beyond what is there would end the process.
  if (::posix_fallocate(descriptor, 0, static_cast<off_t>(share->bytes_)) != 0) {
    ::close(descriptor);
    share->unlink_name();
    return nullptr;
  }
  if (!share->map(descriptor)) {
    share->unlink_name();
    return nullptr;
  }
  for (int64_t slot = 0; slot < slots; ++slot)
    new (&share->header(slot)) Slot();
  return share;
}

std::shared_ptr<HostShare> HostShare::open(const std::string& name, const Place& place,
                                           int64_t slots, int64_t slot_bytes) {
  std::shared_ptr<HostShare> share(new HostShare(name, place, slots, slot_bytes));
  const int descriptor = ::shm_open(name.c_str(), O_RDWR, 0600);
  return descriptor >= 0 && share->map(descriptor) ? share : nullptr;
}

HostShare::~HostShare() {
  if (memory_) ::munmap(memory_, bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void HostShare::unlink_name() const {
  ::shm_unlink(name_.c_str());
}

int64_t HostShare::take_numbers(int64_t count) {
  const int64_t first = next_number_;
  next_number_ += count;
  return first;
}

HostShare::Slot& HostShare::header(int64_t batch) const {
  const auto slot = static_cast<size_t>(batch % slots_);
  return *std::launder(
      static_cast<Slot*>(static_cast<void*>(memory_ + slot * round_up(sizeof(Slot)))));
}

std::byte* HostShare::slot(int64_t batch) const {
  const auto slot = static_cast<size_t>(batch % slots_);
  return memory_ + static_cast<size_t>(slots_) * round_up(sizeof(Slot)) +
         slot * round_up(static_cast<size_t>(slot_bytes_));
}

bool HostShare::is_free(int64_t batch) const {
  const int64_t uses_before = batch / slots_;
  return header(batch).released.load(std::memory_order_acquire) >= uses_before * place_.ranks;
}

void HostShare::finish(int64_t batch) const {
  header(batch).finished.fetch_add(1, std::memory_order_acq_rel);
}

bool HostShare::is_finished(int64_t batch) const {
  const int64_t uses = batch / slots_ + 1;
  return header(batch).finished.load(std::memory_order_acquire) >= uses * place_.ranks;
}

void HostShare::release(int64_t batch) const {
  header(batch).released.fetch_add(1, std::memory_order_acq_rel);
}

void HostShare::fail(int64_t batch, const std::string& text) const {
  Slot& slot = header(batch);
  int64_t seen = slot.failed_batch.load();
  while (seen < batch) {
    if (!slot.failed_batch.compare_exchange_weak(seen, batch)) continue;
    slot.has_text = false;
    const size_t length = std::min(text.size(), kTextBytes - 1);
    std::memcpy(slot.text, text.data(), length);
    slot.text[length] = '\0';
    slot.has_text = true;
    return;
  }
}

std::string HostShare::failure(int64_t batch) const {
  const Slot& slot = header(batch);
  if (slot.failed_batch.load() != batch) return "";
  return slot.has_text ? std::string(slot.text) : "another rank could not read its part";
}

}  // namespace aifs::data
