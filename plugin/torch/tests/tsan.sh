#!/usr/bin/env bash
# Runs tests of the adapter under ThreadSanitizer: tsan.sh BUILD_FOLDER PYTHON. The folder is one of the preset `tsan` with
# OCLTENSOR_BUILD_TORCH=ON. Python, torch and the driver are not instrumented: only races between lines of ours are seen (one
# planted in the adapter is). Without tests of forked workers, which ThreadSanitizer does not support.
set -euo pipefail
build=$(cd "$1" && pwd) python=$2
cd "$(dirname "${BASH_SOURCE[0]}")"
export PYTHONPATH=$build/torch TORCH_DEVICE_BACKEND_AUTOLOAD=0 OMP_NUM_THREADS=1 OCL_ICD_VENDORS=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors/pocl.icd}
export TSAN_OPTIONS="suppressions=$PWD/../../../tests/support/tsan.supp history_size=4 ignore_noninstrumented_modules=1"
library=$(g++ -print-file-name=libtsan.so)
failed=0
for tests in "test_training.py Threads Memory" test_runtime.py test_tensors.py test_kernels.py test_optimizers.py; do
  echo "== $tests"
  # Without random addresses: g++ 12's ThreadSanitizer knows older layouts only.
  read -ra words <<<"$tests"
  LD_PRELOAD=$library setarch -R "$python" "${words[@]}" || failed=1
done
exit $failed
