# scripts/test and scripts/quickstart install what is missing and pass the place of llama.cpp in CMAKE_PREFIX_PATH.
find_package(Threads REQUIRED)
find_package(llama REQUIRED)  # brings ggml
find_package(hwy REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
if(RAZORKV_TESTS)
  find_package(GTest REQUIRED)
endif()
