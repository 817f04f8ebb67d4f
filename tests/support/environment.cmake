# What ctest gives all tests: it reads this file before it starts them.
# OpenMP's threads, those of PyTorch and OpenBLAS, wait for work by spinning. Beside another test on the same processors
# that takes half of the time of some tests: torch.norms used 14 s of processor time, without it 5 s.
if(NOT DEFINED ENV{OMP_WAIT_POLICY})
  set(ENV{OMP_WAIT_POLICY} passive)
endif()
