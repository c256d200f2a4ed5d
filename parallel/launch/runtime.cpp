// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/runtime.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "core/check.h"
#include "core/cores.h"
#include "core/file_io.h"
#include "core/host.h"
#include "core/log.h"
#include "parallel/backends/comm_store.h"
#include "parallel/gather_text.h"
#include "parallel/launch/board_probe.h"
#include "parallel/launch/launcher.h"
#ifdef AIFS_HAVE_CUDA
#include "parallel/backends/comm_nccl.h"
#endif
#ifdef AIFS_HAVE_MPI
#include "parallel/backends/comm_mpi.h"
#endif

namespace aifs::parallel {

namespace {

const Launch& launch() {
  static const Launch the_only_one = read_launch();
  return the_only_one;
}

std::string text_of_ranks(const std::vector<int>& without, const BoardAddress& address) {
  constexpr size_t kShown = 8;
  std::string ranks, hosts;
  for (size_t i = 0; i < std::min(without.size(), kShown); ++i)
    ranks += concat(i > 0 ? ", " : "", without[i]);
  if (without.size() > kShown) ranks += concat(" and ", without.size() - kShown, " more");
  for (const std::string& host : address.hosts)
    hosts += concat(hosts.empty() ? "" : ", ", host);
  return concat("words of known work do not get through: rank ", ranks,
                " and rank 0 do not hear each other (tried ", hosts, ", port ", address.port,
                "). There a checkpoint, a graph or a validation counts as a wait: let MASTER_ADDR "
                "name an address of rank 0 that all reach, or make parallel.timeout_s longer than "
                "such work takes");
}

}  // namespace

int launched_ranks() {
  return launch().ranks;
}

int launched_rank() {
  return launch().rank;
}

int launched_local_rank() {
  return launch().local_rank.value_or(0);
}

Runtime::Runtime(double timeout_s)
    : host_(host_name()),
      watch_(std::make_shared<OperationWatch>(launched_ranks() > 1 ? timeout_s : 0.0,
                                              concat("rank ", launched_rank(), " on ", host_))) {
  join(timeout_s);
  find_neighbours();
  if (timeout_s > 0) open_board();
  if (size() > 1) ring_ = std::make_shared<OperationRing>();
}

// Ranks may not reach each other's hosts by name, or at all: then they do without a board.
void Runtime::open_board() {
  if (size() == 1) return;
  std::shared_ptr<WorkBoard> board;
  uint16_t port = 0;
  if (rank() == 0) board = serve_work_board(port);
  std::string own;
  if (rank() == 0) {
    own = concat(port, "\n", host_identity());
    for (const std::string& address : addresses_of_host(/*is_master=*/true))
      own += "\n" + address;
  }
  std::istringstream lines(gather_text(*world_, own).front());
  std::string line, host;
  std::getline(lines, line);
  port = static_cast<uint16_t>(std::stoi(line));
  std::getline(lines, host);
  BoardAddress address{{}, port};
  if (host == host_identity()) address.hosts.emplace_back("127.0.0.1");
  while (std::getline(lines, line))
    address.hosts.push_back(line);
  if (rank() != 0 && port != 0) board = join_work_board(address);
  const std::vector<int> without = ranks_without_board(*world_, board.get());
  if (std::count(without.begin(), without.end(), rank()) > 0) board.reset();
  if (!without.empty() && rank() == 0) log::warning(text_of_ranks(without, address));
  watch_->set_board(std::move(board));
}

void Runtime::join(double timeout_s) {
  if (launched_ranks() == 1) {
    world_ = make_single_communicator();
    return;
  }
#ifdef AIFS_HAVE_MPI
  if (launch().has_mpi) {
    if (launch().srun_pmi2 && !may_join_by_pmi2()) {
      throw ConfigError("parallel",
                        concat("srun started ", launched_ranks(),
                               " ranks with --mpi=pmi2, which this MPI cannot read"),
                        "start them with srun --mpi=pmix (srun --mpi=list says what there is), or "
                        "without MPI: srun --mpi=none");
    }
    const OperationWatch::Scope joining(*watch_, "joining the other ranks");
    initialize_mpi();
    has_mpi_ = true;
    world_ = make_mpi_world(watch_);
    if (world_->size() != launched_ranks()) {
      throw ConfigError("parallel",
                        concat(launch().launcher, " started ", launched_ranks(),
                               " ranks, MPI sees ", world_->size()),
                        "this MPI and the launcher do not know each other: try srun --mpi=pmix, "
                        "srun --mpi=none or flux run -o pmi=off (without MPI), or mpirun");
    }
    return;
  }
#endif
  const MeetingPoint point = read_meeting_point(launch());
  world_ = make_store_world({point.address, point.port}, launched_rank(), launched_ranks(),
                            timeout_s, watch_);
}

// One line of each rank: its host, its machine, the cores that it may use. Containers of a machine
// are hosts of their own, but compute on the same cores.
void Runtime::find_neighbours() {
  const Cores own = cores_of_process();
  const auto part = [](const std::string& line, int number) {
    size_t begin = 0;
    for (int i = 0; i < number; ++i)
      begin = line.find('\n', begin) + 1;
    return line.substr(begin, line.find('\n', begin) - begin);
  };
  const std::vector<std::string> lines =
      gather_text(*world_, concat(host_identity(), "\n", machine_identity(), "\n", to_text(own)));
  const std::string& mine = lines[static_cast<size_t>(rank())];
  std::vector<Cores> on_machine;
  int before = 0;
  local_size_ = 0;
  for (size_t r = 0; r < lines.size(); ++r) {
    if (part(lines[r], 1) == part(mine, 1))
      on_machine.push_back(cores_from_text(part(lines[r], 2)));
    if (part(lines[r], 0) != part(mine, 0)) continue;
    ++local_size_;
    if (static_cast<int>(r) < rank()) ++before;
  }
  local_rank_ = launch().local_rank.value_or(before);
  num_cores_ = share_of_cores(own, on_machine);
}

Runtime::~Runtime() {
  watch_->set_board(nullptr);
  world_.reset();
#ifdef AIFS_HAVE_MPI
  if (has_mpi_) {
    const OperationWatch::Scope leaving(*watch_, "leaving the other ranks");
    finalize_mpi();
  }
#endif
}

int Runtime::rank() const {
  return world_->rank();
}
int Runtime::size() const {
  return world_->size();
}

std::string Runtime::name() const {
  return concat("rank ", rank(), " on ", host_);
}

bool Runtime::one_host() {
  return launch().local_size == launch().ranks;
}

void Runtime::use_nccl() {
#ifdef AIFS_HAVE_CUDA
  world_ = make_nccl_communicator(std::move(world_));
#else
  throw ConfigError("parallel", "this program was built without CUDA and NCCL");
#endif
}

void Runtime::set_place(const std::string& place) {
  watch_->set_place(place);
  if (ring_) ring_->set_place(place);
}

void Runtime::record_hangs(const std::filesystem::path& folder,
                           std::function<bool()> is_asked_to_end, const std::string& hint) {
  if (!ring_) return;
  const auto write = [ring = ring_, folder, rank = rank(),
                      who = name()](const std::string& reason) {
    try {
      char file[32];
      std::snprintf(file, sizeof file, "rank-%05d.json", rank);
      make_directories(folder);
      write_file_atomic(folder / file, ring->to_json(rank, who, reason));
    } catch (const std::exception& error) {
      log::warning("the last operations of this rank are lost: ", error.what());
    }
  };
  watch_->set_record({.write = write,
                      .is_asked_to_end = std::move(is_asked_to_end),
                      .quiet_s = [ring = ring_] { return ring->seconds_since_last(); },
                      .note_stop = [ring = ring_](double seconds) { ring->note_stop(seconds); },
                      .hint = hint});
}

}  // namespace aifs::parallel
