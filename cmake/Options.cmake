# Every flag of the project goes through this one target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# The build tree has the layout of an installation (bin, lib/stockade, …), so that the executable
# finds its plugins and its launcher the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")

# Only of the compilers that the project is checked with: what a newer one has come to warn of must not
# keep anybody from building.
option(STOCKADE_WERROR "turn warnings into errors, with g++ 12 and clang 14" OFF)
if(NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13) AND
   NOT (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(STOCKADE_WERROR OFF)
endif()
set(STOCKADE_SANITIZE "" CACHE STRING "sanitizers to build with, e.g. address,undefined")

add_library(stockade_options INTERFACE)
add_library(stockade::options ALIAS stockade_options)
target_compile_options(stockade_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${STOCKADE_WERROR}>:-Werror>)
target_include_directories(stockade_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
# With optimisation g++ 12 warns of its own inlined std::string and std::optional (GCC bugs 105329, 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(stockade_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:
    -Wno-array-bounds -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow>)
endif()

# The same for libraries and executables, so that all can share a precompiled header.
target_compile_options(stockade_options INTERFACE
  -fPIC $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)

if(STOCKADE_SANITIZE)
  target_compile_options(stockade_options INTERFACE
    -fsanitize=${STOCKADE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(stockade_options INTERFACE -fsanitize=${STOCKADE_SANITIZE})
endif()

# g++ does not turn coroutine hand-over into a tail call at -O0, so a long chain of completions
# would grow the stack.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stockade_options INTERFACE $<$<CONFIG:Debug>:-foptimize-sibling-calls>)
endif()

find_program(STOCKADE_LLD NAMES ld.lld)
if(STOCKADE_LLD)
  target_link_options(stockade_options INTERFACE -fuse-ld=lld)
endif()

# Parsing nlohmann_json and Boost.PFR takes longer than compiling most files that use them. The clang
# preset goes without, and so finds a file that does not include what it uses.
option(STOCKADE_PCH "precompile the heavy headers" ON)
function(stockade_precompile target)
  if(STOCKADE_PCH)
    target_precompile_headers(${target} REUSE_FROM stockade_pch)
  endif()
endfunction()
