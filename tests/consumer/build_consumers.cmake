# Builds and runs the consumer against an installed tree, by CMake and by pkg-config, and the installed programs of the
# tutorial, all at a prefix that the configuration did not know. SOURCE, CXX, FLAGS and GENERATOR are the caller's.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# build_consumers(PREFIX): what it builds lies in ${tree}.
function(build_consumers prefix)
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${tree}/build -DCMAKE_PREFIX_PATH=${prefix}
      -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
  run(${CMAKE_COMMAND} --build ${tree}/build)
  run(${tree}/build/consumer)

  # pkg-config's flags alone: the file's prefix is where it lies, fmt is among what it requires, C++20 among its flags.
  find_program(pkg_config pkg-config REQUIRED)
  file(GLOB_RECURSE pc ${prefix}/*/ocltensor.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND ${pkg_config} --cflags --libs ocltensor OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  foreach(wanted -lfmt -locltensor ${prefix})
    if(NOT flags MATCHES "${wanted}")
      message(FATAL_ERROR "pkg-config ocltensor lacks ${wanted}: ${flags}")
    endif()
  endforeach()
  separate_arguments(flags UNIX_COMMAND "${FLAGS} ${flags}")
  get_filename_component(libraries ${folder} DIRECTORY)
  run(${CXX} ${SOURCE}/main.cpp -o ${tree}/by_pkg_config ${flags} -Wl,-rpath,${libraries})
  run(${tree}/by_pkg_config)

  # Every inline function of every header, also of those that no example calls, finds what it calls in the library.
  file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/ocltensor/*.h ${prefix}/include/tensor_backend/*.h)
  list(REMOVE_ITEM headers ocltensor/methods.h ocltensor/selected.h ocltensor/compound.h) # inside of classes
  find_path(dlpack dlpack/dlpack.h)
  if(NOT dlpack)
    list(REMOVE_ITEM headers ocltensor/dlpack.h)
  endif()
  list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
  list(JOIN headers "" includes)
  file(WRITE ${tree}/every_inline.cpp "${includes}int main() { return 0; }\n")
  execute_process(COMMAND ${CXX} -fkeep-inline-functions -E -x c++ /dev/null OUTPUT_QUIET ERROR_VARIABLE refused)
  if(refused STREQUAL "") # clang has no such option
    run(${CXX} -std=c++20 -O0 -fkeep-inline-functions ${tree}/every_inline.cpp -o ${tree}/every_inline ${flags}
        -Wl,-rpath,${libraries})
    run(${tree}/every_inline)
  endif()

  # The installed programs of the tutorial; arguments after the prefix may choose targets.
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${prefix}/share/doc/ocltensor/src/examples -B ${tree}/examples
      -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
  run(${CMAKE_COMMAND} --build ${tree}/examples ${ARGN})
  run(${tree}/examples/tensors)
endfunction()
