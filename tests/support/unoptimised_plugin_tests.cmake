# For ctest, which includes this where it has found the tests of plugin_tests: they judge the plugin's insides, of which
# the emulated matrix units are ten times as long in PoCL's optimiser as in their work.
include(${CMAKE_CURRENT_LIST_DIR}/unoptimised.cmake)
if(plugin_tests_TESTS) # the program is built
  ocltensor_unoptimised(${plugin_tests_TESTS})
endif()
