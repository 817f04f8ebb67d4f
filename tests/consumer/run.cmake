# Installs the build into a fresh tree, runs installed programs, builds the consumer against the tree, runs it: by CMake, and
# by pkg-config, both at a prefix that the configuration did not know. Then the installed template of a backend, by its own
# two commands.
set(tree ${BUILD}/consumer)
file(REMOVE_RECURSE ${tree})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
if(SANITIZE)
  set(FLAGS "${FLAGS} -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${tree}/installed)
run(${tree}/installed/bin/ocltensor-info --help)
run(${tree}/installed/bin/ocltensor-conformance --plugin cpu --check tables --no-operators)
foreach(file README.md LICENSE third_party_notes/README.md plugin/opencl/README.md tests/README.md
             src/docs/tutorial.md src/docs/write_a_backend.md src/examples/backend/README.md)
  if(NOT EXISTS ${tree}/installed/share/doc/ocltensor/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${tree}/build -DCMAKE_PREFIX_PATH=${tree}/installed
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${tree}/build)
run(${tree}/build/consumer)

# pkg-config's flags alone: the file's prefix is where it lies, and fmt is among what it requires.
find_program(pkg_config pkg-config REQUIRED)
file(GLOB_RECURSE pc ${tree}/installed/*/ocltensor.pc)
get_filename_component(folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
execute_process(COMMAND ${pkg_config} --cflags --libs ocltensor OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
foreach(wanted -lfmt -locltensor ${tree}/installed)
  if(NOT flags MATCHES "${wanted}")
    message(FATAL_ERROR "pkg-config ocltensor lacks ${wanted}: ${flags}")
  endif()
endforeach()
separate_arguments(flags UNIX_COMMAND "${FLAGS} ${flags}")
get_filename_component(libraries ${folder} DIRECTORY)
run(${CXX} -std=c++20 ${SOURCE}/main.cpp -o ${tree}/by_pkg_config ${flags} -Wl,-rpath,${libraries})
run(${tree}/by_pkg_config)

# The installed programs of the tutorial.
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${tree}/installed/share/doc/ocltensor/src/examples -B ${tree}/examples
    -DCMAKE_PREFIX_PATH=${tree}/installed -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${tree}/examples)
run(${tree}/examples/tensors)

# A copy of the installed template: its build, its test, and a host that finds it.
file(COPY ${tree}/installed/share/doc/ocltensor/src/examples/backend DESTINATION ${tree})
run(${CMAKE_COMMAND} -B ${tree}/backend/build -S ${tree}/backend -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${tree}/installed)
run(${CMAKE_COMMAND} --build ${tree}/backend/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${tree}/backend/build --output-on-failure --no-tests=error)
execute_process(COMMAND ${CMAKE_COMMAND} -E env OCLTENSOR_PLUGIN_PATH=${tree}/backend/build/host_backend.so
                        ${tree}/installed/bin/ocltensor-info OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
if(NOT shown MATCHES "self-test of host:0\n  result           right")
  message(FATAL_ERROR "ocltensor-info does not find the template: ${shown}")
endif()
