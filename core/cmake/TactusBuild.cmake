# Compiler settings and the helper that turns a top-level folder into a static library.

find_program(TACTUS_CCACHE ccache)
if(TACTUS_CCACHE)
  # What a precompiled header defines is part of it, and it holds no time of day: without being told so ccache gives up.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${TACTUS_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TACTUS_CCACHE})
endif()

set(TACTUS_WITH_CUDA OFF)
if(NOT TACTUS_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # 90a: Hopper with its own instructions. The sm_80 path is compiled with -DCMAKE_CUDA_ARCHITECTURES=80.
    set(CMAKE_CUDA_ARCHITECTURES 90a CACHE STRING "CUDA architectures")
  endif()
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Older toolkits, which distributions package, know no C++20 or not this g++.
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    if(nvcc_version MATCHES "release ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_LESS 12.4)
      if(TACTUS_CUDA STREQUAL "ON")
        message(FATAL_ERROR "CUDA ${CMAKE_MATCH_1} is too old: 12.4 or later is needed")
      endif()
      message(STATUS "CUDA ${CMAKE_MATCH_1} is too old (12.4 or later is needed)")
      set(CMAKE_CUDA_COMPILER "")
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      # CMake 3.25 does not know that nvcc has C++20.
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(TACTUS_WITH_CUDA ON)
  elseif(TACTUS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TACTUS_CUDA=ON but no nvcc was found. Put it on PATH, set CMAKE_CUDA_COMPILER, or use -DTACTUS_CUDA=OFF.")
  else()
    message(STATUS "No CUDA toolkit found: building for the CPU alone")
  endif()
endif()

add_library(tactus_options INTERFACE)
target_include_directories(tactus_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(tactus_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr>)
if(TACTUS_WERROR)
  target_compile_options(tactus_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns of overlaps and lengths inside std::string's operator+ that cannot happen (GCC bug 105651).
  target_compile_options(tactus_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-stringop-overflow
    -Wno-stringop-overread -Wno-array-bounds>)
endif()
if(TACTUS_NATIVE)
  target_compile_options(tactus_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
# Contracted and reassociated sums stay off: results must not depend on how a loop was vectorised by chance.
target_compile_options(tactus_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -ffp-contract=off>)
foreach(sanitizer IN LISTS TACTUS_SANITIZE)
  target_compile_options(tactus_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizer} -fno-omit-frame-pointer
    -fno-sanitize-recover=all>)
  target_link_options(tactus_options INTERFACE -fsanitize=${sanitizer})
endforeach()
if(TACTUS_WITH_CUDA)
  target_compile_definitions(tactus_options INTERFACE TACTUS_WITH_CUDA=1)
endif()
if(TACTUS_AUDIO)
  target_compile_definitions(tactus_options INTERFACE TACTUS_WITH_AUDIO=1)
endif()

# Headers of the standard library that most files read, parsed once for each library.
function(tactus_precompile target)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  # Part of what ccache compares.
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
endfunction()
set(tactus_standard_headers <algorithm> <cmath> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span>
  <sstream> <string> <vector>)

# The static library of a folder; sources of a subfolder that is a library of its own are named in ARGN.
function(tactus_library folder)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  foreach(other IN LISTS ARGN)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/${other}")
  endforeach()
  if(NOT TACTUS_AUDIO)
    # Files that need the audio libraries live in folders of that name.
    list(FILTER sources EXCLUDE REGEX "/audio/")
  endif()
  if(TACTUS_WITH_CUDA)
    file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${folder}/*.cu)
    list(APPEND sources ${cuda_sources})
  endif()
  add_library(tactus_${name} STATIC ${sources})
  target_link_libraries(tactus_${name} PUBLIC tactus_options)
endfunction()
