# SPDX-License-Identifier: Apache-2.0
# Packages by CPack: tools/package says how. Both hold what `cmake --install` does, LibTorch
# included; a Debian package names the packages that have the other libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the developers of aifs-train")
set(CPACK_PACKAGING_INSTALL_PREFIX /opt/aifs-train)
set(CPACK_STRIP_FILES OFF)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  ${AIFS_TORCH_DIR}/torch/lib ${AIFS_TORCH_DIR}/nvidia/cu13/lib)
if(AIFS_HAVE_MPI)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
endif()
include(CPack)
