// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/openmpi_components.h"

#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

TEST_CASE("an OpenMPI without a component for PMI-2 is known by its files", "[parallel]") {
  const test::TemporaryFolder folder;
  const fs::path lib = folder.path() / "lib", library = lib / "libmpi.so";
  REQUIRE(parallel::may_read_pmi2(library));  // nothing is known of what is not there
  make_directories(lib);
  write_file_atomic(lib / "libmpi.so.40", "");
  fs::create_symlink("libmpi.so.40", library);
  REQUIRE(parallel::may_read_pmi2(library));  // components may be built in
  for (const char* place : {"openmpi", "openmpi/lib/openmpi3"}) {
    INFO(place);
    const fs::path components = lib / place;
    make_directories(components);
    write_file_atomic(components / "mca_pmix_ext3x.so", "");
    REQUIRE_FALSE(parallel::may_read_pmi2(library));
    for (const char* component : {"mca_pmix_s1.so", "mca_pmix_s2.so"}) {
      write_file_atomic(components / component, "");
      REQUIRE(parallel::may_read_pmi2(library));
      fs::remove(components / component);
    }
    fs::remove_all(lib / "openmpi");
  }
}

TEST_CASE("a link from elsewhere leads to the components of the library", "[parallel]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "mpi/openmpi");
  make_directories(folder.path() / "lib");
  write_file_atomic(folder.path() / "mpi/libmpi.so", "");
  write_file_atomic(folder.path() / "mpi/openmpi/mca_pmix_pmix3x.so", "");
  fs::create_symlink(folder.path() / "mpi/libmpi.so", folder.path() / "lib/libmpi.so");
  REQUIRE_FALSE(parallel::may_read_pmi2(folder.path() / "lib/libmpi.so"));
}
