# Installs the build into a fresh tree, runs installed programs, builds the consumer against the tree, runs it: by CMake, and
# by pkg-config, both at a prefix that the configuration did not know. Then the installed template of a backend, by its own
# two commands.
set(tree ${BUILD}/consumer)
file(REMOVE_RECURSE ${tree})
include(${CMAKE_CURRENT_LIST_DIR}/build_consumers.cmake)
if(SANITIZE)
  set(FLAGS "${FLAGS} -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${tree}/installed)
run(${tree}/installed/bin/ocltensor-info --help)
run(${tree}/installed/bin/ocltensor-conformance --plugin cpu --check tables --no-operators)
file(GLOB_RECURSE plugin ${tree}/installed/lib*/libocltensor_plugin.so)
get_filename_component(folder ${plugin} DIRECTORY)
if(NOT EXISTS ${folder}/ocltensor-builder)
  message(FATAL_ERROR "ocltensor-builder is not beside ${plugin}")
endif()
foreach(file README.md LICENSE third_party_notes/README.md plugin/opencl/README.md tests/README.md
             src/docs/tutorial.md src/docs/write_a_backend.md src/examples/backend/README.md)
  if(NOT EXISTS ${tree}/installed/share/doc/ocltensor/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
# The texts lie in the tree that their links name.
run(${PYTHON} ${SOURCE}/../readme/readme.py links ${tree}/installed/share/doc/ocltensor)
build_consumers(${tree}/installed)

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
