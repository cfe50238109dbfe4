# System packages only; `./dev setup` installs them by name.
find_package(PkgConfig REQUIRED)
pkg_check_modules(libuv REQUIRED IMPORTED_TARGET libuv>=1.44)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp>=2.5)
find_package(Boost 1.75 REQUIRED)          # Boost.PFR is header-only
find_package(nlohmann_json 3.9 REQUIRED)
find_package(spdlog 1.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_path(STOCKADE_UTF8CPP utf8.h REQUIRED)  # header-only; its CMake target has a name a version
