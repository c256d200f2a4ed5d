// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/board_probe.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#include "core/file_io.h"
#include "core/host.h"
#include "parallel/gather_text.h"

namespace aifs::parallel {

std::vector<std::string> addresses_of_host(bool is_master) {
  constexpr size_t kMostOfNetworks = 4;  // each may take seconds to be found dead
  std::vector<std::string> found{host_name()};
  const char* master = is_master ? std::getenv("MASTER_ADDR") : nullptr;
  if (master && *master) found.emplace_back(master);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  std::vector<std::string> networks;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_flags & IFF_LOOPBACK) || !(one->ifa_flags & IFF_UP)) continue;
    if (one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    sockaddr_in address{};
    std::copy_n(reinterpret_cast<const char*>(one->ifa_addr), sizeof address,
                reinterpret_cast<char*>(&address));
    if (::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text)) networks.emplace_back(text);
  }
  ::freeifaddrs(all);
  networks.resize(std::min(networks.size(), kMostOfNetworks));
  for (std::string& address : networks) {
    if (std::count(found.begin(), found.end(), address) == 0) found.push_back(std::move(address));
  }
  return found;
}

std::vector<int> ranks_without_board(Communicator& world, WorkBoard* board) {
  const bool is_first = world.rank() == 0;
  bool works = board && (is_first || board->note(concat("rank ", world.rank(), ": joining")));
  world.barrier();
  // A server that is none of this job may have the port, too: it does not know this word.
  std::string word;
  if (is_first) {
    word = "rank 0: joining as " + unique_suffix();
    works = works && board->note(word);
  }
  word = gather_text(world, word).front();
  works = works && board->last_word() == word;
  const std::vector<std::string> seen = gather_text(world, works ? "1" : "0");
  std::vector<int> without;
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank] != "1") without.push_back(static_cast<int>(rank));
  }
  return without;
}

}  // namespace aifs::parallel
