# ocltensor_unoptimised(TEST...): PoCL compiles these tests' kernels without its optimiser, which takes half of the time
# (radix sorts: a twentieth). For tests of many kernels that compute little; conformance.optimised.* has all operators
# optimised. The keys of caches know nothing of PoCL's flags: caches apart. They compile in their own process: builders,
# which have no processor to themselves here, take a seventh longer, and a budget of processor time would not see them.
function(ocltensor_unoptimised)
  if(OCLTENSOR_TEST_THOROUGH OR DEFINED ENV{TEST_THOROUGHLY})
    return()
  endif()
  foreach(cache POCL_CACHE_DIR OCLTENSOR_CACHE_DIR)
    list(APPEND changes ${cache}=string_append:-unoptimised)
  endforeach()
  set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT_MODIFICATION
                       "${changes};POCL_EXTRA_BUILD_FLAGS=set:-cl-opt-disable;OCLTENSOR_BUILD_AHEAD=set:0")
endfunction()
