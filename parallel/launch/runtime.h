// SPDX-License-Identifier: Apache-2.0
// This process among the others: found from the launcher's environment
// (parallel/launch/launcher.h), joined through MPI or, where the launcher does not speak its
// protocol, a store of the first rank; left in the destructor. Who shares a host is counted,
// because launchers say it of some host, or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "parallel/communicator.h"
#include "parallel/operation_ring.h"
#include "parallel/operation_watch.h"

namespace aifs::parallel {

// Ranks that a launcher has started, or 1. Reads only the environment.
int launched_ranks();
// This process among them.
int launched_rank();
// This process among those on its host, as the launcher says; 0 where it does not.
int launched_local_rank();

class Runtime {
 public:
  // Joins the other ranks, if there are any. From now on operations that wait longer than the time
  // limit (0: none) end the process, joining included. Throws ConfigError with the path "parallel",
  // on all ranks alike, if MPI sees other ranks than were launched or cannot read their launcher.
  explicit Runtime(double timeout_s = 0.0);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int rank() const;
  int size() const;
  const std::string& host() const { return host_; }
  // "rank 3 on node12".
  std::string name() const;

  // Sets what the run is at ("step 12"), for the message about a wait.
  void set_place(const std::string& place);

  // The last operations of this rank, kept by communicators that are given it; null for one rank.
  std::shared_ptr<OperationRing> ring() const { return ring_; }
  // From now on a rank that waits too long, or is asked to end while nothing moves, leaves its last
  // operations in `folder`, as rank-<n>.json. `hint` says how to read them.
  void record_hangs(const std::filesystem::path& folder, std::function<bool()> is_asked_to_end,
                    const std::string& hint);

  // From now on GPU tensors travel over NCCL, on the device that is current. Throws ConfigError in
  // a build without CUDA.
  void use_nccl();
  // This process among those on its host, as the launcher says or else by rank.
  int local_rank() const { return local_rank_; }
  // How many there are.
  int local_size() const { return local_size_; }
  // Cores for this process, where those that it may use (core/cores.h) are shared out over all
  // processes of the run on this machine that may use them, too; at least 1.
  int64_t num_cores() const { return num_cores_; }
  // True if the launcher says that all processes are on one host.
  static bool one_host();

  // All ranks. CPU tensors, and GPU tensors after use_nccl().
  Communicator& world() { return *world_; }

 private:
  void join(double timeout_s);
  void open_board();
  void find_neighbours();

  std::string host_;
  int local_rank_ = 0, local_size_ = 1;
  int64_t num_cores_ = 1;
  std::shared_ptr<OperationWatch> watch_;  // shared with the communicators
  std::shared_ptr<OperationRing> ring_;
  bool has_mpi_ = false;
  std::unique_ptr<Communicator> world_;
};

}  // namespace aifs::parallel
