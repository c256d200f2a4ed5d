// SPDX-License-Identifier: Apache-2.0
// Tensors that wait for the backward pass in page-locked memory of the host. They are copied out on
// a stream of their own beside the computation, and fetched back while what came after them is in
// its backward pass. Page-locked memory is allocated once and used again. On the CPU tensors stay
// where they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <vector>

namespace aifs::model {

class HostStash {
 public:
  using Tensors = std::vector<at::Tensor>;
  // Describes what was put away together: the state before a group of layers.
  class Item;
  using ItemPtr = std::shared_ptr<Item>;

  HostStash();
  ~HostStash();
  HostStash(const HostStash&) = delete;
  HostStash& operator=(const HostStash&) = delete;

  // Puts tensors away, which are not changed any more. Of all items, this one and the `num_here` -
  // 1 before it stay on the device, and some more that are being copied; an item that `stays` is
  // never copied. Items of a forward pass without a backward pass leave with those put later.
  ItemPtr put(const Tensors& tensors, bool stays, size_t num_here);

  // Ends a forward pass: when the device begins what the current stream is given next, only what
  // stays is there.
  void settle();

  // Returns the same values, once, for the current stream. As many items put before this one as
  // were to be on the device with it are fetched meanwhile.
  Tensors take(const ItemPtr& item);

  // Bytes of page-locked memory.
  int64_t host_bytes() const;

 private:
  struct Lane;  // the stream of the copies and their memory; none before the first copy

  void copy_out(Item& item);
  void fetch(Item& item);
  void leave_device(size_t num_here);

  std::shared_ptr<Lane> lane_;
  std::weak_ptr<Item> last_;
  std::deque<ItemPtr> here_;  // on the device since they were put, perhaps on their way
};

}  // namespace aifs::model
