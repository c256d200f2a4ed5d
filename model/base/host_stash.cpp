// SPDX-License-Identifier: Apache-2.0
#include "model/base/host_stash.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/check.h"

namespace aifs::model {

namespace {

// Host memory comes in pages of a power of two, to which LibTorch's allocator of page-locked memory
// rounds sizes up. Every tensor begins one.
constexpr int64_t kPageBytes = int64_t{1} << 26;

// So many items more may wait for their copies in a forward pass: one is copied while the next is
// computed. With three, O1280 on a mesh of 8 refinements took 76.6 GiB, 12 of them for that.
constexpr size_t kMostOnTheirWay = 1;

at::Tensor bytes_of(const c10::Storage& storage, at::Device device) {
  return at::empty({0}, at::TensorOptions(at::kByte).device(device))
      .set_(storage, 0, {static_cast<int64_t>(storage.nbytes())}, {1});
}

}  // namespace

struct HostStash::Lane {
  c10::impl::VirtualGuardImpl guard;
  at::Device device;
  c10::Stream side;
  c10::Event begin;
  Tensors free_pages;
  int64_t num_pages = 0;

  explicit Lane(at::Device device_)
      : guard(device_.type()),
        device(device_),
        side(guard.getStreamFromGlobalPool(device_)),
        begin(device_.type()) {}

  c10::Stream current() const { return guard.getStream(device); }

  // Copies on the side stream, after all that the current stream was given.
  template <class Copies>
  void run(const Copies& copies, c10::Event& end) {
    begin.record(current());
    begin.block(side);
    const c10::StreamGuard on_side_stream(side);
    copies();
    end.record(side);
  }

  at::Tensor page() {
    if (free_pages.empty()) {
      ++num_pages;
      return at::empty({kPageBytes}, at::TensorOptions(at::kByte).pinned_memory(true));
    }
    at::Tensor page = std::move(free_pages.back());
    free_pages.pop_back();
    return page;
  }
};

// On the device, or on the host, or taken.
class HostStash::Item {
 public:
  // How a tensor lies in its memory.
  struct View {
    size_t memory;
    at::ScalarType type;
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  struct Memory {
    int64_t bytes;
    Tensors pages;
  };

  ~Item() {
    if (copied && !tensors.empty()) copied->block(lane->current());  // fetched, and never taken
    release_pages();
  }
  bool is_on_host() const { return !memories.empty() && tensors.empty(); }
  void release_pages() {
    for (Memory& memory : memories) {
      std::move(memory.pages.begin(), memory.pages.end(), std::back_inserter(lane->free_pages));
    }
    memories.clear();
  }

  Tensors tensors;
  size_t num_here = 1;
  std::weak_ptr<Item> previous;
  std::shared_ptr<Lane> lane;
  std::optional<c10::Event> copied;  // out or back, whichever was last
  std::vector<View> views;
  std::vector<Memory> memories;
};

HostStash::HostStash() = default;
HostStash::~HostStash() = default;

int64_t HostStash::host_bytes() const {
  return lane_ ? lane_->num_pages * kPageBytes : 0;
}

HostStash::ItemPtr HostStash::put(const Tensors& tensors, bool stays, size_t num_here) {
  const auto item = std::make_shared<Item>();
  for (const at::Tensor& tensor : tensors)
    item->tensors.push_back(tensor.detach());
  item->num_here = num_here;
  item->previous = last_;
  last_ = item;
  if (!stays && tensors[0].is_cuda()) copy_out(*item);
  here_.push_back(item);
  leave_device(num_here + kMostOnTheirWay);
  return item;
}

void HostStash::copy_out(Item& item) {
  if (!lane_) lane_ = std::make_shared<Lane>(item.tensors[0].device());
  item.lane = lane_;
  item.copied.emplace(lane_->device.type());
  std::map<const void*, size_t> known;
  const auto copy = [&] {
    for (const at::Tensor& tensor : item.tensors) {
      const c10::Storage& storage = tensor.storage();
      const auto [place, is_new] =
          known.try_emplace(storage.unsafeGetStorageImpl(), item.memories.size());
      item.views.push_back({place->second, tensor.scalar_type(), tensor.sizes().vec(),
                            tensor.strides().vec(), tensor.storage_offset()});
      if (!is_new) continue;
      const at::Tensor bytes = bytes_of(storage, lane_->device);
      Item::Memory& memory = item.memories.emplace_back(Item::Memory{bytes.numel(), {}});
      if (memory.bytes == 0) continue;
      for (const at::Tensor& piece : bytes.split(kPageBytes)) {
        memory.pages.push_back(lane_->page());
        memory.pages.back().narrow(0, 0, piece.numel()).copy_(piece, /*non_blocking=*/true);
      }
    }
  };
  lane_->run(copy, *item.copied);
}

// But for the last `num_here`. The current stream waits for copies: what it is given later may use
// the memory.
void HostStash::leave_device(size_t num_here) {
  for (; here_.size() > num_here; here_.pop_front()) {
    Item& item = *here_.front();
    if (!item.copied) continue;
    item.copied->block(item.lane->current());
    item.tensors.clear();
  }
}

void HostStash::settle() {
  if (!here_.empty()) leave_device(here_.back()->num_here);
}

void HostStash::fetch(Item& item) {
  Tensors memories;
  for (const Item::Memory& memory : item.memories) {
    memories.push_back(
        at::empty({memory.bytes}, at::TensorOptions(at::kByte).device(lane_->device)));
  }
  const auto copy = [&] {
    for (size_t m = 0; m < memories.size(); ++m) {
      const Tensors pieces = memories[m].split(kPageBytes);
      for (size_t p = 0; p < pieces.size(); ++p) {
        pieces[p].copy_(item.memories[m].pages[p].narrow(0, 0, pieces[p].numel()),
                        /*non_blocking=*/true);
      }
    }
  };
  lane_->run(copy, *item.copied);
  for (const Item::View& view : item.views) {
    item.tensors.push_back(
        at::empty({0}, at::TensorOptions(view.type).device(lane_->device))
            .set_(memories[view.memory].storage(), view.offset, view.sizes, view.strides));
  }
  item.release_pages();  // whoever writes to them next does so on the same stream
}

HostStash::Tensors HostStash::take(const ItemPtr& item) {
  AIFS_CHECK(!item->tensors.empty() || item->is_on_host(),
             "a layer whose inputs are on the host has one backward pass only");
  if (item->is_on_host()) fetch(*item);
  if (item->copied) item->copied->block(item->lane->current());
  item->release_pages();
  std::erase(here_, item);
  ItemPtr before = item->previous.lock();
  for (size_t i = 0; before && i < item->num_here; ++i, before = before->previous.lock()) {
    if (before->is_on_host()) fetch(*before);
  }
  return std::exchange(item->tensors, {});
}

}  // namespace aifs::model
