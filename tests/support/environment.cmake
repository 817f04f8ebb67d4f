# What ctest gives all tests: it reads this file before it starts them.
# OpenMP's threads, those of PyTorch and OpenBLAS, wait for work by spinning. Beside another test on the same processors
# that takes half of the time of some tests: torch.norms used 14 s of processor time, without it 5 s.
if(NOT DEFINED ENV{OMP_WAIT_POLICY})
  set(ENV{OMP_WAIT_POLICY} passive)
endif()
# Images of containers often forbid Python to write bytecode. Each test would compile torch's modules anew: an import takes
# 2.7 s, with bytecode 1.5; that of torch's operator tests 7.4 and 3.3.
unset(ENV{PYTHONDONTWRITEBYTECODE})
get_filename_component(bytecode ${CMAKE_CURRENT_LIST_DIR}/../../build/bytecode ABSOLUTE)
set(ENV{PYTHONPYCACHEPREFIX} ${bytecode})
# What `./run test` names; where ctest is called by hand, too, caches are those of the tree.
foreach(cache POCL_CACHE_DIR=pocl-cache OCLTENSOR_CACHE_DIR=program-cache)
  string(REGEX MATCH "(.*)=(.*)" cache ${cache})
  if(NOT DEFINED ENV{${CMAKE_MATCH_1}})
    get_filename_component(folder ${CMAKE_CURRENT_LIST_DIR}/../../build/${CMAKE_MATCH_2} ABSOLUTE)
    set(ENV{${CMAKE_MATCH_1}} ${folder})
  endif()
  file(MAKE_DIRECTORY $ENV{${CMAKE_MATCH_1}} $ENV{${CMAKE_MATCH_1}}-unoptimised)
endforeach()
