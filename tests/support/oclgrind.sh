#!/usr/bin/env bash
# The kernels under Oclgrind: data races, accesses out of bounds, divergent barriers. It interprets every work-item, so
# a representative set of operators runs, two and more of each family, each in a process with a time limit of its own.
# usage: oclgrind.sh CONFORMANCE PLUGIN [REGEX of families or operators]    (SECONDS_EACH=n, JOBS=n)
set -euo pipefail
conformance=$1 plugin=$2 wanted=${3:-.}
limit=${SECONDS_EACH:-300} jobs=${JOBS:-$(nproc)}

# family, cases (scans meet in local memory in rare long cases only), dtypes, operators
table() {
  cat <<'TABLE'
pointwise 6  float32,int16       add.out gelu.out where.self_out
copy      6  float32,int64       copy.out cat.out flip.out triu.out arange.start_out
reduce    6  float32,int32       sum.IntList_out amax.out var.correction_out max.dim_max argmin.out any.all_out mean.out
scan      60 float32,int64       cumsum.out
scan      6  float32,int64       cumprod.out
sort      6  float32,int64       sort.values_stable topk.values
matmul    6  float32,int32       mm.out addmm.out bmm.out addmv.out dot.out
conv      6  float32             convolution.out convolution_backward.out
pool      6  float32             max_pool2d_with_indices.out max_pool2d_with_indices_backward.grad_input avg_pool2d.out _adaptive_avg_pool2d_backward.out
norm      6  float32             native_batch_norm.out native_batch_norm_backward.out native_layer_norm.out native_layer_norm_backward.out native_group_norm.out native_group_norm_backward.out
softmax   6  float32             _softmax.out _log_softmax_backward_data.out
attention 6  float32             _scaled_dot_product_attention_math.out
loss      6  float32             nll_loss_forward.output nll_loss2d_backward.grad_input
index     6  float32,int64       gather.out scatter_add.out scatter_reduce.two_out index_put.out index.Tensor_out index_add.out embedding_dense_backward.out nonzero.out masked_select.out
random    6  float32             normal.out multinomial.out native_dropout.out
random    6  int64               randperm.generator_out
multi_tensor 4 float32         _foreach_addcdiv.ScalarList_out _foreach_norm.Scalar_out _foreach_copy.out _fused_adam_.tensor_lr _fused_sgd_.tensor_lr _amp_foreach_non_finite_check_and_unscale_
upsample  6  float32             upsample_bilinear2d.out upsample_bilinear2d_backward.grad_input upsample_nearest2d_backward.grad_input
TABLE
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runtime=$(dpkg -L oclgrind 2>/dev/null | grep -m1 'liboclgrind-rt-icd\.so$') ||
  { echo "oclgrind.sh: liboclgrind-rt-icd.so is not installed (Debian package oclgrind)" >&2; exit 2; }
# As an ICD of its own, not preloaded as the oclgrind command does it: the plugin loads libOpenCL itself, and a preloaded
# Oclgrind and the system's drivers would then be mixed.
mkdir "$work/vendors"
echo "$runtime" >"$work/vendors/oclgrind.icd"
export OCL_ICD_VENDORS=$work/vendors OCLTENSOR_CACHE_DIR=$work/cache OCLTENSOR_LOG_LEVEL=error
unset OCL_ICD_FILENAMES OPENCL_LAYERS OCLTENSOR_DEVICES
# 32: each tensor is a buffer of its exact size, else accesses beyond it would still be inside a segment.
# 256 KiB of local memory: the packed matrix products need it.
export OCLGRIND_LOCAL_MEM_SIZE=262144
export OCLGRIND_DATA_RACES=1 OCLTENSOR_DEBUG_ALLOCATOR=32 OCLGRIND_NUM_THREADS=1 OCLGRIND_MAX_ERRORS=50

# one FAMILY STYLE CASES DTYPES OPERATOR: writes a verdict to $work/FAMILY.STYLE.OPERATOR.verdict
one() {
  local style=$2 cases=$3 dtypes=$4 operator=$5 name=$work/$1.$2.$5 status=0 verdict
  OCLGRIND_LOG=$name.log OCLTENSOR_KERNEL_STYLE=$style timeout -k 5 "$limit" \
    "$conformance" --plugin "$plugin" --no-abi --only "^${operator//./\\.}\$" --dtype "$dtypes" --cases "$cases" \
    --budget $((limit * 3 / 4)) --timeout 0 >"$name.out" 2>&1 || status=$?
  if [ -s "$name.log" ]; then verdict=defect
  elif [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then verdict=slow
  elif [ "$status" -ne 0 ]; then verdict=failed
  elif ! grep -qE '[1-9][0-9]* cases passed' "$name.out"; then verdict=empty
  else verdict=clean; fi
  echo "$verdict $operator" >"$name.verdict"
}
export -f one
export work limit conformance plugin

# Both styles of kernels: for CPU drivers, and for GPUs, with local memory.
table | while read -r family cases dtypes operators; do
  for style in cpu gpu; do for operator in $operators; do
    if [[ $family =~ $wanted || $operator =~ $wanted ]]; then echo "$family $style $cases $dtypes $operator"; fi
  done; done
done >"$work/tasks"
[ -s "$work/tasks" ] || { echo "oclgrind.sh: nothing matches '$wanted'" >&2; exit 2; }
xargs -P "$jobs" -L 1 bash -c 'one "$@"' one <"$work/tasks"

bad=0
while read -r group; do
  verdicts=$(cat "$work/$group".*.verdict)
  total=$(wc -l <<<"$verdicts") clean=$(grep -c '^clean' <<<"$verdicts" || true)
  cases=$(cat "$work/$group".*.out | sed -nE 's/.* ([0-9]+) cases passed.*/\1/p' | paste -sd+ | bc)
  rest=$(grep -v '^clean' <<<"$verdicts" | paste -sd, | sed 's/,/, /g' || true)
  printf '%-10s %-9s %d of %d operators clean, %d cases%s\n' "${group%.*}" "${group#*.}" "$clean" "$total" "${cases:-0}" "${rest:+: $rest}"
  [ "$clean" -eq "$total" ] || bad=1
done < <(cut -d' ' -f1,2 --output-delimiter=. "$work/tasks" | sort -u)
for log in "$work"/*.log; do
  [ -s "$log" ] || continue
  echo "--- $(basename "$log" .log)" && head -40 "$log"
done
while read -r verdict; do
  echo "--- $(basename "$verdict" .verdict): $(cut -d' ' -f1 "$verdict")" && tail -8 "${verdict%.verdict}.out"
done < <(grep -lE '^(failed|empty|slow)' "$work"/*.verdict)
[ "$bad" -eq 0 ] && echo "Oclgrind: no race, no access out of bounds" || exit 1
